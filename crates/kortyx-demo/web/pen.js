// Writes one entry of a transcript while it grows.

/** How often it is written down, in milliseconds. */
const WRITE_EVERY = 200;

/** At once on the screen, now and then for other tabs and the next load. */
export class Pen {
  #transcript;
  #runId;
  #text;
  #written = 0;

  /** For what a run says; with a key it goes on with that entry. */
  constructor(transcript, runId, key) {
    this.#transcript = transcript;
    this.#runId = runId;
    this.key = key;
    this.#text = (key && transcript.read(key)?.text) ?? "";
  }

  /** All that the entry says by now. It never gets shorter: what is read again is there already. */
  write(text) {
    if (text.length <= this.#text.length) return;
    this.#text = text;
    if (this.key === undefined) this.key = this.#transcript.add(this.#entry(true));
    else if (Date.now() - this.#written > WRITE_EVERY) this.#transcript.write(this.key, this.#entry(true));
    else return this.#transcript.show(this.key, this.#entry(true));
    this.#written = Date.now();
  }

  /** Nothing comes any more. */
  close() {
    if (this.key !== undefined) this.#transcript.write(this.key, this.#entry(false));
  }

  #entry(open) {
    return { who: "flow", text: this.#text, runId: this.#runId, ...(open && { open }) };
  }
}
