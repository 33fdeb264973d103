//! Whatever a person, a disk or a file does wrong is a clear error with the right exit code: nothing panics, hangs or is
//! lost.

use crate::support::{Place, finish, with_checkpoints};
use evolution::digest::Digest;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const SMALL: &str = r#"name = "small"
problem = { kind = "onemax", length = 16 }
algorithm = { kind = "ga", population = 12 }
islands = { count = 3 }
migration = { interval = 5 }
budget = { generations = 20 }
"#;

/// A file is refused with 78 by every command that reads it, and each of these things is said.
fn refused(text: impl AsRef<[u8]>, said: &[&str]) {
    let place = Place::new();
    place.write("wrong.toml", text);
    for command in ["run", "check"] {
        place.run(&[command, "wrong.toml"]).expect_error(78, said);
    }
    assert!(!place.store().exists(), "nothing was begun");
}

fn small_but(from: &str, to: &str) -> String {
    let text = SMALL.replace(from, to);
    assert_ne!(text, SMALL, "{from} is in it");
    text
}

#[test]
fn misspelt_and_unknown_keys() {
    refused(
        small_but("population", "popluation"),
        &["wrong.toml:3:", "popluation", "did you mean `population`?"],
    );
    refused(small_but("islands", "isles"), &["wrong.toml:4:1", "unknown key `isles`"]);
    refused(small_but("onemax", "onemacs"), &["wrong.toml:2:", "onemacs", "`onemax`"]);
    refused(small_but("count = 3", "count = 3, topology = \"rung\""), &["wrong.toml:4:", "rung", "ring"]);
}

#[test]
fn wrong_types_and_ranges() {
    refused(small_but("population = 12", "population = \"many\""), &["wrong.toml:3:", "many"]);
    refused(small_but("generations = 20", "generations = 1.5"), &["wrong.toml:6:", "1.5"]);
    refused(small_but("generations = 20", "generations = -1"), &["wrong.toml:6:", "-1"]);
    refused(small_but("count = 3", "count = 0"), &["wrong.toml:4:", "count", "0"]);
    refused(small_but("small", "Not A Name"), &["wrong.toml:1:", "Not A Name"]);
    refused(small_but("generations = 20", "wall_time = \"soon\""), &["wrong.toml:6:", "soon", "30s"]);
    refused(small_but("budget = { generations = 20 }", "budget = {}"), &["wrong.toml:6:", "never end"]);
}

#[test]
fn every_error_is_told_at_once() {
    let text = "name = \"Bad Name\"\nseed = -1\n[problem]\nkind = \"onemax\"\nlenght = 10\n[algorithm]\nkind = \"ga\"\n\
                population = \"many\"\n[budget]\ngenerations = 1.5\nstagnatoin = 3\nwall_time = \"soon\"\n";
    let places = [
        "wrong.toml:1:",
        "Bad Name",
        "wrong.toml:2:",
        "wrong.toml:5:",
        "wrong.toml:8:",
        "wrong.toml:10:",
        "wrong.toml:11:",
        "wrong.toml:12:",
        "soon",
    ];
    refused(text, &places);
    refused(text, &["did you mean `length`?", "did you mean `stagnation`?"]);
    // And those that only show when the keys are looked at together.
    let text = small_but("interval = 5", "interval = 5, count = 40")
        .replace("count = 3", "count = 3, topology = \"hypercube\"");
    refused(text, &["wrong.toml:4:", "power of two"]);
}

#[test]
fn islands_smaller_than_the_migrants() {
    refused(small_but("interval = 5", "interval = 5, count = 13"), &["wrong.toml:5:", "at most 12", "`13`"]);
    // There are no emigrants from a single island, so there it does not matter.
    let place = Place::new();
    let text = small_but("interval = 5", "interval = 5, count = 13").replace("count = 3", "count = 1");
    place.write("one.toml", text);
    assert_eq!(place.json(&["run", "one.toml", "--json"])["generations"], 20);
}

