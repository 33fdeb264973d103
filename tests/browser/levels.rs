//! The page of a ladder, played in a real browser: with keys at once, by touch, and as a study whose log is evaluated.

use crate::chromium::{Chromium, Page, View};
use crate::support::Place;
use crate::{NARROW, axe, faults};
use match3::{Direction, Game, Level, Move, Stream};
use serde_json::Value;
use std::path::PathBuf;

const MAZES: &str = r#"
name = "mazes"
problem = { kind = "lock-key", level = { width = 5, height = 5, pairs = 1 }, targets = [12, 20] }
algorithm = { kind = "ga", population = 30, mutation = { rate = 0.5 } }
budget = { generations = 10 }
"#;

const STAGES: &str = r#"
name = "stages"
problem = { kind = "match3", rules = { pass = 3.0 } }
algorithm = { kind = "ga", population = 8 }
budget = { generations = 2 }
study = { stage-1 = { seed = 1 }, stage-2 = { seed = 2 }, stage-3 = { seed = 3 } }
"#;

const BOARDS: &str = r#"
name = "boards"
problem = { kind = "match3", targets = [0.7, 0.5], rules = { pass = 3.0 } }
algorithm = { kind = "ga", population = 8 }
budget = { generations = 2 }
"#;

fn ladder(place: &Place, name: &str, text: &str) -> PathBuf {
    let file = format!("{name}.toml");
    place.write(&file, text);
    place.run(&["run", &file]).expect(0);
    place.run(&["level", "ladder", &file, "--to", name, "--plays", "2000"]).expect(0);
    place.path().join(name).join("index.html")
}

fn text(page: &mut Page<'_>, id: &str) -> String {
    page.evaluate(&format!("document.getElementById('{id}').textContent")).as_str().unwrap().to_owned()
}

fn click(page: &mut Page<'_>, id: &str) {
    page.evaluate(&format!("document.getElementById('{id}').click()"));
}

/// Ways out of a maze by trying all of them, by the rules as they stand in the documentation, without the page's code.
fn way_out(rows: &[String]) -> Vec<&'static str> {
    let cells: Vec<Vec<char>> = rows.iter().map(|row| row.chars().collect()).collect();
    let find = |wanted: char| {
        let row = cells.iter().position(|row| row.contains(&wanted)).unwrap();
        (row, cells[row].iter().position(|&cell| cell == wanted).unwrap())
    };
    let start = find('<');
    let mut seen = std::collections::BTreeSet::from([(start, String::new())]);
    let mut queue = std::collections::VecDeque::from([(start, String::new(), vec![])]);
    let ways = [("ArrowUp", -1, 0), ("ArrowDown", 1, 0), ("ArrowLeft", 0, -1), ("ArrowRight", 0, 1)];
    while let Some(((row, column), found, path)) = queue.pop_front() {
        for (name, down, right) in ways {
            let step = |times: isize| {
                (row.wrapping_add_signed(times * down), column.wrapping_add_signed(times * right))
            };
            let (between, next) = (step(1), step(2));
            if cells[between.0][between.1] == '#' {
                continue;
            }
            let mark = cells[next.0][next.1];
            let mut found = found.clone();
            if mark.is_ascii_uppercase() && !found.contains(mark.to_ascii_lowercase()) {
                continue;
            }
            if mark.is_ascii_lowercase() && !found.contains(mark) {
                found.push(mark);
            }
            let path: Vec<&str> = path.iter().copied().chain([name]).collect();
            if mark == '>' {
                return path;
            }
            if seen.insert((next, found.clone())) {
                queue.push_back((next, found, path));
            }
        }
    }
    panic!("no way out of {rows:?}");
}

fn rows(page: &mut Page<'_>) -> Vec<String> {
    let rows: Value = page.evaluate("LEVELS[chosen].level.rows");
    rows.as_array().unwrap().iter().map(|row| row.as_str().unwrap().to_owned()).collect()
}

