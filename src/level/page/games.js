// The rules of both games, as the simulations have them. Nothing here knows of the page.
const STEPS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
const LETTERS = { ArrowUp: "U", ArrowDown: "D", ArrowLeft: "L", ArrowRight: "R" };
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7a00", "#555555"];
const SIDE = 32;
const key = cell => cell.join();
const tag = (name, attributes, text) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) node.setAttribute(attribute, value);
  if (text !== undefined) node.textContent = text;
  return node;
};

// A maze of cells: a key is taken by walking over it, and opens a lock of its letter that one walks into.
class LockKey {
  constructor(level) {
    this.rows = level.rows.map(row => [...row]);
    this.hand = {};
    this.moves = [];
    // When each cell was last left, for trails that fade; and the cells seen so far.
    this.left = new Map();
    this.seen = new Set();
    this.view = 0;
    this.rows.forEach((row, y) => row.forEach((mark, x) => { if (mark === "<") this.at = [x, y]; }));
    this.visited = new Set([key(this.cell)]);
  }
  get width() { return (this.rows[0].length - 1) / 2; }
  get height() { return (this.rows.length - 1) / 2; }
  get cell() { return this.at.map(place => (place - 1) / 2); }
  get steps() { return this.moves.length; }
  mark(x, y) { return (this.rows[y] || [])[x] || "#"; }
  get isDone() { return this.mark(...this.at) === ">"; }
  get isOver() { return this.isDone; }
  get isPassed() { return this.isDone; }
  get score() { return null; }
  move(name, now) {
    const [x, y] = this.at;
    const [dx, dy] = STEPS[name];
    if (this.isDone || this.mark(x + dx, y + dy) === "#") return false;
    const [nx, ny] = [x + 2 * dx, y + 2 * dy];
    const mark = this.mark(nx, ny);
    const letter = mark.toLowerCase();
    if (/[A-Z]/.test(mark)) {
      if (!this.hand[letter]) { this.refusal = `Lock ${mark} needs key ${letter}.`; return false; }
      this.hand[letter] -= 1;
      this.rows[ny][nx] = ".";
    } else if (/[a-z]/.test(mark)) {
      this.hand[letter] = (this.hand[letter] || 0) + 1;
      this.rows[ny][nx] = ".";
    }
    this.refusal = "";
    this.left.set(key(this.cell), now);
    this.at = [nx, ny];
    this.moves.push(LETTERS[name]);
    this.visited.add(key(this.cell));
    return true;
  }
  press(name, now) { return STEPS[name] ? this.move(name, now) : false; }
  // A click walks in a straight line towards the cell.
  click(column, row, now) {
    let moved = false;
    for (let left = 128; left > 0; left -= 1) {
      const [dx, dy] = [column - this.cell[0], row - this.cell[1]];
      if ((dx !== 0) === (dy !== 0)) return moved;
      const name = dx > 0 ? "ArrowRight" : dx < 0 ? "ArrowLeft" : dy > 0 ? "ArrowDown" : "ArrowUp";
      if (!this.move(name, now)) return moved;
      moved = true;
    }
    return moved;
  }
  swipe(column, row, name, now) { return this.press(name, now); }
  get status() {
    const keys = Object.entries(this.hand).flatMap(([letter, count]) => Array(count).fill(letter)).join(" ");
    const steps = `${this.steps} ${this.steps === 1 ? "step" : "steps"}`;
    if (this.isDone) return `Exit reached after ${steps}.`;
    return `${steps}; keys: ${keys || "none"}. ${this.refusal || ""}`;
  }
  get help() {
    return "Walk with the arrow keys, with a swipe, or by clicking a cell in line. Walking over a key takes it; a key opens one lock of its letter.";
  }
  isNear(x, y) { return Math.max(Math.abs(x - this.cell[0]), Math.abs(y - this.cell[1])) <= this.view; }
  // How dark a cell is: 0 in view, 1 unseen; a trail fades.
  fog(x, y, settings, now) {
    if (!this.view || this.isDone || this.isNear(x, y)) return 0;
    const left = this.left.get(key([x, y]));
    return left === undefined || !settings.trail ? 1 : Math.min(1, (now - left) / (1000 * settings.trail));
  }
  draw(svg, settings, now) {
    this.view = settings.view;
    svg.append(tag("rect", { class: "floor", x: 0, y: 0, width: this.width * SIDE, height: this.height * SIDE }));
    this.rows.forEach((row, y) => row.forEach((mark, x) => {
      if (x % 2 === 1 && y % 2 === 1) this.drawPart(svg, mark, (x - 1) / 2 * SIDE + 16, (y - 1) / 2 * SIDE + 16);
    }));
    const fog = (x, y) => x < 0 || y < 0 || x >= this.width || y >= this.height ? 1 : this.fog(x, y, settings, now);
    for (let y = 0; y < this.height; y += 1)
      for (let x = 0; x < this.width; x += 1) {
        if (fog(x, y) < 1) this.seen.add(key([x, y]));
        if (fog(x, y) > 0) svg.append(tag("rect", { class: "fog", x: x * SIDE, y: y * SIDE, width: SIDE, height: SIDE, opacity: fog(x, y).toFixed(2) }));
      }
    // A wall is seen as far as the clearer of the cells beside it.
    this.rows.forEach((row, y) => row.forEach((mark, x) => {
      if (mark !== "#" || x % 2 === y % 2) return;
      const [column, line] = [Math.floor(x / 2), Math.floor(y / 2)];
      const seen = 1 - Math.min(fog(column, line), x % 2 === 0 ? fog(column - 1, line) : fog(column, line - 1));
      const d = `M${column * SIDE} ${line * SIDE}L${(column + x % 2) * SIDE} ${(line + y % 2) * SIDE}`;
      if (seen > 0) svg.append(tag("path", { class: "wall", d, opacity: seen.toFixed(2) }));
    }));
    const [cx, cy] = this.cell.map(place => place * SIDE + 16);
    svg.append(tag("circle", { class: "player", cx, cy, r: 8 }));
  }
  drawPart(svg, mark, cx, cy) {
    const letter = (ink, text) => svg.append(tag("text", { x: cx, y: cy + 5, fill: ink, "text-anchor": "middle", "font-size": 14 }, text));
    const fill = PALETTE[(mark.toLowerCase().charCodeAt(0) - 97) % PALETTE.length];
    if (mark === ">") svg.append(tag("circle", { class: "exit", cx, cy, r: 13 }), tag("text", { class: "exit-text", x: cx, y: cy + 4, "text-anchor": "middle", "font-size": 11 }, "exit"));
    if (/[a-z]/.test(mark)) { svg.append(tag("circle", { cx, cy, r: 10, fill: "#fff", stroke: fill, "stroke-width": 4 })); letter("#222", mark); }
    if (/[A-Z]/.test(mark)) { svg.append(tag("rect", { x: cx - 11, y: cy - 11, width: 22, height: 22, rx: 3, fill, stroke: "#222" })); letter("#fff", mark); }
  }
  drawMap(svg) {
    svg.setAttribute("viewBox", `-1 -1 ${this.width + 2} ${this.height + 2}`);
    svg.replaceChildren(tag("rect", { class: "fog", x: 0, y: 0, width: this.width, height: this.height }));
    for (const cell of this.seen) {
      const [x, y] = cell.split(",").map(Number);
      svg.append(tag("rect", { class: this.visited.has(cell) ? "seen" : "floor", x, y, width: 1, height: 1 }));
    }
    const [x, y] = this.cell;
    svg.append(tag("circle", { class: "player", cx: x + .5, cy: y + .5, r: .6, style: "stroke-width:.2" }));
  }
  // Whether something fades.
  isFading(settings, now) {
    return Boolean(settings.view && settings.trail) && [...this.left.values()].some(left => now - left < 1000 * settings.trail);
  }
}

