//! One run.

use super::runs;
use super::{Frame, Part, button, page, query, state};
use crate::chart::COLOURS;
use crate::dashboard::data::{EventView, IslandState, IslandView, LeaseView, RunRow, RunView};
use crate::document::{Block, Figure, Section};
use crate::html;
use crate::run::Strip;
use crate::text::{count, escaped, moment, number, put, shortened, time};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Up to this many islands are shown one by one. Of more the best and the last are, this number of each.
const ISLANDS: usize = 400;
const EXTREMES: usize = 50;
/// Numbers of epochs that are named one by one: islands that wait for each other have few.
const EPOCHS: usize = 8;
/// Leases and events that are listed.
const LEASES: usize = 100;
/// A lease that lasts longer than this is not shown to expire: 12 hours.
const ENDLESS: u64 = 12 * 3_600_000;
const EVENTS: usize = 200;

/// All that the page of a run shows.
#[derive(Clone, Debug, Default)]
pub struct RunPage {
    /// The run as it is now.
    pub view: RunView,
    /// What happened to it, in the time that was asked for, the newest last.
    pub events: Vec<EventView>,
    /// The time that was asked for: from and to, in milliseconds since 1970.
    pub range: (Option<u64>, Option<u64>),
    /// How it went so far.
    pub history: Arc<Vec<Section>>,
    /// Which worker computed which epoch so far.
    pub strip: Arc<Strip>,
    /// The age of the history in milliseconds, if the run has continued since for longer than a reader expects.
    pub history_age_milliseconds: Option<u64>,
    /// What of it cannot be shown, and why.
    pub missing: Vec<String>,
}

/// The page of a run.
pub fn run(shown: &RunPage, frame: &Frame) -> String {
    let RunPage { view, events, range, history, missing, strip, history_age_milliseconds } = shown;
    let row = &view.row;
    let mut body = format!("<h1>{}</h1>\n", escaped(&row.run));
    let has_failed = matches!(row.state.as_str(), "failed" | "damaged");
    let trouble = if has_failed || view.why.is_trouble() { " trouble" } else { "" };
    put!(body, "<div class=\"why{trouble}\" role=\"note\"><p>{}</p>", html::inline(&view.why.text));
    if !view.why.advice.is_empty() {
        put!(body, "<p class=\"soft\">{}</p>", html::inline(&view.why.advice.replace("RUN", &row.run)));
    }
    body.push_str("</div>\n");
    tiles(&mut body, row);
    actions(&mut body, view, frame);
    let plays = |section: &Section| section.blocks.iter().any(|block| matches!(block, Block::Game(_)));
    if frame.has_table && row.kind == "evolution" && history.iter().any(plays) {
        put!(body, "<p><a href=\"/play?player={}\">Play against its champion</a></p>\n", query(&row.run));
    }
    sections(&mut body, view, history);
    if !view.parts.is_empty() {
        body.push_str("<section id=\"parts\"><h2>Parts</h2>\n");
        runs::table(&mut body, ("Parts", "The runs of this study"), &view.parts, frame);
        body.push_str("</section>\n");
    }
    now(&mut body, view, strip);
    for missing in missing {
        put!(body, "<p class=\"soft\" role=\"note\">{}</p>\n", html::inline(missing));
    }
    if let Some(age) = history_age_milliseconds {
        put!(
            body,
            "<p class=\"soft\" role=\"note\">What follows was read {} ago. It takes long to read, so it is read seldom.</p>\n",
            time(*age)
        );
    }
    let mut live = live_strip(strip, &view.islands);
    for section in history.iter() {
        put!(body, "<section id=\"{}\">\n<h2>{}</h2>\n", section.id, escaped(&section.title));
        let mut blocks = section.blocks.iter();
        if section.id == "work"
            && let Some(mut live) = live.take()
        {
            // In place of the strip as it was read, with its numbers.
            if let Some(at) = section.blocks.iter().position(|block| matches!(block, Block::Figure(_))) {
                blocks.by_ref().take(at).for_each(|block| html::block(&mut body, block));
                if let Some(Block::Figure(read)) = blocks.next() {
                    live.numbers.clone_from(&read.numbers);
                }
            }
            html::block(&mut body, &Block::Figure(live));
        }
        blocks.for_each(|block| html::block(&mut body, block));
        body.push_str("</section>\n");
    }
    happened(&mut body, row, events, *range);
    page(frame, Part::Runs, &row.run, &body)
}

