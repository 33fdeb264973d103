//! Schemas in words: what a message says was expected.

use super::diagnostics::shortened;
use super::number::Number;
use super::path::written;
use super::schema::{self, Bound, Bounds, Facet, KINDS, Kinds};
use super::suggest::{joined, listed};
use super::union;
use serde_json::Value as Json;

/// Limits beyond this come from the width of a number's type: they are named only when they are broken.
const PLAIN_LIMIT: f64 = 1e9;

/// What the facets ask for: "an integer from 1 to 100", "one of `sync` or `async`".
pub(super) fn expected(facets: &[Facet<'_>]) -> String {
    let plain = match schema::choices(facets) {
        Some(choices) => one_of(choices),
        None => joined(&kinds(facets), "or"),
    };
    match schema::each(facets, "examples").find_map(|examples| examples.get(0)) {
        Some(example) => format!("{plain} such as `{example}`"),
        None => plain,
    }
}

/// What any of several alternatives asks for; strings to choose from are named together, and so are tables.
pub(super) fn expected_any(alternatives: &[Vec<Facet<'_>>]) -> String {
    let names = choice_names(alternatives);
    let mut parts: Vec<String> = Vec::new();
    for facets in alternatives {
        let part = match Kinds::of(facets) {
            _ if is_choice(facets) => listed(&names, "or"),
            Kinds::TABLE => tables(alternatives),
            _ => expected(facets),
        };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    if parts.iter().any(|part| part == "a number") {
        parts.retain(|part| part != "an integer");
    }
    joined(&parts, "or")
}

fn tables(alternatives: &[Vec<Facet<'_>>]) -> String {
    let of_tables = |facets: &&Vec<Facet<'_>>| Kinds::of(facets) == Kinds::TABLE;
    let tables: Vec<_> = alternatives.iter().filter(of_tables).cloned().collect();
    match (union::common_tag(&tables), union::keyed_variants(&tables)) {
        (Some(tag), _) => format!("a table with the key `{}`", written(tag)),
        (None, Some(keys)) => format!("a table with the key {}", listed(&keys, "or")),
        (None, None) => "a table".to_owned(),
    }
}

/// Whether all that is left to the author is to choose one of several strings.
pub(super) fn is_choice(facets: &[Facet<'_>]) -> bool {
    schema::choices(facets).is_some_and(|choices| choices.iter().all(Json::is_string))
}

/// The strings of all alternatives that are a choice of strings.
pub(super) fn choice_names<'a>(alternatives: &[Vec<Facet<'a>>]) -> Vec<&'a str> {
    let choices = alternatives.iter().filter(|facets| is_choice(facets));
    choices.filter_map(|facets| schema::choices(facets)).flatten().filter_map(Json::as_str).collect()
}

fn one_of(choices: &[Json]) -> String {
    let names: Vec<_> = choices.iter().filter(|value| !value.is_null()).map(shown).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    listed(&names, "or")
}

fn shown(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn kinds(facets: &[Facet<'_>]) -> Vec<String> {
    let kinds = Kinds::of(facets);
    if kinds.is_any() {
        return vec!["a value".to_owned()];
    }
    let number = kinds.contains(Kinds::NUMBER);
    let named = KINDS.iter().filter(|(name, kind)| kinds.contains(*kind) && !(number && *name == "integer"));
    named.filter_map(|(name, _)| kind(name, facets)).collect()
}

fn kind(name: &str, facets: &[Facet<'_>]) -> Option<String> {
    Some(match name {
        "boolean" => "`true` or `false`".to_owned(),
        "integer" => format!("an integer{}", range(&plain(Bounds::of(facets)))),
        "number" => format!("a number{}", range(&plain(Bounds::of(facets)))),
        "string" => format!("a string{}", count(facets, "minLength", "maxLength", "character")),
        "array" => format!("an array{}", count(facets, "minItems", "maxItems", "item")),
        "object" => "a table".to_owned(),
        _ => return None,
    })
}

/// The range that a number is outside of: limits of its type's width are left out unless they are the broken ones.
pub(super) fn broken_range(bounds: Bounds, too_low: bool, too_high: bool) -> String {
    let shown = plain(bounds);
    range(&Bounds {
        low: if too_low { bounds.low } else { shown.low },
        high: if too_high { bounds.high } else { shown.high },
    })
}

fn plain(bounds: Bounds) -> Bounds {
    let is_plain = |bound: &Bound| match bound.limit {
        Number::Integer(limit) => limit.unsigned_abs() as f64 <= PLAIN_LIMIT,
        Number::Float(_) => true,
    };
    Bounds { low: bounds.low.filter(is_plain), high: bounds.high.filter(is_plain) }
}

fn range(bounds: &Bounds) -> String {
    let low = |bound: Bound| if bound.exclusive { "above" } else { "of at least" };
    let high = |bound: Bound| if bound.exclusive { "below" } else { "of at most" };
    match (bounds.low, bounds.high) {
        (None, None) => String::new(),
        (Some(from), None) => format!(" {} {}", low(from), from.limit),
        (None, Some(to)) => format!(" {} {}", high(to), to.limit),
        (Some(from), Some(to)) if from.exclusive || to.exclusive => {
            format!(" {} {} and {} {}", low(from), from.limit, high(to), to.limit)
        }
        (Some(from), Some(to)) => format!(" from {} to {}", from.limit, to.limit),
    }
}

/// How many characters, items or keys are asked for: " of 1 to 8 characters", or nothing.
pub(super) fn count(facets: &[Facet<'_>], low: &'static str, high: &'static str, noun: &str) -> String {
    let plural = |number: u64| if number == 1 { "" } else { "s" };
    match (schema::at_least(facets, low).filter(|low| *low > 0), schema::at_most(facets, high)) {
        (None, None) => String::new(),
        (Some(low), Some(high)) if low == high => format!(" of {low} {noun}{}", plural(low)),
        (Some(low), Some(high)) => format!(" of {low} to {high} {noun}s"),
        (Some(low), None) => format!(" of at least {low} {noun}{}", plural(low)),
        (None, Some(high)) => format!(" of at most {high} {noun}{}", plural(high)),
    }
}

/// The first line of what the schema says a key is for.
pub(super) fn description(facets: &[Facet<'_>]) -> Option<String> {
    let text = schema::each(facets, "description").find_map(Json::as_str)?;
    let line = text.lines().next().unwrap_or_default();
    (!line.is_empty()).then(|| shortened(line, 120))
}
