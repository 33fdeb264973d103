//! How strong champions were, as the run's yardstick measured them.

use super::Run;
use crate::chart::{Lines, Series, Size, Stretch};
use crate::document::{Block, Data, Figure, Section, Table};
use crate::text::count;
use std::collections::BTreeMap;

/// Up to this number of islands, each has a curve; of more, only the strongest of each epoch is drawn.
const CURVES: usize = 6;
/// Rows of the table, the newest last.
const ROWS: usize = 60;

/// The strength of one champion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strength {
    /// The island.
    pub island: u32,
    /// The epoch.
    pub epoch: u64,
    /// The generation that the epoch ended with.
    pub generation: u64,
    /// The rating in Elo, and its 95 % confidence interval.
    pub elo: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// What it scored against each opponent.
    pub scores: Vec<Score>,
}

/// What a champion scored against one opponent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// Games won, drawn and lost.
    pub games: [u64; 3],
    /// The share of the points, and its 95 % confidence interval.
    pub score: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// All that was measured of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strengths {
    /// How champions were measured, in a sentence.
    pub how: String,
    /// The names of the opponents.
    pub opponents: Vec<String>,
    /// By epoch and island.
    pub champions: Vec<Strength>,
}

/// The strength of champions over the generations.
pub(super) fn section(run: &Run) -> Option<Section> {
    let strengths = run.strengths.as_ref()?;
    let mut blocks = vec![Block::Text(strengths.how.clone())];
    let Some(last) = strengths.champions.last() else {
        blocks.push(Block::Text("No champion has been measured yet.".to_owned()));
        return Some(Section::new("strength", "Strength", blocks));
    };
    let newest = strengths.champions.iter().filter(|strength| strength.epoch == last.epoch);
    let best = newest.max_by(|one, other| one.elo.total_cmp(&other.elo)).unwrap_or(last);
    let text = format!(
        "After {} generations the strongest champion, of island {}, has {:+.0} Elo ({:+.0} to {:+.0}).",
        count(best.generation),
        best.island,
        best.elo,
        best.low,
        best.high
    );
    let chart = Lines {
        name: "strength",
        title: "Elo of the champions over the generations",
        description: &text,
        across: "generation",
        up: "Elo",
        stretch: Stretch::Linear,
        size: Size::Wide,
        series: series(&strengths.champions),
        reach: [vec![0.0], vec![0.0]],
    };
    let caption =
        "Each point is the champion of a milestone; bands are 95 % confidence intervals.".to_owned();
    let figure = Figure { picture: chart.draw(), caption, numbers: Some(table(strengths)) };
    blocks.extend([Block::Text(text), Block::Figure(figure)]);
    Some(Section::new("strength", "Strength", blocks))
}

/// A curve for each island, or the strongest champion of each epoch.
fn series(champions: &[Strength]) -> Vec<Series> {
    let mut islands: BTreeMap<u32, Vec<&Strength>> = BTreeMap::new();
    for strength in champions {
        islands.entry(strength.island).or_default().push(strength);
    }
    if islands.len() <= CURVES {
        let curves = islands.into_iter().zip(0..);
        return curves
            .map(|((island, own), colour)| curve(format!("island {island}"), colour, &own))
            .collect();
    }
    let mut best: BTreeMap<u64, &Strength> = BTreeMap::new();
    for strength in champions {
        let known = best.entry(strength.epoch).or_insert(strength);
        if strength.elo > known.elo {
            *known = strength;
        }
    }
    let best: Vec<&Strength> = best.into_values().collect();
    vec![curve("the strongest of all islands".to_owned(), 0, &best)]
}

fn curve(label: String, colour: usize, champions: &[&Strength]) -> Series {
    let point = |strength: &&Strength| (strength.generation as f64, strength.elo.round());
    let band = |strength: &&Strength| (strength.low.round(), strength.high.round());
    let curve = Series::curve(label, colour, champions.iter().map(point).collect());
    Series { band: champions.iter().map(band).collect(), ends: true, ..curve }
}

