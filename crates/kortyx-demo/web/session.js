// Which conversation this tab is in: the one in the address, else the last one.

const LAST = "kortyx-demo:last-session";

/** The conversation's id. The address names it from here on, so that a reload and a copied address lead back. */
export function session() {
  const asked = new URL(location.href).searchParams.get("session");
  const id = asked || localStorage.getItem(LAST) || crypto.randomUUID();
  enter(id);
  return id;
}

/** Begins a new conversation in this tab. */
export const renew = () => open(crypto.randomUUID());

/** Goes on with a conversation in this tab, as if it had just come. */
export function open(id) {
  sessionStorage.clear();
  location.assign(address("/", id));
}

function enter(id) {
  localStorage.setItem(LAST, id);
  history.replaceState(null, "", address(location.pathname, id));
  for (const link of document.querySelectorAll("a[data-page]")) {
    link.setAttribute("href", address(new URL(link.href).pathname, id));
  }
}

const address = (path, id) => `${path}?${new URLSearchParams({ session: id })}`;
