//! The list of runs.

use super::{Frame, Part, ago, page, query, state};
use crate::dashboard::data::{RunRow, RunsPage, RunsQuery};
use crate::html::inline;
use crate::text::{count, escaped, number, put, shortened, time};

/// The page of runs.
pub fn runs(runs: &RunsPage, frame: &Frame) -> String {
    let mut body = String::from("<h1>Runs</h1>\n");
    filter(&mut body, runs);
    if runs.unread > 0 {
        let more = match runs.unread {
            1 => "1 more run is being read.".to_owned(),
            unread => format!("{} more runs are being read.", count(unread as u64)),
        };
        put!(body, "<p class=\"soft\" role=\"note\">{more}</p>\n");
    }
    if runs.runs.is_empty() {
        let nothing = if runs.states.is_empty() && runs.unread > 0 {
            "No run is read yet."
        } else if runs.states.is_empty() {
            "There are no runs yet. Start one with <code>atoll run FILE</code> or <code>atoll submit FILE</code>."
        } else {
            "No run matches."
        };
        put!(body, "<p>{nothing}</p>\n");
    } else {
        let matching = match runs.matching {
            1 => "1 run".to_owned(),
            matching => format!("{} runs, the newest first", count(matching as u64)),
        };
        table(&mut body, ("Runs", &matching), &runs.runs, frame);
        pages(&mut body, runs);
    }
    if frame.may_act {
        submit(&mut body);
    }
    page(frame, Part::Runs, "Runs", &body)
}

fn filter(body: &mut String, runs: &RunsPage) {
    let RunsQuery { state: chosen, search, .. } = &runs.query;
    put!(
        body,
        "<form class=\"filter\" method=\"get\" action=\"/\"><label>Name or label contains \
         <input name=\"search\" value=\"{}\"></label><label>State <select name=\"state\"><option value=\"\">any</option>",
        escaped(search)
    );
    // What filters is shown, also while no run is in that state.
    let none =
        Some((chosen, &0)).filter(|(chosen, _)| !chosen.is_empty() && !runs.states.contains_key(*chosen));
    for (state, count) in runs.states.iter().chain(none) {
        let selected = if state == chosen { " selected" } else { "" };
        let state = escaped(state);
        put!(body, "<option value=\"{state}\"{selected}>{state} ({count})</option>");
    }
    body.push_str("</select></label><button>Show</button></form>\n");
}

/// A table of runs, with the name that a reader hears and what stands above it.
pub(super) fn table(body: &mut String, (label, caption): (&str, &str), rows: &[RunRow], frame: &Frame) {
    put!(
        body,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><table class=\"runs\">\
         <caption>{caption}</caption><thead><tr><th scope=\"col\">Run</th><th scope=\"col\">State</th>\
         <th scope=\"col\" class=\"n\">Best</th><th scope=\"col\">Over time</th><th scope=\"col\">Progress</th>\
         <th scope=\"col\">Rest</th><th scope=\"col\" class=\"n\">Time</th><th scope=\"col\">Before</th>\
         <th scope=\"col\">Created</th><th scope=\"col\">Digest</th></tr></thead><tbody>\n"
    );
    for row in rows {
        put!(body, "<tr>{}</tr>\n", cells(row, frame));
    }
    body.push_str("</tbody></table></div>\n");
}

