//! What holds for any document: serde and the check agree, and nothing panics.

use crate::types::{self, Config};
use experiment::document::{self, Document};
use proptest::prelude::*;
use serde_json::{Value, json};

fn accepted_by_serde(document: &Document) -> bool {
    serde_json::from_value::<Config>(document.to_json()).is_ok()
}

/// Paths to every value in a JSON document, as pointers.
fn pointers(value: &Value, prefix: &str, found: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    let children: Vec<(String, &Value)> = match value {
        Value::Object(entries) => entries.iter().map(|(key, value)| (escaped(key), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => Vec::new(),
    };
    for (step, child) in children {
        let pointer = format!("{prefix}/{step}");
        pointers(child, &pointer, found);
        found.push(pointer);
    }
}

#[derive(Clone, Debug)]
enum Change {
    Replace(Value),
    Remove,
    Rename,
    Add,
}

/// Replacements leave out arrays, which serde also takes for structs, and small integers, which it takes for tags.
fn change() -> impl Strategy<Value = Change> {
    let values = prop_oneof![
        Just(json!(true)),
        Just(json!(1.5)),
        Just(json!(-1)),
        Just(json!(70_000)),
        Just(json!(5_000_000_000_u64)),
        Just(json!("genetic")),
        Just(json!("one-point")),
        Just(json!("")),
        Just(json!({})),
        Just(json!({"kind": "random-search"})),
        Just(json!({"shades": 3})),
    ];
    prop_oneof![
        values.prop_map(Change::Replace),
        Just(Change::Remove),
        Just(Change::Rename),
        Just(Change::Add)
    ]
}

fn apply(root: &mut Value, pointer: &str, change: Change) {
    let (parent, _) = pointer.rsplit_once('/').unwrap();
    let key = pointer[parent.len() + 1..].replace("~1", "/").replace("~0", "~");
    match change {
        Change::Replace(value) => *root.pointer_mut(pointer).unwrap() = value,
        Change::Add => {
            if let Some(Value::Object(entries)) = root.pointer_mut(pointer) {
                entries.insert("extra".into(), json!(1));
            }
        }
        Change::Remove | Change::Rename => match root.pointer_mut(parent).unwrap() {
            Value::Object(entries) => {
                let value = entries.remove(&key).unwrap();
                if matches!(change, Change::Rename) {
                    entries.insert(format!("{key}s"), value);
                }
            }
            Value::Array(items) => drop(items.remove(key.parse().unwrap())),
            _ => unreachable!("only tables and arrays hold values"),
        },
    }
}

fn parsed(json: &Value) -> Document {
    document::parse("any.toml", &toml::to_string(json).unwrap()).unwrap()
}

/// Texts that look like TOML often enough to get far.
fn toml_like() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just("[[".to_owned()),
        Just("]]\n".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just(" = ".to_owned()),
        Just(",".to_owned()),
        Just("\n".to_owned()),
        Just(".".to_owned()),
        Just("\"".to_owned()),
        Just("'''".to_owned()),
        Just("algorithm".to_owned()),
        Just("kind".to_owned()),
        Just("seed".to_owned()),
        Just("a".to_owned()),
        Just("nan".to_owned()),
        Just("1e999".to_owned()),
        Just("0x7f".to_owned()),
        Just("99999999999999999999".to_owned()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        Just("\u{feff}".to_owned()),
        Just("\r\n".to_owned()),
        "[ -~]{0,6}",
    ];
    prop::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat())
}

/// Runs everything that a text can reach, and looks at what comes out.
fn survive(text: &str) -> Result<(), TestCaseError> {
    let report = match document::parse("any.toml", text) {
        Ok(document) => match document.decode::<Config>(&types::schema()) {
            Ok(_) => return Ok(()),
            Err(report) => report,
        },
        Err(report) => report,
    };
    prop_assert!(!report.problems.is_empty());
    let lines = text.matches('\n').count() + 1;
    for problem in &report.problems {
        prop_assert!((1..=lines).contains(&problem.line), "{}", problem);
        prop_assert!(problem.column >= 1 && !problem.message.is_empty());
    }
    prop_assert!(
        !report.to_string().chars().any(|c| c.is_control() && c != '\n'),
        "{:?}",
        report.to_string()
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_a_type_writes_is_accepted_and_read_back(config in types::config()) {
        let document = document::parse("any.toml", &toml::to_string(&config).unwrap()).unwrap();
        prop_assert_eq!(document.check(&types::schema()), vec![]);
        prop_assert_eq!(document.decode::<Config>(&types::schema()).unwrap(), config);
    }

    #[test]
    fn check_and_serde_agree_on_changed_documents(
        config in types::config(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), change()), 1..4),
    ) {
        let mut json = serde_json::to_value(&config).unwrap();
        for (place, change) in changes {
            let mut all = Vec::new();
            pointers(&json, "", &mut all);
            if !all.is_empty() {
                apply(&mut json, &all[place.index(all.len())], change);
            }
        }
        let document = parsed(&json);
        let problems = document.check(&types::schema());
        prop_assert_eq!(problems.is_empty(), accepted_by_serde(&document), "{:#} {:#?}", json, problems);
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(text) = document::read_limited_from("any.toml", bytes.as_slice()) {
            survive(&text)?;
        }
    }

    #[test]
    fn random_texts_do_no_harm(text in toml_like()) {
        survive(&text)?;
    }

    #[test]
    fn altered_files_do_no_harm(
        config in types::config(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), "[ -~\n]{0,3}"), 1..4),
    ) {
        let mut text: Vec<char> = toml::to_string(&config).unwrap().chars().collect();
        for (from, length, new) in edits {
            let from = from.index(text.len() + 1);
            let to = from + length.index(8).min(text.len() - from);
            text.splice(from..to, new.chars());
        }
        survive(&text.into_iter().collect::<String>())?;
    }
}
