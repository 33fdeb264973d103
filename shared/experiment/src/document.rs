//! Checked TOML: a text becomes a [`Document`], a JSON schema says what it may hold, and all mistakes are reported
//! at once, with its place in the text and the name that was probably meant.
//!
//! The schema is the one that `schemars` derives from a serde type; of JSON Schema 2020-12 this knows what comes
//! out there, and passes over the rest (`pattern`, `uniqueItems`). Where the two differ this follows serde: an
//! integer is not written `5.0`, a tag stands beside the keys of its variant even if those are closed.
//!
//! ```
//! use experiment::document;
//!
//! let schema = serde_json::json!({
//!     "type": "object",
//!     "properties": {"population": {"type": "integer", "minimum": 1}},
//!     "required": ["population"],
//!     "additionalProperties": false,
//! });
//! let document = document::parse("run.toml", "popluation = 40").expect("it is TOML");
//! let report = document.conclude(document.check(&schema)).expect_err("the key is misspelt");
//! assert_eq!(
//!     report.to_string(),
//!     "run.toml:1:1: popluation: unknown key `popluation`\n\
//!     \x20   popluation = 40\n\
//!     \x20   ^^^^^^^^^^\n\
//!     \x20   help: did you mean `population`?",
//! );
//! ```

mod check;
mod diagnostics;
mod nesting;
mod node;
mod number;
mod path;
mod read;
mod schema;
mod source;
mod suggest;
mod syntax;
mod table;
mod union;
mod words;

pub use diagnostics::{Diagnostic, Diagnostics, MAX_DIAGNOSTICS};
pub(crate) use path::written;
pub use path::{KeyPath, KeyPathError, Segment};
pub use read::{MAX_BYTES, MAX_STORED, ReadError, explain, near_experiment, read_limited, read_limited_from};
pub use suggest::nearest;

use node::Node;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use source::Source;
use toml::de::DeTable;

/// A TOML document whose values know their places in the text.
///
/// Everything in it fits into JSON: numbers are finite and of at most 64 bits, dates and times are strings.
#[derive(Clone, Debug)]
pub struct Document {
    file: String,
    source: Source,
    root: Node,
}

