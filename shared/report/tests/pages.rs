//! Reports of made-up runs: the same data gives the same bytes, names stay text, nothing overlaps, everything is bounded.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use evolution::epoch::Standing;
use evolution::statistics::{Arrival, EpochStatistics, GenerationRow};
use proptest::prelude::*;
use report::chart::Picture;
use report::run::{Champion, Epoch, Island, Loss, Run, document};
use report::{Block, Document, Gallery, Section, Step, compare, csv, html, markdown, sweep};

const HOSTILE: &str = "<script>alert(\"x\")</script>`|*&";

fn epoch(island: u32, islands: u32, number: u64, worker: &str) -> Epoch {
    let generation = (number + 1) * 10;
    let best = 100.0 - 80.0 / generation as f64 - f64::from(island) * 0.01;
    let row = |generation: u64| GenerationRow {
        generation,
        evaluations: generation * 50,
        best,
        mean: best - 5.0,
        deviation: 1.5,
    };
    let from = (island + islands - 1) % islands;
    let better_than_best = u32::from(number.is_multiple_of(3));
    let arrival = |epoch| Arrival { from, epoch, offered: 2, accepted: 1, better_than_best };
    Epoch {
        number,
        standing: Standing { generation, evaluations: generation * 50, best },
        statistics: EpochStatistics {
            rows: (generation - 9..=generation).map(row).collect(),
            arrivals: number.checked_sub(1).map(arrival).into_iter().collect(),
            diversity: 1.0 / (number + 1) as f64,
            unjudgeable: 0,
        },
        worker: worker.to_owned(),
        milliseconds: 7,
        elapsed: (number + 1) * 10,
    }
}

fn run(islands: u32, epochs: u64) -> Run {
    let island = |at: u32| Island {
        algorithm: "ga".to_owned(),
        epochs: (0..epochs)
            .map(|number| epoch(at, islands, number, ["ada", "bob"][at as usize % 2]))
            .collect(),
        champion: Some(Champion { fitness: 99.0, generation: 10, genome: "0101".to_owned() }),
    };
    Run {
        id: "made-up".to_owned(),
        problem: "onemax".to_owned(),
        state: "finished".to_owned(),
        reason: Some("generation limit reached".to_owned()),
        digest: Some("0123456789abcdef".to_owned()),
        absolute: true,
        topology: ("ring".to_owned(), (0..islands).map(|at| (at, (at + 1) % islands)).collect()),
        islands: (0..islands).map(island).collect(),
        elapsed: epochs * 10,
        ..Run::default()
    }
}

fn page(run: &Run) -> String {
    html::render(&document(run, vec![], "made at noon".to_owned()))
}

