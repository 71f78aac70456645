// The chat page.

import { Refused, chat } from "./api.js";
import { resume, spoken } from "./answer.js";
import { Board } from "./board.js";
import { CANCELLED, answerById } from "./byid.js";
import { byId, show } from "./dom.js";
import { catchUp } from "./follow.js";
import { Log } from "./log.js";
import { Pen } from "./pen.js";
import { Pending } from "./pending.js";
import { sendOnEnter } from "./question.js";
import { renew, session } from "./session.js";
import { chunks } from "./sse.js";
import { Transcript, history } from "./transcript.js";
import { begin, fold } from "./turn.js";
import { Turns } from "./turns.js";
import { UNREACHABLE, title, words } from "./words.js";

/** How often a broken connection is tried again, once a second. */
const PATIENCE = 120;
const UNDER_WAY = "kortyx-demo:under-way";
const WORKS = "The workflow works…";
const token = (id) => `kortyx-demo:token:${id}`;

const sessionId = session();
const [composer, input, alert, status] = [byId("composer"), byId("text"), byId("alert"), byId("status")];
const log = new Log(byId("log"));
const transcript = new Transcript(sessionId, (key, entry) => log.show(key, entry));
const board = new Board(submit, input);
const pending = new Pending(sessionId, found, (error) => show(alert, error instanceof Refused ? words(error.failure) : UNREACHABLE));
const list = new Turns(sessionId, transcript, (text) => show(alert, text));
let turns = 0;

for (const [key, entry] of transcript.all()) log.show(key, entry);
goOn();
pending.refresh();

byId("renew").addEventListener("click", renew);
input.addEventListener("keydown", sendOnEnter);
addEventListener("keydown", (event) => event.key === "Escape" && show(alert));
composer.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = input.value.trim();
  if (text === "" || turns > 0) return show(status, turns > 0 ? "One moment: the workflow still speaks." : "Write a message first.");
  input.value = "";
  return send(text);
});

function found(list, askedAt) {
  show(alert);
  board.found(list, askedAt);
}

/** Begins a turn with what was typed. */
async function send(text) {
  const messages = [...history(transcript.all()), { role: "user", content: text }];
  transcript.add({ who: "you", text });
  const workflowId = new FormData(composer).get("workflow");
  try {
    await play({ sessionId, workflowId, messages }, () => {});
  } catch (error) {
    input.value ||= text;
    show(alert, error instanceof Refused ? words(error.failure) : UNREACHABLE);
  }
}

/** Answers a question: as a turn when this tab holds its token, so that the output streams; else by its id. */
async function submit(question, response, labels) {
  const heldToken = question.resumeToken ?? sessionStorage.getItem(token(question.id));
  const settle = () => board.settle(question.id);
  if (heldToken && Date.parse(question.expiresAt) > Date.now()) {
    const mine = { who: "you", text: spoken(response, labels), about: title(question.input) };
    const accepted = () => {
      transcript.add(mine);
      settle();
    };
    const message = { role: "user", content: mine.text || "-", metadata: { resume: resume(heldToken, question.id, response) } };
    await play({ sessionId, messages: [message] }, accepted);
  } else {
    await answerById(transcript, question, response, labels, { accepted: settle, asked: hold });
    list.refresh();
  }
  sessionStorage.removeItem(token(question.id));
  pending.refresh();
}

/** Plays a turn, and writes down what it says. `accepted` is called once the turn goes on. A failure before that is thrown. */
async function play(body, accepted) {
  let [turn, isAccepted, pen, runId] = [begin(), false];
  turns += 1;
  show(status, WORKS);
  try {
    const response = await chat(body);
    runId = response.headers.get("kortyx-run-id") ?? undefined;
    pen = new Pen(transcript, runId);
    for await (const chunk of chunks(response)) {
      turn = fold(turn, chunk);
      if (chunk.type === "error" && !isAccepted) throw new Refused(chunk.failure);
      if (chunk.type !== "session" && !isAccepted) {
        isAccepted = true;
        accepted();
      }
      if (chunk.type === "interrupt") hold(chunk);
      if (chunk.type === "status") show(status, turn.status);
      pen.write(turn.parts);
      mark(runId, pen.key);
    }
    const reply = turn.parts.length + turn.questions.length === 0 && turn.data?.reply;
    if (reply) pen.write([{ text: reply }]);
    pen.close(turn.parts);
    conclude(turn);
  } catch (error) {
    pen?.close();
    if (!isAccepted) throw error;
    await attach(runId, pen);
  } finally {
    mark();
    turns -= 1;
    list.refresh();
    if (turns === 0 && (board.open === 0 || status.textContent === WORKS)) show(status);
  }
}

/** Goes on with a turn whose stream was cut, as soon as the server is there. */
async function attach(runId, pen) {
  for (let attempt = 0; runId && attempt < PATIENCE; attempt += 1) {
    try {
      return conclude(await catchUp(transcript, runId, { pen, asked: hold }));
    } catch (error) {
      if (error instanceof Refused) break;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
  transcript.add({ who: "note", text: "The connection broke here. What was accepted goes on without this page." });
}

/** A turn of this tab is under way, or none: the next load goes on with it. */
function mark(runId, key) {
  if (runId) sessionStorage.setItem(UNDER_WAY, JSON.stringify({ runId, key }));
  else sessionStorage.removeItem(UNDER_WAY);
}

/** This tab was loaded again while something was said. */
async function goOn() {
  const { runId, key } = JSON.parse(sessionStorage.getItem(UNDER_WAY) ?? "{}");
  if (!runId) return;
  turns += 1;
  show(status, WORKS);
  await attach(runId, new Pen(transcript, runId, key));
  mark();
  turns -= 1;
  pending.refresh();
}

/** A question of this tab's own turn: its token stays with the tab. */
function hold(chunk) {
  sessionStorage.setItem(token(chunk.requestId), chunk.resumeToken);
  board.asked(chunk);
}

function conclude(turn) {
  if (turn.failure) transcript.add({ who: "note", text: words(turn.failure) });
  else if (turn.end === "cancelled") transcript.add({ who: "note", text: CANCELLED });
}
