// What was said, kept in this browser. Every entry has a key of its own, so tabs that write at once lose nothing.

/** The entries of one conversation. Other tabs' changes arrive as they are made. */
export class Transcript {
  #prefix;
  #changed;
  #last = 0;

  constructor(session, changed) {
    this.#prefix = `kortyx-demo:said:${session}:`;
    this.#changed = changed;
    addEventListener("storage", (event) => {
      if (event.key?.startsWith(this.#prefix) && event.newValue) changed(event.key, JSON.parse(event.newValue));
    });
  }

  /** Every entry, in the order in which it was begun. */
  all() {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(this.#prefix)).sort();
    return keys.map((key) => [key, JSON.parse(localStorage.getItem(key))]);
  }

  /** Begins an entry: its key. */
  add(entry) {
    this.#last = Math.max(Date.now(), this.#last + 1);
    const key = `${this.#prefix}${String(this.#last).padStart(15, "0")}-${crypto.randomUUID()}`;
    this.write(key, entry);
    return key;
  }

  /** Writes an entry anew, here and in other tabs. */
  write(key, entry) {
    try {
      localStorage.setItem(key, JSON.stringify(entry));
    } catch {
      // Full: it is on the screen at least.
    }
    this.#changed(key, entry);
  }

  /** Shows an entry here, without writing it down. */
  show(key, entry) {
    this.#changed(key, entry);
  }

  read(key) {
    return JSON.parse(localStorage.getItem(key));
  }
}

/** The conversation as a workflow reads it. */
export function history(entries, limit = 50) {
  const roles = { you: "user", flow: "assistant" };
  const spoken = entries.map(([, entry]) => entry).filter((entry) => roles[entry.who] && entry.text);
  return spoken.slice(-limit).map((entry) => ({ role: roles[entry.who], content: entry.text }));
}
