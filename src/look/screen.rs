//! A run on the whole screen of a terminal, drawn with plain escape sequences.

use crate::remote::NO_ANSWER;
use report::dashboard::{EventView, IslandState, RunView, WorkerView};
use report::text::{moment, number, shortened, time};
use std::io::{self, Write};

/// Workers and events that are listed at most.
const WORKERS: usize = 8;
const EVENTS: usize = 8;
/// What stands above rows.
const HEADINGS: [&str; 3] = ["ISLANDS", "WORKERS", "EVENTS"];
/// Bars of the sparkline, by height.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// All that is shown.
#[derive(Default)]
pub(super) struct Model {
    pub(super) view: RunView,
    pub(super) workers: Vec<WorkerView>,
    pub(super) events: Vec<EventView>,
    /// Whether no coordinator answers: then the rest is what was seen last.
    pub(super) is_silent: bool,
    /// The best fitness at each look so far.
    pub(super) bests: Vec<f64>,
}

/// The other screen of a terminal, until it is dropped.
pub(super) struct Screen(io::Stdout);

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        let mut stdout = io::stdout();
        write!(stdout, "\x1b[?1049h\x1b[?25l")?;
        Ok(Self(stdout))
    }

    /// Draws lines in place of those before.
    pub(super) fn show(&mut self, lines: &[String]) -> io::Result<()> {
        self.0.write_all(frame(lines).as_bytes())?;
        self.0.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write!(self.0, "\x1b[?25h\x1b[?1049l");
        let _ = self.0.flush();
    }
}

/// What draws lines from the first row on. The last one has no end: on a full screen that would scroll the first away.
fn frame(lines: &[String]) -> String {
    let mut frame = String::from("\x1b[H");
    // What was there before is erased before each text: behind a text that fills its row that would erase its end.
    for (at, line) in lines.iter().enumerate() {
        let [erasing, end] = if at + 1 < lines.len() { ["\x1b[K", "\r\n"] } else { ["\x1b[J", ""] };
        frame.extend([erasing, line.as_str(), end]);
    }
    frame
}

/// The lines of a screen, none longer and not more than it has room for.
pub(super) fn draw(model: &Model, (width, height): (usize, usize)) -> Vec<String> {
    let mut lines = vec![headline(model)];
    let row = &model.view.row;
    lines.push(progress(row.done, row.goal, &row.unit, width.min(90)));
    if !model.bests.is_empty() {
        lines.push(format!("best {}", spark(&model.bests, width.saturating_sub(6).min(100))));
    }
    lines.push(String::new());
    lines.extend(wrapped(&model.view.why.text, width));
    section(&mut lines, "ISLANDS", islands(model, width));
    // As on the page of workers, those that need attention come first.
    let mut workers: Vec<&WorkerView> = model.workers.iter().collect();
    workers.sort_by_key(|worker| worker.urgency());
    section(&mut lines, "WORKERS", workers.into_iter().take(WORKERS).map(worker).collect());
    let events = model.events.iter().rev().take(EVENTS);
    let events = events.map(|event| format!("{}  {:<11}  {}", moment(event.at), event.kind, event.text));
    section(&mut lines, "EVENTS", events.collect());
    lines.truncate(height.saturating_sub(2));
    // A heading is shown with a row below it or not at all.
    while lines.last().is_some_and(|line| line.is_empty() || HEADINGS.contains(&line.as_str())) {
        lines.pop();
    }
    lines.push(String::new());
    let last = if model.is_silent { NO_ANSWER } else { "Ctrl-C stops watching; the run continues." };
    lines.push(last.to_owned());
    lines.into_iter().map(|line| cut(&line, width)).collect()
}

fn headline(model: &Model) -> String {
    let row = &model.view.row;
    let best = row.best.map_or("–".to_owned(), number);
    let rest = row.rest().map_or(String::new(), |rest| format!(", {rest}"));
    // The time of a study is that of its parts.
    let elapsed = match row.elapsed_milliseconds {
        0 => String::new(),
        elapsed => format!("  {}", time(elapsed)),
    };
    let strength = row.strength.map_or(String::new(), |strength| format!("  {}", strength.words()));
    format!("{}  {}  best {best}{strength}{elapsed}{rest}", row.run, row.state)
}

fn progress(done: u64, goal: Option<u64>, unit: &str, width: usize) -> String {
    let Some(goal) = goal.filter(|goal| *goal > 0) else { return format!("{done} {unit}") };
    let label = format!(" {done} of {goal} {unit}");
    let width = width.saturating_sub(label.chars().count());
    let filled = (width as f64 * (done as f64 / goal as f64).min(1.0)) as usize;
    let bar: String = (0..width).map(|at| if at < filled { '█' } else { '░' }).collect();
    bar + &label
}

/// Values as bars, the newest to the right.
fn spark(values: &[f64], width: usize) -> String {
    let chosen: Vec<f64> =
        report::chart::thinned(values.len(), width.max(2)).into_iter().map(|at| values[at]).collect();
    let low = chosen.iter().copied().fold(f64::INFINITY, f64::min);
    let high = chosen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: &f64| match (value - low) / (high - low) {
        share if share.is_finite() => BARS[((share * 7.0).round() as usize).min(7)],
        _ => BARS[0],
    };
    chosen.iter().map(bar).collect()
}

