// A game against a player. The page holds the whole game, and sends it along: the server remembers nothing.
"use strict";
const at = (id) => document.getElementById(id);
const form = at("game");
const NAMES = { b: "black man", B: "black king", w: "white man", W: "white king", ".": "empty" };
const CLASSES = { b: "man black", B: "king black", w: "man white", W: "king white", ".": "none" };
let game = { moves: [], start: "", resigned: false, seed: 0, side: "black" };
let shown = null, chosen = [], busy = false;

const tell = (text, bad) => { at("told").textContent = text; at("told").classList.toggle("bad", Boolean(bad)); };

async function ask(action, more = {}) {
  const fields = new FormData(form);
  const body = { action, ...game, player: fields.get("player"), ...more };
  const strength = Number(fields.get("strength"));
  if (fields.get("limit") === "depth") body.depth = Math.max(1, Math.round(strength));
  else body.seconds = strength;
  busy = true;
  document.body.classList.add("busy");
  try {
    const headers = { "Content-Type": "application/json" };
    const reply = await fetch("/api/v1/play", { method: "POST", headers, body: JSON.stringify(body) });
    const answer = await reply.json();
    if (reply.ok) return answer;
    tell(answer.error, true);
  } catch { tell("The server does not respond.", true); }
  finally { busy = false; document.body.classList.remove("busy"); }
  return null;
}

// The side that the form names: it holds from the start of a game to its end.
const side = () => new FormData(form).get("side");

// Shows a game. The server's squares count from 1; black is below for whoever plays black.
function show(answer) {
  shown = answer;
  chosen = [];
  game = { ...game, moves: answer.played, start: answer.start, side: answer.side };
  at("moves").replaceChildren(...answer.played.map((move) => Object.assign(document.createElement("li"), { textContent: move })));
  at("pdn-text").value = answer.pdn;
  at("save").href = `data:text/plain;charset=utf-8,${encodeURIComponent(answer.pdn)}`;
  at("verdict").textContent = answer.verdict ?? "";
  at("board").classList.toggle("turned", answer.side === "black");
  const opening = answer.opening ? ` This is ${answer.opening}.` : "";
  if (answer.outcome) tell(answer.outcome);
  else if (answer.turn !== answer.side) tell(`Atoll thinks …${opening}`);
  else if (answer.must_capture) tell(`You must capture: ${answer.legal.map(({ text }) => text).join(", ")}.${opening}`);
  else tell(`Your move.${opening}`);
  think(answer.thought);
  mark();
}

function think(thought) {
  const bar = at("bar");
  if (!thought) {
    // What was thought of another position is not true of this one.
    bar.firstElementChild.style.width = "";
    bar.setAttribute("aria-label", "no evaluation yet");
    at("thought").textContent = "";
    at("votes").replaceChildren();
    return;
  }
  if (thought.black !== null) {
    const value = Math.round(thought.black * 100) / 100;
    bar.firstElementChild.style.width = `${50 + 50 * thought.black}%`;
    const words = Math.abs(value) < 0.005 ? "even" : `${Math.abs(value).toFixed(2)} for ${value > 0 ? "black" : "white"}`;
    bar.setAttribute("aria-label", words);
    const line = thought.line.length ? ` Expected: ${thought.line.join(" ")}.` : "";
    at("thought").textContent = `${thought.move}: ${words}, ${thought.depth} ${thought.depth === 1 ? "ply" : "plies"}, ${thought.nodes} positions.${line}`;
  } else at("thought").textContent = `${thought.move}: this player judges no positions, or its book knew the move.`;
  at("votes").replaceChildren(...thought.votes.map(({ move, count }) =>
    Object.assign(document.createElement("p"), { textContent: `${count} ${count === 1 ? "vote" : "votes"} for ${move}` })));
}

const isMine = () => shown && !shown.outcome && shown.turn === shown.side && !busy;
// What is there once.
const single = (squares) => new Set(squares.filter((square, n) => squares.indexOf(square) === n && squares.lastIndexOf(square) === n));
const candidates = () => shown.legal.filter(({ squares }) => chosen.every((square, n) => squares[n] === square));

