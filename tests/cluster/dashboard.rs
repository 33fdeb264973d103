//! The dashboard of a real coordinator and of a store without one.

use crate::process::{Folder, Process, atoll, json, text, wait_until};
use crate::terminal::{Screen, Terminal};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const EXPERIMENT: &str = r#"
name = "shown"
seed = 5
problem = { kind = "maze", width = 20, height = 20, turns = 50 }
algorithm = { kind = "ga", population = 300, mutation = { rate = 0.3 } }
islands = { count = 4 }
migration = { interval = 20, count = 2 }
budget = { generations = 200 }
"#;

/// The reply to a GET, head and body.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

fn api(address: &str, path: &str) -> serde_json::Value {
    let reply = get(address, &format!("/api/v1/{path}"));
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {reply}");
    serde_json::from_str(body).unwrap()
}

/// `atoll dashboard` of a store, and where it is.
fn dashboard(folder: &Folder, store: &str) -> (Child, String) {
    let mut child = atoll()
        .args(["dashboard", "--store", store, "--listen", "127.0.0.1:0"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.strip_prefix("dashboard at http://").and_then(|rest| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    (child, address)
}

#[test]
fn a_cluster_is_shown_while_it_works_and_its_store_afterwards() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&["--lease", "1s"]);
    // What the API returns may be half a second old: the run lasts longer than that.
    let run = coordinator.submit(&EXPERIMENT.replace("generations = 200", "generations = 6000"));
    let explained = coordinator.command(&["explain", &run]);
    assert!(text(&explained.stdout).starts_with("No worker is connected."), "{}", text(&explained.stdout));
    let page = get(&coordinator.http, "/");
    assert!(
        page.contains(&format!("href=\"/runs/{run}\"")) && page.contains("no worker has joined"),
        "{page}"
    );

    // A worker that is killed is shown as silent once its lease is over.
    let victim = coordinator.worker(&["--name", "victim"]);
    let names = |state: &str| -> Vec<String> {
        let workers = api(&coordinator.http, "workers");
        let workers = workers["workers"].as_array().unwrap().iter().filter(|worker| worker["state"] == state);
        workers.map(|worker| worker["name"].as_str().unwrap().to_owned()).collect()
    };
    wait_until("the worker to be busy", || names("busy") == ["victim"]);
    victim.kill();
    let killed = Instant::now();
    wait_until("the worker to be silent", || names("silent") == ["victim"]);
    assert!(killed.elapsed() < Duration::from_secs(3), "a lease and 2 seconds: {:?}", killed.elapsed());

    let _worker = coordinator.worker(&["--name", "second"]);
    let digest = coordinator.digest(&run);
    let shown = api(&coordinator.http, &format!("runs/{run}"));
    assert_eq!(
        (shown["row"]["digest"].as_str(), &shown["why"]["cause"]),
        (Some(digest.as_str()), &"ended".into())
    );
    let page = get(&coordinator.http, &format!("/runs/{run}"));
    for word in ["Best fitness over the generations", "victim", &digest[..12]] {
        assert!(page.contains(word), "expected {word}");
    }
    let listed = text(&coordinator.command(&["workers"]).stdout);
    assert!(listed.contains("second") && listed.contains("silent"), "{listed}");
    let logged = text(&coordinator.command(&["logs", &run]).stdout);
    assert!(logged.contains("created") && logged.contains("finished"), "{logged}");

    // The store alone, copied elsewhere, shows the same as its report.
    let copied = std::process::Command::new("cp")
        .args(["-r", "atoll-store", "copy"])
        .current_dir(folder.path())
        .status();
    assert!(copied.unwrap().success());
    let report = json(&folder.atoll(&["report", &run, "--store", "copy", "--json"]));
    let (mut served, address) = dashboard(&folder, "copy");
    let stored = api(&address, &format!("runs/{run}"));
    for (key, of_report) in [
        ("best", "best_fitness"),
        ("evaluations", "evaluations"),
        ("done", "generations"),
        ("digest", "digest"),
    ] {
        assert_eq!(stored["row"][key].as_f64(), report[of_report].as_f64(), "{key}");
        assert_eq!(stored["row"][key].as_str(), report[of_report].as_str(), "{key}");
        assert_eq!(stored["row"][key], shown["row"][key], "{key}");
    }
    let champions = api(&address, &format!("runs/{run}/champions"));
    for (champion, island) in champions.as_array().unwrap().iter().zip(report["islands"].as_array().unwrap())
    {
        assert_eq!(champion["genome"].as_str().map(str::trim_end), island["champion"].as_str());
        assert_eq!(champion["generation"], island["champion_generation"]);
    }
    let page = get(&address, &format!("/runs/{run}"));
    assert!(page.contains("The best paths") && !page.contains("data-post"), "a store is only looked at");
    assert!(get(&address, "/workers").contains("without a coordinator"));
    served.kill().unwrap();
    served.wait().unwrap();
}

const MEASURED: &str = r#"
name = "measured"
seed = 3
problem = { kind = "checkers", depth = 1, games = 1, draw = { moves = 20 } }
algorithm = { kind = "es", parents = 2, offspring = 1 }
islands = { count = 2 }
migration = { interval = 2, count = 1 }
budget = { generations = 4 }
retention = { milestones = 1 }
yardstick = { opponents = ["material 1 plain"], pairs = 1 }
"#;

#[test]
fn the_strength_that_was_measured_is_shown_when_its_run_has_ended() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(MEASURED);
    let _worker = coordinator.worker(&[]);
    coordinator.digest(&run);
    let strength = api(&coordinator.http, &format!("runs/{run}/strength"));
    let newest = strength.as_array().unwrap().iter().filter_map(|one| one["epoch"].as_u64()).max();
    assert_eq!(newest, Some(1), "{strength}");
    let page = get(&coordinator.http, &format!("/runs/{run}"));
    assert!(page.contains("<dt>Elo</dt>"), "{page}");
    let (mut served, address) = dashboard(&folder, "atoll-store");
    let page = get(&address, &format!("/runs/{run}"));
    served.kill().unwrap();
    served.wait().unwrap();
    assert!(page.contains("<dt>Elo</dt>"), "{page}");
}

