//! The yardstick: how strong a player is, measured against opponents that never change.
//!
//! The frozen ladder is made of players that count pieces, plain and with every privilege (the game's history, the
//! endgame database with 4 pieces), 2 to 10 plies ahead, and of kept champions (`data/*.acp`). Their ratings are data (`data/ladder.csv`), measured once by
//! games of neighbouring rungs; the plain player of 4 plies is 0. By depth or by nodes everything here is the same on
//! every machine.

use crate::duel::Match;
use crate::ratings::Rating;
use crate::tally::{CONFIDENCE, Tally};
use checkers::{
    Consult, Database, DrawRules, EndgameError, Endgames, Knowledge, Limits, MAX_DEPTH, PlaySettings,
    PlayerFile, PlayerSpec, Style,
};
use std::sync::LazyLock;

/// Pieces of the database that privileged players ask.
pub const LADDER_PIECES: u32 = 4;

/// A champion of an earlier version of the program, kept as the bytes of its player file.
#[derive(Debug, PartialEq, Eq)]
pub struct KeptChampion {
    /// What it is called in the ladder.
    pub name: &'static str,
    bytes: &'static [u8],
}

impl KeptChampion {
    /// What its file holds.
    pub fn file(&self) -> PlayerFile {
        PlayerFile::from_bytes(self.bytes).expect("kept champions can be read: a test reads them all")
    }
}

/// The kept champions. A file never changes and is never removed: later versions are measured against it.
///
/// `learning-1` is the champion of `examples/checkers-learning.toml` with seed 300, after all of its 80 generations.
pub fn kept_champions() -> &'static [KeptChampion] {
    &[KeptChampion { name: "learning-1", bytes: include_bytes!("../data/learning-1.acp") }]
}

/// What a player of the frozen ladder plays by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RungKind {
    /// It counts pieces.
    Plain,
    /// It counts pieces, knows the game's history, and asks the database.
    Privileged,
    /// It is a champion with the same privileges.
    Champion(&'static KeptChampion),
}

impl RungKind {
    /// The kind of this name in the ladder's data.
    fn of(name: &str) -> Option<Self> {
        match name {
            "plain" => Some(Self::Plain),
            "privileged" => Some(Self::Privileged),
            other => kept_champions().iter().find(|champion| champion.name == other).map(Self::Champion),
        }
    }

    /// What it is called in the ladder's data.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Privileged => "privileged",
            Self::Champion(champion) => champion.name,
        }
    }
}

/// A player of the frozen ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// Plies that it looks ahead.
    pub plies: u32,
    /// What it plays by.
    pub kind: RungKind,
    /// How strong it is, if that has been measured.
    pub elo: Option<f64>,
}

impl Rung {
    /// What it is called, with the plies that it looks ahead.
    pub fn name(&self) -> String {
        match self.kind {
            RungKind::Champion(champion) => format!("champion {} {}", self.plies, champion.name),
            kind => format!("material {} {}", self.plies, kind.name()),
        }
    }

    /// The player of this name: `material 4 plain`, or `material plain` where nodes or time end its search. One that is
    /// no rung of the ladder has no rating.
    pub fn named(name: &str) -> Option<Self> {
        let words: Vec<&str> = name.split(' ').collect();
        let (what, plies, kind) = match words[..] {
            [what, plies, kind] => (what, plies.parse().ok().filter(|plies| (1..=20).contains(plies))?, kind),
            [what, kind] => (what, MAX_DEPTH, kind),
            _ => return None,
        };
        let kind = RungKind::of(kind)?;
        let is_champion = matches!(kind, RungKind::Champion(_));
        let rung = Self::of(kind, plies);
        (what == if is_champion { "champion" } else { "material" }).then_some(rung)
    }

    /// The player of this kind that searches `depth` plies, with its rating if it is a rung of the ladder.
    pub fn of(kind: RungKind, plies: u32) -> Self {
        let known = ladder().iter().find(|rung| rung.kind == kind && rung.plies == plies);
        known.copied().unwrap_or(Self { plies, kind, elo: None })
    }

    /// What it is called where nodes or time end its search, and not plies.
    pub fn name_without_plies(&self) -> String {
        match self.kind {
            RungKind::Champion(champion) => format!("champion {}", champion.name),
            kind => format!("material {}", kind.name()),
        }
    }

    /// The player itself.
    pub fn player(&self) -> Result<PlayerSpec, EndgameError> {
        let material = PlayerSpec::Material { depth: self.plies };
        match self.kind {
            RungKind::Plain => Ok(material),
            RungKind::Privileged => privileged(material),
            RungKind::Champion(champion) => privileged(champion.file().player(self.plies)),
        }
    }
}

/// The players that count pieces at these depths, plain and with every privilege.
pub fn material_rungs(plies: u32) -> [Rung; 2] {
    [RungKind::Plain, RungKind::Privileged].map(|kind| Rung::of(kind, plies))
}