/// The strip with what is computed now, where there are workers to tell apart.
fn live_strip(strip: &Strip, islands: &[IslandView]) -> Option<Figure> {
    let working: Vec<&str> = islands.iter().filter_map(|island| island.worker.as_deref()).collect();
    if working.is_empty() || strip.places(working).len() < 2 {
        return None;
    }
    let caption = "A colour for each worker. Each row ends with the epoch that is computed now; epochs before it that were not \
                   read yet are open. Where the colour changes, another worker continued the island."
        .to_owned();
    Some(Figure { picture: strip.draw(islands)?, caption, numbers: None })
}

fn tiles(body: &mut String, row: &RunRow) {
    let evaluations = row.evaluations.saturating_sub(row.evaluations_before);
    let rate = evaluations as f64 * 1000.0 / row.elapsed_milliseconds.max(1) as f64;
    let rest = row.rest().unwrap_or_default();
    let tile = |body: &mut String, label: &str, value: &str, note: &str| {
        put!(
            body,
            "<div class=\"tile\"><dt>{label}</dt><dd class=\"value\">{value}</dd><dd class=\"remark\">{note}</dd></div>\n"
        );
    };
    body.push_str("<dl class=\"tiles\">\n");
    tile(body, "State", &state(&row.state), &format!("priority {}", row.priority));
    let before = row.before.as_ref().and_then(|before| before.best);
    let before = before.map_or(String::new(), |best| format!("the run before: {}", number(best)));
    tile(body, "Best fitness", &row.best.map_or("–".to_owned(), number), &before);
    if let Some(strength) = &row.strength {
        let note = format!(
            "{:+.0} to {:+.0}, island {}, generation {}",
            strength.low,
            strength.high,
            strength.island,
            count(strength.generation)
        );
        tile(body, "Elo", &format!("{:+.0}", strength.elo), &note);
    }
    let (bar, words, unit) = runs::progress(row);
    // The unit stands below: the longest word of a value must fit on a narrow screen.
    let note = [unit, rest].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    tile(body, "Progress", &format!("{words}{bar}"), &note);
    let what = if row.kind == "tournament" { "Games" } else { "Evaluations" };
    // The time of a study is that of its parts.
    let is_timed = row.elapsed_milliseconds > 0;
    let rate = if is_timed { format!("{} a second", count(rate as u64)) } else { String::new() };
    let evaluations = if row.is_unknown() { "–".to_owned() } else { count(row.evaluations) };
    tile(body, what, &evaluations, &rate);
    let elapsed = if is_timed { time(row.elapsed_milliseconds) } else { "–".to_owned() };
    let created = match row.created {
        0 => String::new(),
        created => format!("created {} UTC", moment(created)),
    };
    tile(body, "Time", &elapsed, &created);
    let digest = row
        .digest
        .as_deref()
        .map_or("–".to_owned(), |digest| format!("<code>{}</code>", escaped(&shortened(digest, 12))));
    tile(
        body,
        "Digest",
        &digest,
        match row.state.as_str() {
            _ if row.digest.is_some() => "of its results",
            "damaged" => "",
            _ => "once it is finished",
        },
    );
    body.push_str("</dl>\n");
}

fn actions(body: &mut String, view: &RunView, frame: &Frame) {
    if !frame.may_act || view.actions.is_empty() {
        return;
    }
    let run = &view.row.run;
    let path = |action: &str| format!("/api/v1/runs/{}/{action}", query(run));
    body.push_str("<div class=\"actions\">");
    for action in &view.actions {
        match action.as_str() {
            "pause" => button(body, "Pause", &path("pause"), "{}", ""),
            "resume" => button(body, "Resume", &path("resume"), "{}", ""),
            "cancel" => button(body, "Cancel", &path("cancel"), "{}", &format!("Cancel {run}?")),
            "extend" => put!(
                body,
                "<form data-post=\"{}\" aria-label=\"New budget\"><span class=\"soft\">New budget, in place of the old one:</span>\
                 <label for=\"generations\">generations</label>\
                 <input id=\"generations\" name=\"generations\" type=\"number\" min=\"1\" required>\
                 <label for=\"target_fitness\">target fitness</label>\
                 <input id=\"target_fitness\" name=\"target_fitness\" type=\"number\" step=\"any\">\
                 <label for=\"wall_time\">wall time</label>\
                 <input id=\"wall_time\" name=\"wall_time\" placeholder=\"8h\"><button>Extend</button></form>",
                escaped(&path("extend"))
            ),
            _ => {}
        }
    }
    body.push_str("</div>\n");
}

