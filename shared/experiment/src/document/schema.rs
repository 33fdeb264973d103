//! Reading a JSON schema: what is said of one value, gathered from wherever it stands.
//!
//! A schema says things of a value in several objects: its own, the one behind `$ref`, those of `allOf`, the chosen
//! one of `oneOf`. Each of them is a *facet*. Taking them together, keys allowed by one are allowed by all, as
//! serde sees it (strict JSON Schema would not let a `$ref` to a closed table stand beside a tag).

use super::node::{Node, Value};
use super::number::Number;
use serde_json::{Map, Value as Json};
use std::cmp::Ordering;

pub(super) type Facet<'a> = &'a Map<String, Json>;

/// A whole schema, whose `$ref`s can be followed.
#[derive(Clone, Copy)]
pub(super) struct Schema<'a> {
    root: &'a Json,
}

impl<'a> Schema<'a> {
    pub(super) fn new(root: &'a Json) -> Self {
        Self { root }
    }

    pub(super) fn root_facets(self) -> Vec<Facet<'a>> {
        self.facets(self.root)
    }

    /// All that a schema says without a choice: itself, behind `$ref`, in `allOf`. `true` says nothing.
    pub(super) fn facets(self, schema: &'a Json) -> Vec<Facet<'a>> {
        let mut facets: Vec<Facet<'a>> = Vec::new();
        let mut pending = vec![schema];
        while let Some(schema) = pending.pop() {
            let Some(facet) = schema.as_object() else { continue };
            // A schema that refers to itself says nothing more the second time.
            if facets.iter().any(|known| std::ptr::eq(*known, facet)) {
                continue;
            }
            facets.push(facet);
            pending.extend(array(facet, "allOf").iter().rev());
            pending.extend(self.referred(facet));
        }
        facets
    }

    fn referred(self, facet: Facet<'a>) -> Option<&'a Json> {
        self.root.pointer(facet.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    /// The alternatives of a facet's `oneOf` and `anyOf`, with unions of unions taken apart and null left out:
    /// TOML cannot write it.
    pub(super) fn alternatives(self, facet: Facet<'a>) -> Vec<Vec<Facet<'a>>> {
        let mut alternatives = Vec::new();
        self.collect_alternatives(facet, &mut Vec::new(), &mut alternatives);
        alternatives
    }

    fn collect_alternatives(
        self,
        facet: Facet<'a>,
        open: &mut Vec<Facet<'a>>,
        alternatives: &mut Vec<Vec<Facet<'a>>>,
    ) {
        if open.iter().any(|outer| std::ptr::eq(*outer, facet)) {
            return;
        }
        open.push(facet);
        for schema in union_members(facet) {
            let facets = self.facets(schema);
            match facets.iter().find(|facet| is_union(facet)) {
                Some(inner) if facets.iter().all(|facet| is_bare_union(facet)) => {
                    self.collect_alternatives(inner, open, alternatives);
                }
                _ if Kinds::of(&facets).is_only_null() => {}
                _ => alternatives.push(facets),
            }
        }
        open.pop();
    }
}

fn array<'a>(facet: Facet<'a>, keyword: &str) -> &'a [Json] {
    facet.get(keyword).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

fn union_members(facet: Facet<'_>) -> impl Iterator<Item = &Json> {
    array(facet, "oneOf").iter().chain(array(facet, "anyOf"))
}

pub(super) fn is_union(facet: Facet<'_>) -> bool {
    union_members(facet).next().is_some()
}

/// Whether a facet says nothing of a value but a choice, or where to find one.
fn is_bare_union(facet: Facet<'_>) -> bool {
    !["type", "properties", "enum", "const", "required"].iter().any(|keyword| facet.contains_key(*keyword))
}

/// The kinds of value that a schema admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u8);

/// As JSON Schema names them; an integer is a number too.
pub(super) const KINDS: [(&str, Kinds); 7] = [
    ("null", Kinds(1)),
    ("boolean", Kinds(2)),
    ("integer", Kinds(4)),
    ("number", Kinds::NUMBER),
    ("string", Kinds::STRING),
    ("array", Kinds::ARRAY),
    ("object", Kinds::TABLE),
];

impl Kinds {
    const ANY: Self = Self(127);
    pub(super) const NUMBER: Self = Self(4 | 8);
    const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const TABLE: Self = Self(64);

    /// What all of the facets admit.
    pub(super) fn of(facets: &[Facet<'_>]) -> Self {
        Self(facets.iter().fold(Self::ANY.0, |kinds, facet| kinds & Self::of_facet(facet).0))
    }

    fn of_facet(facet: Facet<'_>) -> Self {
        match facet.get("type") {
            Some(Json::String(name)) => Self::named(name),
            Some(Json::Array(names)) => {
                Self(names.iter().filter_map(Json::as_str).fold(0, |kinds, name| kinds | Self::named(name).0))
            }
            _ => match constants(facet) {
                Some(values) => Self(values.iter().fold(0, |kinds, value| kinds | Self::of_json(value).0)),
                None => Self::ANY,
            },
        }
    }

    fn named(name: &str) -> Self {
        KINDS.iter().find(|(known, _)| *known == name).map_or(Self::ANY, |(_, kinds)| *kinds)
    }

    fn of_json(value: &Json) -> Self {
        Self::named(match value {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(number) if number.is_f64() => "number",
            Json::Number(_) => "integer",
            Json::String(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        })
    }

    fn of_node(node: &Node) -> Self {
        match &node.value {
            Value::Text(_) => Self::STRING,
            Value::Number(Number::Integer(_)) => Self(4),
            Value::Number(Number::Float(_)) => Self(8),
            Value::Boolean(_) => Self(2),
            Value::Array(_) => Self::ARRAY,
            Value::Table(_) => Self::TABLE,
        }
    }

    pub(super) fn admits(self, node: &Node) -> bool {
        self.0 & Self::of_node(node).0 != 0
    }

    pub(super) fn contains(self, kinds: Self) -> bool {
        self.0 & kinds.0 == kinds.0
    }

    pub(super) fn is_any(self) -> bool {
        self == Self::ANY
    }

    fn is_only_null(self) -> bool {
        self.0 == 1
    }
}

/// The values of `const` or `enum`, if the facet has either.
fn constants(facet: Facet<'_>) -> Option<&[Json]> {
    match facet.get("const") {
        Some(value) => Some(std::slice::from_ref(value)),
        None => facet.get("enum").and_then(Json::as_array).map(Vec::as_slice),
    }
}

/// The values that the first facet with `const` or `enum` leaves to choose from.
pub(super) fn choices<'a>(facets: &[Facet<'a>]) -> Option<&'a [Json]> {
    facets.iter().find_map(|facet| constants(facet))
}

/// All values of a keyword, facet by facet.
pub(super) fn each<'a>(facets: &[Facet<'a>], keyword: &'static str) -> impl Iterator<Item = &'a Json> {
    facets.iter().filter_map(move |facet| facet.get(keyword))
}

/// The largest value of a keyword that counts something, such as `minItems`.
pub(super) fn at_least(facets: &[Facet<'_>], keyword: &'static str) -> Option<u64> {
    each(facets, keyword).filter_map(Json::as_u64).max()
}

/// The smallest value of a keyword that counts something, such as `maxItems`.
pub(super) fn at_most(facets: &[Facet<'_>], keyword: &'static str) -> Option<u64> {
    each(facets, keyword).filter_map(Json::as_u64).min()
}

/// The keys that have a schema of their own, in the order in which the schema lists them.
pub(super) fn property_names<'a>(facets: &[Facet<'a>]) -> Vec<&'a str> {
    let tables = each(facets, "properties").filter_map(Json::as_object);
    let mut names: Vec<&str> = Vec::new();
    for name in tables.flat_map(Map::keys) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// What is said of one key, by every facet that knows it.
pub(super) fn property_schemas<'a>(facets: &[Facet<'a>], key: &str) -> Vec<&'a Json> {
    each(facets, "properties").filter_map(|table| table.get(key)).collect()
}

