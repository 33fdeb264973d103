//! The report of one run.

mod advice;
mod fitness_curves;
mod migration;
mod outcome;
mod strength;
mod strip;
mod work;

use crate::document::{Block, Document, Section, Step, Tile};
use crate::text::{code, count, counted, number, percent, time};
use evolution::epoch::Standing;
use evolution::statistics::{EpochStatistics, GenerationRow};

pub(crate) use fitness_curves::at_generations;
pub use strength::{Score, Strength, Strengths};
pub use strip::Strip;

/// The data of a report of a run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Its name.
    pub id: String,
    /// What is evolved, in a word.
    pub problem: String,
    /// Its seed.
    pub seed: u64,
    /// How it stands: `finished`, `stopped` and so on.
    pub state: String,
    /// Why it ended, if it has.
    pub reason: Option<String>,
    /// Its digest, if it is finished.
    pub digest: Option<String>,
    /// The digest of what was asked.
    pub experiment_digest: String,
    /// The versions of the program that worked on it.
    pub versions: Vec<String>,
    /// Whether fitness has a meaning beyond one judgement.
    pub absolute: bool,
    /// What its problem says of the result, in a sentence: the first thing a reader wants to know.
    pub lead: Option<String>,
    /// The experiment, as it can be run again.
    pub config: String,
    /// The keys of the experiment and their values, for comparisons.
    pub keys: Vec<(String, String)>,
    /// How to run it again.
    pub reproduce: Vec<Step>,
    /// What to do next.
    pub next: Vec<Step>,
    /// What happened to it, each with its time.
    pub events: Vec<(String, String)>,
    /// Who sends migrants to whom: the name of the shape, and its edges.
    pub topology: (String, Vec<(u32, u32)>),
    /// Its islands.
    pub islands: Vec<Island>,
    /// For how long it has been worked on, in milliseconds.
    pub elapsed: u64,
    /// How often it was taken up again after its first start.
    pub restarts: u64,
    /// Work that was begun and lost.
    pub losses: Vec<Loss>,
    /// How strong its champions were, if they are measured.
    pub strengths: Option<Strengths>,
    /// What could not be read.
    pub damage: Vec<String>,
    /// If the run is too long for all of it to be shown: how many of how many commits are.
    pub part: Option<(u64, u64)>,
}

/// One island.
#[derive(Clone, Debug, Default)]
pub struct Island {
    /// How it evolves, in a word.
    pub algorithm: String,
    /// Its epochs in order; some may be missing.
    pub epochs: Vec<Epoch>,
    /// Its champion, if its state could be read.
    pub champion: Option<Champion>,
}

/// One epoch of an island.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// Its number.
    pub number: u64,
    /// Where the island stood at its end.
    pub standing: Standing,
    /// What was written down about it.
    pub statistics: EpochStatistics,
    /// Who computed it.
    pub worker: String,
    /// How long that took, in milliseconds.
    pub milliseconds: u64,
    /// For how long the run had been worked on at its end, in milliseconds.
    pub elapsed: u64,
}

/// The best individual that an island has seen.
#[derive(Clone, Debug)]
pub struct Champion {
    /// Its fitness.
    pub fitness: f64,
    /// The generation in which it appeared.
    pub generation: u64,
    /// Its genome, as its problem writes it.
    pub genome: String,
}

/// Work that a worker held and did not deliver.
#[derive(Clone, Debug)]
pub struct Loss {
    /// When, as text.
    pub at: String,
    /// What it was.
    pub work: String,
    /// Who held it.
    pub worker: String,
    /// For how long, in milliseconds.
    pub milliseconds: u64,
    /// Why it was lost.
    pub reason: String,
}

impl Island {
    fn last(&self) -> Option<&Epoch> {
        self.epochs.last()
    }

    fn at(&self, epoch: u64) -> Option<&Epoch> {
        self.epochs.binary_search_by_key(&epoch, |each| each.number).ok().map(|at| &self.epochs[at])
    }

