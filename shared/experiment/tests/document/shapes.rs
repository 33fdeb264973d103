//! Single shapes of types: what the check says of a document is what serde does with it.

#![allow(dead_code, reason = "the types are read by serde and schemars alone")]

use experiment::document;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// The messages of the check, which must be none exactly where serde accepts the document.
fn messages<T: JsonSchema + DeserializeOwned>(text: &str) -> Vec<String> {
    let document = document::parse("shape.toml", text).unwrap();
    let messages = check::<T>(text);
    let decoded = serde_json::from_value::<T>(document.to_json());
    assert_eq!(messages.is_empty(), decoded.is_ok(), "{messages:?} {:?}", decoded.err());
    messages
}

/// The same for rules that the schema alone knows.
fn check<T: JsonSchema>(text: &str) -> Vec<String> {
    let document = document::parse("shape.toml", text).unwrap();
    let schema = schemars::schema_for!(T).to_value();
    document
        .check(&schema)
        .into_iter()
        .map(|problem| format!("{}: {}", problem.key, problem.message))
        .collect()
}

#[derive(Deserialize, JsonSchema)]
struct Inner {
    mu: u32,
    lambda: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClosedFlat {
    island: u32,
    #[serde(flatten)]
    inner: Inner,
}

#[test]
fn a_closed_struct_with_a_flattened_one() {
    assert!(messages::<ClosedFlat>("island = 1\nmu = 2").is_empty());
    assert_eq!(messages::<ClosedFlat>("island = 1\nmu = 2\nnu = 3"), ["nu: unknown key `nu`"]);
    assert_eq!(
        messages::<ClosedFlat>("island = 1\nlambda = false"),
        [
            "mu: missing key `mu`: expected an integer of at least 0",
            "lambda: expected an integer of at least 0, found the boolean `false`",
        ]
    );
}

#[derive(Deserialize, JsonSchema)]
struct FlatMap {
    island: u32,
    #[serde(flatten)]
    rest: BTreeMap<String, u8>,
}

#[test]
fn a_flattened_map_takes_all_other_keys() {
    assert!(messages::<FlatMap>("island = 1000\nx = 2").is_empty());
    let found = messages::<FlatMap>("island = 1\nx = 256");
    assert_eq!(found, ["x: expected an integer from 0 to 255, found the integer `256`"]);
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Tree {
    Leaf(u8),
    Named { name: String, below: Box<Tree> },
    Fork { left: Box<Tree>, right: Box<Tree> },
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Forest {
    tree: Tree,
    next: Option<Box<Forest>>,
}

#[test]
fn recursive_and_untagged_types() {
    assert!(messages::<Forest>("tree = { left = 1, right = { name = 'a', below = 2 } }").is_empty());
    assert!(messages::<Forest>("tree = 1\nnext.tree = 2\nnext.next.tree = 3").is_empty());
    assert_eq!(messages::<Forest>("tree = 1\nnext.tere = 2"), ["next.tere: unknown key `tere`"]);
    assert_eq!(
        messages::<Forest>("tree = { left = 1, right = { name = 'a', below = 300 } }"),
        ["tree.right.below: expected an integer from 0 to 255, found the integer `300`"]
    );
    assert_eq!(
        messages::<Forest>("tree = 'oak'"),
        ["tree: expected an integer from 0 to 255 or a table, found the string `\"oak\"`"]
    );
}

/// Both kinds of branch fit at every level, so trying them out one inside of the other would take 2^60 steps.
#[test]
fn variants_are_found_at_any_depth() {
    let deep = |leaf: &str| {
        let branch = |tree, _| format!("{{ left = {tree}, right = 1, name = 'a' }}");
        format!("tree = {}", (0..60).fold(leaf.to_owned(), branch))
    };
    assert!(messages::<Forest>(&deep("1")).is_empty());
    let found = messages::<Forest>(&deep("'x'"));
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with(": expected an integer from 0 to 255 or a table, found the string `\"x\"`"));
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields)]
enum Mixed {
    Open(Inner),
    Closed(ClosedInner),
    Boxed(Box<ClosedInner>),
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ClosedInner {
    mu: u32,
}

#[test]
fn tagged_structs_are_closed_by_themselves() {
    assert!(messages::<Mixed>("kind = 'Open'\nmu = 1\nnu = 2").is_empty());
    assert!(messages::<Mixed>("kind = 'Closed'\nmu = 1").is_empty());
    assert!(messages::<Mixed>("kind = 'Boxed'").is_empty());
    assert_eq!(messages::<Mixed>("kind = 'Closed'\nnu = 2"), ["nu: unknown key `nu`"]);
    assert_eq!(
        messages::<Mixed>("mu = 2"),
        ["kind: missing key `kind`: expected `Open`, `Closed` or `Boxed`"]
    );
}

#[derive(Deserialize, JsonSchema)]
struct Collections {
    #[serde(default)]
    set: BTreeSet<u8>,
    #[serde(default)]
    signed: BTreeMap<i8, bool>,
    #[serde(default)]
    triple: [f32; 3],
    anything: Option<serde_json::Value>,
}

#[test]
fn sets_maps_and_arrays() {
    let good = "set = [1, 1]\nsigned = { -1 = true }\ntriple = [1, 2.5, 3]\nanything = [[], {}]";
    assert!(messages::<Collections>(good).is_empty());
    assert_eq!(messages::<Collections>("signed = { x = true }"), ["signed.x: unknown key `x`"]);
    assert_eq!(
        messages::<Collections>("triple = [1, 2]"),
        ["triple: expected an array of 3 items, found an array of 2"]
    );
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {
    unit: Option<()>,
}

#[test]
fn what_only_null_would_satisfy_is_left_out() {
    assert!(messages::<Nothing>("").is_empty());
    assert_eq!(messages::<Nothing>("unit = 1"), ["unit: expected no value, found the integer `1`"]);
}

#[derive(JsonSchema)]
struct Ruled {
    #[schemars(length(min = 1, max = 3))]
    names: Option<Vec<String>>,
    #[schemars(range(min = 1, max = 100))]
    share: Option<u32>,
    #[schemars(inner(range(max = 1.0)), extend("minItems" = 1))]
    rates: Option<Vec<f64>>,
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    rate: Option<f64>,
    #[schemars(length(max = 3))]
    word: Option<String>,
}

#[test]
fn ranges_and_lengths() {
    assert!(
        check::<Ruled>("names = ['a']\nshare = 100\nrates = [1, 0.5]\nrate = 0.5\nword = 'äöü'").is_empty()
    );
    assert_eq!(
        check::<Ruled>("names = []\nshare = 101\nrates = [1.5]\nrate = 0\nword = 'four'"),
        [
            "names: expected an array of 1 to 3 items, found an array of 0",
            "share: expected an integer from 1 to 100, found the integer `101`",
            "rates[0]: expected a number of at most 1.0, found the float `1.5`",
            "rate: expected a number above 0 and below 1, found the integer `0`",
            "word: expected a string of at most 3 characters, found the string `\"four\"`",
        ]
    );
}
