//! The required JSON type of each keyword's value, also where the keyword has no effect.
//!
//! Keywords that assert are checked where they are read. Two kinds of places are not read: keywords
//! without their companion (`minContains` without `contains`), and definitions that nothing refers
//! to. A value of the wrong type makes the schema invalid there too: its author meant something
//! that would be lost. Annotations only get a note ([`super::ineffective_keyword_notes`]). What meta-schemas
//! demand beyond types (at least one schema in `allOf`, distinct names in `required`) changes no
//! meaning and is not checked.

use formalm_core::{CompactMap, Error};
use referencing::Draft;
use rustc_hash::FxHashSet;

use super::ineffective_keyword_notes::missing_companion;
use super::keyword_table::{Keyword, KeywordRole};
use super::keyword_values::{KeywordValues, SchemaFault, keyword_set};
use super::resource_registry::draft_from_uri;
use super::{NodeKey, SubschemaContext, schema_error};
use crate::json::decimal::Decimal;
use crate::json::json_view::{JsonShape, JsonView};
use crate::schema_nodes::{NodeId, ResolvedSchema, push_pointer_token};

/// Keywords that may occur without being read.
const MAYBE_UNAPPLIED: u64 = keyword_set(&[
    Keyword::Ref,
    Keyword::Format,
    Keyword::Vocabulary,
    Keyword::RecursiveRef,
    Keyword::Defs,
    Keyword::Definitions,
    Keyword::Then,
    Keyword::Else,
    Keyword::MinContains,
    Keyword::MaxContains,
    Keyword::AdditionalItems,
    Keyword::ExclusiveMinimum,
    Keyword::ExclusiveMaximum,
]);

/// The type of a keyword's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueType {
    Anything,
    Boolean,
    String,
    Number,
    /// A number greater than zero.
    PositiveNumber,
    NonNegativeInteger,
    Types,
    /// A list of strings.
    StringList,
    /// A list of anything.
    List,
    /// An object with values of any type.
    Object,
    /// An object of Booleans.
    BooleanMap,
    Schema,
    SchemaOrList,
    SchemaList,
    /// An object of schemas.
    SchemaMap,
    /// An object of schemas, lists of strings, or strings.
    Dependencies,
    /// An object of lists of strings.
    StringListMap,
    /// A number, or a Boolean as in draft 4.
    NumberOrBoolean,
}

/// Returns the required type of a keyword's value.
fn value_type(keyword: Keyword) -> ValueType {
    match keyword {
        Keyword::Const => ValueType::Anything,
        Keyword::UniqueItems | Keyword::RecursiveAnchor => ValueType::Boolean,
        Keyword::Ref
        | Keyword::Pattern
        | Keyword::Format
        | Keyword::DynamicRef
        | Keyword::RecursiveRef
        | Keyword::DollarId
        | Keyword::Anchor
        | Keyword::DynamicAnchor
        | Keyword::Schema => ValueType::String,
        // An annotation from draft 6 on; another type only gets a note.
        Keyword::Id => ValueType::Anything,
        Keyword::MultipleOf => ValueType::PositiveNumber,
        Keyword::Maximum | Keyword::Minimum => ValueType::Number,
        Keyword::ExclusiveMaximum | Keyword::ExclusiveMinimum => ValueType::NumberOrBoolean,
        Keyword::MaxLength
        | Keyword::MinLength
        | Keyword::MaxItems
        | Keyword::MinItems
        | Keyword::MaxContains
        | Keyword::MinContains
        | Keyword::MaxProperties
        | Keyword::MinProperties => ValueType::NonNegativeInteger,
        Keyword::Type => ValueType::Types,
        Keyword::Required => ValueType::StringList,
        Keyword::Enum | Keyword::StringParts => ValueType::List,
        Keyword::DialectPattern => ValueType::Object,
        Keyword::Vocabulary => ValueType::BooleanMap,
        Keyword::Properties
        | Keyword::PatternProperties
        | Keyword::DependentSchemas
        | Keyword::Defs
        | Keyword::Definitions => ValueType::SchemaMap,
        Keyword::Dependencies => ValueType::Dependencies,
        Keyword::DependentRequired => ValueType::StringListMap,
        Keyword::Items => ValueType::SchemaOrList,
        Keyword::PrefixItems | Keyword::AllOf | Keyword::AnyOf | Keyword::OneOf => {
            ValueType::SchemaList
        }
        Keyword::AdditionalProperties
        | Keyword::PropertyNames
        | Keyword::UnevaluatedProperties
        | Keyword::AdditionalItems
        | Keyword::Contains
        | Keyword::UnevaluatedItems
        | Keyword::Not
        | Keyword::If
        | Keyword::Then
        | Keyword::Else => ValueType::Schema,
    }
}