    fn rows(&self) -> impl Iterator<Item = &GenerationRow> {
        self.epochs.iter().flat_map(|epoch| &epoch.statistics.rows)
    }
}

impl Run {
    /// Epochs from the first to the last that any island has.
    fn epochs(&self) -> u64 {
        self.islands.iter().filter_map(Island::last).map(|epoch| epoch.number + 1).max().unwrap_or(0)
    }

    /// The epoch that stands for some in a picture: their last one, or the last that was read if only a part was.
    fn standing_for<'a>(&self, island: &'a Island, first: u64, last: u64) -> Option<&'a Epoch> {
        if self.part.is_none() {
            return island.at(last);
        }
        let end = island.epochs.partition_point(|epoch| epoch.number <= last);
        island.epochs[..end].last().filter(|epoch| epoch.number >= first)
    }

    /// The generation that all islands have reached.
    pub fn generations(&self) -> u64 {
        let last = |island: &Island| island.last().map_or(0, |epoch| epoch.standing.generation);
        self.islands.iter().map(last).min().unwrap_or(0)
    }

    /// The epochs that all islands have reached.
    fn complete_epochs(&self) -> u64 {
        let done = |island: &Island| island.last().map_or(0, |epoch| epoch.number + 1);
        self.islands.iter().map(done).min().unwrap_or(0)
    }

    /// The evaluations of all islands.
    pub fn evaluations(&self) -> u64 {
        self.islands.iter().filter_map(Island::last).map(|epoch| epoch.standing.evaluations).sum()
    }

    /// The island with the best fitness; of equals the one that found it first, then the lowest.
    pub fn best(&self) -> Option<(usize, f64)> {
        let found =
            |island: &Island| island.champion.as_ref().map_or(u64::MAX, |champion| champion.generation);
        let standing =
            |(at, island): (usize, &Island)| Some((at, island.last()?.standing.best, found(island)));
        let standings = self.islands.iter().enumerate().filter_map(standing);
        let best = standings.min_by(|(_, a, first), (_, b, second)| b.total_cmp(a).then(first.cmp(second)));
        best.map(|(island, fitness, _)| (island, fitness))
    }

    /// The answer first, then how the run stands.
    fn headline(&self) -> String {
        let state = match (&self.reason, self.state.as_str()) {
            (Some(reason), state) => format!("The run is {state}: {reason}."),
            (None, state) => format!("The run is {state}."),
        };
        let Some((island, fitness)) = self.best() else {
            return format!("No results are stored yet. {state}");
        };
        let generations = count(self.generations());
        let champion = self.islands.get(island).and_then(|island| island.champion.as_ref());
        let found = champion.map_or(String::new(), |champion| {
            format!(", found in generation {} of {generations}", count(champion.generation))
        });
        let lead = self
            .lead
            .clone()
            .unwrap_or_else(|| format!("The best fitness is {} (island {island}{found}).", number(fitness)));
        format!("{lead} {state}")
    }

    fn tiles(&self) -> Vec<Tile> {
        let (island, fitness) = self.best().unwrap_or((0, f64::NAN));
        let found = self.islands.get(island).and_then(|island| island.champion.as_ref());
        let found =
            found.map_or(String::new(), |champion| format!(", generation {}", count(champion.generation)));
        let flow = migration::total(self);
        // The time of a very short run is not recorded.
        let rate = match self.elapsed {
            0 => String::new(),
            elapsed => {
                format!("{} a second", count((self.evaluations() as f64 * 1000.0 / elapsed as f64) as u64))
            }
        };
        let mut tiles = vec![
            Tile::new("Best fitness", number(fitness), format!("island {island}{found}")),
            Tile::new("Generations", count(self.generations()), counted(self.complete_epochs(), "epoch")),
            Tile::new("Evaluations", count(self.evaluations()), rate),
            Tile::new("Time", time(self.elapsed), work::remark(self)),
            Tile::new("Islands", count(self.islands.len() as u64), self.topology.0.clone()),
            Tile::new(
                "Migrants taken",
                percent(flow.accepted, flow.offered),
                format!("{} beat the best of their island", count(flow.better)),
            ),
        ];
        if !self.absolute {
            // Relative fitness does not show strength, which the headline states: it comes last.
            tiles.rotate_left(1);
        }
        tiles
    }

    fn damage(&self) -> Option<Section> {
        const MOST: usize = 20;
        if self.damage.is_empty() {
            return None;
        }
        let mut lines = vec![format!(
            "{} could not be read. The rest is shown; charts have gaps where data is missing.",
            match self.damage.len() {
                1 => "1 of the run's objects".to_owned(),
                objects => format!("{} of the run's objects", count(objects as u64)),
            }
        )];
        lines.extend(self.damage.iter().take(MOST).cloned());
        if self.damage.len() > MOST {
            lines.push(format!("… and {} more", count((self.damage.len() - MOST) as u64)));
        }
        lines.push(format!("`atoll verify {}` lists the details.", self.id));
        Some(Section::new("missing", "What is missing", vec![Block::Notice(lines)]))
    }

    fn part(&self) -> Option<Section> {
        let (shown, all) = self.part?;
        let text = format!(
            "The run is too long for a page to show all of it: {} of its {} commits are shown, the newest and some of \
             those before. Charts have gaps, and sums count what is shown. `atoll report {}` shows everything.",
            count(shown),
            count(all),
            self.id
        );
        Some(Section::new("part", "Part of the history", vec![Block::Text(text)]))
    }
}

