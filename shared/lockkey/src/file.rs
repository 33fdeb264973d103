//! The JSON form of a level, with its figures and how it was found.

use crate::difficulty::Difficulty;
use crate::level::Level;
use crate::text::TextError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What the `format` key of a level file says.
pub const FORMAT: &str = "atoll.lock-key/1";

/// Why a text is no level file.
#[derive(Debug, Error)]
pub enum FileError {
    /// Not JSON, or not of this shape.
    #[error("expected a level as a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    /// Another format, or a version from the future.
    #[error("expected the format `{FORMAT}`, found `{found}`")]
    Format {
        /// The format named.
        found: String,
    },
    /// The rows make no level.
    #[error("in `rows`: {0}")]
    Rows(#[from] TextError),
}

#[derive(Serialize)]
struct Written<'a> {
    format: &'static str,
    rows: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Difficulty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'a serde_json::Value>,
}

/// What need be read back: figures can be computed again.
#[derive(Deserialize)]
struct Read {
    format: String,
    rows: Vec<String>,
}

impl Level {
    /// The level as a JSON object: its rows, its figures if it can be solved, and how it was found, if given.
    pub fn to_json(&self, found: Option<&serde_json::Value>) -> serde_json::Value {
        let metrics = self.difficulty().ok();
        serde_json::json!(Written { format: FORMAT, rows: self.rows(), metrics, found })
    }

    /// Reads a JSON object.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, FileError> {
        let read: Read = serde_json::from_str(text)?;
        if read.format != FORMAT {
            return Err(FileError::Format { found: read.format });
        }
        Ok(Level::from_rows(read.rows.iter().map(String::as_str))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blueprint::{Blueprint, Builder};

    #[test]
    fn a_level_comes_back_with_its_figures_beside_it() {
        let mut builder = Builder::new(Blueprint::default()).unwrap();
        let level = builder.random(3);
        let json = level.to_json(Some(&serde_json::json!({ "seed": 3 })));
        assert_eq!(json["found"]["seed"], 3);
        assert_eq!(json["metrics"]["plain"], level.difficulty().unwrap().plain);
        assert_eq!(Level::from_json(&json.to_string()).unwrap(), *level);
    }

    #[test]
    fn malformed_files_are_refused() {
        let error = |text: &str| Level::from_json(text).unwrap_err().to_string();
        assert!(error("[").starts_with("expected a level as a JSON object: EOF"));
        assert!(error(r#"{"rows": []}"#).contains("missing field `format`"));
        assert_eq!(
            error(r#"{"format": "atoll.lock-key/2", "rows": []}"#),
            "expected the format `atoll.lock-key/1`, found `atoll.lock-key/2`"
        );
        assert!(
            error(r##"{"format": "atoll.lock-key/1", "rows": ["#"]}"##)
                .starts_with("in `rows`: expected an odd")
        );
    }
}
