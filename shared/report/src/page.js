"use strict";
for (const game of document.querySelectorAll(".game")) {
  const plies = [...game.querySelectorAll("li[data-board]")];
  const slider = game.querySelector("input");
  const kinds = { b: "man black", B: "king black", w: "man white", W: "king white" };
  const show = (number) => {
    const at = Math.min(Math.max(number, 1), plies.length);
    const ply = plies[at - 1];
    for (const square of game.querySelectorAll("[data-square]"))
      square.setAttribute("class", kinds[ply.dataset.board[square.dataset.square]] || "none");
    for (const other of plies) other.toggleAttribute("aria-current", other === ply);
    slider.value = at;
    game.querySelector("output").textContent =
      `after move ${Math.ceil(at / 2)} of ${at % 2 ? "black" : "white"}: ${ply.textContent}`;
  };
  const steps = { first: () => 1, back: (at) => at - 1, on: (at) => at + 1, last: () => plies.length };
  for (const button of game.querySelectorAll("[data-step]"))
    button.addEventListener("click", () => show(steps[button.dataset.step](Number(slider.value))));
  slider.addEventListener("input", () => show(Number(slider.value)));
  plies.forEach((ply, at) => ply.addEventListener("click", () => show(at + 1)));
  if (plies.length) {
    game.querySelector(".steps").hidden = false;
    show(plies.length);
  }
}
