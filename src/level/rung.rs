//! A level of a ladder: its files, and its place on the page that all of them are played on.

use super::{Form, Level, Playing, figures, raster};
use crate::failure::Failure;
use serde_json::{Value, json};
use std::path::Path;

/// Plays of a histogram.
const HISTOGRAM: u32 = 10_000;

/// The normal quantile of a two-sided 95 % interval.
const QUANTILE_95: f64 = 1.959_963_984_540_054;

/// The end of a file's name, what its button says, its type, and its form.
type Download = (&'static str, &'static str, &'static str, Form);

/// What the page offers of each level.
const DOWNLOADS: [Download; 5] = [
    ("json", "JSON with figures", "application/json", Form::Json),
    ("txt", "Text", "text/plain", Form::Text),
    ("svg", "Picture (SVG)", "image/svg+xml", Form::Svg),
    ("tmx", "Tiled map (TMX)", "application/xml", Form::Tmx),
    ("tmj", "Tiled map (JSON)", "application/json", Form::Tiled),
];

/// A difficulty with its 95 % interval, and what it should be.
struct Difficulty {
    value: f64,
    low: f64,
    high: f64,
    target: f64,
}

/// What a level should reach.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// Nodes that A* visits.
    Nodes(u32),
    /// A probability of passing.
    Passing(match3::Target),
}

impl Target {
    pub(super) fn value(self) -> f64 {
        match self {
            Self::Nodes(nodes) => nodes.into(),
            Self::Passing(target) => target.value(),
        }
    }

    pub(super) fn json(self) -> Value {
        match self {
            Self::Nodes(nodes) => json!(f64::from(nodes)),
            Self::Passing(target) => json!(target),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nodes(nodes) => write!(formatter, "{nodes}"),
            Self::Passing(target) => write!(formatter, "{target}"),
        }
    }
}

/// A level of the ladder, with its figures and its story.
pub(super) struct Rung {
    pub(super) name: String,
    /// The levels that people compare it with.
    pub(super) group: String,
    pub(super) level: Level,
    pub(super) figures: Value,
    pub(super) found: Value,
    pub(super) playing: Playing,
    pub(super) target: Target,
    /// The figure that is compared with a target of nodes.
    pub(super) counted: &'static str,
}

impl Rung {
    pub(super) fn summary(&self) -> String {
        let figure = |name: &str| self.figures[name].as_f64().unwrap_or(0.0);
        match &self.level {
            Level::LockKey(_) => {
                format!(
                    "{} nodes, {} optimised, {} steps",
                    figure("plain"),
                    figure("optimised"),
                    figure("steps")
                )
            }
            Level::Match3(_) => format!(
                "estimate {}, passed {}",
                figures::estimate(&self.figures),
                figures::passed(&self.figures)
            ),
        }
    }

    /// The difficulty as the page draws it: nodes, or the percentage of plays that fail.
    fn difficulty(&self) -> Difficulty {
        let figure = |name: &str| self.figures[name].as_f64().unwrap_or(0.0);
        let failing = |passing: f64| 100.0 * (1.0 - passing);
        match self.target {
            Target::Nodes(nodes) => {
                let value = figure(self.counted);
                Difficulty { value, low: value, high: value, target: nodes.into() }
            }
            Target::Passing(target) => {
                let (value, low, high) = match target {
                    match3::Target::Estimate(_) => {
                        let half = QUANTILE_95 * figure("error");
                        (figure("estimate"), figure("estimate") - half, figure("estimate") + half)
                    }
                    match3::Target::Passed(_) => {
                        let end = |end: usize| self.figures["interval"][end].as_f64().unwrap_or(0.0);
                        (figure("passed"), end(0), end(1))
                    }
                };
                let target = failing(target.value());
                Difficulty { value: failing(value), low: failing(high), high: failing(low), target }
            }
        }
    }

    fn json(&self) -> Value {
        match &self.level {
            Level::LockKey(level) => {
                let mut object = level.to_json(Some(&self.found));
                object["proof"] = json!(level.verdict());
                object
            }
            Level::Match3(level) => {
                let mut object = level.to_json(None, Some(&self.found));
                object["metrics"] = self.figures.clone();
                object["player"] = json!(self.playing.player);
                object
            }
        }
    }

    /// What the page knows of it.
    fn entry(&self, number: usize) -> Result<Value, Failure> {
        let Difficulty { value, low, high, target } = self.difficulty();
        let mut shown = vec![("target".to_owned(), self.target_text())];
        shown.extend(
            figures::figures(&self.figures).into_iter().map(|figure| (figure.name.to_owned(), figure.text)),
        );
        let found =
            |key: &str| self.found[key].as_str().map_or_else(|| self.found[key].to_string(), str::to_owned);
        shown.push(("found by".to_owned(), format!("run {}, island {}", found("run"), found("island"))));
        let (game, form) = match self.level {
            Level::LockKey(_) => ("lock-key", Form::Svg),
            Level::Match3(_) => ("match3", Form::Histogram),
        };
        let files: Result<Vec<Value>, Failure> =
            DOWNLOADS.iter().map(|download| self.download(number, download)).collect();
        Ok(json!({
            "name": self.name, "game": game, "group": self.group, "figures": shown, "level": self.bare(),
            "difficulty": value, "low": low, "high": high, "target": target,
            "picture": self.form(form)?, "files": files?,
        }))
    }

