//! Everything that is read from a file: with mistakes it is refused, and nothing panics, hangs or takes all memory.

use crate::mutate::{Mutator, rounds, try_out};
use bytes::Bytes;
use checkers::{Book, Ensemble, Network, NodeKind, PlayerFile, Position};
use run::{FinishedRun, RunHead, RunId};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;
use store::object::{self, Kind};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn corpus<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Vec<u8>> {
    texts.into_iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

#[test]
fn plans() {
    let mut plans: Vec<Vec<u8>> =
        files(&repository().join("examples")).iter().map(|path| std::fs::read(path).unwrap()).collect();
    plans.extend(corpus([crate::support::MAZE, crate::support::RASTRIGIN, ""]));
    // Large sweeps are rightly large: their counts are checked elsewhere.
    try_out("plans", 40, &plans, |input| drop(experiment::parse("fuzz.toml", &text(input), None)));
    let paths = corpus(["islands.override[0].migration", "budget.generations", "a.b.c[12]"]);
    try_out("key paths", 2000, &paths, |input| drop(text(input).parse::<experiment::document::KeyPath>()));
    let times = corpus(["15s", "1h 30m", "250ms", "never", "2 days"]);
    try_out("durations", 2000, &times, |input| drop(experiment::duration::parse(&text(input))));
}

#[test]
fn games_and_positions() {
    let sample = std::fs::read(repository().join("shared/checkers/tests/data/sample.pdn")).unwrap();
    let pdn =
        vec![sample, b"[Event \"a\"]\n[FEN \"W:W32:B1\"]\n\n1. 32-28 {good} (1. 32-27) 1-5 *\n".to_vec()];
    try_out("PDN", 400, &pdn, |input| drop(checkers::read_pdn(&text(input))));
    let fens = corpus(["W:W21-32:B1-12", "B:WK29,3:BK1,K4.", "W:W:B1"]);
    try_out("FEN", 5000, &fens, |input| drop(text(input).parse::<Position>()));
    let moves = corpus(["11-15", "22x15x8", "9x18", "1-5"]);
    try_out("moves", 5000, &moves, |input| drop(Position::START.parse_move(&text(input))));
    let positions = corpus(["Wbbbbbbbbbbbbeeeeeeeewwwwwwwwwwww", "Beeeeeeeeeeeeeeeeeeeeeeeeeeeeeewb"]);
    try_out("Hub positions", 5000, &positions, |input| drop(hub::parse_position(&text(input))));
    try_out("Hub moves", 5000, &moves, |input| drop(hub::parse_move(&Position::START, &text(input))));
    let books = corpus(["11-15 3\n11-15 23-19 2\n", "# a book\n9-13 22-18 1\n"]);
    try_out("books", 2000, &books, |input| drop(Book::parse(&text(input))));
}

#[test]
fn hub_commands() {
    let lines = corpus([
        "hub\ninit\nnew-game\npos pos=Wbbbbbbbbbbbbeeeeeeeewwwwwwwwwwww moves=\"11-15 22-18\"\nlevel depth=2\ngo think\n",
        "hub\nset-param name=variant value=english\ninit\nlevel nodes=100\ngo analyze\nfoo\nstop\nping\nquit\n",
        "level move-time=0.001\ngo ponder\nponder-hit\nlevel moves=3 time=0.01 inc=0\ngo think\nquit\n",
    ]);
    let settings = hub::EngineSettings { depth: 2, ..hub::EngineSettings::default() };
    try_out("Hub", 150, &lines, |input| {
        let mut player = checkers::PlayerSpec::Random.build();
        drop(hub::serve(std::io::Cursor::new(input.to_vec()), std::io::sink(), &mut *player, &settings));
    });
}

#[test]
fn levels_and_boards() {
    let boards = corpus(["3 2 2\n1 0 2\n0 1 1\n", "0,0,1\n2,1,0\n", "AAB\nBCA\nCAB\n", "......\n.@..1.\n"]);
    try_out("maze boards", 2000, &boards, |input| drop(text(input).parse::<maze::Board>()));
    try_out("goals", 2000, &corpus(["coins", "points", "sum 5"]), |input| {
        drop(text(input).parse::<maze::Goal>());
    });
    try_out("match-3 boards", 2000, &boards, |input| drop(text(input).parse::<match3::Board>()));
    let board = match3::Board::from_seed(&match3::Rules::default(), 1);
    let level = match3::Level::of_board(board).unwrap().to_json(None, None).to_string();
    try_out("match-3 levels", 1500, &[level.into_bytes()], |input| {
        drop(match3::Level::from_json(&text(input)));
    });
    let sample = std::fs::read(repository().join("shared/lockkey/tests/data/seed-2024.txt")).unwrap();
    try_out("lock-and-key levels", 500, std::slice::from_ref(&sample), |input| {
        drop(text(input).parse::<lockkey::Level>());
    });
    let json = text(&sample).parse::<lockkey::Level>().unwrap().to_json(None).to_string().into_bytes();
    try_out("lock-and-key files", 1000, &[json], |input| drop(lockkey::Level::from_json(&text(input))));
}

#[test]
fn player_files() {
    let network = |kind: NodeKind| Arc::new(Network::new(kind, &vec![0.25; kind.weight_count()]).unwrap());
    let networks = [NodeKind::Sum, NodeKind::Weighted].map(network);
    let ensemble = Ensemble::new(networks.to_vec()).unwrap();
    let mut corpus: Vec<Vec<u8>> = networks.iter().map(|network| network.to_player_file()).collect();
    corpus.push(ensemble.to_player_file());
    try_out("player files", 1000, &corpus, |input| drop(PlayerFile::from_bytes(input)));
    let references = vec![b"maze-1/3@7".to_vec(), b"maze-1".to_vec()];
    try_out("references", 2000, &references, |input| drop(text(input).parse::<run::players::Reference>()));
}

/// The objects of the stored runs: their places below the store, and what is in them.
fn stored() -> Vec<(PathBuf, Vec<u8>)> {
    let store = repository().join("tests/data/store-v2");
    let objects = files(&store).into_iter().map(|path| {
        let bytes = std::fs::read(&path).unwrap();
        (path.strip_prefix(&store).unwrap().to_owned(), bytes)
    });
    objects.collect()
}

#[test]
fn stored_objects() {
    let objects = stored();
    let bytes: Vec<Vec<u8>> = objects.iter().map(|(_, bytes)| bytes.clone()).collect();
    try_out("objects", 2000, &bytes, |input| {
        let object = Bytes::copy_from_slice(input);
        for kind in Kind::ALL {
            drop(object::unseal(&object, kind));
        }
    });
}

/// The kind that an object says it is.
fn kind(object: &[u8]) -> Kind {
    let number = u16::from_le_bytes([object[10], object[11]]);
    Kind::ALL.into_iter().find(|kind| *kind as u16 == number).unwrap()
}

/// Keeps an object in a store: sealed again, if it is one, and as text otherwise.
async fn keep(store: &Store, place: &Path, original: &[u8], body: &[u8]) {
    let path = store::Path::from(place.to_str().unwrap());
    let kept = if original.starts_with(b"ATOLLOBJ") {
        store.create(&path, kind(original), body.to_vec()).await
    } else {
        store.create_text(&path, &text(body)).await
    };
    kept.unwrap();
}

/// What an object holds, without its seal.
fn body(object: &[u8]) -> Vec<u8> {
    object.strip_prefix(b"ATOLLOBJ").map_or(object, |_| &object[object::HEADER_LEN..]).to_vec()
}

#[test]
fn stored_runs_with_changed_objects() {
    let objects = stored();
    let bodies: Vec<Vec<u8>> = objects.iter().map(|(_, bytes)| body(bytes)).collect();
    let mut mutator = Mutator::new("runs");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for round in 0..rounds(150) {
        let changed = mutator.below(objects.len());
        let mut corpus = vec![bodies[changed].clone(); bodies.len()];
        corpus.extend(bodies.iter().cloned());
        let mutated = mutator.mutated(&corpus);
        let read = std::panic::catch_unwind(|| {
            runtime.block_on(async {
                let store = Store::memory();
                for (number, (place, bytes)) in objects.iter().enumerate() {
                    let body = if number == changed { &mutated } else { &bodies[number] };
                    keep(&store, place, bytes, body).await;
                }
                read_everything(&store).await;
            });
        });
        let place = objects[changed].0.display();
        assert!(read.is_ok(), "round {round} panics with a changed {place}: {mutated:?}");
    }
}

/// How a coordinator starts on such a store.
fn settings() -> coordinator::CoordinatorSettings {
    coordinator::CoordinatorSettings {
        terms: coordinator::leases::Terms::default(),
        nonce: store::Nonce(7),
        version: "fuzz".to_owned(),
        exit_when_done: false,
        revive: false,
        give_up_after: None,
        batch: String::new(),
        address: String::new(),
        takeover_after: None,
        reload: None,
        finish: None,
        traces: None,
        max_runs: 10,
        only_submitted: false,
        permissions: coordinator::Permissions::default(),
        tls: None,
        first: None,
        trial: None,
        linger: std::time::Duration::ZERO,
        await_worker: std::time::Duration::ZERO,
        audit: coordinator::AuditTerms::default(),
        inline: true,
        dashboard: coordinator::dashboard::DashboardSettings::default(),
    }
}

/// Reads every run of a store in every way, and starts a coordinator on it.
async fn read_everything(store: &Store) {
    for run in ["golden-aa062d6d", "golden-sweep-802584f1", "golden-games-50a88128"] {
        let run = RunId::new(run).unwrap();
        drop(run::Summary::newest(store, &run).await);
        drop(FinishedRun::read(store, &run).await.map(|finished| finished.best().map(|(island, _)| island)));
        drop(run::export::read(store, &run).await.map(|export| export.object()));
        if let Ok(head) = RunHead::read(store, &run).await {
            drop(head.restore(store, &run).await.map(|_| ()));
        }
        if let Ok(mut reader) = run::reader::Reader::read(store, &run).await {
            for island in 0..reader.islands().min(4) {
                drop(reader.newest_state(island).await);
                drop(reader.champion(island).await);
            }
        }
        let text = store.read_text(&run::Place::Experiment.in_run(&run), 1 << 20).await;
        let plan = text.ok().and_then(|text| experiment::parse("experiment.toml", &text, None).ok());
        if let Some(plan) = plan.and_then(archipelago::cell::CellPlan::of) {
            drop(run::jobs::StoredJobs::read(store, &run, plan).await);
        }
        drop(run::repair::Repair::plan(store, &run).await.map(|repair| repair.is_needed()));
    }
    // Whatever its runs are like, it starts.
    let (_, background) = coordinator::start(store.clone(), &settings(), || 0).await.unwrap();
    background.abort();
}
