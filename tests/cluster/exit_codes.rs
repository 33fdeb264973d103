//! What exit codes and termination messages mean to Kubernetes and systemd.

use crate::process::{DIGEST, EXPERIMENT, Folder, Process, atoll, json, text, wait_until, worker};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// As a batch job does: the coordinator brings its experiment, and ends with it.
fn job(file: &str) -> Vec<&str> {
    vec!["--run", file, "--exit-when-done", "--lease", "2s", "--termination-log", "coordinator.end"]
}

/// The termination message that a process has left, as the manifests name its file.
fn message(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(name)).unwrap()
}

/// Where a worker leaves its termination message.
fn log_of(folder: &Folder, name: &str) -> String {
    format!("--termination-log={}", folder.path().join(name).display())
}

#[test]
fn a_cancelled_run_is_5_for_everybody_and_no_restart_revives_it() {
    let folder = Folder::new();
    let file = folder.file("faults.toml", EXPERIMENT);
    let arguments = [&job(&file)[..], &["--linger", "2s"]].concat();
    let mut coordinator = folder.coordinator(&arguments);
    let mut worker = coordinator.worker(&[&log_of(&folder, "worker.end")]);
    coordinator.wait_for("atoll_results_accepted_total", 1.0);
    coordinator.wait_for("atoll_workers_wanted", 1.0);
    let run = json(&coordinator.command(&["runs", "--json"]))[0]["run"].as_str().unwrap().to_owned();
    assert!(coordinator.command(&["cancel", &run]).status.success());
    assert_eq!(worker.ended(), Some(5));
    assert_eq!(coordinator.process.ended(), Some(5));
    for name in ["worker.end", "coordinator.end"] {
        assert_eq!(message(&folder, name), format!("run {run} was cancelled\n"), "{name}");
    }

    let mut again = coordinator.again();
    let mut late = again.worker(&[]);
    assert_eq!(late.ended(), Some(5), "a pod that comes late ends as well");
    assert_eq!(again.process.ended(), Some(5));
    assert!(message(&folder, "coordinator.end").contains("start with --revive"));

    let revived = folder.coordinator(&[&arguments[..], &["--revive"]].concat());
    revived.wait_for("atoll_runs{state=\"active\"}", 1.0);
}

/// A supervisor replaces pods of a batch: what was cancelled in it stays so, also with `--revive`, and nothing waits for workers
/// that know.
#[test]
fn a_batch_is_revived_once_and_its_end_is_told_once() {
    let folder = Folder::new();
    let file = folder.file("faults.toml", EXPERIMENT);
    let stays = ["--linger", "1m", "--await-worker", "1m", "--revive"];
    let start = |batch: &str| {
        let variables = vec![("ATOLL_BATCH_ID".to_owned(), batch.to_owned())];
        folder.coordinator_with(&[&job(&file)[..], &stays].concat(), variables)
    };
    let coordinator = start("one");
    let mut worker = coordinator.worker(&[]);
    coordinator.wait_for("atoll_results_accepted_total", 1.0);
    assert!(coordinator.command(&["cancel", "latest"]).status.success());
    assert_eq!(worker.ended(), Some(5));
    let notified = folder.path().join("atoll-store/batches/one/notified");
    wait_until("the mark", || notified.exists());
    let began = Instant::now();
    let mut again = coordinator.restart();
    assert_eq!(again.process.ended(), Some(5), "{}", again.said());
    assert!(began.elapsed() < Duration::from_secs(45), "it waits for no other worker: {:?}", began.elapsed());

    let mut revived = start("two");
    revived.wait_for("atoll_runs{state=\"active\"}", 1.0);
    let mut worker = revived.worker(&[]);
    revived.wait_for("atoll_results_accepted_total", 1.0);
    assert!(revived.command(&["cancel", "latest"]).status.success());
    assert_eq!(worker.ended(), Some(5));
    // As if its node was drained: the run has ended, and how counts more than the signal.
    assert_eq!(terminated(&mut revived.process), Some(5));
    assert!(message(&folder, "coordinator.end").ends_with("was cancelled\n"));

    let mut refused = atoll();
    refused.args(["coordinator", "--print-config"]).env("ATOLL_BATCH_ID", "a/b").current_dir(folder.path());
    assert_eq!(refused.output().unwrap().status.code(), Some(78));
}

