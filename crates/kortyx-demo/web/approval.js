// May a tool run? The form of such a question: the arguments, which may be changed, and the decision.

import { el, freshId } from "./dom.js";
import { Unreadable, form as schemaForm } from "./schema.js";

/** The form: element, and `read`, which gives the answer or throws `Unreadable`. */
export function approval({ request, responseSchema }, title) {
  const schema = responseSchema ?? {};
  const edited = schemaForm(schema.properties?.arguments ?? {}, { root: schema, value: request.arguments, path: "/arguments" });
  const shown = JSON.stringify(edited.read());

  const name = freshId("decision");
  const feedback = el("textarea", { id: freshId("field"), rows: 2, "data-path": "/feedback", maxlength: 16_384 });
  const again = el("input", { type: "checkbox", id: freshId("field") });
  const why = el(
    "div",
    { class: "fields", hidden: true },
    el("div", { class: "field" }, el("label", { for: feedback.id }, "What should it do instead?", el("span", { class: "optional" }, " (optional)")), feedback),
    el("label", { class: "option" }, again, el("span", {}, "Ask me if it wants the very same again", el("small", {}, "Else that is refused without a question."))),
  );
  const radio = (value) => el("input", { type: "radio", name, value, "data-path": "/decision", change: () => (why.hidden = value !== "reject") });
  const [yes, no] = [radio("approve"), radio("reject")];
  const option = (input, label, about) => el("label", { class: "option" }, input, el("span", {}, label, el("small", {}, about)));
  const decision = el(
    "div",
    { class: "options" },
    option(yes, "Approve", "It runs once, with what stands above."),
    option(no, "Reject", "It does not run."),
  );

  const read = () => {
    if (!yes.checked && !no.checked) throw new Unreadable("Approve it or reject it.");
    const bound = { digest: request.digest };
    if (no.checked) {
      const text = feedback.value.trim();
      return { type: "value", value: { decision: "reject", ...bound, ...(text && { feedback: text }), ...(again.checked && { askAgain: true }) } };
    }
    const value = edited.read();
    const isChanged = JSON.stringify(value) !== shown;
    return { type: "value", value: { decision: "approve", ...bound, ...(isChanged && { arguments: value }) } };
  };
  const about = request.description && el("p", { class: "hint" }, request.description);
  const node = el("fieldset", {}, el("legend", { class: "ask" }, title), about, edited.node, decision, why);
  return { node, read };
}