// A board of blocks: exchanging neighbours clears lines of three or more, blocks fall, and what that clears counts too.
class Match3 {
  constructor(level) {
    this.rules = level.rules;
    this.cells = level.rows.map(row => [...row].map(mark => mark === "." ? 0 : Number(mark)));
    this.score = 0;
    this.combo = 0;
    this.left = this.rules.moves;
    this.moves = [];
    this.cursor = [0, 0];
    this.held = null;
    if (this.rules.initial_matches === "keep") this.fall();
    else {
      const removed = this.settle();
      if (this.rules.initial_matches === "score") this.score += this.worth(removed);
    }
  }
  get width() { return this.cells[0].length; }
  get height() { return this.cells.length; }
  get steps() { return this.moves.length; }
  get visited() { return new Set(); }
  get isDone() { return this.left === 0; }
  get isOver() { return this.isDone || !this.cells.some(row => row.some(block => block > 0)); }
  get isPassed() { return this.score >= this.rules.pass; }
  worth(removed) { return removed > 0 ? Math.pow(this.rules.score.base, Math.min(removed, 127) / this.rules.score.blocks) : 0; }
  fall() {
    for (let x = 0; x < this.width; x += 1) {
      const blocks = this.cells.map(row => row[x]).filter(block => block > 0);
      while (this.rules.refill && blocks.length < this.height) blocks.unshift(1 + Math.floor(Math.random() * this.rules.colours));
      for (let y = 0; y < this.height; y += 1) this.cells[y][x] = blocks[y - (this.height - blocks.length)] || 0;
    }
  }
  lines() {
    const found = new Set();
    for (const [dx, dy] of [[1, 0], [0, 1]])
      for (let y = 0; y + 2 * dy < this.height; y += 1)
        for (let x = 0; x + 2 * dx < this.width; x += 1) {
          const cells = [0, 1, 2].map(step => [x + step * dx, y + step * dy]);
          const [first, ...rest] = cells.map(([cx, cy]) => this.cells[cy][cx]);
          if (first > 0 && rest.every(block => block === first)) cells.forEach(cell => found.add(key(cell)));
        }
    return [...found].map(cell => cell.split(",").map(Number));
  }
  settle() {
    let removed = 0;
    for (let wave = 0; ; wave += 1) {
      this.fall();
      const lines = this.lines();
      if (lines.length === 0 || wave === 100) return removed;
      lines.forEach(([x, y]) => { this.cells[y][x] = 0; });
      removed += lines.length;
    }
  }
  exchange([x, y], [nx, ny]) {
    if (this.isDone || !(this.cells[ny] && nx in this.cells[ny])) return false;
    const [one, other] = [this.cells[y][x], this.cells[ny][nx]];
    const allowed = this.rules.into_empty ? one > 0 || other > 0 : one > 0 && other > 0;
    if (!allowed) return false;
    const before = this.cells.map(row => [...row]);
    [this.cells[y][x], this.cells[ny][nx]] = [other, one];
    const removed = this.settle();
    if (removed === 0 && this.rules.swap_back) this.cells = before;
    this.combo = this.worth(removed);
    this.score += this.combo;
    this.left -= 1;
    // A log names the block that moves: of a block and a gap, the block.
    const [bx, by, dx, dy] = one > 0 ? [x, y, nx - x, ny - y] : [nx, ny, x - nx, y - ny];
    this.moves.push([bx, by, dx > 0 ? "right" : dx < 0 ? "left" : dy > 0 ? "down" : "up"]);
    return true;
  }
  choose(cell) {
    const near = this.held && Math.abs(cell[0] - this.held[0]) + Math.abs(cell[1] - this.held[1]) === 1;
    if (!near) { this.held = this.held && key(this.held) === key(cell) ? null : cell; return false; }
    const moved = this.exchange(this.held, cell);
    this.held = null;
    return moved;
  }
  press(name) {
    if (name === " " || name === "Enter") return this.choose(this.cursor);
    if (!STEPS[name]) return false;
    const [x, y] = this.cursor.map((place, axis) => place + STEPS[name][axis]);
    if (!(this.cells[y] && x in this.cells[y])) return false;
    this.cursor = [x, y];
    return this.held ? this.choose(this.cursor) : false;
  }
  click(x, y) { this.cursor = [x, y]; return this.choose([x, y]); }
  swipe(x, y, name) {
    this.held = null;
    this.cursor = [x, y];
    return this.exchange([x, y], [x + STEPS[name][0], y + STEPS[name][1]]);
  }
  get status() {
    const passed = this.isPassed ? "passed" : `${this.rules.pass} to pass`;
    const moves = `${this.left} ${this.left === 1 ? "move" : "moves"} left`;
    return `Combo ${this.combo.toFixed(2)} · Score ${this.score.toFixed(2)} points (${passed}) · ${moves}`;
  }
  get help() {
    return "Swipe a block, or click it and then a neighbour, to exchange them. With the keyboard: arrow keys move the frame, Space takes a block, an arrow key moves it. The combo is what the last move scored.";
  }
  draw(svg) {
    this.cells.forEach((row, y) => row.forEach((block, x) => {
      const state = this.held && key(this.held) === key([x, y]) ? "held" : key(this.cursor) === key([x, y]) ? "here" : "";
      const fill = block > 0 ? { style: `fill:${PALETTE[block - 1]}` } : {};
      svg.append(tag("rect", { class: `cell ${block > 0 ? "" : "empty"} ${state}`, x: x * SIDE + 1, y: y * SIDE + 1, width: SIDE - 2, height: SIDE - 2, rx: 5, ...fill }));
      if (block > 0) svg.append(tag("text", { x: x * SIDE + 16, y: y * SIDE + 21, "text-anchor": "middle", "font-size": 12, fill: "#fff", stroke: "#222", "stroke-width": 3, "paint-order": "stroke" }, block));
    }));
  }
  drawMap() {}
  isFading() { return false; }
}
