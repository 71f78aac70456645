// Elements. Text stays text: nothing here parses markup.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

let made = 0;

/** An id that no other element of the page has. */
export const freshId = (name) => `${name}-${++made}`;

/**
 * Makes an element. Properties that are undefined are left out, functions listen to events, other values are attributes.
 * Children are elements or text.
 */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child || child === 0));
  return node;
}

/** Shows text in an element, or nothing. Only a change is written, so that it is announced once. */
export function show(node, text = "") {
  if (node.textContent !== text) node.textContent = text;
}