fn sections(body: &mut String, view: &RunView, history: &[Section]) {
    body.push_str("<nav aria-label=\"Sections\">\n");
    if !view.parts.is_empty() {
        body.push_str("<a href=\"#parts\">Parts</a>\n");
    }
    if has_now(view) {
        body.push_str("<a href=\"#now\">Now</a>\n");
    }
    for Section { id, title, .. } in history {
        put!(body, "<a href=\"#{id}\">{}</a>\n", escaped(title));
    }
    body.push_str("<a href=\"#events\">Events</a>\n</nav>\n");
}

fn has_now(view: &RunView) -> bool {
    !view.islands.is_empty() || !view.leases.is_empty()
}

/// What its islands and workers do now.
fn now(body: &mut String, view: &RunView, strip: &Strip) {
    if !has_now(view) {
        return;
    }
    body.push_str("<section id=\"now\"><h2>Now</h2>\n");
    islands(body, &view.islands, strip);
    leases(body, &view.leases);
    body.push_str("</section>\n");
}

fn islands(body: &mut String, islands: &[IslandView], strip: &Strip) {
    if islands.is_empty() {
        return;
    }
    let of = |state: IslandState| islands.iter().filter(|island| island.state == state).count();
    if of(IslandState::Idle) == islands.len() {
        // Of a store alone it is not known what they do.
        body.push_str("<p>Islands: each shows its number and its epochs.</p>\n");
    } else {
        put!(
            body,
            "<p>Islands: {} computing (solid frame in the colour of the worker), {} ready (dashed), {} waiting for a \
             neighbour (dotted), {} idle. Each shows its number and its epochs.</p>\n",
            of(IslandState::Computing),
            of(IslandState::Ready),
            of(IslandState::Waiting),
            of(IslandState::Idle)
        );
    }
    // A worker has the colour that it has in the strip.
    let working: BTreeSet<&str> = islands.iter().filter_map(|island| island.worker.as_deref()).collect();
    let places = strip.places(working.iter().copied());
    let mut workers: BTreeMap<&str, usize> =
        working.into_iter().map(|worker| (worker, places[worker])).collect();
    if islands.len() <= ISLANDS {
        cells(body, "Islands", islands, &workers);
    } else {
        summary(body, islands);
        let [best, last] = extremes(islands);
        put!(body, "<p>The {EXTREMES} islands with the best fitness:</p>\n");
        cells(body, "The best islands", best.iter().copied(), &workers);
        put!(body, "<p>The {EXTREMES} islands with the fewest epochs:</p>\n");
        cells(body, "The last islands", last.iter().copied(), &workers);
        let shown: BTreeSet<&str> =
            best.into_iter().chain(last).filter_map(|island| island.worker.as_deref()).collect();
        workers.retain(|worker, _| shown.contains(worker));
    }
    if !workers.is_empty() {
        body.push_str("<ul class=\"cells\" aria-label=\"Workers\">\n");
        for (worker, at) in workers {
            put!(body, "<li class=\"computing b{}\">{}</li>\n", at % COLOURS, escaped(worker));
        }
        body.push_str("</ul>\n");
    }
}

/// How far many islands are together.
fn summary(body: &mut String, islands: &[IslandView]) {
    let mut epochs: BTreeMap<u64, u64> = BTreeMap::new();
    for island in islands {
        *epochs.entry(island.epochs).or_default() += 1;
    }
    let ends = epochs.first_key_value().zip(epochs.last_key_value());
    let words = match ends {
        Some(((first, _), (last, _))) if epochs.len() > EPOCHS => {
            format!("between {} and {}", count(*first), count(*last))
        }
        _ => {
            let each = epochs.iter().map(|(epochs, islands)| {
                let noun = if *islands == 1 { "island" } else { "islands" };
                format!("{} ({} {noun})", count(*epochs), count(*islands))
            });
            each.collect::<Vec<_>>().join(", ")
        }
    };
    put!(body, "<p>Epochs done: {words}.");
    let mut best: Vec<f64> = islands.iter().filter_map(|island| island.best).collect();
    if let Some(last) = best.len().checked_sub(1) {
        let mut at = |place| *best.select_nth_unstable_by(place, f64::total_cmp).1;
        let [low, middle, high] = [at(0), at(last / 2), at(last)].map(number);
        put!(
            body,
            " Best fitness: {low} on the last island, {middle} in the middle, {high} on the leading one."
        );
    }
    body.push_str("</p>\n");
}

