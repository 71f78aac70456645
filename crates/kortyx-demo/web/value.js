// Values on the screen.

import { el } from "./dom.js";

/** A value in a line. */
export const brief = (value) => {
  if (Array.isArray(value)) return value.map(brief).join(", ");
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
};

/** A name from code, for people. */
export const named = (name) => {
  const words = name.replaceAll(/[_-]+/g, " ").replaceAll(/(\p{Ll})(\p{Lu})/gu, "$1 $2").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** The fields of an object, each in a line; nothing when it has none. */
export function facts(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  const rows = Object.entries(value).map(([name, one]) => el("div", {}, el("dt", {}, named(name)), el("dd", {}, brief(one))));
  return rows.length ? el("dl", { class: "facts" }, ...rows) : undefined;
}

/** Any value, in as many lines as it needs. */
export function whole(value) {
  if (Array.isArray(value)) return el("ul", { class: "items" }, ...value.map((one) => el("li", {}, whole(one))));
  return facts(value) ?? el("p", {}, brief(value));
}
