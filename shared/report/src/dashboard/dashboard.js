// Refreshes the page when something has changed, and sends actions. Everything can be read without it.
"use strict";
document.documentElement.classList.add("scripts");
const live = () => document.getElementById("live");
const said = (text, bad) => {
  const line = document.getElementById("said");
  if (line) { line.textContent = text; line.classList.toggle("bad", Boolean(bad)); }
};

// One refresh at a time, not more than one in this many milliseconds, and none of a page that is hidden.
const BETWEEN = 1500;
const RETRY = 3000;
let refreshing = false, again = false, last = 0, failure = "";
async function refresh() {
  if (refreshing || document.hidden) { again = true; return; }
  const rest = last + BETWEEN - Date.now();
  refreshing = true;
  if (rest > 0) await new Promise((done) => setTimeout(done, rest));
  again = false;
  try {
    const reply = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (reply.redirected && new URL(reply.url).pathname === "/login") { location.reload(); return; }
    const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
    // What is no longer there is not shown any more; what cannot be read now may be read later.
    if (reply.ok || reply.status === 404) replace(fresh);
    const reason = fresh.getElementById("live")?.querySelector("p")?.textContent;
    failure = reply.ok || reply.status === 404 ? "" : `This page could not be refreshed: ${reason ?? reply.status}`;
    showLost();
    if (failure) setTimeout(refresh, RETRY);
  } catch { /* The server is away: the stream notices when it is back. */ }
  last = Date.now();
  refreshing = false;
  if (again && !document.hidden) refresh();
}

// How an element is found again in the new content.
const names = (element) => {
  if (element.id) return `#${CSS.escape(element.id)}`;
  for (const name of ["data-post", "href", "name"]) {
    const value = element.getAttribute(name);
    if (value !== null) return `${element.tagName}[${name}="${CSS.escape(value)}"]`;
  }
  return null;
};
const found = (element, old, next) => {
  const name = names(element);
  if (name) return next.querySelector(name);
  const all = (within) => [...within.querySelectorAll(element.tagName)];
  return all(next)[all(old).indexOf(element)];
};
const FIELDS = "input, textarea, select";
const isChanged = (field) => field.matches("select")
  ? [...field.options].some((option) => option.selected !== option.defaultSelected)
  : field.value !== field.defaultValue;

// What can be opened, by its id, or by its section and heading without numbers, which change; equal ones are counted.
function openable(within) {
  const seen = new Map();
  return [...within.querySelectorAll("details")].map((details) => {
    const words = details.querySelector("summary")?.textContent.replace(/[\d\s\u202f]+/g, " ").trim() ?? "";
    const name = details.id || `${details.closest("section[id]")?.id ?? ""} ${words}`;
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return [`${name} ${count}`, details];
  });
}

// What is being typed stays as it is, and where it is: the field itself moves to the new content.
function keep(field, old, next) {
  const form = field.form && found(field.form, old, next);
  const same = field.name && (form ?? next).querySelector(`[name="${CSS.escape(field.name)}"]`);
  if (!same) return null;
  let range = null;
  try { range = [field.selectionStart, field.selectionEnd, field.selectionDirection]; } catch { /* It has no selection. */ }
  return () => {
    same.replaceWith(field);
    field.focus({ preventScroll: true });
    if (range?.[0] !== null && range?.[0] !== undefined) field.setSelectionRange(...range);
  };
}

// The new content in place of the old one. What was opened stays open, what was scrolled stays where it was, what was
// typed stays typed, and the keyboard stays where it is.
function replace(fresh) {
  const [old, next] = [live(), fresh.getElementById("live")];
  if (!old || !next) return;
  const active = old.contains(document.activeElement) ? document.activeElement : null;
  const opened = new Set(openable(old).filter(([, details]) => details.open).map(([name]) => name));
  const places = [...old.querySelectorAll(".scroll")].map((part) => part.scrollLeft);
  for (const [name, details] of openable(next)) if (opened.has(name)) details.open = true;
  const put = active?.matches(FIELDS) && !active.closest(".steps") ? keep(active, old, next) : null;
  for (const field of old.querySelectorAll(FIELDS)) {
    if (!field.name || field === active || !isChanged(field)) continue;
    const form = field.form && found(field.form, old, next);
    const same = (form ?? next).querySelector(`[name="${CSS.escape(field.name)}"]`);
    if (same) same.value = field.value;
  }
  const focus = !put && active && found(active, old, next);
  document.dispatchEvent(new CustomEvent("replacing", { detail: { old, next } }));
  old.replaceWith(document.adoptNode(next));
  live().querySelectorAll(".scroll").forEach((part, at) => { part.scrollLeft = places[at] ?? 0; });
  put?.();
  focus?.focus({ preventScroll: true });
  document.title = fresh.title;
}

// A stream that was refused is tried again by us: browsers do so only where a connection was lost. Browsers open few
// connections to one host: a page that is hidden gives its stream back.
let stream = null, retry = null, lost = null, isLost = false;
// Why the page is not refreshed: the stream was lost for a while, or the page itself cannot be read.
function showLost() {
  const line = document.getElementById("lost");
  if (!line) return;
  line.dataset.lost ??= line.textContent;
  line.textContent = failure || line.dataset.lost;
  line.toggleAttribute("hidden", !isLost && !failure);
}
function listen() {
  clearTimeout(retry);
  if (document.hidden) { stream?.close(); stream = null; return; }
  if (stream || !document.body.dataset.stream) return;
  stream = new EventSource(document.body.dataset.stream);
  stream.addEventListener("changed", refresh);
  stream.onopen = () => {
    // Something may have changed between two streams.
    if (lost) refresh();
    clearTimeout(lost);
    lost = null;
    isLost = false;
    showLost();
  };
  stream.onerror = () => {
    lost ??= setTimeout(() => { isLost = true; showLost(); }, RETRY);
    if (stream?.readyState !== EventSource.CLOSED) return;
    stream = null;
    retry = setTimeout(listen, RETRY);
    // A session that has ended leads to the log-in.
    refresh();
  };
  if (again) refresh();
}
document.addEventListener("visibilitychange", () => { again = true; listen(); });
listen();

async function act(path, body, what, form) {
  said(`${what} …`);
  try {
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    const reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = await reply.json().catch(() => ({}));
    said(reply.ok ? `${what}: done` : answer.error ?? `${what}: ${reply.status}`, !reply.ok);
    if (!reply.ok) return;
    form?.reset();
    if (form?.contains(document.activeElement)) document.activeElement.blur();
    if (answer.run && path === "/api/v1/runs") location.href = `/runs/${answer.run}`;
    refresh();
  } catch { said(`${what}: the server does not respond`, true); }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-post]");
  if (!button) return;
  const ask = button.dataset.confirm;
  if (ask && !confirm(ask)) return;
  act(button.dataset.post, JSON.parse(button.dataset.body || "{}"), button.textContent);
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-post]");
  if (!form) return;
  event.preventDefault();
  const body = JSON.parse(form.dataset.body || "{}");
  for (const field of form.querySelectorAll("[name]")) {
    if (field.value !== "") body[field.name] = field.type === "number" ? Number(field.value) : field.value;
  }
  act(form.dataset.post, body, form.querySelector("button").textContent, form);
});