/// The islands with the best fitness, and those with the fewest epochs.
fn extremes(islands: &[IslandView]) -> [Vec<&IslandView>; 2] {
    fn best(island: &IslandView) -> f64 {
        island.best.unwrap_or(f64::NEG_INFINITY)
    }
    let first = |order: fn(&IslandView, &IslandView) -> Ordering| {
        let mut all: Vec<&IslandView> = islands.iter().collect();
        let order =
            |one: &&IslandView, other: &&IslandView| order(one, other).then(one.island.cmp(&other.island));
        if all.len() > EXTREMES {
            all.select_nth_unstable_by(EXTREMES, order);
            all.truncate(EXTREMES);
        }
        all.sort_unstable_by(order);
        all
    };
    [first(|one, other| best(other).total_cmp(&best(one))), first(|one, other| one.epochs.cmp(&other.epochs))]
}

/// A cell for each of some islands, in the colour of the worker that computes it.
fn cells<'a>(
    body: &mut String,
    name: &str,
    islands: impl IntoIterator<Item = &'a IslandView>,
    workers: &BTreeMap<&str, usize>,
) {
    put!(body, "<ul class=\"cells\" aria-label=\"{name}\">\n");
    for island in islands {
        let IslandView { island: number_of, epochs, generation, best, state, worker } = island;
        let class = match state {
            IslandState::Computing => "computing",
            IslandState::Ready => "ready",
            IslandState::Waiting => "waiting",
            IslandState::Idle => "idle",
        };
        let colour =
            worker.as_deref().map_or(String::new(), |worker| format!(" b{}", workers[worker] % COLOURS));
        let by = worker.as_deref().map_or(String::new(), |worker| format!(" on {worker}"));
        let best = best.map_or("–".to_owned(), number);
        let title =
            format!("island {number_of}: {class}{by}, {epochs} epochs, generation {generation}, best {best}");
        put!(
            body,
            "<li class=\"{class}{colour}\" title=\"{}\">{number_of}<br><span class=\"soft\">{epochs}</span></li>\n",
            escaped(&title)
        );
    }
    body.push_str("</ul>\n");
}

fn leases(body: &mut String, leases: &[LeaseView]) {
    if leases.is_empty() {
        return;
    }
    put!(
        body,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Leases\"><table><caption>{}</caption><thead><tr>\
         <th scope=\"col\">Work</th><th scope=\"col\">Worker</th><th scope=\"col\" class=\"n\">Held for</th>\
         <th scope=\"col\" class=\"n\">Expires in</th><th scope=\"col\" class=\"n\">No progress for</th></tr></thead><tbody>\n",
        if leases.len() > LEASES {
            format!("Leases, the first {LEASES} of {}", leases.len())
        } else {
            "Leases".to_owned()
        }
    );
    for lease in leases.iter().take(LEASES) {
        let stalled =
            if lease.stalled { " <strong class=\"state failed\">stands still</strong>" } else { "" };
        put!(
            body,
            "<tr><td>{}{stalled}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            escaped(&lease.piece),
            escaped(&lease.name),
            time(lease.age_milliseconds),
            // A process that computes its own run has leases that nothing waits for.
            if lease.expires_milliseconds > ENDLESS {
                "–".to_owned()
            } else {
                time(lease.expires_milliseconds)
            },
            time(lease.progress_age_milliseconds)
        );
    }
    body.push_str("</tbody></table></div>\n");
}

