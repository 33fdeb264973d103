//! Unions: which variant of an enum a value was meant to be.

use super::check::{Checker, Finding};
use super::node::{Entry, Node, Value};
use super::path::written;
use super::schema::{self, Facet, Kinds};
use super::suggest::{listed, nearest, quoted};
use super::table::look_alike;
use super::words;
use serde_json::Value as Json;

/// Variants are tried out at most this deep inside of each other, so that the work stays small.
const MAX_TRIALS: usize = 4;

type Alternatives<'a> = Vec<Vec<Facet<'a>>>;

/// What is left to check once the variants are known.
pub(super) enum Choice<'a> {
    /// All that is said of the value.
    Made(Vec<Facet<'a>>),
    /// A variant's tag is missing or wrong, which has been reported; what is said besides.
    Open(Vec<Facet<'a>>),
    /// No variant fits, which has been reported.
    Reported,
}

/// The variant of one union.
enum Variant<'a> {
    Is(Vec<Facet<'a>>),
    Unknown,
    Reported,
}

impl<'a> Checker<'a> {
    /// Adds the chosen variant of each union among the facets, also of unions inside of variants.
    pub(super) fn choose(&mut self, node: &Node, mut facets: Vec<Facet<'a>>) -> Choice<'a> {
        let mut open = false;
        let mut next = 0;
        while next < facets.len() {
            let facet = facets[next];
            next += 1;
            if !schema::is_union(facet) {
                continue;
            }
            match self.variant(node, self.schema.alternatives(facet)) {
                Variant::Is(variant) => add_new(&mut facets, variant),
                Variant::Unknown => open = true,
                Variant::Reported => return Choice::Reported,
            }
        }
        if open { Choice::Open(facets) } else { Choice::Made(facets) }
    }

    fn variant(&mut self, node: &Node, alternatives: Alternatives<'a>) -> Variant<'a> {
        let (fitting, others): (Alternatives<'a>, Alternatives<'a>) =
            alternatives.into_iter().partition(|facets| Kinds::of(facets).admits(node));
        match &node.value {
            _ if fitting.is_empty() => self.no_variant(node, &others),
            Value::Text(text) if fitting.iter().all(|facets| words::is_choice(facets)) => {
                self.named_variant(node, text, fitting, &others)
            }
            Value::Table(entries) => self.table_variant(node, entries, fitting),
            _ => self.tried_variant(node, fitting),
        }
    }

    fn no_variant(&mut self, node: &Node, alternatives: &Alternatives<'a>) -> Variant<'a> {
        self.mismatch(node, &words::expected_any(alternatives), None);
        Variant::Reported
    }

    /// A variant that is written as its name alone.
    fn named_variant(
        &mut self,
        node: &Node,
        text: &str,
        fitting: Alternatives<'a>,
        others: &Alternatives<'a>,
    ) -> Variant<'a> {
        let names = words::choice_names(&fitting);
        if let Some(variant) = fitting.iter().find(|facets| has_choice(facets, text)) {
            return Variant::Is(variant.clone());
        }
        let help = match keyed_variants(others).filter(|keys| keys.contains(&text)) {
            Some(_) => Some(format!("{} has parameters: write `{{ {} = … }}`", quoted(text), written(text))),
            None => nearest(text, &names).map(|name| format!("did you mean `{name}`?")),
        };
        let all: Alternatives<'a> = fitting.into_iter().chain(others.iter().cloned()).collect();
        self.mismatch(node, &words::expected_any(&all), help);
        Variant::Reported
    }

    fn table_variant(&mut self, node: &Node, entries: &[Entry], fitting: Alternatives<'a>) -> Variant<'a> {
        if let Some(tag) = common_tag(&fitting) {
            return self.tagged_variant(node, tag, &fitting);
        }
        match keyed_variants(&fitting) {
            Some(keys) if keys.len() > 1 => self.keyed_variant(node, entries, &keys, &fitting),
            _ => self.tried_variant(node, fitting),
        }
    }

    /// A variant that a key such as `kind` names.
    fn tagged_variant(&mut self, node: &Node, tag: &str, variants: &Alternatives<'a>) -> Variant<'a> {
        let names: Vec<_> = variants.iter().filter_map(|facets| tag_value(facets, tag)).collect();
        let expected = listed(&names, "or");
        let Some(entry) = node.entry(tag) else {
            self.missing_key(node, tag, &expected, look_alike(tag, node.entries().iter()));
            return Variant::Unknown;
        };
        let text = if let Value::Text(text) = &entry.node.value { text } else { "" };
        if let Some(index) = names.iter().position(|name| *name == text) {
            return Variant::Is(variants[index].clone());
        }
        self.path.push_key(tag);
        let help = nearest(text, &names).map(|name| format!("did you mean `{name}`?"));
        self.mismatch(&entry.node, &expected, help);
        self.path.pop();
        Variant::Unknown
    }

    /// A variant that is the only key of a table, its parameters behind it.
    fn keyed_variant(
        &mut self,
        node: &Node,
        entries: &[Entry],
        keys: &[&str],
        variants: &Alternatives<'a>,
    ) -> Variant<'a> {
        if let [entry] = entries
            && let Some(index) = keys.iter().position(|key| *key == entry.key)
        {
            return Variant::Is(variants[index].clone());
        }
        let expected = format!("expected one key, {}", listed(keys, "or"));
        if let [entry] = entries {
            let help = nearest(&entry.key, keys).map(|name| format!("did you mean `{name}`?"));
            self.report(entry.key_span.clone(), format!("{expected}, found {}", quoted(&entry.key)), help);
        } else {
            self.report(node.span.clone(), format!("{expected}, found {} keys", entries.len()), None);
        }
        Variant::Reported
    }

    /// The first variant without problems, otherwise the one with the fewest.
    fn tried_variant(&mut self, node: &Node, mut fitting: Alternatives<'a>) -> Variant<'a> {
        if fitting.len() == 1 || self.trials >= MAX_TRIALS {
            return Variant::Is(fitting.swap_remove(0));
        }
        let problems = |facets: &Vec<Facet<'a>>| self.tried(node, facets.clone()).len();
        let best = fitting.iter().enumerate().min_by_key(|(_, facets)| problems(facets));
        let best = best.map_or(0, |(index, _)| index);
        Variant::Is(fitting.swap_remove(best))
    }

    fn tried(&self, node: &Node, facets: Vec<Facet<'a>>) -> Vec<Finding> {
        let mut trial = Checker {
            schema: self.schema,
            path: self.path.clone(),
            findings: Vec::new(),
            misplaced: Vec::new(),
            trials: self.trials + 1,
        };
        trial.value(node, facets);
        trial.findings
    }
}

fn add_new<'a>(facets: &mut Vec<Facet<'a>>, more: Vec<Facet<'a>>) {
    for facet in more {
        if !facets.iter().any(|known| std::ptr::eq(*known, facet)) {
            facets.push(facet);
        }
    }
}

fn has_choice(facets: &[Facet<'_>], text: &str) -> bool {
    schema::choices(facets).is_some_and(|choices| choices.iter().any(|choice| choice == text))
}

/// The key that every variant requires with a value of its own.
pub(super) fn common_tag<'a>(variants: &[Vec<Facet<'a>>]) -> Option<&'a str> {
    let first = variants.first()?;
    let mut candidates = schema::required_keys(first).into_iter();
    candidates.find(|key| variants.iter().all(|facets| tag_value(facets, key).is_some()))
}

fn tag_value<'a>(facets: &[Facet<'a>], tag: &str) -> Option<&'a str> {
    let required = schema::required_keys(facets).contains(&tag);
    let constant = |schema: &'a Json| schema.get("const").and_then(Json::as_str);
    schema::property_schemas(facets, tag).into_iter().find_map(constant).filter(|_| required)
}

/// The keys of variants that are each a closed table with one required key.
pub(super) fn keyed_variants<'a>(variants: &[Vec<Facet<'a>>]) -> Option<Vec<&'a str>> {
    let tables = variants.iter().filter(|facets| Kinds::of(facets) == Kinds::TABLE);
    let keys: Option<Vec<_>> = tables.map(|facets| only_key(facets)).collect();
    keys.filter(|keys| !keys.is_empty())
}

fn only_key<'a>(facets: &[Facet<'a>]) -> Option<&'a str> {
    match schema::property_names(facets).as_slice() {
        [name] if schema::is_closed(facets) && schema::required_keys(facets) == [*name] => Some(name),
        _ => None,
    }
}
