// Refreshes the page when something has changed, and sends actions. Everything can be read without it.
"use strict";
document.documentElement.classList.add("scripts");
const live = () => document.getElementById("live");
const said = (text, bad) => {
  const line = document.getElementById("said");
  if (line) { line.textContent = text; line.classList.toggle("bad", Boolean(bad)); }
};

// One refresh at a time, not more than one in two seconds, and none of a page that nobody sees.
let refreshing = false, again = false, last = 0;
async function refresh() {
  if (refreshing || document.hidden) { again = true; return; }
  const rest = last + 2000 - Date.now();
  refreshing = true;
  if (rest > 0) await new Promise((done) => setTimeout(done, rest));
  again = false;
  try {
    const reply = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (reply.redirected && new URL(reply.url).pathname === "/login") { location.reload(); return; }
    if (reply.ok) replace(new DOMParser().parseFromString(await reply.text(), "text/html"));
  } catch { /* The coordinator is away: the stream tells when it is back. */ }
  last = Date.now();
  refreshing = false;
  if (again && !document.hidden) refresh();
}

// The new content in place of the old one: what was opened stays open, what was scrolled stays where it was.
function replace(fresh) {
  const [old, next] = [live(), fresh.getElementById("live")];
  if (!old || !next) return;
  if (old.contains(document.activeElement) && document.activeElement.matches("input, textarea, select")) return;
  const kept = [...old.querySelectorAll("details")].map((details) => details.open);
  const places = [...old.querySelectorAll(".scroll")].map((part) => part.scrollLeft);
  next.querySelectorAll("details").forEach((details, at) => { if (kept[at]) details.open = true; });
  old.replaceWith(document.adoptNode(next));
  live().querySelectorAll(".scroll").forEach((part, at) => { part.scrollLeft = places[at] ?? 0; });
  document.title = fresh.title;
}

// Browsers open few connections to one host: a page that nobody sees gives its stream back.
let stream = null;
function listen() {
  if (document.hidden) { stream?.close(); stream = null; return; }
  if (stream || !document.body.dataset.stream) return;
  stream = new EventSource(document.body.dataset.stream);
  stream.addEventListener("changed", refresh);
  if (again) refresh();
}
document.addEventListener("visibilitychange", () => { again = true; listen(); });
listen();

async function act(path, body, what) {
  said(`${what} …`);
  try {
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    const reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = await reply.json().catch(() => ({}));
    said(reply.ok ? `${what}: done` : answer.error ?? `${what}: ${reply.status}`, !reply.ok);
    if (reply.ok && answer.run && path === "/api/v1/runs") location.href = `/runs/${answer.run}`;
  } catch { said(`${what}: the coordinator does not answer`, true); }
  refresh();
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
  const body = {};
  for (const field of form.querySelectorAll("[name]")) {
    if (field.value !== "") body[field.name] = field.type === "number" ? Number(field.value) : field.value;
  }
  document.activeElement?.blur();
  act(form.dataset.post, body, form.querySelector("button").textContent);
});
