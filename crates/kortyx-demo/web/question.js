// A question on the screen: a form for its kind, its deadline, and what became of it.

import { options as fetchOptions } from "./api.js";
import { approval } from "./approval.js";
import { el, freshId, show } from "./dom.js";
import { Unreadable, form as schemaForm } from "./schema.js";
import { left } from "./time.js";
import { facts } from "./value.js";
import { isApproval, title, words } from "./words.js";

/** When the deadline is worth an announcement, in milliseconds before it. */
const URGENT = 60_000;

/** A card for one question. `submit(response, labels)` sends an answer; it is not called while another one is under way. */
export class QuestionCard {
  #fields;
  #deadline;
  #isUrgent = false;
  #timer = el("span", { class: "left", role: "timer" });
  #problem = el("p", { class: "problem", role: "alert" });
  #send = el("button", { type: "submit" }, "Answer");
  #cancel = el("button", { type: "button", class: "quiet" }, "Cancel the run");
  #form;
  #submit;

  constructor(question, submit, dismiss) {
    this.question = question;
    this.isOpen = true;
    this.#submit = submit;
    this.#deadline = Date.parse(question.expiresAt);
    this.#fields = fields(question.input);
    const later = question.afterResponseCompleted && el("span", { class: "badge" }, "asked later");
    const about = el("p", { class: "about" }, el("span", {}, `${question.workflow} · ${question.node}`), later, this.#timer);
    const actions = el("div", { class: "actions" }, this.#send, this.#cancel);
    this.#form = el("form", { novalidate: true, submit: (event) => this.#answer(event) }, this.#fields.node, this.#problem, actions);
    this.node = el("article", { class: "question", "data-id": question.id, "data-kind": question.input.kind }, about, this.#form);
    this.#cancel.addEventListener("click", () => this.#stop());
    this.node.addEventListener("keydown", (event) => event.key === "Escape" && this.#escape());
    this.#dismiss = el("button", { type: "button", class: "quiet", click: dismiss }, "Dismiss");
    this.tick();
  }

  #dismiss;

  /** Shows how long there is. True once the time is over. */
  tick(now = Date.now()) {
    if (!this.isOpen) return false;
    const time = this.#deadline - now;
    show(this.#timer, left(time));
    this.#timer.classList.toggle("soon", time < URGENT);
    return time <= 0;
  }

  /** Whether the reader should hear of the deadline now; once. */
  becomesUrgent(now = Date.now()) {
    const isUrgent = this.isOpen && this.#deadline - now < URGENT;
    const becomes = isUrgent && !this.#isUrgent;
    this.#isUrgent = isUrgent;
    return becomes;
  }

  /** It takes no answer any more. What was typed stays readable. */
  close(text) {
    if (!this.isOpen) return;
    const hadFocus = this.node.contains(document.activeElement);
    this.isOpen = false;
    this.#busy(false);
    this.node.classList.add("closed");
    for (const control of this.#form.elements) control.disabled = true;
    show(this.#timer, "Closed");
    this.#timer.classList.remove("soon");
    this.#problem.classList.add("notice");
    show(this.#problem, text);
    this.#form.querySelector(".actions").replaceChildren(this.#dismiss);
    if (hadFocus) this.#dismiss.focus();
  }

  /** The answer was refused, and may be corrected. */
  refuse(failure) {
    this.#busy(false);
    show(this.#problem, words(failure));
    const named = (failure?.issues ?? []).map(({ path }) => path);
    const wrong = [...this.#form.querySelectorAll("[data-path]")].filter((one) => named.includes(one.dataset.path));
    for (const control of wrong) control.setAttribute("aria-invalid", "true");
    (wrong[0] ?? this.#fields.first())?.focus();
  }

  /** Something else kept the answer from being sent. */
  complain(text) {
    this.#busy(false);
    show(this.#problem, text);
  }

  focus() {
    (this.isOpen ? this.#fields.first() : this.#dismiss)?.focus();
  }

  #answer(event) {
    event.preventDefault();
    this.#calm();
    try {
      this.#go(this.#fields.read());
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      show(this.#problem, error.message);
      this.#fields.first()?.focus();
    }
  }

  /** The first press asks, the second one acts. */
  #stop() {
    if (!this.#cancel.classList.contains("sure")) {
      this.#cancel.classList.add("sure");
      show(this.#cancel, "Really cancel?");
      return;
    }
    this.#calm();
    this.#go({ type: "cancel" });
  }

  #escape() {
    this.#calm();
    show(this.#problem);
  }

  #calm() {
    this.#cancel.classList.remove("sure");
    show(this.#cancel, "Cancel the run");
  }

  #go(response) {
    if (!this.isOpen || this.#form.getAttribute("aria-busy") === "true") return;
    show(this.#problem);
    for (const control of this.#form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
    this.#busy(true);
    this.#submit(response, this.#fields.labels);
  }

  // Controls stay enabled, so that the focus stays where it is.
  #busy(is) {
    this.#form.setAttribute("aria-busy", String(is));
    show(this.#send, is ? "Sending…" : "Answer");
  }
}

/** The form's part for this kind: element, `read`, the labels of options, and the control to begin with. */
function fields(input) {
  const make = input.kind === "text" ? text : isApproval(input) ? approval : input.kind === "custom" ? contract : selection;
  const field = make(input, title(input));
  return { labels: new Map(), first: () => field.node.querySelector("input, select, textarea"), ...field };
}

function text(input, title) {
  const id = freshId("answer");
  const isLong = (input.maxLength ?? Infinity) > 100;
  const node = isLong ? el("textarea", { id, rows: 3 }) : el("input", { id, type: "text", autocomplete: "off" });
  const hint = bounds(input.minLength, input.maxLength, "characters");
  if (hint) node.setAttribute("aria-describedby", `${id}-hint`);
  if (isLong) node.addEventListener("keydown", sendOnEnter);
  const read = () => {
    if (node.value.trim() === "") throw new Unreadable("Write something first.");
    return { type: "text", text: node.value };
  };
  const parts = [el("label", { class: "ask", for: id }, title), hint && el("p", { class: "hint", id: `${id}-hint` }, hint), node];
  return { node: el("div", { class: "field" }, ...parts), read };
}

/** Enter sends, as in a field of one line; with Shift it begins a new line. */
export function sendOnEnter(event) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  event.target.form.requestSubmit();
}

function contract(input, title) {
  const inner = schemaForm(input.responseSchema ?? {});
  const { question, ...rest } = input.request ?? {};
  const about = question === title ? rest : input.request;
  const node = el("fieldset", {}, el("legend", { class: "ask" }, title), facts(about), inner.node);
  return { node, read: () => ({ type: "value", value: inner.read() }) };
}

function selection(input, title) {
  const name = freshId("choice");
  const isMultiple = input.multiple;
  const holder = el("div", { class: "options" });
  const labels = new Map();
  const hint = isMultiple ? bounds(input.min ?? 1, input.max, "options") : "";
  const fill = (list) => {
    for (const { id, label } of list) labels.set(id, label);
    holder.replaceChildren(...list.map((option) => item(option, name, isMultiple)));
  };
  if (input.options.length === 0 && input.schemaId) load(holder, input.schemaId, fill);
  else fill(input.options);
  const read = () => {
    const ids = [...holder.querySelectorAll("input:checked")].map((one) => one.value);
    const [least, most] = isMultiple ? [input.min ?? 1, input.max ?? Infinity] : [1, 1];
    if (ids.length < least || ids.length > most) throw new Unreadable(hint || "Choose one of them.");
    return { type: "select", ids };
  };
  const node = el("fieldset", {}, el("legend", { class: "ask" }, title), hint && el("p", { class: "hint" }, hint), holder);
  return { node, read, labels };
}

function item({ id, label, description }, name, isMultiple) {
  const input = el("input", { type: isMultiple ? "checkbox" : "radio", name, value: id });
  const about = description && el("small", {}, description);
  return el("label", { class: "option" }, input, el("span", {}, label ?? id, about));
}

/** The options of a picker are found by its schema. Without them an id can still be typed. */
async function load(holder, schemaId, fill) {
  holder.replaceChildren(el("p", { class: "hint", role: "status" }, "Looking for the options…"));
  try {
    fill(await fetchOptions(schemaId));
  } catch (error) {
    const again = el("button", { type: "button", class: "quiet", click: () => load(holder, schemaId, fill) }, "Look again");
    holder.replaceChildren(el("p", { class: "hint", role: "alert" }, `The options did not arrive. ${error.failure ? words(error.failure) : ""}`), again);
  }
}

function bounds(least, most, what) {
  if (least !== undefined && most !== undefined) return least === most ? `Exactly ${least} ${what}.` : `${least} to ${most} ${what}.`;
  return least !== undefined ? `At least ${least} ${what}.` : most !== undefined ? `At most ${most} ${what}.` : "";
}
