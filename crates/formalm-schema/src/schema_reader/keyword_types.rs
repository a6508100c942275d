//! The type that the value of each keyword must have, also where the keyword asserts nothing.
//!
//! A keyword that asserts is checked where it is read. Two kinds of place are not read: keywords
//! that need another one beside them (`minContains` without `contains`), and definitions that
//! nothing refers to. A value of a wrong type makes the schema invalid there, too: its author meant
//! something that is not said. Keywords that only describe are told of in [`super::ignored_keywords`]. What a
//! meta-schema asks for beyond types (at least one schema in `allOf`, distinct names in `required`)
//! changes no meaning and is not asked for.

use formalm_automata::Error;
use referencing::Draft;
use rustc_hash::FxHashSet;

use super::ignored_keywords::missing_companion;
use super::keyword_table::{Keyword, Use};
use super::keyword_values::{KeywordValues, SchemaFault, keyword_set};
use super::resource_registry::draft_from_uri;
use super::{NodeKey, SchemaReader, SubschemaContext, refuse};
use crate::json::decimal::Decimal;
use crate::json::json_view::{JsonShape, JsonView};
use crate::schema_nodes::{NodeId, push_pointer_token};

/// Keywords that may be there without being read.
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
    /// More than zero.
    PositiveNumber,
    NonNegativeInteger,
    Types,
    /// A list of strings.
    StringList,
    /// A list of anything.
    List,
    /// An object whose values have this type.
    Object,
    /// An object of truth values.
    BooleanMap,
    Schema,
    SchemaOrList,
    SchemaList,
    /// An object of schemas.
    SchemaMap,
    /// An object of schemas, lists of names, or names.
    Dependencies,
    /// An object of lists of names.
    StringListMap,
    /// A number, or a truth value as in draft 4.
    NumberOrBoolean,
}

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
        // It describes from draft 6 on; a value of another type is told of.
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
        Keyword::Enum | Keyword::TextParts => ValueType::List,
        Keyword::OtherPattern => ValueType::Object,
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

/// Whether the draft's meta-schema knows the keyword.
fn is_known(keyword: Keyword, draft: Draft) -> bool {
    match keyword.used() {
        Use::Says(first, last) => draft == Draft::Unknown || first <= draft && draft <= last,
        Use::Names => match keyword {
            Keyword::Defs | Keyword::Vocabulary => draft >= Draft::Draft201909,
            _ => true,
        },
    }
}

fn is_schema<'r>(json: impl JsonView<'r>) -> bool {
    matches!(json.shape(), JsonShape::Object | JsonShape::Bool(_))
}

/// What a value must be, if it is not; its parts that are schemas are not looked into.
fn type_error<'r, J: JsonView<'r>>(keyword: Keyword, json: J) -> Option<&'static str> {
    let all = |test: &dyn Fn(J) -> bool| json.children().all(|part| test(part.1));
    let is_text = |one: J| one.as_str().is_some();
    let names = |one: J| one.is_array() && one.children().all(|part| part.1.as_str().is_some());
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
            (fits, "a number that is more than zero")
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
            (fits, "a whole number that is not negative")
        }
        ValueType::Types if json.is_array() => (all(&is_type), "a type or a list of types"),
        ValueType::Types => (is_type(json), "a type or a list of types"),
        ValueType::StringList => (names(json), "a list of strings"),
        ValueType::List => (json.is_array(), "a list"),
        ValueType::Object => (json.is_object(), "an object"),
        ValueType::BooleanMap => {
            let truths = json.children().all(|part| part.1.as_bool().is_some());
            (json.is_object() && truths, "an object of true and false")
        }
        ValueType::Schema => (is_schema(json), "a schema: an object, true or false"),
        ValueType::SchemaOrList if json.is_array() => {
            (all(&is_schema), "a schema or a list of schemas")
        }
        ValueType::SchemaOrList => (is_schema(json), "a schema or a list of schemas"),
        ValueType::SchemaList => (json.is_array() && all(&is_schema), "a list of schemas"),
        ValueType::SchemaMap => (json.is_object() && all(&is_schema), "an object of schemas"),
        ValueType::Dependencies => {
            let fits = |one: J| is_schema(one) || is_text(one) || names(one);
            let fits = json.children().all(|part| fits(part.1));
            (json.is_object() && fits, "an object of schemas and lists of strings")
        }
        ValueType::StringListMap => {
            let fits = json.children().all(|part| names(part.1));
            (json.is_object() && fits, "an object of lists of strings")
        }
    };
    (!fits).then_some(message)
}

