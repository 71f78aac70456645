// Writes one entry of a transcript while it grows.

import { said, settled, weigh } from "./part.js";

/** How often it is written down, in milliseconds. */
const WRITE_EVERY = 200;

/** At once on the screen, now and then for other tabs and the next load. */
export class Pen {
  #transcript;
  #runId;
  #entry;
  #written = 0;

  /** For what a run says; with a key it goes on with that entry. */
  constructor(transcript, runId, key) {
    this.#transcript = transcript;
    this.#runId = runId;
    this.key = key;
    const entry = key && transcript.read(key);
    this.#entry = { text: entry?.text ?? "", parts: entry?.parts ?? (entry ? [{ text: entry.text }] : []) };
  }

  /** All that the entry says by now. It says more each time: what is read again is there already. */
  write(parts) {
    if (weigh(parts) <= weigh(this.#entry.parts)) return;
    this.#entry = { text: said(parts), parts };
    if (this.key === undefined) this.key = this.#transcript.add(this.#whole(true));
    else if (Date.now() - this.#written > WRITE_EVERY) this.#transcript.write(this.key, this.#whole(true));
    else return this.#transcript.show(this.key, this.#whole(true));
    this.#written = Date.now();
  }

  /** Nothing comes any more. With parts, these are what was said in the end, be it less. */
  close(parts) {
    if (this.key === undefined) return;
    const end = settled(parts ?? []);
    if (end.length) this.#entry = { text: said(end), parts: end };
    this.#transcript.write(this.key, this.#whole(false));
  }

  #whole(open) {
    const { text, parts } = this.#entry;
    const isPlain = parts.every((part) => part.text !== undefined);
    return { who: "flow", text, runId: this.#runId, ...(!isPlain && { parts }), ...(open && { open }) };
  }
}
