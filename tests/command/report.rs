//! `atoll report` on real runs: complete, the same every time, and written whatever is damaged.

use crate::support::{Finished, MAZE, Place, until};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A small run of the maze with eight islands.
fn maze(place: &Place) -> String {
    place.write("maze.toml", MAZE.replace("generations = 400", "generations = 100"));
    place.json(&["run", "maze.toml", "--json"])["run"].as_str().unwrap().to_owned()
}

fn read(place: &Place, file: impl AsRef<Path>) -> String {
    std::fs::read_to_string(place.path().join(file)).unwrap()
}

/// A page without the line with the time when it was made.
fn timeless(page: &str) -> String {
    let (before, rest) = page.split_once("<footer>").expect("a footer");
    let (made, after) = rest.split_once("</footer>").expect("its end");
    assert!(made.starts_with("Written by atoll ") && made.ends_with(" UTC."), "{made}");
    format!("{before}{after}")
}

/// The files that a command says it has written.
fn written(finished: &Finished) -> Vec<PathBuf> {
    finished.expect(0);
    finished.stdout.lines().map(PathBuf::from).collect()
}

#[test]
fn a_report_is_a_page_markdown_pictures_and_numbers() {
    let place = Place::new();
    let run = maze(&place);
    let files = written(&place.run(&["report", "maze.toml"]));
    let names: Vec<String> =
        files.iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect();
    for name in ["report.html", "report.md", "fitness.svg", "topology.svg", "epochs.csv", "champions.csv"] {
        assert!(names.iter().any(|other| other == name), "{name} in {names:?}");
    }
    assert!(
        files
            .iter()
            .all(|file| file.starts_with(format!("{run}-report")) && place.path().join(file).is_file())
    );
    let page = read(&place, &files[0]);
    for told in [
        "Fitness",
        "Diversity",
        "Migration",
        "Digests",
        "best found here",
        "Champions",
        "atoll run experiment.toml",
    ] {
        assert!(page.contains(told), "{told}");
    }
    assert!(!page.contains("Worker of each epoch"), "one machine did everything");
    // The summary and the report name the same finder, of equals the first.
    let summary = place.run(&["run", "maze.toml"]);
    let best = place.json(&["report", "maze.toml", "--json"])["best_island"].as_u64().unwrap();
    assert!(
        summary.expect(0).stdout.contains(&format!("(island {best}, generation ")),
        "{best}: {summary:?}"
    );
    assert!(page.contains(&format!("<dd class=\"remark\">island {best}, generation ")), "{best}");
    for outside in ["http://", "https://", " src=\"/", "@import", "url("] {
        let page = page.replace("http://www.w3.org/2000/svg", "").replace("http%3A//www.w3.org", "");
        assert!(!page.contains(outside), "the page refers to {outside}");
    }
    let markdown = read(&place, &files[1]);
    for picture in markdown.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(place.path().join(format!("{run}-report")).join(picture).is_file(), "{picture}");
    }
    let epochs = read(&place, format!("{run}-report/epochs.csv"));
    assert_eq!(epochs.lines().count(), 1 + 8 * 10);
}

#[test]
fn the_same_run_gives_the_same_report_and_can_be_run_again_from_it() {
    let place = Place::new();
    let run = maze(&place);
    written(&place.run(&["report", &run, "--to", "one"]));
    written(&place.run(&["report", &run, "--to", "other"]));
    let pages = ["one", "other"].map(|folder| timeless(&read(&place, format!("{folder}/report.html"))));
    assert!(pages[0] == pages[1], "two reports of one run differ");
    let object = place.json(&["report", &run, "--json"]);
    let again = place.json(&["run", "one/experiment.toml", "--store", "again", "--json"]);
    assert_eq!(again["digest"], object["digest"], "the command that reproduces it does");
    assert_eq!(object["state"], "finished");
    assert_eq!(object["damage"], Value::Array(vec![]));
    assert_eq!(object["islands"].as_array().unwrap().len(), 8);
}

