//! Checking the values of a document against a schema, with every problem at once.

use super::node::{Entry, Node, Value};
use super::path::KeyPath;
use super::report::MAX_PROBLEMS;
use super::schema::{self, Bounds, Facet, Kinds, Schema};
use super::source::Span;
use super::suggest::{advice, nearest, quoted};
use super::union::Choice;
use super::words;
use serde_json::Value as Json;

/// A problem that has not yet been looked up in the text.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) span: Span,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// One walk over a document.
pub(super) struct Checker<'a> {
    pub(super) schema: Schema<'a>,
    pub(super) path: KeyPath,
    pub(super) findings: Vec<Finding>,
    /// How many undecided unions this walk is inside of.
    pub(super) trials: usize,
}

/// All that is wrong with a document.
pub(super) fn check(root: &Node, schema: &Json) -> Vec<Finding> {
    let schema = Schema::new(schema);
    let mut checker = Checker { schema, path: KeyPath::default(), findings: Vec::new(), trials: 0 };
    checker.value(root, schema.root_facets());
    checker.findings
}

impl<'a> Checker<'a> {
    pub(super) fn value(&mut self, node: &Node, facets: Vec<Facet<'a>>) {
        if self.is_full() {
            return;
        }
        match self.choose(node, facets) {
            Choice::Made(facets) => self.chosen(node, &facets, false),
            Choice::Open(facets) => self.chosen(node, &facets, true),
            Choice::Reported => {}
        }
    }

    /// More would not be shown, and a document may hold a problem in every few bytes.
    fn is_full(&self) -> bool {
        self.findings.len() > MAX_PROBLEMS
    }