#[test]
fn what_is_submitted_while_a_batch_ends_is_done_first() {
    let quick = EXPERIMENT.replace("3000", "300");
    let endings = ["another run", "the same run, extended", "the same run, cancelled"].map(|what| {
        let folder = Folder::new();
        let is_cancelled = what.ends_with("cancelled");
        let file = folder.file("first.toml", if is_cancelled { EXPERIMENT } else { &quick });
        let coordinator = folder.coordinator(&[&job(&file)[..], &["--linger", "3s"]].concat());
        let mut worker = coordinator.worker(&[]);
        if is_cancelled {
            coordinator.wait_for("atoll_results_accepted_total", 1.0);
            assert!(coordinator.command(&["cancel", "latest"]).status.success());
        }
        assert_eq!(worker.ended(), Some(if is_cancelled { 5 } else { 0 }), "{what}");
        let more = match what {
            "another run" => {
                let second = folder.file("second.toml", &quick.replace("faults", "second"));
                coordinator.command(&["submit", &second])
            }
            "the same run, cancelled" => coordinator.command(&["submit", &file]),
            _ => coordinator.command(&["extend", "latest", "--generations", "600"]),
        };
        assert!(more.status.success(), "{what}: {}", text(&more.stderr));
        (what, folder, coordinator, Instant::now())
    });
    for (what, folder, mut coordinator, submitted) in endings {
        // It does not end with what it began with.
        let later = Duration::from_secs(5).saturating_sub(submitted.elapsed());
        std::thread::sleep(later);
        assert!(!coordinator.has_ended(), "{what}: {}", coordinator.said());
        let mut worker = coordinator.worker(&[]);
        assert_eq!(worker.ended(), Some(0), "{what}: {}", coordinator.said());
        assert_eq!(coordinator.process.ended(), Some(0), "{what}: {}", coordinator.said());
        let runs = json(&folder.atoll(&["runs", "--json"]));
        let runs = runs.as_array().unwrap();
        assert_eq!(runs.len(), if what == "another run" { 2 } else { 1 });
        assert!(runs.iter().all(|run| run["state"] == "finished"), "{what}: {runs:?}");
        if what.ends_with("extended") {
            assert_eq!(runs[0]["generations"], 600, "{runs:?}");
        }
    }
}

#[test]
fn a_failed_run_is_4_for_everybody() {
    // No worker has the engine or the endgame database, so that every one of them fails.
    let engine = "name = \"engines\"\n[tournament]\nformat = \"gauntlet\"\nopenings = 1\ndepth = 1\n\
                  [[tournament.players]]\nname = \"gambler\"\nplayer = \"random\"\n\
                  [[tournament.players]]\nname = \"other\"\nengine = \"absent\"\n";
    let database = format!(
        "name = \"six\"\n[problem]\nkind = \"checkers\"\nendgame = {{ pieces = 6, digest = \"{}\" }}\n\
         [algorithm]\nkind = \"es\"\n[budget]\ngenerations = 1\n",
        "0".repeat(64)
    );
    for (plan, reason) in [(engine, "absent"), (&database, "endgame database of 6 pieces")] {
        let folder = Folder::new();
        let file = folder.file("plan.toml", plan);
        let mut coordinator = folder.coordinator(&job(&file));
        let mut workers = [0; 3].map(|_| coordinator.worker(&[&log_of(&folder, "worker.end")]));
        assert_eq!(coordinator.process.ended(), Some(4), "{reason}");
        for worker in &mut workers {
            assert_eq!(worker.ended(), Some(4), "{reason}");
        }
        for name in ["worker.end", "coordinator.end"] {
            assert!(message(&folder, name).contains(reason), "{}", message(&folder, name));
        }
    }
}

#[test]
fn a_coordinator_that_cannot_begin_ends_its_workers_with_78() {
    let folder = Folder::new();
    let bad = folder.file("bad.toml", "name = \"x\"\nproblem = { kind = \"chess\" }\n");
    let good = folder.file("good.toml", EXPERIMENT);
    let unknown = folder.file("unknown.toml", "leese = \"15s\"\n");
    for arguments in [
        vec!["--run", &bad, "--store", "somewhere"],
        vec!["--run", &good, "--store", "/proc/no-store-can-be-here"],
        vec!["--run", &good, "--lease", "1ms"],
        vec!["--run", &good, "--config", &unknown],
    ] {
        let common = ["--exit-when-done", "--linger", "2s", "--termination-log", "coordinator.end"];
        let mut coordinator = folder.coordinator(&[&arguments[..], &common].concat());
        // Kubernetes sees that it lives, and sends nothing but its workers to it.
        assert!(coordinator.page("/healthz").starts_with("HTTP/1.1 200"), "{arguments:?}");
        wait_until("why it is not ready", || {
            coordinator.page("/readyz").ends_with("cannot start: see the log\n")
        });
        let mut worker = coordinator.worker(&[&log_of(&folder, "worker.end")]);
        assert_eq!(worker.ended(), Some(78), "{arguments:?}");
        assert_eq!(coordinator.process.ended(), Some(78), "{arguments:?}");
        let reason = message(&folder, "coordinator.end");
        let told = ["chess", "/proc/no-store", "lease (flag --lease): expected at least 100ms", "leese"];
        assert!(told.iter().any(|told| reason.contains(told)), "{reason}");
        assert!(message(&folder, "worker.end").ends_with(&reason), "{reason}");
    }
}

