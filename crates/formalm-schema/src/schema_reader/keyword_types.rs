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

use super::ignored_keywords::lacks;
use super::keyword_table::{Keyword, Use};
use super::keyword_values::{Fault, Fields, bits};
use super::resource_registry::draft_of;
use super::{Key, Place, Reader, refuse};
use crate::json::decimal::Decimal;
use crate::json::json_view::{Shape, Source};
use crate::schema_nodes::{NodeId, push_part};

/// Keywords that may be there without being read.
const MAYBE_INERT: u64 = bits(&[
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
enum Wanted {
    Anything,
    Bool,
    Text,
    Number,
    /// More than zero.
    Unit,
    Count,
    Types,
    /// A list of strings.
    Names,
    /// A list of anything.
    List,
    /// An object whose values have this type.
    Map,
    /// An object of truth values.
    Truths,
    Schema,
    SchemaOrList,
    SchemaList,
    /// An object of schemas.
    Schemas,
    /// An object of schemas, lists of names, or names.
    Dependencies,
    /// An object of lists of names.
    NamesByName,
    /// A number, or a truth value as in draft 4.
    Bound,
}

fn wanted(keyword: Keyword) -> Wanted {
    match keyword {
        Keyword::Const => Wanted::Anything,
        Keyword::UniqueItems | Keyword::RecursiveAnchor => Wanted::Bool,
        Keyword::Ref
        | Keyword::Pattern
        | Keyword::Format
        | Keyword::DynamicRef
        | Keyword::RecursiveRef
        | Keyword::DollarId
        | Keyword::Anchor
        | Keyword::DynamicAnchor
        | Keyword::Schema => Wanted::Text,
        // It describes from draft 6 on; a value of another type is told of.
        Keyword::Id => Wanted::Anything,
        Keyword::MultipleOf => Wanted::Unit,
        Keyword::Maximum | Keyword::Minimum => Wanted::Number,
        Keyword::ExclusiveMaximum | Keyword::ExclusiveMinimum => Wanted::Bound,
        Keyword::MaxLength
        | Keyword::MinLength
        | Keyword::MaxItems
        | Keyword::MinItems
        | Keyword::MaxContains
        | Keyword::MinContains
        | Keyword::MaxProperties
        | Keyword::MinProperties => Wanted::Count,
        Keyword::Type => Wanted::Types,
        Keyword::Required => Wanted::Names,
        Keyword::Enum | Keyword::TextParts => Wanted::List,
        Keyword::OtherPattern => Wanted::Map,
        Keyword::Vocabulary => Wanted::Truths,
        Keyword::Properties
        | Keyword::PatternProperties
        | Keyword::DependentSchemas
        | Keyword::Defs
        | Keyword::Definitions => Wanted::Schemas,
        Keyword::Dependencies => Wanted::Dependencies,
        Keyword::DependentRequired => Wanted::NamesByName,
        Keyword::Items => Wanted::SchemaOrList,
        Keyword::PrefixItems | Keyword::AllOf | Keyword::AnyOf | Keyword::OneOf => {
            Wanted::SchemaList
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
        | Keyword::Else => Wanted::Schema,
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

fn is_schema<'r>(json: impl Source<'r>) -> bool {
    matches!(json.shape(), Shape::Object | Shape::Bool(_))
}

/// What a value must be, if it is not; its parts that are schemas are not looked into.
fn fault<'r, J: Source<'r>>(keyword: Keyword, json: J) -> Option<&'static str> {
    let all = |test: &dyn Fn(J) -> bool| json.parts().all(|part| test(part.1));
    let is_text = |one: J| one.text().is_some();
    let names = |one: J| one.is_array() && one.parts().all(|part| part.1.text().is_some());
    let types = ["null", "boolean", "string", "number", "integer", "array", "object"];
    let is_type = |one: J| one.text().is_some_and(|name| types.contains(&name));
    let (fits, message) = match wanted(keyword) {
        Wanted::Anything => (true, ""),
        Wanted::Bool => (json.truth().is_some(), "true or false"),
        Wanted::Text => (is_text(json), "a string"),
        Wanted::Number => (matches!(json.shape(), Shape::Number(_)), "a number"),
        Wanted::Unit => {
            let fits = match json.shape() {
                Shape::Number(digits) => Decimal::parse(digits)
                    .is_some_and(|number| !number.is_zero() && !number.is_negative()),
                _ => false,
            };
            (fits, "a number that is more than zero")
        }
        Wanted::Bound => (matches!(json.shape(), Shape::Number(_) | Shape::Bool(_)), "a number"),
        Wanted::Count => {
            let fits = match json.shape() {
                Shape::Number(digits) => Decimal::parse(digits)
                    .is_some_and(|number| number.is_integer() && !number.is_negative()),
                _ => false,
            };
            (fits, "a whole number that is not negative")
        }
        Wanted::Types if json.is_array() => (all(&is_type), "a type or a list of types"),
        Wanted::Types => (is_type(json), "a type or a list of types"),
        Wanted::Names => (names(json), "a list of strings"),
        Wanted::List => (json.is_array(), "a list"),
        Wanted::Map => (json.is_object(), "an object"),
        Wanted::Truths => {
            let truths = json.parts().all(|part| part.1.truth().is_some());
            (json.is_object() && truths, "an object of true and false")
        }
        Wanted::Schema => (is_schema(json), "a schema: an object, true or false"),
        Wanted::SchemaOrList if json.is_array() => {
            (all(&is_schema), "a schema or a list of schemas")
        }
        Wanted::SchemaOrList => (is_schema(json), "a schema or a list of schemas"),
        Wanted::SchemaList => (json.is_array() && all(&is_schema), "a list of schemas"),
        Wanted::Schemas => (json.is_object() && all(&is_schema), "an object of schemas"),
        Wanted::Dependencies => {
            let fits = |one: J| is_schema(one) || is_text(one) || names(one);
            let fits = json.parts().all(|part| fits(part.1));
            (json.is_object() && fits, "an object of schemas and lists of strings")
        }
        Wanted::NamesByName => {
            let fits = json.parts().all(|part| names(part.1));
            (json.is_object() && fits, "an object of lists of strings")
        }
    };
    (!fits).then_some(message)
}

/// The schemas in a value that may be objects, and which part of the value they are.
fn inside<'r, J: Source<'r>>(keyword: Keyword, json: J, mut found: impl FnMut(Within<'r>, J)) {
    match wanted(keyword) {
        Wanted::SchemaOrList | Wanted::SchemaList if json.is_array() => {
            json.parts().enumerate().for_each(|(at, part)| found(Within::Item(at), part.1));
        }
        Wanted::Schema | Wanted::SchemaOrList => found(Within::Whole, json),
        Wanted::Schemas | Wanted::Dependencies => {
            let schemas = json.parts().filter(|part| part.1.is_object());
            schemas.for_each(|part| found(Within::Member(part.0), part.1));
        }
        _ => {}
    }
}

/// A part of a keyword's value.
#[derive(Clone, Copy)]
enum Within<'r> {
    Whole,
    Item(usize),
    Member(&'r str),
}

/// What an unread schema is a part of.
#[derive(Clone, Copy)]
enum Above {
    Node(NodeId),
    /// Another one, by its place among those that were looked into.
    Unread(usize),
}

/// A schema that is not read.
pub(super) struct Unread<'r, J> {
    json: J,
    above: Above,
    keyword: Keyword,
    within: Within<'r>,
    draft: Draft,
}

impl<'r, J: Source<'r>> Reader<'r, J> {
    /// Checks keywords of a schema that are not read for want of another, and keeps in mind the
    /// subschemas that nothing has led to so far.
    pub(super) fn check_shapes(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        hides_siblings: bool,
    ) -> Result<(), Fault> {
        if !fields.has_any(MAYBE_INERT) {
            return Ok(());
        }
        for (keyword, json) in fields.given(MAYBE_INERT) {
            let is_definitions = matches!(keyword, Keyword::Defs | Keyword::Definitions);
            if !is_known(keyword, at.draft) || hides_siblings && !is_definitions {
                continue;
            }
            let is_inert = is_definitions
                || lacks(fields, keyword).is_some()
                || matches!(
                    keyword,
                    Keyword::Ref | Keyword::Format | Keyword::Vocabulary | Keyword::RecursiveRef
                );
            // Draft 4 had no type for it.
            let is_free = keyword == Keyword::Ref && at.draft == Draft::Draft4;
            if !is_inert || is_free {
                continue;
            }
            if let Some(message) = fault(keyword, json) {
                return Err(invalid(keyword, json, message, fields.schema));
            }
            let (above, draft) = (Above::Node(at.node), at.draft);
            inside(keyword, json, |within, json| {
                self.unread.push(Unread { json, above, keyword, within, draft });
            });
        }
        Ok(())
    }

    /// Checks what was not read of the document: the schemas that nothing refers to.
    pub(super) fn check_unread(&mut self) -> Result<(), Error> {
        let mut rest = std::mem::take(&mut self.unread);
        // Where all is one document, its subschemas have no surroundings.
        let is_read = |one: &Unread<'r, J>| {
            let (base, scope) = (String::new(), Vec::new());
            self.ids.get(&Key { json: one.json.number(), base, scope }).is_some()
        };
        rest.retain(|one| one.json.is_object() && !is_read(one));
        if rest.is_empty() {
            return Ok(());
        }
        let read: FxHashSet<usize> = self.ids.keys().map(|key| key.json).collect();
        rest.reverse();
        let mut looked_into: Vec<Unread<'r, J>> = Vec::new();
        while let Some(mut one) = rest.pop() {
            let json = one.json;
            if !json.is_object() || read.contains(&json.number()) {
                continue;
            }
            if let Some(uri) = json.get("$schema").and_then(J::text) {
                one.draft = draft_of(uri);
            }
            let draft = one.draft;
            let fields = &Fields::of(json);
            // Siblings of a reference are ignored in older drafts.
            let reference = fields.get(Keyword::Ref).and_then(J::text);
            let hidden = draft <= Draft::Draft7 && reference.is_some();
            let (first, above) = (rest.len(), Above::Unread(looked_into.len()));
            looked_into.push(one);
            for (keyword, json) in fields.given(!0) {
                let is_definitions = matches!(keyword, Keyword::Defs | Keyword::Definitions);
                let is_free = keyword == Keyword::Ref && draft == Draft::Draft4;
                if !is_known(keyword, draft) || hidden && !is_definitions || is_free {
                    continue;
                }
                if let Some(message) = fault(keyword, json) {
                    let mut place = self.place_of(above, &looked_into);
                    push_part(&mut place, keyword.name());
                    let message = format!("{} must be {message}", keyword.name());
                    return Err(refuse(&place, message, forgotten(json, fields.schema)));
                }
                inside(keyword, json, |within, json| {
                    rest.push(Unread { json, above, keyword, within, draft });
                });
            }
            rest[first..].reverse();
        }
        Ok(())
    }

    /// The pointer to a schema that is not read.
    fn place_of(&self, above: Above, looked_into: &[Unread<'r, J>]) -> String {
        let (mut above, mut chain) = (above, Vec::new());
        let node = loop {
            match above {
                Above::Node(node) => break node,
                Above::Unread(at) => {
                    chain.push(&looked_into[at]);
                    above = looked_into[at].above;
                }
            }
        };
        let mut place = self.schema.place(node);
        for one in chain.into_iter().rev() {
            push_part(&mut place, one.keyword.name());
            match one.within {
                Within::Whole => {}
                Within::Item(at) => push_part(&mut place, &at.to_string()),
                Within::Member(name) => push_part(&mut place, name),
            }
        }
        place
    }
}

/// The refusal of a value of a wrong type.
fn invalid<'r, J: Source<'r>>(keyword: Keyword, json: J, message: &str, schema: J) -> Fault {
    Fault::Part {
        parts: vec![keyword.name().to_owned()],
        message: format!("{} must be {message}", keyword.name()),
        hint: forgotten(json, schema).map(str::to_owned),
    }
}

/// What may be missing where a keyword has a schema for its value.
pub(super) fn forgotten<'r, J: Source<'r>>(json: J, schema: J) -> Option<&'static str> {
    let is_property = json.get("type").is_some() || json.get("$ref").is_some();
    (is_property && schema.get("properties").is_none())
        .then_some("a property of this name belongs under properties")
}
