// The page: what is shown, pressed, clicked and saved.
const element = id => document.getElementById(id);
const make = (name, properties) => Object.assign(document.createElement(name), properties);
const LEVELS = LADDER.levels;
const settingsForm = element("settings");
let chosen = 0;
let game;
let times = [];
let began = 0;
let session = null;
let opened = 1;
// The next picture of a trail that fades: one at a time, however fast the player moves.
let fading = 0;

const formSettings = () => {
  const field = name => settingsForm.elements[name];
  return {
    view: Number(field("view").value), map: field("map").checked, trail: Number(field("trail").value),
    order: field("order").value, games: Number(field("games").value), unlock: field("unlock").checked,
  };
};

// A session keeps the settings that it began with, whatever the form says now.
const settings = () => session ? session.log.settings : formSettings();

const showSettings = values => {
  for (const field of settingsForm.elements) {
    if (field.type === "checkbox") field.checked = values[field.name] === true;
    else field.value = values[field.name];
  }
};

// Settings can stand in the address, so that everybody gets the same page: #view=2&map=1&trail=6&order=down
// What they cannot mean is reported, and no session starts with other settings than the address asks for.
const readAddress = () => {
  const faults = [];
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    const field = settingsForm.elements[name];
    if (!field) { faults.push(`${name}=${value}: expected one of ${[...settingsForm.elements].map(one => one.name).join(", ")}`); continue; }
    const isBox = field.type === "checkbox";
    const allowed = isBox ? ["0", "1"] : [...field.options].map(option => option.value);
    if (!allowed.includes(value)) faults.push(`${name}=${value}: expected ${allowed.join(", ")}`);
    else if (isBox) field.checked = value === "1";
    else field.value = value;
  }
  element("address-fault").textContent = faults.length ? `Settings in the address that cannot be used: ${faults.join("; ")}.` : "";
  element("begin").disabled = faults.length > 0;
};