/// The reason travels in a header, and a client rejects headers that are too long.
#[test]
fn a_reason_that_is_long_reaches_workers_too() {
    let folder = Folder::new();
    let keys: Vec<String> = (0..90).map(|number| format!("unknown_{number} = {number}\n")).collect();
    let bad = folder.file("bad.toml", &format!("name = \"x\"\n{}", keys.concat()));
    let mut coordinator = folder.coordinator(&[&job(&bad)[..], &["--linger", "2s"]].concat());
    let mut worker = coordinator.worker(&[&log_of(&folder, "worker.end"), "--give-up-after", "2m"]);
    assert_eq!(worker.ended(), Some(78), "{}", message(&folder, "worker.end"));
    assert_eq!(coordinator.process.ended(), Some(78));
    for name in ["worker.end", "coordinator.end"] {
        let told = message(&folder, name);
        assert!(told.contains("unknown_0") && told.len() <= 4096, "{name}: {told}");
    }
}

/// Pods start at different times: two Jobs know nothing of each other.
#[test]
fn a_coordinator_that_cannot_begin_stays_until_one_worker_was_told() {
    let folder = Folder::new();
    let bad = folder.file("bad.toml", "name = \"x\"\nproblem = { kind = \"chess\" }\n");
    let good = folder.file("good.toml", &EXPERIMENT.replace("3000", "300"));
    folder.file("occupied", "no store can be here");
    let stays = ["--exit-when-done", "--linger", "0s", "--await-worker", "2m"];
    for arguments in [["--run", &bad], ["--run", &good]] {
        let store = if arguments[1] == bad { "somewhere" } else { "occupied" };
        let mut coordinator = folder.coordinator(&[&arguments, &stays[..], &["--store", store]].concat());
        wait_until("the reason", || coordinator.said().contains("cannot start"));
        // An operator that looks is not a worker that ends.
        assert!(!coordinator.command(&["runs"]).status.success());
        let mut worker = coordinator.worker(&[]);
        assert_eq!(worker.ended(), Some(78), "{arguments:?}");
        assert_eq!(coordinator.process.ended(), Some(78), "{arguments:?}");
    }
    let arguments = [&["--run", &good], &stays[..]].concat();
    let mut first = folder.coordinator(&arguments);
    let mut worker = first.worker(&[]);
    assert_eq!((worker.ended(), first.process.ended()), (Some(0), Some(0)));
    let mut again = first.again();
    again.wait_for("atoll_runs{state=\"finished\"}", 1.0);
    let mut late = again.worker(&[]);
    assert_eq!((late.ended(), again.process.ended()), (Some(0), Some(0)), "{}", again.said());
}

/// A Job would start the coordinator again for more than an hour, and its workers would wait in vain.
#[test]
fn a_store_that_does_not_answer_ends_the_batch_on_both_sides() {
    let folder = Folder::new();
    let file = folder.file("good.toml", EXPERIMENT);
    // Nothing listens there.
    let variables = [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "nowhere"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let store = ["--store", "s3://clusters/absent", "--give-up-after", "4s", "--await-worker", "1m"];
    let mut coordinator = folder.coordinator_with(&[&job(&file)[..], &store].concat(), variables);
    assert!(coordinator.page("/healthz").starts_with("HTTP/1.1 200"), "it is not killed meanwhile");
    let mut worker = coordinator.worker(&[&log_of(&folder, "worker.end"), "--give-up-after", "1m"]);
    assert_eq!(worker.ended(), Some(78), "{}", coordinator.said());
    assert_eq!(coordinator.process.ended(), Some(78));
    let reason = message(&folder, "coordinator.end");
    assert!(
        reason.contains("the store could not be opened for") && reason.contains("s3://clusters/absent"),
        "{reason}"
    );
    assert!(message(&folder, "worker.end").ends_with(&reason), "{reason}");
}

/// What a service rejects will be rejected again, unlike an outage.
#[test]
fn a_bucket_that_is_missing_or_denied_ends_the_batch_at_once() {
    for (status, code) in [("404 Not Found", "NoSuchBucket"), ("403 Forbidden", "AccessDenied")] {
        let service = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", service.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in service.incoming().map_while(Result::ok) {
                let _ = stream.read(&mut [0; 4096]);
                let body = format!("<Error><Code>{code}</Code></Error>");
                let head = format!(
                    "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all([head, body].concat().as_bytes());
            }
        });
        let folder = Folder::new();
        let file = folder.file("good.toml", EXPERIMENT);
        let variables = [
            ("AWS_ENDPOINT_URL", url.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "nowhere"),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let store = ["--store", "s3://clusters/absent", "--give-up-after", "20m", "--linger", "2s"];
        let mut coordinator = folder.coordinator_with(&[&job(&file)[..], &store].concat(), variables);
        let mut worker = coordinator.worker(&["--give-up-after", "20m"]);
        assert_eq!(worker.ended(), Some(78), "{code}: {}", coordinator.said());
        assert_eq!(coordinator.process.ended(), Some(78), "{code}");
        let reason = message(&folder, "coordinator.end");
        assert!(reason.contains(code) && reason.contains("check that the bucket exists"), "{reason}");
    }
}