#[test]
fn one_island_and_no_generations() {
    let place = Place::new();
    place.write("one.toml", small_but("count = 3", "count = 1"));
    place.write("none.toml", small_but("generations = 20", "generations = 0"));
    assert_eq!(place.json(&["run", "one.toml", "--json"])["evaluations"], 12 * 21);
    let none = place.json(&["run", "none.toml", "--json"]);
    assert_eq!((&none["generations"], &none["evaluations"]), (&0.into(), &36.into()));
    let run = none["run"].as_str().expect("a run");
    assert_eq!(place.json(&["verify", run, "--json"])["ok"], true);
    assert_eq!(place.json(&["extend", run, "--generations", "5", "--json"])["generations"], 5);
}

const VARIANTS: &str = r#"name = "variants"
problem = { kind = "maze", turns = 5 }
algorithm = { kind = "ga" }
budget = {}
[sweep]
report = "maze-study"
[sweep.variants.one]
algorithm.population = "4 * problem.turns"
budget.generations = 2
[sweep.variants.other]
problem.operators.kind = "path"
budget.generations = "0.4 * problem.turns"
"#;

#[test]
fn variants_of_a_sweep() {
    let but = |from: &str, to: &str| {
        assert!(VARIANTS.contains(from), "{from}");
        VARIANTS.replace(from, to)
    };
    let generations = "wrong.toml:12:22: budget.generations";
    refused(VARIANTS, &[generations, "2.0"]);
    refused(but("0.4 * problem.turns", "4 * problem.trns"), &[generations, "found `problem.trns`"]);
    refused(but("0.4 * problem.turns", "4 * problem.kind"), &[generations, "found `problem.kind`"]);
    refused(but("0.4 * problem.turns", "many"), &[generations, "many"]);
    refused(but("variants.other", r#"variants."\u0007 it's""#), &[generations, "2.0"]);
    refused(but("0.4 * problem", "-4 * problem"), &[generations, "-20"]);
    refused(
        but("[sweep.variants.other]", "[sweep.variants.other]\nseed = 1"),
        &["wrong.toml:11:", "`seed`", "`repeats`"],
    );
    refused(
        but("[sweep.variants.other]", "[sweep.variants]\nthird = 3\n[sweep.variants.other]"),
        &["third", "`3`"],
    );
    refused(but("kind = \"maze\", turns", "kind = \"onemax\", length"), &["wrong.toml:"]);
    let onemax = "name = \"x\"\nproblem = { kind = \"onemax\" }\nalgorithm = { kind = \"ga\" }\nbudget = { generations = 1 }\n\
                  [sweep]\nreport = \"maze-study\"\n";
    refused(onemax, &["wrong.toml:6:", "sweep.report", "`variants`", "`maze`"]);
}

/// What would have no effect is refused.
#[test]
fn operators_of_the_problem_beside_those_of_the_algorithm() {
    let text = |algorithm: &str| {
        format!(
            "name = \"x\"\nproblem = {{ kind = \"maze\", operators = {{ kind = \"path\" }} }}\nbudget = {{ generations = 1 }}\n\
             algorithm = {{ {algorithm} }}\n"
        )
    };
    refused(
        text("kind = \"ga\", mutation = { rate = 0.3 }"),
        &["wrong.toml:4:", "algorithm.mutation", "`operators`"],
    );
    refused(
        text("kind = \"crowding\", crossover = { kind = \"one-point\" }"),
        &["wrong.toml:4:", "algorithm.crossover"],
    );
    let place = Place::new();
    place.write("right.toml", text("kind = \"ga\", population = 20"));
    let run = place.json(&["run", "right.toml", "--json"])["run"].as_str().expect("a run").to_owned();
    assert_eq!(place.json(&["verify", &run, "--json"])["ok"], true);
}

#[test]
fn boards_in_an_experiment() {
    let text = |board: &str| {
        format!(
            "name = \"x\"\nalgorithm = {{ kind = \"ga\", population = 20 }}\nbudget = {{ generations = 1 }}\n\
             problem = {{ kind = \"maze\", turns = 3, board = {board:?} }}\n"
        )
    };
    refused(text("12\n3@5"), &["wrong.toml:4:", "problem.board", "expected rows of 2 cells", "`3`"]);
    refused(text("@"), &["problem.board", "expected a board of 2 to 16384 cells"]);
    refused(text("#\n@"), &["problem.board", "expected a cell to move to"]);
    let place = Place::new();
    place.write("right.toml", text("9#\n@1"));
    assert_eq!(place.json(&["run", "right.toml", "--json"])["best_fitness"], 10.0, "up, back, right");
}

#[test]
fn files_that_are_no_experiments() {
    refused("", &["wrong.toml", "name"]);
    refused("name = ", &["wrong.toml:1:"]);
    refused([0x6e, 0x61, 0x0a, 0xff, 0xfe], &["wrong.toml:2:1", "UTF-8", "0xff"]);
    refused("[".repeat(100_000), &["wrong.toml:1:"]);
    refused(format!("name = {}", "[".repeat(100_000)), &["wrong.toml:1:"]);
    let place = Place::new();
    std::fs::create_dir(place.path().join("folder.toml")).expect("a folder");
    place.run(&["run", "folder.toml"]).expect_error(78, &["folder.toml", "expected a file"]);
    place.run(&["check", "missing.toml"]).expect_error(78, &["file not found: missing.toml"]);
}

#[test]
fn a_file_of_a_hundred_megabytes() {
    let place = Place::new();
    let mut file = std::fs::File::create(place.path().join("big.toml")).expect("a file");
    file.write_all("#".repeat(1 << 20).as_bytes()).expect("text");
    file.set_len(100_000_000).expect("a sparse file");
    place.run(&["run", "big.toml"]).expect_error(78, &["big.toml", "at most 1048576 bytes"]);
    // A pipe has no length to be judged by.
    let piped = "head -c 100000000 /dev/zero | tr '\\0' '#' | \"$0\" check /dev/stdin";
    let finished = finish(&mut place.command_of("sh", &["-c", piped, env!("CARGO_BIN_EXE_atoll")]));
    finished.expect_error(78, &["/dev/stdin", "expected a file"]);
}

/// Parameters within every range of a single key, but beyond all bounds together.
#[test]
fn what_no_machine_could_hold() {
    let es = "algorithm = { kind = \"es\", offspring = 10000000 }";
    let ga = "algorithm = { kind = \"ga\", population = 12 }";
    let real = "problem = { kind = \"rastrigin\", dimensions = 100000 }";
    let symbols = "problem = { kind = \"onemax\", length = 16 }";
    refused(SMALL.replace(symbols, real).replace(ga, es), &["wrong.toml:3:", "MiB"]);
    let archive = "algorithm = { kind = \"map-elites\", bins = [100000, 100000, 100000, 100000, 100000] }";
    refused(SMALL.replace(symbols, real).replace(ga, archive), &["wrong.toml:3:", "bins"]);
    let founders = "algorithm = { kind = \"map-elites\", bins = [9, 9], founders = 10000000 }";
    refused(SMALL.replace(symbols, real).replace(ga, founders), &["wrong.toml:3:", "MiB"]);
    let all = "count = 10000, topology = \"fully-connected\"";
    refused(small_but("count = 3", all), &["wrong.toml:4:", "edges", "99990000"]);
    let random = "count = 10000, topology = { kind = \"random-regular\", degree = 9999 }";
    refused(small_but("count = 3", random), &["wrong.toml:4:", "edges"]);
    let steps = "algorithm = { kind = \"es\", sigma_min = 1e40, tau = 1e300 }";
    let real = "problem = { kind = \"rastrigin\", dimensions = 3 }";
    refused(SMALL.replace(symbols, real).replace(ga, steps), &["wrong.toml:3:", "1e30", "tau"]);
    let few = "algorithm = { kind = \"lm-ma\", parents = 9, offspring = 8 }";
    refused(
        SMALL.replace(symbols, real).replace(ga, few),
        &["wrong.toml:3:", "at least 9 children, found `8`"],
    );
    refused(
        small_but("count = 3", "count = 3, league = \"ring\""),
        &["wrong.toml:4:", "former champions, found none"],
    );
    let numbers = "algorithm = { kind = \"sep-cma\" }";
    refused(small_but(ga, numbers), &["wrong.toml:3:", "expected an algorithm for symbols, found `sep-cma`"]);
}

/// A sweep of a million cells is checked cell by cell, in the memory of one.
#[test]
fn sweeps_of_many_cells_do_not_fill_the_memory() {
    let place = Place::new();
    let values: Vec<String> = (2..6002).map(|value| value.to_string()).collect();
    let axis = format!("keys = [\"algorithm.population\"]\nvalues = [{}]", values.join(", "));
    place.write("sweep.toml", format!("{SMALL}\n[sweep]\nrepeats = 100\n[[sweep.axis]]\n{axis}\n"));
    // Address space for threads and for a few copies of the file, but not for thousands of experiments.
    let limited = "ulimit -v 400000; exec \"$0\" check sweep.toml --json";
    let finished = finish(&mut place.command_of("sh", &["-c", limited, env!("CARGO_BIN_EXE_atoll")]));
    assert_eq!(finished.expect(0).json()["ok"], true);
}

/// A genetic algorithm whose elite rounds up to the whole population would never spend its evaluations.
#[test]
fn an_elite_of_nearly_everybody_still_ends() {
    let place = Place::new();
    let text = small_but("population = 12", "population = 5, elite = 0.9")
        .replace("generations = 20", "evaluations = 100");
    place.write("elite.toml", text);
    let found = place.json(&["run", "elite.toml", "--json"]);
    assert!(found["evaluations"].as_u64() >= Some(100), "{found}");
}

#[test]
fn mistakes_in_sweeps() {
    let sweep = |axis: &str| format!("{SMALL}\n[[sweep.axis]]\n{axis}\n");
    refused(sweep("keys = [\"algorithm.popluation\"]\nvalues = [1]"), &["popluation", "did you mean"]);
    refused(sweep("keys = [\"seed\"]\nvalues = [1]"), &["wrong.toml:9:", "`seed`", "repeats"]);
    refused(sweep("keys = [\"algorithm.population\"]\nvalues = []"), &["wrong.toml:10:"]);
    refused(
        sweep("keys = [\"problem.length\", \"migration.count\"]\nvalues = [[1, 2], 3]"),
        &["row of 2", "`3`"],
    );
    refused(sweep("keys = [\"algorithm..x\"]\nvalues = [1]"), &["wrong.toml:9:"]);
    // All wrong values of an axis, each where it stands.
    let values = "keys = [\"algorithm.population\"]\nvalues = [\n12,\n\"many\",\n-4,\n]";
    refused(sweep(values), &["wrong.toml:12:", "many", "wrong.toml:13:", "-4"]);
    let endless = small_but("generations = 20", "wall_time = \"1s\"");
    let axis = "[[sweep.axis]]\nkeys = [\"algorithm.population\"]\nvalues = [12]\n";
    refused(format!("{endless}\n{axis}"), &["wrong.toml:6:", "wall_time"]);
}

#[test]
fn mistakes_in_studies() {
    let study = |parts: &str| format!("{SMALL}\n{parts}\n");
    refused(study("[study]"), &["study"]);
    refused(study("[study.one]\nguests = \"two\""), &["wrong.toml:9:", "`two`"]);
    refused(study("[study.one]\nguests = \"one\""), &["wrong.toml:9:", "`one`"]);
    let circle = "[study.one]\nguests = \"two\"\n[study.two]\nguests = \"one\"";
    refused(study(circle), &["wrong.toml", "circle"]);
    // The games of a study are a run beside those of its parts.
    let games = "[study.tournament]\nseed = 9\n[tournament]\n[[tournament.players]]\nname = \"one\"\nplayer = \"tournament\"";
    refused(study(games), &["wrong.toml:8:", "games of a study"]);
    refused(study("[study.one]\nbudgte = 3"), &["wrong.toml:9:", "budgte"]);
    // Guests whose genes are no genes of their hosts.
    let strangers = "[study.one]\nproblem = { kind = \"onemax\", length = 16, symbols = 9 }\n[study.two]\nguests = \"one\"";
    refused(study(strangers), &["wrong.toml:11:", "guests"]);
    // Networks of different shapes have no weights in common.
    let evolved = "algorithm = { kind = \"es\" }\nbudget = { generations = 2 }\nproblem.kind = \"checkers\"";
    let shapes = format!("{evolved}\n[study.one]\nproblem.shape = \"wide\"\n[study.two]\nguests = \"one\"\n");
    refused(format!("name = \"shapes\"\n{shapes}"), &["wrong.toml:8:", "5048 genes", "10095 genes"]);
}

/// An unfinished run with checkpoints inside epochs.
fn unfinished() -> (Place, String) {
    let place = Place::new();
    let slow = small_but("length = 16", "length = 16, work = 100000")
        .replace("generations = 20", "generations = 100000");
    place.write("slow.toml", with_checkpoints(&slow.replace("interval = 5", "interval = 50"), "3"));
    let run = place.start(&["run", "slow.toml", "--threads", "2"]);
    crate::support::until("there are states and checkpoints", || {
        let kept = place.kept();
        kept.len() == 3 && kept.values().all(|&generation| generation > 55)
    });
    run.signal("TERM");
    run.finish().expect(143);
    let run = place.only_run();
    (place, run)
}

/// Objects of each kind: an event, a state, a checkpoint and a commit, each one that resuming the run reads.
fn one_of_each(place: &Place, run: &str) -> Vec<PathBuf> {
    let objects = place.objects(run);
    let last = |kind: &str| {
        let is_used = |path: &&PathBuf| {
            is_of(kind, path) && (kind != "checkpoints" || is_of_an_unfinished_epoch(&objects, path))
        };
        objects.iter().rfind(is_used).expect(kind).clone()
    };
    ["events", "states", "checkpoints", "commits"].map(last).to_vec()
}

fn is_of(kind: &str, path: &Path) -> bool {
    path.components().any(|component| component.as_os_str() == kind)
}

/// Whether there is no state of the checkpoint's epoch. A checkpoint that is older than its island's state is not read.
fn is_of_an_unfinished_epoch(objects: &[PathBuf], checkpoint: &Path) -> bool {
    let island = |path: &Path| path.parent().and_then(Path::file_name).map(std::ffi::OsStr::to_owned);
    let epoch = |path: &Path| -> u64 {
        let name = path.file_name().and_then(|name| name.to_str()).expect("text");
        name.split('-').next().and_then(|epoch| epoch.parse().ok()).expect("an epoch")
    };
    let states = objects.iter().filter(|path| is_of("states", path) && island(path) == island(checkpoint));
    states.map(|path| epoch(path)).max() < Some(epoch(checkpoint))
}

/// The same object as a later version of the program would have sealed it.
fn of_a_newer_version(object: &[u8]) -> Vec<u8> {
    let mut newer = object.to_vec();
    newer[8..10].copy_from_slice(&3u16.to_le_bytes());
    let signed = [&newer[..20], &newer[52..]].concat();
    newer[20..52].copy_from_slice(&Digest::of(&signed).0);
    newer
}

#[test]
fn damaged_objects_are_named_and_nothing_is_lost() {
    let (place, run) = unfinished();
    for path in one_of_each(&place, &run) {
        let right = std::fs::read(&path).expect("an object");
        let mut altered = right.clone();
        *altered.last_mut().expect("it is not empty") ^= 4;
        let cases = [
            (right[..right.len() - 3].to_vec(), "cut short"),
            (right[..30].to_vec(), "cut short"),
            (altered, "altered"),
            (of_a_newer_version(&right), "version"),
        ];
        let name = path.file_name().expect("a name").to_str().expect("text");
        for (wrong, said) in cases {
            std::fs::write(&path, &wrong).expect("it can be damaged");
            let before = place.objects(&run);
            place.run(&["resume", &run, "--json"]).expect_error(1, &[name, said]);
            let listed = place.run(&["runs", "--json"]);
            assert_eq!(listed.expect(0).json()[0]["run"], run, "damaged runs are listed all the same");
            if !path.display().to_string().contains("/checkpoints/") {
                let export = place.run(&["export", &run, "--json"]);
                assert_eq!(export.status.code(), Some(1), "{export:?}");
            }
            // Nothing is deleted because something else is damaged. Opening may leave an event.
            let after = place.objects(&run);
            assert!(before.iter().all(|object| after.contains(object)), "{before:?}, then {after:?}");
        }
        std::fs::write(&path, &right).expect("it can be restored");
    }
    let verified = place.json(&["verify", &run, "--json"]);
    assert_eq!(verified["ok"], true, "{verified}");
}

#[test]
fn a_damaged_experiment_is_named() {
    let (place, run) = unfinished();
    let path = place.store().join("runs").join(&run).join("experiment.toml");
    let right = std::fs::read_to_string(&path).expect("an experiment");
    std::fs::write(&path, right.replace("population", "popluation")).expect("it can be damaged");
    let finished = place.run(&["resume", &run]);
    assert!(matches!(finished.status.code(), Some(1 | 78)), "{finished:?}");
    assert!(
        finished.stderr.contains("experiment.toml") && finished.stderr.contains("popluation"),
        "{finished:?}"
    );
    let listed = place.run(&["runs", "--json"]);
    assert_eq!(listed.expect(0).json()[0]["state"], "damaged");
}

/// Runs an experiment until there is no more room, makes room, and finishes it.
fn survives_a_full_disk(limit: &dyn Fn(&Place) -> Command) {
    let place = Place::new();
    let text = small_but("length = 16", "length = 2000").replace("generations = 20", "generations = 100");
    place.write("big.toml", with_checkpoints(&text, "5"));
    let full = finish(&mut limit(&place));
    full.expect_error(1, &["no room"]);
    let finished = place.json(&["run", "big.toml", "--json"]);
    let calm = Place::new();
    calm.write("big.toml", &text);
    assert_eq!(finished["digest"], calm.json(&["run", "big.toml", "--json"])["digest"]);
    let run = finished["run"].as_str().expect("a run");
    assert_eq!(place.json(&["verify", run, "--json"])["ok"], true);
}

#[test]
fn a_limit_on_the_size_of_files() {
    survives_a_full_disk(&|place| {
        let limited = "ulimit -f 8; exec \"$0\" run big.toml --json";
        place.command_of("sh", &["-c", limited, env!("CARGO_BIN_EXE_atoll")])
    });
}

#[test]
fn a_full_disk() {
    let mounts = |place: &Place, script: &str| {
        let atoll = env!("CARGO_BIN_EXE_atoll");
        place.command_of("unshare", &["--map-root-user", "--mount", "sh", "-c", script, atoll])
    };
    let place = Place::new();
    let mount = "mount -t tmpfs -o size=256k none atoll-store";
    std::fs::create_dir(place.store()).expect("a folder");
    if !mounts(&place, mount).output().is_ok_and(|output| output.status.success()) {
        println!("no file system can be mounted here: the limit on file sizes has to do");
        return;
    }
    place.write("big.toml", with_checkpoints(&small_but("length = 16", "length = 9000"), "5"));
    // The file system goes with the process, so both runs happen inside: the second once there is room.
    let script = format!(
        "{mount} && \"$0\" run big.toml --json; echo \"code $?\" >&2; \
         mount -o remount,size=64m atoll-store && exec \"$0\" run big.toml --json"
    );
    let finished = finish(&mut mounts(&place, &script));
    finished.expect(0);
    assert!(finished.stderr.contains("no room") && finished.stderr.contains("code 1"), "{finished:?}");
    let calm = Place::new();
    calm.write("big.toml", small_but("length = 16", "length = 9000"));
    assert_eq!(finished.json()["digest"], calm.json(&["run", "big.toml", "--json"])["digest"]);
}

#[test]
fn a_store_that_cannot_be() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.write("file", "not a folder");
    for store in ["file", "file/below", "/proc/atoll", "/dev/null"] {
        let finished = place.run(&["run", "small.toml", "--store", store]);
        finished.expect_error(1, &[store]);
    }
    for command in ["runs", "resume"] {
        place.run(&[command, "--store", "missing"]).expect_error(1, &["missing"]);
        assert!(!place.path().join("missing").exists(), "reading creates nothing");
    }
}

/// What a newcomer mistypes: the message says what was meant, or what to do.
#[test]
fn mistakes_are_named() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.write("mine.toml", SMALL.replace("name = \"small\"", "name = \"mine\"").replace("20", "25"));
    let not_run = "mine.toml has not been run: run it with `atoll run mine.toml`";
    place.run(&["report", "mine.toml"]).expect_error(1, &[not_run]);
    let run =
        place.json(&["run", "small.toml", "--label", "paper", "--json"])["run"].as_str().unwrap().to_owned();
    let meant = format!("did you mean `{run}`?");
    for (call, code, said) in [
        (&["report", "mine.toml"][..], 1, not_run),
        (&["report", "Smal"], 1, &meant),
        (&["report", "SMAL"], 1, &meant),
        (&["report", "lates"], 1, "did you mean `latest`?"),
        (&["verify", "latestt"], 1, "did you mean `latest`?"),
        (&["verify", "../escape"], 2, "expected a run id"),
        (&["bench", "nosuch"], 2, "there is no bench `nosuch`; `atoll bench --list` lists"),
        (&["bench", "checkers.pertf"], 2, "did you mean `checkers.perft`?"),
        (&["restore", "nope", "--store", "restored"], 1, "no backup in `nope`"),
        (&["analyse", "nope.pdn", "material"], 78, "file not found: nope.pdn"),
        (&["analyse", "/dev/zero", "material"], 78, "expected at most 67108864 bytes, found more"),
        (&["level", "study", "nope.json"], 78, "file not found: nope.json"),
        (&["ratings", "small"], 2, "is a run of the problem `onemax`, not `checkers`"),
        (&["play", "material", "--history"], 2, "unexpected argument '--history'"),
    ] {
        place.run(call).expect_error(code, &[said]);
    }
    let program = env!("CARGO_BIN_EXE_atoll");
    let shown = place.run(&["level", "show", program]);
    assert!(shown.stderr.contains("expected text (UTF-8)"), "{shown:?}");
    let unlabelled = place.run(&["label", &run, "--remove", "papr"]);
    assert!(
        unlabelled.expect(0).stderr.contains("has no label `papr`; did you mean `paper`?"),
        "{unlabelled:?}"
    );
    let refused = place.run(&["extend", &run, "--target-fitness", "300"]);
    refused.expect_error(2, &["budget.target_fitness: expected another limit", "(add `generations`"]);
    assert!(!refused.stderr.contains("the new budget"), "{refused:?}");
    let listed = place.run(&["bench", "--list"]);
    assert!(listed.expect(0).stdout.lines().count() > 5, "{listed:?}");
    let listed = crate::support::finish(place.command(&["runs", "--json"]).env("ATOLL_STORE", ""));
    let created = listed.expect(0).json()[0]["created"].as_str().unwrap().to_owned();
    assert!(created.ends_with('Z') && created.contains('T'), "{created}");
}

#[test]
fn bad_calls() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.json(&["run", "small.toml", "--json"]);
    for call in [
        &["rnu"][..],
        &["run"],
        &["run", "small.toml", "--threads", "0"],
        &["run", "small.toml", "--seed", "-1"],
        &["extend", "small"],
        &["resume", "../escape"],
        &["verify", ""],
    ] {
        place.run(call).expect_error(2, &[]);
    }
}
