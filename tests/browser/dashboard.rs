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
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn start(place: &Place, arguments: &[&str]) -> Process {
    let mut command = place.command(arguments);
    Process(
        command.stdout(Stdio::null()).stderr(Stdio::piped()).env_remove("ATOLL_COORDINATOR").spawn().unwrap(),
    )
}

/// What a line on stderr says after these words.
pub(crate) fn said(lines: &mut impl Iterator<Item = std::io::Result<String>>, words: &str) -> String {
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
    let mut other = Chromium::start();
    let mut strip = other.visit(&format!("{site}/runs/{run}"), LIGHT);
    let holds = |section: &str, name: &str| {
        format!("/{name}/.test(document.querySelector('{section}')?.textContent ?? '')")
    };
    until(
        &mut strip,
        "the victim's work",
        &format!("{} && {}", holds("#now", "victim"), holds("#work", "victim")),
    );
    drop(victim);
    let (killed, _worker) = (Instant::now(), worker("second"));
    let seen = until(&mut page, "a silent worker", "document.querySelector('.state.silent') !== null");
    assert!(seen < Duration::from_secs(4), "{seen:?}: a lease of 2 seconds and 2 more");
    // So does the page of the run: what the victim held is given to another worker.
    until(&mut strip, "the end of the victim's leases", &format!("!({})", holds("#now", "victim")));
    let left = killed.elapsed();
    assert!(left < Duration::from_secs(4), "{left:?}: a lease of 2 seconds and 2 more");
    // That worker enters the strip with its first lease, before the history is read again, which has a budget of its own.
    until(&mut page, "the second worker at work", "/second[^]*busy/.test(live().textContent)");
    let entered = until(&mut strip, "the second worker in the strip", &holds("#work", "second"));
    assert!(entered < Duration::from_secs(4), "{entered:?}: two readings of a page");
    drop(page);

    let mut page = strip;
    until(&mut page, "islands that are computed", "document.querySelector('.cells .computing') !== null");
    until(
        &mut page,
        "a strip of both workers",
        "/victim/.test(document.querySelector('#work')?.textContent ?? '')",
    );
    what_is_typed_stays(&mut page);
    photograph(&mut chromium, &site, run);
    // Buttons do what they say.
    page.evaluate(
        "[...document.querySelectorAll('.actions button')].find((b) => b.textContent === 'Pause').click()",
    );
    until(&mut page, "a paused run", "document.querySelector('.why').textContent.includes('paused')");
    let requests = page.requests();
    assert!(requests.iter().all(|request| request.starts_with(&site)), "{requests:?}");
    assert_eq!(page.complaints(), Vec::<String>::new());
    drop(page);

    // The table of workers with its buttons has room at the usual width.
    let mut page = chromium.visit(&format!("{site}/workers"), View { width: 1280, ..LIGHT });
    let fits = "{ const { scrollWidth, clientWidth } = document.querySelector('.scroll'); scrollWidth <= clientWidth }";
    assert_eq!(page.evaluate("document.querySelectorAll('.scroll button').length"), 2);
    assert_eq!(page.evaluate(fits), true);
    drop(page);

    let own = |requests: &[String]| requests.iter().all(|request| request.starts_with(&site));
    let mut found = vec![];
    for path in ["/".to_owned(), "/workers".to_owned(), format!("/runs/{run}"), "/login".to_owned()] {
        found.extend(faults_at(&mut chromium, &format!("{site}{path}"), &axe, own));
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));

    // A submission that is refused keeps its text and says why, although the page is read again meanwhile.
    let mut page = chromium.visit(&format!("{site}/"), LIGHT);
    page.evaluate(
        "{ const text = document.querySelector('textarea'); text.closest('details').open = true; text.value = 'nonsense = 1'; \
         text.form.requestSubmit(); document.activeElement.blur(); live().dataset.old = 'yes'; }",
    );
    until(&mut page, "a refusal", "document.querySelector('#said.bad')?.textContent.includes('nonsense')");
    until(&mut page, "another reading of the page", "!live().dataset.old");
    let kept = "document.querySelector('textarea').value === 'nonsense = 1' \
                && document.querySelector('#said.bad').textContent.includes('nonsense') \
                && document.querySelector('details.submit').open";
    assert_eq!(page.evaluate(kept), true);
    // The keyboard stays where it is.
    page.evaluate("{ document.querySelector('.runs a').focus(); live().dataset.old = 'yes'; }");
    until(&mut page, "another reading of the page", "!live().dataset.old");
    assert_eq!(page.evaluate("document.activeElement === document.querySelector('.runs a')"), true);

    // A page that was left open says that its coordinator is gone, and is live again with the next one.
    drop(coordinator);
    until(&mut page, "a page that is not connected", "!document.querySelector('#lost').hidden");
    page.evaluate("live().dataset.old = 'yes'");
    let address = site.strip_prefix("http://").unwrap();
    let coordinator = start(&place, &["coordinator", "--listen", "127.0.0.1:0", "--http", address]);
    until(
        &mut page,
        "a page that is live again",
        "document.querySelector('#lost').hidden && !live().dataset.old",
    );
    drop(page);

    // Everything can be read without scripts. A page does not wait long for the history, and shows it when it is read again.
    let start = Instant::now();
    let mut page = loop {
        let mut page = chromium.visit(&format!("{site}/runs/{run}"), View { scripts: false, ..LIGHT });
        if page.evaluate("document.querySelector('#fitness') !== null") == true {
            break page;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the history is not read");
    };
    let shown = page.evaluate("document.querySelector('#fitness').textContent.length > 100 && getComputedStyle(document.querySelector('.actions')).display === 'none'");
    assert_eq!(shown, true);
    drop((page, coordinator));
}

