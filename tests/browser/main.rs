//! Reports of real runs in a real browser: nothing complains, nothing is fetched, nothing overflows or overlaps, games can
//! be stepped through, and axe finds nothing serious.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chromium;
mod dashboard;
mod levels;
mod reports;
#[path = "../support/mod.rs"]
mod support;

use chromium::{Chromium, Page, View};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::Place;

const LIGHT: View = View { width: 1600, dark: false, scripts: true };
const DARK: View = View { width: 1600, dark: true, scripts: true };
const NARROW: View = View { width: 400, dark: false, scripts: true };
/// Everything that a page is looked at in.
const VIEWS: [View; 6] = [
    LIGHT,
    DARK,
    NARROW,
    View { dark: true, ..NARROW },
    View { width: 1280, ..LIGHT },
    View { width: 2000, ..LIGHT },
];

const CHECKERS: &str = r#"
name = "checkers"
problem = { kind = "checkers", depth = 1, games = 2, openings = "deck" }
algorithm = { kind = "es", parents = 5, offspring = 5 }
islands = { count = 3 }
migration = { interval = 1, count = 1 }
budget = { generations = 4 }
retention = { milestones = 1 }
"#;

const OTHERS: [(&str, &str); 4] = [
    (
        "onemax",
        r#"
name = "onemax"
problem = { kind = "onemax", length = 100 }
algorithm = { kind = "ga", population = 10, mutation = { rate = 0.2 } }
islands = { count = 300, topology = "ring" }
migration = { interval = 5, count = 1 }
budget = { generations = 60 }
"#,
    ),
    (
        "rastrigin",
        r#"
name = "rastrigin"
problem = { kind = "rastrigin", dimensions = 6 }
algorithm = { kind = "es", parents = 10, offspring = 30 }
islands = { count = 12, topology = { kind = "torus", rows = 3 } }
migration = { interval = 10, count = 2 }
budget = { generations = 200 }
"#,
    ),
    (
        "lock-key",
        r#"
name = "lock-key"
problem = { kind = "lock-key", targets = [60, 90] }
algorithm = { kind = "ga", population = 30, mutation = { rate = 0.5 } }
islands = { count = 2 }
migration = { interval = 5, count = 1 }
budget = { generations = 20 }
"#,
    ),
    (
        "match3",
        r#"
name = "match3"
problem = { kind = "match3", targets = [0.7, 0.5] }
algorithm = { kind = "ga", population = 10 }
islands = { count = 2 }
migration = { interval = 2, count = 1 }
budget = { generations = 4 }
"#,
    ),
];

const MAP_ELITES: &str = r#"
name = "map-elites"
problem = { kind = "rastrigin", dimensions = 4 }
algorithm = { kind = "map-elites", bins = [12, 8], founders = 60, batch = 50, mutation = { per = "gene", step = 0.3 } }
islands = { count = 2 }
migration = { interval = 5, count = 1 }
budget = { generations = 40 }
"#;

const SWEEP: &str = r#"
name = "sweep"
problem = { kind = "maze", width = 8, height = 8 }
algorithm = { kind = "ga", population = 20, mutation = { rate = 0.1 } }
islands = { count = 1 }
budget = { generations = 5 }
[sweep]
repeats = 2
[[sweep.axis]]
keys = ["problem.width"]
values = [8, 10]
[[sweep.axis]]
keys = ["problem.turns"]
values = [5, 10, 15]
[sweep.variants]
few = {}
many = { algorithm.population = 40 }
"#;

const TOURNAMENT: &str = r#"
name = "tournament"
[tournament]
openings = 26
depth = 1
sprt = { elo0 = 0, elo1 = 100 }
players = [
    { name = "counter, one ply ahead", player = "material", team = "counters" },
    { name = "counter, two plies ahead of everybody else", player = "material", depth = 2, team = "counters" },
    { name = "gambler", player = "random", team = "gamblers" },
    { name = "another gambler", player = "random", team = "gamblers" },
]
published = [{ teams = ["counters", "gamblers"], wins = 10, draws = 3, losses = 2, source = "<somebody>" }]
"#;

/// Plays a tournament, and writes its page.
fn tournament(place: &Place) -> PathBuf {
    place.write("tournament.toml", TOURNAMENT);
    let played = place.json(&["run", "tournament.toml", "--json"]);
    place.run(&["tournament", "page", played["run"].as_str().unwrap(), "--to", "tournament"]).expect(0);
    place.path().join("tournament/index.html")
}

/// Runs an experiment, and writes its report; answers the page.
fn report(place: &Place, name: &str, text: &str) -> PathBuf {
    let file = format!("{name}.toml");
    place.write(&file, text);
    place.run(&["run", &file]).expect(0);
    place.run(&["report", &file, "--to", name]).expect(0);
    place.path().join(name).join("report.html")
}