/// A match of a player against one of the ladder: by depth, or by the nodes that each of them may visit for a move.
pub fn against_rung(
    player: PlayerSpec,
    rung: &Rung,
    nodes: Option<[u64; 2]>,
    seed: u64,
) -> Result<Match, EndgameError> {
    let within = |player: PlayerSpec, seat: usize| match nodes {
        None => player,
        Some(nodes) => playing(player, Limits { nodes: Some(nodes[seat]), ..Limits::depth(MAX_DEPTH) }),
    };
    let players = [within(player, 0), within(rung.player()?, 1)].map(Into::into);
    Ok(Match { players, rules: DrawRules::default(), limits: None, seed })
}

/// The frozen ladder, plain players first, by plies.
pub fn ladder() -> &'static [Rung] {
    static LADDER: LazyLock<Vec<Rung>> = LazyLock::new(|| {
        let lines = include_str!("../data/ladder.csv").lines().filter(|line| !line.starts_with('#')).skip(1);
        lines
            .map(|line| read_rung(line).expect("the ladder's lines are rungs: a test reads them all"))
            .collect()
    });
    &LADDER
}

fn read_rung(line: &str) -> Option<Rung> {
    let [kind, plies, elo] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
    let elo = if elo.is_empty() { None } else { Some(elo.parse().ok()?) };
    Some(Rung { plies: plies.parse().ok()?, kind: RungKind::of(kind)?, elo })
}

/// A player with every privilege: it knows the game's history, and asks the database wherever that knows the position.
pub fn privileged(player: PlayerSpec) -> Result<PlayerSpec, EndgameError> {
    let database = Database::shared(LADDER_PIECES)?;
    let endgames = Some(Endgames { database, consult: Consult::Always });
    let style = Style { history: true, ..Style::default() };
    let knowledge = Knowledge { endgames, style, ..Knowledge::default() };
    Ok(PlayerSpec::Knowing { player: Box::new(player), knowledge })
}

/// A player with the search that plays by nodes or time. It has one thread and a table of a fixed size, so that by nodes
/// it plays the same on every machine.
pub fn playing(player: PlayerSpec, limits: Limits) -> PlayerSpec {
    const TABLE_BITS: u32 = 18;
    let settings = PlaySettings { table_bits: Some(TABLE_BITS), ..PlaySettings::default() };
    PlayerSpec::Playing { player: Box::new(player), limits, settings }
}

/// The difference in Elo that a score stands for.
pub fn elo_of(score: f64) -> f64 {
    // An even score is 0, not -0.
    -400.0 * libm::log10(1.0 / score - 1.0) + 0.0
}

fn expected(difference: f64) -> f64 {
    1.0 / (1.0 + libm::exp10(-difference / 400.0))
}

/// The difference in Elo between two players after some games, with its interval. Half a pair more and less keeps it
/// finite where all games were won or lost.
pub fn difference(tally: &Tally) -> Rating {
    let edge = 0.5 / (tally.pair_count() + 1) as f64;
    let bounded = |score: f64| elo_of(score.clamp(edge, 1.0 - edge));
    let (score, interval) = (tally.score(), tally.interval());
    Rating { elo: bounded(score), low: bounded(interval.low), high: bounded(interval.high) }
}