    /// Checks against facets without unions. In an `open` table unknown keys may belong to a variant that is not known.
    fn chosen(&mut self, node: &Node, facets: &[Facet<'a>], open: bool) {
        if !Kinds::of(facets).admits(node) {
            return self.mismatch(node, &words::expected(facets), None);
        }
        if schema::choices(facets).is_some_and(|choices| !is_among(node, choices)) {
            return self.not_among(node, facets);
        }
        match &node.value {
            Value::Number(number) => {
                let bounds = Bounds::of(facets);
                let (low, high) = (bounds.too_low(*number), bounds.too_high(*number));
                if low || high {
                    let kind = if Kinds::of(facets).contains(schema::KINDS[3].1) {
                        "a number"
                    } else {
                        "an integer"
                    };
                    let expected = format!("{kind}{}", words::broken_range(bounds, low, high));
                    self.mismatch(node, &expected, None);
                }
            }
            Value::Text(text) => self.count(node, text.chars().count(), facets, Counted::CHARACTERS),
            Value::Array(items) => self.array(node, items, facets),
            Value::Table(entries) => self.table(node, entries, facets, open),
            Value::Boolean(_) => {}
        }
    }

    fn not_among(&mut self, node: &Node, facets: &[Facet<'a>]) {
        let names: Vec<_> =
            schema::choices(facets).unwrap_or_default().iter().filter_map(Json::as_str).collect();
        let meant = match &node.value {
            Value::Text(text) => nearest(text, &names),
            _ => None,
        };
        self.mismatch(node, &words::expected(facets), meant.map(|name| format!("did you mean `{name}`?")));
    }

    fn array(&mut self, node: &Node, items: &[Node], facets: &[Facet<'a>]) {
        self.count(node, items.len(), facets, Counted::ITEMS);
        let first =
            schema::each(facets, "prefixItems").find_map(Json::as_array).map_or(&[][..], Vec::as_slice);
        let rest = schema::each(facets, "items").next();
        for (index, item) in items.iter().enumerate() {
            let Some(schema) = first.get(index).or(rest) else { break };
            self.path.push_index(index);
            self.value(item, self.schema.facets(schema));
            self.path.pop();
        }
    }

    fn count(&mut self, node: &Node, found: usize, facets: &[Facet<'a>], counted: Counted) {
        let found = found as u64;
        let too_few = schema::at_least(facets, counted.low).is_some_and(|low| found < low);
        let too_many = schema::at_most(facets, counted.high).is_some_and(|high| found > high);
        if too_few || too_many {
            let words = words::count(facets, counted.low, counted.high, counted.noun);
            self.mismatch(node, &format!("{}{words}", counted.container), None);
        }
    }

    fn table(&mut self, node: &Node, entries: &[Entry], facets: &[Facet<'a>], open: bool) {
        self.count(node, entries.len(), facets, Counted::KEYS);
        let names = schema::property_names(facets);
        let required = schema::required_keys(facets);
        let missing: Vec<_> = required.into_iter().filter(|key| node.entry(key).is_none()).collect();
        let misspelt = if open { Vec::new() } else { self.entries(entries, facets, &names) };
        if open {
            self.known_entries(entries, facets);
        }
        for key in missing.iter().filter(|key| !misspelt.contains(*key)) {
            self.missing(node, key, facets);
        }
    }

    fn known_entries(&mut self, entries: &[Entry], facets: &[Facet<'a>]) {
        for entry in entries {
            let schemas = schema::property_schemas(facets, &entry.key);
            if !schemas.is_empty() {
                self.entry(entry, &schemas);
            }
        }
    }

    /// Checks each entry; gives back the names that misspelt keys were meant to be.
    fn entries(&mut self, entries: &[Entry], facets: &[Facet<'a>], names: &[&'a str]) -> Vec<&'a str> {
        let absent: Vec<_> =
            names.iter().copied().filter(|name| !entries.iter().any(|entry| entry.key == *name)).collect();
        let mut misspelt = Vec::new();
        for entry in entries {
            let schemas = schemas_of(&entry.key, facets);
            if !schemas.is_empty() {
                self.entry(entry, &schemas);
            } else if schema::is_closed(facets) && !self.is_full() {
                misspelt.extend(nearest(&entry.key, &absent));
                self.unknown(entry, names, &absent);
            }
        }
        misspelt
    }

    fn entry(&mut self, entry: &Entry, schemas: &[&'a Json]) {
        self.path.push_key(&entry.key);
        let facets = schemas.iter().flat_map(|schema| self.schema.facets(schema)).collect();
        self.value(&entry.node, facets);
        self.path.pop();
    }

    fn unknown(&mut self, entry: &Entry, names: &[&str], absent: &[&str]) {
        let message = format!("unknown key {}", quoted(&entry.key));
        let meant = nearest(&entry.key, absent).map(|name| format!("did you mean `{name}`?"));
        let help = meant
            .or_else(|| self.belongs_above(&entry.key))
            .or_else(|| advice(&entry.key, names, "allowed keys"));
        self.path.push_key(&entry.key);
        self.report(entry.key_span.clone(), message, help);
        self.path.pop();
    }

    /// A key written below a table's header belongs to that table, which surprises those who meant the whole file.
    fn belongs_above(&self, key: &str) -> Option<String> {
        let known = schema::property_names(&self.schema.root_facets()).contains(&key);
        (known && !self.path.is_root())
            .then(|| format!("{} belongs to the top of the file, above the first `[table]`", quoted(key)))
    }

    pub(super) fn missing(&mut self, node: &Node, key: &str, facets: &[Facet<'a>]) {
        let schemas = schema::property_schemas(facets, key);
        let facets: Vec<_> = schemas.into_iter().flat_map(|schema| self.schema.facets(schema)).collect();
        let help = words::description(&facets);
        let expected = self.expected(&facets);
        self.missing_key(node, key, &expected, help);
    }

    pub(super) fn missing_key(&mut self, node: &Node, key: &str, expected: &str, help: Option<String>) {
        self.path.push_key(key);
        self.report(node.span.clone(), format!("missing key {}: expected {expected}", quoted(key)), help);
        self.path.pop();
    }

    /// What facets ask for, where unions among them are still open.
    fn expected(&self, facets: &[Facet<'a>]) -> String {
        let union = facets.iter().find(|facet| schema::is_union(facet));
        union.map_or_else(
            || words::expected(facets),
            |union| words::expected_any(&self.schema.alternatives(union)),
        )
    }

    pub(super) fn mismatch(&mut self, node: &Node, expected: &str, help: Option<String>) {
        self.report(node.span.clone(), format!("expected {expected}, found {}", node.found()), help);
    }

    pub(super) fn report(&mut self, span: Span, message: String, help: Option<String>) {
        self.findings.push(Finding { path: self.path.to_string(), span, message, help });
    }
}

/// What is said of a key: by name, by pattern, or of all others.
fn schemas_of<'a>(key: &str, facets: &[Facet<'a>]) -> Vec<&'a Json> {
    let named = schema::property_schemas(facets, key);
    if !named.is_empty() {
        return named;
    }
    let patterns = schema::each(facets, "patternProperties").filter_map(Json::as_object).flatten();
    let matching: Vec<_> =
        patterns.filter(|(pattern, _)| key_matches(pattern, key)).map(|(_, schema)| schema).collect();
    if !matching.is_empty() {
        return matching;
    }
    let others =
        schema::each(facets, "additionalProperties").chain(schema::each(facets, "unevaluatedProperties"));
    others.filter(|schema| schema.is_object()).collect()
}

/// What a table, an array or a string has a number of.
#[derive(Clone, Copy)]
struct Counted {
    container: &'static str,
    low: &'static str,
    high: &'static str,
    noun: &'static str,
}

impl Counted {
    const CHARACTERS: Self =
        Self { container: "a string", low: "minLength", high: "maxLength", noun: "character" };
    const ITEMS: Self = Self { container: "an array", low: "minItems", high: "maxItems", noun: "item" };
    const KEYS: Self =
        Self { container: "a table", low: "minProperties", high: "maxProperties", noun: "key" };
}

fn is_among(node: &Node, choices: &[Json]) -> bool {
    choices.contains(&node.to_json())
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