fn cells(row: &RunRow, frame: &Frame) -> String {
    let name = escaped(&row.run);
    let kind = if row.kind == "evolution" || row.kind.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"soft\">{}</span>", escaped(&row.kind))
    };
    let labels = if row.labels.is_empty() {
        String::new()
    } else {
        format!("<br><span class=\"soft\">{}</span>", escaped(&row.labels.join(" · ")))
    };
    let reason = if row.reason.is_empty() || row.state == "finished" {
        String::new()
    } else {
        format!("<br><span class=\"soft\">{}</span>", inline(&shortened(&row.reason, 120)))
    };
    let before = row.before.as_ref().map_or(String::new(), |before| {
        let best = before.best.map_or("–".to_owned(), number);
        let name = escaped(&before.run);
        format!("<a href=\"/runs/{name}\" aria-label=\"{name}\">{best}</a>")
    });
    let (bar, words, unit) = progress(row);
    let digest = row.digest.as_deref().map_or(String::new(), |digest| {
        let short: String = digest.chars().take(12).collect();
        format!("<code title=\"{}\">{}</code>", escaped(digest), escaped(&short))
    });
    format!(
        "<td class=\"name\"><a href=\"/runs/{name}\">{name}</a>{kind}{labels}</td><td class=\"reason\">{}{reason}</td>\
         <td class=\"n\">{}</td><td>{}</td><td>{bar} {words} {unit}</td><td>{}</td><td class=\"n\">{}</td><td>{before}</td>\
         <td>{}</td><td>{digest}</td>",
        state(&row.state),
        row.best.map_or("–".to_owned(), number),
        spark(&row.spark),
        row.remaining_milliseconds.map_or(String::new(), |rest| format!("about {}", time(rest))),
        if row.elapsed_milliseconds == 0 { "–".to_owned() } else { time(row.elapsed_milliseconds) },
        ago(frame, row.created),
    )
}

/// How far a run is: as a bar, if its end is known, in numbers, and their unit.
pub(super) fn progress(row: &RunRow) -> (String, String, String) {
    let unit = escaped(&row.unit);
    if row.is_unknown() {
        return (String::new(), "–".to_owned(), String::new());
    }
    match row.goal {
        Some(goal) if goal > 0 => {
            let share = (row.done as f64 / goal as f64).min(1.0);
            let words = format!("{} of {}", count(row.done), count(goal));
            let bar = format!(
                "<meter min=\"0\" max=\"1\" value=\"{share:.3}\" aria-label=\"{words} {unit}\"></meter>"
            );
            (bar, words, unit)
        }
        _ => (String::new(), count(row.done), unit),
    }
}

/// A curve without axes.
fn spark(values: &[f64]) -> String {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let (Some(low), Some(high)) =
        (finite.iter().copied().reduce(f64::min), finite.iter().copied().reduce(f64::max))
    else {
        return String::new();
    };
    let range = if high > low { high - low } else { 1.0 };
    let step = 100.0 / (finite.len() - 1).max(1) as f64;
    let mut d = String::new();
    for (at, value) in finite.iter().enumerate() {
        let y = 22.0 - 20.0 * (value - low) / range;
        put!(d, "{}{:.0} {y:.1}", if at == 0 { 'M' } else { 'L' }, at as f64 * step);
    }
    if finite.len() == 1 {
        d.push_str("h100");
    }
    let words = format!("from {} to {}", number(finite[0]), number(finite[finite.len() - 1]));
    format!(
        "<svg class=\"chart spark\" viewBox=\"0 0 100 24\" role=\"img\" aria-label=\"{words}\">\
         <path class=\"curve k0\" d=\"{d}\"/></svg>"
    )
}

fn pages(body: &mut String, runs: &RunsPage) {
    if runs.pages < 2 {
        return;
    }
    let RunsQuery { state, search, page } = &runs.query;
    let link = |page: usize, label: &str| {
        format!(
            "<a href=\"/?search={}&amp;state={}&amp;page={page}\">{label}</a>",
            query(search),
            query(state)
        )
    };
    body.push_str("<nav class=\"pages\" aria-label=\"Pages\">");
    if *page > 0 {
        body.push_str(&link(page - 1, "Newer"));
    }
    put!(body, "<span>Page {} of {}</span>", page + 1, runs.pages);
    if page + 1 < runs.pages {
        body.push_str(&link(page + 1, "Older"));
    }
    body.push_str("</nav>\n");
}

