//! Options of a schema automaton: how the schema is interpreted and how instances are spelled, and
//! resource limits.

use formalm_json::escapes::EscapePolicy;

use crate::formats::NAMES;

/// The order in which the properties of an object may come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PropertyOrder {
    /// One fixed order at each object: declared properties first, in the order of the schema, then
    /// required properties that are not declared, then all others in any order.
    #[default]
    Schema,
    /// Any order.
    Any,
}

/// A set of known values of `format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatSet(u32);

impl FormatSet {
    /// All known formats.
    pub const ALL: FormatSet = FormatSet(u32::MAX);
    /// No format.
    pub const NONE: FormatSet = FormatSet(0);

    /// Returns the set of the named formats, or `None` if one is unknown.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<FormatSet> {
        names.into_iter().try_fold(FormatSet::NONE, |set, name| {
            let at = NAMES.iter().position(|known| *known == name)?;
            Some(FormatSet(set.0 | 1 << at))
        })
    }

    /// Returns `true` if a format is known and in the set.
    pub(crate) fn enforces(self, name: &str) -> bool {
        NAMES.iter().position(|known| *known == name).is_some_and(|at| self.0 >> at & 1 == 1)
    }
}

/// A short string of whitespace: spaces, tabs and line ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Whitespace {
    bytes: [u8; Whitespace::MAX_LEN],
    length: u8,
}

impl Whitespace {
    /// Maximum length, in bytes. It is bounded so that the indentation of a nested line fits a
    /// counter. Chosen, not measured.
    pub const MAX_LEN: usize = 32;

    /// Converts a string. Returns `None` if it is too long or contains other characters.
    pub fn parse(text: &str) -> Option<Whitespace> {
        let mut blanks = Whitespace::default();
        blanks.bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        blanks.length = text.len() as u8;
        text.bytes().all(|byte| b" \n\t\r".contains(&byte)).then_some(blanks)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The exact whitespace between the tokens of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WhitespaceLayout {
    /// The indentation added at each level; `None` writes everything on one line. Empty objects and
    /// arrays are never broken.
    pub indent: Option<Whitespace>,
    /// Whitespace after a comma, before the line end.
    pub after_comma: Whitespace,
    /// Whitespace before a colon.
    pub before_colon: Whitespace,
    /// Whitespace after a colon.
    pub after_colon: Whitespace,
}

/// Choices that a schema leaves open.
#[derive(Clone, Copy, Debug)]
pub struct JsonSchemaOptions {
    /// The order of properties.
    pub property_order: PropertyOrder,
    /// Maximum whitespace, in bytes, in each gap between the tokens of an object or array.
    pub max_whitespace: u8,
    /// Exact whitespace; overrides the maximum.
    pub layout: Option<WhitespaceLayout>,
    /// Allows exponents in numbers that the schema constrains.
    pub allow_exponents: bool,
    /// How strings are escaped.
    pub escapes: EscapePolicy,
    /// The formats that are enforced; all others are annotations.
    pub formats: FormatSet,
    /// Allows undeclared properties where `properties` or `patternProperties` comes without
    /// `additionalProperties`.
    pub allow_additional: bool,
    /// Maximum nesting of arrays and objects where the schema does not constrain the value.
    pub max_free_depth: u32,
    /// Accepts schemas that cannot be enforced exactly, with notes, instead of refusing them.
    pub allow_approximate: bool,
}

impl Default for JsonSchemaOptions {
    fn default() -> JsonSchemaOptions {
        JsonSchemaOptions {
            property_order: PropertyOrder::Schema,
            max_whitespace: 1,
            layout: None,
            allow_exponents: false,
            escapes: EscapePolicy::Minimal,
            formats: FormatSet::ALL,
            allow_additional: true,
            max_free_depth: u32::MAX,
            allow_approximate: false,
        }
    }
}

/// Resource limits of an automaton. Exceeding one is
/// [`Error::Limit`](formalm_core::Error::Limit).
#[derive(Clone, Copy, Debug)]
pub struct JsonSchemaLimits {
    /// Maximum number of states.
    pub states: u64,
    /// Maximum memory, in bytes.
    pub bytes: u64,
    /// Maximum number of solver steps to decide one state's viability.
    pub steps: u64,
    /// Maximum nesting of an instance.
    pub nesting: u32,
}

impl Default for JsonSchemaLimits {
    fn default() -> JsonSchemaLimits {
        JsonSchemaLimits { states: 2_000_000, bytes: 512 << 20, steps: 60_000, nesting: 1_000 }
    }
}