/// The accessibility checker, as a script.
fn axe() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let set_up = Command::new(root.join("tests/referees/setup")).arg("axe").status();
    assert!(set_up.is_ok_and(|status| status.success()), "tests/referees/setup axe");
    let found =
        Command::new("find").arg(root.join("target/referees/axe")).args(["-name", "axe.min.js"]).output();
    let path = String::from_utf8(found.unwrap().stdout).unwrap();
    std::fs::read_to_string(path.trim()).expect("axe.min.js")
}

/// Elements that reach over the edge of the page, unless something around them scrolls.
const OVERFLOWING: &str = r#"
(() => {
  const wide = document.documentElement.clientWidth, bad = [];
  if (document.documentElement.scrollWidth > wide) bad.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const element of document.body.querySelectorAll("*")) {
    const around = element.parentElement.closest(".scroll, pre, .moves, svg");
    const { right, width } = element.getBoundingClientRect();
    if (!around && width > 0 && right > wide + 1) bad.push(`${element.tagName}.${element.className} to ${right}`);
  }
  return bad;
})()"#;

/// Texts of a chart that reach over its edge, or over each other.
const CROWDED: &str = r#"
(() => {
  const bad = [];
  for (const chart of document.querySelectorAll("svg.chart")) {
    const frame = chart.getBoundingClientRect();
    if (!frame.width) continue;
    const texts = [...chart.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
    texts.forEach(([name, one], at) => {
      if (one.left < frame.left - 1 || one.right > frame.right + 1 || one.bottom > frame.bottom + 1)
        bad.push(`${chart.getAttribute("aria-label")}: "${name}" is cut off`);
      for (const [other, two] of texts.slice(at + 1)) {
        const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
        const down = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
        if (across > 1 && down > 2) bad.push(`${chart.getAttribute("aria-label")}: "${name}" over "${other}"`);
      }
    });
  }
  return bad;
})()"#;

/// What axe calls serious or critical, of all that it knows (`null`) or of some of its rules.
const SERIOUS: &str = r#"
axe.run(document, { resultTypes: ["violations"], runOnly: RULES ?? undefined }).then(({ violations }) => violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => `${id}: ${nodes.length} times, such as ${nodes[0].html.slice(0, 200)}`))"#;

/// Everything that an expression finds wrong with a page.
fn found(page: &mut Page<'_>, expression: &str) -> Vec<String> {
    let found = page.evaluate(expression);
    found.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

/// All that is wrong with the page of a file, however it is looked at.
fn faults(chromium: &mut Chromium, file: &Path, axe: &str) -> Vec<String> {
    let url = format!("file://{}", file.display());
    faults_at(chromium, &url, axe, |requests| requests == [url.as_str()])
}

/// All that is wrong with a page, however it is looked at.
fn faults_at(
    chromium: &mut Chromium,
    url: &str,
    axe: &str,
    may_request: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    let mut faults = vec![];
    for view in VIEWS {
        let mut page = chromium.visit(url, view);
        page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })");
        let mut own = found(&mut page, OVERFLOWING);
        own.extend(found(&mut page, CROWDED));
        if view.width == LIGHT.width || view.width == NARROW.width {
            page.evaluate(&format!("{axe}; 0"));
            own.extend(found(&mut page, &SERIOUS.replace("RULES", "null")));
        }
        own.extend(page.complaints());
        let requests = page.requests();
        if !may_request(&requests) {
            own.push(format!("expected requests for the page alone, found {requests:?}"));
        }
        let view = format!("{url} at {}, dark: {}", view.width, view.dark);
        faults.extend(own.into_iter().map(|fault| format!("{view}: {fault}")));
    }
    faults
}

#[test]
fn pages_of_every_problem_hold_in_a_browser() {
    let (place, axe) = (Place::new(), axe());
    let mut pages: Vec<PathBuf> = OTHERS.iter().map(|(name, text)| report(&place, name, text)).collect();
    pages.push(report(&place, "maze", &support::MAZE.replace("generations = 400", "generations = 100")));
    pages.push(report(&place, "sweep", SWEEP));
    pages.push(report(&place, "checkers", CHECKERS));
    pages.push(report(&place, "map-elites", MAP_ELITES));
    place.run(&["report", "maze.toml", "rastrigin.toml", "--to", "both"]).expect(0);
    pages.push(place.path().join("both/report.html"));
    pages.push(tournament(&place));
    let mut chromium = Chromium::start();
    let faults: Vec<String> = pages.iter().flat_map(|page| faults(&mut chromium, page, &axe)).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    for page in &pages {
        let folder = page.parent().and_then(Path::file_name).unwrap();
        reports::photograph_views(&mut chromium, &folder.to_string_lossy(), page);
    }
}

