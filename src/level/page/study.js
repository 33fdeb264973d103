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

// One person's way through the levels. Times are milliseconds since the first move of a game could be made.
class Session {
  constructor(levels, settings) {
    this.levels = levels;
    this.log = {
      format: "atoll.play/1", code: newCode(), simulated: false, settings,
      levels: levels.map(({ name, group, level }) => ({ name, group, level })),
      plays: [], rankings: [],
    };
    const order = levels.map((_, index) => index);
    if (settings.order === "down") order.reverse();
    if (settings.order === "shuffled") shuffle(order);
    this.order = order;
    this.queue = order.flatMap(index => Array(settings.games).fill(index));
    this.keep();
  }
  // Levels are named in the order in which they are played, so that a name says nothing of the difficulty.
  label(index) { return `Level ${String.fromCharCode(65 + this.order.indexOf(index) % 26)}`; }
  get code() { return this.log.code; }
  get level() { return this.queue[this.log.plays.length]; }
  get isPlayed() { return this.log.plays.length >= this.queue.length; }
  get groups() { return [...new Set(this.levels.map(level => level.group))]; }
  // Groups of several mazes are ranked by those who played them.
  get unranked() {
    const ranked = this.log.rankings.map(ranking => ranking.group);
    return this.groups.find(group => {
      const members = this.levels.filter(level => level.group === group);
      return members.length > 1 && members[0].game === "lock-key" && !ranked.includes(group);
    });
  }
  get isFinished() { return this.isPlayed && this.unranked === undefined; }
  played(game, times) {
    const play = { level: this.level, moves: Array.isArray(game.moves[0]) ? game.moves : game.moves.join(""), times, done: game.isPassed };
    if (game.score !== null) play.score = Number(game.score.toFixed(6));
    else play.visited = game.visited.size;
    this.log.plays.push(play);
    this.keep();
  }
  rank(group, ranks) { this.log.rankings.push({ group, ranks }); this.keep(); }
  keep() { this.kept = storage.save(this.code, this.log); }
}