#[test]
fn a_coordinator_whose_certificates_cannot_be_read_ends_its_workers_with_78() {
    let folder = Folder::new();
    let good = folder.file("good.toml", EXPERIMENT);
    assert!(folder.atoll(&["certs", "--to", "secrets"]).status.success());
    let authority = folder.path().join("secrets/ca.pem").display().to_string();
    let broken = folder.file("broken.pem", "none");
    for certificate in ["absent.pem", &broken] {
        let key = ["--tls-cert", certificate, "--tls-key", "secrets/coordinator-key.pem", "--linger", "2s"];
        let mut coordinator = folder.coordinator(&[&job(&good)[..], &key].concat());
        assert!(coordinator.page("/healthz").starts_with("HTTP/1.1 200"), "{certificate}");
        let url = format!("https://{}", coordinator.address);
        let mut worker = worker(&url, &["--tls-ca", &authority, &log_of(&folder, "worker.end")]);
        assert_eq!(worker.ended(), Some(78), "{certificate}");
        assert_eq!(coordinator.process.ended(), Some(78), "{certificate}");
        let reason = message(&folder, "coordinator.end");
        assert!(reason.starts_with("tls_cert (flag --tls-cert): "), "{reason}");
        let told = message(&folder, "worker.end");
        assert!(told.contains("it does not speak TLS"), "{told}");
    }
}

#[test]
fn a_coordinator_whose_workers_can_never_work_is_78_and_one_without_workers_is_6() {
    let folder = Folder::new();
    let file = folder.file("faults.toml", EXPERIMENT);
    let arguments = [&job(&file)[..], &["--give-up-after", "1s"]].concat();
    let tokens = |right: &str| (format!("ATOLL_{right}_TOKENS"), format!("0123456789-{right}"));
    let variables = vec![tokens("WORKER"), tokens("OPERATOR")];
    let mut coordinator = folder.coordinator_with(&arguments, variables);
    let mut worker = coordinator.worker(&[&log_of(&folder, "worker.end")]);
    assert_eq!(worker.ended(), Some(78));
    assert_eq!(coordinator.process.ended(), Some(78));
    for name in ["worker.end", "coordinator.end"] {
        let reason = "expected a worker's token, found none";
        assert!(message(&folder, name).contains(reason), "{}", message(&folder, name));
    }

    let mut lonely = folder.coordinator(&arguments);
    assert_eq!(lonely.process.ended(), Some(6));
    assert_eq!(message(&folder, "coordinator.end"), "no worker was there for 1 s (`give_up_after`)\n");
}