fn happened(body: &mut String, row: &RunRow, events: &[EventView], (from, to): (Option<u64>, Option<u64>)) {
    let value = |at: Option<u64>| at.map_or(String::new(), |at| moment(at).replace(' ', "T"));
    put!(
        body,
        "<section id=\"events\"><h2>Events</h2>\n<form class=\"filter\" method=\"get\" action=\"/runs/{}#events\">\
         <label>From (UTC) <input name=\"from\" type=\"datetime-local\" step=\"1\" value=\"{}\"></label>\
         <label>To (UTC) <input name=\"to\" type=\"datetime-local\" step=\"1\" value=\"{}\"></label>\
         <button>Show</button></form>\n",
        query(&row.run),
        value(from),
        value(to)
    );
    if events.is_empty() {
        let none = match (from, to) {
            (None, None) => "No event is known.",
            _ => "There is no event in this time.",
        };
        put!(body, "<p>{none}</p></section>\n");
        return;
    }
    let caption = if events.len() > EVENTS {
        format!("The last {EVENTS} of {} events", count(events.len() as u64))
    } else {
        "Events, the newest first".to_owned()
    };
    put!(
        body,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Events\"><table><caption>{caption}</caption>\
         <thead><tr><th scope=\"col\">When (UTC)</th><th scope=\"col\">Event</th><th scope=\"col\">What</th></tr></thead><tbody>\n"
    );
    for event in events.iter().rev().take(EVENTS) {
        put!(
            body,
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            moment(event.at),
            escaped(&event.kind),
            html::inline(&shortened(&event.text, 400))
        );
    }
    body.push_str("</tbody></table></div></section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::{Cause, Why};

    fn shown() -> RunPage {
        let island = |island, state, worker: Option<&str>| IslandView {
            island,
            epochs: 7,
            generation: 70,
            best: Some(1.5),
            state,
            worker: worker.map(str::to_owned),
        };
        let view = RunView {
            row: RunRow { run: "maze-0a1b2c3d".to_owned(), state: "running".to_owned(), ..RunRow::default() },
            why: Why {
                cause: Cause::NoWorker,
                text: "No worker.".to_owned(),
                advice: "See `atoll explain RUN`.".to_owned(),
            },
            islands: vec![
                island(0, IslandState::Computing, Some("one")),
                island(1, IslandState::Computing, Some("two")),
                island(2, IslandState::Waiting, None),
            ],
            leases: vec![LeaseView {
                piece: "island 0, epoch 7".to_owned(),
                stalled: true,
                ..LeaseView::default()
            }],
            actions: ["pause", "cancel", "extend"].map(str::to_owned).to_vec(),
            parts: vec![],
        };
        let event =
            EventView { at: 1000, kind: "lost".to_owned(), text: "<b>".to_owned(), ..EventView::default() };
        RunPage { view, events: vec![event], ..RunPage::default() }
    }

    #[test]
    fn a_run_shows_why_and_who_computes_what() {
        let html = run(&shown(), &Frame::default());
        for word in [
            "class=\"why trouble\"",
            "<code>atoll explain maze-0a1b2c3d</code>",
            "class=\"computing b0\" title=\"island 0: computing on one",
            "class=\"computing b1\" title=\"island 1: computing on two",
            "class=\"waiting\"",
            "stands still",
            "1970-01-01 00:00:01",
            "&lt;b&gt;",
        ] {
            assert!(html.contains(word), "expected {word} in {html}");
        }
        assert!(!html.contains("data-post"), "a viewer changes nothing");
    }

    #[test]
    fn the_unit_of_the_progress_stands_below_it() {
        let mut page = shown();
        let row = &mut page.view.row;
        (row.done, row.goal, row.unit) = (8350, Some(100_000), "generations".to_owned());
        row.remaining_milliseconds = Some(60_000);
        let html = run(&page, &Frame::default());
        assert!(html.contains("<dd class=\"value\">8\u{202f}350 of 100\u{202f}000<meter"), "{html}");
        assert!(html.contains("<dd class=\"remark\">generations, about 1m 00s left</dd>"), "{html}");
    }

    #[test]
    fn of_thousands_of_islands_the_best_and_the_last_are_shown() {
        let island = |island: u32| IslandView {
            island,
            epochs: if island == 77 { 3 } else { 4 },
            generation: 40,
            best: Some(f64::from(island % 5000)),
            state: IslandState::Computing,
            worker: Some(format!("worker-{}", island % 1000)),
        };
        let mut page = shown();
        page.view.islands = (0..10_000).map(island).collect();
        let html = run(&page, &Frame::default());
        let now = html.split_once("<section id=\"now\">").unwrap().1.split_once("</section>").unwrap().0;
        for word in [
            "Epochs done: 3 (1 island), 4 (9\u{202f}999 islands).",
            "Best fitness: 0 on the last island, 2499 in the middle, 4999 on the leading one.",
            "title=\"island 4999: computing on worker-999",
            "title=\"island 77: computing on worker-77",
        ] {
            assert!(now.contains(word), "expected {word} in {now}");
        }
        assert!(!now.contains("title=\"island 5100:"), "neither among the best nor among the last");
        assert_eq!(now.matches("title=\"island").count(), 2 * EXTREMES);
        // A page shows whom its colours stand for, and nobody else.
        assert!(now.contains(">worker-999<") && !now.contains(">worker-500<"));
        assert!(now.len() < 40_000, "{} bytes", now.len());
    }

    #[test]
    fn a_worker_is_in_the_strip_before_its_first_epoch_is_read() {
        let blocks = vec![Block::Text("facts".to_owned()), Block::Text("last".to_owned())];
        let mut page = shown();
        page.history = Arc::new(vec![Section::new("work", "Work", blocks)]);
        let html = run(&page, &Frame::default());
        let work = html.split_once("<section id=\"work\">").unwrap().1;
        assert!(work.contains("Worker of each epoch") && work.contains(">two<"), "{work}");
        assert!(work.contains("facts") && work.contains("last"));
        assert!(html.contains("href=\"#now\""));
        page.view.islands.truncate(1);
        assert!(!run(&page, &Frame::default()).contains("Worker of each epoch"), "nothing to tell apart");
    }

    #[test]
    fn an_ended_run_has_no_link_to_what_it_does_now_and_a_study_shows_its_parts() {
        let part =
            |name: &str| RunRow { run: name.to_owned(), state: "running".to_owned(), ..RunRow::default() };
        let view = RunView {
            row: RunRow { kind: "study".to_owned(), ..part("study-1") },
            parts: vec![part("study-1.first"), part("study-1.second")],
            ..RunView::default()
        };
        let html = run(&RunPage { view, ..RunPage::default() }, &Frame::default());
        assert!(!html.contains("#now"), "{html}");
        for word in ["href=\"#parts\"", "href=\"/runs/study-1.first\"", "href=\"/runs/study-1.second\""] {
            assert!(html.contains(word), "expected {word} in {html}");
        }
    }

    #[test]
    fn a_history_that_is_behind_says_how_old_it_is() {
        let page = RunPage { history_age_milliseconds: Some(95_000), ..shown() };
        assert!(run(&page, &Frame::default()).contains("was read 1m 35s ago"));
    }

    #[test]
    fn what_has_failed_or_is_damaged_stands_out() {
        let html = |state: &str| {
            let mut page = shown();
            page.view.row.state = state.to_owned();
            page.view.why.cause = Cause::Ended;
            run(&page, &Frame::default())
        };
        for (state, stands_out) in
            [("failed", true), ("damaged", true), ("finished", false), ("paused", false)]
        {
            assert_eq!(html(state).contains("class=\"why trouble\""), stands_out, "{state}");
        }
    }

    #[test]
    fn nothing_is_told_of_a_damaged_run_that_is_not_known() {
        let row = |done| RunRow {
            run: "maze-1".to_owned(),
            kind: "evolution".to_owned(),
            unit: "generations".to_owned(),
            state: "damaged".to_owned(),
            done,
            ..RunRow::default()
        };
        let html = |done| {
            let view = RunView { row: row(done), ..RunView::default() };
            run(&RunPage { view, ..RunPage::default() }, &Frame::default())
        };
        let [unknown, known] = [html(0), html(5)];
        assert!(known.contains(">5</dd>") && known.contains("generations"), "{known}");
        for word in [">0</dd>", "generations", "once it is finished", "in this time"] {
            assert!(!unknown.contains(word), "{word} in {unknown}");
        }
        assert!(unknown.contains("No event is known."), "{unknown}");
    }

    #[test]
    fn the_rest_of_a_stopped_run_begins_when_it_continues() {
        for (state, word) in [("running", "about 5.0s left"), ("stopped", "about 5.0s once it continues")] {
            let mut page = shown();
            page.view.row.state = state.to_owned();
            page.view.row.remaining_milliseconds = Some(5000);
            let html = run(&page, &Frame::default());
            assert!(html.contains(word), "{html}");
        }
    }

    #[test]
    fn an_operator_has_the_actions_that_make_sense() {
        let html = run(&shown(), &Frame { may_act: true, ..Frame::default() });
        for action in ["pause", "cancel", "extend"] {
            assert!(html.contains(&format!("data-post=\"/api/v1/runs/maze-0a1b2c3d/{action}\"")), "{action}");
        }
        assert!(!html.contains("/resume\""));
    }
}
