//! Parsed JSON, however it is kept: what a schema is read from.

use serde_json::Value as Json;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape<'r> {
    Null,
    Bool(bool),
    Number(&'r str),
    Text(&'r str),
    Array,
    Object,
}

/// A parsed value, however it is kept.
pub(crate) trait Source<'r>: Copy {
    /// What it is.
    fn shape(self) -> Shape<'r>;

    /// The items of an array or the members of an object, with their names.
    fn parts(self) -> impl Iterator<Item = (&'r str, Self)>;

    /// A number for the place of the value in its document.
    fn number(self) -> usize;

    /// The value as the usual reader has it, where it is kept so.
    fn value(self) -> Option<&'r Json>;

    /// A value that the usual reader has read, where values are kept so.
    fn of_value(value: &'r Json) -> Option<Self>;

    fn text(self) -> Option<&'r str> {
        if let Shape::Text(text) = self.shape() { Some(text) } else { None }
    }

    fn truth(self) -> Option<bool> {
        if let Shape::Bool(truth) = self.shape() { Some(truth) } else { None }
    }

    fn is_array(self) -> bool {
        self.shape() == Shape::Array
    }

    fn is_object(self) -> bool {
        self.shape() == Shape::Object
    }

    /// The member of a name.
    fn get(self, name: &str) -> Option<Self> {
        let found = self.is_object().then(|| self.parts().find(|part| part.0 == name));
        found.flatten().map(|part| part.1)
    }
}

impl<'r> Source<'r> for &'r Json {
    fn shape(self) -> Shape<'r> {
        match self {
            Json::Null => Shape::Null,
            Json::Bool(truth) => Shape::Bool(*truth),
            Json::Number(number) => Shape::Number(number.as_str()),
            Json::String(text) => Shape::Text(text),
            Json::Array(_) => Shape::Array,
            Json::Object(_) => Shape::Object,
        }
    }

    fn parts(self) -> impl Iterator<Item = (&'r str, Self)> {
        let items = self.as_array().into_iter().flatten().map(|item| ("", item));
        let members = self.as_object().into_iter().flatten();
        items.chain(members.map(|(name, member)| (name.as_str(), member)))
    }

    fn number(self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn value(self) -> Option<&'r Json> {
        Some(self)
    }

    fn of_value(value: &'r Json) -> Option<Self> {
        Some(value)
    }
}
