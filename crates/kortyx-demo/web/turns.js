// The turns of the conversation: go back to one, or go on from it in a conversation of its own.

import { Refused, checkpoints } from "./api.js";
import { byId, el, show } from "./dom.js";
import { open } from "./session.js";
import { UNREACHABLE, words } from "./words.js";

const time = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });

/** The list of turns, read whenever it is opened. `failed` hears what went wrong, in words. */
export class Turns {
  #node = byId("turns");
  #list = byId("turn-list");
  #session;
  #transcript;
  #failed;

  constructor(session, transcript, failed) {
    [this.#session, this.#transcript, this.#failed] = [session, transcript, failed];
    this.#node.addEventListener("toggle", () => this.refresh());
  }

  /** Reads the turns anew, where they are shown. */
  async refresh() {
    if (!this.#node.open) return;
    await this.#try(async () => {
      const turns = await checkpoints({ action: "list", sessionId: this.#session });
      const items = turns.map((turn, index) => this.#item(turn, index === turns.length - 1)).reverse();
      const empty = el("li", { class: "hint" }, "There is no turn yet.");
      this.#list.replaceChildren(...(items.length > 0 ? items : [empty]));
    });
  }

  #item(turn, isHead) {
    const name = turn.turnIndex === 0 ? "Beginning" : `Turn ${turn.turnIndex}`;
    const about = turn.turnIndex > 0 && turn.workflow ? `${turn.workflow} · ` : "";
    const back = isHead
      ? el("span", { class: "badge" }, "you are here")
      : el("button", { type: "button", class: "quiet", "aria-label": `Go back to ${name}` }, "Go back");
    const fork = el("button", { type: "button", class: "quiet", "aria-label": `Fork at ${name}` }, "Fork");
    if (!isHead) back.addEventListener("click", () => this.#goBack(turn, name, back));
    fork.addEventListener("click", () => this.#fork(turn, name));
    const when = el("span", { class: "hint" }, `${about}${time.format(turn.createdAt)}`);
    return el("li", { "data-turn": turn.turnIndex }, el("span", { class: "turn" }, el("b", {}, name), when), back, fork);
  }

  /** The first press asks, the second one acts. */
  #goBack(turn, name, button) {
    if (!button.classList.contains("sure")) {
      button.classList.add("sure");
      return show(button, "Really go back?");
    }
    return this.#try(async () => {
      await checkpoints({ action: "rollback", checkpointId: turn.id });
      this.#transcript.cut(turn.createdAt);
      this.#transcript.add({ who: "note", text: `Back to here: ${name.toLowerCase()}.` });
      open(this.#session);
    });
  }

  #fork(turn, name) {
    return this.#try(async () => {
      const { sessionId } = await checkpoints({ action: "fork", checkpointId: turn.id });
      this.#transcript.copy(sessionId, turn.createdAt, { who: "note", text: `A conversation of its own, from here on: ${name.toLowerCase()} of another one.` });
      open(sessionId);
    });
  }

  async #try(act) {
    try {
      await act();
    } catch (error) {
      this.#failed(error instanceof Refused ? words(error.failure) : UNREACHABLE);
    }
  }
}