#[test]
fn an_open_stream_does_not_delay_the_end_of_a_coordinator() {
    let folder = Folder::new();
    let mut coordinator = folder.coordinator(&[]);
    coordinator.submit(EXPERIMENT);
    let mut streams = vec![];
    for number in 0..3 {
        let mut stream = TcpStream::connect(&coordinator.http).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        coordinator.submit(&EXPERIMENT.replace("shown", &format!("shown-{number}")));
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while line != "event: changed\n" {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0, "the stream ended");
        }
        streams.push(reader);
    }
    coordinator.process.signal(rustix::process::Signal::TERM);
    let asked = Instant::now();
    assert_eq!(coordinator.process.ended(), Some(143));
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
}

#[test]
fn a_viewers_token_looks_and_changes_nothing() {
    let folder = Folder::new();
    let [operator, viewer] = ["operator-token-0001", "viewer-token-000001"];
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let variables =
        vec![variable("ATOLL_OPERATOR_TOKENS", operator), variable("ATOLL_VIEWER_TOKENS", viewer)];
    let coordinator = folder.coordinator_with(&[], variables);
    let file = folder.file("shown.toml", EXPERIMENT);
    let with = |token: &str, arguments: &[&str]| {
        let url = coordinator.url();
        let mut command = atoll();
        command.args(arguments).args(["--coordinator", &url]).env("ATOLL_TOKEN", token);
        command.current_dir(folder.path()).output().unwrap()
    };
    let run = json(&with(operator, &["submit", &file, "--json"]))["run"].as_str().unwrap().to_owned();
    for looks in [&["explain", run.as_str()][..], &["workers"], &["logs", &run], &["runs"]] {
        let looked = with(viewer, looks);
        assert!(looked.status.success(), "{looks:?}: {}", text(&looked.stderr));
    }
    for acts in [&["submit", file.as_str()][..], &["pause", &run], &["cancel", &run], &["drain", "any"]] {
        let refused = with(viewer, acts);
        assert!(!refused.status.success(), "{acts:?}");
        assert!(text(&refused.stderr).contains("expected an operator's token"), "{}", text(&refused.stderr));
    }
    assert!(text(&with(viewer, &["explain", &run]).stdout).starts_with("No worker is connected."));
}

