// Answers in the two forms in which they are sent.

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
      return listed(response.value);
    default:
      return "Cancelled";
  }
}

function listed(value) {
  if (value === null || typeof value !== "object") return String(value);
  const lines = Object.entries(value).filter(([, one]) => one !== null).map(([name, one]) => `${name}: ${brief(one)}`);
  return lines.join("\n");
}

const brief = (value) => (Array.isArray(value) ? value.map(brief).join(", ") : value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));
