//! Settings of long-running commands: defaults, then a file, then the environment, then flags.

use crate::failure::Failure;
use crate::terminal::out;
use config::{Config, Environment, File, FileFormat};
use experiment::document;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The settings that all long-running commands share, as flags.
#[derive(clap::Args, Clone)]
pub(crate) struct SettingsArguments {
    /// Settings file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print every setting and its origin, and exit
    #[arg(long)]
    pub(crate) print_config: bool,
}

/// Settings after all layers were laid over each other.
#[derive(Clone)]
pub(crate) struct Settings {
    merged: Config,
    origins: BTreeMap<String, String>,
    /// Those that are no text in a file.
    bare: BTreeSet<String>,
}

impl Settings {
    /// Lays the layers over each other. `Keys` is the file's type: each key is optional there, and no other is known.
    pub(crate) fn read<Keys: DeserializeOwned + JsonSchema>(
        defaults: &[(&str, &str)],
        arguments: &SettingsArguments,
        flags: &[(&str, Option<String>)],
    ) -> Result<Self, Failure> {
        let mut origins = origins_of(defaults);
        let path = arguments.config.as_deref();
        let text = path.map(|path| checked::<Keys>(path, &mut origins)).transpose()?;
        Self::layered::<Keys>(defaults, text, flags, origins)
    }

    /// The same of a file with mistakes, as far as it is TOML: enough to tell the other side of a batch about them.
    pub(crate) fn salvage<Keys: JsonSchema>(
        defaults: &[(&str, &str)],
        arguments: &SettingsArguments,
        flags: &[(&str, Option<String>)],
    ) -> Option<Self> {
        let text = document::read_limited(arguments.config.as_deref()?).ok()?;
        Self::layered::<Keys>(defaults, Some(text), flags, origins_of(defaults)).ok()
    }

    fn layered<Keys: JsonSchema>(
        defaults: &[(&str, &str)],
        text: Option<String>,
        flags: &[(&str, Option<String>)],
        mut origins: BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let mut builder = Config::builder();
        for (key, value) in defaults {
            builder = builder.set_default(*key, *value).map_err(failed)?;
        }
        if let Some(text) = text {
            builder = builder.add_source(File::from_str(&text, FileFormat::Toml));
        }
        let variables = variables(&mut origins);
        builder = builder.add_source(Environment::default().source(Some(variables)));
        for (key, value) in flags {
            if let Some(value) = value {
                builder = builder.set_override(*key, value.clone()).map_err(failed)?;
                origins.insert((*key).to_owned(), format!("flag --{}", key.replace('_', "-")));
            }
        }
        Ok(Self { merged: builder.build().map_err(failed)?, origins, bare: bare::<Keys>() })
    }

    /// One setting.
    pub(crate) fn text(&self, key: &str) -> Result<String, Failure> {
        self.merged.get_string(key).map_err(failed)
    }

    /// One setting that is read by its type.
    pub(crate) fn parsed<T>(&self, key: &str, expected: &str) -> Result<T, Failure>
    where
        T: std::str::FromStr,
    {
        let text = self.text(key)?;
        text.parse().map_err(|_| self.bad(key, &format!("expected {expected}, found `{text}`")))
    }

    /// One setting that is a time, such as `15s`.
    pub(crate) fn time(&self, key: &str) -> Result<std::time::Duration, Failure> {
        let text = self.text(key)?;
        experiment::duration::parse(&text).map_err(|error| self.bad(key, &error.to_string()))
    }

    /// One setting that is a time, or `never`.
    pub(crate) fn time_or_never(&self, key: &str) -> Result<Option<std::time::Duration>, Failure> {
        match self.text(key)?.as_str() {
            "never" => Ok(None),
            _ => self.time(key).map(Some),
        }
    }

    /// A setting that cannot be.
    pub(crate) fn bad(&self, key: &str, message: &str) -> Failure {
        let origin = self.origins.get(key).map_or("default", String::as_str);
        Failure::Config(format!("{key} ({origin}): {message}"))
    }

    /// Prints every setting as a line of a file, which could be read again, with where it came from.
    pub(crate) fn print(&self) -> Result<(), Failure> {
        for (key, origin) in &self.origins {
            let value = self.text(key)?;
            if self.bare.contains(key) {
                out!("{key} = {value} # {origin}");
            } else {
                out!("{key} = {value:?} # {origin}");
            }
        }
        Ok(())
    }
}

/// Every setting has its default at first.
fn origins_of(defaults: &[(&str, &str)]) -> BTreeMap<String, String> {
    defaults.iter().map(|(key, _)| ((*key).to_owned(), "default".to_owned())).collect()
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Config(error.to_string())
}

/// The keys of numbers and of `true` or `false`.
fn bare<Keys: JsonSchema>() -> BTreeSet<String> {
    let schema = schemars::schema_for!(Keys).to_value();
    let is_bare = |kind: &Value| ["boolean", "integer", "number"].iter().any(|bare| kind == bare);
    let keys = schema["properties"].as_object().into_iter().flatten();
    let bare = keys.filter(|(_, key)| match &key["type"] {
        Value::Array(kinds) => kinds.iter().any(is_bare),
        kind => is_bare(kind),
    });
    bare.map(|(name, _)| name.clone()).collect()
}

/// The text of a file in which everything is known and of the right type.
fn checked<Keys: DeserializeOwned + JsonSchema>(
    path: &Path,
    origins: &mut BTreeMap<String, String>,
) -> Result<String, Failure> {
    let text = document::read_limited(path).map_err(experiment::LoadError::from)?;
    let document = document::parse(&path.display().to_string(), &text).map_err(|_| unreadable(path))?;
    let _: Keys = document.decode(&schemars::schema_for!(Keys).to_value())?;
    for (key, origin) in origins.iter_mut() {
        let place: document::KeyPath = key.parse().map_err(failed)?;
        if document.get(&place).is_some() {
            *origin = path.display().to_string();
        }
    }
    Ok(text)
}

/// A file that is not even TOML may be a file of secrets that was taken for another: nothing of it is shown.
fn unreadable(path: &Path) -> Failure {
    let path = path.display();
    Failure::Config(format!(
        "expected settings in TOML in `{path}`, found something else (which is not shown here: it may be a secret)"
    ))
}

/// The variables of the environment that are settings: `ATOLL_LISTEN` is `listen`. Others are not ours to judge.
fn variables(origins: &mut BTreeMap<String, String>) -> config::Map<String, String> {
    let mut variables = config::Map::new();
    for (key, origin) in origins.iter_mut() {
        let name = format!("ATOLL_{}", key.to_uppercase());
        if let Ok(value) = std::env::var(&name) {
            *origin = format!("environment {name}");
            variables.insert(key.clone(), value);
        }
    }
    variables
}
