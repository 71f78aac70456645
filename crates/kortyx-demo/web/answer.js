// Answers in the two forms in which they are sent.

import { brief } from "./value.js";

/** The answer as resume metadata of a message. */
export function resume(token, requestId, response) {
  const meta = { token, requestId };
  switch (response.type) {
    case "select":
      return { ...meta, selected: response.ids };
    case "text":
      return { ...meta, text: response.text };
    case "value":
      return { ...meta, value: response.value };
    default:
      return { ...meta, cancel: true };
  }
}

/** The answer for people. */
export function spoken(response, labels = new Map()) {
  switch (response.type) {
    case "select":
      return response.ids.map((id) => labels.get(id) ?? id).join(", ");
    case "text":
      return response.text;
    case "value":
      return isDecision(response.value) ? decided(response.value) : listed(response.value);
    default:
      return "Cancelled";
  }
}

const isDecision = (value) => typeof value?.decision === "string" && value.digest !== undefined;

/** What was decided about a tool. */
function decided({ decision, arguments: changed, feedback }) {
  if (decision !== "approve") return feedback ? `Rejected. ${feedback}` : "Rejected";
  return changed ? `Approved, with changes\n${listed(changed)}` : "Approved";
}

function listed(value) {
  if (value === null || typeof value !== "object") return String(value);
  const lines = Object.entries(value).filter(([, one]) => one !== null).map(([name, one]) => `${name}: ${brief(one)}`);
  return lines.join("\n");
}
