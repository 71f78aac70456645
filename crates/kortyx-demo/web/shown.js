// The parts of an entry on the screen.

import { el, show } from "./dom.js";
import { identity } from "./part.js";
import { brief, facts, named, whole } from "./value.js";

const STATUS = { running: "at work…", done: "done", failed: "not done" };

/** Longer texts of a card stand in a paragraph of their own. */
const LINE = 48;

/** Shows parts in their order. What did not change is left alone, so that what a reader opened stays open. */
export class Parts {
  node = el("div", { class: "parts" });
  #shown = [];

  show(parts, isOpen) {
    for (const [at, part] of parts.entries()) this.#place(at, part);
    for (const { node } of this.#shown.splice(parts.length)) node.remove();
    for (const [at, { node }] of this.#shown.entries()) {
      if (node.matches(".said")) node.toggleAttribute("data-open", isOpen && at === parts.length - 1);
    }
  }

  #place(at, part) {
    const kind = identity(part) ?? "text";
    if (this.#shown[at]?.kind !== kind) {
      const view = part.call ? new Call() : part.card ? new Card() : new Said();
      const [old, next] = [this.#shown[at], { kind, view, node: view.node }];
      if (old) old.node.replaceWith(next.node);
      else this.node.append(next.node);
      this.#shown[at] = next;
    }
    this.#shown[at].view.show(part);
  }
}

class Said {
  node = el("p", { class: "said" });

  show({ text }) {
    show(this.node, text.trim());
  }
}

/** A call of a tool: what it was given, and what came of it. */
class Call {
  #status = el("span", { class: "badge" });
  #name = el("b", {});
  #body = el("div", {});
  #last;
  node = el("details", { class: "call" }, el("summary", {}, this.#name, " ", this.#status), this.#body);

  show({ call }) {
    const said = JSON.stringify(call);
    if (said === this.#last) return;
    this.#last = said;
    this.node.dataset.status = call.status;
    show(this.#name, named(call.tool));
    show(this.#status, STATUS[call.status]);
    const result = call.output === undefined ? [] : [el("h4", {}, "Result"), whole(call.output)];
    this.#body.replaceChildren(el("h4", {}, "Arguments"), facts(call.input) ?? el("p", {}, brief(call.input)), ...result);
  }
}

/** Structured data: a title, facts, longer texts, lists. */
class Card {
  node = el("section", { class: "card" });
  #last;

  show({ card }) {
    const said = JSON.stringify(card);
    if (said === this.#last) return;
    this.#last = said;
    this.node.dataset.type = card.type;
    this.node.toggleAttribute("data-growing", !card.isFinal);
    if (typeof card.data !== "object" || card.data === null || Array.isArray(card.data)) return this.node.replaceChildren(whole(card.data));
    const { title, ...rest } = card.data;
    const fields = Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1));
    const isList = ([, value]) => Array.isArray(value);
    const isLong = ([, value]) => typeof value === "string" && value.length > LINE;
    const parts = [
      title !== undefined && el("h3", {}, brief(title)),
      facts(Object.fromEntries(fields.filter((field) => !isList(field) && !isLong(field)))),
      ...fields.filter(isLong).map(([, value]) => el("p", {}, value)),
      ...fields.filter(isList).flatMap(([name, value]) => [el("h4", {}, named(name)), whole(value)]),
    ];
    this.node.replaceChildren(...parts.filter(Boolean));
  }
}