#[test]
fn a_whole_screen_and_followed_events_outlast_a_restart() {
    const SIZE: (u16, u16) = (20, 80);
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    // As many islands as fill the screen.
    let long =
        EXPERIMENT.replace("count = 4", "count = 60").replace("generations = 200", "generations = 1000000");
    let run = coordinator.submit(&long.replace("population = 300", "population = 10"));
    let _worker = coordinator.worker(&["--name", "steady"]);
    let command = |arguments: &[&str]| {
        let mut command = atoll();
        command.args(arguments).args(["--coordinator", &coordinator.url()]).current_dir(folder.path());
        command
    };
    let (mut screen, watch) = (Screen::new(SIZE), command(&["watch", &run]));
    let mut terminal = Terminal::of(watch, SIZE);
    let mut follow = command(&["logs", &run, "--follow"]);
    let mut follow = Process(follow.stdout(Stdio::piped()).spawn().unwrap());
    let mut followed = BufReader::new(follow.0.stdout.take().unwrap());
    let mut line = String::new();
    followed.read_line(&mut line).unwrap();
    assert!(line.contains("created"), "{line}");
    let shows =
        |rows: &[String]| rows[0].starts_with(&format!("{run}  running")) && rows[19].starts_with("Ctrl-C");
    terminal.wait_until(&mut screen, "a full screen with its headline", |rows| {
        shows(rows) && rows.iter().any(|row| row.contains("ISLANDS"))
    });
    let mut coordinator = coordinator;
    coordinator.process.0.kill().unwrap();
    terminal.wait_until(&mut screen, "what was seen last, and that no coordinator answers", |rows| {
        rows[0].starts_with(&run) && rows[19].starts_with("the coordinator does not respond")
    });
    let coordinator = coordinator.again();
    terminal.wait_until(&mut screen, "the run again", shows);
    assert!(coordinator.command(&["cancel", &run]).status.success());
    terminal.wait_for(&["cancelled"]);
    assert_eq!(terminal.ended(), Some(1));
    let mut rest = String::new();
    followed.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("cancelled"), "{rest}");
    assert_eq!(follow.ended(), Some(0));
}

/// A referee asks for everything that the description names, with names that are made up and with those of a run.
#[test]
fn schemathesis_finds_no_server_error() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(&EXPERIMENT.replace("generations = 200", "generations = 20"));
    let _worker = coordinator.worker(&["--name", "asked-for"]);
    coordinator.digest(&run);
    let program = crate::s3::environment("schemathesis").join("bin/schemathesis");
    let site = format!("http://{}", coordinator.http);
    let own = format!("[parameters]\n\"path.run\" = \"{run}\"\n\"path.worker\" = \"asked-for\"\n");
    for settings in ["", own.as_str()] {
        folder.file("schemathesis.toml", settings);
        let start = Instant::now();
        // Fewer requests than an address may send, and a stream never ends.
        let asked = std::process::Command::new(&program)
            .args(["run", &format!("{site}/api/v1/openapi.json"), "--url", &site, "--no-color"])
            .args(["--checks", "not_a_server_error", "--exclude-path", "/api/v1/stream"])
            .args(["--rate-limit", "80/s", "--max-time", "8", "--request-timeout", "5", "--no-shrink"])
            .args(["--generation-deterministic", "--continue-on-failure"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = text(&asked.stdout);
        assert!(asked.status.success(), "{said}{}", text(&asked.stderr));
        assert!(said.contains("/api/v1/runs"), "{said}");
        println!("{:?}: {}", start.elapsed(), said.lines().rev().take(12).collect::<Vec<_>>().join("\n"));
    }
    assert_eq!(api(&coordinator.http, &format!("runs/{run}"))["row"]["run"], run.as_str());
}

#[test]
fn watching_a_paused_run_ends_with_its_coordinator() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(EXPERIMENT);
    assert!(coordinator.command(&["pause", &run]).status.success());
    drop(coordinator);
    for arguments in [&["watch", run.as_str()][..], &["logs", &run, "--follow"]] {
        let ended = folder.atoll(arguments);
        let said = text(&ended.stderr);
        assert!(said.contains(&format!("no process works on {run}")), "{arguments:?}: {said}");
    }
}

/// A run of 10,000 epochs.
const LONG: &str = r#"
name = "long"
problem = { kind = "onemax", length = 64 }
algorithm = { kind = "ga", population = 4 }
islands = { count = 2 }
migration = { interval = 1, count = 1 }
budget = { generations = 5000 }
"#;

#[test]
fn a_page_of_a_hundred_long_runs_is_small_and_quick() {
    let folder = Folder::new();
    let file = folder.file("long.toml", LONG);
    std::thread::scope(|scope| {
        for half in [0..50, 50..100] {
            let (folder, file) = (&folder, &file);
            scope.spawn(move || {
                half.for_each(|seed: u32| {
                    let ran = folder.atoll(&["run", file, "--seed", &seed.to_string(), "--threads", "1"]);
                    assert!(ran.status.success(), "{ran:?}");
                });
            });
        }
    });
    let (mut served, address) = dashboard(&folder, "atoll-store");
    let timed = || {
        let start = Instant::now();
        (get(&address, "/"), start.elapsed())
    };
    let (_, cold) = timed();
    wait_until("all curves", || get(&address, "/").matches("class=\"chart spark\"").count() == 100);
    let mut warm: Vec<Duration> = (0..5).map(|_| timed().1).collect();
    warm.sort();
    let page = timed().0;
    served.kill().unwrap();
    served.wait().unwrap();
    assert!(page.contains("100 runs") && page.matches("\"state finished\"").count() == 100, "{page}");
    assert!(page.len() < 150_000, "{} bytes", page.len());
    assert!(cold < Duration::from_secs(2), "{cold:?} cold");
    assert!(warm[2] < Duration::from_millis(200), "{warm:?} warm");
}

