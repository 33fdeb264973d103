// Sessions of people who play the levels: a code instead of a name, a log that stays in this browser.
const PREFIX = "atoll-play:";
const CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

const storage = {
  save(code, log) { try { localStorage.setItem(PREFIX + code, JSON.stringify(log)); return true; } catch { return false; } },
  read(code) { try { return JSON.parse(localStorage.getItem(PREFIX + code)); } catch { return null; } },
  remove(code) { try { localStorage.removeItem(PREFIX + code); } catch { /* nothing is kept where nothing can be */ } },
  codes() {
    try { return Object.keys(localStorage).filter(name => name.startsWith(PREFIX)).map(name => name.slice(PREFIX.length)).sort(); }
    catch { return []; }
  },
};

const newCode = () => [...crypto.getRandomValues(new Uint8Array(6))].map(byte => CODE_LETTERS[byte % CODE_LETTERS.length]).join("");

const shuffle = list => {
  for (let last = list.length - 1; last > 0; last -= 1) {
    const other = crypto.getRandomValues(new Uint32Array(1))[0] % (last + 1);
    [list[last], list[other]] = [list[other], list[last]];
  }
};

// A to Z, then AA, AB and so on: no two levels share a name.
const lettersOf = number => (number < 26 ? "" : lettersOf(Math.floor(number / 26) - 1)) + String.fromCharCode(65 + number % 26);

// One person's way through the levels. Times are milliseconds since the first move of a game could be made.
class Session {
  constructor(levels, settings) {
    const sequence = levels.map((_, index) => index);
    if (settings.order === "down") sequence.reverse();
    if (settings.order === "shuffled") shuffle(sequence);
    this.begin(levels, {
      format: "atoll.play/1", code: newCode(), simulated: false, settings: { ...settings, sequence },
      levels: levels.map(({ name, group, level }) => ({ name, group, level })),
      plays: [], rankings: [], finished: false, resumed: 0,
    });
  }
  begin(levels, log) {
    this.levels = levels;
    this.log = log;
    this.order = log.settings.sequence;
    this.queue = this.order.flatMap(index => Array(log.settings.games).fill(index));
    this.isShut = false;
    log.plays.forEach((_, number) => this.unlock(number));
    this.keep();
  }
  // Whether a log is a session of these levels that is not finished.
  static isOpen(log, levels) {
    const own = levels.map(({ name, group, level }) => ({ name, group, level }));
    return Boolean(log) && log.finished === false && Array.isArray(log.settings.sequence) && JSON.stringify(log.levels) === JSON.stringify(own);
  }
  // A session that was interrupted: the game in which that happened starts again.
  static resume(log, levels) {
    const session = Object.create(Session.prototype);
    session.begin(levels, { ...log, resumed: log.resumed + 1 });
    return session;
  }
  // Where a level must be passed to open the next one: after a pass the rest of its games is left out, and a level that
  // was not passed in all of its games is the last.
  unlock(number) {
    if (!this.log.settings.unlock) return;
    const { level, done } = this.log.plays[number];
    const next = number + 1;
    const others = this.queue.slice(next).findIndex(index => index !== level);
    const rest = others < 0 ? this.queue.length - next : others;
    if (done) this.queue.splice(next, rest);
    else if (rest === 0 && next < this.queue.length) { this.queue.length = next; this.isShut = true; }
  }
  // Levels are named in the order in which they are played, so that a name says nothing of the difficulty.
  label(index) { return `Level ${lettersOf(this.order.indexOf(index))}`; }
  get code() { return this.log.code; }
  get level() { return this.queue[this.log.plays.length]; }
  get isPlayed() { return this.log.plays.length >= this.queue.length; }
  get groups() { return [...new Set(this.levels.map(level => level.group))]; }
  // Groups of several mazes are ranked by those who played them, all of them.
  get unranked() {
    const ranked = this.log.rankings.map(ranking => ranking.group);
    const isPlayed = level => this.log.plays.some(play => this.levels[play.level] === level);
    return this.groups.find(group => {
      const members = this.levels.filter(level => level.group === group);
      return members.length > 1 && members[0].game === "lock-key" && !ranked.includes(group) && members.every(isPlayed);
    });
  }
  get isFinished() { return this.isPlayed && this.unranked === undefined; }
  played(game, times) {
    const play = { level: this.level, moves: Array.isArray(game.moves[0]) ? game.moves : game.moves.join(""), times, done: game.isPassed };
    if (game.score !== null) play.score = Number(game.score.toFixed(6));
    else play.visited = game.visited.size;
    this.log.plays.push(play);
    this.unlock(this.log.plays.length - 1);
    this.keep();
  }
  rank(group, ranks) { this.log.rankings.push({ group, ranks }); this.keep(); }
  keep() { this.log.finished = this.isFinished; this.kept = storage.save(this.code, this.log); }
}