fn submit(body: &mut String) {
    body.push_str(
        "<details class=\"submit\"><summary>Submit a run</summary><div class=\"actions\">\
         <form data-post=\"/api/v1/runs\"><label>Experiment file (TOML)<br>\
         <textarea name=\"text\" rows=\"12\" cols=\"70\" required></textarea></label>\
         <label>Priority <input name=\"priority\" type=\"number\" value=\"0\"></label>\
         <button>Submit</button></form></div></details>\n",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(run: &str) -> RunRow {
        RunRow {
            run: run.to_owned(),
            kind: "evolution".to_owned(),
            state: "running".to_owned(),
            best: Some(359.25),
            done: 120,
            goal: Some(2000),
            unit: "generations".to_owned(),
            elapsed_milliseconds: 62_000,
            remaining_milliseconds: Some(971_000),
            created: 1_000_000,
            digest: Some("0123456789abcdef".repeat(4)),
            spark: (0..24).map(f64::from).collect(),
            ..RunRow::default()
        }
    }

    #[test]
    fn a_page_of_a_hundred_runs_is_small_and_says_everything() {
        let rows: Vec<RunRow> = (0..1000).map(|n| row(&format!("experiment-with-a-name-{n:08x}"))).collect();
        let html =
            runs(&RunsPage::of(&rows, RunsQuery::default()), &Frame { now: 2_000_000, ..Frame::default() });
        assert!(html.len() < 150_000, "{} bytes", html.len());
        assert_eq!(html.matches("<td class=\"name\">").count(), 100);
        for word in [
            "359.25",
            "120 of 2\u{202f}000 generations",
            "about 16m 11s",
            "0123456789ab",
            "Page 1 of 10",
            "16m 40s ago",
        ] {
            assert!(html.contains(word), "{word}");
        }
    }

    #[test]
    fn the_filter_shows_the_state_that_it_filters_by() {
        let query = RunsQuery { state: "paused".to_owned(), ..RunsQuery::default() };
        let html = runs(&RunsPage::of(&[row("a")], query), &Frame::default());
        assert!(html.contains("<option value=\"paused\" selected>paused (0)</option>"), "{html}");
        let any = runs(&RunsPage::of(&[row("a")], RunsQuery::default()), &Frame::default());
        assert!(
            !any.contains(" selected>") && any.contains("<option value=\"running\">running (1)"),
            "{any}"
        );
    }

    #[test]
    fn labels_stand_below_the_name() {
        let labelled = RunRow { labels: vec!["draft".to_owned(), "paper".to_owned()], ..row("maze-1") };
        let html = runs(&RunsPage::of(&[labelled], RunsQuery::default()), &Frame::default());
        assert!(html.contains("<br><span class=\"soft\">draft · paper</span></td>"), "{html}");
    }

    #[test]
    fn a_list_that_is_not_read_to_its_end_says_so() {
        let page = RunsPage { unread: 901, ..RunsPage::of(&[row("a")], RunsQuery::default()) };
        assert!(runs(&page, &Frame::default()).contains("901 more runs are being read."));
        let none = RunsPage { unread: 1, ..RunsPage::default() };
        let html = runs(&none, &Frame::default());
        assert!(html.contains("1 more run is being read.") && !html.contains("There are no runs"), "{html}");
    }

    #[test]
    fn names_stay_text() {
        let bad = "<script>alert(1)</script>\"'";
        let (state, labels) = (bad.to_owned(), vec![bad.to_owned()]);
        let rows = vec![RunRow { state, reason: bad.to_owned(), labels, ..row(bad) }];
        let query = RunsQuery { search: bad.to_owned(), ..RunsQuery::default() };
        let html = runs(
            &RunsPage::of(&rows, query),
            &Frame { place: bad.to_owned(), may_act: true, ..Frame::default() },
        );
        assert!(!html.contains("<script>alert") && !html.contains("\"'\""), "{html}");
    }
}
