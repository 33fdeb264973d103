//! Reads a run from a store for its report.

use super::{Shown, archive, checkers, found, levels, maze};
use crate::failure::Failure;
use evolution::epoch::ChampionView;
use problems::ProblemSpec;
use report::run::Run;
use report::{Section, Step};
use run::history;
use run::reader::Reader;
use run::{RunEvent, RunId};
use serde_json::Value;
use store::Store;

/// How many bytes of records are read of a run to show what its problem found.
const NEWEST: u64 = 8 << 20;

/// A run that was read, and its champions.
pub(super) struct Read {
    id: RunId,
    reader: Reader,
    champions: Vec<Option<ChampionView>>,
    flag: String,
    lead: Option<String>,
    /// The island whose champion is shown as the best, if its problem decides that otherwise than by fitness.
    champion: Option<u32>,
}

impl Read {
    pub(super) async fn of(store: &Store, run: &RunId, flag: String) -> Result<Self, Failure> {
        let mut reader = Reader::read(store, run).await?;
        let champions = reader.champions().await;
        Ok(Self { id: run.clone(), reader, champions, flag, lead: None, champion: None })
    }

    /// The same for what a problem has to show of a run as it is now: it takes champions and states, of a long run no more
    /// than the newest records and some of those before.
    pub(super) async fn newest(store: &Store, run: &RunId) -> Result<Self, Failure> {
        let mut reader = Reader::read_part(store, run, NEWEST).await?;
        let champions = reader.champions().await;
        Ok(Self { id: run.clone(), reader, champions, flag: String::new(), lead: None, champion: None })
    }

    /// Whether showing what its problem found takes games.
    pub(super) fn plays_games(&self) -> bool {
        matches!(self.reader.experiment.file().problem, ProblemSpec::Checkers(_))
    }

    /// What its problem has to show.
    pub(super) async fn shown(&mut self) -> Vec<Section> {
        let problem = self.reader.experiment.file().problem.clone();
        let (title, shown) = match &problem {
            ProblemSpec::Maze(spec) => ("The best paths", maze::blocks(spec, &self.fittest())),
            ProblemSpec::Checkers(spec) => {
                ("The champion", checkers::blocks(spec, &mut self.reader, &self.champions).await)
            }
            ProblemSpec::LockKey(_) | ProblemSpec::Match3(_) => {
                ("The levels", levels::blocks(&problem, &mut self.reader).await)
            }
            ProblemSpec::Onemax(_) | ProblemSpec::Rastrigin(_) => {
                return archive::section(&mut self.reader).await.into_iter().collect();
            }
        };
        let blocks = shown.map(|Shown { lead, champion, blocks }| {
            (self.lead, self.champion) = (lead, champion);
            blocks
        });
        let mut sections = vec![found(title, blocks)];
        sections.extend(archive::section(&mut self.reader).await);
        sections
    }

    /// The champions of all islands with their islands, the fittest first; of equals the one that was found first.
    fn fittest(&self) -> Vec<(u32, &ChampionView)> {
        fittest(&self.champions)
    }

    pub(super) fn run(self) -> Run {
        let Self { id, reader, champions, flag, lead, champion } = self;
        let best = champion.or(fittest(&champions).first().map(|(island, _)| *island)).unwrap_or(0);
        let (file, events) = (reader.experiment.file().clone(), reader.events.clone());
        let mut run = history::of(&id, reader, champions);
        run.lead = lead;
        run.reproduce = reproduce(&id, &events, file.guests.is_some());
        run.next = next_steps(&run, (&file.problem, best), &flag);
        run
    }
}

/// Champions with their islands, the fittest first; of equals the one that was found first, as in a run's summary.
pub(super) fn fittest(champions: &[Option<ChampionView>]) -> Vec<(u32, &ChampionView)> {
    let mut fittest: Vec<(u32, &ChampionView)> =
        (0..).zip(champions).filter_map(|(island, view)| Some((island, view.as_ref()?))).collect();
    // The sort is stable: what is equal in both stays in the order of islands.
    fittest.sort_by(|(_, a), (_, b)| b.fitness.total_cmp(&a.fitness).then(a.generation.cmp(&b.generation)));
    fittest
}

fn reproduce(run: &RunId, events: &[RunEvent], has_guests: bool) -> Vec<Step> {
    if has_guests {
        let what =
            "The run started from champions of another run (guests); `atoll verify` recomputes its epochs:";
        return vec![Step::new(what, format!("atoll verify {run}"))];
    }
    let what = "In a new store, from `experiment.toml` next to this report:";
    let mut steps = vec![Step::new(what, "atoll run experiment.toml --store again")];
    for event in events {
        if let RunEvent::Extended { budget, .. } = event {
            let what = "Its budget was changed during the run:";
            steps.push(Step::new(what, format!("atoll extend {run} --store again{}", flags(budget))));
        }
    }
    let timed = events.iter().any(|event| matches!(event, RunEvent::Decided { .. }));
    if timed {
        let what = "The run ended at its wall-time limit, which is not reproducible; `atoll verify` recomputes its epochs:";
        steps.push(Step::new(what, format!("atoll verify {run}")));
    }
    steps
}

/// A budget as it is typed.
fn flags(budget: &str) -> String {
    let budget: serde_json::Map<String, Value> = serde_json::from_str(budget).unwrap_or_default();
    let flag = |(key, value): (&String, &Value)| {
        let value = value.as_str().map_or(value.to_string(), |text| format!("'{text}'"));
        format!(" --{} {value}", key.replace('_', "-"))
    };
    budget.iter().filter(|(_, value)| !value.is_null()).map(flag).collect()
}

fn next_steps(run: &Run, (problem, best): (&ProblemSpec, u32), flag: &str) -> Vec<Step> {
    let (id, more) = (&run.id, 2 * run.generations().max(1));
    let mut steps = vec![];
    match run.state.as_str() {
        "finished" => {
            let what = "Continue with a larger budget:";
            steps.push(Step::new(what, format!("atoll extend {id}{flag} --generations {more}")));
        }
        _ => steps.push(Step::new("Resume:", format!("atoll resume {id}{flag}"))),
    }
    match problem {
        ProblemSpec::Checkers(_) => {
            steps.push(Step::new("Play against its champion:", format!("atoll play {id}/{best}{flag}")));
            let what = "Play a match against `material`:";
            steps.push(Step::new(what, format!("atoll checkers match {id}/{best} material{flag}")));
            let what = "Find the species of its players:";
            steps.push(Step::new(what, format!("atoll checkers species {id}{flag}")));
        }
        ProblemSpec::LockKey(_) | ProblemSpec::Match3(_) => {
            let what = "Write its levels, and a page to play them on:";
            steps.push(Step::new(what, format!("atoll level ladder {id}{flag}")));
        }
        ProblemSpec::Maze(_) | ProblemSpec::Onemax(_) | ProblemSpec::Rastrigin(_) => {}
    }
    let what = "Verify stored data and recompute epochs:";
    steps.push(Step::new(what, format!("atoll verify {id}{flag}")));
    steps.push(Step::new("Every generation as CSV:", format!("atoll export {id}{flag}")));
    steps
}
