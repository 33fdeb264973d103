"use strict";
for (const game of document.querySelectorAll(".game")) {
  const plies = [...game.querySelectorAll("li[data-board]")];
  const slider = game.querySelector("input");
  const kinds = { b: "man black", B: "king black", w: "man white", W: "king white" };
  const show = (number) => {
    const at = Math.min(Math.max(number, 0), plies.length);
    const ply = plies[at - 1];
    const board = ply ? ply.dataset.board : game.dataset.start;
    const moved = ply ? ply.dataset.between.split(" ") : [];
    for (const square of game.querySelectorAll("[data-square]"))
      square.setAttribute("class", kinds[board[square.dataset.square]] || "none");
    for (const place of game.querySelectorAll("[data-place]"))
      place.classList.toggle("moved", moved.includes(place.dataset.place));
    for (const other of plies) other.toggleAttribute("aria-current", other === ply);
    slider.value = at;
    game.querySelector("output").textContent = ply
      ? `after move ${Math.ceil(at / 2)} of ${at % 2 ? "black" : "white"}: ${ply.textContent}`
      : "start position";
  };
  const steps = { first: () => 0, back: (at) => at - 1, on: (at) => at + 1, last: () => plies.length };
  const keys = { Home: "first", ArrowLeft: "back", ArrowRight: "on", End: "last" };
  for (const button of game.querySelectorAll("[data-step]"))
    button.addEventListener("click", () => show(steps[button.dataset.step](Number(slider.value))));
  game.addEventListener("keydown", (event) => {
    const step = steps[keys[event.key]];
    // The slider has its own keys.
    if (!step || event.target === slider || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(step(Number(slider.value)));
  });
  slider.addEventListener("input", () => show(Number(slider.value)));
  plies.forEach((ply, at) => ply.addEventListener("click", () => show(at + 1)));
  if (plies.length) {
    game.querySelector(".steps").hidden = false;
    show(plies.length);
  }
}
