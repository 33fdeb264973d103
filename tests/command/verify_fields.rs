//! Every field of every stored object is changed, one at a time, and the object is written again with a true checksum:
//! `atoll verify` finds each change, but for times and labour.
//!
//! The fields are those that the format's own encoders write, so a new one is among them without being named here.

use crate::support::Place as Folder;
use archipelago::Remains;
use archipelago::job::JobResult;
use bincode::Encode;
use bincode::enc::EncoderImpl;
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use run::jobs::Results;
use run::record::{Commit, Labour, StoredCheckpoint};
use run::{Opening, Owner, Place, RunEvent, RunId, Summary};
use std::path::{Path, PathBuf};
use store::{Kind, Nonce, Store, object};

/// The writer's nonce and the digest of the event before, in front of every event.
const EVENT_HEAD: [usize; 2] = [16, 32];

/// The bytes of a value, and where each of its fields begins.
#[derive(Default)]
struct Fields {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Writer for Fields {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        if !bytes.is_empty() {
            self.starts.push(self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl Fields {
    fn of(value: &impl Encode) -> Self {
        let mut encoder = EncoderImpl::new(Self::default(), bincode::config::standard());
        value.encode(&mut encoder).unwrap();
        encoder.into_writer()
    }

    /// The first byte of each field, and the last of those that are longer than a number.
    fn places(&self) -> Vec<usize> {
        let ends = self.starts.iter().skip(1).copied().chain([self.bytes.len()]);
        let mut places: Vec<usize> = self
            .starts
            .iter()
            .zip(ends)
            .flat_map(|(&start, end)| if end - start > 8 { vec![start, end - 1] } else { vec![start] })
            .collect();
        places.dedup();
        places
    }
}

/// The fields of an object, if its kind has some, and the same without times and labour.
fn fields(place: &Place, body: &[u8]) -> Option<(Fields, Vec<u8>)> {
    fn of<T: Encode + bincode::Decode<()>>(
        body: &[u8],
        forget: impl Fn(&mut T),
    ) -> Option<(Fields, Vec<u8>)> {
        let mut value: T = codec::decode(body).ok()?;
        let fields = Fields::of(&value);
        forget(&mut value);
        Some((fields, codec::encode(&value).unwrap().to_vec()))
    }
    match place {
        Place::Event(_) => {
            let head: usize = EVENT_HEAD.iter().sum();
            let (mut fields, _) = of::<RunEvent>(body.get(head..)?, |_| {})?;
            fields.starts.iter_mut().for_each(|start| *start += head);
            fields.starts.splice(0..0, [0, EVENT_HEAD[0]]);
            fields.bytes = body.to_vec();
            Some((fields, body.to_vec()))
        }
        Place::Commit { .. } => of(body, |commit: &mut Commit| {
            let records = commit.islands.iter_mut().flat_map(|(_, records)| records);
            records.for_each(|record| record.labour = Labour::default());
        }),
        Place::State(_) => of(body, |_: &mut Remains| {}),
        Place::Checkpoint { .. } => of(body, |checkpoint: &mut StoredCheckpoint| {
            (checkpoint.elapsed, checkpoint.worker) = (0, String::new());
        }),
        Place::Jobs { .. } => of(body, |_: &mut Results| {}),
        Place::Summary(_) => of(body, |summary: &mut Summary| {
            (summary.outline.elapsed, summary.created) = (0, 0);
        }),
        Place::Artifact(name) if name.as_str().starts_with("job-") => of(body, |_: &mut JobResult| {}),
        // Guests and players are named by their digests.
        Place::Artifact(_) => Some((Fields { bytes: body.to_vec(), starts: vec![0] }, body.to_vec())),
        // The experiment is text; labels may be changed by anyone who may write, and no result depends on them.
        Place::Experiment | Place::Labels(_) => None,
    }
}

/// Changes every field of some objects of a run; returns how many were changed, and which changes were not found.
fn changes(folder: &Folder, run: &str, of: impl Fn(&Place) -> bool) -> (usize, Vec<String>) {
    let verify = || folder.run(&["verify", run, "--threads", "1"]);
    verify().expect(0);
    let (mut count, mut missed) = (0, vec![]);
    for file in folder.objects(run) {
        let place = place_of(&folder.store(), &file);
        if !of(&place) {
            continue;
        }
        let object: bytes::Bytes = std::fs::read(&file).unwrap().into();
        let Some(kind) = place.kind().or(matches!(place, Place::Artifact(_)).then_some(Kind::Artifact))
        else {
            continue;
        };
        let body = object::unseal(&object, kind).unwrap();
        let Some((known, lasting)) = fields(&place, &body) else { continue };
        assert_eq!(known.bytes, body, "{place:?} is encoded as it was stored");
        for at in known.places() {
            let mut changed = body.to_vec();
            changed[at] ^= 1;
            if fields(&place, &changed).is_some_and(|(_, changed)| changed == lasting) {
                continue;
            }
            count += 1;
            std::fs::write(&file, [&object::seal(kind, &changed)[..], &changed].concat()).unwrap();
            match verify().status.code() {
                Some(1 | 78) => {}
                code => missed.push(format!("{place:?}, byte {at} of {}: exit {code:?}", body.len())),
            }
        }
        std::fs::write(&file, &object).unwrap();
    }
    verify().expect(0);
    (count, missed)
}

fn place_of(store: &Path, file: &Path) -> Place {
    let path = file.strip_prefix(store).unwrap().to_str().unwrap();
    Place::of(&store::Path::from(path)).unwrap_or_else(|| panic!("{path} is an object")).1
}

/// Every change of a run's objects is found, and there are at least this number.
fn all_are_found(folder: &Folder, run: &str, of: impl Fn(&Place) -> bool, at_least: usize) {
    let (count, missed) = changes(folder, run, of);
    assert!(missed.is_empty(), "{} of {count} changes of {run} were not found: {missed:#?}", missed.len());
    assert!(count >= at_least, "only {count} changes of {run}");
}

const SMALL: &str = r#"
name = "small"
problem = { kind = "onemax", length = 12 }
algorithm = { kind = "ga", population = 4 }
islands = { count = 2 }
migration = { interval = 1, count = 1 }
budget = { generations = 2 }
"#;

fn run(text: &str) -> (Folder, String) {
    let folder = Folder::new();
    folder.write("plan.toml", text);
    let run = folder.json(&["run", "plan.toml", "--json"])["run"].as_str().unwrap().to_owned();
    (folder, run)
}

#[test]
fn every_change_of_a_finished_run_is_found() {
    let (folder, run) = run(SMALL);
    all_are_found(&folder, &run, |_| true, 120);
}

#[test]
fn every_change_of_an_asynchronous_run_is_found() {
    let (folder, run) = run(&SMALL.replace("count = 1 }", "count = 1, mode = \"asynchronous\" }"));
    all_are_found(&folder, &run, |place| matches!(place, Place::Commit { .. }), 60);
}

#[test]
fn every_change_of_a_sweep_is_found() {
    let (folder, run) = run(&format!(
        "{SMALL}\n[sweep]\naxis = [{{ keys = [\"algorithm.population\"], values = [4, 6] }}]\n"
    ));
    all_are_found(&folder, &run, |_| true, 40);
}

#[test]
fn every_change_of_a_study_is_found() {
    let (folder, run) = run(&format!("{SMALL}\n[study.first]\n[study.second]\nguests = \"first\"\n"));
    all_are_found(&folder, &run, |_| true, 20);
    let mut parts = folder.json(&["runs", "--json"]).as_array().unwrap().clone();
    parts.retain(|part| part["run"].as_str().unwrap().ends_with(".second"));
    let guests: Vec<PathBuf> = folder.objects(parts[0]["run"].as_str().unwrap());
    let guests = guests.iter().find(|file| file.ends_with("artifacts/guests")).unwrap();
    let object: bytes::Bytes = std::fs::read(guests).unwrap().into();
    let mut body = object::unseal(&object, Kind::Artifact).unwrap().to_vec();
    *body.last_mut().unwrap() ^= 1;
    std::fs::write(guests, [&object::seal(Kind::Artifact, &body)[..], &body].concat()).unwrap();
    folder.run(&["verify", parts[0]["run"].as_str().unwrap()]).expect(1);
}

#[test]
fn every_change_of_a_tournament_is_found() {
    let folder = Folder::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/store-v2");
    let copied = std::process::Command::new("cp").arg("-r").arg(golden).arg(folder.store()).status().unwrap();
    assert!(copied.success());
    all_are_found(&folder, "golden-games-50a88128", |_| true, 20);
}

/// A run that was interrupted in the middle of its second epoch.
async fn interrupted(store: &Store, id: &RunId) {
    let text = SMALL.replace("interval = 1", "interval = 4").replace("generations = 2", "generations = 8");
    let experiment = match experiment::parse("small.toml", &text, None) {
        Ok(experiment::Plan::Single(experiment)) => experiment,
        other => panic!("{other:?}"),
    };
    let opening = Opening { nonce: Nonce(7), now: 1, owner: Owner::default(), claim: None };
    let (mut open, _journal) = run::create(store, id, &experiment, None, opening).await.unwrap();
    let evolver = experiment.evolver();
    for _ in 0..2 {
        let assignment = open.assign().unwrap();
        let outcome = evolution::epoch::run(&*evolver, &assignment.task).unwrap();
        open.complete(&assignment.task, &outcome, Labour::default()).unwrap();
    }
    let assignment = open.assign().unwrap();
    let mut epoch = evolver.begin(&assignment.task).unwrap();
    epoch.generation();
    epoch.generation();
    open.note_checkpoint(&assignment.task, epoch.standing(), &epoch.checkpoint().unwrap(), Labour::default());
    open.take_everything().write(store).await.unwrap();
}

#[test]
fn every_change_of_an_unfinished_run_and_its_checkpoint_is_found() {
    let folder = Folder::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::local(folder.store()).await.unwrap();
        interrupted(&store, &RunId::new("small").unwrap()).await;
    });
    let checkpoints = folder
        .objects("small")
        .into_iter()
        .filter(|file| file.display().to_string().contains("/checkpoints/"));
    assert_eq!(checkpoints.count(), 1);
    let others = |place: &Place| matches!(place, Place::Checkpoint { .. } | Place::Event(_));
    all_are_found(&folder, "small", others, 20);
    assert_eq!(folder.json(&["verify", "small", "--json"])["state"], "stopped");
}
