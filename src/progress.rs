//! Progress on the screen: one line that changes on a terminal, plain lines elsewhere.

use crate::terminal::message;
use evolution::epoch::Standing;
use experiment::duration;
use indicatif::{ProgressBar, ProgressStyle};
use proto::convert;
use proto::v1;
use proto::v1::run_status::{Kind, State};
use report::text::number;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a plain line is printed.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// How far a run is.
#[derive(Clone, Copy, Debug)]
struct Reached {
    /// Generations, or cells.
    done: u64,
    evaluations: u64,
    /// For how long it has been worked on.
    elapsed: Duration,
}

/// What people see during a run. Everything goes to stderr.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    kind: Kind,
    islands: u32,
    goal: Option<u64>,
    /// The evaluations and the time after which its budget ends it.
    ends: (Option<u64>, Option<Duration>),
    start: Instant,
    /// Where the run stood when it was taken up: rates count from there.
    first: Option<Reached>,
    printed: Instant,
    is_paused: bool,
}

impl Progress {
    /// Progress of a run that stands so.
    pub(crate) fn new(status: &v1::RunStatus) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| bar(status.goal));
        let now = Instant::now();
        let (kind, islands) = (status.kind(), status.islands);
        let (goal, ends) = budget(status);
        Self { bar, kind, islands, goal, ends, start: now, first: None, printed: now, is_paused: false }
    }

    /// A run may be extended while it is watched.
    fn take_budget(&mut self, status: &v1::RunStatus) {
        let (goal, ends) = budget(status);
        self.ends = ends;
        if goal == self.goal {
            return;
        }
        self.goal = goal;
        if let Some(old) = &mut self.bar {
            old.finish_and_clear();
            *old = bar(goal);
        }
    }

    /// Shows where the run stands.
    pub(crate) fn show(&mut self, status: &v1::RunStatus) {
        self.take_budget(status);
        let is_paused = status.state() == State::Paused;
        let is_changed = std::mem::replace(&mut self.is_paused, is_paused) != is_paused;
        if is_changed {
            // The time of a pause counts for no rate.
            (self.start, self.first) = (Instant::now(), None);
        }
        let standing = convert::standing(status.standing).ok();
        let reached = Reached {
            done: standing.map_or(0, |standing| standing.generation),
            evaluations: standing.map_or(0, |standing| standing.evaluations),
            elapsed: Duration::from_millis(status.elapsed_milliseconds),
        };
        let first = *self.first.get_or_insert(reached);
        let due = is_changed || self.printed.elapsed() >= LINE_EVERY;
        if self.bar.is_none() && !due {
            return;
        }
        let line = self.line(&first, &reached, standing.as_ref(), self.start.elapsed());
        if let Some(bar) = &self.bar {
            bar.set_position(reached.done);
            bar.set_message(fitting(&line, columns()));
        } else {
            message!("{line}");
            self.printed = Instant::now();
        }
    }

    /// How far it is, in what is counted.
    fn place(&self, done: u64) -> String {
        let of = self.goal.map_or(String::new(), |all| format!("/{all}"));
        match self.kind {
            Kind::Tournament => format!("{done}{of} batches"),
            Kind::Sweep => format!("{done}{of} cells"),
            Kind::Study => format!("{done}{of} parts"),
            _ => format!("generation {done}{of}"),
        }
    }

    fn line(&self, first: &Reached, now: &Reached, standing: Option<&Standing>, passed: Duration) -> String {
        let place = self.place(now.done);
        if self.is_paused {
            return format!("paused at {place}");
        }
        let rate = now.evaluations.saturating_sub(first.evaluations) as f64 / passed.as_secs_f64().max(1e-3);
        let eta = self.eta(first, now, passed);
        // Soon on the line: a narrow terminal has no room for its end.
        let eta = eta.map_or(String::new(), |eta| format!(", {} left", duration::show(eta)));
        let best = number(standing.map_or(f64::NAN, |standing| standing.best));
        match self.kind {
            Kind::Tournament => format!("{place}{eta}, {} games", now.evaluations),
            Kind::Sweep => format!("{place}{eta}, best {best}, {} evaluations/s", short(rate)),
            Kind::Study => format!("{place}{eta}"),
            _ => {
                let islands = counted(u64::from(self.islands), "island", "islands");
                format!("{place}{eta}, best {best}, {} evaluations/s, {islands}", short(rate))
            }
        }
    }

    /// How long until the first of the budgets ends the run, as far as that can be said.
    fn eta(&self, first: &Reached, now: &Reached, passed: Duration) -> Option<Duration> {
        let at_this_rate = |first: u64, now: u64, goal: Option<u64>| {
            let done = now.checked_sub(first).filter(|done| *done > 0)?;
            Some(passed.mul_f64(goal?.saturating_sub(now) as f64 / done as f64))
        };
        let by_goal = at_this_rate(first.done, now.done, self.goal);
        let by_evaluations = at_this_rate(first.evaluations, now.evaluations, self.ends.0);
        let by_time = self.ends.1.map(|time| time.saturating_sub(now.elapsed));
        [by_goal, by_evaluations, by_time].into_iter().flatten().min()
    }

    /// Says something above the line.
    pub(crate) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => message!("{text}"),
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Progress of a command that computes by itself, on stderr: a bar on a terminal, a line now and then elsewhere. Any thread may
/// count.
pub(crate) struct Counter {
    bar: Option<ProgressBar>,
    what: &'static str,
    all: u64,
    done: AtomicU64,
    start: Instant,
    printed: Mutex<Instant>,
}

