// A turn of the conversation, folded from the chunks of its stream.

import { called, extend, invalidated, restart, structured } from "./part.js";

/** A turn that has not said anything. */
export const begin = () => ({ parts: [], status: "", questions: [], runId: undefined, failure: undefined, end: undefined, data: undefined });

/** The turn after one more chunk. Kinds that it does not know change nothing. */
export function fold(turn, chunk) {
  const parts = spoken(turn.parts, chunk);
  if (parts !== turn.parts) return { ...turn, parts };
  switch (chunk.type) {
    case "status":
      return { ...turn, status: chunk.message };
    case "interrupt":
      return { ...turn, questions: [...turn.questions.filter((one) => one.requestId !== chunk.requestId), chunk] };
    case "cancelled":
      return { ...turn, end: "cancelled" };
    case "error":
      return { ...turn, failure: chunk.failure };
    case "done":
      return { ...turn, end: turn.end ?? chunk.data?.status ?? "done", runId: chunk.data?.runId, data: chunk.data?.data };
    default:
      return turn;
  }
}

/** What was said after one more chunk. */
function spoken(parts, chunk) {
  switch (chunk.type) {
    case "text-start":
      return chunk.segmentId === undefined ? parts : restart(parts, origin(chunk));
    case "text-delta":
      return extend(parts, origin(chunk), chunk.delta);
    case "message":
      return [...parts, { text: chunk.content }];
    case "tool-call-start":
      return called(parts, chunk, { input: chunk.input });
    case "tool-call-result":
      return called(parts, chunk, { status: "done", output: chunk.structuredContent ?? chunk.content });
    case "tool-call-error":
      return called(parts, chunk, { status: "failed", output: chunk.message });
    case "structured-data":
      return structured(parts, chunk);
    case "structured-data-invalidated":
      return invalidated(parts, chunk.streamId);
    default:
      return parts;
  }
}

/** Where text comes from: a pass of a model, else a node. */
const origin = ({ node, opId, segmentId }) => (segmentId === undefined ? node : `${opId}/${segmentId}`);
