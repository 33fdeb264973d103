//! Real processes that are killed, or run out of room, while they write.
//!
//! This binary starts itself again as the process that suffers: the environment says as which.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::Path as FsPath;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use store::{Created, Kind, Path, Store, StoreError, number};

const ROLE: &str = "STORE_TEST_ROLE";
const FOLDER: &str = "STORE_TEST_FOLDER";
const ROUND: &str = "STORE_TEST_ROUND";
const KILLS: u32 = 20;

#[tokio::main]
async fn main() {
    // Test runners ask what there is before they run it.
    let asked = |argument: &str| std::env::args().any(|given| given == argument);
    if asked("--list") {
        if !asked("--ignored") {
            println!("processes: test");
        }
        return;
    }
    match std::env::var(ROLE).as_deref() {
        Ok("writer") => write_until_killed().await,
        Ok("limited") => fill_up_to_a_file_size_limit().await,
        Ok("full") => fill(&open().await, "No space left on device").await,
        _ => {
            a_killed_writer_leaves_only_whole_objects().await;
            running_into_a_file_size_limit_is_an_error();
            running_out_of_space_is_an_error();
        }
    }
}

async fn a_killed_writer_leaves_only_whole_objects() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..KILLS {
        let acknowledged = kill_at_some_moment(folder.path(), round);
        let store = Store::existing(folder.path()).await.unwrap();
        for epoch in 0..=acknowledged {
            let body = store.read(&written(round, epoch), Kind::IslandState).await.unwrap();
            assert!(body == body_of(round, epoch), "object {epoch} of round {round} has another's body");
        }
        check_all_whole(&store).await;
    }
    sweep_all(&Store::local(folder.path()).await.unwrap()).await;
    assert_eq!(staging_files(folder.path()), 0);
    println!("test a_killed_writer_leaves_only_whole_objects ... ok");
}

/// Kills a writer after a number of objects and a further moment, both drawn from the round, and returns the last
/// epoch that it said was written.
fn kill_at_some_moment(folder: &FsPath, round: u32) -> u32 {
    let mut writer = start("writer", folder, round);
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let random = blake3::hash(&round.to_le_bytes());
    let objects = random.as_bytes()[0] % 12 + 1;
    let heard = lines.by_ref().take(objects.into()).map(Result::unwrap).last().unwrap();
    // Work of a random amount: up to some milliseconds, in which the writer continues.
    let moment = usize::from(random.as_bytes()[1]) * 40_000;
    std::hint::black_box(blake3::hash(&vec![0; moment]));
    writer.kill().unwrap();
    writer.wait().unwrap();
    let last = lines.map(Result::unwrap).filter(|line| line.ends_with('.')).last().unwrap_or(heard);
    last.trim_end_matches('.').parse().unwrap()
}

async fn check_all_whole(store: &Store) {
    for path in store.list(&Path::default()).await.unwrap() {
        let mut numbers = path.as_ref().rsplit('/').map_while(number::parse);
        let (Some(epoch), Some(island)) = (numbers.next(), numbers.next()) else { panic!("{path}") };
        assert!(
            store.read(&path, Kind::IslandState).await.unwrap() == body_of(island as u32, epoch as u32),
            "{path}"
        );
    }
}

async fn sweep_all(store: &Store) {
    let before = store.list(&Path::default()).await.unwrap();
    store.sweep(&Path::default(), Duration::ZERO).await.unwrap();
    assert_eq!(store.list(&Path::default()).await.unwrap(), before);
}

async fn write_until_killed() {
    let store = open().await;
    let round = std::env::var(ROUND).unwrap().parse().unwrap();
    for epoch in 0.. {
        let created = store.create(&written(round, epoch), Kind::IslandState, body_of(round, epoch)).await;
        assert_eq!(created.unwrap(), Created::New);
        println!("{epoch}.");
    }
}

fn written(round: u32, epoch: u32) -> Path {
    Path::from(format!("killed/{}/{}", number::digits(round.into()), number::digits(epoch.into())))
}

/// Up to 2 MiB that no other object holds.
fn body_of(round: u32, epoch: u32) -> Vec<u8> {
    let seed = blake3::hash(&[round.to_le_bytes(), epoch.to_le_bytes()].concat());
    let length = u16::from_le_bytes([seed.as_bytes()[0], seed.as_bytes()[1]]);
    seed.as_bytes().repeat(usize::from(length))
}

fn running_into_a_file_size_limit_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let output = start("limited", folder.path(), 0).wait_with_output().unwrap();
    check_child("running_into_a_file_size_limit_is_an_error", &output);
}

/// In a mount namespace of its own, where even an ordinary user may mount a file system of two megabytes.
fn running_out_of_space_is_an_error() {
    const NAME: &str = "running_out_of_space_is_an_error";
    const MOUNT: &str = "mount -t tmpfs -o size=2m tmpfs \"$1\"";
    let folder = tempfile::tempdir().unwrap();
    let in_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-ec", script, "sh"]);
        command.arg(folder.path()).arg(std::env::current_exe().unwrap());
        command.env(ROLE, "full").env(FOLDER, folder.path()).output()
    };
    match in_namespace(MOUNT) {
        Ok(output) if output.status.success() => {
            check_child(NAME, &in_namespace(&format!("{MOUNT}; exec \"$2\"")).unwrap());
        }
        refused => println!("test {NAME} ... skipped, this system lets us mount nothing: {refused:?}"),
    }
}

fn check_child(name: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}, {said}", output.status);
    println!("test {name} ... ok");
}

async fn fill_up_to_a_file_size_limit() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = Some(100_000);
    setrlimit(Resource::Fsize, Rlimit { current: limit, maximum: limit }).unwrap();
    fill(&open().await, "File too large").await;
}

/// Writes objects, each twice as long as the last, until there is no room; then nothing may be half there, and
/// after something was deleted, writing continues.
async fn fill(store: &Store, reason: &str) {
    let path = |n: u32| Path::from(format!("full/{}", number::digits(n.into())));
    let body = |n: u32| vec![n as u8; 1000 << n];
    let mut written = 0;
    let error = loop {
        match store.create(&path(written), Kind::Jobs, body(written)).await {
            Ok(_) if written < 20 => written += 1,
            Ok(_) => panic!("there was room for everything"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert!(error.to_string().contains(reason), "{error}");
    assert!(written > 3, "{written}");

    assert_eq!(store.list(&Path::from("full")).await.unwrap(), (0..written).map(path).collect::<Vec<_>>());
    for n in 0..written {
        assert_eq!(store.read(&path(n), Kind::Jobs).await.unwrap(), body(n));
    }
    assert_eq!(staging_files(FsPath::new(&std::env::var(FOLDER).unwrap())), 0);
    store.delete(&path(3)).await.unwrap();
    assert_eq!(store.create(&path(3), Kind::Jobs, body(3)).await.unwrap(), Created::New);
}

async fn open() -> Store {
    Store::local(std::env::var(FOLDER).unwrap()).await.unwrap()
}

fn start(role: &str, folder: &FsPath, round: u32) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, role).env(FOLDER, folder).env(ROUND, round.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn staging_files(folder: &FsPath) -> usize {
    let count = |entry: std::fs::DirEntry| match entry.path() {
        path if path.is_dir() => staging_files(&path),
        path => usize::from(path.to_string_lossy().contains('#')),
    };
    std::fs::read_dir(folder).unwrap().map(Result::unwrap).map(count).sum()
}