/// Returns `true` if the draft's meta-schema defines the keyword.
fn is_known(keyword: Keyword, draft: Draft) -> bool {
    match keyword.role() {
        KeywordRole::Asserts(first, last) => {
            draft == Draft::Unknown || first <= draft && draft <= last
        }
        KeywordRole::Identifies => match keyword {
            Keyword::Defs | Keyword::Vocabulary => draft >= Draft::Draft201909,
            _ => true,
        },
    }
}

fn is_schema<'r>(json: impl JsonView<'r>) -> bool {
    matches!(json.shape(), JsonShape::Object | JsonShape::Bool(_))
}

/// Returns the required type, in words, if the value has another one. Subschemas in the value are
/// not checked.
fn type_error<'r, J: JsonView<'r>>(keyword: Keyword, json: J) -> Option<&'static str> {
    let all = |test: &dyn Fn(J) -> bool| json.children().all(|part| test(part.1));
    let is_text = |one: J| one.as_str().is_some();
    let names =
        |one: J| one.shape().is_array() && one.children().all(|part| part.1.as_str().is_some());
    let types = ["null", "boolean", "string", "number", "integer", "array", "object"];
    let is_type = |one: J| one.as_str().is_some_and(|name| types.contains(&name));
    let (fits, message) = match value_type(keyword) {
        ValueType::Anything => (true, ""),
        ValueType::Boolean => (json.as_bool().is_some(), "true or false"),
        ValueType::String => (is_text(json), "a string"),
        ValueType::Number => (matches!(json.shape(), JsonShape::Number(_)), "a number"),
        ValueType::PositiveNumber => {
            let fits = match json.shape() {
                JsonShape::Number(digits) => Decimal::parse(digits)
                    .is_some_and(|number| !number.is_zero() && !number.is_negative()),
                _ => false,
            };
            (fits, "a number greater than zero")
        }
        ValueType::NumberOrBoolean => {
            (matches!(json.shape(), JsonShape::Number(_) | JsonShape::Bool(_)), "a number")
        }
        ValueType::NonNegativeInteger => {
            let fits = match json.shape() {
                JsonShape::Number(digits) => Decimal::parse(digits)
                    .is_some_and(|number| number.is_integer() && !number.is_negative()),
                _ => false,
            };
            (fits, "a non-negative integer")
        }
        ValueType::Types if json.shape().is_array() => (all(&is_type), "a type or a list of types"),
        ValueType::Types => (is_type(json), "a type or a list of types"),
        ValueType::StringList => (names(json), "a list of strings"),
        ValueType::List => (json.shape().is_array(), "a list"),
        ValueType::Object => (json.shape().is_object(), "an object"),
        ValueType::BooleanMap => {
            let truths = json.children().all(|part| part.1.as_bool().is_some());
            (json.shape().is_object() && truths, "an object whose values are true or false")
        }
        ValueType::Schema => (is_schema(json), "a schema: an object, true or false"),
        ValueType::SchemaOrList if json.shape().is_array() => {
            (all(&is_schema), "a schema or a list of schemas")
        }
        ValueType::SchemaOrList => (is_schema(json), "a schema or a list of schemas"),
        ValueType::SchemaList => (json.shape().is_array() && all(&is_schema), "a list of schemas"),
        ValueType::SchemaMap => {
            (json.shape().is_object() && all(&is_schema), "an object whose values are schemas")
        }
        ValueType::Dependencies => {
            let fits = |one: J| is_schema(one) || is_text(one) || names(one);
            let fits = json.children().all(|part| fits(part.1));
            (
                json.shape().is_object() && fits,
                "an object whose values are schemas or lists of strings",
            )
        }
        ValueType::StringListMap => {
            let fits = json.children().all(|part| names(part.1));
            (json.shape().is_object() && fits, "an object whose values are lists of strings")
        }
    };
    (!fits).then_some(message)
}