/// A worker's Job fails with its first pod that exits with 78, and ends the others: the coordinator must not wait for them.
#[test]
fn a_worker_that_cannot_start_ends_its_batch() {
    let text = EXPERIMENT.replace("generations = 3000", "generations = 100000000");
    let start = |folder: &Folder| {
        let file = folder.file("faults.toml", &text);
        folder.coordinator(&[&job(&file)[..], &["--give-up-after", "6s"]].concat())
    };
    let batches = [
        (["--config", "unknown.toml"], "thread"),
        (["--memory-mib", "much"], "memory_mib (flag --memory-mib)"),
        (["--engines", "absent.toml"], "absent.toml"),
    ];
    let batches = batches.map(|([flag, value], reason)| {
        let folder = Folder::new();
        let unknown = folder.file("unknown.toml", "thread = 3\n");
        let value = if flag == "--config" { &unknown } else { value };
        let coordinator = start(&folder);
        let end = log_of(&folder, "worker.end");
        let worker = coordinator.worker(&[flag, value, "--give-up-after", "1m", &end]);
        (folder, coordinator, worker, reason)
    });
    // A Job ends its other workers, too.
    let folder = Folder::new();
    let mut coordinator = start(&folder);
    let mut other = coordinator.worker(&[]);
    wait_until("a worker", || coordinator.said().contains("joined"));
    let mut wrong = coordinator.worker(&["--memory-mib", "much", "--give-up-after", "1m"]);
    assert_eq!(wrong.ended(), Some(78));
    assert_eq!(terminated(&mut other), Some(143));
    for (folder, mut coordinator, mut worker, reason) in batches {
        assert_eq!(worker.ended(), Some(78), "{reason}");
        assert_eq!(coordinator.process.ended(), Some(78), "{reason}: {}", coordinator.said());
        let told = message(&folder, "coordinator.end");
        assert!(told.starts_with("a worker cannot start: ") && told.contains(reason), "{told}");
        // What others send stays on one line.
        let own = message(&folder, "worker.end");
        assert!(told.trim_end().ends_with(&own.trim_end().replace('\n', " ")), "{told}");
    }
    assert_eq!(coordinator.process.ended(), Some(78), "{}", coordinator.said());
}

#[test]
fn workers_that_trust_another_authority_end_their_batch() {
    let folder = Folder::new();
    let file = folder.file("faults.toml", EXPERIMENT);
    for name in ["own", "other"] {
        assert!(folder.atoll(&["certs", "--to", name]).status.success());
    }
    let tls = ["--tls-cert", "own/coordinator.pem", "--tls-key", "own/coordinator-key.pem"];
    let mut coordinator = folder.coordinator(&[&job(&file)[..], &["--give-up-after", "4s"], &tls].concat());
    let authority = folder.path().join("other/ca.pem").display().to_string();
    let mut worker = coordinator.worker(&["--tls-ca", &authority, "--give-up-after", "1m"]);
    assert_eq!(worker.ended(), Some(78));
    assert_eq!(coordinator.process.ended(), Some(78), "{}", coordinator.said());
    let told = message(&folder, "coordinator.end");
    assert!(told.contains("does not trust the certificate of this coordinator"), "{told}");
}

/// The Job of workers ends all of them when one exits with 78: its reason counts more than that none is left.
#[test]
fn a_worker_that_is_rejected_beside_others_is_the_reason_once_they_have_gone() {
    let folder = Folder::new();
    let file = folder.file("long.toml", &EXPERIMENT.replace("3000", "3000000"));
    let arguments = [&job(&file)[..], &["--give-up-after", "2s"]].concat();
    let tokens = |right: &str| (format!("ATOLL_{right}_TOKENS"), format!("0123456789-{right}"));
    let mut coordinator = folder.coordinator_with(&arguments, vec![tokens("WORKER"), tokens("OPERATOR")]);
    let token = folder.file("token", "0123456789-WORKER\n");
    let mut honest = coordinator.worker(&["--token-file", &token]);
    wait_until("a worker", || coordinator.said().contains("joined"));
    let mut rejected = coordinator.worker(&[]);
    assert_eq!(rejected.ended(), Some(78));
    assert!(!coordinator.has_ended(), "others work");
    assert_eq!(terminated(&mut honest), Some(143));
    assert_eq!(coordinator.process.ended(), Some(78), "{}", coordinator.said());
    let reason = message(&folder, "coordinator.end");
    assert!(reason.contains("expected a worker's token, found none"), "{reason}");
}

