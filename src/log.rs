//! Log lines on stderr. Fields hold words of others: each stays on its line, is cut where it is long, and looks the same
//! however it was logged.

use crate::failure::Failure;
use crate::settings::Settings;
use crate::terminal::message;
use std::fmt::{self, Debug, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{FormatFields, debug_fn};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{field::MakeExt, registry};

/// The most characters of one field.
const LONGEST: usize = 1000;

/// The target of the last line, which no filter keeps out.
const LAST: &str = "atoll::last";

/// Whether lines are JSON: then all of them are.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Says what people wait for, whatever the filter of the log is; to machines, as a line of the log.
pub(crate) fn say(what: &str, url: &str) {
    if IS_JSON.load(SeqCst) {
        tracing::info!(url, "{what}");
    } else {
        message!("{what} {url}");
    }
}

/// The last line: why a command failed.
pub(crate) fn fail(failure: &Failure) {
    if IS_JSON.load(SeqCst) {
        tracing::error!(target: LAST, reason = %failure, exit_code = failure.exit() as u8, "failed");
    } else {
        message!("error: {failure}");
    }
}

/// Logs on stderr, as much as the settings ask for. With a filter that is wrong it logs as by default, so that the reason is a
/// line like others.
pub(crate) fn start(settings: &Settings) -> Result<(), Failure> {
    let asked = filter(&settings.text("log")?).map_err(|message| settings.bad("log", &message));
    let default = || Targets::new().with_default(LevelFilter::INFO);
    let filter =
        asked.as_ref().map_or_else(|_| default(), Clone::clone).with_target(LAST, LevelFilter::ERROR);
    // The reader of the log may go away; the coordinator must not, and would if it wrote about that to stderr.
    let layer = tracing_subscriber::fmt::layer().log_internal_errors(false).with_writer(std::io::stderr);
    // A log that was started before stays as it is.
    let _ = match settings.text("log_format")?.as_str() {
        "text" => registry().with(layer.with_ansi(false).fmt_fields(fields()).with_filter(filter)).try_init(),
        "json" => {
            IS_JSON.store(true, SeqCst);
            registry().with(layer.json().with_filter(filter)).try_init()
        }
        other => {
            return Err(settings.bad("log_format", &format!("expected `text` or `json`, found `{other}`")));
        }
    };
    asked.map(|_| ())
}

/// A filter such as `info,h2=off`. Every word of it is a level, or a target with its level: a word alone would be taken for a
/// target, and a level that is misspelt would silence everything.
fn filter(text: &str) -> Result<Targets, String> {
    let mut targets = Targets::new();
    for part in text.split(',').map(str::trim) {
        let (target, level) =
            part.split_once('=').map_or((None, part), |(target, level)| (Some(target), level));
        let level = level_of(level).filter(|_| target.is_none_or(|target| !target.is_empty()));
        let Some(level) = level else {
            return Err(format!(
                "expected `off`, `error`, `warn`, `info`, `debug`, `trace`, or TARGET=LEVEL, separated by commas, found \
                 `{part}`"
            ));
        };
        targets = match target {
            Some(target) => targets.with_target(target, level),
            None => targets.with_default(level),
        };
    }
    Ok(targets)
}

fn level_of(word: &str) -> Option<LevelFilter> {
    let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_word.then(|| word.parse().ok()).flatten()
}

/// Fields of a line of text, such as `run=maze-1 reason="it was asked to"`.
fn fields() -> impl for<'writer> FormatFields<'writer> + 'static {
    debug_fn(|writer, field, value| {
        let text = shortened(value);
        match field.name() {
            "message" => write!(writer, "{}", escaped(&text)),
            name => write!(writer, "{name}={}", plain(&text)),
        }
    })
    .delimited(" ")
}

/// What a value looks like, and not more than is read.
fn shortened(value: &dyn Debug) -> String {
    let mut text = Bounded { text: String::new(), left: LONGEST };
    // It ends early where there is no room left.
    let _ = write!(text, "{value:?}");
    if text.left == 0 {
        text.text.push('…');
    }
    text.text
}

struct Bounded {
    text: String,
    left: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(c);
        }
        Ok(())
    }
}

/// A value without quotes where it is one word, and in quotes otherwise, whichever it came with.
fn plain(text: &str) -> String {
    let unquoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let is_word = |text: &str| {
        !text.is_empty()
            && !text.contains(|c: char| c.is_whitespace() || c.is_control() || "\"\\=".contains(c))
    };
    match unquoted {
        Some(word) if is_word(word) => word.to_owned(),
        // It was quoted by itself, and what is in it is escaped.
        Some(_) => escaped(text),
        None if is_word(text) => text.to_owned(),
        None => format!("{text:?}"),
    }
}

/// Text that stays on its line and moves no cursor.
fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is logged, without the times.
    fn logged(log: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer().without_time().with_ansi(false).fmt_fields(fields());
        let layer = layer.with_target(false).with_writer(move || writer.clone());
        tracing::subscriber::with_default(registry().with(layer), log);
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_field_looks_the_same_however_it_was_logged() {
        let name = "maze-1".to_owned();
        let reason = "it was asked to";
        let text = logged(|| {
            tracing::info!(run = name, reason, number = 3, "one");
            tracing::info!(run = %name, reason = %reason, number = 3, "one");
        });
        let line = " INFO one run=maze-1 reason=\"it was asked to\" number=3";
        assert_eq!(text.lines().collect::<Vec<_>>(), [line, line]);
    }

    #[test]
    fn a_filter_is_made_of_levels_and_a_misspelt_one_is_no_target() {
        let enables =
            |text: &str, target: &str| filter(text).unwrap().would_enable(target, &tracing::Level::INFO);
        assert!(enables("info", "any") && enables("INFO", "any") && enables("off, atoll=debug", "atoll"));
        assert!(
            !enables("warn", "any") && !enables("off,atoll=debug", "any") && !enables("info,h2=off", "h2")
        );
        for wrong in ["", "loud", "inof", "warning", "info,x=y=z", "info,", "=info", "h2", "h2=", "3"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_of_others_stay_on_their_line_and_are_cut() {
        let forged = "1.0\n2026-01-01 INFO run=other finished\x1b[2J\u{9b}31m";
        let text = logged(|| {
            tracing::info!(version = forged, "joined");
            tracing::info!(version = %forged, "joined");
            tracing::info!(forged = ?Some(forged), "joined {forged}");
            tracing::info!(version = "x".repeat(1_500_000), "joined");
        });
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(!text.contains(['\x1b', '\u{9b}']), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < LONGEST + 50), "{}", text.len());
        assert!(text.contains(r"1.0\n2026-01-01 INFO"), "{text}");
    }
}