fn everything(document: &Document) -> String {
    let pictures = markdown::pictures(document).into_iter().map(|(_, text)| text);
    let tables = csv::files(document).into_iter().map(|(_, text)| text);
    let all = [html::render(document), markdown::render(document)].into_iter().chain(pictures).chain(tables);
    all.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_same_data_gives_the_same_bytes_and_the_time_stands_in_one_place() {
    let run = run(3, 20);
    let page = page(&run);
    assert_eq!(page, self::page(&run.clone()));
    assert_eq!(page.matches("made at noon").count(), 1);
    let later = html::render(&document(&run, vec![], "made at one".to_owned()));
    assert_eq!(later.replace("made at one", "made at noon"), page);
}

#[test]
fn names_stay_text_wherever_they_stand() {
    let mut run = run(2, 4);
    let hostile = || HOSTILE.to_owned();
    (run.id, run.problem, run.state, run.config) = (hostile(), hostile(), hostile(), hostile());
    (run.reason, run.digest, run.experiment_digest) = (Some(hostile()), Some(hostile()), hostile());
    (run.versions, run.events, run.damage) = (vec![hostile()], vec![(hostile(), hostile())], vec![hostile()]);
    (run.reproduce, run.next) = (vec![Step::new(HOSTILE, HOSTILE)], vec![Step::new(HOSTILE, HOSTILE)]);
    run.topology.0 = hostile();
    run.keys = vec![(hostile(), hostile())];
    run.losses =
        vec![Loss { at: hostile(), work: hostile(), worker: hostile(), milliseconds: 5, reason: hostile() }];
    for island in &mut run.islands {
        island.algorithm = hostile();
        island.champion = Some(Champion { fitness: 1.0, generation: 1, genome: hostile() });
        island.epochs.iter_mut().for_each(|epoch| epoch.worker = hostile());
    }
    let other = Run { keys: vec![(hostile(), "other".to_owned())], ..run.clone() };
    let axis = sweep::Axis {
        keys: vec![hostile()],
        labels: vec![hostile(), "2".to_owned()],
        values: vec![vec![hostile()], vec!["2".to_owned()]],
    };
    let cell = sweep::Cell { repeat: 0, seed: 1, best: 1.0, generations: 1, evaluations: 1 };
    let swept = sweep::Sweep {
        id: hostile(),
        axes: vec![axis.clone(), axis],
        points: vec![vec![cell]; 4],
        repeats: 1,
        damage: vec![hostile()],
        ..sweep::Sweep::default()
    };
    let documents = [
        document(&run, vec![], hostile()),
        compare::document(&[run, other], hostile()),
        sweep::document(&swept, vec![], hostile()),
    ];
    for document in documents {
        let page = html::render(&document);
        assert!(page.contains("&lt;script&gt;alert"));
        assert!(!page.contains("<script"), "a page without games has no script");
        assert!(markdown::pictures(&document).iter().all(|(_, svg)| !svg.contains("<script")));
        let text = markdown::render(&document);
        let outside_code = text.split("```").step_by(2).collect::<String>();
        let outside_code = outside_code.split('`').step_by(2).collect::<String>();
        assert!(!outside_code.contains("<script"), "{outside_code}");
    }
}

#[test]
fn what_is_missing_is_told_and_the_rest_is_shown() {
    let mut run = run(3, 30);
    run.islands[1].epochs.drain(10..20);
    run.damage = vec!["object `runs/made-up/islands/1/19` is cut short".to_owned()];
    let page = page(&run);
    assert!(page.contains("What is missing") && page.contains("is cut short"));
    assert!(page.contains(">missing</text>"), "the strip shows the gap");
    let empty = Run { id: "empty".to_owned(), islands: vec![Island::default()], ..Run::default() };
    assert!(self::page(&empty).contains("No results are stored yet"));
}

/// The places of all texts of a class of marks, from top to bottom, at the left edge of a chart.
fn row_labels(svg: &str, right: f64) -> Vec<f64> {
    let texts = svg.split("<text class=\"note\" x=\"").skip(1);
    let place = |text: &str| {
        let (x, rest) = text.split_once("\" y=\"")?;
        let (y, rest) = rest.split_once('"')?;
        let is_row = rest.starts_with(" text-anchor=\"end\"") && x.parse::<f64>().ok()? < right;
        is_row.then(|| y.parse().ok()).flatten()
    };
    texts.filter_map(place).collect()
}

#[test]
fn charts_are_legible_with_3_and_with_300_islands() {
    for islands in [1, 3, 8, 9, 16, 17, 40, 300] {
        let document = document(&run(islands, 12), vec![], String::new());
        for (name, svg) in markdown::pictures(&document) {
            let mut rows = row_labels(&svg, 120.0);
            rows.sort_by(f64::total_cmp);
            assert!(
                rows.windows(2).all(|pair| pair[1] - pair[0] >= 11.0),
                "{islands} islands: {name}: {rows:?}"
            );
            assert!(svg.contains("<title>") && svg.contains("<desc>"), "{name}");
        }
    }
}

#[test]
fn a_large_run_makes_a_page_that_can_be_opened() {
    let run = run(300, 400);
    let page = page(&run);
    assert!(page.len() < 20 << 20, "{} bytes", page.len());
    let files = csv::files(&document(&run, vec![], String::new()));
    let epochs = &files.iter().find(|(name, _)| name == "epochs.csv").unwrap().1;
    assert_eq!(epochs.lines().count(), 1 + 300 * 400, "all numbers are there for programs");
}

#[test]
fn figures_that_stand_out_are_told() {
    let told = |run: &Run, said: &str| page(run).contains(said);
    let mut run = Run { next: vec![Step::new("go on", "atoll resume")], ..run(3, 20) };
    assert!(told(&run, "generation 10 of 200, and nothing better after it"));
    assert!(
        !told(&run, "nearly alike")
            && !told(&run, "were accepted: migrate")
            && !told(&run, "no valid fitness")
    );
    run.islands[0].champion = Some(Champion { fitness: 99.0, generation: 195, genome: String::new() });
    assert!(told(&run, "fitness was still rising"));
    let relative = Run { absolute: false, ..run.clone() };
    assert!(!told(&relative, "fitness was still rising"));
    for epoch in run.islands.iter_mut().flat_map(|island| &mut island.epochs) {
        epoch.statistics.unjudgeable = 2;
        epoch.elapsed *= 1_000_000;
        epoch
            .statistics
            .arrivals
            .iter_mut()
            .for_each(|arrival| (arrival.offered, arrival.accepted) = (100, 1));
        if epoch.number > 0 {
            epoch.statistics.diversity = 0.001;
        }
    }
    for said in [
        "nearly alike",
        "Only 1.0 % of the migrants",
        "more workers or threads",
        "6 evaluations returned no valid fitness",
    ] {
        assert!(told(&run, said), "{said}");
    }
}

#[test]
fn comparing_shows_what_differs() {
    let mut one = run(2, 5);
    one.keys = vec![("seed".to_owned(), "1".to_owned()), ("islands.count".to_owned(), "2".to_owned())];
    let mut other = Run { id: "other".to_owned(), ..run(3, 5) };
    other.keys = vec![("seed".to_owned(), "1".to_owned()), ("islands.count".to_owned(), "3".to_owned())];
    let page = html::render(&compare::document(&[one.clone(), other], String::new()));
    assert!(page.contains("<code>islands.count</code>") && !page.contains("<td><code>seed</code>"));
    let same = html::render(&compare::document(&[one.clone(), one], String::new()));
    assert!(same.contains("all keys have the same values"));
    let part = |name: &str| Run { id: format!("study-9e5339bf.{name}"), ..run(2, 5) };
    let study = compare::document(&[part("scouts"), part("with-guests")], String::new());
    assert_eq!(study.title, "study-9e5339bf: scouts · with-guests");
    let equal = "`scouts` and `with-guests` have the same best fitness, ";
    assert!(study.headline.starts_with(equal), "{}", study.headline);
    let (short, long) = (run(2, 30), Run { id: "long".to_owned(), ..run(2, 50) });
    let ends = html::render(&compare::document(&[short, long], String::new()));
    let place = ends.split("class=\"value\" x=\"").nth(1).and_then(|rest| rest.split('"').next());
    assert!(
        place.unwrap().parse::<f64>().unwrap() > 700.0,
        "of values at one height that of the longer run is written"
    );
    let page = html::render(&study);
    assert!(
        page.contains(">scouts</text>")
            && page.contains("best found here")
            && page.contains("class=\"value\"")
    );
}

#[test]
fn markdown_describes_no_picture_that_it_does_not_have() {
    let gallery = |below: &str| Gallery {
        title: "Weights".to_owned(),
        caption: "Blue: positive.".to_owned(),
        legend: vec![],
        pictures: vec![(Picture::sealed("p", "t", "<svg/>", 10.0), below.to_owned())],
        numbers: None,
        folded: false,
    };
    let text = |below: &str| {
        let section = Section::new("found", "Found", vec![Block::Gallery(gallery(below))]);
        markdown::render(&document(&run(1, 1), vec![section], String::new()))
    };
    assert!(!text("").contains("Weights") && !text("").contains("Blue"));
    assert!(text("island 0: 12 points").contains("**Weights**\n\n- island 0: 12 points\n"));
    assert!(text("").contains("(1 epoch)"), "one is singular");
}

#[test]
fn a_sweep_has_a_panel_for_each_combination_and_a_curve_for_each_name() {
    let axis = |key: &str, labels: &[&str]| sweep::Axis {
        keys: vec![key.to_owned()],
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
        values: labels.iter().map(|&label| vec![label.to_owned()]).collect(),
    };
    let axes =
        vec![axis("width", &["10", "20", "30"]), axis("turns", &["5", "50"]), axis("variant", &["a", "b"])];
    let cell = |best| sweep::Cell { repeat: 0, seed: 1, best, generations: 1, evaluations: 1 };
    let points = (0..12).map(|at| vec![cell(f64::from(at)), cell(f64::from(at) + 1.0)]).collect();
    let swept = sweep::Sweep { id: "s".to_owned(), axes, points, repeats: 2, ..sweep::Sweep::default() };
    let page = html::render(&sweep::document(&swept, vec![], String::new()));
    assert_eq!(page.matches("viewBox=\"0 0 280").count(), 3, "a panel for each width");
    assert_eq!(page.matches("<tr><td").count(), 2 * 12, "in order, and by rank");
    assert!(page.contains("The highest mean fitness is 11.5, with <code>width = 30</code>"), "the lead");
    assert_eq!(page.matches("class=\"box\"").count(), 2 * 12, "a box each, wide and narrow");
    assert!(!page.contains("Compare fitness only"), "no key poses the problem");
    let mut posed = swept;
    posed.axes[0].keys = vec!["problem.width".to_owned()];
    let page = html::render(&sweep::document(&posed, vec![], String::new()));
    assert!(page.contains("combinations with the same <code>problem.width</code>."), "{page}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn whatever_the_numbers_no_chart_breaks(
        values in proptest::collection::vec(prop_oneof![
            Just(f64::NEG_INFINITY), Just(f64::INFINITY), Just(f64::NAN), Just(0.0), Just(1e300), Just(-1e-300),
            -1e3..1e3f64,
        ], 1..12),
        islands in 1u32..12,
    ) {
        let mut run = run(islands, values.len() as u64);
        for island in &mut run.islands {
            for (epoch, &value) in island.epochs.iter_mut().zip(&values) {
                epoch.standing.best = value;
                epoch.statistics.diversity = value;
                for row in &mut epoch.statistics.rows {
                    (row.best, row.mean, row.deviation) = (value, value, value);
                }
            }
        }
        let document = document(&run, vec![], String::new());
        for (name, svg) in markdown::pictures(&document) {
            let paths = svg.split(" d=\"").skip(1).filter_map(|path| path.split('"').next());
            for path in paths {
                prop_assert!(!path.contains("NaN") && !path.contains("inf"), "{name}: {path}");
            }
        }
        prop_assert!(!everything(&document).is_empty());
    }
}

#[test]
fn up_to_16_islands_have_curves_of_their_own_and_more_are_ranges() {
    for (islands, has_curves) in [(8, true), (16, true), (17, false)] {
        let page = page(&run(islands, 12));
        assert_eq!(page.contains("leading island</text>"), !has_curves, "{islands} islands");
        assert_eq!(page.contains("curve k7 dashed"), islands == 16, "{islands} islands");
    }
}