/// Damages every object in turn but the experiment, by turns cut short, altered and gone.
#[test]
fn whatever_epoch_is_damaged_the_report_is_written_and_says_so() {
    let place = Place::new();
    // Only the last state is kept of each island: all of them are needed.
    let kept = "retention = { keep = 1 }\n";
    place.write("maze.toml", MAZE.replace("generations = 400", "generations = 40") + kept);
    let run = place.json(&["run", "maze.toml", "--json"])["run"].as_str().unwrap().to_owned();
    let objects = place.objects(&run);
    let mut damaged = 0;
    for (at, path) in objects.iter().filter(|path| !path.ends_with("experiment.toml")).enumerate() {
        let whole = std::fs::read(path).unwrap();
        match at % 3 {
            0 => std::fs::write(path, &whole[..whole.len() / 2]).unwrap(),
            1 => {
                let mut altered = whole.clone();
                altered[whole.len() - 1] ^= 1;
                std::fs::write(path, altered).unwrap();
            }
            _ => std::fs::remove_file(path).unwrap(),
        }
        let object = place.json(&["report", &run, "--json"]);
        let name = path.to_string_lossy();
        // A summary only saves reading.
        let is_spare = name.contains("/summaries/") && !path.exists();
        if !is_spare && !name.contains("events") {
            assert_ne!(object["damage"], Value::Array(vec![]), "{}: {object}", path.display());
            damaged += 1;
        }
        std::fs::write(path, whole).unwrap();
    }
    assert!(damaged >= 8, "only {damaged} of {} objects", objects.len());
    let commits = objects.iter().filter(|path| path.to_string_lossy().contains("/commits/"));
    for commit in commits {
        std::fs::write(commit, b"nonsense").unwrap();
    }
    written(&place.run(&["report", &run]));
    let page = read(&place, format!("{run}-report/report.html"));
    assert!(page.contains("What is missing") && page.contains("are missing"));
}

