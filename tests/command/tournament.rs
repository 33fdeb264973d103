//! Tournaments as people use them: from a file to tables, games and a page.

use crate::support::{Place, Seeded};
use checkers::{Network, NodeKind, read_pdn};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;

/// Two kinds of players and a champion of a run, from a few openings.
const GAMES: &str = r#"
name = "games"
seed = 3

[tournament]
openings = 20
depth = 2

[[tournament.players]]
name = "counter"
player = "material"

[[tournament.players]]
name = "gambler"
player = "random"

[[tournament.players]]
name = "champion"
player = "RUN"

[[tournament.players]]
name = "stranger"
player = "stranger.acp"
depth = 1
"#;

const EVOLUTION: &str = r#"
name = "evolution"
problem = { kind = "checkers", depth = 1, games = 1, draw = { moves = 30 } }
algorithm = { kind = "es", parents = 4, offspring = 4 }
islands = { count = 1, topology = "isolated" }
migration = { interval = 2 }
budget = { generations = 6 }
retention = { milestones = 1 }
"#;

fn network(seed: u64) -> Vec<u8> {
    let mut random = Seeded::new(seed);
    let weights: Vec<f32> =
        (0..NodeKind::Sum.weight_count()).map(|_| random.below(401) as f32 / 1000.0 - 0.2).collect();
    Network::new(NodeKind::Sum, &weights).unwrap().to_player_file()
}

/// A folder with a run, a player file and a tournament.
fn place() -> Place {
    let place = Place::new();
    place.write("evolution.toml", EVOLUTION);
    let run = place.json(&["run", "evolution.toml", "--json"])["run"].as_str().unwrap().to_owned();
    place.write("stranger.acp", network(1));
    place.write("games.toml", GAMES.replace("\"RUN\"", &format!("\"{run}/0@1\"")));
    place
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_else(|| panic!("{key} in {object}"))
}

