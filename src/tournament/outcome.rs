//! What a tournament says: standings, teams, and how games ended.

use archipelago::CellProgress;
use archipelago::cell::CellPlan;
use experiment::Tournament;
use experiment::tournament::{PlayerKeys, PublishedKeys};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tournament::{CrossTable, Encounter, GameEnding, Interval, Race, Rating, Ratings, Tally};

/// What a tournament came to, as far as it has been played.
pub(crate) struct Outcome<'a> {
    pub(crate) plan: &'a Tournament,
    pub(crate) table: CrossTable,
    pub(crate) ratings: Ratings,
    pub(crate) endings: Vec<(GameEnding, u64)>,
    pub(super) progress: &'a CellProgress,
}

/// A player and what it scored.
pub(crate) struct PlayerStanding<'a> {
    pub(crate) player: usize,
    pub(crate) name: &'a str,
    pub(crate) rating: Rating,
    pub(crate) tally: Tally,
}

/// Two teams and what came out between them.
pub(crate) struct Meeting<'a> {
    pub(crate) teams: [&'a str; 2],
    pub(crate) encounter: Encounter,
    pub(crate) published: Option<&'a PublishedKeys>,
}

impl<'a> Outcome<'a> {
    /// What is known of a tournament; nothing of a sweep.
    pub(crate) fn of(progress: &'a CellProgress) -> Option<Self> {
        let CellPlan::Tournament(plan) = progress.plan() else { return None };
        let table = progress.cross_table();
        let ratings = Ratings::of(&table);
        let mut endings: Vec<(GameEnding, u64)> = GameEnding::ALL.iter().map(|ending| (*ending, 0)).collect();
        for game in progress.games().flat_map(|(_, _, pair)| pair) {
            endings
                .iter_mut()
                .filter(|(ending, _)| *ending == game.ending)
                .for_each(|(_, count)| *count += 1);
        }
        Some(Self { plan, table, ratings, endings, progress })
    }

    /// All games that count.
    pub(crate) fn games(&self) -> u64 {
        self.endings.iter().map(|(_, count)| count).sum()
    }

    /// What a player is called.
    pub(super) fn name(&self, player: usize) -> &'a str {
        &self.plan.players()[player].name
    }

    /// All players, the strongest first; of equals the one that the file names first.
    pub(crate) fn standings(&self) -> Vec<PlayerStanding<'a>> {
        let standing = |(player, keys): (usize, &'a PlayerKeys)| PlayerStanding {
            player,
            name: &keys.name,
            rating: self.ratings.of_player(player),
            tally: self.table.total(player),
        };
        let mut standings: Vec<PlayerStanding<'a>> =
            self.plan.players().iter().enumerate().map(standing).collect();
        standings.sort_by(|one, other| other.rating.elo.total_cmp(&one.rating.elo));
        standings
    }

    /// Each two who meet, and how far they are.
    pub(super) fn races(&self) -> impl Iterator<Item = ([usize; 2], &Race)> {
        self.plan.schedule().pairings().iter().copied().zip(self.progress.races())
    }

    /// Each two teams that have met, in the order of the file, if there are teams of several or figures to compare with.
    pub(crate) fn meetings(&self) -> Vec<Meeting<'a>> {
        let players = self.plan.players();
        let published = &self.plan.keys().published;
        if players.iter().all(|player| player.team.is_none()) && published.is_empty() {
            return vec![];
        }
        let origins = origins(players);
        let mut met: Vec<([&'a str; 2], Encounter)> = vec![];
        for ([first, second], tally) in self.table.pairings() {
            let teams = [players[first].team(), players[second].team()];
            let is_known = |(known, _): &([&str; 2], _)| *known == teams || *known == [teams[1], teams[0]];
            let at = met.iter().position(is_known).unwrap_or_else(|| {
                met.push((teams, Encounter::default()));
                met.len() - 1
            });
            let (known, encounter) = &mut met[at];
            if *known == teams {
                encounter.add([origins[first], origins[second]], tally);
            } else {
                encounter.add([origins[second], origins[first]], &tally.turned());
            }
        }
        met.into_iter().map(|(teams, encounter)| meeting(teams, encounter, published)).collect()
    }

    /// Everything as one object.
    pub(crate) fn json(&self) -> Value {
        let player = |PlayerStanding { player, name, rating, tally }: &PlayerStanding<'_>| {
            let team = self.plan.players()[*player].team();
            json!({ "name": name, "team": team, "rating": rating, "results": counts(tally) })
        };
        let pairing = |([first, second], race): ([usize; 2], &Race)| {
            json!({ "first": self.name(first), "second": self.name(second), "results": results(&race.tally),
                    "verdict": race.verdict })
        };
        let endings: BTreeMap<&str, u64> =
            self.endings.iter().map(|(ending, count)| (ending.word(), *count)).collect();
        json!({
            "complete": self.progress.is_complete(), "games": self.games(),
            "draws_of_equals": self.ratings.draws_of_equals(),
            "players": self.standings().iter().map(player).collect::<Vec<_>>(),
            "pairings": self.races().map(pairing).collect::<Vec<_>>(),
            "teams": self.meetings().iter().map(Meeting::json).collect::<Vec<_>>(), "endings": endings,
        })
    }
}

impl Meeting<'_> {
    /// What the interval of its score is judged by.
    pub(super) fn judged_by(&self) -> String {
        let [ours, theirs] = self.encounter.origins();
        if self.encounter.is_sample() { format!("origins, {ours} × {theirs}") } else { "games".to_owned() }
    }

    fn json(&self) -> Value {
        let Interval { low, high } = self.encounter.interval();
        let mut results = counts(&self.encounter.tally());
        results["low"] = json!(low);
        results["high"] = json!(high);
        results["superiority"] = json!(self.encounter.superiority());
        let judged_by = if self.encounter.is_sample() { "origins" } else { "games" };
        json!({ "teams": self.teams, "results": results, "origins": self.encounter.origins(),
                "judged_by": judged_by, "published": self.published })
    }
}

/// The number of each player's origin.
fn origins(players: &[PlayerKeys]) -> Vec<usize> {
    let mut numbers = BTreeMap::new();
    let number = |player: &PlayerKeys| {
        let next = numbers.len();
        *numbers.entry(player.origin().to_owned()).or_insert(next)
    };
    players.iter().map(number).collect()
}

/// The figures that belong to two teams, in the order in which they were published.
fn meeting<'a>(teams: [&'a str; 2], encounter: Encounter, published: &'a [PublishedKeys]) -> Meeting<'a> {
    let is = |published: &&PublishedKeys, first: &str, second: &str| published.teams == [first, second];
    if let Some(found) = published.iter().find(|published| is(published, teams[1], teams[0])) {
        return Meeting {
            teams: [teams[1], teams[0]],
            encounter: encounter.turned(),
            published: Some(found),
        };
    }
    let found = published.iter().find(|published| is(published, teams[0], teams[1]));
    Meeting { teams, encounter, published: found }
}

fn counts(tally: &Tally) -> Value {
    json!({
        "wins": tally.wins, "draws": tally.draws, "losses": tally.losses, "pairs": tally.pairs,
        "score": tally.score(),
    })
}

/// What two players came to: of them alone games say how sure it is.
fn results(tally: &Tally) -> Value {
    let Interval { low, high } = tally.interval();
    let mut results = counts(tally);
    results["low"] = json!(low);
    results["high"] = json!(high);
    results["superiority"] = json!(tally.superiority());
    results
}
