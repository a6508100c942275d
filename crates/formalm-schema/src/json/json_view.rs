//! Parsed JSON, however it is kept: what a schema is read from.

use serde_json::Value as Json;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonShape<'r> {
    Null,
    Bool(bool),
    Number(&'r str),
    String(&'r str),
    Array,
    Object,
}

/// A parsed value, however it is kept.
pub(crate) trait JsonView<'r>: Copy {
    /// What it is.
    fn shape(self) -> JsonShape<'r>;

    /// The items of an array or the members of an object, with their names.
    fn children(self) -> impl Iterator<Item = (&'r str, Self)>;

    /// A number for the place of the value in its document.
    fn address(self) -> usize;

    /// The value as the usual reader has it, where it is kept so.
    fn as_serde(self) -> Option<&'r Json>;

    /// A value that the usual reader has read, where values are kept so.
    fn from_serde(value: &'r Json) -> Option<Self>;

    fn as_str(self) -> Option<&'r str> {
        if let JsonShape::String(text) = self.shape() { Some(text) } else { None }
    }

    fn as_bool(self) -> Option<bool> {
        if let JsonShape::Bool(truth) = self.shape() { Some(truth) } else { None }
    }

    fn is_array(self) -> bool {
        self.shape() == JsonShape::Array
    }

    fn is_object(self) -> bool {
        self.shape() == JsonShape::Object
    }

    /// The member of a name.
    fn get(self, name: &str) -> Option<Self> {
        let found = self.is_object().then(|| self.children().find(|part| part.0 == name));
        found.flatten().map(|part| part.1)
    }
}

impl<'r> JsonView<'r> for &'r Json {
    fn shape(self) -> JsonShape<'r> {
        match self {
            Json::Null => JsonShape::Null,
            Json::Bool(truth) => JsonShape::Bool(*truth),
            Json::Number(number) => JsonShape::Number(number.as_str()),
            Json::String(text) => JsonShape::String(text),
            Json::Array(_) => JsonShape::Array,
            Json::Object(_) => JsonShape::Object,
        }
    }

    fn children(self) -> impl Iterator<Item = (&'r str, Self)> {
        let items = self.as_array().into_iter().flatten().map(|item| ("", item));
        let members = self.as_object().into_iter().flatten();
        items.chain(members.map(|(name, member)| (name.as_str(), member)))
    }

    fn address(self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn as_serde(self) -> Option<&'r Json> {
        Some(self)
    }

    fn from_serde(value: &'r Json) -> Option<Self> {
        Some(value)
    }
}