#[test]
fn a_tournament_is_played_and_told() {
    let place = place();
    let played = place.json(&["run", "games.toml", "--json", "--threads", "1"]);
    let run = text(&played, "run");
    assert_eq!(played["complete"], true);
    assert_eq!(played["games"], 6 * 40);
    let players = played["players"].as_array().unwrap();
    let names: Vec<&str> = players.iter().map(|player| text(player, "name")).collect();
    assert_eq!(names[3], "gambler", "{names:?}");
    // Its report is its page, with all files.
    place.run(&["report", run, "--to", "report"]).expect(0);
    for file in ["report.html", "report.md", "players.csv", "games.pdn"] {
        assert!(place.path().join("report").join(file).is_file(), "{file}");
    }
    assert_eq!(place.json(&["report", run, "--json"])["games"], played["games"]);
    let listed = place.run(&["runs"]);
    let row = listed.expect(0).stdout.lines().find(|line| line.starts_with(run)).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[1..5], ["tournament", "finished", "240", "games"], "{listed:?}");
    let sum: f64 = players.iter().map(|player| player["rating"]["elo"].as_f64().unwrap()).sum();
    assert!(sum.abs() < 1e-6, "ratings are those above the mean: {sum}");

    let table = place.run(&["tournament", "table", run]);
    assert!(table.expect(0).stdout.contains("| 4 | gambler |"), "{}", table.stdout);
    let again = place.json(&["tournament", "table", run, "--json"]);
    assert_eq!(again["digest"], played["digest"]);
    assert_eq!(again["players"], played["players"]);
    let csv = place.run(&["tournament", "table", run, "--csv"]);
    assert_eq!(csv.expect(0).stdout.lines().count(), 1 + 6);

    place.run(&["tournament", "page", run, "--to", "page"]).expect(0);
    let page = std::fs::read_to_string(place.path().join("page/index.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("stranger"));
    for outside in ["http:", "https:", " src=", "@import", "url("] {
        assert!(!page.contains(outside), "it needs nothing else: {outside}");
    }
    let titles = page.matches(", opening ").count();
    assert!(
        titles > 0 && !page.contains("of the deck"),
        "an opening has the number of a list, not of the deck"
    );
    for told in ["likely stronger", "1½", "Some games of the strongest", "How games ended", "digest"] {
        assert!(page.contains(told), "{told}");
    }
    for file in ["players.csv", "pairings.csv", "teams.csv", "tournament.json"] {
        assert!(place.path().join("page").join(file).is_file(), "{file}");
    }
    let games = std::fs::read_to_string(place.path().join("page/games.pdn")).unwrap();
    assert_eq!(read_pdn(&games).unwrap().len(), 240);

    let verified = place.json(&["verify", run, "--json"]);
    assert_eq!(verified["ok"], true, "{verified}");
    assert_eq!(verified["recomputed"], 6 * 2);
    let listed = place.json(&["runs", "--json"]);
    let row = listed.as_array().unwrap().iter().find(|row| row["digest"] == played["digest"]).unwrap();
    assert_eq!((&row["games"], &row["strongest"]), (&240.into(), &players[0]["name"]));
    assert_eq!(row["state"], "finished");
    let listed = place.run(&["runs"]);
    let line = listed.expect(0).stdout.lines().find(|line| line.contains(run)).unwrap();
    assert!(line.contains("240 games") && line.contains(names[0]) && !line.contains("NaN"), "{line}");
}

#[test]
fn every_game_is_there_once_and_can_be_found() {
    let place = place();
    let run = text(&place.json(&["run", "games.toml", "--json"]), "run").to_owned();
    let find = |flags: &[&str]| {
        let found = place.run(&[&["tournament", "games", &run], flags].concat());
        read_pdn(&found.expect(0).stdout).unwrap()
    };
    let all = find(&[]);
    let rounds: BTreeSet<&str> = all.iter().map(|game| game.tag("Round").unwrap()).collect();
    assert_eq!((all.len(), rounds.len()), (240, 240), "none is lost, none is there twice");
    let of_player = find(&["--player", "champion"]);
    assert_eq!(of_player.len(), 120);
    let results: Vec<usize> = ["won", "lost", "drawn"]
        .iter()
        .map(|result| find(&["--player", "champion", "--result", result]).len())
        .collect();
    assert_eq!(results.iter().sum::<usize>(), 120, "{results:?}");
    let table = place.json(&["tournament", "table", &run, "--json"]);
    let champion =
        table["players"].as_array().unwrap().iter().find(|player| player["name"] == "champion").unwrap();
    assert_eq!(champion["results"]["wins"], results[0]);
    assert_eq!(champion["results"]["losses"], results[1]);
    let pair = find(&["--player", "champion", "--opponent", "gambler", "--opening", "1"]);
    assert!(pair.is_empty() || pair.len() == 2);
    let drawn = find(&["--reason", "repetition"]);
    assert_eq!(drawn.len(), table["endings"]["repetition"].as_u64().unwrap() as usize);
    assert!(drawn.iter().all(|game| game.tag("Termination") == Some("repetition")));
    place.run(&["tournament", "games", &run, "--player", "nobody"]).expect_error(2, &["`nobody`", "gambler"]);
    let meant = ["did you mean `gambler`?"];
    place.run(&["tournament", "games", &run, "--player", "gambbler"]).expect_error(2, &meant);
}

#[test]
fn threads_workers_and_stops_do_not_show_in_the_digest() {
    let place = place();
    let one = place.json(&["run", "games.toml", "--json", "--threads", "1"]);
    let two = place.json(&["run", "games.toml", "--json", "--fresh", "--threads", "2"]);
    let workers = place.json(&["run", "games.toml", "--json", "--fresh", "--workers", "2"]);
    for other in [&two, &workers] {
        assert_eq!(other["digest"], one["digest"]);
        assert_eq!(other["players"], one["players"]);
    }
    let mut stopped = place.start(&["run", "games.toml", "--json", "--fresh", "--threads", "1"]);
    stopped.wait_for("batches of games, 0 done");
    stopped.signal("TERM");
    let stopped = stopped.finish();
    let runs = place.json(&["runs", "--json"]);
    let last = runs.as_array().unwrap().iter().find(|row| text(row, "run").ends_with(".4")).unwrap();
    if stopped.status.code() == Some(143) {
        assert!(last["digest"].is_null(), "{last}");
    }
    let resumed = place.json(&["resume", text(last, "run"), "--json"]);
    assert_eq!(resumed["digest"], one["digest"]);
}

#[test]
fn who_plays_is_settled_when_the_tournament_begins() {
    let place = place();
    let run = text(&place.json(&["run", "games.toml", "--json"]), "run").to_owned();
    // Another player in the same file is another tournament; a tournament that was started keeps the players it started with.
    place.write("stranger.acp", network(2));
    let other = place.json(&["run", "games.toml", "--json"]);
    assert_ne!(text(&other, "run"), run);
    std::fs::remove_file(place.path().join("stranger.acp")).unwrap();
    assert_eq!(place.json(&["verify", &run, "--json"])["ok"], true);
    let missing = place.run(&["run", "games.toml"]);
    assert_ne!(missing.status.code(), Some(0));
}

#[test]
fn a_sequential_test_stops_when_it_is_decided() {
    let place = Place::new();
    let sprt = r#"
        name = "sprt"
        [tournament]
        depth = 2
        sprt = { elo0 = 0, elo1 = 100 }
        players = [{ name = "counter", player = "material" }, { name = "gambler", player = "random" }]
    "#;
    place.write("sprt.toml", sprt);
    let one = place.json(&["run", "sprt.toml", "--json", "--threads", "1"]);
    assert_eq!(one["pairings"][0]["verdict"], "greater");
    let pairs: u64 =
        one["pairings"][0]["results"]["pairs"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    assert!((12..100).contains(&pairs), "{pairs}");
    assert_eq!(one["games"], 2 * pairs);
    for flags in [["--threads", "2"], ["--workers", "2"]] {
        let other = place.json(&[&["run", "sprt.toml", "--json", "--fresh"], &flags[..]].concat());
        assert_eq!((&other["digest"], &other["games"]), (&one["digest"], &one["games"]));
    }
}

#[test]
fn nodes_and_time_limit_players_too() {
    let place = Place::new();
    let limited = |limit: &str| {
        format!(
            "name = \"limited\"\n[tournament]\nopenings = 2\n{limit}\nplayers = [{{ name = \"a\", player = \"material\" }}, \
             {{ name = \"b\", player = \"random\" }}]"
        )
    };
    place.write("nodes.toml", limited("nodes = 200"));
    let one = place.json(&["run", "nodes.toml", "--json"]);
    let again = place.json(&["run", "nodes.toml", "--json", "--fresh"]);
    assert_eq!(one["digest"], again["digest"]);
    assert_eq!(place.json(&["verify", text(&one, "run"), "--json"])["recomputed"], 1);
    place.write("time.toml", limited("milliseconds = 1"));
    let timed = place.json(&["run", "time.toml", "--json"]);
    assert_eq!(timed["games"], 4);
    assert_eq!(
        place.json(&["verify", text(&timed, "run"), "--json"])["recomputed"],
        0,
        "a clock played along"
    );
}

/// Writes an engine that does something else than move.
fn fake_engine(place: &Place, name: &str, instead_of_a_move: &str) -> String {
    let script = format!(
        "#!/bin/sh\nwhile read -r line; do\ncase \"$line\" in\nhub) echo 'id name=fake'; echo wait;;\n\
         init) echo ready;;\ngo*) {instead_of_a_move};;\nesac\ndone\n"
    );
    let path = place.path().join(name);
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("[{name}]\ncommand = [\"{}\"]\n", path.display())
}

#[test]
fn an_engine_that_fails_forfeits_its_game_and_the_tournament_goes_on() {
    let place = Place::new();
    let good = format!(
        "[good]\ncommand = [\"{}\", \"engine\", \"material\"]\npatience = \"2m\"\n",
        env!("CARGO_BIN_EXE_atoll")
    );
    let hangs = fake_engine(&place, "hangs", "sleep 1000") + "patience = \"1s\"\n";
    let crashes = fake_engine(&place, "crashes", "exit 1") + "patience = \"2m\"\n";
    let cheats = fake_engine(&place, "cheats", "echo 'done move=1-32'") + "patience = \"2m\"\n";
    let absent = "[absent]\ncommand = [\"/nowhere/at/all\"]\n";
    place.write(
        "engines.toml",
        [&good, &hangs, &crashes, &cheats, absent].map(|s: &str| s.to_owned()).concat(),
    );
    let mut games = "name = \"engines\"\n[tournament]\nformat = \"gauntlet\"\nopenings = 1\ndepth = 1\n\
                     [[tournament.players]]\nname = \"gambler\"\nplayer = \"random\"\n"
        .to_owned();
    for engine in ["good", "hangs", "crashes", "cheats", "absent"] {
        write!(games, "[[tournament.players]]\nname = \"the {engine} one\"\nengine = \"{engine}\"\n")
            .unwrap();
    }
    place.write("games.toml", games);
    let played = place.json(&["run", "games.toml", "--engines", "engines.toml", "--json"]);
    let endings = &played["endings"];
    assert_eq!(
        (&endings["time"], &endings["crash"], &endings["illegal-move"]),
        (&2.into(), &4.into(), &2.into())
    );
    assert_eq!(played["games"], 10);
    for pairing in played["pairings"].as_array().unwrap() {
        let forfeit = text(pairing, "second") != "the good one";
        assert_eq!(pairing["results"]["wins"] == 2, forfeit, "{pairing}");
    }
    let run = text(&played, "run");
    let found = place.run(&["tournament", "games", run, "--reason", "time"]);
    assert!(found.expect(0).stdout.contains("took too long"), "{}", found.stdout);
    let workers = place.json(&[
        "run",
        "games.toml",
        "--engines",
        "engines.toml",
        "--json",
        "--fresh",
        "--workers",
        "1",
    ]);
    assert_eq!(workers["digest"], played["digest"], "engines' games are no part of it");
    assert_eq!(workers["endings"]["crash"], 4);
    // What is finished is only read: the engines are no longer needed.
    std::fs::remove_file(place.path().join("engines.toml")).unwrap();
    for command in [["run", "games.toml"], ["resume", run]] {
        let again = place.json(&[&command[..], &["--json"]].concat());
        assert_eq!(again["digest"], played["digest"], "{command:?}");
        assert_eq!(again["endings"], played["endings"], "{command:?}");
    }
    let verified = place.json(&["verify", run, "--json"]);
    assert_eq!((&verified["ok"], &verified["recomputed"]), (&true.into(), &0.into()), "{verified}");
    let unknown = place.run(&["run", "games.toml", "--fresh"]);
    unknown.expect_error(78, &["the good one", "expected an engine that this worker knows", "`good`"]);
}

#[test]
fn mistakes_are_told_with_their_places() {
    let place = Place::new();
    let player = "players = [{ name = \"a\", player = \"random\" }, { name = \"b\", player = \"material\" }]";
    for (line, said) in [
        ("players = [{ name = \"a\", player = \"random\" }]", "expected players of two teams, found one"),
        ("players = []", "tournament.players"),
        ("players = [{ name = \"a\" }, { name = \"b\", player = \"random\" }]", "expected one of `player`"),
        (
            "players = [{ name = \"a\", player = \"random\" }, { name = \"a\", player = \"random\" }]",
            "expected each name once",
        ),
        ("openings = 157", "tournament.openings"),
        ("sprt = { elo0 = 5, elo1 = 1 }", "expected more than `elo0`"),
        (
            "published = [{ teams = [\"a\", \"x\"], wins = 1, draws = 1, losses = 1, source = \"\" }]",
            "found `x`",
        ),
        ("deepth = 3", "did you mean `depth`"),
        (
            "published = [{ teams = [\"a\", \"b\"], wins = 1, draws = 1, losses = 1, source = \"two\\nlines\" }]",
            "expected a text on one line",
        ),
        (
            "players = [{ name = \"a\", player = \"random\", team = \"<b>|\" }, { name = \"b\", player = \"random\" }]",
            "expected a name without quotes",
        ),
        (
            "rounds = 2\nplayers = [{ name = \"a\", player = \"a.acp\" }, { name = \"b\", ensemble = \"run\" }]",
            "`a` and `b` leave nothing to chance",
        ),
        (
            "players = [{ name = \"a\", player = \"random\", unsure = [0.1, 0.2] }, { name = \"b\", player = \"random\" }]",
            "expected a player that asks the endgame database",
        ),
        (
            "players = [{ name = \"a\", player = \"material\", endgame = 2, unsure = [0.3, 0.2] }, \
             { name = \"b\", player = \"random\" }]",
            "expected more than the first",
        ),
    ] {
        let rest = if line.contains("players") { "" } else { player };
        place.write("wrong.toml", format!("name = \"wrong\"\n[tournament]\n{line}\n{rest}\n"));
        place.run(&["run", "wrong.toml"]).expect_error(78, &[said]);
    }
    place.write("unknown.toml", "name = \"x\"\n[tournament]\nplayers = [{ name = \"a\", player = \"no-such-run\" }, { name = \"b\", player = \"random\" }]");
    let unknown = place.run(&["run", "unknown.toml"]);
    assert!(!unknown.status.success() && unknown.stderr.contains("no-such-run"), "{unknown:?}");
}

#[test]
fn a_study_ends_with_its_tournament() {
    let place = Place::new();
    let study = EVOLUTION.replace("name = \"evolution\"", "name = \"methods\"")
        + r#"
[study.plain]
[study.crowded]
algorithm = { kind = "crowding", population = 8, mutation = { rate = 0.01, per = "gene", step = 0.1 } }

[tournament]
format = "gauntlet"
openings = 3
depth = 1
species = { noise = "own", depth = 1 }
players = [
    { name = "plain", player = "plain" },
    { name = "kind", representatives = "crowded", team = "representatives" },
    { name = "all", ensemble = "crowded" },
]
published = [{ teams = ["all", "plain"], wins = 37, losses = 16, draws = 15, source = "somebody" }]
"#;
    place.write("study.toml", study);
    let played = place.json(&["run", "study.toml", "--json"]);
    let games = &played["tournament"];
    assert_eq!(games["complete"], true, "{played}");
    let teams = games["teams"].as_array().unwrap();
    // Each team comes from one run: many representatives, and still nothing but their games to judge them by.
    assert!(
        teams.iter().all(|team| team["judged_by"] == "games" && team["origins"] == serde_json::json!([1, 1]))
    );
    let published = teams.iter().find(|team| !team["published"].is_null()).unwrap();
    assert_eq!(published["teams"], serde_json::json!(["all", "plain"]));
    assert_eq!(
        published["results"]["pairs"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum::<u64>(),
        3
    );
    let shown = place.run(&["run", "study.toml"]);
    assert!(
        shown.expect(0).stdout.contains("37 won, 16 lost, 15 drawn: 0.654 (somebody)"),
        "{}",
        shown.stdout
    );
    let again = place.json(&["run", "study.toml", "--json"]);
    assert_eq!(again["digest"], played["digest"]);
}

/// Two teams of three player files each: the interval is that of the files, which are what differs.
#[test]
fn teams_are_judged_by_where_their_players_come_from() {
    let place = Place::new();
    let mut games = "name = \"methods\"\n[tournament]\nopenings = 26\ndepth = 1\n".to_owned();
    for number in 0..6 {
        place.write(&format!("{number}.acp"), network(number + 1));
        let team = ["some", "others"][number as usize % 2];
        write!(
            games,
            "[[tournament.players]]\nname = \"{number}\"\nplayer = \"{number}.acp\"\nteam = \"{team}\"\n"
        )
        .unwrap();
    }
    games += "[[tournament.published]]\nteams = [\"others\", \"some\"]\nwins = 1\nlosses = 2\ndraws = 3\n\
              source = \"a | b <script>alert(1)</script>\"\n";
    place.write("methods.toml", games);
    let played = place.json(&["run", "methods.toml", "--json"]);
    let team = &played["teams"][0];
    assert_eq!(team["teams"], serde_json::json!(["others", "some"]));
    assert_eq!((&team["judged_by"], &team["origins"]), (&"origins".into(), &serde_json::json!([3, 3])));
    // By leaving each player out, with what the games between each two came to.
    let mut scores = [[0.0; 3]; 3];
    for pairing in played["pairings"].as_array().unwrap() {
        let [first, second] = ["first", "second"].map(|key| text(pairing, key).parse::<usize>().unwrap());
        let score = pairing["results"]["score"].as_f64().unwrap();
        let (other, some, score) =
            if first % 2 == 1 { (first, second, score) } else { (second, first, 1.0 - score) };
        scores[other / 2][some / 2] = score;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let means = [scores.map(|row| mean(&row)), [0, 1, 2].map(|column| mean(&scores.map(|row| row[column])))];
    // Of a mean over all cells, a jackknife is the variance of the means of rows, and of columns, over their number.
    let variances =
        means.map(|side| side.map(|value| (value - mean(&side)).powi(2)).iter().sum::<f64>() / 2.0 / 3.0);
    let variance = variances[0] + variances[1];
    let degrees = variance * variance / variances.map(|side| side * side / 2.0).iter().sum::<f64>();
    assert!((2.0..=4.0).contains(&degrees));
    let [score, low, high] = ["score", "low", "high"].map(|key| team["results"][key].as_f64().unwrap());
    assert!((score - mean(&means[0])).abs() < 1e-9);
    // Student's quantiles for 2 and for 4 degrees of freedom.
    let margin = (high - score).max(score - low);
    let error = variance.sqrt();
    assert!(
        (2.7764 * error..=4.3027 * error).contains(&margin),
        "{low} to {high}, {error} of {degrees} degrees"
    );

    let run = text(&played, "run");
    let table = place.run(&["tournament", "table", run]);
    assert!(table.expect(0).stdout.contains("origins, 3 × 3"), "{}", table.stdout);
    assert!(table.stdout.contains("(a \\| b &lt;script>"), "a text stays a text: {}", table.stdout);
    place.run(&["tournament", "page", run, "--to", "page"]).expect(0);
    let page = std::fs::read_to_string(place.path().join("page/index.html")).unwrap();
    assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>alert"));
}

#[test]
fn the_same_games_are_not_played_again_for_more_evidence() {
    let place = Place::new();
    (1..=2).for_each(|number| place.write(&format!("{number}.acp"), network(number)));
    let match_of = |opponent: &str| {
        place.run(&["checkers", "match", "1.acp", opponent, "--depth", "1", "--pairs", "157", "--json"])
    };
    match_of("2.acp").expect_error(2, &["at most 156 pairs", "`--pairs 157`", "the same games again"]);
    assert_eq!(match_of("random").expect(0).json()["pairs"].as_array().unwrap().len(), 5);
}

#[test]
fn milestones_are_rated() {
    let place = place();
    let run = place.json(&["runs", "--json"])[0]["run"].as_str().unwrap().to_owned();
    let rated = place.json(&["ratings", &run, "--depth", "1", "--openings", "5", "--json"]);
    let milestones = rated["milestones"].as_array().unwrap();
    assert_eq!(milestones.len(), 3, "{rated}");
    assert_eq!(rated["progress"][0]["from_epoch"], milestones[0]["epoch"]);
    assert!((0..=3).contains(&rated["comparisons"].as_u64().unwrap()), "of three champions: {rated}");
    let shown = place.run(&["ratings", &run, "--depth", "1", "--openings", "5"]);
    for said in ["| island | epoch | Elo |", "| material |", "| random |", "island 0:"] {
        assert!(shown.expect(0).stdout.contains(said), "{said} in {}", shown.stdout);
    }
}

#[test]
fn of_many_islands_the_fittest_is_rated_unless_others_are_asked_for() {
    let place = Place::new();
    let knowing = EVOLUTION
        .replace("count = 1", "count = 100")
        .replace("depth = 1", "depth = 1, endgame = { pieces = 2, from = 0.3 }")
        .replace("generations = 6", "generations = 12");
    place.write("islands.toml", knowing);
    let run = text(&place.json(&["run", "islands.toml", "--json"]), "run").to_owned();
    let rate = |flags: &[&str]| {
        place.run(&[&["ratings", &run, "--depth", "1", "--openings", "1", "--json"], flags].concat())
    };
    let islands = |rated: &Value| -> BTreeSet<u64> {
        rated["progress"].as_array().unwrap().iter().map(|row| row["island"].as_u64().unwrap()).collect()
    };
    let rated = rate(&[]).expect(0).json();
    let fittest = place.json(&["report", &run, "--json"])["best_island"].as_u64().unwrap();
    assert_eq!(islands(&rated), BTreeSet::from([fittest]));
    let chosen = rate(&["--island", "7", "--island", "2"]).expect(0).json();
    assert_eq!(islands(&chosen), BTreeSet::from([2, 7]));
    rate(&["--island", "100"]).expect_error(2, &["from 0 to 99", "`--island 100`"]);
    rate(&["--all-islands"])
        .expect_error(2, &["at most 254 champions", "100 islands", "--island", "--milestones"]);
    // They play with what they knew when they evolved.
    let games = text(&rated, "tournament");
    let plan =
        std::fs::read_to_string(place.store().join("runs").join(games).join("experiment.toml")).unwrap();
    assert!(plan.contains("endgame = 2") && plan.contains("unsure = ["), "{plan}");
    place.run(&["report", &run, "--to", "page"]).expect(0);
    let page = std::fs::read_to_string(place.path().join("page/report.html")).unwrap();
    assert!(page.contains("ask the endgame database of 2 pieces, as they did when they evolved"));
}

/// A hundred players, each against each, in a gibibyte of addresses.
#[test]
fn a_hundred_players_fit_into_a_gibibyte() {
    let place = Place::new();
    let mut games =
        "name = \"hundred\"\n[tournament]\nopenings = 1\ndepth = 1\ndraw = { max_plies = 30 }\n".to_owned();
    for number in 0..100 {
        place.write(&format!("{number}.acp"), network(number + 1));
        write!(games, "[[tournament.players]]\nname = \"{number}\"\nplayer = \"{number}.acp\"\n").unwrap();
    }
    place.write("hundred.toml", games);
    let limited = format!(
        "ulimit -v 1048576; exec {} run hundred.toml --json --threads 2",
        env!("CARGO_BIN_EXE_atoll")
    );
    let played = crate::support::finish(&mut place.command_of("bash", &["-c", &limited]));
    assert_eq!(played.expect(0).json()["games"], 2 * 4950);
}