/// A page on which everything is wrong that is looked for.
const WRONG: &str = r#"<!doctype html><html lang="en"><title>wrong</title><body>
<div style="width:3000px">wide</div><img src="missing.png">
<svg class="chart" aria-label="c" viewBox="0 0 100 20" width="100"><text x="0" y="15">one</text><text x="5" y="15">two</text>
<text x="90" y="15">cut off</text></svg><script>console.error("oh"); throw new Error("no");</script></body></html>"#;

#[test]
fn what_is_wrong_is_found() {
    let place = Place::new();
    place.write("wrong.html", WRONG);
    let faults = faults(&mut Chromium::start(), &place.path().join("wrong.html"), &axe()).join("\n");
    let expected = [
        "the page is 3",
        "\"one\" over \"two\"",
        "is cut off",
        "image-alt",
        "missing.png",
        "\"oh\"",
        "Error: no",
    ];
    for fault in expected {
        assert!(faults.contains(fault), "expected {fault} in:\n{faults}");
    }
}

/// The board of the first game on a page, as its squares' classes.
const BOARD: &str = "[...document.querySelector('.game').querySelectorAll('[data-square]')].map((g) => g.getAttribute('class')).join()";

#[test]
fn games_can_be_stepped_through_and_read_without_scripts() {
    let place = Place::new();
    let file = report(&place, "checkers", CHECKERS);
    let mut chromium = Chromium::start();
    let mut page = chromium.open(&file, LIGHT);
    let step = |page: &mut Page<'_>, name: &str| {
        page.evaluate(&format!("document.querySelector('.game [data-step={name}]').click()"));
        page.evaluate(BOARD).as_str().unwrap().to_owned()
    };
    let start = page.evaluate(BOARD).as_str().unwrap().to_owned();
    let men = |colour: &str| vec![format!("man {colour}"); 12].join(",");
    assert_eq!(
        start,
        format!("{},{},{}", men("black"), ["none"; 8].join(","), men("white")),
        "the start position"
    );
    let said = page.evaluate("document.querySelector('.game output').textContent");
    assert_eq!(said, "start position", "a game opens where it began");
    let end = step(&mut page, "last");
    assert_eq!(step(&mut page, "first"), start);
    assert_eq!(page.evaluate("document.querySelector('.game').querySelectorAll('.moved').length"), 0);
    let first = step(&mut page, "on");
    assert_ne!(first, start);
    let marked = "document.querySelector('.game').querySelectorAll('.moved').length";
    assert_eq!(page.evaluate(marked), 2, "the squares of the last move");
    let second = step(&mut page, "on");
    assert!(second != first && second != end);
    assert_eq!(step(&mut page, "back"), first);
    assert_eq!(step(&mut page, "last"), end);
    let press = |page: &mut Page<'_>, key: &str| {
        let event = format!("new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }})");
        page.evaluate(&format!("document.querySelector('.game .moves').dispatchEvent({event})"));
        page.evaluate(BOARD).as_str().unwrap().to_owned()
    };
    assert_eq!(press(&mut page, "Home"), start);
    assert_eq!(press(&mut page, "ArrowLeft"), start, "there is nothing before it");
    assert_eq!(press(&mut page, "ArrowRight"), first);
    assert_eq!(press(&mut page, "End"), end);
    let pdn =
        page.evaluate("decodeURIComponent(document.querySelector('.game a[download]').href.split(',')[1])");
    let pdn = checkers::read_pdn(pdn.as_str().unwrap()).unwrap();
    let moves = page.evaluate("document.querySelector('.game').querySelectorAll('[data-board]').length");
    assert_eq!(moves, pdn[0].moves.len(), "the download is the game");
    let numbered =
        page.evaluate("document.querySelectorAll('.game')[0].querySelectorAll('.moves li').length");
    assert_eq!(numbered, pdn[0].moves.len().div_ceil(2), "moves are numbered as in PDN");
    let cut = page.evaluate(
        "[...document.querySelectorAll('.moves')].filter((list) => list.scrollWidth > list.clientWidth).length",
    );
    assert_eq!(cut, 0, "move lists wrap and scroll down");
    page.evaluate("{ const slider = document.querySelector('.game input'); slider.value = 2; slider.dispatchEvent(new Event('input')); }");
    assert_eq!(page.evaluate(BOARD), second);
    let said = page.evaluate("document.querySelector('.game output').textContent");
    assert!(said.as_str().unwrap().starts_with("after move 1 of white"), "{said}");
    assert_eq!(page.complaints(), Vec::<String>::new());
    assert!(page.print() > 10_000, "it can be printed");
    drop(page);
    let mut page = chromium.open(&file, View { scripts: false, ..LIGHT });
    assert_eq!(page.evaluate(BOARD), end, "the last position is drawn");
    assert_eq!(
        page.evaluate("document.querySelector('.game').querySelectorAll('[data-board]').length"),
        moves
    );
    assert_eq!(page.evaluate("getComputedStyle(document.querySelector('.steps')).display"), "none");
}
