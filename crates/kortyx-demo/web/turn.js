// A turn of the conversation, folded from the chunks of its stream.

/** A turn that has not said anything. */
export const begin = () => ({ parts: [], status: "", questions: [], runId: undefined, failure: undefined, end: undefined, data: undefined });

/** The turn after one more chunk. Kinds that it does not know change nothing. */
export function fold(turn, chunk) {
  switch (chunk.type) {
    case "text-delta":
      return { ...turn, parts: extend(turn.parts, chunk.node, chunk.delta) };
    case "message":
      return { ...turn, parts: [...turn.parts, { node: undefined, text: chunk.content }] };
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

/** Text of one node stays in one part. */
function extend(parts, node, delta) {
  const last = parts.at(-1);
  if (!last || last.node === undefined || last.node !== node) return [...parts, { node: node ?? "", text: delta }];
  return [...parts.slice(0, -1), { node, text: last.text + delta }];
}

/** What was said, a paragraph for each part. */
export const said = (turn) => turn.parts.map((part) => part.text.trim()).join("\n\n");
