//! The dashboard of a real cluster in a real browser: every page holds, nothing leaves the host, pages refresh themselves,
//! and actions do what their buttons say.

use crate::chromium::{Chromium, Page, View};
use crate::support::Place;
use crate::{LIGHT, axe, faults_at};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const EXPERIMENT: &str = r#"
name = "night"
seed = 5
problem = { kind = "maze", width = 20, height = 20, turns = 50 }
algorithm = { kind = "ga", population = 400, mutation = { rate = 0.3 } }
islands = { count = 8 }
migration = { interval = 25, count = 2 }
budget = { generations = 1000000 }
checkpoint = { every = "1s" }
"#;

/// A process that ends with its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(place: &Place, arguments: &[&str]) -> Process {
    let mut command = place.command(arguments);
    Process(
        command.stdout(Stdio::null()).stderr(Stdio::piped()).env_remove("ATOLL_COORDINATOR").spawn().unwrap(),
    )
}

/// What a line on stderr says after these words.
fn said(lines: &mut impl Iterator<Item = std::io::Result<String>>, words: &str) -> String {
    let line = lines.next().unwrap().unwrap();
    line.strip_prefix(words).unwrap_or_else(|| panic!("{line}")).to_owned()
}

/// Waits until an expression holds on a page, which is not touched meanwhile.
fn until(page: &mut Page<'_>, what: &str, expression: &str) -> Duration {
    let start = Instant::now();
    while page.evaluate(expression) != true {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
    start.elapsed()
}

#[test]
fn the_dashboard_of_a_cluster_holds_in_a_browser() {
    let (place, axe) = (Place::new(), axe());
    place.write("night.toml", EXPERIMENT);
    let arguments = ["coordinator", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--lease", "2s"];
    let mut coordinator = start(&place, &arguments);
    let mut lines = BufReader::new(coordinator.0.stderr.take().unwrap()).lines();
    let url = said(&mut lines, "coordinator at ");
    let site = said(&mut lines, "dashboard, health and metrics at ");
    std::thread::spawn(move || lines.for_each(drop));
    let worker = |name| start(&place, &["worker", "--coordinator", &url, "--threads", "1", "--name", name]);
    let submitted = place.json(&["submit", "night.toml", "--coordinator", &url, "--json"]);
    let run = submitted["run"].as_str().unwrap();
    let victim = worker("victim");
    let mut chromium = Chromium::start();

    // The page shows the worker without being touched, and that it was killed within a lease and 2 seconds.
    let mut page = chromium.visit(&format!("{site}/workers"), LIGHT);
    until(&mut page, "a busy worker", "document.querySelector('.state.busy') !== null");
    drop(victim);
    let seen = until(&mut page, "a silent worker", "document.querySelector('.state.silent') !== null");
    assert!(seen < Duration::from_secs(6), "{seen:?} after a lease of 2 seconds");
    drop(page);

    let _worker = worker("second");
    let mut page = chromium.visit(&format!("{site}/runs/{run}"), LIGHT);
    until(&mut page, "islands that are computed", "document.querySelector('.cells .computing') !== null");
    until(
        &mut page,
        "a strip of both workers",
        "/victim/.test(document.querySelector('#work')?.textContent ?? '')",
    );
    // Buttons do what they say.
    page.evaluate(
        "[...document.querySelectorAll('.actions button')].find((b) => b.textContent === 'Pause').click()",
    );
    until(&mut page, "a paused run", "document.querySelector('.why').textContent.includes('paused')");
    let requests = page.requests();
    assert!(requests.iter().all(|request| request.starts_with(&site)), "{requests:?}");
    assert_eq!(page.complaints(), Vec::<String>::new());
    drop(page);

    photograph(&mut chromium, &site, run);
    let own = |requests: &[String]| requests.iter().all(|request| request.starts_with(&site));
    let mut found = vec![];
    for path in ["/".to_owned(), "/workers".to_owned(), format!("/runs/{run}"), "/login".to_owned()] {
        found.extend(faults_at(&mut chromium, &format!("{site}{path}"), &axe, own));
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));

    // Everything can be read without scripts.
    let mut page = chromium.visit(&format!("{site}/runs/{run}"), View { scripts: false, ..LIGHT });
    let shown = page.evaluate("document.querySelector('#fitness').textContent.length > 100 && getComputedStyle(document.querySelector('.actions')).display === 'none'");
    assert_eq!(shown, true);
}

/// Pictures for people who look at the pages: `ATOLL_PICTURES` names the folder.
fn photograph(chromium: &mut Chromium, site: &str, run: &str) {
    let Some(folder) = std::env::var_os("ATOLL_PICTURES") else { return };
    let folder = std::path::PathBuf::from(folder);
    for (path, name) in
        [("/".to_owned(), "runs"), (format!("/runs/{run}"), "run"), ("/workers".to_owned(), "workers")]
    {
        for (view, kind) in [(LIGHT, "light"), (crate::DARK, "dark"), (crate::NARROW, "narrow")] {
            let view = if kind == "narrow" { view } else { View { width: 1280, ..view } };
            let mut page = chromium.visit(&format!("{site}{path}"), view);
            std::fs::write(folder.join(format!("{name}-{kind}.png")), page.photograph(1600)).unwrap();
        }
    }
}
