//! A uniform view of parsed JSON, whether it lies on the flat tape or in serde_json values.
//!
//! The schema reader is generic over [`JsonView`]. Only the registry of resources needs serde_json
//! values, so a self-contained schema is read from the tape without converting it.

use serde_json::Value as Json;

/// The kind of a JSON value, with the content of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonShape<'r> {
    Null,
    Bool(bool),
    Number(&'r str),
    String(&'r str),
    Array,
    Object,
}

impl JsonShape<'_> {
    pub(crate) fn is_array(self) -> bool {
        self == JsonShape::Array
    }

    pub(crate) fn is_object(self) -> bool {
        self == JsonShape::Object
    }
}

/// A reference to a parsed value.
pub(crate) trait JsonView<'r>: Copy {
    /// Returns the kind of the value.
    fn shape(self) -> JsonShape<'r>;

    /// Returns the items of an array (with empty names) or the properties of an object.
    fn children(self) -> impl Iterator<Item = (&'r str, Self)>;

    /// Returns a number that identifies the position of the value in its document.
    fn address(self) -> usize;

    /// Returns the serde_json value, if the document is stored as such.
    fn as_serde(self) -> Option<&'r Json>;

    /// Wraps a serde_json value, if this view stores such values.
    fn from_serde(value: &'r Json) -> Option<Self>;

    fn as_str(self) -> Option<&'r str> {
        if let JsonShape::String(text) = self.shape() { Some(text) } else { None }
    }

    fn as_bool(self) -> Option<bool> {
        if let JsonShape::Bool(truth) = self.shape() { Some(truth) } else { None }
    }

    /// Returns the value of a property.
    fn get(self, name: &str) -> Option<Self> {
        let found = self.shape().is_object().then(|| self.children().find(|part| part.0 == name));
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
        let properties = self.as_object().into_iter().flatten();
        items.chain(properties.map(|(name, property)| (name.as_str(), property)))
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