impl Counter {
    /// Nothing of all is done yet; `what` they are called.
    pub(crate) fn new(what: &'static str, all: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| bar(Some(all)));
        let (done, start) = (AtomicU64::new(0), Instant::now());
        let counter = Self { bar, what, all, done, start, printed: Mutex::new(start) };
        if let Some(bar) = &counter.bar {
            bar.set_message(fitting(&counter.line(0), columns()));
        }
        counter
    }

    /// Counts some more.
    pub(crate) fn add(&self, count: u64) {
        let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
        if let Some(bar) = &self.bar {
            bar.set_message(fitting(&self.line(done), columns()));
            bar.set_position(done);
            return;
        }
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.elapsed() >= LINE_EVERY {
            message!("{}", self.line(done));
            *printed = Instant::now();
        }
    }

    fn line(&self, done: u64) -> String {
        let Self { what, all, .. } = self;
        let left = self.start.elapsed().mul_f64(all.saturating_sub(done) as f64 / done.max(1) as f64);
        let left = if done == 0 { String::new() } else { format!(", {} left", duration::show(left)) };
        format!("{done}/{all} {what}{left}")
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How much there is to do, and the evaluations and the time after which the budget ends a run.
fn budget(status: &v1::RunStatus) -> (Option<u64>, (Option<u64>, Option<Duration>)) {
    let time = status.goal_milliseconds.map(Duration::from_millis);
    (status.goal, (status.goal_evaluations, time))
}

/// Columns of the bar, and of a terminal that has room for it.
const BAR: usize = 24;
const ROOMY: usize = 80;

fn bar(generations: Option<u64>) -> ProgressBar {
    let (bar, template) = match generations {
        Some(all) if columns() < ROOMY => (ProgressBar::new(all), "{wide_msg}".to_owned()),
        Some(all) => (ProgressBar::new(all), format!("{{bar:{BAR}.cyan}} {{wide_msg}}")),
        None => (ProgressBar::new_spinner(), "{spinner} {wide_msg}".to_owned()),
    };
    bar.with_style(ProgressStyle::with_template(&template).expect("the template is a constant"))
}

/// Columns of the terminal, as far as it has a size.
fn columns() -> usize {
    terminal_size::terminal_size_of(std::io::stderr())
        .map_or(ROOMY, |(terminal_size::Width(columns), _)| columns.into())
}

/// As many parts of a line as fit on a terminal. A part that was cut would show another number.
fn fitting(line: &str, columns: usize) -> String {
    let room = if columns < ROOMY { columns } else { columns - BAR - 1 };
    let ends = line.match_indices(", ").map(|(end, _)| end).chain([line.len()]);
    let fits = |end: &usize| line[..*end].chars().count() <= room;
    let end = ends.clone().filter(fits).last().or_else(|| ends.clone().next());
    line[..end.unwrap_or(line.len())].to_owned()
}

/// A count of things, in singular or plural.
pub(crate) fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{} {}", report::text::count(count), if count == 1 { one } else { several })
}

/// A count in few characters: `12.3 M`.
pub(crate) fn short(count: f64) -> String {
    match count {
        c if c >= 1e9 => format!("{:.2} G", c / 1e9),
        c if c >= 1e6 => format!("{:.2} M", c / 1e6),
        c if c >= 1e3 => format!("{:.1} k", c / 1e3),
        c => format!("{c:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn reached(done: u64, evaluations: u64, seconds: u64) -> Reached {
        Reached { done, evaluations, elapsed: Duration::from_secs(seconds) }
    }

    #[test]
    fn the_time_left_is_that_of_the_budget_that_ends_the_run() {
        let (first, now, passed) = (reached(100, 1000, 20), reached(200, 2000, 30), Duration::from_secs(10));
        let progress = |goal_evaluations, goal_milliseconds| {
            let goal = Some(1000);
            Progress::new(&v1::RunStatus {
                goal,
                goal_evaluations,
                goal_milliseconds,
                ..v1::RunStatus::default()
            })
        };
        let left =
            |evaluations, time| progress(evaluations, time).eta(&first, &now, passed).unwrap().as_secs();
        assert_eq!(left(None, None), 80, "800 generations at 10 a second");
        assert_eq!(left(Some(4000), None), 20, "2000 evaluations at 100 a second");
        assert_eq!(left(None, Some(180_000)), 80, "150 s are left of the time");
        assert_eq!(left(None, Some(31_000)), 1);
        let late = reached(200, 2000, 400);
        assert_eq!(progress(None, Some(180_000)).eta(&first, &late, passed), Some(Duration::ZERO));
        assert_eq!(Progress::new(&v1::RunStatus::default()).eta(&first, &now, passed), None);
    }

    #[test]
    fn a_run_that_is_extended_while_it_is_watched_shows_its_new_limits() {
        let status = |goal, goal_milliseconds| v1::RunStatus {
            kind: Kind::Evolution.into(),
            goal,
            goal_milliseconds,
            ..v1::RunStatus::default()
        };
        let mut progress = Progress::new(&status(Some(100), None));
        let line =
            |progress: &Progress| progress.line(&reached(0, 0, 0), &reached(50, 0, 10), None, LINE_EVERY);
        assert!(line(&progress).starts_with("generation 50/100, 5.0s left"), "{}", line(&progress));
        progress.show(&status(Some(300), None));
        assert!(line(&progress).starts_with("generation 50/300, 25.0s left"), "{}", line(&progress));
        progress.show(&status(None, Some(60_000)));
        assert!(line(&progress).starts_with("generation 50, 50.0s left"), "{}", line(&progress));
    }

    #[test]
    fn a_narrow_terminal_shows_fewer_parts_of_a_line_and_none_cut() {
        let line = "generation 2/1000, 2m 54s left, best 15, 576 evaluations/s, 4 islands";
        assert_eq!(fitting(line, 120), line);
        assert_eq!(fitting(line, 80), "generation 2/1000, 2m 54s left, best 15");
        assert_eq!(fitting(line, 79), line, "without the bar there is more room");
        assert_eq!(fitting(line, 40), "generation 2/1000, 2m 54s left, best 15");
        assert_eq!(fitting(line, 39), "generation 2/1000, 2m 54s left, best 15");
        assert_eq!(fitting(line, 30), "generation 2/1000, 2m 54s left");
        assert_eq!(fitting(line, 17), "generation 2/1000");
        assert_eq!(fitting(line, 0), "generation 2/1000");
    }

    #[test]
    fn a_counter_shows_how_much_is_left_once_something_is_done() {
        let counter = Counter::new("games", 40);
        assert_eq!(counter.line(0), "0/40 games");
        counter.add(2);
        assert_eq!(counter.done.load(Ordering::Relaxed), 2);
        assert_eq!(counter.line(40), "40/40 games, 0.0s left");
    }

    #[test]
    fn a_paused_run_says_so_and_no_time() {
        let status = |state: State, done| v1::RunStatus {
            kind: Kind::Evolution.into(),
            state: state.into(),
            goal: Some(100),
            islands: 1,
            standing: Some(v1::Standing { generation: done, evaluations: done, best: 1.0 }),
            ..v1::RunStatus::default()
        };
        let mut progress = Progress::new(&status(State::Running, 40));
        let line =
            |progress: &Progress| progress.line(&reached(0, 0, 0), &reached(50, 0, 10), None, LINE_EVERY);
        progress.show(&status(State::Paused, 50));
        assert_eq!(line(&progress), "paused at generation 50/100");
        progress.show(&status(State::Running, 50));
        assert_eq!(line(&progress), "generation 50/100, 5.0s left, best –, 0 evaluations/s, 1 island");
        assert_eq!(progress.first.map(|first| first.done), Some(50), "rates count from there");
    }

    #[test]
    fn a_line_says_what_is_counted() {
        let of = |kind: Kind| {
            let status =
                v1::RunStatus { kind: kind.into(), goal: Some(12), islands: 12, ..v1::RunStatus::default() };
            Progress::new(&status).line(&reached(0, 0, 0), &reached(0, 0, 60), None, LINE_EVERY)
        };
        assert_eq!(of(Kind::Sweep), "0/12 cells, best –, 0 evaluations/s");
        assert_eq!(of(Kind::Tournament), "0/12 batches, 0 games");
        assert_eq!(of(Kind::Evolution), "generation 0/12, best –, 0 evaluations/s, 12 islands");
    }
}
