// What a run said that this conversation lacks: after a reload, a broken connection, or an answer by id.

import { follow } from "./api.js";
import { Pen } from "./pen.js";
import { chunks } from "./sse.js";
import { begin, fold, said } from "./turn.js";

/**
 * Writes down what a run said beyond what the transcript has of it, and goes on until it waits or has ended: its turn. A pen that
 * has an entry goes on with it. `asked` hears of a question.
 */
export async function catchUp(transcript, runId, { pen = new Pen(transcript, runId), asked = () => {} } = {}) {
  const known = before(transcript, runId, pen);
  let turn = begin();
  try {
    for await (const chunk of chunks(await follow(runId))) {
      turn = fold(turn, chunk);
      pen.write(rest(said(turn), known));
      if (chunk.type === "interrupt") asked(chunk);
      if (chunk.type === "interrupt" || chunk.type === "done") break;
    }
  } finally {
    pen.close();
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
      if (!signal.aborted) pen.write(rest(said(turn), known));
    }
  } catch {
    // It was told to end, or the connection broke.
  }
}

/** What the transcript has of a run, but for what this pen writes. */
const before = (transcript, runId, pen) =>
  transcript.all().filter(([key, entry]) => entry.runId === runId && key !== pen.key).map(([, entry]) => entry.text).join("");

/** What `all` says after `known`. White space does not count: paragraphs may be cut in other places. */
export function rest(all, known) {
  const wanted = known.replaceAll(/\s/g, "");
  let count = 0;
  let at = 0;
  for (; at < all.length && count < wanted.length; at += 1) {
    if (/\s/.test(all[at])) continue;
    if (all[at] !== wanted[count]) return "";
    count += 1;
  }
  return count < wanted.length ? "" : all.slice(at).trim();
}
