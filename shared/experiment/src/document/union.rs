//! Unions: which variant of an enum a value was meant to be.

use super::check::Checker;
use super::node::{Entry, Node, Value};
use super::path::written;
use super::schema::{self, Facet, Kinds};
use super::suggest::{listed, nearest, quoted};
use super::table::look_alike;
use super::words;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// How many problems a value has as some variant, by the addresses of both. Without this memory the work would
/// double with each union inside of a union.
pub(super) type Trials = BTreeMap<(usize, usize), usize>;

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
        let help = match (&node.value, common_tag(alternatives)) {
            (Value::Text(text), Some(tag)) if tag_values(alternatives, tag).contains(&text.as_str()) => {
                Some(format!("write `{{ {} = \"{text}\" }}`", written(tag)))
            }
            _ => None,
        };
        self.mismatch(node, &words::expected_any(alternatives), help);
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
        if let Some(variant) = fitting.iter().find(|facets| has_choice(facets, text)) {
            return Variant::Is(variant.clone());
        }
        let keys = keyed_variants(others).unwrap_or_default();
        let names = [words::choice_names(&fitting), keys.clone()].concat();
        let help = if keys.contains(&text) {
            Some(format!("{} has parameters: write `{{ {} = … }}`", quoted(text), written(text)))
        } else {
            nearest(text, &names).map(|name| format!("did you mean `{name}`?"))
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
        let names = tag_values(variants, tag);
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

    /// The first variant without problems; otherwise the one that knows most of the keys, then with the fewest.
    fn tried_variant(&mut self, node: &Node, mut fitting: Alternatives<'a>) -> Variant<'a> {
        if fitting.len() == 1 {
            return Variant::Is(fitting.swap_remove(0));
        }
        let likeness = |facets: &Vec<Facet<'a>>| {
            let problems = self.tried(node, facets);
            (problems > 0, if problems > 0 { strange_keys(node, facets) } else { 0 }, problems)
        };
        let likenesses: Vec<_> = fitting.iter().map(likeness).collect();
        let best = (0..fitting.len()).min_by_key(|&index| likenesses[index]).unwrap_or(0);
        Variant::Is(fitting.swap_remove(best))
    }

    /// How many problems a variant would have.
    fn tried(&mut self, node: &Node, variant: &[Facet<'a>]) -> usize {
        let key = (
            std::ptr::from_ref(node).addr(),
            variant.first().map_or(0, |facet| std::ptr::from_ref(*facet).addr()),
        );
        if let Some(known) = self.trials.get(&key) {
            return *known;
        }
        let mut trial = Checker::new(self.schema, std::mem::take(&mut self.trials));
        trial.value(node, variant.to_vec());
        self.trials = trial.trials;
        self.trials.insert(key, trial.findings.len());
        trial.findings.len()
    }
}

/// How many keys of a table a variant does not know.
fn strange_keys(node: &Node, facets: &[Facet<'_>]) -> usize {
    let is_strange = |entry: &&Entry| schema::property_schemas(facets, &entry.key).is_empty();
    node.entries().iter().filter(is_strange).count()
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

fn tag_values<'a>(variants: &[Vec<Facet<'a>>], tag: &str) -> Vec<&'a str> {
    variants.iter().filter_map(|facets| tag_value(facets, tag)).collect()
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
