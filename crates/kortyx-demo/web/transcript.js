// What was said, kept in this browser. Every entry has a key of its own, so tabs that write at once lose nothing.

const prefixOf = (session) => `kortyx-demo:said:${session}:`;

/** When an entry was begun, by its key. */
const begun = (key) => Number(/:(\d+)-[^:]*$/.exec(key)?.[1]);

/** The entries of one conversation. Other tabs' changes arrive as they are made; an entry that is gone is told as undefined. */
export class Transcript {
  #prefix;
  #changed;
  #last = 0;

  constructor(session, changed) {
    this.#prefix = prefixOf(session);
    this.#changed = changed;
    addEventListener("storage", (event) => {
      if (event.key?.startsWith(this.#prefix)) changed(event.key, event.newValue ? JSON.parse(event.newValue) : undefined);
    });
  }

  /** Every entry, in the order in which it was begun. */
  all() {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(this.#prefix)).sort();
    return keys.map((key) => [key, JSON.parse(localStorage.getItem(key))]);
  }

  /** Begins an entry: its key. */
  add(entry) {
    const key = this.reserve();
    this.write(key, entry);
    return key;
  }

  /** A place for an entry that may be written later: before all that is begun from now on. */
  reserve() {
    this.#last = Math.max(Date.now(), this.#last + 1);
    return `${this.#prefix}${String(this.#last).padStart(15, "0")}-${crypto.randomUUID()}`;
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

  /** Forgets what was begun after a time, here and in other tabs. */
  cut(time) {
    for (const [key] of this.all().filter(([key]) => begun(key) > time)) {
      localStorage.removeItem(key);
      this.#changed(key, undefined);
    }
  }

  /** Gives another conversation what was begun up to a time, and a last entry. */
  copy(session, time, last) {
    const other = new Transcript(session, () => {});
    for (const [key, entry] of this.all().filter(([key]) => begun(key) <= time)) {
      other.write(key.replace(this.#prefix, other.#prefix), entry);
    }
    other.add(last);
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