/// Calls `found` for each subschema in a value, with its position.
fn subschemas_in<'r, J: JsonView<'r>>(
    keyword: Keyword,
    json: J,
    mut found: impl FnMut(ValuePart<'r>, J),
) {
    match value_type(keyword) {
        ValueType::SchemaOrList | ValueType::SchemaList if json.shape().is_array() => {
            json.children().enumerate().for_each(|(at, part)| found(ValuePart::Item(at), part.1));
        }
        ValueType::Schema | ValueType::SchemaOrList => found(ValuePart::Whole, json),
        ValueType::SchemaMap | ValueType::Dependencies => {
            let schemas = json.children().filter(|part| part.1.shape().is_object());
            schemas.for_each(|part| found(ValuePart::Member(part.0), part.1));
        }
        _ => {}
    }
}

/// The position of a subschema in a keyword's value.
#[derive(Clone, Copy)]
enum ValuePart<'r> {
    Whole,
    Item(usize),
    Member(&'r str),
}

/// The parent of an unread schema.
#[derive(Clone, Copy)]
enum UnreadParent {
    Node(NodeId),
    /// Another unread schema, by its index among those visited.
    Unread(usize),
}

/// A subschema that was not read.
struct UnreadSchema<'r, J> {
    json: J,
    above: UnreadParent,
    keyword: Keyword,
    within: ValuePart<'r>,
    draft: Draft,
}

/// Subschemas in parts of the document that were skipped.
pub(super) struct UnreadSchemas<'r, J> {
    list: Vec<UnreadSchema<'r, J>>,
}

impl<J> Default for UnreadSchemas<'_, J> {
    fn default() -> Self {
        UnreadSchemas { list: Vec::new() }
    }
}

