//! The values of a document, each with its place in the text.

use super::diagnostics::shortened;
use super::number::Number;
use super::path::{KeyPath, Segment, written};
use super::source::Span;
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

/// The longest value that a message shows whole, in characters.
const MAX_SHOWN: usize = 60;

/// A value and the text that it came from. The place of a table is its header.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) span: Span,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A string, or a date or time, which JSON has no other form for.
    Text(String),
    Number(Number),
    Boolean(bool),
    Array(Vec<Node>),
    /// In the order of the text.
    Table(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) node: Node,
}

/// A value that TOML can write and JSON cannot: its place and what is wrong with it.
pub(super) struct Unfit {
    pub(super) path: String,
    pub(super) span: Span,
    pub(super) message: String,
}

impl Node {
    /// Takes over a parsed document; what does not fit is listed and stands as zero.
    pub(super) fn from_document(table: Spanned<DeTable<'_>>) -> (Self, Vec<Unfit>) {
        let mut reader = Reader { path: KeyPath::default(), unfit: Vec::new() };
        let root = reader.table(table.into_inner());
        (Self { value: root, span: 0..0 }, reader.unfit)
    }

    /// Takes over a JSON value that stands at one place as a whole; `None` for a null, which TOML has not.
    pub(super) fn from_json(json: Json, span: &Span) -> Option<Self> {
        let value = match json {
            Json::Null => return None,
            Json::Bool(value) => Value::Boolean(value),
            Json::Number(number) => Value::Number(Number::from_json(&number)?),
            Json::String(text) => Value::Text(text),
            Json::Array(items) => Value::Array(
                items.into_iter().map(|item| Self::from_json(item, span)).collect::<Option<_>>()?,
            ),
            Json::Object(entries) => Value::Table(
                entries
                    .into_iter()
                    .map(|(key, json)| Some(Entry::new(key, span.clone(), Self::from_json(json, span)?)))
                    .collect::<Option<_>>()?,
            ),
        };
        Some(Self { value, span: span.clone() })
    }

    pub(super) fn to_json(&self) -> Json {
        match &self.value {
            Value::Text(text) => text.as_str().into(),
            Value::Number(number) => number.to_json(),
            Value::Boolean(value) => (*value).into(),
            Value::Array(items) => items.iter().map(Self::to_json).collect(),
            Value::Table(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect()
            }
        }
    }

    /// The value in words: "the string `\"ten\"`", "a table".
    pub(super) fn found(&self) -> String {
        match &self.value {
            Value::Text(text) => {
                format!("the string `{}`", shortened(&Json::from(text.as_str()).to_string(), MAX_SHOWN))
            }
            Value::Number(number @ Number::Integer(_)) => format!("the integer `{number}`"),
            Value::Number(number @ Number::Float(_)) => format!("the float `{number}`"),
            Value::Boolean(value) => format!("the boolean `{value}`"),
            Value::Array(items) => format!("an array of {}", items.len()),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    fn item(&self, index: usize) -> Option<&Self> {
        match &self.value {
            Value::Array(items) => items.get(index),
            _ => None,
        }
    }

    pub(super) fn at(&self, path: &[Segment]) -> Option<&Self> {
        path.iter().try_fold(self, |node, segment| match segment {
            Segment::Key(key) => node.entry(key).map(|entry| &entry.node),
            Segment::Index(index) => node.item(*index),
        })
    }

    /// The same table without one of its keys.
    pub(super) fn without(&self, key: &str) -> Self {
        let mut other = self.clone();
        if let Value::Table(entries) = &mut other.value {
            entries.retain(|entry| entry.key != key);
        }
        other
    }

    /// The key that a path ends in; if there is none, the nearest table or value around it that there is.
    pub(super) fn span_of(&self, path: &[Segment]) -> Span {
        let mut node = self;
        for (position, segment) in path.iter().enumerate() {
            let step = match segment {
                Segment::Key(key) => node.entry(key).map(|entry| (&entry.node, &entry.key_span)),
                Segment::Index(index) => node.item(*index).map(|item| (item, &item.span)),
            };
            let Some((inner, span)) = step else { break };
            if position + 1 == path.len() {
                return span.clone();
            }
            node = inner;
        }
        node.span.clone()
    }

    /// Puts a value at a path, with the tables on the way to it; says why where that cannot be.
    pub(super) fn put(&mut self, path: &[Segment], new: Self) -> Result<(), String> {
        let mut node = self;
        for segment in path {
            node = node.child(segment, &new.span)?;
        }
        *node = new;
        Ok(())
    }

    fn child(&mut self, segment: &Segment, span: &Span) -> Result<&mut Self, String> {
        let found = self.found();
        match (segment, &mut self.value) {
            (Segment::Key(key), Value::Table(entries)) => Ok(&mut entry_or_new(entries, key, span).node),
            (Segment::Index(index), Value::Array(items)) => items
                .get_mut(*index)
                .ok_or_else(|| format!("expected an index into the array, found `[{index}]` and {found}")),
            (Segment::Key(key), _) => Err(format!("expected a table with `{}`, found {found}", written(key))),
            (Segment::Index(index), _) => Err(format!("expected an array with `[{index}]`, found {found}")),
        }
    }
}

fn entry_or_new<'a>(entries: &'a mut Vec<Entry>, key: &str, span: &Span) -> &'a mut Entry {
    let position = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
        let table = Node { value: Value::Table(Vec::new()), span: span.clone() };
        entries.push(Entry::new(key.to_owned(), span.clone(), table));
        entries.len() - 1
    });
    &mut entries[position]
}

