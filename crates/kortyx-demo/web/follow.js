// What a run said that this conversation lacks: after a reload, a broken connection, or an answer by id.

import { follow } from "./api.js";
import { identity, said } from "./part.js";
import { Pen } from "./pen.js";
import { chunks } from "./sse.js";
import { begin, fold } from "./turn.js";

/**
 * Writes down what a run said beyond what the transcript has of it, and goes on until it waits or has ended: its turn. A pen that
 * has an entry goes on with it. `asked` hears of a question.
 */
export async function catchUp(transcript, runId, { pen = new Pen(transcript, runId), asked = () => {} } = {}) {
  const known = before(transcript, runId, pen);
  let turn = begin();
  let isWhole = false;
  try {
    for await (const chunk of chunks(await follow(runId))) {
      turn = fold(turn, chunk);
      pen.write(rest(turn.parts, known));
      if (chunk.type === "interrupt") asked(chunk);
      isWhole = chunk.type === "interrupt" || chunk.type === "done";
      if (isWhole) break;
    }
  } finally {
    pen.close(isWhole ? rest(turn.parts, known) : undefined);
  }
  return { ...turn, isNew: pen.key !== undefined };
}

/** Writes down with a pen what a run says, until the signal. Questions do not end it, and what goes wrong is for `catchUp` to find. */
export async function listen(transcript, runId, pen, signal) {
  const known = before(transcript, runId, pen);
  let turn = begin();
  try {
    for await (const chunk of chunks(await follow(runId, signal))) {
      turn = fold(turn, chunk);
      if (!signal.aborted) pen.write(rest(turn.parts, known));
    }
  } catch {
    // It was told to end, or the connection broke.
  }
}

/** What the transcript has of a run, but for what this pen writes. */
function before(transcript, runId, pen) {
  const entries = transcript.all().filter(([key, entry]) => entry.runId === runId && key !== pen.key).map(([, entry]) => entry);
  const shown = entries.flatMap((entry) => entry.parts ?? []).map(identity);
  return { text: entries.map((entry) => entry.text).join(""), shown: new Set(shown) };
}

const solid = (text) => text.replaceAll(/\s/g, "");

/** The parts that come after what is known. White space does not count: paragraphs may be cut in other places. */
export function rest(parts, known) {
  const wanted = solid(known.text);
  if (!solid(said(parts)).startsWith(wanted)) return [];
  let count = wanted.length;
  const left = (part) => {
    if (part.text === undefined) return known.shown.has(identity(part)) ? undefined : part;
    let at = 0;
    for (; at < part.text.length && count > 0; at += 1) if (!/\s/.test(part.text[at])) count -= 1;
    const text = at === 0 ? part.text : part.text.slice(at).trim();
    return text === "" ? undefined : { ...part, text };
  };
  return parts.map(left).filter(Boolean);
}
