// The conversation on the screen.

import { el, show } from "./dom.js";
import { Parts } from "./shown.js";

const WHO = { you: "You", flow: "Workflow", note: "Note" };

/** Shows entries of a transcript in order, and follows the end while the reader is there. */
export class Log {
  #node;
  #shown = new Map();

  constructor(node) {
    this.#node = node;
  }

  /** Shows an entry, or takes it away when there is none any more. */
  show(key, entry) {
    if (!entry) {
      this.#shown.get(key)?.node.remove();
      this.#shown.delete(key);
      return;
    }
    const item = this.#shown.get(key) ?? this.#insert(key, entry);
    const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 120;
    item.parts.show(entry.parts ?? [{ text: entry.text }], Boolean(entry.open));
    item.isOpen = Boolean(entry.open);
    item.about.hidden = !entry.about;
    show(item.about, entry.about ?? "");
    const isOpen = [...this.#shown.values()].some((one) => one.isOpen);
    // A reader of the screen hears what is complete, not word by word.
    this.#node.setAttribute("aria-busy", String(isOpen));
    if (isAtEnd) scrollTo({ top: document.documentElement.scrollHeight });
  }

  #insert(key, entry) {
    const about = el("p", { class: "about" });
    const parts = new Parts();
    const node = el("article", { class: `entry ${entry.who}`, "data-key": key }, el("p", { class: "who" }, WHO[entry.who]), about, parts.node);
    const later = [...this.#node.children].find((other) => other.dataset.key > key);
    this.#node.insertBefore(node, later ?? null);
    const item = { node, about, parts, isOpen: false };
    this.#shown.set(key, item);
    return item;
  }
}