impl Entry {
    fn new(key: String, key_span: Span, node: Node) -> Self {
        Self { key, key_span, node }
    }
}

struct Reader {
    path: KeyPath,
    unfit: Vec<Unfit>,
}

impl Reader {
    fn table(&mut self, table: DeTable<'_>) -> Value {
        let mut entries: Vec<_> = table.into_iter().map(|(key, value)| self.entry(&key, value)).collect();
        entries.sort_by_key(|entry| entry.key_span.start);
        Value::Table(entries)
    }

    fn entry(&mut self, key: &Spanned<std::borrow::Cow<'_, str>>, value: Spanned<DeValue<'_>>) -> Entry {
        self.path.push_key(key.get_ref());
        let node = self.node(value);
        self.path.pop();
        Entry::new(key.get_ref().to_string(), key.span(), node)
    }

    fn node(&mut self, spanned: Spanned<DeValue<'_>>) -> Node {
        let span = spanned.span();
        let value = match spanned.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(integer) => Value::Number(self.integer(&integer, &span)),
            DeValue::Float(float) => Value::Number(self.float(&float, &span)),
            DeValue::Boolean(value) => Value::Boolean(value),
            DeValue::Datetime(datetime) => Value::Text(datetime.to_string()),
            DeValue::Array(items) => Value::Array(
                items.into_iter().enumerate().map(|(index, item)| self.item(index, item)).collect(),
            ),
            DeValue::Table(table) => self.table(table),
        };
        Node { value, span }
    }

    fn item(&mut self, index: usize, item: Spanned<DeValue<'_>>) -> Node {
        self.path.push_index(index);
        let node = self.node(item);
        self.path.pop();
        node
    }

    fn integer(&mut self, integer: &DeInteger<'_>, span: &Span) -> Number {
        let value = i128::from_str_radix(integer.as_str(), integer.radix());
        let fits = |value: &i128| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(value);
        let value = value.ok().filter(fits).unwrap_or_else(|| {
            self.refuse("an integer of at most 64 bits", &integer.to_string(), span);
            0
        });
        Number::Integer(value)
    }

    fn float(&mut self, float: &DeFloat<'_>, span: &Span) -> Number {
        let value = float.as_str().parse().ok().filter(|value: &f64| value.is_finite());
        Number::Float(value.unwrap_or_else(|| {
            self.refuse("a finite number", float.as_str(), span);
            0.0
        }))
    }

    fn refuse(&mut self, expected: &str, found: &str, span: &Span) {
        let message = format!("expected {expected}, found `{}`", shortened(found, MAX_SHOWN));
        self.unfit.push(Unfit { path: self.path.to_string(), span: span.clone(), message });
    }
}
