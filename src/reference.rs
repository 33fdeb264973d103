//! The reference of experiment files: every key, written from the schema that checks them.

use serde_json::Value as Json;
use std::fmt::Write;

/// The reference as Markdown.
pub(crate) fn markdown(schema: &Json) -> String {
    let mut reference = Reference { schema, text: String::new(), told: vec![] };
    reference.tables("the top of the file", "", schema);
    reference.text
}

struct Reference<'a> {
    schema: &'a Json,
    text: String,
    /// Types that are listed already: they are the same at every key.
    told: Vec<String>,
}

impl<'a> Reference<'a> {
    /// A section for a table, and for each table inside it.
    fn tables(&mut self, title: &str, path: &str, schema: &'a Json) {
        for (kind, variant) in self.variants(schema) {
            let Some(properties) =
                variant["properties"].as_object().filter(|p| p.len() > usize::from(kind.is_some()))
            else {
                continue;
            };
            let named = kind.map_or(title.to_owned(), |kind| format!("{title}, kind `{kind}`"));
            self.line(&format!("\n### {named}\n"));
            self.line(&format!("{}\n", text(variant, "description")));
            self.line("| key | value | default | meaning |\n|---|---|---|---|");
            for (key, property) in properties.iter().filter(|(key, _)| kind.is_none() || *key != "kind") {
                let value = self.value(property);
                let default = default(variant, key, property);
                self.line(&format!("| `{key}` | {value} | {default} | {} |", self.meaning(property)));
            }
            for (key, property) in properties {
                self.inside(&format!("{path}{key}"), property);
            }
        }
    }

    /// The tables that a key holds.
    fn inside(&mut self, path: &str, property: &'a Json) {
        let name = property["$ref"].as_str().or_else(|| property["items"]["$ref"].as_str());
        let optional =
            property["anyOf"].as_array().and_then(|any| any.iter().find_map(|one| one["$ref"].as_str()));
        let Some(name) = name.or(optional).map(str::to_owned) else { return };
        if self.told.contains(&name) {
            return;
        }
        let target = self.target(&name);
        self.told.push(name);
        self.tables(&format!("`{path}`"), &format!("{path}."), target);
        // A union of a plain value and a table.
        for one in target["anyOf"].as_array().into_iter().flatten() {
            self.inside(path, one);
        }
    }

    /// The kinds of a table, or the table itself.
    fn variants(&self, schema: &'a Json) -> Vec<(Option<&'a str>, &'a Json)> {
        match schema["oneOf"].as_array() {
            None => vec![(None, schema)],
            Some(kinds) => {
                let kind = |one: &'a Json| one["properties"]["kind"]["const"].as_str();
                kinds.iter().map(|one| (kind(one), self.resolved(one))).collect()
            }
        }
    }

    fn target(&self, reference: &str) -> &'a Json {
        &self.schema["$defs"][reference.trim_start_matches("#/$defs/")]
    }

    fn resolved(&self, schema: &'a Json) -> &'a Json {
        schema["$ref"].as_str().map_or(schema, |name| self.target(name))
    }

    /// What a key may hold.
    fn value(&self, property: &'a Json) -> String {
        let schema = self.resolved(property);
        if let Some(word) = schema["const"].as_str() {
            return format!("`\"{word}\"`");
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        }
        for union in ["oneOf", "anyOf"] {
            if let Some(several) = schema[union].as_array() {
                let tables = several.iter().all(|one| one["properties"]["kind"].is_object());
                let mut values: Vec<String> =
                    several.iter().filter(|one| one["type"] != "null").map(|one| self.value(one)).collect();
                values.dedup();
                return if tables { kinds(several) } else { values.join(", or ") };
            }
        }
        let kind = match &schema["type"] {
            Json::Array(kinds) => kinds.first().and_then(Json::as_str).unwrap_or_default(),
            kind => kind.as_str().unwrap_or_default(),
        };
        match kind {
            "integer" | "number" => range(schema, kind),
            "string" => "text".to_owned(),
            "boolean" => "`true` or `false`".to_owned(),
            "array" => format!("a list of: {}", self.value(&schema["items"])),
            "object" => "a table".to_owned(),
            _ => "any value".to_owned(),
        }
    }

    /// What a key means; where words can be chosen, what each of them means.
    fn meaning(&self, property: &'a Json) -> String {
        let words = self.resolved(property)["oneOf"].as_array().into_iter().flatten();
        let words: Vec<String> = words
            .filter_map(|one| Some(format!("`{}`: {}", one["const"].as_str()?, text(one, "description"))))
            .collect();
        [vec![text(property, "description")], words].concat().join(" ")
    }

    fn line(&mut self, text: &str) {
        writeln!(self.text, "{text}").expect("writing into a string does not fail");
    }
}

fn kinds(variants: &[Json]) -> String {
    let kinds = variants.iter().filter_map(|one| one["properties"]["kind"]["const"].as_str());
    let kinds: Vec<String> = kinds.map(|kind| format!("`{kind}`")).collect();
    format!("a table of kind {}", kinds.join(", "))
}

fn text(schema: &Json, key: &str) -> String {
    schema[key].as_str().unwrap_or_default().replace('\n', " ")
}

fn range(schema: &Json, kind: &str) -> String {
    let number = if kind == "integer" { "whole number" } else { "number" };
    match (&schema["minimum"], &schema["maximum"]) {
        (Json::Null, _) => number.to_owned(),
        (low, Json::Null) => format!("{number} from {low}"),
        (low, high) => format!("{number} from {low} to {high}"),
    }
}

fn default(table: &Json, key: &str, property: &Json) -> String {
    let lists = [&table["required"], &table["then"]["required"]];
    let required = lists.iter().filter_map(|list| list.as_array()).any(|keys| keys.iter().any(|k| k == key));
    match &property["default"] {
        Json::Null if required => "required".to_owned(),
        Json::Null => "none".to_owned(),
        Json::Object(_) => "see below".to_owned(),
        value => format!("`{value}`"),
    }
}