const download = (name, type, text) => {
  const link = make("a", { download: name });
  link.href = URL.createObjectURL(new Blob([text], { type }));
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

const start = () => {
  const level = LEVELS[chosen];
  game = level.game === "lock-key" ? new LockKey(level.level) : new Match3(level.level);
  times = [];
  began = performance.now();
  show();
};

const draw = () => {
  const now = performance.now();
  const board = element("board");
  board.replaceChildren();
  const [width, height] = [game.width * SIDE + 8, game.height * SIDE + 8];
  board.setAttribute("viewBox", `-4 -4 ${width} ${height}`);
  board.setAttribute("aria-label", `${session ? session.label(chosen) : LEVELS[chosen].name}: ${game.status}`);
  game.draw(board, settings(), now);
  const hasMap = LEVELS[chosen].game === "lock-key" && settings().map && !game.isDone;
  element("map").toggleAttribute("hidden", !hasMap);
  if (hasMap) game.drawMap(element("map"));
  clearTimeout(fading);
  if (game.isFading(settings(), now)) fading = setTimeout(draw, 150);
};

const show = () => {
  draw();
  element("status").textContent = game.status;
  element("help").textContent = game.help;
  showNext();
};

const isOpen = index => session ? index === session.level : !settings().unlock || index < opened;

const showNext = () => {
  if (settings().unlock && game.isPassed) opened = Math.max(opened, chosen + 2);
  const next = element("next");
  if (session) {
    const opens = session.log.settings.unlock && game.isPassed ? "Next level" : "Next game";
    next.textContent = game.isOver || game.isPassed ? opens : "End this game";
    next.disabled = session.isPlayed;
  } else {
    next.textContent = "Next level";
    next.disabled = chosen + 1 >= LEVELS.length || !isOpen(chosen + 1);
  }
  element("again").disabled = Boolean(session);
  [...element("ladder").children].forEach((button, index) => { button.disabled = !isOpen(index) && index !== chosen; });
};

// Every way of moving ends here.
const moved = isMove => {
  if (isMove) times.push(...Array(game.steps - times.length).fill(Math.round(performance.now() - began)));
  show();
};

const choose = index => {
  chosen = index;
  const level = LEVELS[index];
  [...element("ladder").children].forEach((button, at) => button.setAttribute("aria-pressed", at === index));
  element("name").textContent = session ? session.label(index) : `${index + 1}. ${level.name}`;
  element("figures").replaceChildren(...level.figures.map(([name, value]) => {
    const row = make("tr", {});
    row.append(make("td", { textContent: name }), make("td", { textContent: value }));
    return row;
  }));
  element("picture").innerHTML = level.picture;
  element("picture-title").textContent = level.game === "lock-key" ? "Show the solution" : "Show the scores of simulated plays";
  element("downloads").replaceChildren(...level.files.map(({ name, label, type, text }) => {
    const button = make("button", { type: "button", textContent: label });
    button.addEventListener("click", () => download(name, type, text));
    return button;
  }));
  element("take").hidden = level.game === "lock-key";
  start();
};

const curve = () => {
  const unit = LADDER.unit;
  element("curve-caption").textContent = `Dots: ${LADDER.measured}. Rings: targets. Bars: 95 % intervals, where they are wider than the dot.`;
  const step = Math.max(28, Math.min(100, 680 / LEVELS.length));
  const [width, height] = [Math.max(180, LEVELS.length * step), 170];
  const values = LEVELS.flatMap(level => [level.difficulty, level.target, level.high]);
  const most = Math.max(...values, 1e-9);
  const exponent = 10 ** Math.floor(Math.log10(most / 4));
  const tick = [1, 2, 5, 10].map(times => times * exponent).find(size => most / size <= 5);
  const top = Math.ceil(most / tick) * tick;
  const svg = tag("svg", { class: "chart", viewBox: `-62 -14 ${width + 76} ${height + 58}`, role: "img", style: `min-width:${width * .7}px;max-width:${width + 76}px` });
  svg.setAttribute("aria-label", `Difficulty of ${LEVELS.length} levels in ${unit}`);
  const place = (value, index) => [(index + .5) * step, height - value / top * height];
  for (let value = 0; value <= top + tick / 2; value += tick) {
    const y = place(value, 0)[1];
    svg.append(tag("path", { class: "grid", d: `M0 ${y}H${width}` }));
    svg.append(tag("text", { x: -6, y: y + 4, "text-anchor": "end" }, Number(value.toPrecision(6))));
  }
  svg.append(tag("text", { class: "axis-name", x: -50, y: height / 2, "text-anchor": "middle", transform: `rotate(-90 -50 ${height / 2})` }, unit));
  svg.append(tag("text", { class: "axis-name", x: width / 2, y: height + 38, "text-anchor": "middle" }, "level"));
  svg.append(tag("polyline", { class: "curve k0", points: LEVELS.map((level, index) => key(place(level.difficulty, index))).join(" ") }));
  LEVELS.forEach((level, index) => {
    const [x, y] = place(level.difficulty, index);
    svg.append(tag("path", { class: "k0", d: `M${x} ${place(level.low, index)[1]}V${place(level.high, index)[1]}`, "stroke-width": 2 }));
    svg.append(tag("circle", { class: "k1", cx: x, cy: place(level.target, index)[1], r: 7, fill: "none", "stroke-width": 1.5 }));
    const dot = tag("circle", { class: "f0", cx: x, cy: y, r: 4 });
    dot.append(tag("title", {}, `${level.name}: ${Number(level.difficulty.toPrecision(4))} ${unit}, target ${Number(level.target.toPrecision(4))}`));
    svg.append(dot);
    svg.append(tag("text", { x, y: height + 18, "text-anchor": "middle" }, index + 1));
  });
  element("curve").append(svg);
};

const showSession = () => {
  const isOn = session !== null;
  element("begin").hidden = isOn;
  element("stop").hidden = !isOn;
  for (const field of settingsForm.elements) field.disabled = isOn;
  element("task").hidden = !isOn || session.isPlayed;
  element("ranking").hidden = true;
  element("curve-figure").hidden = isOn;
  element("about").hidden = isOn;
  element("ladder").hidden = isOn;
  element("headline").hidden = isOn;
  if (isOn) {
    const [done, all] = [session.log.plays.length, session.queue.length];
    element("session").textContent = `Session ${session.code}: ${done} of ${all} games played.${session.kept ? "" : " The log cannot be saved here: download it before you leave."}`;
    const most = session.log.settings.unlock ? "at most " : "";
    element("task").textContent = `Session ${session.code}: game ${Math.min(done + 1, all)} of ${most}${all}`;
  }
  showSaved();
};

const showSaved = () => {
  const rows = storage.codes().map(code => {
    const row = make("div", { className: "buttons" });
    const log = storage.read(code);
    const save = make("button", { type: "button", textContent: `Download log ${code} (${log ? log.plays.length : 0} games)` });
    save.dataset.code = code;
    save.addEventListener("click", () => download(`atoll-play-${code}.json`, "application/json", `${JSON.stringify(storage.read(code))}\n`));
    const resume = make("button", { type: "button", textContent: "Resume" });
    resume.setAttribute("aria-label", `Resume session ${code}`);
    resume.dataset.resume = code;
    resume.hidden = session !== null || !Session.isOpen(log, LEVELS);
    resume.addEventListener("click", () => {
      session = Session.resume(storage.read(code), LEVELS);
      showSettings(session.log.settings);
      element("study").open = false;
      go();
      window.scrollTo(0, 0);
    });
    const remove = make("button", { type: "button", textContent: "Delete" });
    remove.setAttribute("aria-label", `Delete log ${code}`);
    remove.addEventListener("click", () => { storage.remove(code); showSaved(); });
    row.append(save, resume, remove);
    return row;
  });
  element("saved").replaceChildren(...rows);
};

const go = () => {
  if (!session.isPlayed) { choose(session.level); showSession(); element("board").focus(); return; }
  if (session.unranked !== undefined) { showSession(); askRanks(session.unranked); return; }
  const { code } = session;
  const isShut = session.isShut ? "The next level stays closed. " : "";
  session = null;
  showSession();
  element("session").textContent = `${isShut}Session ${code} is finished. Download its log below.`;
  choose(0);
};

const askRanks = group => {
  // Asked in the order of play, saved in the order of the levels.
  const members = session.order.map(index => [LEVELS[index], index]).filter(([level]) => level.group === group);
  element("ranking").hidden = false;
  element("ranking").dataset.group = group;
  element("ranking-title").textContent = "Rank the levels you played";
  element("ranking-fault").textContent = "";
  element("study").open = true;
  element("ranks").replaceChildren(...members.map(([level, index]) => {
    const label = make("label", {});
    const select = make("select", { name: `rank-${index}` });
    select.dataset.level = index;
    for (let rank = 0; rank <= members.length; rank += 1) select.append(make("option", { value: rank, textContent: rank || "–" }));
    label.append(select, document.createTextNode(session.label(index)));
    return label;
  }));
  element("ranking").scrollIntoView();
};

element("ranking").addEventListener("submit", event => {
  event.preventDefault();
  const selects = [...element("ranks").querySelectorAll("select")].sort((one, other) => one.dataset.level - other.dataset.level);
  const ranks = selects.map(select => Number(select.value));
  const isWhole = [...ranks].sort((one, other) => one - other).every((rank, index) => rank === index + 1);
  element("ranking-fault").textContent = isWhole ? "" : `Give each rank from 1 to ${ranks.length} once.`;
  if (!isWhole) return;
  session.rank(element("ranking").dataset.group, ranks);
  go();
});
element("begin").addEventListener("click", () => {
  session = new Session(LEVELS, formSettings());
  element("study").open = false;
  go();
  window.scrollTo(0, 0);
});
element("stop").addEventListener("click", () => {
  const { code } = session;
  session = null;
  showSession();
  element("session").textContent = `Session ${code} is not finished. It can be resumed below.`;
  choose(0);
});
element("again").addEventListener("click", start);
element("next").addEventListener("click", () => {
  if (!session) { choose(chosen + 1); return; }
  session.played(game, times);
  go();
});
settingsForm.addEventListener("change", () => { opened = 1; choose(settings().unlock ? 0 : chosen); });

LEVELS.forEach((level, index) => {
  const button = make("button", { type: "button", textContent: `${index + 1}. ${level.name}` });
  button.addEventListener("click", () => choose(index));
  element("ladder").append(button);
});
for (const button of element("pad").children)
  button.addEventListener("click", () => moved(game.press(button.dataset.key, performance.now())));

// Keys work at once, wherever the focus is, but not in fields and on buttons that need them.
document.addEventListener("keydown", event => {
  const isArrow = event.key in STEPS;
  if (!isArrow && event.key !== " " && event.key !== "Enter") return;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const { target } = event;
  if (target.closest("select, input, textarea, .scroll")) return;
  if (!isArrow && target.closest("button, summary, a")) return;
  event.preventDefault();
  moved(game.press(event.key, performance.now()));
});

let touched = null;
const placeOf = event => {
  const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(element("board").getScreenCTM().inverse());
  const cell = [Math.floor(x / SIDE), Math.floor(y / SIDE)];
  return cell[0] < 0 || cell[1] < 0 || cell[0] >= game.width || cell[1] >= game.height ? null : cell;
};
element("board").addEventListener("pointerdown", event => {
  touched = { cell: placeOf(event), x: event.clientX, y: event.clientY };
  element("board").setPointerCapture(event.pointerId);
});
element("board").addEventListener("pointercancel", () => { touched = null; });
element("board").addEventListener("pointerup", event => {
  if (!touched || !touched.cell) return;
  const { cell, x, y } = touched;
  touched = null;
  const [dx, dy] = [event.clientX - x, event.clientY - y];
  const isSwipe = Math.max(Math.abs(dx), Math.abs(dy)) > 18;
  const name = Math.abs(dx) > Math.abs(dy) ? (dx > 0 ? "ArrowRight" : "ArrowLeft") : dy > 0 ? "ArrowDown" : "ArrowUp";
  moved(isSwipe ? game.swipe(...cell, name, performance.now()) : game.click(...cell, performance.now()));
});

element("title").textContent = LADDER.title;
element("headline").textContent = LADDER.headline;
for (const label of document.querySelectorAll(".lock-key-only")) label.hidden = !LEVELS.some(level => level.game === "lock-key");
readAddress();
curve();
choose(0);
showSaved();
