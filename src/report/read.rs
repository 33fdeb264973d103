//! From a store to what a report tells of a run.

use super::{checkers, found, levels, maze};
use crate::clock;
use crate::failure::Failure;
use crate::store_argument::StoreArgument;
use evolution::epoch::ChampionView;
use problems::ProblemSpec;
use report::run::{Champion, Epoch, Island, Loss, Run};
use report::{Section, Step};
use run::RunId;
use run::reader::Reader;
use run::record::EpochRecord;
use run::{Recorded, RunEvent, Status};
use serde_json::Value;
use store::Store;

/// A run that was read, and its champions.
pub(super) struct Read {
    id: RunId,
    reader: Reader,
    champions: Vec<Option<ChampionView>>,
    flag: String,
}

impl Read {
    pub(super) async fn of(store: &Store, run: &RunId, place: &StoreArgument) -> Result<Self, Failure> {
        let mut reader = Reader::read(store, run).await?;
        let mut champions = vec![];
        for island in 0..reader.islands() {
            champions.push(reader.champion(island).await);
        }
        Ok(Self { id: run.clone(), reader, champions, flag: place.flag() })
    }

    /// What its problem has to show.
    pub(super) async fn shown(&mut self) -> Vec<Section> {
        let problem = self.reader.experiment.file().problem.clone();
        let section = match &problem {
            ProblemSpec::Maze(spec) => found("The best walks", maze::blocks(spec, &self.fittest())),
            ProblemSpec::Checkers(spec) => {
                found("The champion", checkers::blocks(spec, &mut self.reader, &self.champions).await)
            }
            ProblemSpec::LockKey(_) | ProblemSpec::Match3(_) => {
                found("The levels", levels::blocks(&problem, &mut self.reader).await)
            }
            ProblemSpec::Onemax(_) | ProblemSpec::Rastrigin(_) => return vec![],
        };
        vec![section]
    }

    /// The champions of all islands with their islands, the fittest first, of equals the first.
    fn fittest(&self) -> Vec<(u32, &ChampionView)> {
        fittest(&self.champions)
    }

    pub(super) fn run(self) -> Run {
        let Self { id, reader, champions, flag } = self;
        let best = fittest(&champions).first().map_or(0, |(island, _)| *island);
        let state = reader.state();
        let Reader { experiment, events, records, damage, recorded, .. } = reader;
        let file = experiment.file();
        let (reason, digest) = ending(&recorded);
        let elapsed = elapsed(&events, &records);
        let islands = records.into_iter().zip(champions).zip(&experiment.setting().islands);
        let islands = islands.map(|((records, champion), setting)| Island {
            algorithm: word(&serde_json::json!(setting.algorithm)),
            epochs: records.into_iter().map(epoch).collect(),
            champion: champion.map(|view| shown_champion(&file.problem, &view)),
        });
        let edges = experiment.setting().edges.iter().map(|edge| (edge.from, edge.to)).collect();
        let mut run = Run {
            problem: word(&serde_json::json!(file.problem)),
            seed: experiment.seed(),
            state,
            reason,
            digest,
            experiment_digest: experiment.digest().to_string(),
            versions: versions(&events),
            absolute: experiment.traits().absolute,
            config: experiment.to_toml(),
            keys: keys(&serde_json::json!(file)),
            reproduce: reproduce(&id, &events, file.guests.is_some()),
            next: vec![],
            topology: (word(&serde_json::json!(file.islands.topology)), edges),
            islands: islands.collect(),
            elapsed,
            restarts: recorded.restarts(),
            losses: events.iter().flat_map(losses).collect(),
            events: events.iter().filter_map(told).collect(),
            damage: damage.iter().map(ToString::to_string).collect(),
            id: id.to_string(),
        };
        run.next = next_steps(&run, (&file.problem, best), &flag);
        run
    }
}

/// Champions with their islands, the fittest first, of equals the first.
pub(super) fn fittest(champions: &[Option<ChampionView>]) -> Vec<(u32, &ChampionView)> {
    let mut fittest: Vec<(u32, &ChampionView)> =
        (0..).zip(champions).filter_map(|(island, view)| Some((island, view.as_ref()?))).collect();
    fittest.sort_by(|(one, a), (other, b)| b.fitness.total_cmp(&a.fitness).then(one.cmp(other)));
    fittest
}

fn shown_champion(problem: &ProblemSpec, view: &ChampionView) -> Champion {
    let ChampionView { fitness, generation, genome } = view;
    Champion { fitness: *fitness, generation: *generation, genome: problem.show(genome) }
}

fn epoch(record: EpochRecord) -> Epoch {
    let EpochRecord { mark, statistics, labour } = record;
    Epoch {
        number: mark.epoch,
        standing: mark.standing,
        statistics,
        worker: labour.worker,
        milliseconds: labour.milliseconds,
        elapsed: labour.elapsed,
    }
}

/// A key that is a word, or a table with a `kind`.
pub(super) fn word(value: &Value) -> String {
    value.as_str().or(value["kind"].as_str()).unwrap_or("").to_owned()
}

