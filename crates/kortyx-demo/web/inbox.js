// The inbox: the open questions of a conversation.

import { Refused } from "./api.js";
import { Board } from "./board.js";
import { CANCELLED, answerById } from "./byid.js";
import { byId, show } from "./dom.js";
import { Log } from "./log.js";
import { Pending } from "./pending.js";
import { session } from "./session.js";
import { Transcript } from "./transcript.js";
import { UNREACHABLE, words } from "./words.js";

const sessionId = session();
const [alert, status] = [byId("alert"), byId("status")];
const log = new Log(byId("log"));
/** What is said from now on; all of it is on the chat page. */
const transcript = new Transcript(sessionId, (key, entry) => {
  if (entry) byId("heard").hidden = false;
  log.show(key, entry);
});
const board = new Board(submit, byId("questions"));
const pending = new Pending(sessionId, found, (error) => show(alert, error instanceof Refused ? words(error.failure) : UNREACHABLE));

pending.refresh();
addEventListener("keydown", (event) => event.key === "Escape" && show(alert));

function found(list, askedAt) {
  show(alert);
  board.found(list, askedAt);
}

async function submit(question, response, labels) {
  const accepted = () => board.settle(question.id);
  const result = await answerById(transcript, question, response, labels, { accepted });
  show(status, outcome(result));
  pending.refresh();
}

function outcome(result) {
  switch (result.status) {
    case "completed":
      return "Answered. The run is complete.";
    case "suspended":
      return "Answered. The run asks on.";
    case "cancelled":
      return CANCELLED;
    default:
      return words(result.error);
  }
}