#[test]
fn people_log_in_and_out_with_tokens_in_a_browser() {
    let place = Place::new();
    place.write("night.toml", EXPERIMENT);
    let [operator, viewer] = ["operator-token-0001", "viewer-token-000001"];
    let mut command = place.command(&["coordinator", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    command.env("ATOLL_OPERATOR_TOKENS", operator).env("ATOLL_VIEWER_TOKENS", viewer);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).env_remove("ATOLL_COORDINATOR");
    let mut coordinator = Process(command.spawn().unwrap());
    let mut lines = BufReader::new(coordinator.0.stderr.take().unwrap()).lines();
    let mut after = |words: &str| {
        let said =
            lines.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix(words).map(str::to_owned));
        said.unwrap()
    };
    let (url, site) = (after("coordinator at "), after("dashboard, health and metrics at "));
    std::thread::spawn(move || lines.for_each(drop));
    let mut submit = place.command(&["submit", "night.toml", "--coordinator", &url, "--json"]);
    let submitted = submit.env("ATOLL_TOKEN", operator).output().unwrap();
    let submitted: serde_json::Value = serde_json::from_slice(&submitted.stdout).unwrap();
    let path = format!("/runs/{}", submitted["run"].as_str().unwrap());
    let mut chromium = Chromium::start();
    let mut page = chromium.visit(&format!("{site}{path}"), LIGHT);
    let buttons = "document.querySelectorAll('.actions button').length";
    let log_in = |token: &str| {
        format!(
            "document.querySelector('#token').value = '{token}'; document.querySelector('form.login').submit()"
        )
    };
    assert_eq!(page.evaluate("location.pathname"), "/login");
    page.follow(&log_in("nobody-knows-this-one"));
    assert_eq!(page.evaluate("document.querySelector('.said.bad').textContent.includes('not known')"), true);
    for (token, may_act) in [(viewer, false), (operator, true)] {
        page.follow(&log_in(token));
        assert_eq!(page.evaluate("location.pathname"), path.as_str(), "the page that was asked for");
        assert_eq!(page.evaluate("document.cookie"), "", "no script reads the session");
        assert_eq!(page.evaluate(buttons).as_u64().unwrap() > 0, may_act, "{token}");
        if may_act {
            page.evaluate("document.querySelector('.actions button').click()");
            until(&mut page, "a paused run", "document.querySelector('.why').textContent.includes('paused')");
        }
        page.follow("document.querySelector('form[action=\"/logout\"]').submit()");
        assert_eq!(page.evaluate("location.pathname"), "/login");
        page.follow(&format!("location.href = '{path}'"));
        assert_eq!(page.evaluate("location.pathname"), "/login", "the session has ended");
    }
}

/// A field that is being typed in stays as it is, while the page around it is read again.
fn what_is_typed_stays(page: &mut Page<'_>) {
    page.evaluate(
        "{ const field = document.querySelector('[name=wall_time]'); field.focus(); field.value = '8 hours'; \
         field.setSelectionRange(1, 3); live().dataset.old = 'yes'; }",
    );
    until(page, "another reading of the page", "!live().dataset.old");
    let typed = "(({ name, value, selectionStart, selectionEnd }) => \
                 [name, value, selectionStart, selectionEnd].join())(document.activeElement)";
    assert_eq!(page.evaluate(typed), "wall_time,8 hours,1,3");
    page.evaluate("{ document.activeElement.value = ''; document.activeElement.blur(); }");
}