#[test]
fn levels_are_played_with_keys_and_touch_and_their_files_saved() {
    let (place, axe) = (Place::new(), axe());
    let pages = [ladder(&place, "mazes", MAZES), ladder(&place, "boards", BOARDS)];
    let mut chromium = Chromium::start();
    let found: Vec<String> = pages.iter().flat_map(|page| faults(&mut chromium, page, &axe)).collect();
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));

    // Keys work at once: nothing was clicked.
    let mut page = chromium.open(&pages[0], NARROW);
    let way = way_out(&rows(&mut page));
    for key in &way {
        page.press(key);
    }
    assert_eq!(text(&mut page, "status"), format!("Exit reached after {} steps.", way.len()));
    click(&mut page, "next");
    assert!(text(&mut page, "name").starts_with("2. "), "the next level");
    let saved = page.download(place.path(), "[...document.querySelectorAll('#downloads button')].find(b => b.textContent.includes('TMX')).click()");
    assert!(saved.ends_with(".tmx"), "{saved}");
    assert!(std::fs::read_to_string(place.path().join(saved)).unwrap().starts_with("<?xml"));
    assert_eq!(page.complaints(), Vec::<String>::new());
    drop(page);

    // A swipe exchanges two blocks, and costs a move.
    let mut page = chromium.open(&pages[1], NARROW);
    page.evaluate("document.getElementById('board').scrollIntoView()");
    let place_of = |page: &mut Page<'_>, side: f64| {
        let corner = page.evaluate(
            "(() => { const b = document.getElementById('board').getBoundingClientRect(); \
             const s = b.height / (game.height + .25); return [b.left + s / 2, b.top + s * (game.height - .5), s]; })()",
        );
        let at = |index: usize| corner[index].as_f64().unwrap();
        (at(0) + side * at(2), at(1))
    };
    let (from, to) = (place_of(&mut page, 0.0), place_of(&mut page, 1.0));
    page.swipe(from, to);
    let status = text(&mut page, "status");
    assert!(status.starts_with("Combo ") && status.ends_with("99 moves left"), "{status}");
}

