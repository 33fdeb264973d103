//! Keys of a part laid over those of the whole: studies and the variants of sweeps are made so.

use crate::document::{Diagnostics, Document, KeyPath, written};
use serde_json::Value as Json;

/// Puts a value of `from` over the one at `key`: a table over a table key by key, unless it names a kind and so stands
/// for itself.
pub(crate) fn lay_over(
    document: &mut Document,
    from: &Document,
    key: &str,
    source: &str,
    value: &Json,
) -> Result<(), Diagnostics> {
    let is_over_table = || document.get(&path(key)).is_some_and(|old| old.is_object());
    match value.as_object() {
        Some(table) if !table.contains_key("kind") && !table.is_empty() && is_over_table() => {
            for (name, value) in table {
                let name = written(name);
                lay_over(document, from, &format!("{key}.{name}"), &format!("{source}.{name}"), value)?;
            }
            Ok(())
        }
        _ => document.graft_from(&path(key), from, &path(source)),
    }
}

/// A path of keys that are [`written`] as they must be.
pub(crate) fn path(text: &str) -> KeyPath {
    text.parse().expect("written keys make a path")
}
