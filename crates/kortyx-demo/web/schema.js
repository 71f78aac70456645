// Forms from JSON Schema. What it does not know becomes a field for JSON, so every schema can be answered.

import { el, freshId } from "./dom.js";

const INPUTS = { date: "date", time: "time", "date-time": "datetime-local", email: "email", uri: "url" };

/** What is typed does not read. */
export class Unreadable extends Error {}

/**
 * A form for a value of this schema: its element, and `read`, which gives the value or throws `Unreadable`. It may begin with a value, and
 * then shows all of it. A schema that is a part of another one names its root and its place.
 */
export function form(schema, { root = schema, value, path = "" } = {}) {
  const { shape } = resolve(schema, root);
  const field = isObject(shape) ? object(shape, root, path, value) : control(shape, root, { label: shape.title ?? "Answer", path, required: true, value });
  return { ...field, read: () => field.read() ?? null };
}

const isObject = (shape) => shape.type === "object" && shape.properties !== undefined;

/** Follows references, and takes what may be null for optional. */
export function resolve(schema, root, depth = 0) {
  if (typeof schema !== "object" || schema === null || depth > 16) return { shape: {}, nullable: false };
  if (typeof schema.$ref === "string") {
    const { $ref, ...beside } = schema;
    const { shape, nullable } = resolve(pointed($ref, root), root, depth + 1);
    return { shape: { ...shape, ...beside }, nullable };
  }
  for (const word of ["anyOf", "oneOf"]) {
    const { [word]: branches, ...beside } = schema;
    const real = branches?.filter((one) => one.type !== "null") ?? [];
    if (branches && real.length === 1) {
      const { shape } = resolve(real[0], root, depth + 1);
      return { shape: { ...shape, ...beside }, nullable: branches.length > 1 };
    }
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((type) => type !== "null");
    if (types.length === 1) return { shape: { ...schema, type: types[0] }, nullable: types.length < schema.type.length };
  }
  return { shape: schema, nullable: false };
}

function pointed(reference, root) {
  if (!reference.startsWith("#")) return {};
  const parts = reference.slice(1).split("/").slice(1).map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"));
  return parts.reduce((node, part) => node?.[part], root) ?? {};
}

/** The values that an enumeration allows, with labels; nothing when it is none. */
export function choices(shape) {
  if (Array.isArray(shape.enum)) return shape.enum.map((value) => ({ value, label: String(value) }));
  if (shape.oneOf?.every((one) => "const" in one)) {
    return shape.oneOf.map((one) => ({ value: one.const, label: one.title ?? one.description ?? String(one.const) }));
  }
  return "const" in shape ? [{ value: shape.const, label: String(shape.const) }] : undefined;
}

function object(shape, root, path, value) {
  const undeclared = Object.keys(value ?? {}).filter((name) => !Object.hasOwn(shape.properties, name));
  const fields = [...Object.entries(shape.properties), ...undeclared.map((name) => [name, {}])].map(([name, schema]) => {
    const { shape: inner, nullable } = resolve(schema, root);
    const place = { label: inner.title ?? name, path: `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`, value: value?.[name] };
    const required = (shape.required ?? []).includes(name) && !nullable;
    return [name, control(inner, root, { ...place, required })];
  });
  const read = () => {
    const values = fields.map(([name, field]) => [name, field.read()]);
    return Object.fromEntries(values.filter(([, value]) => value !== undefined));
  };
  return { node: el("div", { class: "fields" }, ...fields.map(([, field]) => field.node)), read };
}

/** The control that fits; one for JSON where that one cannot hold the value that it is to begin with. */
function control(declared, root, place) {
  if (isObject(declared) && place.value !== null) return group(declared, place, object(declared, root, place.path, place.value));
  if (place.value === undefined) return plain(declared, root, place);
  const shape = { ...declared, default: place.value };
  const field = plain(shape, root, place);
  return JSON.stringify(field.read()) === JSON.stringify(place.value) ? field : json(shape, place);
}

function plain(shape, root, place) {
  const allowed = choices(shape);
  if (allowed) return select(shape, place, allowed);
  switch (shape.type) {
    case "boolean":
      return checkbox(shape, place);
    case "integer":
    case "number":
      return number(shape, place);
    case "string":
      return line(shape, place);
    case "array":
      return list(shape, root, place);
    default:
      return json(shape, place);
  }
}

