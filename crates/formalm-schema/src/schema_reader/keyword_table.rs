//! The table of JSON Schema keywords: names, and the drafts in which they have an effect.

use referencing::Draft;

/// The role of a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeywordRole {
    /// Asserts or applies something, in drafts from the first to the last.
    Asserts(Draft, Draft),
    /// Identifies a schema, its draft or its parts.
    Identifies,
}

macro_rules! keywords {
    ($($keyword:ident $name:literal $role:expr,)*) => {
        /// A known keyword.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Keyword {
            $(
                #[doc = $name]
                $keyword,
            )*
        }

        impl Keyword {
            pub(super) const ALL: &[Keyword] = &[$(Keyword::$keyword,)*];

            pub(super) fn from_name(name: &str) -> Option<Keyword> {
                match name {
                    $($name => Some(Keyword::$keyword),)*
                    _ => None,
                }
            }

            pub(super) const fn name(self) -> &'static str {
                match self {
                    $(Keyword::$keyword => $name,)*
                }
            }

            pub(super) const fn role(self) -> KeywordRole {
                use Draft::{
                    Draft4 as D4, Draft6 as D6, Draft7 as D7, Draft201909 as D19,
                    Draft202012 as D20,
                };
                use KeywordRole::{Asserts, Identifies};
                match self {
                    $(Keyword::$keyword => $role,)*
                }
            }
        }
    };
}

keywords! {
    Type "type" Asserts(D4, D20),
    Properties "properties" Asserts(D4, D20),
    Required "required" Asserts(D4, D20),
    Ref "$ref" Asserts(D4, D20),
    Items "items" Asserts(D4, D20),
    AdditionalProperties "additionalProperties" Asserts(D4, D20),
    Enum "enum" Asserts(D4, D20),
    Const "const" Asserts(D6, D20),
    MultipleOf "multipleOf" Asserts(D4, D20),
    Maximum "maximum" Asserts(D4, D20),
    ExclusiveMaximum "exclusiveMaximum" Asserts(D4, D20),
    Minimum "minimum" Asserts(D4, D20),
    ExclusiveMinimum "exclusiveMinimum" Asserts(D4, D20),
    MaxLength "maxLength" Asserts(D4, D20),
    MinLength "minLength" Asserts(D4, D20),
    Pattern "pattern" Asserts(D4, D20),
    // A keyword of formalm: `pattern` in another regex dialect.
    DialectPattern "x-formalm-pattern" Asserts(D4, D20),
    Format "format" Asserts(D4, D20),
    // A keyword of formalm: string constraints of programming-language types that JSON Schema
    // cannot express.
    StringParts "x-formalm-text" Asserts(D4, D20),
    MaxItems "maxItems" Asserts(D4, D20),
    MinItems "minItems" Asserts(D4, D20),
    UniqueItems "uniqueItems" Asserts(D4, D20),
    MaxContains "maxContains" Asserts(D19, D20),
    MinContains "minContains" Asserts(D19, D20),
    MaxProperties "maxProperties" Asserts(D4, D20),
    MinProperties "minProperties" Asserts(D4, D20),
    DependentRequired "dependentRequired" Asserts(D19, D20),
    DependentSchemas "dependentSchemas" Asserts(D19, D20),
    // Later drafts dropped it; it is accepted in all.
    Dependencies "dependencies" Asserts(D4, D20),
    PatternProperties "patternProperties" Asserts(D4, D20),
    PropertyNames "propertyNames" Asserts(D6, D20),
    UnevaluatedProperties "unevaluatedProperties" Asserts(D19, D20),
    PrefixItems "prefixItems" Asserts(D20, D20),
    AdditionalItems "additionalItems" Asserts(D4, D20),
    Contains "contains" Asserts(D6, D20),
    UnevaluatedItems "unevaluatedItems" Asserts(D19, D20),
    AllOf "allOf" Asserts(D4, D20),
    AnyOf "anyOf" Asserts(D4, D20),
    OneOf "oneOf" Asserts(D4, D20),
    Not "not" Asserts(D4, D20),
    If "if" Asserts(D7, D20),
    Then "then" Asserts(D7, D20),
    Else "else" Asserts(D7, D20),
    DynamicRef "$dynamicRef" Asserts(D20, D20),
    RecursiveRef "$recursiveRef" Asserts(D19, D19),
    DollarId "$id" Asserts(D6, D20),
    Anchor "$anchor" Asserts(D19, D20),
    DynamicAnchor "$dynamicAnchor" Asserts(D20, D20),
    RecursiveAnchor "$recursiveAnchor" Asserts(D19, D19),
    Schema "$schema" Identifies,
    Id "id" Identifies,
    Defs "$defs" Identifies,
    Definitions "definitions" Identifies,
    Vocabulary "$vocabulary" Identifies,
}

#[cfg(test)]
mod tests {
    use super::Keyword;

    #[test]
    fn keywords_round_trip_through_their_names() {
        for (at, &keyword) in Keyword::ALL.iter().enumerate() {
            assert_eq!((keyword as usize, Keyword::from_name(keyword.name())), (at, Some(keyword)));
        }
    }
}
