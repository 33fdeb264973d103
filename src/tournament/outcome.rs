//! What a tournament says: standings, teams, and how games ended; as tables for people, as JSON and as CSV.

use archipelago::Progress;
use archipelago::cell::CellPlan;
use experiment::Tournament;
use experiment::tournament::PublishedKeys;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tournament::{CrossTable, Ending, Interval, Rating, Ratings, Tally, Verdict};

/// The most players of whom a cross table is printed on a screen.
const WIDEST: usize = 24;

/// What a tournament came to, as far as it has been played.
pub(crate) struct Outcome<'a> {
    pub(crate) plan: &'a Tournament,
    pub(crate) table: CrossTable,
    pub(crate) ratings: Ratings,
    pub(crate) endings: Vec<(Ending, u64)>,
    progress: &'a Progress,
}

/// A player and what it scored.
pub(crate) struct Standing<'a> {
    pub(crate) player: usize,
    pub(crate) name: &'a str,
    pub(crate) rating: Rating,
    pub(crate) tally: Tally,
}

/// Two teams and what came out between them.
pub(crate) struct Encounter<'a> {
    pub(crate) teams: [&'a str; 2],
    pub(crate) tally: Tally,
    pub(crate) published: Option<&'a PublishedKeys>,
}

impl<'a> Outcome<'a> {
    /// What is known of a tournament; nothing of a sweep.
    pub(crate) fn of(progress: &'a Progress) -> Option<Self> {
        let CellPlan::Tournament(plan) = progress.plan() else { return None };
        let table = progress.cross_table();
        let ratings = Ratings::of(&table);
        let mut endings: Vec<(Ending, u64)> = Ending::ALL.iter().map(|ending| (*ending, 0)).collect();
        for game in progress.games().flat_map(|(_, _, pair)| pair) {
            endings
                .iter_mut()
                .filter(|(ending, _)| *ending == game.ending)
                .for_each(|(_, count)| *count += 1);
        }
        Some(Self { plan, table, ratings, endings, progress })
    }