#[test]
fn the_results_of_every_kind_of_run_are_exported() {
    let experiment = EXPERIMENT.replace("3000", "50");
    let games = "[tournament]\ndepth = 1\nopenings = 1\n\
                 [[tournament.players]]\nname = \"gambler\"\nplayer = \"random\"\n\
                 [[tournament.players]]\nname = \"counter\"\nplayer = \"material\"\n";
    let tournament = format!("name = \"games\"\nseed = 1\n{games}");
    let sweep = format!("{experiment}\n[[sweep.axis]]\nkeys = [\"problem.turns\"]\nvalues = [5, 6]\n");
    for (name, text, files) in [
        ("experiment", experiment.as_str(), ["report.html", "champions.csv"]),
        ("sweep", sweep.as_str(), ["report.html", "report.md"]),
        ("tournament", tournament.as_str(), ["index.html", "games.pdn"]),
    ] {
        let folder = Folder::new();
        let file = folder.file("plan.toml", text);
        let mut coordinator = folder.coordinator(&[&job(&file)[..], &["--export", "results"]].concat());
        let mut worker = coordinator.worker(&[]);
        assert_eq!(worker.ended(), Some(0), "{name}");
        assert_eq!(coordinator.process.ended(), Some(0), "{name}: {}", coordinator.said());
        let runs: Vec<_> = std::fs::read_dir(folder.path().join("results")).unwrap().collect();
        let [run] = &runs[..] else { panic!("{name}: {runs:?}") };
        for file in files {
            assert!(run.as_ref().unwrap().path().join(file).is_file(), "{name}: {file}");
        }
    }
    let folder = Folder::new();
    let file = folder.file("plan.toml", &experiment);
    folder.file("occupied", "no folder can be here");
    let mut coordinator = folder.coordinator(&[&job(&file)[..], &["--export", "occupied"]].concat());
    let mut worker = coordinator.worker(&[]);
    assert_eq!(worker.ended(), Some(0));
    assert_eq!(coordinator.process.ended(), Some(1), "another pod may succeed");
    assert!(message(&folder, "coordinator.end").starts_with("the results cannot be exported: "));
}

/// The name of a tournament follows from its players: the file alone does not say what to export.
#[test]
fn a_batch_takes_player_files_along_and_exports_games_of_stored_champions() {
    let folder = Folder::new();
    let evolved = "name = \"evolved\"\nproblem = { kind = \"checkers\", depth = 1, games = 1, draw = { moves = 30 } }\n\
                   algorithm = { kind = \"es\", parents = 4, offspring = 4 }\nislands = { count = 2 }\n\
                   migration = { interval = 1 }\nbudget = { generations = 2 }\n";
    let network =
        checkers::Network::new(checkers::NodeKind::Sum, &vec![0.1; checkers::NodeKind::Sum.weight_count()]);
    let saved = folder.path().join("saved.acp");
    std::fs::write(&saved, network.unwrap().to_player_file()).unwrap();
    let players = [("champion", "evolved".to_owned()), ("saved", saved.display().to_string())];
    let players = players
        .map(|(name, player)| format!("[[tournament.players]]\nname = \"{name}\"\nplayer = \"{player}\"\n"));
    let games = |players: &[String]| {
        let counter = "[[tournament.players]]\nname = \"counter\"\nplayer = \"material\"\n";
        format!("name = \"games\"\n[tournament]\nopenings = 1\ndepth = 1\n{}{counter}", players.concat())
    };
    let study = format!(
        "name = \"study\"\n{}\n[study.first]\nseed = 1\n{}",
        evolved.split_once('\n').unwrap().1,
        games(&players[1..]).split_once('\n').unwrap().1
    );
    for (name, text, exported) in [
        ("evolved", evolved.to_owned(), 1),
        ("games of a champion", games(&players[..1]), 2),
        ("games of a file", games(&players[1..]), 3),
        ("study", study, 5),
    ] {
        let file = folder.file("plan.toml", &text);
        let mut coordinator = folder.coordinator(&[&job(&file)[..], &["--export", "results"]].concat());
        let mut worker = coordinator.worker(&[]);
        assert_eq!(worker.ended(), Some(0), "{name}: {}", coordinator.said());
        assert_eq!(coordinator.process.ended(), Some(0), "{name}: {}", message(&folder, "coordinator.end"));
        let runs = std::fs::read_dir(folder.path().join("results")).unwrap();
        assert_eq!(runs.count(), exported, "{name}");
    }
}

