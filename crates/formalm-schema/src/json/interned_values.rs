//! Interned JSON values under JSON Schema's equality: `1` equals `1.0`, and properties have no
//! order.

use formalm_core::Interner;

use crate::json::decimal::Decimal;
use crate::json::json_view::{JsonShape, JsonView};
use crate::json::property_names::{NameId, PropertyNames};
use crate::schema_nodes::JsonType;

/// An interned value: equal ids are equal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ValueId(pub(crate) u32);

/// A JSON value whose children are interned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum JsonValue {
    Null,
    Bool(bool),
    Number(Decimal),
    String(String),
    Array(Box<[ValueId]>),
    /// Properties, sorted by name.
    Object(Box<[(NameId, ValueId)]>),
}

impl JsonValue {
    pub(crate) fn json_type(&self) -> JsonType {
        match self {
            JsonValue::Null => JsonType::Null,
            JsonValue::Bool(_) => JsonType::Bool,
            JsonValue::Number(_) => JsonType::Number,
            JsonValue::String(_) => JsonType::String,
            JsonValue::Array(_) => JsonType::Array,
            JsonValue::Object(_) => JsonType::Object,
        }
    }
}

/// The interned values.
#[derive(Debug, Default)]
pub(crate) struct ValueInterner(Interner<JsonValue>);

impl ValueInterner {
    pub(crate) fn get(&self, id: ValueId) -> &JsonValue {
        self.0.get(id.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the id of a value, if it was interned.
    pub(crate) fn find(&self, value: &JsonValue) -> Option<ValueId> {
        self.0.find(value).map(ValueId)
    }

    pub(crate) fn intern(&mut self, value: JsonValue) -> ValueId {
        ValueId(self.0.intern(value))
    }

    /// Interns a parsed value. Returns `None` if it contains a number with too many digits.
    pub(crate) fn intern_json<'r>(
        &mut self,
        json: impl JsonView<'r>,
        names: &mut PropertyNames,
    ) -> Option<ValueId> {
        let value = match json.shape() {
            JsonShape::Null => JsonValue::Null,
            JsonShape::Bool(truth) => JsonValue::Bool(truth),
            JsonShape::Number(number) => JsonValue::Number(Decimal::parse(number)?),
            JsonShape::String(text) => JsonValue::String(text.to_owned()),
            JsonShape::Array => {
                let items: Option<Vec<_>> =
                    json.children().map(|(_, item)| self.intern_json(item, names)).collect();
                JsonValue::Array(items?.into())
            }
            JsonShape::Object => {
                let mut list = Vec::new();
                for (name, property) in json.children() {
                    list.push((names.intern(name), self.intern_json(property, names)?));
                }
                list.sort_unstable();
                JsonValue::Object(list.into())
            }
        };
        Some(self.intern(value))
    }
}