#[test]
fn a_session_in_the_limited_view_is_saved_and_evaluated() {
    let place = Place::new();
    let file = ladder(&place, "mazes", MAZES);
    let mut chromium = Chromium::start();
    let mut page = chromium.open(&file, View { width: 1280, dark: true, scripts: true });
    page.evaluate("location.hash = '#view=1&map=1&trail=6&order=down'; readAddress()");
    click(&mut page, "begin");
    assert!(text(&mut page, "task").ends_with("game 1 of 2"), "{}", text(&mut page, "task"));
    assert_eq!(text(&mut page, "name"), "Level A", "names say nothing of the difficulty");
    let dark = page.evaluate("document.querySelectorAll('#board .fog').length").as_u64().unwrap();
    assert!(dark >= 9, "{dark} cells are in the dark");
    assert_eq!(page.evaluate("document.getElementById('map').hasAttribute('hidden')"), false);
    let mut steps = vec![];
    for game in 0..2 {
        let way = way_out(&rows(&mut page));
        for (number, key) in way.iter().enumerate() {
            page.press(key);
            if game == 0 && number + 1 == way.len() / 2 {
                let fading = "[...document.querySelectorAll('#board .fog')].filter(f => f.getAttribute('opacity') < 1).length";
                assert!(
                    page.evaluate(fading).as_u64().unwrap() > 0 || number < 3,
                    "the trail can still be seen"
                );
            }
        }
        steps.push(way.len());
        click(&mut page, "next");
    }
    // The second was the easier one: levels are played from the last to the first.
    page.evaluate("document.querySelectorAll('#ranks select').forEach((select) => { select.value = 1; })");
    page.evaluate("document.querySelector('#ranking button').click()");
    assert_eq!(text(&mut page, "ranking-fault"), "Give each rank from 1 to 2 once.");
    page.evaluate("document.querySelectorAll('#ranks select').forEach((select, index) => { select.value = 2 - index; })");
    page.evaluate("document.querySelector('#ranking button').click()");
    assert!(text(&mut page, "session").contains("is finished"), "{}", text(&mut page, "session"));
    let saved = page.download(place.path(), "document.querySelector('#saved button').click()");
    assert_eq!(page.complaints(), Vec::<String>::new());
    drop(page);
    // It is still there after the page is opened again.
    let mut page = chromium.open(&file, NARROW);
    assert!(text(&mut page, "saved").contains("2 games"), "{}", text(&mut page, "saved"));
    drop(page);

    let study = place.json(&["level", "study", &saved, "--json"]);
    let group = &study["groups"][0];
    assert_eq!((&group["group"], &group["agreement"]["same_order"]), (&"mazes".into(), &1.into()), "{study}");
    assert_eq!(group["ranks"][0]["ranks"], serde_json::json!([1, 2]));
    let walked: Vec<u64> = study["mazes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|maze| maze["steps"].as_f64().unwrap() as u64)
        .collect();
    assert_eq!(walked, [steps[1] as u64, steps[0] as u64], "{study}");
    let printed = place.run(&["level", "study", &saved]);
    assert!(printed.stdout.contains("All sessions are of people."), "{}", printed.stdout);
}

/// The middle of a cell of the board on the screen.
fn middle(page: &mut Page<'_>, x: i32, y: i32) -> (f64, f64) {
    let found = page.evaluate(&format!(
        "(() => {{ const p = new DOMPoint(SIDE * ({x} + .5), SIDE * ({y} + .5)) \
         .matrixTransform(document.getElementById('board').getScreenCTM()); return [p.x, p.y]; }})()"
    ));
    (found[0].as_f64().unwrap(), found[1].as_f64().unwrap())
}

/// Plays a game of the session by swipes, move by move beside the rules of the library; its score.
fn swipe_a_game(page: &mut Page<'_>, moves: usize, luck: &mut Stream) -> f64 {
    page.evaluate("document.getElementById('board').scrollIntoView()");
    let level = Level::from_json(&page.evaluate("LEVELS[chosen].level").to_string()).unwrap();
    let game = Game::new(&level.rules).unwrap();
    let mut supply = Stream::new(0);
    let (mut board, mut score) = game.start(&level.board, &mut supply).unwrap();
    let ways =
        [(Direction::Up, 0, -1), (Direction::Right, 1, 0), (Direction::Down, 0, 1), (Direction::Left, -1, 0)];
    let mut left = moves;
    while left > 0 {
        let (x, y) =
            (luck.below(u32::from(board.width())) as u8, luck.below(u32::from(board.height())) as u8);
        let (direction, right, down) = ways[luck.below(4) as usize];
        let (column, row) = (i32::from(x) + right, i32::from(y) + down);
        let inside =
            (0..i32::from(board.width())).contains(&column) && (0..i32::from(board.height())).contains(&row);
        if !inside || board.colour(x, y) == 0 {
            continue;
        }
        let (from, to) = (middle(page, x.into(), y.into()), middle(page, column, row));
        page.swipe(from, to);
        let combo = game.play(&mut board, Move { x, y, direction }, &mut supply).unwrap().score;
        score += combo;
        left -= 1;
        let rows: Vec<Vec<u8>> = board.rows().map(<[u8]>::to_vec).collect();
        assert_eq!(page.evaluate("game.cells"), serde_json::json!(rows), "after {x} {y} {direction:?}");
        for (name, expected) in [("score", score), ("combo", combo)] {
            let shown = page.evaluate(&format!("game.{name}")).as_f64().unwrap();
            assert!((shown - expected).abs() < 1e-9, "{name}: {shown}, by the rules {expected}");
        }
    }
    score
}

#[test]
fn a_match3_session_is_interrupted_resumed_and_replayed_by_the_rules() {
    let place = Place::new();
    let file = ladder(&place, "stages", STAGES);
    let mut chromium = Chromium::start();
    let view = View { width: 1280, dark: false, scripts: true };
    let mut luck = Stream::new(5);
    let mut scores = vec![];
    let mut page = chromium.open(&file, view);
    page.evaluate("location.hash = '#order=down'; readAddress()");
    click(&mut page, "begin");
    for _ in 0..2 {
        scores.push(swipe_a_game(&mut page, 5, &mut luck));
        click(&mut page, "next");
    }
    swipe_a_game(&mut page, 1, &mut luck);
    drop(page);
    // The page is opened again in the middle of the third game: the session can be resumed, and that game starts again.
    let mut page = chromium.open(&file, view);
    assert!(text(&mut page, "saved").contains("(2 games)"), "{}", text(&mut page, "saved"));
    page.evaluate("document.querySelector('[data-resume]').click()");
    assert!(text(&mut page, "task").ends_with("game 3 of 3"), "{}", text(&mut page, "task"));
    assert_eq!(text(&mut page, "name"), "Level C");
    scores.push(swipe_a_game(&mut page, 5, &mut luck));
    click(&mut page, "next");
    assert!(text(&mut page, "session").contains("is finished"), "{}", text(&mut page, "session"));
    assert_eq!(page.evaluate("document.querySelector('[data-resume]').hidden"), true);
    let saved = page.download(place.path(), "document.querySelector('#saved button').click()");
    assert_eq!(page.complaints(), Vec::<String>::new());
    drop(page);
    let study = place.json(&["level", "study", &saved, "--json", "--plays", "100"]);
    for (stage, score) in study["stages"].as_array().unwrap().iter().zip(scores.iter().rev()) {
        assert_eq!(stage["sessions"]["plays"], 1, "{stage}");
        assert!((stage["sessions"]["mean"].as_f64().unwrap() - score).abs() < 1e-5, "{score}: {stage}");
    }
    assert_eq!(
        (study["stages"].as_array().unwrap().len(), &study["unfinished"]),
        (3, &serde_json::json!([]))
    );
}

#[test]
fn a_level_of_a_session_opens_when_the_one_before_is_passed() {
    let place = Place::new();
    let file = ladder(&place, "mazes", MAZES);
    let mut chromium = Chromium::start();
    let mut page = chromium.open(&file, View { width: 1280, dark: false, scripts: true });
    // What the address cannot mean is reported, and does not silently become another study.
    page.evaluate("location.hash = '#view=5&unlock=1&speed=9'; readAddress()");
    let fault = text(&mut page, "address-fault");
    assert!(fault.contains("view=5: expected 0, 1, 2, 3") && fault.contains("speed=9"), "{fault}");
    assert_eq!(page.evaluate("document.getElementById('begin').disabled"), true);
    page.evaluate("location.hash = '#view=1&trail=6&unlock=1&games=2'; readAddress()");
    assert_eq!(text(&mut page, "address-fault"), "");
    // No game is passed: after two games of the first level the next stays closed.
    click(&mut page, "begin");
    assert!(text(&mut page, "task").ends_with("game 1 of at most 4"), "{}", text(&mut page, "task"));
    click(&mut page, "next");
    assert_eq!(text(&mut page, "name"), "Level A");
    click(&mut page, "next");
    let told = text(&mut page, "session");
    assert!(told.contains("The next level stays closed.") && told.contains("is finished"), "{told}");
    // A pass opens the next level at once, before the second game of the first.
    click(&mut page, "begin");
    // However fast a player walks, one picture of the fading trail is due.
    page.evaluate(
        "window.due = new Set(); const later = window.setTimeout, never = window.clearTimeout; \
         window.setTimeout = (f, t) => { const id = later(() => { due.delete(id); f(); }, t); due.add(id); return id; }; \
         window.clearTimeout = id => { due.delete(id); never(id); }; 0",
    );
    let way = way_out(&rows(&mut page));
    for key in &way[..way.len() - 1] {
        page.press(key);
    }
    let due = page.evaluate("due.size").as_u64().unwrap();
    assert!(due <= 1, "{due} pictures are due");
    page.press(way[way.len() - 1]);
    assert_eq!(text(&mut page, "next"), "Next level");
    click(&mut page, "next");
    assert_eq!(text(&mut page, "name"), "Level B");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn a_resumed_session_keeps_the_view_that_its_log_claims() {
    let place = Place::new();
    let file = ladder(&place, "mazes", MAZES);
    let mut chromium = Chromium::start();
    let view = View { width: 1280, dark: false, scripts: true };
    let fog = |page: &mut Page<'_>| {
        page.evaluate("document.querySelectorAll('#board .fog').length").as_u64().unwrap()
    };
    let mut page = chromium.open(&file, view);
    // By the form, not by the address: the address would set the form again.
    page.evaluate(
        "settingsForm.elements.view.value = '1'; settingsForm.elements.map.checked = true; \
         settingsForm.elements.trail.value = '6'; 0",
    );
    click(&mut page, "begin");
    assert!(fog(&mut page) >= 9, "the view is limited");
    drop(page);
    let mut page = chromium.open(&file, view);
    assert_eq!(fog(&mut page), 0, "without a session the form decides, and it is as at first");
    page.evaluate("document.querySelector('[data-resume]').click()");
    assert_eq!(page.evaluate("session.log.settings.view"), 1);
    assert!(fog(&mut page) >= 9, "the view is limited after the session was resumed");
    assert_eq!(page.evaluate("document.getElementById('map').hasAttribute('hidden')"), false);
    let shown = page.evaluate("[settingsForm.elements.view.value, settingsForm.elements.map.checked, settingsForm.elements.trail.value]");
    assert_eq!(shown, serde_json::json!(["1", true, "6"]), "the form shows the settings of the session");
    let names = page.evaluate("[0, 25, 26, 51, 52, 701, 702].map(lettersOf)");
    assert_eq!(names, serde_json::json!(["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]));
    assert_eq!(page.complaints(), Vec::<String>::new());
}