impl<'r, J: JsonView<'r>> UnreadSchemas<'r, J> {
    /// Checks keywords that lack their companion, and records their subschemas for
    /// [`UnreadSchemas::check`]. Fails if a type is wrong.
    pub(super) fn record_unapplied(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        hides_siblings: bool,
    ) -> Result<(), SchemaFault> {
        if !fields.has_any(MAYBE_UNAPPLIED) {
            return Ok(());
        }
        for (keyword, json) in fields.present(MAYBE_UNAPPLIED) {
            let is_definitions = matches!(keyword, Keyword::Defs | Keyword::Definitions);
            if !is_known(keyword, at.draft) || hides_siblings && !is_definitions {
                continue;
            }
            let is_inert = is_definitions
                || missing_companion(fields, keyword).is_some()
                || matches!(
                    keyword,
                    Keyword::Ref | Keyword::Format | Keyword::Vocabulary | Keyword::RecursiveRef
                );
            // Draft 4 has no type for it.
            let is_free = keyword == Keyword::Ref && at.draft == Draft::Draft4;
            if !is_inert || is_free {
                continue;
            }
            if let Some(message) = type_error(keyword, json) {
                return Err(type_fault(keyword, json, message, fields.schema));
            }
            let (above, draft) = (UnreadParent::Node(at.node), at.draft);
            subschemas_in(keyword, json, |within, json| {
                self.list.push(UnreadSchema { json, above, keyword, within, draft });
            });
        }
        Ok(())
    }

    /// Checks the schemas of the document that nothing refers to. Fails if a type is wrong.
    pub(super) fn check(
        &mut self,
        ids: &CompactMap<NodeKey, NodeId>,
        schema: &ResolvedSchema,
    ) -> Result<(), Error> {
        let mut rest = std::mem::take(&mut self.list);
        // In a document without a registry all keys have an empty base.
        let is_read = |one: &UnreadSchema<'r, J>| {
            let (base, scope) = (String::new(), Vec::new());
            ids.get(&NodeKey { json: one.json.address(), base, scope }).is_some()
        };
        rest.retain(|one| one.json.shape().is_object() && !is_read(one));
        if rest.is_empty() {
            return Ok(());
        }
        let read: FxHashSet<usize> = ids.keys().map(|key| key.json).collect();
        rest.reverse();
        let mut looked_into: Vec<UnreadSchema<'r, J>> = Vec::new();
        while let Some(mut one) = rest.pop() {
            let json = one.json;
            if !json.shape().is_object() || read.contains(&json.address()) {
                continue;
            }
            if let Some(uri) = json.get("$schema").and_then(J::as_str) {
                one.draft = draft_from_uri(uri);
            }
            let draft = one.draft;
            let fields = &KeywordValues::of(json);
            // Drafts before 2019-09 ignore the siblings of a reference.
            let reference = fields.get(Keyword::Ref).and_then(J::as_str);
            let hidden = draft <= Draft::Draft7 && reference.is_some();
            let (first, above) = (rest.len(), UnreadParent::Unread(looked_into.len()));
            looked_into.push(one);
            for (keyword, json) in fields.present(!0) {
                let is_definitions = matches!(keyword, Keyword::Defs | Keyword::Definitions);
                let is_free = keyword == Keyword::Ref && draft == Draft::Draft4;
                if !is_known(keyword, draft) || hidden && !is_definitions || is_free {
                    continue;
                }
                if let Some(message) = type_error(keyword, json) {
                    let mut place = unread_pointer(schema, above, &looked_into);
                    push_pointer_token(&mut place, keyword.name());
                    let message = format!("{} must be {message}", keyword.name());
                    return Err(schema_error(
                        &place,
                        message,
                        missing_properties_hint(json, fields.schema),
                    ));
                }
                subschemas_in(keyword, json, |within, json| {
                    rest.push(UnreadSchema { json, above, keyword, within, draft });
                });
            }
            rest[first..].reverse();
        }
        Ok(())
    }
}

/// Returns the JSON pointer of an unread schema.
fn unread_pointer<J>(
    schema: &ResolvedSchema,
    above: UnreadParent,
    looked_into: &[UnreadSchema<'_, J>],
) -> String {
    let (mut above, mut chain) = (above, Vec::new());
    let node = loop {
        match above {
            UnreadParent::Node(node) => break node,
            UnreadParent::Unread(at) => {
                chain.push(&looked_into[at]);
                above = looked_into[at].above;
            }
        }
    };
    let mut place = schema.json_pointer(node);
    for one in chain.into_iter().rev() {
        push_pointer_token(&mut place, one.keyword.name());
        match one.within {
            ValuePart::Whole => {}
            ValuePart::Item(at) => push_pointer_token(&mut place, &at.to_string()),
            ValuePart::Member(name) => push_pointer_token(&mut place, name),
        }
    }
    place
}

/// Returns the fault of a value of the wrong type.
fn type_fault<'r, J: JsonView<'r>>(
    keyword: Keyword,
    json: J,
    message: &str,
    schema: J,
) -> SchemaFault {
    SchemaFault::Part {
        parts: vec![keyword.name().to_owned()],
        message: format!("{} must be {message}", keyword.name()),
        hint: missing_properties_hint(json, schema).map(str::to_owned),
    }
}

/// Returns a hint if the keyword looks like a property outside of `properties`.
pub(super) fn missing_properties_hint<'r, J: JsonView<'r>>(
    json: J,
    schema: J,
) -> Option<&'static str> {
    let is_property = json.get("type").is_some() || json.get("$ref").is_some();
    (is_property && schema.get("properties").is_none())
        .then_some("properties of the instance must be listed under properties")
}
