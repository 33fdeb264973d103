//! A page that needs nothing else: the tables of a tournament, plots of them, and games to step through.

use super::outcome::{Outcome, PlayerStanding};
use crate::report::games::shown;
use crate::report::made;
use archipelago::CellProgress;
use report::chart::{Bars, Range, Ranges, Stack};
use report::text::{code, count};
use report::{Block, Document, Figure, Section, Step, Table, Tile};
use run::RunId;
use tournament::{GameRecord, Points};

/// Players of whom there is room on a plot, and in a cross table.
const PLOTTED: usize = 60;
/// Rows of the table of pairings; all of them are in a file beside the page.
const ROWS: usize = 500;

/// The whole page, before it is written.
pub(super) fn document(run: &RunId, progress: &CellProgress, outcome: &Outcome<'_>, flag: &str) -> Document {
    let standings = outcome.standings();
    let mut sections = vec![Section::new("ratings", "Ratings", ratings(outcome, &standings))];
    sections.extend(outcome.teams().map(|table| Section::new("teams", "Teams", vec![Block::Table(table)])));
    sections.push(Section::new("pairings", "Each against each", pairings(outcome, standings.len())));
    let verdicts = outcome.verdicts().map(|table| vec![Block::Table(table)]);
    sections.extend(verdicts.map(|blocks| Section::new("tests", "Sequential tests", blocks)));
    sections.push(Section::new("endings", "How games ended", vec![Block::Table(endings(outcome))]));
    let games = games(progress, outcome, &standings);
    if !games.is_empty() {
        sections.push(Section::new("games", "Some games of the strongest", games));
    }
    sections.push(what_was_played(run, progress, outcome, flag));
    Document {
        title: format!("Tournament {run}"),
        headline: headline(progress, outcome, &standings),
        tiles: tiles(outcome, &standings),
        sections,
        data: vec![],
        made: made(),
        refresh: None,
    }
}

fn headline(progress: &CellProgress, outcome: &Outcome<'_>, standings: &[PlayerStanding<'_>]) -> String {
    let (done, all) = (progress.done().len() as u64, u64::from(progress.plan().len()));
    let state = if progress.is_complete() {
        String::new()
    } else {
        format!(" It is unfinished: {} of {} batches of games are played.", count(done), count(all))
    };
    let lead = match (standings.first(), level(standings)) {
        (None, _) => "no player is ahead".to_owned(),
        (Some(first), 1) => format!("{} is ahead{}", code(first.name), distance(standings)),
        (Some(_), level) => format!("{level} players share the lead"),
    };
    let (games, players) = (count(outcome.games()), standings.len());
    format!("{games} games of {players} players in pairs with colours swapped; {lead}.{state}")
}

/// How far the first player is ahead of the second.
fn distance(standings: &[PlayerStanding<'_>]) -> String {
    let [first, second, ..] = standings else { return String::new() };
    let elo = first.rating.elo - second.rating.elo;
    format!(", {elo:.0} Elo before {}", code(second.name))
}

/// How many players have the best rating, as it is shown.
fn level(standings: &[PlayerStanding<'_>]) -> usize {
    let shown = |standing: &PlayerStanding<'_>| standing.rating.elo.round();
    let best = standings.first().map(shown);
    standings.iter().take_while(|standing| Some(shown(standing)) == best).count()
}

fn tiles(outcome: &Outcome<'_>, standings: &[PlayerStanding<'_>]) -> Vec<Tile> {
    let draws = format!("{:.0} %", 100.0 * outcome.ratings.draws_of_equals());
    let mut tiles = vec![
        Tile::new("Games", count(outcome.games()), ""),
        Tile::new("Players", count(standings.len() as u64), ""),
        Tile::new("Draws between equals", draws, "by the model of ratings"),
    ];
    if let Some(first) = standings.first() {
        let margin = (first.rating.high - first.rating.low) / 2.0;
        let ahead = match level(standings) {
            1 => first.name.to_owned(),
            level => format!("{level} players"),
        };
        tiles.push(Tile::new("Ahead", ahead, format!("{:+.0} ± {margin:.0} Elo", first.rating.elo)));
    }
    tiles
}

fn ratings(outcome: &Outcome<'_>, standings: &[PlayerStanding<'_>]) -> Vec<Block> {
    let row = |standing: &PlayerStanding<'_>| Range {
        label: standing.name.to_owned(),
        value: standing.rating.elo,
        low: standing.rating.low,
        high: standing.rating.high,
        half: None,
    };
    let chart = Ranges {
        name: "ratings",
        title: "Ratings with their intervals",
        description: "A dot for each player, the strongest above, with a line to both sides.",
        across: "Elo above the mean of all players",
        rows: standings.iter().take(PLOTTED).map(row).collect(),
    };
    let caption = "Ratings with 95 % confidence intervals. A difference of 10 Elo means an expected score of 0.514, of 100 \
                   about 0.640. The intervals hold for these players: the table of teams shows what to expect of other \
                   runs of the same method."
        .to_owned();
    let plot = Block::Figure(Figure { picture: chart.draw(), caption, numbers: None });
    vec![plot, Block::Table(outcome.standings_table()), results(standings)]
}

