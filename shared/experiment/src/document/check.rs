//! Checking the values of a document against a schema, with every problem at once.

use super::diagnostics::MAX_DIAGNOSTICS;
use super::node::{Node, Value};
use super::number::Number;
use super::path::KeyPath;
use super::schema::{self, Bounds, Facet, Kinds, Schema};
use super::source::Span;
use super::suggest::nearest;
use super::union::{Choice, Trials};
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
    /// Keys of the whole document that were found in one of its tables.
    pub(super) misplaced: Vec<String>,
    pub(super) trials: Trials,
}

/// All that is wrong with a document.
pub(super) fn check(root: &Node, schema: &Json) -> Vec<Finding> {
    let schema = Schema::new(schema);
    let mut checker = Checker::new(schema, Trials::default());
    checker.value(root, schema.root_facets());
    checker.findings
}

impl<'a> Checker<'a> {
    pub(super) fn new(schema: Schema<'a>, trials: Trials) -> Self {
        Self { schema, path: KeyPath::default(), findings: Vec::new(), misplaced: Vec::new(), trials }
    }

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
    pub(super) fn is_full(&self) -> bool {
        self.findings.len() > MAX_DIAGNOSTICS
    }

    /// Checks against facets without unions. In an `open` table unknown keys may belong to a variant that is not known.
    fn chosen(&mut self, node: &Node, facets: &[Facet<'a>], open: bool) {
        if !Kinds::of(facets).admits(node) {
            return self.mismatch(node, &words::expected(facets), self.kind_advice(node, facets));
        }
        if schema::choices(facets).is_some_and(|choices| !is_among(node, choices)) {
            return self.not_among(node, facets);
        }
        match &node.value {
            Value::Number(number) => self.number(node, *number, facets),
            Value::Text(text) => self.count(node, text.chars().count(), facets, Counted::CHARACTERS),
            Value::Array(items) => self.array(node, items, facets),
            Value::Table(entries) => self.table(node, entries, facets, open),
            Value::Boolean(_) => {}
        }
    }

    /// One bracket instead of two makes a table of what should be an array's item.
    fn kind_advice(&self, node: &Node, facets: &[Facet<'a>]) -> Option<String> {
        let item = Kinds::of(facets).contains(Kinds::ARRAY) && matches!(node.value, Value::Table(_));
        item.then(|| format!("each item of the array begins with `[[{}]]`", self.path))
    }

    fn number(&mut self, node: &Node, number: Number, facets: &[Facet<'a>]) {
        let bounds = Bounds::of(facets);
        let (low, high) = (bounds.too_low(number), bounds.too_high(number));
        if low || high {
            let kind = if Kinds::of(facets).contains(Kinds::NUMBER) { "a number" } else { "an integer" };
            let expected = format!("{kind}{}", words::broken_range(bounds, low, high));
            self.mismatch(node, &expected, None);
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

    pub(super) fn count(&mut self, node: &Node, found: usize, facets: &[Facet<'a>], counted: Counted) {
        let found = found as u64;
        let too_few = schema::at_least(facets, counted.low).is_some_and(|low| found < low);
        let too_many = schema::at_most(facets, counted.high).is_some_and(|high| found > high);
        if too_few || too_many {
            let words = words::count(facets, counted.low, counted.high, counted.noun);
            self.mismatch(node, &format!("{}{words}", counted.container), None);
        }
    }

    /// What facets ask for, where unions among them are still open.
    pub(super) fn expected(&self, facets: &[Facet<'a>]) -> String {
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

/// What a table, an array or a string has a number of.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    container: &'static str,
    low: &'static str,
    high: &'static str,
    noun: &'static str,
}

impl Counted {
    const CHARACTERS: Self =
        Self { container: "a string", low: "minLength", high: "maxLength", noun: "character" };
    const ITEMS: Self = Self { container: "an array", low: "minItems", high: "maxItems", noun: "item" };
    pub(super) const KEYS: Self =
        Self { container: "a table", low: "minProperties", high: "maxProperties", noun: "key" };
}

fn is_among(node: &Node, choices: &[Json]) -> bool {
    choices.contains(&node.to_json())
}