pub(super) fn required_keys<'a>(facets: &[Facet<'a>]) -> Vec<&'a str> {
    let lists = each(facets, "required").filter_map(Json::as_array);
    let mut keys: Vec<&str> = Vec::new();
    for key in lists.flatten().filter_map(Json::as_str) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Whether keys that no facet knows are refused.
pub(super) fn is_closed(facets: &[Facet<'_>]) -> bool {
    let mut says = each(facets, "additionalProperties").chain(each(facets, "unevaluatedProperties"));
    says.any(|schema| schema == &Json::Bool(false))
}

/// The range of a number, from `minimum` and its like and from the width that `format` names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) low: Option<Bound>,
    pub(super) high: Option<Bound>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) limit: Number,
    pub(super) exclusive: bool,
}

impl Bounds {
    pub(super) fn of(facets: &[Facet<'_>]) -> Self {
        let widths = || each(facets, "format").filter_map(Json::as_str).filter_map(width);
        let lows = limits(facets, "minimum", false).chain(limits(facets, "exclusiveMinimum", true));
        let highs = limits(facets, "maximum", false).chain(limits(facets, "exclusiveMaximum", true));
        Self {
            low: lows.chain(widths().map(|(low, _)| Bound::inclusive(low))).max_by(Bound::order),
            high: highs.chain(widths().map(|(_, high)| Bound::inclusive(high))).min_by(Bound::order),
        }
    }

    pub(super) fn too_low(&self, number: Number) -> bool {
        self.low.is_some_and(|bound| bound.is_passed(number, Ordering::Less))
    }

    pub(super) fn too_high(&self, number: Number) -> bool {
        self.high.is_some_and(|bound| bound.is_passed(number, Ordering::Greater))
    }
}

impl Bound {
    fn inclusive(limit: i128) -> Self {
        Self { limit: Number::Integer(limit), exclusive: false }
    }