/// Reads a TOML text; `file` is its name in messages.
///
/// # Errors
/// When it is longer than [`MAX_STORED`], nested too deeply, not TOML, or holds a number that JSON cannot.
/// Several mistakes are reported together where the text can be read on after the first.
pub fn parse(file: &str, text: &str) -> Result<Document, Diagnostics> {
    if text.len() as u64 > MAX_STORED {
        let message = format!("expected at most {MAX_STORED} bytes, found {}", text.len());
        return Err(Diagnostics::new(
            file,
            vec![Diagnostic::new(&Source::new(""), &(0..0), "", &message, None)],
        ));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = Source::new(text);
    let root = read(text, &source).map_err(|problems| Diagnostics::new(file, problems))?;
    Ok(Document { file: file.to_owned(), source, root })
}

fn read(text: &str, source: &Source) -> Result<Node, Vec<Diagnostic>> {
    if let Some(span) = nesting::first_too_deep(text) {
        let message =
            format!("expected tables and arrays nested at most {} deep, found more", nesting::MAX_DEPTH);
        return Err(vec![Diagnostic::new(source, &span, "", &message, None)]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(syntax::problems(source, errors));
    }
    let (root, unfit) = Node::from_document(table);
    if unfit.is_empty() {
        return Ok(root);
    }
    let problem =
        |value: node::Unfit| Diagnostic::new(source, &value.span, &value.path, &value.message, None);
    Err(unfit.into_iter().take(MAX_DIAGNOSTICS + 1).map(problem).collect())
}

impl Document {
    /// The name that was given to [`parse`].
    pub fn file(&self) -> &str {
        &self.file
    }

    /// All that a schema finds wrong, in the order of the text.
    pub fn check(&self, schema: &Json) -> Vec<Diagnostic> {
        let mut findings = check::check(&self.root, schema);
        findings.sort_by_key(|finding| (finding.span.start, finding.span.end));
        let problem = |finding: check::Finding| {
            Diagnostic::new(
                &self.source,
                &finding.span,
                &finding.path,
                &finding.message,
                finding.help.as_deref(),
            )
        };
        findings.into_iter().map(problem).collect()
    }

    /// A problem of a rule that no schema can state, at a key path or the nearest place that there is.
    pub fn problem(&self, key: &str, message: impl AsRef<str>, help: Option<&str>) -> Diagnostic {
        let path: KeyPath = key.parse().unwrap_or_default();
        let span = self.root.span_of(path.segments());
        Diagnostic::new(&self.source, &span, key, message.as_ref(), help)
    }

    /// Success where there are no problems, otherwise the report of them all.
    ///
    /// # Errors
    /// When there is any problem.
    pub fn conclude(&self, problems: Vec<Diagnostic>) -> Result<(), Diagnostics> {
        if problems.is_empty() { Ok(()) } else { Err(Diagnostics::new(&self.file, problems)) }
    }

    /// The typed value of a document that its type's schema finds nothing wrong with.
    ///
    /// # Errors
    /// With the problems that the schema finds. If it finds none and serde still refuses, which is a type's own
    /// check, the report says so without a place.
    pub fn decode<T: DeserializeOwned>(&self, schema: &Json) -> Result<T, Diagnostics> {
        self.conclude(self.check(schema))?;
        serde_json::from_value(self.to_json())
            .map_err(|error| Diagnostics::new(&self.file, vec![self.problem("", error.to_string(), None)]))
    }

    /// The same values as JSON.
    pub fn to_json(&self) -> Json {
        self.root.to_json()
    }

    /// The same values as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(&self.to_json()).expect("what was read as TOML can be written as TOML")
    }

    /// The value at a key path as JSON.
    pub fn get(&self, key: &KeyPath) -> Option<Json> {
        self.root.at(key.segments()).map(Node::to_json)
    }

    /// Puts a value at a key path, making the tables on the way to it. Later problems of it point at the value it
    /// replaced, or the nearest place that there is.
    ///
    /// # Errors
    /// When the path leads through something that is no table or past the end of an array, or the value holds a null.
    pub fn set(&mut self, key: &KeyPath, value: Json) -> Result<(), Diagnostics> {
        let span = self
            .root
            .at(key.segments())
            .map_or_else(|| self.root.span_of(key.segments()), |old| old.span.clone());
        match Node::from_json(value, &span) {
            Some(node) => self.put(key, node),
            None => self.conclude(vec![self.problem(&key.to_string(), "expected a value, found null", None)]),
        }
    }

    /// Puts a copy of another document's value at `source` at a key path, making the tables on the way to it. Later
    /// problems of it point at the original: a sweep can so check each of its cells and name the axis that is wrong.
    /// Both documents must have been made from the same text.
    ///
    /// # Errors
    /// When there is nothing at `source`, or the path leads through something that is no table or past the end of
    /// an array.
    pub fn graft_from(&mut self, key: &KeyPath, other: &Self, source: &KeyPath) -> Result<(), Diagnostics> {
        match other.root.at(source.segments()).cloned() {
            Some(node) => self.put(key, node),
            None => self.conclude(vec![self.problem(
                &source.to_string(),
                "expected a value, found nothing",
                None,
            )]),
        }
    }

    /// Puts a copy of one of the document's own values at a key path.
    ///
    /// # Errors
    /// As [`graft_from`](Self::graft_from).
    pub fn graft(&mut self, key: &KeyPath, source: &KeyPath) -> Result<(), Diagnostics> {
        let other = self.clone();
        self.graft_from(key, &other, source)
    }

    /// The same document without one of its outermost keys.
    pub fn without(&self, key: &str) -> Self {
        Self { root: self.root.without(key), ..self.clone() }
    }

    fn put(&mut self, key: &KeyPath, node: Node) -> Result<(), Diagnostics> {
        let span = node.span.clone();
        let mut changed = self.root.clone();
        let put = if key.is_root() {
            Err("expected a key, found an empty path".to_owned())
        } else {
            changed.put(key.segments(), node)
        };
        if let Err(message) = put {
            return self.conclude(vec![Diagnostic::new(
                &self.source,
                &span,
                &key.to_string(),
                &message,
                None,
            )]);
        }
        self.root = changed;
        Ok(())
    }
}