#[test]
fn several_runs_are_compared() {
    let place = Place::new();
    let one = maze(&place);
    place.write(
        "other.toml",
        MAZE.replace("generations = 400", "generations = 100").replace("seed = 7", "seed = 8"),
    );
    let other = place.json(&["run", "other.toml", "--json"])["run"].as_str().unwrap().to_owned();
    let files = written(&place.run(&["report", &one, &other]));
    let page = read(&place, &files[0]);
    assert!(page.contains(&one) && page.contains(&other) && page.contains("<code>seed</code>"));
    assert_eq!(place.json(&["report", &one, &other, "--json"])["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_sweep_has_its_table_and_names_stay_text() {
    let place = Place::new();
    let sweep = r#"
name = "sweep"
problem = { kind = "maze", width = 8, height = 8 }
algorithm = { kind = "ga", population = 20, mutation = { rate = 0.1 } }
islands = { count = 1 }
budget = { generations = 5 }
[sweep]
repeats = 2
[[sweep.axis]]
keys = ["problem.turns"]
values = [5, 10, 15]
[sweep.variants]
"<script>alert(1)</script>" = { algorithm.population = 30 }
plain = {}
"#;
    place.write("sweep.toml", sweep);
    place.run(&["run", "sweep.toml"]).expect(0);
    let files = written(&place.run(&["report", "sweep.toml"]));
    let page = read(&place, &files[0]);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains("<script>alert"));
    assert!(page.contains("problem.turns") && page.contains("The best paths"));
    let cells = read(&place, files.iter().find(|file| file.ends_with("cells.csv")).unwrap());
    assert_eq!(cells.lines().count(), 1 + 3 * 2 * 2);
    let object = place.json(&["report", "sweep.toml", "--json"]);
    assert_eq!(object["cells"], 12);
    let run = place.only_run();
    let cell =
        place.objects(&run).into_iter().find(|path| path.to_string_lossy().contains("/jobs/")).unwrap();
    std::fs::write(cell, b"nonsense").unwrap();
    let object = place.json(&["report", "sweep.toml", "--json"]);
    assert!(object["cells"].as_u64().unwrap() < 12, "{object}");
    assert_eq!(object["damage"].as_array().unwrap().len(), 2, "{object}");
    place.run(&["report", "sweep.toml", "sweep.toml"]).expect_error(2, &["sweep"]);
}

#[test]
fn a_study_that_was_begun_is_reported_as_far_as_it_goes() {
    let place = Place::new();
    let study = MAZE.replace("generations = 400", "generations = 20")
        + "\n[study.one]\n[study.two]\nseed = 8\n[study.three]\nseed = 9\n";
    place.write("study.toml", &study);
    // Two of the three experiments, as if the third had never been begun.
    place.run(&["run", "study.toml"]).expect(0);
    let runs = std::fs::read_dir(place.store().join("runs")).unwrap().map(|run| run.unwrap().path());
    let third = runs.into_iter().find(|run| run.to_string_lossy().ends_with(".three")).unwrap();
    std::fs::remove_dir_all(&third).unwrap();
    let id = third.file_stem().unwrap().to_str().unwrap().to_owned();
    place.write("never.toml", study.replace("generations = 20", "generations = 30"));
    place.run(&["report", "never.toml"]).expect_error(1, &["never.toml has not been run"]);
    let object = place.json(&["report", "study.toml", "--json"]);
    assert_eq!(object["runs"].as_array().unwrap().len(), 2);
    assert!(object["missing"][0].as_str().unwrap().contains("`three`"), "{object}");
    let page = read(&place, &written(&place.run(&["report", "study.toml"]))[0]);
    assert!(page.contains("What is missing") && page.contains("<code>three</code> has not started"));
    // A finished study whose part is gone is damaged: nothing is recomputed before it was repaired.
    place.run(&["run", "study.toml"]).expect_error(1, &["atoll repair"]);
    place.run(&["repair", &id, "--yes"]).expect(0);
    place.run(&["run", "study.toml"]).expect(0);
    let whole = place.json(&["report", "study.toml", "--json"]);
    assert!(whole["runs"].as_array().unwrap().len() == 3 && whole["missing"].is_null());
}

#[test]
fn a_damaged_milestone_is_missed() {
    let place = Place::new();
    place.write(
        "players.toml",
        r#"
name = "players"
problem = { kind = "checkers", depth = 1, games = 1, draw = { moves = 20 } }
algorithm = { kind = "es", parents = 3, offspring = 3 }
islands = { count = 1, topology = "isolated" }
migration = { interval = 1 }
budget = { generations = 5 }
retention = { milestones = 1 }
"#,
    );
    place.run(&["run", "players.toml"]).expect(0);
    let run = place.only_run();
    assert_eq!(place.json(&["report", &run, "--json"])["damage"], Value::Array(vec![]));
    let states: Vec<_> =
        place.objects(&run).into_iter().filter(|path| path.to_string_lossy().contains("/states/")).collect();
    assert_eq!(states.len(), 5, "{states:?}");
    std::fs::write(&states[2], b"nonsense").unwrap();
    let damage = place.json(&["report", &run, "--json"])["damage"].clone();
    assert_eq!(damage.as_array().map(Vec::len), Some(1), "{damage}");
}

#[test]
fn the_winner_of_the_round_robin_leads_a_report_of_checkers() {
    let place = Place::new();
    place.write(
        "players.toml",
        r#"
name = "players"
problem = { kind = "checkers", depth = 1, games = 1, draw = { moves = 20 } }
algorithm = { kind = "es", parents = 3, offspring = 3 }
islands = { count = 3, topology = "isolated" }
budget = { generations = 3 }
"#,
    );
    place.run(&["run", "players.toml"]).expect(0);
    written(&place.run(&["report", "players.toml", "--to", "page"]));
    let text = read(&place, "page/report.md");
    let table = text.lines().skip_while(|line| !line.starts_with("| island | score |"));
    let cells: Vec<Vec<&str>> =
        table.skip(2).take(3).map(|row| row.split('|').map(str::trim).collect()).collect();
    let score = |row: &Vec<&str>| row[2].parse::<f64>().unwrap();
    assert!(score(&cells[0]) >= score(&cells[1]) && score(&cells[1]) >= score(&cells[2]), "{cells:?}");
    let winner = cells[0][1];
    let lead = format!("The champion of island {winner}, winner of the round robin of champions, scores ");
    assert!(text.lines().nth(2).unwrap().starts_with(&lead), "{text}");
    assert!(text.contains(&format!("/{winner} material")), "the next steps name it too");
}

#[test]
fn two_hundred_islands_and_two_thousand_generations_fit_on_a_page() {
    let place = Place::new();
    place.write(
        "large.toml",
        r#"
name = "large"
problem = { kind = "onemax", length = 64 }
algorithm = { kind = "ga", population = 6, mutation = { rate = 0.3 } }
islands = { count = 200, topology = "two-way-ring" }
migration = { interval = 10, count = 1 }
budget = { generations = 2000 }
"#,
    );
    place.run(&["run", "large.toml"]).expect(0);
    let start = std::time::Instant::now();
    let files = written(&place.run(&["report", "large.toml"]));
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    let size: u64 = files.iter().map(|file| std::fs::metadata(place.path().join(file)).unwrap().len()).sum();
    assert!(size < 20 << 20, "{size} bytes in all");
}

#[test]
fn a_run_is_watched_until_it_ends_and_opened_in_a_browser() {
    let place = Place::new();
    place.write("slow.toml", MAZE.replace("generations = 400", "generations = 2000000"));
    place.write("browser", "#!/bin/sh\necho \"$1\" > opened.new && mv opened.new opened\n");
    crate::support::finish(&mut place.command_of("chmod", &["+x", "browser"])).expect(0);
    let mut run = place.start(&["run", "slow.toml"]);
    run.wait_for("run ");
    until("something is stored", || place.store().join("runs").is_dir() && !place.kept().is_empty());
    let name = place.only_run();
    let mut command = place.command(&["report", &name, "--watch", "--open", "--to", "page"]);
    let mut watching = crate::support::Running::start(command.env("BROWSER", place.path().join("browser")));
    watching.wait_for("watching");
    let page = place.path().join("page/report.html");
    let first = std::fs::read_to_string(&page).unwrap();
    assert!(first.contains("http-equiv=\"refresh\"") && first.contains("The run is running"));
    until("the browser was asked", || place.path().join("opened").is_file());
    assert_eq!(read(&place, "opened").trim(), "page/report.html");
    run.signal("INT");
    run.finish();
    let first = timeless(&first);
    until("there is more on the page", || timeless(&std::fs::read_to_string(&page).unwrap()) != first);
    watching.signal("INT");
    watching.finish().expect(130);
    assert!(
        std::fs::read_dir(place.path().join("page"))
            .unwrap()
            .all(|file| { !file.unwrap().file_name().to_string_lossy().starts_with('.') })
    );
}

#[test]
fn without_a_store_a_report_names_the_file_and_the_command() {
    let place = Place::new();
    place.run(&["report", "maze"]).expect_error(1, &["no store in", "atoll run FILE", "`--coordinator`"]);
    std::fs::create_dir(place.path().join("examples")).unwrap();
    place.write("examples/quickstart.toml", MAZE);
    for name in ["qickstart", "qickstart.toml", "examples/qickstart.toml"] {
        let meant = "did you mean the file `examples/quickstart.toml`?";
        place.run(&["report", name]).expect_error(1, &["no store in", meant]);
    }
}

#[test]
fn a_tournament_is_reported_by_the_file_that_was_run() {
    let place = Place::new();
    let text = "name = \"games\"\nseed = 1\n[tournament]\nopenings = 2\ndepth = 1\n\
                [[tournament.players]]\nname = \"material\"\nplayer = \"material\"\n\
                [[tournament.players]]\nname = \"other\"\nplayer = \"random\"\n";
    place.write("games.toml", text);
    let played = place.json(&["run", "games.toml", "--json"]);
    let object = place.json(&["report", "games.toml", "--json"]);
    assert_eq!((&object["run"], &object["digest"]), (&played["run"], &played["digest"]));
    place.write("champions.toml", text.replace("\"random\"", "\"some-run/0\""));
    place.run(&["report", "champions.toml"]).expect_error(2, &["takes players from runs", "atoll runs"]);
}

#[test]
fn what_cannot_be_reported_is_said() {
    let place = Place::new();
    maze(&place);
    place.run(&["report", "no-such-run"]).expect_error(1, &["no run `no-such-run`", "atoll runs"]);
    place.run(&["report"]).expect_error(2, &["RUN|FILE"]);
    place.write("quickstart.toml", MAZE);
    place.run(&["report", "qickstart"]).expect_error(1, &["did you mean the file `quickstart.toml`?"]);
    let run = place.only_run();
    let mut command = place.command(&["report", &run, "--open"]);
    let finished = crate::support::finish(command.env("BROWSER", "/no/such/browser"));
    assert_eq!(finished.status.code(), Some(1));
    assert!(finished.stderr.contains("set BROWSER"), "{finished:?}");
}