/// Puts the curve of the best fitness beside the picture of the best that was found, if a problem shows that alone.
fn put_beside(sections: &mut [Section], run: &Run) -> bool {
    let found = sections.iter_mut().filter(|section| section.id == "found");
    let is_best =
        |block: &&mut Block| matches!(block, Block::Gallery(all) if all.pictures.len() == 1 && !all.folded);
    let best = found.flat_map(|section| &mut section.blocks).find(is_best);
    let Some((best, curve)) = best.zip(fitness_curves::fitness_beside(run)) else { return false };
    let picture = std::mem::replace(best, Block::Text(String::new()));
    *best = Block::Beside(Box::new([picture, curve]));
    true
}

/// How a run went so far: fitness, diversity, migration and work, after what is missing.
pub fn history(run: &Run, shown: Vec<Section>) -> Vec<Section> {
    let mut sections: Vec<Section> =
        run.damage().into_iter().chain(run.part()).chain(strength::section(run)).chain(shown).collect();
    // Relative fitness does not show strength: it comes after what does.
    let is_drawn = run.absolute && put_beside(&mut sections, run);
    let (fitness, diversity) = (fitness_curves::fitness(run, is_drawn), fitness_curves::diversity(run));
    if run.absolute {
        sections.extend(fitness.into_iter().chain(diversity));
    } else {
        sections.extend(diversity.into_iter().chain(fitness));
    }
    sections.extend(migration::section(run));
    sections.extend(work::section(run));
    sections
}

/// The report of a run: what its problem has to show comes first.
pub fn document(run: &Run, shown: Vec<Section>, made: String) -> Document {
    let mut sections = history(run, shown);
    sections.push(outcome::champions(run));
    sections.push(outcome::what_was_run(run));
    sections.push(outcome::next(run));
    sections.push(outcome::digests(run));
    let mut data =
        vec![outcome::epochs_data(run), outcome::champions_data(run), migration::data(run), work::data(run)];
    data.extend(run.strengths.as_ref().map(strength::data));
    Document {
        title: format!("{} · {}", run.id, run.problem),
        headline: run.headline(),
        tiles: run.tiles(),
        sections,
        data,
        made,
        refresh: None,
    }
}

/// Names that are shown as code.
fn named(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| code(name)).collect();
    names.join(", ")
}
