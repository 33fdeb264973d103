//! Tables: which keys they may and must have.

use super::check::{Checker, Counted};
use super::node::{Entry, Node};
use super::schema::{self, Facet};
use super::suggest::{advice, nearest, quoted};
use super::words;
use serde_json::Value as Json;

/// What is said of the keys of one table.
struct Keys<'a, 'f> {
    facets: &'f [Facet<'a>],
    /// The keys that have a name in the schema.
    names: Vec<&'a str>,
    /// Those of them that the table has not.
    absent: Vec<&'a str>,
}

impl<'a> Checker<'a> {
    /// In an `open` table unknown keys may belong to a variant that is not known.
    pub(super) fn table(&mut self, node: &Node, entries: &[Entry], facets: &[Facet<'a>], open: bool) {
        self.count(node, entries.len(), facets, Counted::KEYS);
        let names = schema::property_names(facets);
        let absent = names.iter().copied().filter(|name| node.entry(name).is_none()).collect();
        let keys = Keys { facets, names, absent };
        let closed = schema::is_closed(facets) && !open;
        for entry in entries {
            self.entry(entry, &keys, closed);
        }
        if self.is_full() {
            return;
        }
        for key in schema::required_keys(facets) {
            if node.entry(key).is_none() && !self.was_meant(key, entries, &keys, closed) {
                self.missing(node, key, &keys);
            }
        }
    }

    fn entry(&mut self, entry: &Entry, keys: &Keys<'a, '_>, closed: bool) {
        let schemas = keys.schemas_of(&entry.key);
        if schemas.is_empty() && !closed || self.is_full() {
            return;
        }
        self.path.push_key(&entry.key);
        if schemas.is_empty() {
            self.unknown(entry, keys);
        } else {
            let facets = schemas.iter().flat_map(|schema| self.schema.facets(schema)).collect();
            self.value(&entry.node, facets);
        }
        self.path.pop();
    }

    fn unknown(&mut self, entry: &Entry, keys: &Keys<'a, '_>) {
        let meant = nearest(&entry.key, &keys.absent).map(|name| format!("did you mean `{name}`?"));
        let help = meant.or_else(|| self.misplaced(&entry.key)).or_else(|| keys.advice(&entry.key));
        self.report(entry.key_span.clone(), format!("unknown key {}", quoted(&entry.key)), help);
    }

    /// A key written below a table's header belongs to that table, which surprises those who meant the whole file.
    fn misplaced(&mut self, key: &str) -> Option<String> {
        let at_root = self.path.segments().len() == 1;
        if at_root || !schema::property_names(&self.schema.root_facets()).contains(&key) {
            return None;
        }
        self.misplaced.push(key.to_owned());
        Some(format!("{} belongs to the top of the file, above the first `[table]`", quoted(key)))
    }

    /// Whether a missing key has been reported already, as one that is misspelt or in the wrong place.
    fn was_meant(&self, key: &str, entries: &[Entry], keys: &Keys<'a, '_>, closed: bool) -> bool {
        let misspelt =
            |entry: &Entry| keys.is_unknown(entry) && nearest(&entry.key, &keys.absent) == Some(key);
        let misplaced = self.path.is_root() && self.misplaced.iter().any(|known| known == key);
        misplaced || (closed && entries.iter().any(misspelt))
    }

    fn missing(&mut self, node: &Node, key: &str, keys: &Keys<'a, '_>) {
        let schemas = schema::property_schemas(keys.facets, key);
        let facets: Vec<_> = schemas.into_iter().flat_map(|schema| self.schema.facets(schema)).collect();
        let strangers = node.entries().iter().filter(|entry| keys.is_unknown(entry));
        let help = look_alike(key, strangers).or_else(|| words::description(&facets));
        self.missing_key(node, key, &self.expected(&facets), help);
    }

    /// Reports the key that selects a variant, or one that a table requires.
    pub(super) fn missing_key(&mut self, node: &Node, key: &str, expected: &str, help: Option<String>) {
        self.path.push_key(key);
        self.report(node.span.clone(), format!("missing key {}: expected {expected}", quoted(key)), help);
        self.path.pop();
    }
}

/// Advice where one of the entries looks like a key that is missing.
pub(super) fn look_alike<'e>(key: &str, mut entries: impl Iterator<Item = &'e Entry>) -> Option<String> {
    let entry = entries.find(|entry| nearest(&entry.key, &[key]).is_some())?;
    Some(format!("did you mean it by {}?", quoted(&entry.key)))
}

impl<'a> Keys<'a, '_> {
    fn is_unknown(&self, entry: &Entry) -> bool {
        self.schemas_of(&entry.key).is_empty()
    }

    /// What is said of a key: by name, by pattern, or of all others.
    fn schemas_of(&self, key: &str) -> Vec<&'a Json> {
        let named = schema::property_schemas(self.facets, key);
        if !named.is_empty() {
            return named;
        }
        let matching: Vec<_> = self
            .patterns()
            .filter(|(pattern, _)| key_matches(pattern, key))
            .map(|(_, schema)| schema)
            .collect();
        if !matching.is_empty() {
            return matching;
        }
        let others = ["additionalProperties", "unevaluatedProperties"];
        let others = others.into_iter().flat_map(|keyword| schema::each(self.facets, keyword));
        others.filter(|schema| schema.is_object()).collect()
    }

    fn patterns(&self) -> impl Iterator<Item = (&'a String, &'a Json)> {
        schema::each(self.facets, "patternProperties").filter_map(Json::as_object).flatten()
    }

    fn advice(&self, key: &str) -> Option<String> {
        let integers = self.patterns().any(|(pattern, _)| !key_matches(pattern, ""));
        let advice = advice(key, &self.names, "allowed keys");
        advice.or_else(|| integers.then(|| "the keys of this table are integers".to_owned()))
    }
}

/// The patterns by which maps with integer keys are described; any other is taken to match.
fn key_matches(pattern: &str, key: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match pattern {
        r"^\d+$" => digits(key),
        r"^-?\d+$" => digits(key.strip_prefix('-').unwrap_or(key)),
        _ => true,
    }
}
