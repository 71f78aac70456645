// The open questions of a page: cards come, count down, are answered and close.

import { Refused, question as fetchQuestion } from "./api.js";
import { byId, show } from "./dom.js";
import { QuestionCard } from "./question.js";
import { UNSENT, ending, title, words } from "./words.js";

/** Failures after which a question takes no answer any more. */
const CLOSING = ["INTERRUPT_ALREADY_RESOLVED", "INTERRUPT_EXPIRED", "INTERRUPT_CANCELLED", "INTERRUPT_SUPERSEDED", "NOT_FOUND"];

/** Keeps the cards. `submit(question, response, labels)` sends an answer, and throws what refused it. */
export class Board {
  #node = byId("questions");
  #count = byId("count");
  #status = byId("status");
  #cards = new Map();
  /** Questions that need no card any more, whatever an older list says. */
  #settled = new Set();
  #submit;
  #rest;
  /** The focus was in the last card, and waits for the next one. */
  #seeksFocus = false;

  /** `rest` is what gets the focus when the last card is gone. */
  constructor(submit, rest) {
    this.#submit = submit;
    this.#rest = rest;
    setInterval(() => this.#tick(), 250);
  }

  /** A list came of everything that was open at some time since it was asked for. */
  found(list, askedAt) {
    for (const question of list) this.#ask(question);
    const ids = new Set(list.map((question) => question.id));
    for (const card of this.#cards.values()) {
      // One that is being answered closes with its answer.
      if (card.isOpen && card.since < askedAt && !card.isBusy && !ids.has(card.question.id)) this.#vanished(card);
    }
    this.#recount();
  }

  /** A stream asked. */
  asked({ requestId, ...chunk }) {
    this.#ask({ ...chunk, id: requestId });
    this.#recount();
  }

  /** An answer was accepted. The focus goes on to the next question when it was in this one. */
  settle(id) {
    this.#settled.add(id);
    this.#remove(this.#cards.get(id));
  }

  get open() {
    return [...this.#cards.values()].filter((card) => card.isOpen).length;
  }

  #ask(question) {
    if (this.#settled.has(question.id) || this.#cards.has(question.id)) return;
    const card = new QuestionCard(question, (response, labels) => this.#send(card, response, labels), () => this.#remove(card));
    card.since = Date.now();
    this.#cards.set(question.id, card);
    this.#node.append(card.node);
    show(this.#status, `A question waits: ${title(question.input)}`);
    const isFree = document.activeElement === this.#rest && !this.#rest.value;
    if (this.#seeksFocus && isFree) card.focus();
    this.#seeksFocus = false;
  }

  async #send(card, response, labels) {
    card.isBusy = true;
    try {
      await this.#submit(card.question, response, labels);
      this.settle(card.question.id);
    } catch (error) {
      if (!(error instanceof Refused)) card.complain(error instanceof TypeError ? UNSENT : String(error));
      else if (CLOSING.includes(error.failure.code)) this.#close(card, words(error.failure));
      else card.refuse(error.failure);
    } finally {
      card.isBusy = false;
    }
  }

  /** It was open a moment ago. */
  async #vanished(card) {
    try {
      const { status } = await fetchQuestion(card.question.id);
      if (status !== "pending" && !card.isBusy) this.#close(card, ending(status));
    } catch (error) {
      if (error instanceof Refused) this.#close(card, words(error.failure));
    }
  }

  #close(card, text) {
    this.#settled.add(card.question.id);
    card.close(text);
    show(this.#status);
    this.#recount();
  }

  #remove(card) {
    if (!card || !this.#cards.delete(card.question.id)) return;
    const hadFocus = card.node.contains(document.activeElement);
    card.node.remove();
    this.#recount();
    if (!hadFocus) return;
    const next = [...this.#cards.values()].find((other) => other.isOpen);
    this.#seeksFocus = !next;
    if (next) next.focus();
    else this.#rest.focus();
  }

  #tick() {
    const now = Date.now();
    for (const card of this.#cards.values()) {
      if (card.tick(now) && !card.isBusy) this.#close(card, ending("expired"));
      else if (card.becomesUrgent(now)) show(this.#status, "A question expires within a minute.");
    }
  }

  #recount() {
    const open = this.open;
    this.#count.hidden = open === 0;
    show(this.#count, String(open));
    const empty = byId("empty");
    if (empty) empty.hidden = this.#cards.size > 0;
  }
}
