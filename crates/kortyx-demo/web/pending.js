// The open questions of a session, live.

import { pending } from "./api.js";

const EVERY = 1000;

/** Asks again and again. Tells every list, and whether the server answers. */
export class Pending {
  #session;
  #found;
  #failed;
  #timer;
  #running;

  constructor(session, found, failed) {
    this.#session = session;
    this.#found = found;
    this.#failed = failed;
    addEventListener("online", () => this.refresh());
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh());
  }

  /** Asks now. Lists are told in the order in which they were asked for. */
  async refresh() {
    if (this.#running) return this.#running;
    clearTimeout(this.#timer);
    this.#running = this.#ask();
    await this.#running;
    this.#running = undefined;
    this.#timer = setTimeout(() => this.refresh(), EVERY);
  }

  async #ask() {
    try {
      const asked = Date.now();
      this.#found(await pending(this.#session), asked);
    } catch (error) {
      this.#failed(error);
    }
  }
}
