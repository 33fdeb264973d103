//! Values that are multiples of another key's, such as `"40 * problem.turns"`: what a sweep changes can so take other
//! keys along.

use crate::document::{Diagnostics, Document, KeyPath, written};
use crate::overlay::path;
use serde_json::{Number, Value as Json};

/// A multiple of the value of another key.
#[derive(Clone, Debug, PartialEq)]
struct Multiple {
    factor: Number,
    of: KeyPath,
}

/// Works out every multiple in a document.
pub(crate) fn work_out(document: &mut Document) -> Result<(), Diagnostics> {
    let mut found = vec![];
    collect(&document.to_json(), String::new(), &mut found);
    for (key, multiple) in found {
        let whole = document.get(&multiple.of).and_then(|value| multiple.worth(&value));
        let Some(value) = whole else {
            let message = format!("expected the key of a number behind the `*`, found `{}`", multiple.of);
            return document.conclude(vec![document.problem(&key, message, None)]);
        };
        document.set(&path(&key), value)?;
    }
    Ok(())
}

fn collect(value: &Json, key: String, found: &mut Vec<(String, Multiple)>) {
    match value {
        Json::Object(table) => {
            let dot = if key.is_empty() { "" } else { "." };
            table
                .iter()
                .for_each(|(name, value)| collect(value, format!("{key}{dot}{}", written(name)), found));
        }
        Json::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| collect(item, format!("{key}[{at}]"), found));
        }
        Json::String(text) => found.extend(Multiple::parse(text).map(|multiple| (key, multiple))),
        _ => {}
    }
}

impl Multiple {
    fn parse(text: &str) -> Option<Self> {
        let (factor, of) = text.split_once('*')?;
        let of: KeyPath = of.trim().parse().ok().filter(|of: &KeyPath| !of.is_root())?;
        Some(Self { factor: factor.trim().parse().ok()?, of })
    }

    /// Whole numbers have whole multiples; one that no number can hold is none.
    fn worth(&self, value: &Json) -> Option<Json> {
        match (self.factor.as_i64(), value.as_i64()) {
            (Some(factor), Some(value)) => factor.checked_mul(value).map(Json::from),
            _ => Number::from_f64(self.factor.as_f64()? * value.as_f64()?).map(Json::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worked_out(text: &str) -> Result<Json, String> {
        let mut document = crate::document::parse("file", text).unwrap();
        work_out(&mut document).map(|()| document.to_json()).map_err(|report| report.to_string())
    }

    #[test]
    fn multiples_follow_their_key() {
        let text = "a.b = 50\nc = [\"20 * a.b\"]\nd = '0.5*a.b'\ne = \"a * b\"\nf = \"3 *\"";
        let expected =
            serde_json::json!({ "a": { "b": 50 }, "c": [1000], "d": 25.0, "e": "a * b", "f": "3 *" });
        assert_eq!(worked_out(text).unwrap(), expected);
    }

    #[test]
    fn what_is_no_number_has_no_multiple() {
        for text in ["a = \"2 * b\"", "a = \"2 * b\"\nb = \"x\"", "a = \"9 * b\"\nb = 9223372036854775807"] {
            let refused = worked_out(text).unwrap_err();
            assert!(
                refused.contains("a: expected the key of a number behind the `*`, found `b`"),
                "{refused}"
            );
        }
    }
}