fn table(strengths: &Strengths) -> Table {
    let Strengths { opponents, champions, .. } = strengths;
    let left_out = champions.len().saturating_sub(ROWS);
    let rest =
        if left_out > 0 { format!("; the newest {ROWS}, all are in strength.csv") } else { String::new() };
    let columns = ["generation", "island", "Elo", "95 % from", "to"].map(str::to_owned);
    let columns = columns.into_iter().chain(opponents.iter().map(|name| format!("score against {name}")));
    let mut table = Table {
        caption: format!("Champions against the ladder{rest}"),
        columns: columns.collect(),
        rows: vec![],
    };
    for Strength { island, generation, elo, low, high, scores, .. } in &champions[left_out..] {
        let elos = [elo, low, high].map(|value| format!("{value:+.0}"));
        let shown = |score: &Score| format!("{:.3} ({:.3} to {:.3})", score.score, score.low, score.high);
        let scores = (0..opponents.len()).map(|at| scores.get(at).map_or("–".to_owned(), shown));
        table.push([count(*generation), island.to_string()].into_iter().chain(elos).chain(scores).collect());
    }
    table
}

/// One row for each champion and opponent.
pub(super) fn data(strengths: &Strengths) -> Data {
    let columns = [
        "island",
        "epoch",
        "generation",
        "elo",
        "low",
        "high",
        "opponent",
        "won",
        "drawn",
        "lost",
        "score",
        "score_low",
        "score_high",
    ];
    let mut table = Table::new("", &columns);
    for Strength { island, epoch, generation, elo, low, high, scores } in &strengths.champions {
        for (opponent, Score { games, score, low: from, high: to }) in strengths.opponents.iter().zip(scores)
        {
            let place = [island.to_string(), epoch.to_string(), generation.to_string()];
            let rating = [elo, low, high].map(|value| format!("{value:.1}"));
            let scores = [score, from, to].map(|value| format!("{value:.4}"));
            let row = place.into_iter().chain(rating).chain([opponent.clone()]);
            table.push(row.chain(games.map(|games| games.to_string())).chain(scores).collect());
        }
    }
    Data { name: "strength", table }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn champion(island: u32, epoch: u64, elo: f64) -> Strength {
        let score = Score { games: [30, 10, 8], score: 0.729, low: 0.61, high: 0.85 };
        let (low, high) = (elo - 40.0, elo + 40.0);
        Strength { island, epoch, generation: 10 * (epoch + 1), elo, low, high, scores: vec![score] }
    }

    fn run(champions: Vec<Strength>) -> Run {
        let (how, opponents) = ("By games.".to_owned(), vec!["material 4 plain".to_owned()]);
        Run { strengths: Some(Strengths { how, opponents, champions }), ..Run::default() }
    }

    #[test]
    fn strength_is_told_with_its_interval() {
        assert!(section(&Run::default()).is_none(), "a run without a yardstick has no such section");
        let nothing = section(&run(vec![])).expect("a section");
        assert!(format!("{nothing:?}").contains("No champion has been measured yet"));
        let run = run(vec![
            champion(0, 1, 10.0),
            champion(1, 1, -20.0),
            champion(0, 3, 90.0),
            champion(1, 3, 120.0),
        ]);
        let shown = format!("{:?}", section(&run).expect("a section"));
        for words in ["of island 1, has +120 Elo (+80 to +160)", "island 0", "0.729 (0.610 to 0.850)"] {
            assert!(shown.contains(words), "expected {words} in {shown}");
        }
        let data = data(run.strengths.as_ref().expect("strengths"));
        assert_eq!(data.table.rows.len(), 4);
        assert_eq!(data.table.rows[3][..7].join(","), "1,3,40,120.0,80.0,160.0,material 4 plain");
    }

    #[test]
    fn of_many_islands_the_strongest_is_drawn() {
        let champions: Vec<Strength> =
            (0..20).map(|at| champion(at % 10, u64::from(at / 10), f64::from(at))).collect();
        let series = series(&champions);
        assert_eq!(series.len(), 1);
        assert_eq!(series[0].points, [(10.0, 9.0), (20.0, 19.0)]);
        assert_eq!(series[0].band[1], (-21.0, 59.0));
    }
}
