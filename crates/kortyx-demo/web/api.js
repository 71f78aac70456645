// Calls to the server. What goes wrong is thrown as `Refused`, with a failure to put into words, or is the network's error.

/** The server refused. */
export class Refused extends Error {
  constructor(failure) {
    super(failure.message);
    this.failure = failure;
  }
}

async function call(path, body, signal) {
  const options = { signal, ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }) };
  const response = await fetch(path, { ...options, cache: "no-store", headers: { "content-type": "application/json" } });
  if (response.ok) return response;
  const text = await response.text();
  let failure = { message: `The server answered with ${response.status}.` };
  try {
    failure = JSON.parse(text).failure ?? failure;
  } catch {
    // Not from the routes; the status has to do.
  }
  throw new Refused(failure);
}

/** Plays a turn: a response that streams. */
export const chat = (body) => call("/api/chat", body);

/** What a run said, and says: a response that streams. */
export const follow = (runId, signal) => call(`/api/runs/${encodeURIComponent(runId)}/stream?after=0`, undefined, signal);

/** The open questions of a session, oldest first. */
export async function pending(session) {
  const found = [];
  let cursor;
  do {
    const query = new URLSearchParams({ sessionId: session, limit: "200", ...(cursor && { cursor }) });
    const page = await (await call(`/api/interrupts?${query}`)).json();
    found.push(...page.interrupts);
    cursor = page.nextCursor;
  } while (cursor);
  return found;
}

/** A question, whatever became of it. */
export const question = async (id) => (await call(`/api/interrupts/${encodeURIComponent(id)}`)).json();

/** Answers a question by its id: the result of its run. */
export const answer = async (id, response) => (await call(`/api/interrupts/${encodeURIComponent(id)}/answer`, { response })).json();

/** What a picker chooses from. */
export const options = async (schemaId) => (await (await call(`/demo/options/${encodeURIComponent(schemaId)}`)).json()).options;

/** Lists the turns of a session, goes back to one, or forks at one. */
export const checkpoints = async (body) => (await call("/api/checkpoints", body)).json();