    fn target_text(&self) -> String {
        match self.target {
            Target::Nodes(nodes) => format!("{nodes} nodes ({})", self.counted),
            Target::Passing(match3::Target::Estimate(wanted)) => {
                format!("{wanted} (normal estimate of passing)")
            }
            Target::Passing(target) => format!("{} (share of plays that pass)", target.value()),
        }
    }

    fn download(&self, number: usize, &(end, label, kind, form): &Download) -> Result<Value, Failure> {
        let text = if end == "json" { format!("{}\n", self.json()) } else { self.form(form)? };
        let name = format!("{:02}-{}.{end}", number + 1, self.name);
        Ok(json!({ "name": name, "label": label, "type": kind, "text": text }))
    }

    /// The level alone, as it stands in logs of plays.
    fn bare(&self) -> Value {
        let mut object = match &self.level {
            Level::LockKey(level) => level.to_json(None),
            Level::Match3(level) => level.to_json(None, None),
        };
        if let Some(object) = object.as_object_mut() {
            object.remove("metrics");
        }
        object
    }

    fn form(&self, form: Form) -> Result<String, Failure> {
        // A histogram shows no more than these.
        let playing = Playing { plays: self.playing.plays.min(HISTOGRAM), ..self.playing };
        let text = self.level.exported(form, &playing, &self.name);
        text.map_err(|problem| Failure::Other(problem.to_string()))
    }

    /// Its files, by the ends of their names.
    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
        let svg = self.form(Form::Svg)?;
        let png = raster::to_png(&svg, 2).map_err(|error| Failure::Other(error.to_string()))?;
        let mut files = vec![
            (".json", format!("{}\n", self.json()).into_bytes()),
            (".svg", svg.into_bytes()),
            (".png", png),
            (".tmj", self.form(Form::Tiled)?.into_bytes()),
        ];
        if matches!(self.level, Level::Match3(_)) {
            files.push((".scores.svg", self.form(Form::Histogram)?.into_bytes()));
        }
        Ok(files)
    }
}

pub(super) fn write_all(folder: &Path, rungs: &[Rung]) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Other(format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).map_err(|error| failed(&path, error))
    };
    for (number, rung) in rungs.iter().enumerate() {
        for (end, bytes) in rung.files()? {
            write(&format!("{:02}-{}{end}", number + 1, rung.name), &bytes)?;
        }
        let (name, sheet) = rung.level.tile_sheet();
        write(name, sheet.as_bytes())?;
    }
    write("index.html", page(rungs)?.as_bytes())
}

/// The page with these levels on it. No text of a level may end the script that it stands in.
fn page(rungs: &[Rung]) -> Result<String, Failure> {
    let entries: Result<Vec<Value>, Failure> =
        rungs.iter().enumerate().map(|(number, rung)| rung.entry(number)).collect();
    let has = |is_it: fn(&Level) -> bool| rungs.iter().any(|rung| is_it(&rung.level));
    let mazes = has(|level| matches!(level, Level::LockKey(_)));
    let boards = has(|level| matches!(level, Level::Match3(_)));
    let (unit, measured) = match (mazes, boards) {
        (true, true) => ("nodes, or % of plays that fail", "measured difficulty"),
        (true, false) => ("nodes visited by A*", "nodes visited"),
        _ => ("% of plays that fail", "simulated plays that fail"),
    };
    let mut groups: Vec<&str> = rungs.iter().map(|rung| rung.group.as_str()).collect();
    groups.dedup();
    let title = format!("Levels of {}", groups.join(", "));
    let values = rungs.iter().map(|rung| rung.difficulty().value);
    let (low, high) =
        values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let count = if rungs.len() == 1 { "1 level".to_owned() } else { format!("{} levels", rungs.len()) };
    let headline = format!("{count}, {low:.0} to {high:.0} {unit}. Every level can be played below.");
    let ladder = json!({
        "title": title, "headline": headline, "unit": unit, "measured": measured, "levels": entries?,
    });
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    let ladder = ladder.to_string().replace('<', "\\u003c");
    let style = format!("{}{}", report::html::style(), include_str!("page/page.css"));
    // The levels come last: what stands in them is not looked at again.
    Ok(include_str!("page/page.html")
        .replacen("/*TITLE*/", &title, 1)
        .replacen("/*STYLE*/", &style, 1)
        .replacen("/*GAMES*/", include_str!("page/games.js"), 1)
        .replacen("/*STUDY*/", include_str!("page/study.js"), 1)
        .replacen("/*PAGE*/", include_str!("page/page.js"), 1)
        .replacen("/*LADDER*/{}", &ladder, 1))
}
