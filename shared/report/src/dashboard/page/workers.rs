//! The workers.

use super::{Frame, Part, button, page, state};
use crate::dashboard::data::{WorkerState, WorkerView, WorkersPage};
use crate::text::{count, escaped, put, shortened, time};

/// A worker this much slower than the fleet stands out.
const SLOW: f64 = 0.7;

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
            format!("{} workers", workers.workers.len())
        },
        if threads == 1 { "1 thread".to_owned() } else { format!("{} threads", count(threads)) },
    );
    if workers.workers.is_empty() {
        body.push_str("<p>Start one with <code>atoll worker --coordinator URL</code>.</p>\n");
    } else {
        table(&mut body, workers, frame);
    }
    page(frame, Part::Workers, "Workers", &body)
}

fn table(body: &mut String, workers: &WorkersPage, frame: &Frame) {
    body.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Workers\"><table class=\"runs workers\"><thead><tr>\
         <th scope=\"col\">Worker</th><th scope=\"col\">State</th><th scope=\"col\" class=\"n\">Threads</th>\
         <th scope=\"col\" class=\"n\">Evaluations/s</th><th scope=\"col\" class=\"n\">Against the fleet</th>\
         <th scope=\"col\" class=\"n\">Leases</th><th scope=\"col\" class=\"n\">Oldest lease</th>\
         <th scope=\"col\" class=\"n\">No progress for</th><th scope=\"col\" class=\"n\">Heard</th>\
         <th scope=\"col\" class=\"n\">Delivered</th><th scope=\"col\">Version</th><th scope=\"col\">Last error</th>",
    );
    if frame.may_act {
        body.push_str("<th scope=\"col\">Action</th>");
    }
    body.push_str("</tr></thead><tbody>\n");
    for worker in &workers.workers {
        row(body, worker, frame);
    }
    body.push_str("</tbody></table></div>\n");
}

fn row(body: &mut String, worker: &WorkerView, frame: &Frame) {
    let age = |age: Option<u64>| age.map_or("–".to_owned(), time);
    let pace = worker.pace.map_or("–".to_owned(), |pace| {
        let text = format!("× {pace:.2}");
        if pace < SLOW { format!("<strong class=\"state failed\">{text}</strong>") } else { text }
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
}