#[test]
fn probes_are_answered_while_results_are_exported_and_a_stop_is_obeyed() {
    let folder = Folder::new();
    let file = folder.file("quick.toml", &EXPERIMENT.replace("3000", "300"));
    let mut coordinator = folder.coordinator(&[&job(&file)[..], &["--export", "results"]].concat());
    let mut run = String::new();
    wait_until("the run", || {
        let listed = json(&coordinator.command(&["runs", "--json"]));
        run = listed[0]["run"].as_str().unwrap_or_default().to_owned();
        !run.is_empty()
    });
    // A disk that takes nothing: to open a pipe for writing is to wait for a reader.
    let results = folder.path().join("results").join(&run);
    std::fs::create_dir_all(&results).unwrap();
    let pipe = results.join("champions.csv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut worker = coordinator.worker(&[]);
    assert_eq!(worker.ended(), Some(0));
    wait_until("the export", || coordinator.said().contains("exporting the results"));
    assert!(coordinator.page("/healthz").starts_with("HTTP/1.1 200"), "it lives");
    assert!(coordinator.page("/readyz").starts_with("HTTP/1.1 503"), "no worker is sent to it");
    assert_eq!(terminated(&mut coordinator.process), Some(143), "a Job does not count it");
    assert_eq!(message(&folder, "coordinator.end"), "stopped by SIGTERM; nothing is lost\n");

    std::fs::remove_file(&pipe).unwrap();
    let mut again = coordinator.again();
    assert_eq!(again.process.ended(), Some(0), "the next pod exports: {}", again.said());
    assert!(pipe.is_file() && results.join("report.html").is_file());
}

#[test]
fn a_finished_run_is_0_for_everybody_also_for_who_comes_late() {
    let folder = Folder::new();
    let file = folder.file("quick.toml", &EXPERIMENT.replace("3000", "300"));
    let mut coordinator = folder.coordinator(&[&job(&file)[..], &["--linger", "4s"]].concat());
    let mut early = coordinator.worker(&[&log_of(&folder, "worker.end")]);
    assert_eq!(early.ended(), Some(0));
    assert_eq!(message(&folder, "worker.end"), "all runs are finished\n");
    assert_eq!(coordinator.metric("atoll_runs{state=\"finished\"}"), 1.0);
    let mut late = coordinator.worker(&[]);
    assert_eq!(late.ended(), Some(0), "it has missed everything");
    assert_eq!(coordinator.process.ended(), Some(0));

    let mut again = folder.coordinator(&job(&file));
    assert_eq!(again.process.ended(), Some(0), "a job that is started again finds everything done");
    assert_eq!(message(&folder, "coordinator.end"), "all runs are finished\n");
}

#[test]
fn sigterm_is_143_within_10_seconds_and_the_work_goes_on() {
    let folder = Folder::new();
    let file = folder.file("faults.toml", EXPERIMENT);
    let mut coordinator = folder.coordinator(&job(&file));
    let mut first = coordinator.worker(&[&log_of(&folder, "worker.end")]);
    coordinator.wait_for("atoll_results_accepted_total", 2.0);
    assert_eq!(terminated(&mut first), Some(143));
    assert_eq!(message(&folder, "worker.end"), "stopped by SIGTERM; nothing is lost\n");
    let mut second = coordinator.worker(&[]);
    coordinator.wait_for("atoll_results_accepted_total", 4.0);
    assert_eq!(terminated(&mut coordinator.process), Some(143));
    assert_eq!(message(&folder, "coordinator.end"), "stopped by SIGTERM; nothing is lost\n");
    let mut coordinator = coordinator.again();
    assert_eq!(second.ended(), Some(0), "it has waited for the next coordinator");
    assert_eq!(coordinator.process.ended(), Some(0));
    let listed = json(&folder.atoll(&["runs", "--json"]));
    assert_eq!(listed[0]["digest"], DIGEST.as_str());
}

fn terminated(process: &mut Process) -> Option<i32> {
    let start = Instant::now();
    process.signal(Signal::TERM);
    let code = process.ended();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    code
}

#[test]
fn a_wrong_command_line_is_2_and_its_reason_is_told() {
    let folder = Folder::new();
    for arguments in [
        &["worker", "--thread", "3", "--termination-log", "end"][..],
        &["coordinator", "--termination-log=end", "--leese"],
        &["batch", "--termination-log", "end"],
    ] {
        let _ = std::fs::remove_file(folder.path().join("end"));
        assert_eq!(folder.atoll(arguments).status.code(), Some(2), "{arguments:?}");
        assert!(message(&folder, "end").starts_with("error: "), "{arguments:?}: {}", message(&folder, "end"));
    }
    let engines = folder.atoll(&["worker", "--engines", "absent.toml"]);
    assert_eq!(engines.status.code(), Some(78));
    let said = text(&engines.stderr);
    assert!(said.contains("engines (flag --engines): file not found: absent.toml"), "{said}");
}

#[test]
fn what_is_wrong_for_good_is_78() {
    let folder = Folder::new();
    let config = folder.file("wrong.toml", "leese = \"15s\"\n");
    let experiment = folder.file("experiment.toml", "name = \"x\"\nproblem = { kind = \"chess\" }\n");
    for arguments in [
        ["coordinator", "--config", &config],
        ["worker", "--config", &config],
        ["coordinator", "--run", &experiment],
        ["coordinator", "--run", "not-there.toml"],
        ["coordinator", "--linger", "long"],
    ] {
        let output = folder.atoll(&arguments);
        assert_eq!(output.status.code(), Some(78), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// As in the images, which have no shell.
#[test]
fn a_command_that_nothing_can_run_is_told_at_the_start() {
    let folder = Folder::new();
    let mut command = atoll();
    command.args(["coordinator", "--notify-command", "cat", "--print-config"]).current_dir(folder.path());
    assert!(command.output().unwrap().status.success());
    let refused = command.env("PATH", folder.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(78));
    assert!(
        text(&refused.stderr).contains("notify_command (flag --notify-command): expected a system with `sh`")
    );
}

/// There is no coordinator to be informed, so nothing is waited for, and the reason is given once.
#[test]
fn a_worker_whose_address_is_none_ends_at_once_and_says_why_once() {
    let folder = Folder::new();
    for url in ["htp://127.0.0.1:9", "127.0.0.1:9", "http://", "http://127.0.0.1:port"] {
        let start = Instant::now();
        let output = folder.atoll(&["worker", "--coordinator", url, "--give-up-after", "1m"]);
        assert_eq!(output.status.code(), Some(78), "{url}");
        let said = text(&output.stderr);
        assert_eq!(said.matches(&format!("found `{url}`")).count(), 1, "{said}");
        assert!(start.elapsed() < Duration::from_secs(30), "{url}: it waited {:?}", start.elapsed());
    }
}

#[test]
fn a_worker_that_finds_no_coordinator_gives_up_with_6() {
    let mut lonely = worker("http://127.0.0.1:9", &["--give-up-after", "300ms"]);
    assert_eq!(lonely.ended(), Some(6));
}

/// Expects JSON in every line.
fn expect_json(lines: &str) {
    assert!(!lines.is_empty());
    for line in lines.lines() {
        let logged: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(logged["level"].is_string(), "{line}");
    }
}

#[test]
fn logs_for_machines_are_json_from_the_first_line_to_the_last() {
    let folder = Folder::new();
    let experiment = folder.file("experiment.toml", "name = \"x\"\nproblem = { kind = \"chess\" }\n");
    let listen = ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let coordinator = [&["coordinator", "--run", &experiment], &listen[..]].concat();
    for (arguments, level, code) in [
        (coordinator.clone(), "info", 78),
        (vec!["worker", "--coordinator", "http://127.0.0.1:9", "--give-up-after", "300ms"], "info", 6),
        // No filter keeps the reason out, and one that is misspelt is a reason.
        (coordinator.clone(), "off", 78),
        (coordinator, "loud", 78),
    ] {
        let mut command = atoll();
        let variables = [("ATOLL_LOG_FORMAT", "json"), ("ATOLL_LOG", level)];
        let ended = command.args(&arguments).envs(variables).current_dir(folder.path()).output();
        let ended = ended.unwrap();
        assert_eq!(ended.status.code(), Some(code), "{}", text(&ended.stderr));
        expect_json(&text(&ended.stderr));
        assert!(text(&ended.stderr).lines().last().unwrap().contains(&format!("\"exit_code\":{code}")));
    }
    let variables = vec![("ATOLL_LOG_FORMAT".to_owned(), "json".to_owned())];
    let mut coordinator = folder.coordinator_with(&[], variables);
    wait_until("a coordinator", || coordinator.page("/readyz").starts_with("HTTP/1.1 200"));
    assert_eq!(terminated(&mut coordinator.process), Some(143));
    wait_until("its last line", || coordinator.said().contains("stopping"));
    expect_json(&coordinator.said());
}

#[test]
fn logs_for_machines_tell_run_island_epoch_worker_and_lease_apart() {
    let folder = Folder::new();
    let variables = vec![("ATOLL_LOG_FORMAT".to_owned(), "json".to_owned())];
    let coordinator = folder.coordinator_with(&["--lease", "300ms"], variables);
    let run = coordinator.submit(EXPERIMENT);
    let worker = coordinator.worker(&["--name", "doomed"]);
    coordinator.wait_for("atoll_grants_total", 1.0);
    worker.signal(Signal::STOP);
    wait_until("a lease that expires", || coordinator.said().contains("lease expired"));
    let line = coordinator.said().lines().find(|line| line.contains("lease expired")).unwrap().to_owned();
    let fields = serde_json::from_str::<serde_json::Value>(&line).unwrap()["fields"].clone();
    assert_eq!((&fields["run"], &fields["worker"]), (&run.into(), &"doomed".into()), "{line}");
    assert!(fields["island"].is_u64() && fields["epoch"].is_u64() && fields["lease"].is_u64(), "{line}");
    assert!(fields["reason"].as_str().unwrap().contains("not renewed in time"), "{line}");
    let quiet = atoll().args(["runs", "--coordinator", &coordinator.url()]).output().unwrap();
    assert!(quiet.status.success());
}
