// Answers by a question's id, as the inbox gives them: what the run says until it waits again is written down as it comes.

import { answer } from "./api.js";
import { spoken } from "./answer.js";
import { catchUp, listen } from "./follow.js";
import { Pen } from "./pen.js";
import { title, words } from "./words.js";

export const CANCELLED = "The run was cancelled.";

/** Answers, and writes down what comes of it: the result. `accepted` and `asked` hear of the answer and of questions. A refusal is thrown. */
export async function answerById(transcript, question, response, labels, { accepted = () => {}, asked } = {}) {
  // The answer stands before what the run says to it, which may come first.
  const [key, pen, ending] = [transcript.reserve(), new Pen(transcript, question.runId), new AbortController()];
  const listening = listen(transcript, question.runId, pen, ending.signal);
  let result;
  try {
    result = await answer(question.id, response);
  } finally {
    ending.abort();
    await listening;
    pen.close();
  }
  transcript.write(key, { who: "you", text: spoken(response, labels), about: title(question.input) });
  accepted();
  const { isNew } = await catchUp(transcript, result.runId, { pen, asked }).catch(() => ({ isNew: pen.key !== undefined }));
  if (result.status === "completed" && result.data?.reply && !isNew) transcript.add({ who: "flow", text: result.data.reply });
  if (result.status === "cancelled") transcript.add({ who: "note", text: CANCELLED });
  if (result.status === "failed") transcript.add({ who: "note", text: words(result.error) });
  return result;
}