/// The rating of a player that has met opponents of known ratings: that at which they would be expected to score as they
/// did. Nothing without games.
pub fn performance(met: &[(f64, Tally)]) -> Option<Rating> {
    let games: f64 = met.iter().map(|(_, tally)| tally.games() as f64).sum();
    if games == 0.0 {
        return None;
    }
    let edge = 0.5 / (games + 1.0);
    let scored: f64 = met.iter().map(|(_, tally)| tally.score() * tally.games() as f64).sum();
    let scored = scored.clamp(edge * games, (1.0 - edge) * games);
    let surplus = |elo: f64| {
        let due: f64 = met.iter().map(|(other, tally)| expected(elo - other) * tally.games() as f64).sum();
        scored - due
    };
    // Halving a range that holds every answer: what is due rises with the rating.
    let (mut low, mut high) = (-10_000.0, 10_000.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if surplus(middle) > 0.0 { low = middle } else { high = middle }
    }
    let elo = f64::midpoint(low, high);
    let slope: f64 = met
        .iter()
        .map(|(other, tally)| {
            let share = expected(elo - other);
            tally.games() as f64 * share * (1.0 - share) * std::f64::consts::LN_10 / 400.0
        })
        .sum();
    let error = |tally: &Tally| {
        let error = tally.games() as f64 * tally.standard_error();
        error * error
    };
    let deviation = met.iter().map(|(_, tally)| error(tally)).sum::<f64>().sqrt() / slope;
    let margin = CONFIDENCE * deviation;
    Some(Rating { elo, low: elo - margin, high: elo + margin })
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkers::{Evaluator, NetworkEvaluator};

    fn tally(wins: u64, draws: u64, losses: u64) -> Tally {
        let mut tally = Tally::default();
        // Pairs as independent games would make them, nearly.
        let mut results: Vec<i32> = vec![];
        for (count, points) in [(wins, 1), (draws, 0), (losses, -1)] {
            results.extend(std::iter::repeat_n(points, count as usize));
        }
        let half = results.len() / 2;
        for at in 0..half {
            tally.add(&[results[at], results[(at * 7 + 3) % half + half]]);
        }
        tally
    }

    #[test]
    fn the_ladder_has_every_rung_once() {
        let rungs: Vec<(RungKind, u32)> = ladder().iter().map(|rung| (rung.kind, rung.plies)).collect();
        let material = [RungKind::Plain, RungKind::Privileged];
        let material = material.into_iter().flat_map(|kind| [2, 4, 6, 8, 10].map(|plies| (kind, plies)));
        let champions = kept_champions().iter().map(RungKind::Champion);
        let champions = champions.flat_map(|kind| [4, 6].map(|plies| (kind, plies)));
        assert_eq!(rungs, material.chain(champions).collect::<Vec<_>>());
        assert_eq!(ladder()[1].elo, Some(0.0));
        for kind in ladder().chunk_by(|one, other| one.kind == other.kind) {
            let known: Vec<f64> = kind.iter().filter_map(|rung| rung.elo).collect();
            assert!(known.is_sorted(), "more plies are stronger: {kind:?}");
        }
    }

    /// Champions are yardsticks only while they play as they did when they were kept: their files load, and the network's
    /// values are the same to the last bit.
    #[test]
    fn kept_champions_load_and_have_their_values() {
        let pinned: [(&str, [u32; 5]); 1] =
            [("learning-1", [0x3d10_4970, 0x3bab_1400, 0x3c9a_72a0, 0x3d11_9b50, 0x3da8_5c10])];
        let names: Vec<&str> = kept_champions().iter().map(|champion| champion.name).collect();
        assert_eq!(names, pinned.map(|(name, _)| name));
        let openings = checkers::openings();
        let positions = [0, 40, 80, 120, 155].map(|number: usize| openings[number].position);
        for (champion, (name, values)) in kept_champions().iter().zip(pinned) {
            let file = champion.file();
            assert_eq!(file.to_bytes(), champion.bytes, "{name} is written as it was read");
            let [network] = file.networks() else { panic!("{name} is one network") };
            let mut evaluator = NetworkEvaluator::new(network.clone());
            let found = positions.map(|position| evaluator.evaluate(&position).value().to_bits());
            assert_eq!(found, values, "{name}: {found:#x?}");
        }
    }

    #[test]
    fn rungs_are_found_by_their_names() {
        for rung in ladder() {
            assert_eq!(Rung::named(&rung.name()), Some(*rung));
            let plain = Rung::named(&rung.name_without_plies()).expect("a player without plies");
            assert_eq!((plain.kind, plain.plies, plain.elo), (rung.kind, MAX_DEPTH, None));
        }
        assert_eq!(Rung::named("material 4 plain").and_then(|rung| rung.elo), Some(0.0));
        assert_eq!(Rung::named("material 5 plain").expect("a player beside the ladder").elo, None);
        for wrong in
            ["", "material", "champion 4 plain", "material 4 learning-1", "material 0 plain", "material 4 x"]
        {
            assert_eq!(Rung::named(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_even_score_is_the_opponents_rating() {
        let rating = performance(&[(120.0, tally(50, 100, 50))]).expect("there were games");
        assert!((rating.elo - 120.0).abs() < 1.0, "{rating:?}");
        assert!(rating.low < 100.0 && rating.high > 140.0, "{rating:?}");
        assert_eq!(performance(&[(0.0, Tally::default())]), None);
    }

    #[test]
    fn one_opponent_gives_the_same_as_the_difference() {
        let games = tally(120, 40, 40);
        let (one, other) = (difference(&games), performance(&[(0.0, games)]).expect("there were games"));
        assert!((one.elo - other.elo).abs() < 1e-6, "{one:?} {other:?}");
        assert!((elo_of(0.75) - 190.8).abs() < 0.1);
        assert_eq!(format!("{:+.0}", elo_of(0.5)), "+0");
        assert!((expected(elo_of(0.3)) - 0.3).abs() < 1e-12);
    }

    #[test]
    fn whoever_wins_everything_has_a_finite_rating() {
        for games in [tally(200, 0, 0), tally(0, 0, 200)] {
            let rating = performance(&[(0.0, games), (100.0, games)]).expect("there were games");
            assert!(rating.elo.is_finite() && difference(&games).elo.is_finite());
        }
    }
}
