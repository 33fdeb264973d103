//! Progress on the screen: one line that changes on a terminal, plain lines elsewhere.

use evolution::epoch::Standing;
use experiment::duration;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often a plain line is printed.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// What people see while a run goes on. Everything goes to stderr.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    islands: usize,
    generations: Option<u64>,
    start: Instant,
    /// Where the run stood when it was taken up: rates count from there.
    first: Option<Standing>,
    printed: Instant,
}

impl Progress {
    /// Progress towards so many generations, if that is known.
    pub(crate) fn new(islands: usize, generations: Option<u64>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| bar(generations));
        let now = Instant::now();
        Self { bar, islands, generations, start: now, first: None, printed: now }
    }

    /// Shows where the run stands.
    pub(crate) fn show(&mut self, standing: &Standing) {
        let first = *self.first.get_or_insert(*standing);
        let due = self.printed.elapsed() >= LINE_EVERY;
        if self.bar.is_none() && !due {
            return;
        }
        let line = self.line(&first, standing);
        if let Some(bar) = &self.bar {
            bar.set_position(standing.generation);
            bar.set_message(line);
        } else {
            eprintln!("{line}");
            self.printed = Instant::now();
        }
    }

    fn line(&self, first: &Standing, standing: &Standing) -> String {
        let seconds = self.start.elapsed().as_secs_f64().max(1e-3);
        let rate = standing.evaluations.saturating_sub(first.evaluations) as f64 / seconds;
        let of = self.generations.map_or(String::new(), |all| format!("/{all}"));
        let eta =
            self.eta(first, standing).map_or(String::new(), |eta| format!(", {} left", duration::show(eta)));
        format!(
            "generation {}{of}, best {}, {} evaluations/s, {} islands{eta}",
            standing.generation,
            number(standing.best),
            short(rate),
            self.islands,
        )
    }

    fn eta(&self, first: &Standing, standing: &Standing) -> Option<Duration> {
        let done = standing.generation.checked_sub(first.generation).filter(|done| *done > 0)?;
        let left = self.generations?.saturating_sub(standing.generation);
        Some(self.start.elapsed().mul_f64(left as f64 / done as f64))
    }

    /// Says something above the line.
    pub(crate) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(generations: Option<u64>) -> ProgressBar {
    let (bar, template) = match generations {
        Some(all) => (ProgressBar::new(all), "{bar:24.cyan} {wide_msg}"),
        None => (ProgressBar::new_spinner(), "{spinner} {wide_msg}"),
    };
    bar.with_style(ProgressStyle::with_template(template).expect("the template is a constant"))
}

/// A fitness with as many digits as tell it from its neighbours.
pub(crate) fn number(number: f64) -> String {
    if !number.is_finite() {
        "-".to_owned()
    } else if number.fract() == 0.0 && number.abs() < 1e15 {
        format!("{number}")
    } else if number.abs() >= 1e-3 && number.abs() < 1e9 {
        format!("{number:.6}").trim_end_matches('0').to_owned()
    } else {
        format!("{number:.3e}")
    }
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
