// The parts of what a run says: text, calls of tools, and cards that grow.

/** What makes two parts the same one, in whatever stream they come; text has no such thing. */
export const identity = (part) => (part.call ? `call:${part.call.id}` : part.card ? `card:${part.card.id}` : undefined);

/** How much a part says. It grows while the part does. */
const weight = ({ text, call, card }) =>
  text !== undefined ? text.trim().length : call ? 1 + (call.status === "running" ? 0 : 1) : card.changes;

export const weigh = (parts) => parts.reduce((sum, part) => sum + weight(part), 0);

/** What was said, a paragraph for each part that is text. */
export const said = (parts) => parts.filter((part) => part.text !== undefined).map((part) => part.text.trim()).join("\n\n");

/** Text of the same origin, which is a node or a pass of a model, stays in one part. */
export function extend(parts, origin, delta) {
  const last = parts.at(-1);
  if (last?.origin === undefined || last.origin !== origin) return [...parts, { origin: origin ?? "", text: delta }];
  return [...parts.slice(0, -1), { origin, text: last.text + delta }];
}

/** A pass of a model that begins again, as after a crash, takes back what it said the first time. */
export const restart = (parts, origin) =>
  parts.some((part) => part.origin === origin) ? settled(parts).filter((part) => part.origin !== origin) : parts;

/** What counts when nothing comes any more: cards that never became final do not. */
export const settled = (parts) => parts.filter((part) => !part.card || part.card.isFinal);

/** Adds a call, or what became of it. */
export function called(parts, { opId, toolCallId, tool }, change) {
  const id = `${opId}/${toolCallId}`;
  const known = parts.find((part) => part.call?.id === id);
  return put(parts, { call: { id, tool, status: "running", ...known?.call, ...change } });
}

/** Adds a change of structured data. One that does not fit what is there changes nothing. */
export function structured(parts, chunk) {
  const card = parts.find((part) => part.card?.id === chunk.streamId)?.card ?? { id: chunk.streamId, type: chunk.dataType, data: {}, changes: 0 };
  if (card.isFinal) return parts;
  const data = chunk.kind === "final" ? chunk.data : changed(structuredClone(card.data), chunk);
  return put(parts, { card: { ...card, data, changes: card.changes + 1, ...(chunk.kind === "final" && { isFinal: true }) } });
}

/** Structured data that does not count any more. */
export const invalidated = (parts, streamId) => parts.filter((part) => part.card?.id !== streamId);

function put(parts, part) {
  const at = parts.findIndex((other) => identity(other) === identity(part));
  return at < 0 ? [...parts, part] : parts.with(at, part);
}

const own = (node, name) => (Object.hasOwn(node, name) ? node[name] : undefined);

function changed(data, { kind, path, value, items, delta }) {
  const names = path.split(".");
  const last = names.pop();
  let node = data;
  for (const [at, name] of names.entries()) {
    node[name] = own(node, name) ?? (/^\d+$/.test(names[at + 1] ?? last) ? [] : {});
    node = node[name];
    if (node === null || typeof node !== "object") return data;
  }
  const old = own(node, last);
  if (kind === "set") node[last] = value;
  if (kind === "append" && (old === undefined || Array.isArray(old))) node[last] = [...(old ?? []), ...items];
  if (kind === "text-delta" && typeof (old ?? "") === "string") node[last] = (old ?? "") + delta;
  return data;
}