#[test]
fn a_command_is_run_when_a_run_has_ended() {
    let folder = Folder::new();
    let mut coordinator = folder.coordinator(&["--notify-command", "cat >> told.jsonl"]);
    let told = || std::fs::read_to_string(folder.path().join("told.jsonl")).unwrap_or_default();
    let short = EXPERIMENT.replace("generations = 200", "generations = 5");
    let run = coordinator.submit(&short);
    let cancelled = coordinator.submit(&EXPERIMENT.replace("shown", "given-up"));
    assert!(coordinator.command(&["cancel", &cancelled]).status.success());
    wait_until("the notice of a cancelled run", || told().contains("\"state\":\"cancelled\""));
    let _worker = coordinator.worker(&[]);
    let digest = coordinator.digest(&run);
    wait_until("the notice of a finished run", || told().contains(&digest));
    assert!(coordinator.command(&["extend", &run, "--generations", "10"]).status.success());
    wait_until("another notice, as it was continued", || told().matches("finished").count() == 2);
    // The last one comes although the coordinator ends.
    let last = coordinator.submit(&EXPERIMENT.replace("shown", "last"));
    assert!(coordinator.command(&["cancel", &last]).status.success());
    coordinator.process.signal(rustix::process::Signal::TERM);
    assert_eq!(coordinator.process.ended(), Some(143));
    assert!(told().contains(&last), "{}", told());
}

#[test]
fn a_local_run_is_watched_without_a_coordinator() {
    let folder = Folder::new();
    let file = folder.file("shown.toml", EXPERIMENT);
    let mut running = atoll()
        .args(["run", &file, "--dashboard"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(running.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("dashboard at http://127.0.0.1:"), "{line}");
    let address = line.trim().trim_start_matches("dashboard at http://").trim_end_matches('/').to_owned();
    assert!(get(&address, "/").contains("<h1>Runs</h1>"));
    assert!(running.wait().unwrap().success());
    let watched = folder.atoll(&["watch", "latest"]);
    assert!(watched.status.success(), "{}", text(&watched.stderr));
    assert!(text(&watched.stdout).contains("digest"), "{}", text(&watched.stdout));
    let explained = text(&folder.atoll(&["explain", "latest"]).stdout);
    assert!(explained.starts_with("The run is finished: generation limit reached"), "{explained}");
    let refused = folder.atoll(&["dashboard", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("loopback"), "{}", text(&refused.stderr));
}

/// A page of a local run has the button that its advice names: `atoll pause` would need a coordinator.
#[test]
fn a_local_run_that_is_paused_on_its_page_is_resumed_there() {
    let folder = Folder::new();
    let file = folder.file("shown.toml", &EXPERIMENT.replace("generations = 200", "generations = 1000000"));
    let mut command = atoll();
    command.args(["run", &file, "--dashboard"]).current_dir(folder.path());
    let mut running = Running(command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    let mut lines = BufReader::new(running.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut after =
        |words: &str| lines.find_map(|line| line.strip_prefix(words).map(str::to_owned)).expect("the words");
    let address = after("dashboard at http://").trim_end_matches('/').to_owned();
    let run = after("run ").split(' ').next().unwrap().to_owned();
    for (action, state) in [("pause", "paused"), ("resume", "running")] {
        let mut stream = TcpStream::connect(&address).unwrap();
        let head =
            "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close";
        write!(stream, "POST /api/v1/runs/{run}/{action} HTTP/1.1\r\n{head}\r\n\r\n{{}}").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        wait_until(state, || api(&address, &format!("runs/{run}"))["row"]["state"] == state);
        if state == "paused" {
            let shown = api(&address, &format!("runs/{run}"))["why"]["advice"].as_str().unwrap().to_owned();
            let explained = text(&folder.atoll(&["explain", &run]).stdout);
            for advice in [shown, explained] {
                assert!(advice.contains("Resume it on the dashboard"), "{advice}");
            }
        }
    }
}

/// A process that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
