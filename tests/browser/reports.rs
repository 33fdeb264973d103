//! Reports on every screen and on paper: what belongs together stands side by side where there is room. `ATOLL_PICTURES`
//! names a folder for pictures of them, for people who look at them and for the documentation.

use crate::chromium::{Chromium, View};
use crate::dashboard::{said, start};
use crate::support::Place;
use crate::{OVERFLOWING, axe, faults, found, report};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

const WIDE: View = View { width: 1280, dark: false, scripts: true };
/// A sheet of A4 between its margins.
const PAPER: View = View { width: 720, ..WIDE };

const QUICKSTART: &str = include_str!("../../examples/quickstart.toml");

const LOCK_KEY: &str = r#"
name = "lock-key"
problem = { kind = "lock-key", targets = [60, 90, 120, 150] }
algorithm = { kind = "ga", population = 40, mutation = { rate = 0.5 } }
islands = { count = 4 }
migration = { interval = 5, count = 1 }
budget = { generations = 20 }
"#;

const CHECKERS: &str = r#"
name = "checkers"
problem = { kind = "checkers", depth = 2, games = 2, openings = "deck" }
algorithm = { kind = "es", parents = 5, offspring = 5 }
islands = { count = 3 }
migration = { interval = 2, count = 1 }
budget = { generations = 6 }
retention = { milestones = 1 }
"#;

/// Where two blocks stand that belong together: beside each other, or one below the other.
const BESIDE: &str = "(() => {
  const [one, two] = [...document.querySelector('.beside').children].map((part) => part.getBoundingClientRect());
  return one.right <= two.left && one.top === two.top ? 'beside' : one.bottom <= two.top ? 'below' : 'over';
})()";

fn pictures() -> Option<PathBuf> {
    std::env::var_os("ATOLL_PICTURES").map(PathBuf::from)
}

/// The experiment, or a longer one where pictures are taken.
fn budget(text: &str, generations: u32) -> String {
    if pictures().is_none() {
        return text.to_owned();
    }
    let (before, after) = text.split_once("generations = ").unwrap();
    let after = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
    format!("{before}generations = {generations}{after}")
}

#[test]
fn reports_hold_on_every_screen_and_on_paper() {
    let (place, axe) = (Place::new(), axe());
    let quickstart = QUICKSTART.replace("generations = 2000", "generations = 300");
    assert_ne!(quickstart, QUICKSTART);
    let pages = [
        ("quickstart", report(&place, "quickstart", &budget(&quickstart, 2000))),
        ("lock-key", report(&place, "lock-key", &budget(LOCK_KEY, 150))),
        ("checkers", report(&place, "checkers", &budget(CHECKERS, 60))),
    ];
    let mut chromium = Chromium::start();
    for (name, file) in &pages {
        let faults = faults(&mut chromium, file, &axe);
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
        photograph(&mut chromium, name, file);
        let mut page = chromium.open(file, PAPER);
        page.show_print();
        assert_eq!(found(&mut page, OVERFLOWING), Vec::<String>::new(), "{name} on paper");
    }
    for (name, view, expected) in [
        ("quickstart", WIDE, "beside"),
        ("quickstart", crate::NARROW, "below"),
        ("checkers", WIDE, "beside"),
        ("checkers", crate::NARROW, "below"),
    ] {
        let (_, file) = pages.iter().find(|(known, _)| *known == name).unwrap();
        assert_eq!(chromium.open(file, view).evaluate(BESIDE), expected, "{name} at {}", view.width);
    }
    let mut page = chromium.open(&pages[2].1, WIDE);
    let first = page.evaluate("document.querySelector('.tile dt').textContent");
    assert_eq!(first, "Generations", "fitness against each other is no strength");
    let elo = "Math.max(...[...document.querySelectorAll('[aria-label^=\"Elo of the champions\"] path.curve')].map((path) => path.getAttribute('d').split('L').length))";
    assert!(page.evaluate(elo).as_u64().unwrap() > 2, "a curve over several epochs");
}

fn save(folder: &Path, name: &str, kind: &str, picture: &[u8]) {
    std::fs::write(folder.join(format!("report-{name}-{kind}.png")), picture).unwrap();
}

/// A report at 1280 and at 400, in the dark and as it is printed.
pub(crate) fn photograph_views(chromium: &mut Chromium, name: &str, file: &Path) {
    let Some(folder) = pictures() else { return };
    for (kind, view) in
        [("light", WIDE), ("dark", View { dark: true, ..WIDE }), ("narrow", crate::NARROW), ("print", PAPER)]
    {
        let mut page = chromium.open(file, view);
        if kind == "print" {
            page.show_print();
        }
        save(&folder, name, kind, &page.photograph(2400));
    }
}

/// The same, and the parts that the documentation shows.
fn photograph(chromium: &mut Chromium, name: &str, file: &Path) {
    photograph_views(chromium, name, file);
    let Some(folder) = pictures() else { return };
    let save = |kind: &str, picture: Vec<u8>| save(&folder, name, kind, &picture);
    let mut page = chromium.open(file, WIDE);
    save("top", page.photograph(1000));
    let mut part = |kind: &str, element: &str, most: f64| save(kind, page.photograph_part(element, most));
    part("found", "document.querySelector('#found')", 1600.0);
    if name == "lock-key" {
        part("gallery", "document.querySelector('#found .gallery')", 900.0);
    }
    if name == "checkers" {
        part("curves", "document.querySelector('.beside')", 900.0);
    }
}

/// One of three workers is killed: the strip shows who took over, and the page what it cost.
#[test]
fn a_report_shows_who_computed_what() {
    let place = Place::new();
    let text = QUICKSTART.replace("generations = 2000", "generations = 3000");
    place.write("night.toml", text.replace("name = \"quickstart\"", "name = \"night\""));
    let mut coordinator =
        start(&place, &["coordinator", "--listen", "127.0.0.1:0", "--http", "off", "--lease", "1s"]);
    let mut lines = BufReader::new(coordinator.0.stderr.take().unwrap()).lines();
    let url = said(&mut lines, "coordinator at ");
    std::thread::spawn(move || lines.for_each(drop));
    let worker = |name| start(&place, &["worker", "--coordinator", &url, "--threads", "1", "--name", name]);
    let submitted = place.json(&["submit", "night.toml", "--coordinator", &url, "--json"]);
    let run = submitted["run"].as_str().unwrap();
    let _workers = ["node-a", "node-b"].map(worker);
    let victim = worker("node-c");
    let reached = |least: u64| {
        crate::support::until("the run goes on", || {
            let rows = place.json(&["runs", "--coordinator", &url, "--json"]);
            rows[0]["generations"].as_u64().unwrap_or(0) >= least
        });
    };
    reached(1000);
    drop(victim);
    place.run(&["watch", run, "--coordinator", &url, "--json"]).expect(0);
    place.run(&["report", run, "--to", "night"]).expect(0);
    let mut chromium = Chromium::start();
    let mut page = chromium.open(&place.path().join("night/report.html"), WIDE);
    let work = page.evaluate("document.querySelector('#work').textContent");
    for name in ["node-a", "node-b", "node-c"] {
        assert!(work.as_str().unwrap().contains(name), "{name}: {work}");
    }
    if let Some(folder) = pictures() {
        let picture = page.photograph_part("document.querySelector('#work')", 600.0);
        std::fs::write(folder.join("work.png"), picture).unwrap();
    }
    assert_eq!(found(&mut page, OVERFLOWING), Vec::<String>::new());
}