/// Islands side by side: what each does, and its epochs.
fn islands(model: &Model, width: usize) -> Vec<String> {
    let cells = model.view.islands.iter().map(|island| {
        let mark = match island.state {
            IslandState::Computing => '▶',
            IslandState::Ready => '○',
            IslandState::Waiting => '…',
            IslandState::Idle => ' ',
        };
        format!("{mark}{:>3}:{:<6}", island.island, island.epochs)
    });
    let cells: Vec<String> = cells.collect();
    cells.chunks((width / 12).max(1)).take(8).map(|row| row.join(" ")).collect()
}

fn worker(worker: &WorkerView) -> String {
    let rate = worker.rate.map_or("-".to_owned(), |rate| number(rate.round()));
    let error = shortened(worker.last_error.as_deref().unwrap_or(""), 80);
    let (state, silent) = (worker.state.word(), time(worker.silent_milliseconds));
    format!(
        "{:<20}  {state:<11}  {:>3} leases  {rate:>12}/s  heard {silent} ago  {error}",
        worker.name, worker.leases
    )
}

fn section(lines: &mut Vec<String>, title: &str, rows: Vec<String>) {
    if !rows.is_empty() {
        lines.extend([String::new(), title.to_owned()]);
        lines.extend(rows);
    }
}

/// A text in lines of whole words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// A line that fits, without anything that a terminal would obey.
fn cut(line: &str, width: usize) -> String {
    line.chars().filter(|letter| !letter.is_control()).take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::dashboard::{IslandView, RunRow, WorkerState};

    fn model() -> Model {
        let island =
            |island, state| IslandView { island, epochs: 7, generation: 70, best: None, state, worker: None };
        let row = RunRow {
            run: "maze-0a1b2c3d".to_owned(),
            state: "running".to_owned(),
            best: Some(359.25),
            done: 50,
            goal: Some(200),
            unit: "generations".to_owned(),
            ..RunRow::default()
        };
        let mut view = RunView { row, ..RunView::default() };
        view.islands = vec![island(0, IslandState::Computing), island(1, IslandState::Waiting)];
        view.why.text =
            "2 workers compute 2 pieces of work, and everything is well as far as can be seen.".to_owned();
        let worker =
            WorkerView { name: "one\x1b[2J".to_owned(), state: WorkerState::Busy, ..WorkerView::default() };
        let event = EventView { at: 1000, kind: "created".to_owned(), ..EventView::default() };
        Model {
            view,
            workers: vec![worker],
            events: vec![event],
            is_silent: false,
            bests: vec![1.0, 2.0, 4.0],
        }
    }

    #[test]
    fn a_screen_shows_everything_that_fits() {
        let lines = draw(&model(), (60, 40));
        let text = lines.join("\n");
        for word in
            ["maze-0a1b2c3d  running  best 359.25", "50 of 200", "▁▃█", "▶  0:7", "…  1:7", "busy", "created"]
        {
            assert!(text.contains(word), "expected {word} in:\n{text}");
        }
        assert!(!text.contains('\x1b'), "a name moves no cursor");
    }

    #[test]
    fn a_full_screen_does_not_scroll() {
        let lines = draw(&model(), (60, 10));
        let drawn = frame(&lines);
        assert!(lines.len() <= 10, "{lines:?}");
        assert_eq!(drawn.matches('\n').count(), lines.len() - 1, "each line end moves down once");
        assert!(!drawn.ends_with('\n') && drawn.starts_with("\x1b[H\x1b[Kmaze-0a1b2c3d"), "{drawn}");
    }

    #[test]
    fn workers_that_need_attention_come_first_and_no_heading_stands_alone() {
        let mut model = model();
        let worker =
            |number, state| WorkerView { name: format!("w{number}"), state, ..WorkerView::default() };
        model.workers = (0..20).map(|number| worker(number, WorkerState::Busy)).collect();
        model.workers.push(worker(20, WorkerState::Silent));
        for height in 3..40 {
            let lines = draw(&model, (80, height));
            let last = lines.len().checked_sub(3).map_or("", |at| lines[at].as_str());
            assert!(!HEADINGS.contains(&last), "{height}: {lines:?}");
        }
        let lines = draw(&model, (80, 40));
        let first = lines.iter().position(|line| line == "WORKERS").unwrap() + 1;
        assert!(lines[first].starts_with("w20") && !lines[0].contains("0ms"), "{lines:?}");
    }

    #[test]
    fn a_silent_coordinator_is_named_below_what_was_seen_last() {
        let lines = draw(&Model { is_silent: true, ..model() }, (60, 40));
        assert!(lines[0].starts_with("maze-0a1b2c3d") && lines.last().unwrap() == NO_ANSWER, "{lines:?}");
    }

    #[test]
    fn a_small_screen_holds_no_more_than_it_has() {
        for (width, height) in [(20, 6), (1, 3), (200, 10)] {
            let lines = draw(&model(), (width, height));
            assert!(lines.len() <= height, "{} lines", lines.len());
            assert!(lines.iter().all(|line| line.chars().count() <= width));
        }
    }
}
