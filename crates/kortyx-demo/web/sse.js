// Server-sent events from a response that was asked for with POST, which EventSource cannot do.

/** Takes text as it comes, however it is cut, and gives the events that are complete: `{id, data}`. */
export class EventReader {
  #rest = "";

  push(text) {
    this.#rest += text;
    const events = [];
    for (;;) {
      const end = /\r?\n\r?\n/.exec(this.#rest);
      if (!end) return events;
      const event = parse(this.#rest.slice(0, end.index));
      this.#rest = this.#rest.slice(end.index + end[0].length);
      if (event) events.push(event);
    }
  }
}

/** One frame. Comments and frames without data are no event. */
function parse(frame) {
  const data = [];
  let id;
  for (const line of frame.split(/\r?\n/)) {
    const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (name === "data") data.push(value);
    if (name === "id") id = value;
  }
  return data.length ? { id, data: data.join("\n") } : undefined;
}

/** The chunks of a stream, until it says that it is done. A stream that ends before is an error. */
export async function* chunks(response) {
  const reader = new EventReader();
  const decoder = new TextDecoder();
  const body = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await body.read();
      for (const { data } of reader.push(decoder.decode(value, { stream: !done }))) {
        if (data === "[DONE]") return;
        yield JSON.parse(data);
      }
      if (done) throw new TypeError("the stream ended too early");
    }
  } finally {
    body.cancel().catch(() => {});
  }
}