/// What each player's games came to, as bars.
fn results(standings: &[PlayerStanding<'_>]) -> Block {
    let stack = |(place, standing): (usize, &PlayerStanding<'_>)| {
        let tally = &standing.tally;
        let games = tally.games().max(1) as f64;
        let share = |count: u64| 100.0 * count as f64 / games;
        let heights = vec![share(tally.wins), share(tally.draws), share(tally.losses)];
        Stack { label: (place + 1).to_string(), heights }
    };
    let chart = Bars {
        name: "results",
        title: "Games won, drawn and lost",
        description: "A bar for each player, the strongest at the left.",
        across: "place",
        up: "games, %",
        parts: vec![("f0", "won"), ("f7", "drawn"), ("f1", "lost")],
        stacks: standings.iter().enumerate().take(PLOTTED).map(stack).collect(),
    };
    let caption = "The share of each player's games, by places.".to_owned();
    Block::Figure(Figure { picture: chart.draw(), caption, numbers: None })
}

fn pairings(outcome: &Outcome<'_>, players: usize) -> Vec<Block> {
    let mut blocks = vec![];
    if players <= PLOTTED {
        blocks.push(Block::Table(outcome.cross_table()));
    }
    let mut table = outcome.pairings();
    if table.rows.len() > ROWS {
        table.rows.truncate(ROWS);
        table.caption = format!("{}; the first {ROWS}, all are in pairings.csv", table.caption);
    }
    blocks.push(Block::Table(table));
    blocks
}

fn endings(outcome: &Outcome<'_>) -> Table {
    let mut table = Table::new("Games by the reason of their end", &["reason", "games"]);
    for (ending, games) in outcome.endings.iter().filter(|(_, games)| *games > 0) {
        table.push(vec![ending.word().to_owned(), count(*games)]);
    }
    table
}

/// A win, a loss and a draw of the strongest player, against the next strongest if they have met.
fn games(progress: &CellProgress, outcome: &Outcome<'_>, standings: &[PlayerStanding<'_>]) -> Vec<Block> {
    let [first, second, ..] = standings else { return vec![] };
    let all = outcome.plan.schedule().pairings();
    let with = |pairing: usize, player: usize| all[pairing].contains(&player);
    let of_first = || progress.games().filter(|(pairing, ..)| with(*pairing, first.player));
    let of_both = of_first().filter(|(pairing, ..)| with(*pairing, second.player));
    let mut found: [Option<(usize, &GameRecord)>; 3] = [None; 3];
    for (pairing, _, pair) in of_both.chain(of_first()) {
        for game in pair {
            let place = kind(game, all[pairing][0] == first.player);
            found[place].get_or_insert((pairing, game));
        }
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    let game = |(title, found): (&str, Option<(usize, &GameRecord)>)| {
        let (pairing, game) = found?;
        let players = all[pairing].map(|player| outcome.name(player));
        let title = format!("{title} of {}", first.name);
        Some(Block::Game(Box::new(shown(game, players, &title).ok()?)))
    };
    ["A win", "A loss", "A draw"].into_iter().zip(found).filter_map(game).collect()
}

/// Whether a player won, lost or drew: 0, 1 or 2.
fn kind(game: &GameRecord, is_first: bool) -> usize {
    match (game.points, is_first) {
        (Points::Win, true) | (Points::Loss, false) => 0,
        (Points::Loss, true) | (Points::Win, false) => 1,
        (Points::Draw, _) => 2,
    }
}

fn what_was_played(run: &RunId, progress: &CellProgress, outcome: &Outcome<'_>, flag: &str) -> Section {
    let digest = progress.digest().map(|digest| ("digest".to_owned(), code(&digest.to_string())));
    let facts = [("run".to_owned(), code(run.as_str()))].into_iter().chain(digest).collect();
    let steps = vec![
        Step::new("All games, as PDN:", format!("atoll tournament games {run}{flag}")),
        Step::new("Games that can be are played again, and compared:", format!("atoll verify {run}{flag}")),
    ];
    let text = outcome.plan.text().to_owned();
    let config = Block::Code { title: "The tournament, as it was played".to_owned(), text };
    Section::new("experiment", "What was played", vec![Block::Facts(facts), Block::Commands(steps), config])
}