// Squares that may be chosen, that are chosen, and that the last move touched.
function mark() {
  const next = new Set(isMine() ? candidates().map(({ squares }) => squares[chosen.length]) : []);
  const ends = single(isMine() && chosen.length ? candidates().map(({ squares }) => squares.at(-1)) : []);
  for (const square of at("board").querySelectorAll("[data-at]")) {
    const number = Number(square.dataset.at), piece = shown.board[number - 1];
    square.className = CLASSES[piece];
    square.classList.toggle("can", next.has(number) || ends.has(number));
    square.classList.toggle("chosen", chosen.includes(number));
    square.classList.toggle("last", Boolean(shown.last?.includes(number)));
    const can = next.has(number) || ends.has(number) ? ", can be chosen" : "";
    square.setAttribute("aria-label", `${number}, ${NAMES[piece]}${can}`);
  }
}

async function choose(number) {
  if (!isMine()) {
    // A move of the player that failed, as when another search was under way, is asked for again.
    if (shown && !busy) await reply();
    return;
  }
  const mine = candidates();
  const further = mine.filter(({ squares }) => squares[chosen.length] === number);
  const ending = chosen.length ? mine.filter(({ squares }) => squares.at(-1) === number) : [];
  if (further.length) chosen = [...chosen, number];
  else if (ending.length === 1) chosen = ending[0].squares;
  else if (ending.length > 1) tell(`Several captures end on ${number}: click each square on the way.`, true);
  else if (shown.legal.some(({ squares }) => squares[0] === number)) chosen = [number];
  else {
    chosen = [];
    tell(shown.must_capture
      ? `You must capture: ${shown.legal.map(({ text }) => text).join(", ")}.`
      : `Nothing can be moved ${shown.board[number - 1] === "." ? "there" : "from there"}.`, true);
  }
  const whole = candidates().find(({ squares }) => squares.length === chosen.length);
  if (chosen.length > 1 && whole) await play([...game.moves, whole.text]);
  else mark();
}

async function play(moves) {
  const before = await ask("look", { moves });
  if (!before) return;
  show(before);
  await reply();
}

async function reply() {
  if (shown.outcome || shown.turn === shown.side) return;
  const after = await ask("reply");
  if (after) show(after);
  else tell(`${at("told").textContent} Click on the board to ask for the move again.`, true);
}

async function start() {
  game = { moves: [], start: "", resigned: false, seed: Math.floor(Math.random() * 2 ** 32), side: side() };
  const answer = await ask("look");
  if (!answer) return;
  show(answer);
  await reply();
}

const tools = {
  async hint() {
    if (!isMine()) return;
    const answer = await ask("hint");
    if (!answer) return;
    think(answer.thought);
    tell(`Atoll would play ${answer.thought.move}.`);
  },
  async undo() {
    if (!shown || busy) return;
    // Back to before the resignation, or before the last move of the person.
    const turn = game.resigned ? 0 : shown.turn === shown.side ? 2 : 1;
    if (game.moves.length < turn) { tell("There is nothing to take back.", true); return; }
    const answer = await ask("look", { moves: game.moves.slice(0, game.moves.length - turn), resigned: false });
    if (!answer) return;
    game.resigned = false;
    show(answer);
  },
  async resign() {
    if (!isMine()) return;
    const answer = await ask("look", { resigned: true });
    if (answer) { game.resigned = true; show(answer); }
  },
};

at("board").addEventListener("click", (event) => {
  const square = event.target.closest("[data-at]");
  if (square) choose(Number(square.dataset.at));
});
document.addEventListener("click", (event) => tools[event.target.closest("[data-do]")?.dataset.do]?.());
form.addEventListener("submit", (event) => { event.preventDefault(); if (!busy) start(); });
at("pdn").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = busy ? null : await ask("read", { pdn: at("pdn-text").value, side: side() });
  if (!answer) return;
  game.resigned = false;
  show(answer);
  await reply();
});
start();
