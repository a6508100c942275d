//! Interned JSON values under JSON Schema's equality: `1` equals `1.0`, and properties have no
//! order.

use crate::interner::Table;
use crate::json::decimal::Decimal;
use crate::json::json_view::{JsonShape, JsonView};
use crate::json::property_names::{NameId, Names};
use crate::schema_nodes::Type;

/// An interned value: equal ids are equal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ValueId(pub(crate) u32);

/// A JSON value whose children are interned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Decimal),
    String(String),
    Array(Box<[ValueId]>),
    /// Properties, sorted by name.
    Object(Box<[(NameId, ValueId)]>),
}

impl Value {
    pub(crate) fn json_type(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Number(_) => Type::Number,
            Value::String(_) => Type::String,
            Value::Array(_) => Type::Array,
            Value::Object(_) => Type::Object,
        }
    }
}

/// The interned values.
#[derive(Debug, Default)]
pub(crate) struct Values(Table<Value>);

impl Values {
    pub(crate) fn get(&self, id: ValueId) -> &Value {
        self.0.get(id.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn intern(&mut self, value: Value) -> ValueId {
        ValueId(self.0.intern(value))
    }

    /// Interns a parsed value. Returns `None` if it contains a number with too many digits.
    pub(crate) fn read<'r>(
        &mut self,
        json: impl JsonView<'r>,
        names: &mut Names,
    ) -> Option<ValueId> {
        let value = match json.shape() {
            JsonShape::Null => Value::Null,
            JsonShape::Bool(truth) => Value::Bool(truth),
            JsonShape::Number(number) => Value::Number(Decimal::parse(number)?),
            JsonShape::String(text) => Value::String(text.to_owned()),
            JsonShape::Array => {
                let items: Option<Vec<_>> =
                    json.children().map(|(_, item)| self.read(item, names)).collect();
                Value::Array(items?.into())
            }
            JsonShape::Object => {
                let mut list = Vec::new();
                for (name, property) in json.children() {
                    list.push((names.intern(name), self.read(property, names)?));
                }
                list.sort_unstable();
                Value::Object(list.into())
            }
        };
        Some(self.intern(value))
    }
}