/// A sweep and a tournament that are paused when they are half done.
#[test]
fn what_is_half_filled_is_shown_by_its_coordinator() {
    let (place, axe) = (Place::new(), axe());
    let many =
        crate::SWEEP.replace("repeats = 2", "repeats = 400").replace("generations = 5", "generations = 200");
    place.write("sweep.toml", many);
    place.write(
        "tournament.toml",
        crate::TOURNAMENT.replace("openings = 26", "openings = 156").replace("depth = 2", "depth = 7"),
    );
    let mut coordinator = start(&place, &["coordinator", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    let mut lines = BufReader::new(coordinator.0.stderr.take().unwrap()).lines();
    let url = said(&mut lines, "coordinator at ");
    let site = said(&mut lines, "dashboard, health and metrics at ");
    std::thread::spawn(move || lines.for_each(drop));
    let _worker = start(&place, &["worker", "--coordinator", &url, "--threads", "1"]);
    let mut chromium = Chromium::start();
    let own = |requests: &[String]| requests.iter().all(|request| request.starts_with(&site));
    let mut found = vec![];
    for (file, section) in [("sweep.toml", "#so-far"), ("tournament.toml", "#ratings")] {
        let submitted = place.json(&["submit", file, "--coordinator", &url, "--json"]);
        let run = submitted["run"].as_str().unwrap();
        let row = |state: &str| {
            let runs = place.json(&["runs", "--coordinator", &url, "--json"]);
            let row = runs.as_array().unwrap().iter().find(|row| row["run"] == run).unwrap().clone();
            assert_ne!(row["state"], "finished", "{row}");
            row["state"] == state && row.to_string().contains("\"evaluations\":") && row["evaluations"] != 0
        };
        crate::support::until("something is done", || row("running"));
        place.run(&["pause", run, "--coordinator", &url]).expect(0);
        crate::support::until("it is paused", || row("paused"));
        let page_of = format!("{site}/runs/{run}");
        let mut page = chromium.visit(&page_of, LIGHT);
        until(&mut page, "what there is so far", &format!("document.querySelector('{section}') !== null"));
        assert_eq!(page.evaluate("document.querySelector('.why').textContent.includes('paused')"), true);
        drop(page);
        found.extend(faults_at(&mut chromium, &page_of, &axe, own));
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

/// Open files and kilobytes of memory of a process.
fn resources(process: &Process) -> [u64; 2] {
    let folder = format!("/proc/{}", process.0.id());
    let files = std::fs::read_dir(format!("{folder}/fd")).unwrap().count() as u64;
    let status = std::fs::read_to_string(format!("{folder}/status")).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    [files, memory.trim().trim_end_matches(" kB").parse().unwrap()]
}

/// `OPEN_SECONDS` makes it longer, as `./tests/long open-page` does.
#[test]
fn a_page_that_is_left_open_leaks_nothing_on_either_side() {
    let seconds = std::env::var("OPEN_SECONDS").map_or(10, |seconds| seconds.parse().unwrap());
    let place = Place::new();
    // As fast as the memory allowed below permits: a history of a thousand epochs in a second would fill it by itself.
    place.write("night.toml", EXPERIMENT.replace("population = 400", "population = 1000"));
    let mut coordinator = start(&place, &["coordinator", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    let mut lines = BufReader::new(coordinator.0.stderr.take().unwrap()).lines();
    let url = said(&mut lines, "coordinator at ");
    let site = said(&mut lines, "dashboard, health and metrics at ");
    std::thread::spawn(move || lines.for_each(drop));
    let submitted = place.json(&["submit", "night.toml", "--coordinator", &url, "--json"]);
    let _worker = start(&place, &["worker", "--coordinator", &url, "--threads", "1"]);
    let mut chromium = Chromium::start();
    let mut page = chromium.visit(&format!("{site}/runs/{}", submitted["run"].as_str().unwrap()), LIGHT);
    until(&mut page, "the history", "document.querySelector('#fitness') !== null");
    page.evaluate("{ window.readings = 0; document.addEventListener('replacing', () => readings++); }");
    until(&mut page, "three readings", "readings >= 3");
    let generation = || place.json(&["runs", "--coordinator", &url, "--json"])[0]["generations"].clone();
    let from = generation();
    let (held, resources_before, start) = (page.held(), resources(&coordinator), Instant::now());
    let readings = page.evaluate("readings").as_u64().unwrap();
    // What a page shows grows with its run, but by far less than what was thrown away.
    let is_over = format!("readings >= {}", readings + 4 * seconds / 10);
    while start.elapsed() < Duration::from_secs(seconds) || page.evaluate(&is_over) != true {
        assert!(start.elapsed() < Duration::from_secs(seconds + 60), "the page is not read again");
        std::thread::sleep(Duration::from_millis(500));
        page.forget_events();
    }
    let (now, resources_now) = (page.held(), resources(&coordinator));
    println!(
        "{seconds} s: heap, nodes, listeners {held:?} to {now:?}; files, kB {resources_before:?} to {resources_now:?}; \
         generations {from} to {}",
        generation()
    );
    assert!(now[0] < held[0] + (4 << 20), "heap: {held:?} to {now:?}");
    assert!(now[1] < 2 * held[1] + 2000 && now[2] < held[2] + 50, "nodes, listeners: {held:?} to {now:?}");
    assert!(resources_now[0] <= resources_before[0] + 16, "files: {resources_before:?} to {resources_now:?}");
    assert!(
        resources_now[1] < resources_before[1] + (100 << 10),
        "kB: {resources_before:?} to {resources_now:?}"
    );
}

/// `atoll dashboard` of a folder, and its address.
fn dashboard(place: &Place) -> (Process, String) {
    let mut served = start(place, &["dashboard", "--listen", "127.0.0.1:0"]);
    let mut lines = BufReader::new(served.0.stderr.take().unwrap()).lines();
    let site = said(&mut lines, "dashboard at ").split('/').take(3).collect::<Vec<_>>().join("/");
    (served, site)
}

/// Clicks until the game is over: always the first move that is offered.
const PLAY: &str = "(async () => {
  const press = (number) => document.querySelector(`[data-at='${number}']`).click();
  for (let clicks = 0; clicks < 5000 && !shown?.outcome; clicks++) {
    if (isMine()) press((candidates()[0].squares)[chosen.length]);
    await new Promise((done) => setTimeout(done, 1));
  }
  return shown.outcome;
})()";

#[test]
fn a_store_is_shown_and_its_champion_is_played_by_clicks() {
    let (place, axe) = (Place::new(), axe());
    place.write("checkers.toml", crate::CHECKERS);
    place.write("sweep.toml", crate::SWEEP);
    place.write("tournament.toml", crate::TOURNAMENT);
    let [run, sweep, tournament] = ["checkers", "sweep", "tournament"].map(|name| {
        let ran = place.json(&["run", &format!("{name}.toml"), "--json"]);
        ran["run"].as_str().unwrap().to_owned()
    });
    let (_served, site) = dashboard(&place);
    let mut chromium = Chromium::start();
    let mut page = chromium.visit(&format!("{site}/runs/{run}"), LIGHT);
    until(&mut page, "the champion", "document.querySelector('.game') !== null");
    let board = |page: &mut Page<'_>| page.evaluate(crate::BOARD).as_str().unwrap().to_owned();
    let first = board(&mut page);
    assert_eq!(first.matches("man").count(), 24, "games open at their start: {first}");
    page.evaluate("document.querySelector('.game [data-step=last]').click()");
    let end = board(&mut page);
    assert_ne!(end, first);
    page.evaluate("live().dataset.old = 'yes'");
    until(&mut page, "another reading of the page", "!live().dataset.old");
    assert_eq!(board(&mut page), end, "a refresh does not move the pieces");
    let link = page.evaluate("[...document.links].find((a) => a.pathname === '/play' && a.search)?.href");
    drop(page);

    let mut page = chromium.visit(link.as_str().unwrap(), LIGHT);
    until(&mut page, "a board", "isMine()");
    page.evaluate("document.querySelector('[name=strength]').value = 2");
    // A piece that cannot be moved is explained; a hint and an undo change what they say.
    page.evaluate("document.querySelector(\"[data-at='1']\").click()");
    until(
        &mut page,
        "an explanation",
        "document.querySelector('#told.bad').textContent.includes('Nothing can be moved')",
    );
    page.evaluate("document.querySelector('[data-do=hint]').click()");
    until(&mut page, "a hint", "document.querySelector('#told').textContent.startsWith('Atoll would play')");
    page.evaluate("{ const { squares } = shown.legal[0]; for (const at of squares) document.querySelector(`[data-at='${at}']`).click(); }");
    until(&mut page, "a reply", "shown.played.length === 2 && isMine()");
    until(
        &mut page,
        "an evaluation",
        "document.querySelector('#bar').getAttribute('aria-label') !== 'no evaluation yet'",
    );
    page.evaluate("document.querySelector('[data-do=undo]').click()");
    until(&mut page, "an empty game", "shown.played.length === 0 && isMine()");
    what_holds_within_a_game(&mut page);
    let mut outcome = String::new();
    for _ in 0..5 {
        outcome = page.evaluate(PLAY).as_str().unwrap().to_owned();
        if outcome == "You win." || outcome == "Atoll wins." {
            break;
        }
        page.evaluate("{ shown = null; document.querySelector('#game').requestSubmit(); }");
    }
    assert!(outcome == "You win." || outcome == "Atoll wins.", "{outcome}");
    // The game is there as PDN, and can be read again.
    let moves = page.evaluate("shown.played.join()");
    page.evaluate("{ window.pdn = document.querySelector('#pdn-text').value; document.querySelector('#game').requestSubmit(); }");
    until(&mut page, "a new game", "shown.played.length < 2 && isMine()");
    page.evaluate("{ document.querySelector('#pdn-text').value = pdn; document.querySelector('#pdn').requestSubmit(); }");
    until(&mut page, "the game that was read", "shown.outcome !== null");
    assert_eq!(page.evaluate("shown.played.join()"), moves);
    assert_eq!(page.complaints(), Vec::<String>::new());
    drop(page);

    let own = |requests: &[String]| requests.iter().all(|request| request.starts_with(&site));
    let mut found = vec![];
    let paths =
        [format!("/runs/{run}"), format!("/runs/{sweep}"), format!("/runs/{tournament}"), "/play".to_owned()];
    for path in &paths {
        found.extend(faults_at(&mut chromium, &format!("{site}{path}"), &axe, own));
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
    for (path, section) in [(&paths[1], "#so-far"), (&paths[2], "#ratings")] {
        let mut page = chromium.visit(&format!("{site}{path}"), LIGHT);
        assert_eq!(page.evaluate(&format!("document.querySelector('{section}') !== null")), true, "{path}");
    }
    let Some(folder) = std::env::var_os("ATOLL_PICTURES") else { return };
    for (path, name) in paths.iter().zip(["checkers", "sweep", "tournament", "play"]) {
        for (view, kind) in [(LIGHT, "light"), (crate::DARK, "dark"), (crate::NARROW, "narrow")] {
            let view = if kind == "narrow" { view } else { View { width: 1280, ..view } };
            let mut page = chromium.visit(&format!("{site}{path}"), view);
            let file = std::path::Path::new(&folder).join(format!("{name}-{kind}.png"));
            std::fs::write(file, page.photograph(2000)).unwrap();
        }
    }
}

/// The side is that of the game, a resignation is taken back alone, and captures that end on the same square are told apart.
fn what_holds_within_a_game(page: &mut Page<'_>) {
    let click = |at: &str| format!("document.querySelector(\"{at}\").click()");
    page.evaluate("document.querySelector('[name=side]').value = 'white'");
    page.evaluate("{ const { squares } = shown.legal[0]; for (const at of squares) document.querySelector(`[data-at='${at}']`).click(); }");
    until(page, "a reply to black", "shown.played.length === 2 && shown.side === 'black' && isMine()");
    page.evaluate("document.querySelector('[name=side]').value = 'black'");
    page.evaluate(&click("[data-do=resign]"));
    until(page, "a game that is lost", "shown.outcome !== null && !busy");
    page.evaluate(&click("[data-do=undo]"));
    until(page, "a game that goes on", "shown.outcome === null && isMine()");
    assert_eq!(page.evaluate("shown.played.length"), 2);
    page.evaluate(
        "{ document.querySelector('#pdn-text').value = '[FEN \"B:W14,15,22,23:BK10\"] *'; \
         document.querySelector('#pdn').requestSubmit(); }",
    );
    until(page, "two captures", "shown.legal.length === 2 && isMine()");
    page.evaluate(&click("[data-at='10']"));
    assert_eq!(
        page.evaluate("[...document.querySelectorAll('.can')].map((at) => at.dataset.at).join()"),
        "17,19"
    );
    page.evaluate(&click("[data-at='10']"));
    let told = "document.querySelector('#told.bad')?.textContent.includes('click each square') && chosen.join() === '10'";
    assert_eq!(page.evaluate(told), true);
    page.evaluate("for (const at of [17, 26, 19, 10]) document.querySelector(`[data-at='${at}']`).click()");
    until(page, "a capture", "shown.played.join() === '10x17x26x19x10'");
    page.evaluate("document.querySelector('#game').requestSubmit()");
    until(page, "a new game", "shown.played.length === 0 && isMine()");
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
            page.hide_scrollbars();
            std::fs::write(folder.join(format!("{name}-{kind}.png")), page.photograph(1600)).unwrap();
        }
    }
}
