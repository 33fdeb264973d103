//! One run.

use super::runs::progress;
use super::{Frame, Part, button, page, query, state};
use crate::chart::COLOURS;
use crate::dashboard::data::{EventView, IslandState, IslandView, LeaseView, RunRow, RunView};
use crate::document::{Block, Section};
use crate::html;
use crate::text::{count, escaped, moment, number, put, shortened, time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Islands that are shown one by one.
const ISLANDS: usize = 400;
/// Leases and events that are listed.
const LEASES: usize = 100;
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
    /// What of it cannot be shown, and why.
    pub missing: Vec<String>,
}

/// The page of a run.
pub fn run(shown: &RunPage, frame: &Frame) -> String {
    let RunPage { view, events, range, history, missing } = shown;
    let row = &view.row;
    let mut body = format!("<h1>{}</h1>\n", escaped(&row.run));
    let trouble = if view.why.is_trouble() { " trouble" } else { "" };
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
    sections(&mut body, history, !events.is_empty());
    now(&mut body, view);
    for missing in missing {
        put!(body, "<p class=\"soft\" role=\"note\">{}</p>\n", html::inline(missing));
    }
    for section in history.iter() {
        put!(body, "<section id=\"{}\">\n<h2>{}</h2>\n", section.id, escaped(&section.title));
        section.blocks.iter().for_each(|block| html::block(&mut body, block));
        body.push_str("</section>\n");
    }
    happened(&mut body, row, events, *range);
    page(frame, Part::Runs, &row.run, &body)
}

fn tiles(body: &mut String, row: &RunRow) {
    let rate = row.evaluations as f64 * 1000.0 / row.elapsed_milliseconds.max(1) as f64;
    let rest = row.remaining_milliseconds.map_or(String::new(), |rest| format!("about {} left", time(rest)));
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
    tile(body, "Progress", &progress(row), &rest);
    let what = if row.kind == "tournament" { "Games" } else { "Evaluations" };
    tile(body, what, &count(row.evaluations), &format!("{} a second", count(rate as u64)));
    tile(body, "Time", &time(row.elapsed_milliseconds), &format!("created {} UTC", moment(row.created)));
    let digest = row
        .digest
        .as_deref()
        .map_or("–".to_owned(), |digest| format!("<code>{}</code>", escaped(&shortened(digest, 12))));
    tile(
        body,
        "Digest",
        &digest,
        if row.digest.is_some() { "of its results" } else { "once it is finished" },
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

fn sections(body: &mut String, history: &[Section], has_events: bool) {
    body.push_str("<nav aria-label=\"Sections\">\n<a href=\"#now\">Now</a>\n");
    for Section { id, title, .. } in history {
        put!(body, "<a href=\"#{id}\">{}</a>\n", escaped(title));
    }
    if has_events {
        body.push_str("<a href=\"#events\">Events</a>\n");
    }
    body.push_str("</nav>\n");
}

/// What its islands and workers do now.
fn now(body: &mut String, view: &RunView) {
    if view.islands.is_empty() && view.leases.is_empty() {
        return;
    }
    body.push_str("<section id=\"now\"><h2>Now</h2>\n");
    islands(body, &view.islands);
    leases(body, &view.leases);
    body.push_str("</section>\n");
}

fn islands(body: &mut String, islands: &[IslandView]) {
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
    body.push_str("<ul class=\"cells\">\n");
    let workers: BTreeMap<&str, usize> =
        islands.iter().filter_map(|island| island.worker.as_deref()).map(|worker| (worker, 0)).collect();
    let workers: BTreeMap<&str, usize> = workers.into_keys().zip(0..).collect();
    for island in islands.iter().take(ISLANDS) {
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
    if islands.len() > ISLANDS {
        put!(body, "<p>The first {ISLANDS} of {} are shown.</p>\n", count(islands.len() as u64));
    }
    if !workers.is_empty() {
        body.push_str("<ul class=\"cells\" aria-label=\"Workers\">\n");
        for (worker, at) in workers {
            put!(body, "<li class=\"computing b{}\">{}</li>\n", at % COLOURS, escaped(worker));
        }
        body.push_str("</ul>\n");
    }
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
            time(lease.expires_milliseconds),
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
        body.push_str("<p>There is no event in this time.</p></section>\n");
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
    fn an_operator_has_the_actions_that_make_sense() {
        let html = run(&shown(), &Frame { may_act: true, ..Frame::default() });
        for action in ["pause", "cancel", "extend"] {
            assert!(html.contains(&format!("data-post=\"/api/v1/runs/maze-0a1b2c3d/{action}\"")), "{action}");
        }
        assert!(!html.contains("/resume\""));
    }
}
