//! The workers.

use super::{Frame, Part, button, page, state};
use crate::dashboard::data::{WorkerState, WorkerView, WorkersPage};
use crate::text::{count, escaped, put, shortened, time};
use std::collections::BTreeMap;

/// Up to this many workers are listed. Of more those that need attention come first.
const LISTED: usize = 200;

/// The page of workers.
pub fn workers(workers: &WorkersPage, frame: &Frame) -> String {
    let mut body = String::from("<h1>Workers</h1>\n");
    if !workers.is_live {
        body.push_str("<p>This is a store without a coordinator: it has no workers.</p>\n");
        return page(frame, Part::Workers, "Workers", &body);
    }
    let lease = time(workers.lease_milliseconds);
    let threads: u64 = workers.workers.iter().map(|worker| u64::from(worker.threads)).sum();
    put!(
        body,
        "<p>{} with {} in all. A lease lasts {lease} without a renewal.</p>\n",
        if workers.workers.len() == 1 {
            "1 worker".to_owned()
        } else {
            format!("{} workers", count(workers.workers.len() as u64))
        },
        if threads == 1 { "1 thread".to_owned() } else { format!("{} threads", count(threads)) },
    );
    if workers.workers.is_empty() {
        body.push_str("<p>Start one with <code>atoll worker --coordinator URL</code>.</p>\n");
    } else {
        census(&mut body, &workers.workers);
        table(&mut body, workers, frame);
    }
    page(frame, Part::Workers, "Workers", &body)
}

fn table(body: &mut String, workers: &WorkersPage, frame: &Frame) {
    body.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Workers\"><table class=\"runs workers\"><thead><tr>\
         <th scope=\"col\">Worker</th><th scope=\"col\">State</th><th scope=\"col\" class=\"n\">Threads</th>\
         <th scope=\"col\" class=\"n\">Evaluations/s</th><th scope=\"col\" class=\"n\">Relative rate</th>\
         <th scope=\"col\" class=\"n\">Leases</th><th scope=\"col\" class=\"n\">Oldest lease</th>\
         <th scope=\"col\" class=\"n\">No progress for</th><th scope=\"col\" class=\"n\">Last seen</th>\
         <th scope=\"col\" class=\"n\">Delivered</th><th scope=\"col\">Version</th><th scope=\"col\">Last error</th>",
    );
    if frame.may_act {
        body.push_str("<th scope=\"col\">Action</th>");
    }
    body.push_str("</tr></thead><tbody>\n");
    for worker in listed(&workers.workers) {
        row(body, worker, frame);
    }
    body.push_str("</tbody></table></div>\n");
}

/// The workers that have a row, in their order; of very many first those that need attention.
fn listed(workers: &[WorkerView]) -> Vec<&WorkerView> {
    let mut listed: Vec<&WorkerView> = workers.iter().collect();
    if listed.len() > LISTED {
        listed.sort_by_key(|worker| worker.urgency());
        listed.truncate(LISTED);
    }
    listed
}

/// How many workers there are of each state, if not all have a row.
fn census(body: &mut String, workers: &[WorkerView]) {
    if workers.len() <= LISTED {
        return;
    }
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for worker in workers {
        *states.entry(worker.state.word()).or_default() += 1;
    }
    let states: Vec<String> = states.into_iter().map(|(word, of)| format!("{} {word}", count(of))).collect();
    put!(
        body,
        "<p>{}. {LISTED} are listed, first those that need attention; <code>atoll workers</code> lists all.</p>\n",
        states.join(", ")
    );
}

fn row(body: &mut String, worker: &WorkerView, frame: &Frame) {
    let age = |age: Option<u64>| age.map_or("–".to_owned(), time);
    let pace = worker.pace.map_or("–".to_owned(), |pace| {
        let text = format!("× {pace:.2}");
        if pace < WorkerView::SLOW { format!("<strong class=\"state failed\">{text}</strong>") } else { text }
    });
    put!(
        body,
        "<tr><td class=\"name\">{}<br><code class=\"soft\" title=\"{}\">{}</code></td><td>{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{pace}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{} ago</td><td class=\"n\">{}</td><td>{}</td><td class=\"reason\">{}</td>",
        escaped(&worker.name),
        escaped(&worker.worker),
        escaped(&shortened(&worker.worker, 12)),
        state(worker.state.word()),
        worker.threads,
        worker.rate.map_or("–".to_owned(), |rate| count(rate.round() as u64)),
        worker.leases,
        age(worker.lease_age_milliseconds),
        age(worker.progress_age_milliseconds),
        time(worker.silent_milliseconds),
        count(worker.deliveries),
        escaped(&worker.version),
        escaped(&shortened(worker.last_error.as_deref().unwrap_or(""), 200)),
    );
    if frame.may_act {
        body.push_str("<td><span class=\"actions\">");
        let path = format!("/api/v1/workers/{}/drain", super::query(&worker.worker));
        match worker.state {
            WorkerState::Quarantined => {}
            WorkerState::Draining => button(body, "End the drain", &path, "{\"drain\":false}", ""),
            _ => {
                let question = format!("Give worker {} no more work?", worker.name);
                button(body, "Drain", &path, "{\"drain\":true}", &question);
            }
        }
        body.push_str("</span></td>");
    }
    body.push_str("</tr>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_worker_stands_out() {
        let worker = |name: &str, pace| WorkerView {
            name: name.to_owned(),
            pace: Some(pace),
            ..WorkerView::default()
        };
        let page = WorkersPage {
            workers: vec![worker("fast", 1.05), worker("slow", 0.5)],
            lease_milliseconds: 15_000,
            is_live: true,
        };
        let html = workers(&page, &Frame { may_act: true, ..Frame::default() });
        assert!(html.contains("<td class=\"n\">× 1.05</td>"), "{html}");
        assert!(html.contains("<strong class=\"state failed\">× 0.50</strong>"));
        assert_eq!(html.matches(">Drain</button>").count(), 2);
        assert!(!workers(&page, &Frame::default()).contains("<button"), "a viewer changes nothing");
    }

    #[test]
    fn of_very_many_workers_those_that_need_attention_come_first() {
        let worker = |number: usize| WorkerView {
            name: format!("worker-{number}"),
            state: match number {
                900 => WorkerState::Quarantined,
                901 => WorkerState::Silent,
                _ => WorkerState::Busy,
            },
            pace: Some(if number == 902 { 0.5 } else { 1.0 }),
            ..WorkerView::default()
        };
        let page = |count| WorkersPage {
            workers: (0..count).map(worker).collect(),
            lease_milliseconds: 15_000,
            is_live: true,
        };
        let html = workers(&page(1000), &Frame::default());
        let names: Vec<&str> =
            html.split("class=\"name\">").skip(1).map(|row| row.split('<').next().unwrap()).collect();
        assert_eq!(names.len(), LISTED);
        assert_eq!(names[..4], ["worker-900", "worker-901", "worker-902", "worker-0"]);
        assert!(html.contains("998 busy, 1 quarantined, 1 silent. 200 are listed"), "{}", &html[..2000]);
        assert!(!workers(&page(LISTED), &Frame::default()).contains("are listed"));
    }
}
