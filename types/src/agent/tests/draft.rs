//! A document that can be spoilt place by place.

use std::fmt::Write as _;

use crate::json::{Json, parse, write_string};
use crate::testing::written;

/// A JSON text as a tree of texts, in its order.
#[derive(Clone)]
pub(super) enum Draft {
    Raw(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Draft {
    pub(super) fn of(text: &str) -> Self {
        Self::from_json(&parse(text.as_bytes(), 32).unwrap())
    }

    fn from_json(value: &Json<'_>) -> Self {
        match value {
            Json::Array(items) => Self::Array(items.iter().map(Self::from_json).collect()),
            Json::Object(members) => {
                let members = members.iter();
                let members = members.map(|(key, value)| (key.to_string(), Self::from_json(value)));
                Self::Object(members.collect())
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
                Self::Raw(written(value))
            }
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Raw(text) => out.push_str(text),
            Self::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    write_string(key, out);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// The value at a JSON pointer whose keys have no escapes.
    pub(super) fn at(&mut self, pointer: &str) -> &mut Self {
        let mut value = self;
        for step in pointer.split('/').skip(1) {
            value = match value {
                Self::Array(items) => &mut items[step.parse::<usize>().unwrap()],
                Self::Object(members) => {
                    let found = members.iter_mut().find(|(key, _)| key == step);
                    &mut found.unwrap_or_else(|| panic!("{pointer}")).1
                }
                Self::Raw(text) => panic!("{pointer} leads into {text}"),
            };
        }
        value
    }

    /// The same with another value at a place, or with a new last member there.
    pub(super) fn with(&self, pointer: &str, raw: &str) -> Self {
        let mut draft = self.clone();
        let (parent, step) = pointer.rsplit_once('/').unwrap_or_default();
        if pointer.is_empty() {
            return Self::Raw(raw.to_owned());
        }
        let raw = Self::Raw(raw.to_owned());
        match draft.at(parent) {
            Self::Array(items) => items[step.parse::<usize>().unwrap()] = raw,
            Self::Object(members) => match members.iter_mut().find(|(key, _)| key == step) {
                Some((_, value)) => *value = raw,
                None => members.push((step.to_owned(), raw)),
            },
            Self::Raw(text) => panic!("{pointer} leads into {text}"),
        }
        draft
    }

    /// The same without the member at a place.
    pub(super) fn without(&self, pointer: &str) -> Self {
        let mut draft = self.clone();
        let (parent, step) = pointer.rsplit_once('/').unwrap();
        let Self::Object(members) = draft.at(parent) else { panic!("{pointer}") };
        members.retain(|(key, _)| key != step);
        draft
    }

    /// The pointers to all values, in the order of the text.
    pub(super) fn pointers(&self) -> Vec<String> {
        let mut pointers = Vec::new();
        self.collect(&mut String::new(), &mut pointers);
        pointers
    }

    fn collect(&self, pointer: &mut String, out: &mut Vec<String>) {
        out.push(pointer.clone());
        let length = pointer.len();
        let steps: Vec<(String, &Self)> = match self {
            Self::Raw(_) => Vec::new(),
            Self::Array(items) => {
                items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
            }
            Self::Object(members) => {
                members.iter().map(|(key, value)| (key.clone(), value)).collect()
            }
        };
        for (step, value) in steps {
            write!(pointer, "/{step}").unwrap();
            value.collect(pointer, out);
            pointer.truncate(length);
        }
    }
}
