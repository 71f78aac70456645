// The chat page.

import { Refused, answer, chat } from "./api.js";
import { resume, spoken } from "./answer.js";
import { Board } from "./board.js";
import { byId, show } from "./dom.js";
import { Log } from "./log.js";
import { Pending } from "./pending.js";
import { sendOnEnter } from "./question.js";
import { renew, session } from "./session.js";
import { chunks } from "./sse.js";
import { Transcript, history } from "./transcript.js";
import { begin, fold, said } from "./turn.js";
import { UNREACHABLE, words } from "./words.js";

/** How often what is being said is written down. */
const WRITE_EVERY = 200;
const WORKS = "The workflow works…";
const token = (id) => `kortyx-demo:token:${id}`;

const sessionId = session();
const [composer, input, alert, status] = [byId("composer"), byId("text"), byId("alert"), byId("status")];
const log = new Log(byId("log"));
const transcript = new Transcript(sessionId, (key, entry) => log.show(key, entry));
const board = new Board(submit, input);
const pending = new Pending(sessionId, found, (error) => show(alert, error instanceof Refused ? words(error.failure) : UNREACHABLE));
let turns = 0;

for (const [key, entry] of transcript.all()) log.show(key, entry);
closeWhatWasCut();
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
  const mine = { who: "you", text: spoken(response, labels), about: question.input.question ?? question.input.contract };
  if (heldToken && Date.parse(question.expiresAt) > Date.now()) {
    const message = { role: "user", content: mine.text || "-", metadata: { resume: resume(heldToken, question.id, response) } };
    await play({ sessionId, messages: [message] }, () => {
      transcript.add(mine);
      board.settle(question.id);
    });
  } else {
    const result = await answer(question.id, response);
    transcript.add(mine);
    tell(result);
  }
  sessionStorage.removeItem(token(question.id));
  pending.refresh();
}

/** What became of a run that was answered by id. */
function tell(result) {
  if (result.status === "completed" && result.data?.reply) transcript.add({ who: "flow", text: result.data.reply });
  if (result.status === "cancelled") transcript.add({ who: "note", text: "The run was cancelled." });
  if (result.status === "failed") transcript.add({ who: "note", text: words(result.error) });
}

/** Plays a turn, and writes down what it says. `accepted` is called once the turn goes on. A failure before that is thrown. */
async function play(body, accepted) {
  const pen = new Pen();
  let turn = begin();
  let isAccepted = false;
  turns += 1;
  show(status, WORKS);
  try {
    for await (const chunk of chunks(await chat(body))) {
      turn = fold(turn, chunk);
      if (chunk.type === "error" && !isAccepted) throw new Refused(chunk.failure);
      if (chunk.type !== "session" && !isAccepted) {
        isAccepted = true;
        accepted();
      }
      if (chunk.type === "interrupt") hold(chunk);
      if (chunk.type === "status") show(status, turn.status);
      pen.write(said(turn));
    }
    conclude(pen, turn);
  } catch (error) {
    pen.close();
    if (!isAccepted) throw error;
    transcript.add({ who: "note", text: "The connection broke here. What was accepted goes on without this page." });
  } finally {
    turns -= 1;
    if (turns === 0 && (board.open === 0 || status.textContent === WORKS)) show(status);
  }
}

/** A question of this tab's own turn: its token stays with the tab. */
function hold(chunk) {
  sessionStorage.setItem(token(chunk.requestId), chunk.resumeToken);
  board.asked(chunk);
}

function conclude(pen, turn) {
  pen.write(said(turn) || (turn.questions.length === 0 && turn.data?.reply) || "");
  pen.close();
  if (turn.failure) transcript.add({ who: "note", text: words(turn.failure) });
  else if (turn.end === "cancelled") transcript.add({ who: "note", text: "The run was cancelled." });
}

/** Writes one entry while it grows: at once on the screen, now and then for other tabs and the next load. */
function Pen() {
  let [key, text, written] = [undefined, "", 0];
  const store = (open) => transcript.write(key, { who: "flow", text, ...(open && { open }) });
  this.write = (now) => {
    if (now === text) return;
    text = now;
    if (key === undefined) {
      key = transcript.add({ who: "flow", text, open: true });
      sessionStorage.setItem("kortyx-demo:open", key);
    } else if (Date.now() - written > WRITE_EVERY) store(true);
    else return log.show(key, { who: "flow", text, open: true });
    written = Date.now();
  };
  this.close = () => {
    if (key === undefined) return;
    store(false);
    sessionStorage.removeItem("kortyx-demo:open");
  };
}

/** This tab was loaded again while something was said. */
function closeWhatWasCut() {
  const key = sessionStorage.getItem("kortyx-demo:open");
  sessionStorage.removeItem("kortyx-demo:open");
  const entry = key && transcript.read(key);
  if (!entry) return;
  transcript.write(key, { ...entry, open: false });
  transcript.add({ who: "note", text: "This page was loaded again here. The workflow went on meanwhile." });
}