    /// All players, the strongest first; of equals the one that the file names first.
    pub(crate) fn standings(&self) -> Vec<Standing<'a>> {
        let standing = |(player, keys): (usize, &'a experiment::tournament::PlayerKeys)| Standing {
            player,
            name: &keys.name,
            rating: self.ratings.of_player(player),
            tally: self.table.total(player),
        };
        let mut standings: Vec<Standing<'a>> = self.plan.players().iter().enumerate().map(standing).collect();
        standings.sort_by(|one, other| other.rating.elo.total_cmp(&one.rating.elo));
        standings
    }

    /// Each two teams that have met, in the order of the file, if there are teams of several or figures to compare with.
    pub(crate) fn encounters(&self) -> Vec<Encounter<'a>> {
        let players = self.plan.players();
        let published = &self.plan.keys().published;
        if players.iter().all(|player| player.team.is_none()) && published.is_empty() {
            return vec![];
        }
        let mut sums: Vec<([&'a str; 2], Tally)> = vec![];
        for ([first, second], tally) in self.table.pairings() {
            let teams = [players[first].team(), players[second].team()];
            let turned = [teams[1], teams[0]];
            match sums.iter_mut().find(|(known, _)| *known == teams || *known == turned) {
                Some((known, sum)) if *known == teams => *sum = sum.join(tally),
                Some((_, sum)) => *sum = sum.join(&tally.turned()),
                None => sums.push((teams, *tally)),
            }
        }
        sums.into_iter().map(|(teams, tally)| encounter(teams, tally, published)).collect()
    }

    /// The tables that people read, as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        self.write_standings(&mut text);
        self.write_encounters(&mut text);
        self.write_cross_table(&mut text);
        self.write_verdicts(&mut text);
        let endings = self.endings.iter().filter(|(_, count)| *count > 0);
        let endings: Vec<String> =
            endings.map(|(ending, count)| format!("{} {count}", ending.word())).collect();
        line(&mut text, &format!("\ngames ended by: {}", endings.join(", ")));
        text
    }

    fn write_standings(&self, text: &mut String) {
        line(text, "| | player | Elo | 95 % | score | 95 % | games | won | drawn | lost |");
        line(text, "|---|---|---|---|---|---|---|---|---|---|");
        for (place, Standing { name, rating, tally, .. }) in self.standings().iter().enumerate() {
            let [elo, low, high] = [rating.elo, rating.low, rating.high].map(whole);
            let Interval { low: least, high: most } = tally.interval();
            let (score, games) = (tally.score(), tally.games());
            let Tally { wins, draws, losses, .. } = tally;
            let place = place + 1;
            line(
                text,
                &format!(
                    "| {place} | {name} | {elo} | {low} to {high} | {score:.3} | {least:.3} to {most:.3} | \
                     {games} | {wins} | {draws} | {losses} |"
                ),
            );
        }
    }

    fn write_encounters(&self, text: &mut String) {
        let encounters = self.encounters();
        if encounters.is_empty() {
            return;
        }
        line(text, "\n| team | against | won | lost | drawn | score | 95 % | published |");
        line(text, "|---|---|---|---|---|---|---|---|");
        for Encounter { teams: [one, other], tally, published } in encounters {
            let Interval { low, high } = tally.interval();
            let Tally { wins, draws, losses, .. } = tally;
            let published = published.map_or(String::new(), |published| {
                let PublishedKeys { wins, draws, losses, source, .. } = published;
                let games = (f64::from(*wins) + f64::from(*draws) + f64::from(*losses)).max(1.0);
                let score = (f64::from(*wins) + f64::from(*draws) / 2.0) / games;
                format!("{wins} won, {losses} lost, {draws} drawn: {score:.3} ({source})")
            });
            let score = tally.score();
            line(
                text,
                &format!(
                    "| {one} | {other} | {wins} | {losses} | {draws} | {score:.3} | {low:.3} to {high:.3} | {published} |"
                ),
            );
        }
    }

    /// The score of each against each, in the order of the standings.
    fn write_cross_table(&self, text: &mut String) {
        let standings = self.standings();
        if standings.len() > WIDEST {
            return;
        }
        let places: Vec<String> = (1..=standings.len()).map(|place| place.to_string()).collect();
        line(text, &format!("\n| | score against | {} |", places.join(" | ")));
        line(text, &format!("|{}", "---|".repeat(standings.len() + 2)));
        for (place, one) in standings.iter().enumerate() {
            let cell = |other: &Standing<'_>| {
                let tally = self.table.between(one.player, other.player);
                if tally.games() == 0 { String::new() } else { format!("{:.3}", tally.score()) }
            };
            let cells: Vec<String> = standings.iter().map(cell).collect();
            line(text, &format!("| {} | {} | {} |", place + 1, one.name, cells.join(" | ")));
        }
    }

    fn write_verdicts(&self, text: &mut String) {
        let Some(sprt) = self.plan.sprt() else { return };
        line(text, &format!("\nsequential test of {} against {} Elo:", sprt.elo0, sprt.elo1));
        for (pairing, race) in self.plan.schedule().pairings().iter().zip(self.progress.races()) {
            let [first, second] = pairing.map(|player| &self.plan.players()[player].name);
            let verdict = match race.verdict {
                Some(Verdict::Greater) => format!("{} Elo accepted", sprt.elo1),
                Some(Verdict::Lesser) => format!("{} Elo accepted", sprt.elo0),
                None => "undecided".to_owned(),
            };
            let pairs = race.tally.pair_count();
            line(text, &format!("- {first} against {second}: {verdict} after {pairs} pairs"));
        }
    }

    /// Everything as one object.
    pub(crate) fn json(&self) -> Value {
        let players: Vec<Value> = self
            .standings()
            .iter()
            .map(|Standing { player, name, rating, tally }| {
                let team = self.plan.players()[*player].team();
                json!({ "name": name, "team": team, "rating": rating, "results": results(tally) })
            })
            .collect();
        let name = |player: usize| &self.plan.players()[player].name;
        let races = self.plan.schedule().pairings().iter().zip(self.progress.races());
        let pairings: Vec<Value> = races
            .map(|(&[first, second], race)| {
                json!({ "first": name(first), "second": name(second), "results": results(&race.tally),
                        "verdict": race.verdict })
            })
            .collect();
        let encounters: Vec<Value> = self
            .encounters()
            .iter()
            .map(|encounter| {
                json!({ "teams": encounter.teams, "results": results(&encounter.tally),
                        "published": encounter.published })
            })
            .collect();
        let endings: BTreeMap<&str, u64> =
            self.endings.iter().map(|(ending, count)| (ending.word(), *count)).collect();
        json!({
            "complete": self.progress.is_complete(), "games": self.endings.iter().map(|(_, count)| count).sum::<u64>(),
            "draws_of_equals": self.ratings.draws_of_equals(), "players": players, "pairings": pairings,
            "teams": encounters, "endings": endings,
        })
    }

    /// A row for each player.
    pub(crate) fn players_csv(&self) -> String {
        let mut csv = "player,team,elo,elo_low,elo_high,wins,draws,losses,score,low,high\n".to_owned();
        for Standing { player, name, rating: Rating { elo, low, high }, tally } in self.standings() {
            let team = self.plan.players()[player].team();
            line(
                &mut csv,
                &format!("{},{},{elo},{low},{high},{}", quoted(name), quoted(team), columns(&tally)),
            );
        }
        csv
    }

    /// A row for each two who have met.
    pub(crate) fn pairings_csv(&self) -> String {
        let mut csv = "player,opponent,wins,draws,losses,score,low,high,superiority,\
                       pairs_0,pairs_1,pairs_2,pairs_3,pairs_4\n"
            .to_owned();
        let name = |player: usize| quoted(&self.plan.players()[player].name);
        for ([first, second], tally) in self.table.pairings() {
            let pairs: Vec<String> = tally.pairs.iter().map(u64::to_string).collect();
            let (superiority, pairs) = (tally.superiority(), pairs.join(","));
            let row = format!("{},{},{},{superiority},{pairs}", name(first), name(second), columns(tally));
            line(&mut csv, &row);
        }
        csv
    }
}

/// The figures that belong to two teams, in the order in which they were published.
fn encounter<'a>(teams: [&'a str; 2], tally: Tally, published: &'a [PublishedKeys]) -> Encounter<'a> {
    let is = |published: &&PublishedKeys, first: &str, second: &str| published.teams == [first, second];
    if let Some(found) = published.iter().find(|published| is(published, teams[1], teams[0])) {
        return Encounter { teams: [teams[1], teams[0]], tally: tally.turned(), published: Some(found) };
    }
    let found = published.iter().find(|published| is(published, teams[0], teams[1]));
    Encounter { teams, tally, published: found }
}

fn results(tally: &Tally) -> Value {
    let Interval { low, high } = tally.interval();
    json!({
        "wins": tally.wins, "draws": tally.draws, "losses": tally.losses, "pairs": tally.pairs,
        "score": tally.score(), "low": low, "high": high, "superiority": tally.superiority(),
    })
}

fn columns(tally: &Tally) -> String {
    let Interval { low, high } = tally.interval();
    format!("{},{},{},{},{low},{high}", tally.wins, tally.draws, tally.losses, tally.score())
}

/// A number of Elo; what rounds to nothing has no sign.
fn whole(elo: f64) -> i64 {
    elo.round() as i64
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing into a string does not fail");
}
