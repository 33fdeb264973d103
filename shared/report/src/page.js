// Games that can be stepped through. Pages may be replaced while they are looked at: everything is found when it is needed.
"use strict";
{
  const KINDS = { b: "man black", B: "king black", w: "man white", W: "king white" };
  const plies = (game) => [...game.querySelectorAll("[data-board]")];
  const show = (game, number) => {
    const all = plies(game);
    const at = Math.min(Math.max(number, 0), all.length);
    const ply = all[at - 1];
    const board = ply ? ply.dataset.board : game.dataset.start;
    const moved = ply ? ply.dataset.between.split(" ") : [];
    for (const square of game.querySelectorAll("[data-square]"))
      square.setAttribute("class", KINDS[board[square.dataset.square]] || "none");
    for (const place of game.querySelectorAll("[data-place]"))
      place.classList.toggle("moved", moved.includes(place.dataset.place));
    for (const other of all) other.toggleAttribute("aria-current", other === ply);
    const list = game.querySelector(".moves");
    const top = ply ? ply.offsetTop - list.offsetTop : 0;
    if (top < list.scrollTop || top + 24 > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
    game.querySelector("input").value = at;
    game.querySelector("output").textContent = ply
      ? `after move ${Math.ceil(at / 2)} of ${at % 2 ? "black" : "white"}: ${ply.textContent}`
      : "start position";
  };
  const begin = (games, places) => games.forEach((game, at) => {
    const all = plies(game);
    if (!all.length) return;
    game.querySelector(".steps").hidden = false;
    show(game, places?.[at] ?? 0);
  });
  const games = (within) => [...within.querySelectorAll(".game")];
  const keys = { Home: "first", ArrowLeft: "back", ArrowRight: "on", End: "last" };
  const steps = { first: () => 0, back: (at) => at - 1, on: (at) => at + 1, last: () => Infinity };
  document.addEventListener("click", (event) => {
    const game = event.target.closest(".game");
    const [button, ply] = [event.target.closest("[data-step]"), event.target.closest("[data-board]")];
    if (!game) return;
    if (button) show(game, steps[button.dataset.step](Number(game.querySelector("input").value)));
    else if (ply) show(game, plies(game).indexOf(ply) + 1);
  });
  document.addEventListener("keydown", (event) => {
    const game = event.target.closest(".game");
    const step = steps[keys[event.key]];
    const slider = game?.querySelector("input");
    // The slider has its own keys.
    if (!step || !slider || event.target === slider || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(game, step(Number(slider.value)));
  });
  document.addEventListener("input", (event) => {
    const game = event.target.closest(".game");
    if (game) show(game, Number(event.target.value));
  }, true);
  document.addEventListener("replacing", ({ detail: { old, next } }) => {
    const [before, after] = [games(old), games(next)];
    const isSame = (game, at) => before[at]?.querySelector(".moves")?.textContent === game.querySelector(".moves")?.textContent;
    begin(after, after.map((game, at) => isSame(game, at) ? Number(before[at].querySelector("input").value) : undefined));
  });
  begin(games(document));
}