/// The schemas in a value that may be objects, and which part of the value they are.
fn subschemas_in<'r, J: JsonView<'r>>(
    keyword: Keyword,
    json: J,
    mut found: impl FnMut(ValuePart<'r>, J),
) {
    match value_type(keyword) {
        ValueType::SchemaOrList | ValueType::SchemaList if json.is_array() => {
            json.children().enumerate().for_each(|(at, part)| found(ValuePart::Item(at), part.1));
        }
        ValueType::Schema | ValueType::SchemaOrList => found(ValuePart::Whole, json),
        ValueType::SchemaMap | ValueType::Dependencies => {
            let schemas = json.children().filter(|part| part.1.is_object());
            schemas.for_each(|part| found(ValuePart::Member(part.0), part.1));
        }
        _ => {}
    }
}

/// A part of a keyword's value.
#[derive(Clone, Copy)]
enum ValuePart<'r> {
    Whole,
    Item(usize),
    Member(&'r str),
}

/// What an unread schema is a part of.
#[derive(Clone, Copy)]
enum UnreadParent {
    Node(NodeId),
    /// Another one, by its place among those that were looked into.
    Unread(usize),
}

/// A schema that is not read.
pub(super) struct UnreadSchema<'r, J> {
    json: J,
    above: UnreadParent,
    keyword: Keyword,
    within: ValuePart<'r>,
    draft: Draft,
}

impl<'r, J: JsonView<'r>> SchemaReader<'r, J> {
    /// Checks keywords of a schema that are not read for want of another, and keeps in mind the
    /// subschemas that nothing has led to so far.
    pub(super) fn check_unapplied_keywords(
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
            // Draft 4 had no type for it.
            let is_free = keyword == Keyword::Ref && at.draft == Draft::Draft4;
            if !is_inert || is_free {
                continue;
            }
            if let Some(message) = type_error(keyword, json) {
                return Err(type_fault(keyword, json, message, fields.schema));
            }
            let (above, draft) = (UnreadParent::Node(at.node), at.draft);
            subschemas_in(keyword, json, |within, json| {
                self.unread.push(UnreadSchema { json, above, keyword, within, draft });
            });
        }
        Ok(())
    }

    /// Checks what was not read of the document: the schemas that nothing refers to.
    pub(super) fn check_unread_schemas(&mut self) -> Result<(), Error> {
        let mut rest = std::mem::take(&mut self.unread);
        // Where all is one document, its subschemas have no surroundings.
        let is_read = |one: &UnreadSchema<'r, J>| {
            let (base, scope) = (String::new(), Vec::new());
            self.ids.get(&NodeKey { json: one.json.address(), base, scope }).is_some()
        };
        rest.retain(|one| one.json.is_object() && !is_read(one));
        if rest.is_empty() {
            return Ok(());
        }
        let read: FxHashSet<usize> = self.ids.keys().map(|key| key.json).collect();
        rest.reverse();
        let mut looked_into: Vec<UnreadSchema<'r, J>> = Vec::new();
        while let Some(mut one) = rest.pop() {
            let json = one.json;
            if !json.is_object() || read.contains(&json.address()) {
                continue;
            }
            if let Some(uri) = json.get("$schema").and_then(J::as_str) {
                one.draft = draft_from_uri(uri);
            }
            let draft = one.draft;
            let fields = &KeywordValues::of(json);
            // Siblings of a reference are ignored in older drafts.
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
                    let mut place = self.unread_pointer(above, &looked_into);
                    push_pointer_token(&mut place, keyword.name());
                    let message = format!("{} must be {message}", keyword.name());
                    return Err(refuse(
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

    /// The pointer to a schema that is not read.
    fn unread_pointer(&self, above: UnreadParent, looked_into: &[UnreadSchema<'r, J>]) -> String {
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
        let mut place = self.schema.place(node);
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
}

/// The refusal of a value of a wrong type.
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

/// What may be missing where a keyword has a schema for its value.
pub(super) fn missing_properties_hint<'r, J: JsonView<'r>>(
    json: J,
    schema: J,
) -> Option<&'static str> {
    let is_property = json.get("type").is_some() || json.get("$ref").is_some();
    (is_property && schema.get("properties").is_none())
        .then_some("a property of this name belongs under properties")
}
