// Errors and questions in words.

import { named } from "./value.js";

const WORDS = {
  INTERRUPT_ALREADY_RESOLVED: "Somebody else answered this question first, perhaps you in another tab. Their answer counts.",
  INTERRUPT_EXPIRED: "The time for this question is over. Nothing was changed.",
  INTERRUPT_CANCELLED: "This question was cancelled, so it needs no answer any more.",
  INTERRUPT_SUPERSEDED: "This question was withdrawn, so it needs no answer any more.",
  INTERRUPT_MISMATCH: "This question belongs to another conversation.",
  NOT_FOUND: "The server does not know this any more.",
  INVALID_RESPONSE: "This answer does not fit the question. The question stays open.",
  PERSISTENCE_ERROR: "The server cannot reach its storage. Nothing is lost; try again in a moment.",
  EXECUTION_FAILED: "The workflow failed.",
  WORKFLOW_CHANGED: "The answer is kept, but the server runs another version of this workflow.",
  LIMIT_REACHED: "Too much at once. Try again in a moment.",
  PAYLOAD_TOO_LARGE: "That is too long.",
};

/** Whose fault it is when no answer comes. */
export const UNREACHABLE = "The server does not answer. This page tries again by itself; nothing that was accepted is lost.";

/** The same for an answer that was under way. */
export const UNSENT = "The server does not answer, so this answer may not have arrived. Give it again when the server is back; it counts once.";

/** What a failure of the server means. */
export function words(failure) {
  const text = WORDS[failure?.code] ?? failure?.message ?? "Something went wrong, and the server does not say what.";
  const issues = (failure?.issues ?? []).map(({ path, message }) => (path ? `${place(path)}: ${message}` : message));
  return [text, ...issues].join("\n");
}

/** A JSON pointer for people. */
const place = (path) => path.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~")).join(" › ");

/** A question whether a tool may run. */
export const isApproval = (input) => input.schemaId === "kortyx.tool-approval" && input.request?.digest !== undefined;

/** What a question asks. */
export function title(input) {
  if (isApproval(input)) return `May it do this? ${named(input.request.tool)}`;
  const asks = input.question ?? input.request?.question;
  return typeof asks === "string" ? asks : input.contract ? `Please fill in: ${input.contract}` : "Your answer";
}

/** What became of a question that is not open any more. */
export function ending(status) {
  switch (status) {
    case "answered":
      return "Answered in another place.";
    case "expired":
      return WORDS.INTERRUPT_EXPIRED;
    case "cancelled":
      return WORDS.INTERRUPT_CANCELLED;
    case "superseded":
      return WORDS.INTERRUPT_SUPERSEDED;
    default:
      return "This question is not open any more.";
  }
}