    fn order(&self, other: &Self) -> Ordering {
        self.limit.compare(other.limit)
    }

    fn is_passed(&self, number: Number, beyond: Ordering) -> bool {
        let order = number.compare(self.limit);
        order == beyond || (self.exclusive && order == Ordering::Equal)
    }
}

fn limits(facets: &[Facet<'_>], keyword: &'static str, exclusive: bool) -> impl Iterator<Item = Bound> {
    let numbers = each(facets, keyword).filter_map(Json::as_number).filter_map(Number::from_json);
    numbers.map(move |limit| Bound { limit, exclusive })
}

/// The range of an integer format; wider ones than 64 bits have no narrower range than a document's integers.
fn width(format: &str) -> Option<(i128, i128)> {
    let signed = format.strip_prefix("int").map(|bits| (true, bits));
    let (signed, bits) = signed.or_else(|| format.strip_prefix("uint").map(|bits| (false, bits)))?;
    let bits: u32 = if bits.is_empty() { 64 } else { bits.parse().ok()? };
    match (signed, bits) {
        (_, 0 | 65..) => (!signed).then_some((0, i128::from(u64::MAX))),
        (true, _) => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        (false, _) => Some((0, (1 << bits) - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bounds(schema: &Json) -> (Option<String>, Option<String>) {
        let bounds = Bounds::of(&Schema::new(schema).root_facets());
        let text = |bound: Option<Bound>| bound.map(|bound| format!("{}{}", bound.limit, bound.exclusive));
        (text(bounds.low), text(bounds.high))
    }

    #[test]
    fn formats_imply_ranges() {
        let range = |low: &str, high: &str| (Some(format!("{low}false")), Some(format!("{high}false")));
        assert_eq!(bounds(&json!({"format": "uint32", "minimum": 0})), range("0", "4294967295"));
        assert_eq!(bounds(&json!({"format": "int"})), range("-9223372036854775808", "9223372036854775807"));
        assert_eq!(bounds(&json!({"format": "uint32", "minimum": 1, "maximum": 9})), range("1", "9"));
        assert_eq!(bounds(&json!({"format": "uint128"})), range("0", "18446744073709551615"));
        assert_eq!(bounds(&json!({"format": "int128"})), (None, None));
        assert_eq!(bounds(&json!({"format": "double", "exclusiveMinimum": 0})), (Some("0true".into()), None));
    }

    #[test]
    fn schemas_that_refer_to_themselves_end() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}], "allOf": [{"$ref": "#"}]}}});
        let read = Schema::new(&schema);
        let facets = read.root_facets();
        assert_eq!(facets.len(), 3);
        assert!(facets.iter().all(|facet| read.alternatives(facet).is_empty()));
    }
}