/** A label, the control, and what there is to know about it. */
function labelled(shape, { label, path, required }, control, rules = "") {
  const id = freshId("field");
  const hint = [shape.description, rules].filter(Boolean).join(" ");
  control.id = id;
  control.dataset.path = path;
  if (required) control.setAttribute("aria-required", "true");
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  const name = el("label", { for: id }, label, required ? "" : el("span", { class: "optional" }, " (optional)"));
  return el("div", { class: "field" }, name, control, hint && el("p", { class: "hint", id: `${id}-hint` }, hint));
}

function group(shape, { label }, inner) {
  const description = shape.description && el("p", { class: "hint" }, shape.description);
  return { node: el("fieldset", {}, el("legend", {}, label), description, inner.node), read: inner.read };
}

function select(shape, place, allowed) {
  const options = allowed.map(({ label }, index) => el("option", { value: index }, label));
  const node = el("select", {}, el("option", { value: "" }, place.required ? "Choose…" : "None"), ...options);
  node.selectedIndex = 1 + allowed.findIndex(({ value }) => shape.default !== undefined && JSON.stringify(value) === JSON.stringify(shape.default));
  return { node: labelled(shape, place, node), read: () => (node.value === "" ? undefined : allowed[Number(node.value)].value) };
}

function checkbox(shape, { label, path }) {
  const id = freshId("field");
  const input = el("input", { type: "checkbox", id, "data-path": path, "aria-describedby": shape.description && `${id}-hint` });
  input.checked = shape.default === true;
  const hint = shape.description && el("p", { class: "hint", id: `${id}-hint` }, shape.description);
  return { node: el("div", { class: "field" }, el("label", { class: "option" }, input, el("span", {}, label)), hint), read: () => input.checked };
}

function number(shape, place) {
  const isWhole = shape.type === "integer";
  const input = el("input", { type: "number", step: isWhole ? 1 : "any", min: shape.minimum, max: shape.maximum, value: shape.default });
  const read = () => {
    if (input.validity.badInput) throw new Unreadable(`${place.label} must be a number.`);
    return input.value === "" ? undefined : input.valueAsNumber;
  };
  return { node: labelled(shape, place, input, range(shape.minimum, shape.maximum)), read };
}

const range = (least, most) => {
  if (least !== undefined && most !== undefined) return `From ${least} to ${most}.`;
  return least !== undefined ? `At least ${least}.` : most !== undefined ? `At most ${most}.` : "";
};

function line(shape, place) {
  const isLong = shape.format === undefined && (shape.maxLength ?? Infinity) > 100;
  const node = isLong ? el("textarea", { rows: 2 }) : el("input", { type: INPUTS[shape.format] ?? "text", autocomplete: "off" });
  node.value = shape.default ?? "";
  const rules = shape.maxLength ? `At most ${shape.maxLength} characters.` : "";
  return { node: labelled(shape, place, node, rules), read: () => node.value || (place.value === "" ? "" : undefined) };
}

function list(shape, root, place) {
  const { shape: item } = resolve(shape.items, root);
  const allowed = choices(item);
  if (allowed) {
    const isOn = (value) => Array.isArray(shape.default) && shape.default.includes(value);
    const boxes = allowed.map(({ label, value }) => [el("input", { type: "checkbox", "data-path": place.path, checked: isOn(value) }), label]);
    const options = boxes.map(([box, label]) => el("label", { class: "option" }, box, el("span", {}, label)));
    const node = group(shape, place, { node: el("div", { class: "options" }, ...options) }).node;
    return { node, read: () => allowed.filter((_, index) => boxes[index][0].checked).map(({ value }) => value) };
  }
  if (item.type !== "string") return json(shape, place);
  const node = el("textarea", { rows: 3 });
  node.value = Array.isArray(shape.default) ? shape.default.join("\n") : "";
  const read = () => node.value.split("\n").map((text) => text.trim()).filter(Boolean);
  return { node: labelled(shape, place, node, "One on each line."), read };
}

function json(shape, place) {
  const node = el("textarea", { rows: 4, spellcheck: "false", class: "code" });
  node.value = shape.default === undefined ? "" : JSON.stringify(shape.default, null, 2);
  const read = () => {
    if (node.value.trim() === "") return undefined;
    try {
      return JSON.parse(node.value);
    } catch {
      throw new Unreadable(`${place.label} is not JSON.`);
    }
  };
  return { node: labelled(shape, place, node, "As JSON."), read };
}
