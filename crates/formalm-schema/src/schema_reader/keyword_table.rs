//! The table of JSON Schema keywords: names, and the drafts in which they have an effect.

use referencing::Draft;

/// The role of a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Asserts or applies something, in drafts from the first to the last.
    Says(Draft, Draft),
    /// Identifies a schema, its draft or its parts.
    Names,
}

macro_rules! keywords {
    ($($keyword:ident $name:literal $use:expr,)*) => {
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

            pub(super) fn of(name: &str) -> Option<Keyword> {
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

            pub(super) const fn used(self) -> Use {
                use Draft::{
                    Draft4 as D4, Draft6 as D6, Draft7 as D7, Draft201909 as D19,
                    Draft202012 as D20,
                };
                use Use::{Names, Says};
                match self {
                    $(Keyword::$keyword => $use,)*
                }
            }
        }
    };
}

keywords! {
    Type "type" Says(D4, D20),
    Properties "properties" Says(D4, D20),
    Required "required" Says(D4, D20),
    Ref "$ref" Says(D4, D20),
    Items "items" Says(D4, D20),
    AdditionalProperties "additionalProperties" Says(D4, D20),
    Enum "enum" Says(D4, D20),
    Const "const" Says(D6, D20),
    MultipleOf "multipleOf" Says(D4, D20),
    Maximum "maximum" Says(D4, D20),
    ExclusiveMaximum "exclusiveMaximum" Says(D4, D20),
    Minimum "minimum" Says(D4, D20),
    ExclusiveMinimum "exclusiveMinimum" Says(D4, D20),
    MaxLength "maxLength" Says(D4, D20),
    MinLength "minLength" Says(D4, D20),
    Pattern "pattern" Says(D4, D20),
    // A keyword of formalm: `pattern` in another regex dialect.
    OtherPattern "x-formalm-pattern" Says(D4, D20),
    Format "format" Says(D4, D20),
    // A keyword of formalm: string constraints of programming-language types that JSON Schema
    // cannot express.
    TextParts "x-formalm-text" Says(D4, D20),
    MaxItems "maxItems" Says(D4, D20),
    MinItems "minItems" Says(D4, D20),
    UniqueItems "uniqueItems" Says(D4, D20),
    MaxContains "maxContains" Says(D19, D20),
    MinContains "minContains" Says(D19, D20),
    MaxProperties "maxProperties" Says(D4, D20),
    MinProperties "minProperties" Says(D4, D20),
    DependentRequired "dependentRequired" Says(D19, D20),
    DependentSchemas "dependentSchemas" Says(D19, D20),
    // Later drafts dropped it; it is accepted in all.
    Dependencies "dependencies" Says(D4, D20),
    PatternProperties "patternProperties" Says(D4, D20),
    PropertyNames "propertyNames" Says(D6, D20),
    UnevaluatedProperties "unevaluatedProperties" Says(D19, D20),
    PrefixItems "prefixItems" Says(D20, D20),
    AdditionalItems "additionalItems" Says(D4, D20),
    Contains "contains" Says(D6, D20),
    UnevaluatedItems "unevaluatedItems" Says(D19, D20),
    AllOf "allOf" Says(D4, D20),
    AnyOf "anyOf" Says(D4, D20),
    OneOf "oneOf" Says(D4, D20),
    Not "not" Says(D4, D20),
    If "if" Says(D7, D20),
    Then "then" Says(D7, D20),
    Else "else" Says(D7, D20),
    DynamicRef "$dynamicRef" Says(D20, D20),
    RecursiveRef "$recursiveRef" Says(D19, D19),
    DollarId "$id" Says(D6, D20),
    Anchor "$anchor" Says(D19, D20),
    DynamicAnchor "$dynamicAnchor" Says(D20, D20),
    RecursiveAnchor "$recursiveAnchor" Says(D19, D19),
    Schema "$schema" Names,
    Id "id" Names,
    Defs "$defs" Names,
    Definitions "definitions" Names,
    Vocabulary "$vocabulary" Names,
}

#[cfg(test)]
mod tests {
    use super::Keyword;

    #[test]
    fn keywords_have_their_places_and_names() {
        for (at, &keyword) in Keyword::ALL.iter().enumerate() {
            assert_eq!((keyword as usize, Keyword::of(keyword.name())), (at, Some(keyword)));
        }
    }
}
