//! Studies: several named experiments that may take each other's champions as guests.

use crate::document::{Diagnostics, Document, written};
use crate::experiment::Experiment;
use crate::overlay::{lay_over, path};
use crate::tournament::Tournament;
use evolution::digest::Digest;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The name of the tournament among the parts of a study.
pub const GAMES: &str = "tournament";

/// A checked study.
#[derive(Clone, Debug)]
pub struct Study {
    /// Its name.
    pub name: String,
    /// Its experiments, each after those whose champions it takes.
    pub parts: Vec<Part>,
    /// The games that are played when all experiments are done: their players may come from runs that are called like the
    /// study's experiments.
    pub tournament: Option<Tournament>,
    /// The file it was made from, from which it can be read again.
    pub text: String,
}

/// One experiment of a study.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name in the study.
    pub name: String,
    /// The experiment whose champions arrive as immigrants when its islands are founded.
    pub guests: Option<String>,
    /// The experiment.
    pub experiment: Experiment,
}

impl Study {
    /// Checks every experiment of a study.
    pub(crate) fn check(document: &Document, tables: &BTreeMap<String, Json>) -> Result<Self, Diagnostics> {
        let mut name = document.get(&path("name")).and_then(|name| Some(name.as_str()?.to_owned()));
        let name = name.take().unwrap_or_else(|| "study".to_owned());
        let mut parts = vec![];
        let mut problems = vec![];
        for part in tables.keys() {
            match Part::check(document, &name, part, tables) {
                Ok(part) => parts.push(part),
                Err(report) => problems.extend(report.problems),
            }
        }
        document.conclude(problems)?;
        check_shapes(document, &parts)?;
        if document.get(&path(GAMES)).is_some() && tables.contains_key(GAMES) {
            let message = format!("expected another name: `{GAMES}` is what the games of a study are called");
            document.conclude(vec![document.problem(&format!("study.{GAMES}"), message, None)])?;
        }
        let seed = document.get(&path("seed")).and_then(|seed| seed.as_u64()).unwrap_or(0);
        let tournament = Tournament::of_study(document, &name, seed)?;
        Ok(Self { name, parts: in_order(document, parts)?, tournament, text: document.to_toml() })
    }

    /// The digest of its experiments, their budgets and guests, and its tournament.
    pub fn digest(&self) -> Digest {
        let words = self.parts.iter().flat_map(|part| {
            let guests = part.guests.clone().unwrap_or_default();
            [part.name.clone(), guests, part.experiment.run_id()]
        });
        let games = self.tournament.iter().map(|tournament| tournament.text().to_owned());
        let words: Vec<String> = words.chain(games).collect();
        Digest::of_parts("atoll study", words.iter().map(String::as_bytes))
    }

    /// The same study with another tournament after it.
    #[must_use]
    pub fn with_tournament(self, tournament: Tournament) -> Self {
        let mut document: toml::Table = self.text.parse().expect("it was written as TOML");
        let keys = toml::Value::try_from(tournament.keys()).expect("every tournament can be written as TOML");
        document.insert("tournament".to_owned(), keys);
        let text = toml::to_string_pretty(&document).expect("what was read as TOML can be written as TOML");
        Self { text, tournament: Some(tournament), ..self }
    }

    /// The name of its run.
    pub fn run_id(&self) -> String {
        format!("{}-{}", self.name, &self.digest().to_string()[..8])
    }
}

impl Part {
    fn check(
        document: &Document,
        study: &str,
        name: &str,
        tables: &BTreeMap<String, Json>,
    ) -> Result<Self, Diagnostics> {
        let at = format!("study.{}", written(name));
        let refuse =
            |key: &str, message: String| document.conclude(vec![document.problem(key, message, None)]);
        let Some(table) = tables[name].as_object() else {
            refuse(
                &at,
                format!("expected a table with the keys of an experiment, found `{}`", tables[name]),
            )?;
            unreachable!("a refusal is an error");
        };
        let guests = table.get("guests").map(|guests| guests.as_str().unwrap_or_default().to_owned());
        if let Some(from) = guests.as_ref().filter(|from| !tables.contains_key(*from) || *from == name) {
            let others: Vec<&str> =
                tables.keys().map(String::as_str).filter(|other| *other != name).collect();
            let message =
                format!("expected another experiment of the study ({}), found `{from}`", others.join(", "));
            refuse(&format!("{at}.guests"), message)?;
        }
        let mut own = document.clone();
        own.set(&path("name"), Json::from(format!("{study}-{name}")))?;
        for (key, value) in table.iter().filter(|(key, _)| *key != "guests") {
            lay_over(&mut own, document, &written(key), &format!("{at}.{}", written(key)), value)?;
        }
        Ok(Self { name: name.to_owned(), guests, experiment: crate::single(&own)? })
    }
}

/// Guests must fit into the genomes of their hosts.
fn check_shapes(document: &Document, parts: &[Part]) -> Result<(), Diagnostics> {
    let shape = |part: &Part| {
        let traits = part.experiment.traits();
        format!("{} genes of {} bytes and {}", traits.length, traits.bytes / traits.length, traits.domain)
    };
    let misfits = parts.iter().filter_map(|host| {
        let guest = parts.iter().find(|part| Some(&part.name) == host.guests.as_ref())?;
        (shape(guest) != shape(host)).then(|| {
            let message = format!("expected guests with {}, found {}", shape(host), shape(guest));
            document.problem(&format!("study.{}.guests", written(&host.name)), message, None)
        })
    });
    document.conclude(misfits.collect())
}

/// Experiments after those whose champions they take.
fn in_order(document: &Document, mut parts: Vec<Part>) -> Result<Vec<Part>, Diagnostics> {
    let mut ordered: Vec<Part> = vec![];
    while !parts.is_empty() {
        let known = |name: &String| ordered.iter().any(|part| part.name == *name);
        let Some(next) = parts.iter().position(|part| part.guests.as_ref().is_none_or(known)) else {
            let key = format!("study.{}.guests", written(&parts[0].name));
            let message = "expected experiments that do not wait for each other, found a circle";
            return document.conclude(vec![document.problem(&key, message, None)]).map(|()| ordered);
        };
        ordered.push(parts.remove(next));
    }
    Ok(ordered)
}
