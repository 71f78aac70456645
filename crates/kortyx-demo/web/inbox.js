// The inbox: the open questions of a conversation.

import { Refused, answer } from "./api.js";
import { spoken } from "./answer.js";
import { Board } from "./board.js";
import { byId, show } from "./dom.js";
import { catchUp } from "./follow.js";
import { Pending } from "./pending.js";
import { session } from "./session.js";
import { Transcript } from "./transcript.js";
import { UNREACHABLE, words } from "./words.js";

const sessionId = session();
const [alert, status] = [byId("alert"), byId("status")];
const transcript = new Transcript(sessionId, () => {});
const board = new Board(submit, byId("questions"));
const pending = new Pending(sessionId, found, (error) => show(alert, error instanceof Refused ? words(error.failure) : UNREACHABLE));

pending.refresh();
addEventListener("keydown", (event) => event.key === "Escape" && show(alert));

function found(list, askedAt) {
  show(alert);
  board.found(list, askedAt);
}

async function submit(question, response, labels) {
  const result = await answer(question.id, response);
  const about = question.input.question ?? question.input.contract;
  transcript.add({ who: "you", text: spoken(response, labels), about });
  const { isNew } = await catchUp(transcript, result.runId).catch(() => ({ isNew: false }));
  if (result.status === "completed" && result.data?.reply && !isNew) transcript.add({ who: "flow", text: result.data.reply });
  show(status, outcome(result));
  pending.refresh();
}

function outcome(result) {
  switch (result.status) {
    case "completed":
      return result.data?.reply ?? "Answered. The run is complete.";
    case "suspended":
      return "Answered. The run asks on.";
    case "cancelled":
      return "The run was cancelled.";
    default:
      return words(result.error);
  }
}