/// Why a run ended, and its digest.
fn ending(recorded: &Recorded) -> (Option<String>, Option<String>) {
    let Recorded { status, finished, .. } = recorded;
    let end = finished.as_ref().and_then(|finished| finished.end.as_ref());
    let reason = match status {
        Status::Failed(reason) => Some(reason.clone()),
        _ => end.map(|end| end.reason.to_string()),
    };
    (reason, finished.as_ref().map(|finished| finished.digest.to_string()))
}

fn elapsed(events: &[RunEvent], records: &[Vec<EpochRecord>]) -> u64 {
    let last = records.iter().flatten().map(|record| record.labour.elapsed).max().unwrap_or(0);
    let finished = events.iter().rev().find_map(|event| match event {
        RunEvent::Finished { elapsed, .. } => Some(*elapsed),
        _ => None,
    });
    finished.unwrap_or(0).max(last)
}

fn versions(events: &[RunEvent]) -> Vec<String> {
    let mut versions: Vec<String> = vec![];
    for event in events {
        let version = match event {
            RunEvent::Created { version, .. } => Some(version),
            RunEvent::Opened { owner, .. } => Some(&owner.version),
            _ => None,
        };
        if let Some(version) = version
            && !versions.contains(version)
        {
            versions.push(version.clone());
        }
    }
    versions
}

fn losses(event: &RunEvent) -> Vec<Loss> {
    let told = |island: u32, epoch: u64, worker: &str, held: u64, reason: &str, at: u64| Loss {
        at: clock::show(at),
        work: format!("island {island}, epoch {epoch}"),
        worker: worker.to_owned(),
        milliseconds: held,
        reason: reason.to_owned(),
    };
    match event {
        RunEvent::Lost { island, epoch, worker, held, reason, at } => {
            vec![told(*island, *epoch, worker, *held, reason, *at)]
        }
        RunEvent::Expired { losses, reason, at } => {
            let all = losses.iter();
            all.map(|loss| told(loss.island, loss.epoch, &loss.worker, loss.held, reason, *at)).collect()
        }
        _ => vec![],
    }
}

/// What happened, and when. Losses have a table of their own.
fn told(event: &RunEvent) -> Option<(String, String)> {
    let (at, what) = match event {
        RunEvent::Created { version, semantics, at, .. } => {
            (at, format!("begun by version {version}, semantics {semantics}"))
        }
        RunEvent::Opened { owner, at, .. } => (at, format!("opened by {owner}, version {}", owner.version)),
        RunEvent::Retracted { reason, at, .. } => (at, format!("results were retracted: {reason}")),
        RunEvent::Extended { budget, at, .. } => (at, format!("its budget was changed to `{budget}`")),
        RunEvent::Decided { end, at } => {
            (at, format!("decided to end after epoch {}: {}", end.epoch, end.reason))
        }
        RunEvent::Finished { end, at, .. } => {
            let reason = end.as_ref().map_or("all jobs are done".to_owned(), |end| end.reason.to_string());
            (at, format!("finished: {reason}"))
        }
        RunEvent::Prioritised { priority, at } => (at, format!("its priority became {priority}")),
        RunEvent::Paused { at } => (at, "paused".to_owned()),
        RunEvent::Continued { at } => (at, "went on".to_owned()),
        RunEvent::Cancelled { at } => (at, "cancelled".to_owned()),
        RunEvent::Failed { reason, at } => (at, format!("failed: {reason}")),
        RunEvent::Lost { .. } | RunEvent::Expired { .. } => return None,
    };
    Some((clock::show(*at), what))
}

/// All keys of a table with their values, those of tables within it by their paths.
fn keys(value: &Value) -> Vec<(String, String)> {
    fn collect(path: &str, value: &Value, keys: &mut Vec<(String, String)>) {
        match value {
            Value::Object(table) => {
                for (key, value) in table {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    collect(&path, value, keys);
                }
            }
            Value::Null => {}
            other => keys.push((path.to_owned(), other.to_string())),
        }
    }
    let mut found = vec![];
    collect("", value, &mut found);
    found
}

fn reproduce(run: &RunId, events: &[RunEvent], has_guests: bool) -> Vec<Step> {
    if has_guests {
        let what = "It began with the champions of another run as guests; this computes its epochs again:";
        return vec![Step::new(what, format!("atoll verify {run}"))];
    }
    let what = "In a store of its own, from `experiment.toml` beside this report:";
    let mut steps = vec![Step::new(what, "atoll run experiment.toml --store again")];
    for event in events {
        if let RunEvent::Extended { budget, .. } = event {
            let what = "Its budget was changed on the way:";
            steps.push(Step::new(what, format!("atoll extend {run} --store again{}", flags(budget))));
        }
    }
    let timed = events.iter().any(|event| matches!(event, RunEvent::Decided { .. }));
    if timed {
        let what =
            "It ended by the clock, which runs differently every time; this computes its epochs again:";
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
            let what = "Let it play many games against a player that never changes:";
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
