//! Options of a schema automaton: how the schema is interpreted and how instances are spelled, and
//! resource limits.

use formalm_automata::json_escapes::EscapePolicy;

use crate::formats::NAMES;

/// The order in which the properties of an object may come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// One fixed order at each object: declared properties first, in the order of the schema, then
    /// required properties that are not declared, then all others in any order.
    #[default]
    Schema,
    /// Any order.
    Any,
}

/// A set of known values of `format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats(u32);

impl Formats {
    /// All known formats.
    pub const ALL: Formats = Formats(u32::MAX);
    /// No format.
    pub const NONE: Formats = Formats(0);

    /// Returns the set of the named formats, or `None` if one is unknown.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Formats> {
        names.into_iter().try_fold(Formats::NONE, |set, name| {
            let at = NAMES.iter().position(|known| *known == name)?;
            Some(Formats(set.0 | 1 << at))
        })
    }

    /// Returns `true` if a format is known and in the set.
    pub(crate) fn enforces(self, name: &str) -> bool {
        NAMES.iter().position(|known| *known == name).is_some_and(|at| self.0 >> at & 1 == 1)
    }
}

/// A short string of whitespace: spaces, tabs and line ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blanks {
    bytes: [u8; Blanks::MOST],
    length: u8,
}

impl Blanks {
    /// Maximum length, in bytes. It is bounded so that the indentation of a nested line fits a
    /// counter. Chosen, not measured.
    pub const MOST: usize = 32;

    /// Converts a string. Returns `None` if it is too long or contains other characters.
    pub fn of(text: &str) -> Option<Blanks> {
        let mut blanks = Blanks::default();
        blanks.bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        blanks.length = text.len() as u8;
        text.bytes().all(|byte| b" \n\t\r".contains(&byte)).then_some(blanks)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The exact whitespace between the tokens of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The indentation added at each level; `None` writes everything on one line. Empty objects and
    /// arrays are never broken.
    pub indent: Option<Blanks>,
    /// Whitespace after a comma, before the line end.
    pub after_comma: Blanks,
    /// Whitespace before a colon.
    pub before_colon: Blanks,
    /// Whitespace after a colon.
    pub after_colon: Blanks,
}

/// Choices that a schema leaves open.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The order of properties.
    pub order: Order,
    /// Maximum whitespace, in bytes, in each gap between the tokens of an object or array.
    pub blanks: u8,
    /// Exact whitespace; overrides the maximum.
    pub layout: Option<Layout>,
    /// Allows exponents in numbers that the schema constrains.
    pub exponents: bool,
    /// How strings are escaped.
    pub escapes: EscapePolicy,
    /// The formats that are enforced; all others are annotations.
    pub formats: Formats,
    /// Allows undeclared properties where `properties` or `patternProperties` comes without
    /// `additionalProperties`.
    pub takes_more: bool,
    /// Maximum nesting of arrays and objects where the schema does not constrain the value.
    pub depth: u32,
    /// Accepts schemas that cannot be enforced exactly, with notes, instead of refusing them.
    pub approximate: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            order: Order::Schema,
            blanks: 1,
            layout: None,
            exponents: false,
            escapes: EscapePolicy::Minimal,
            formats: Formats::ALL,
            takes_more: true,
            depth: u32::MAX,
            approximate: false,
        }
    }
}

/// Resource limits of an automaton. Exceeding one is
/// [`Error::Limit`](formalm_automata::Error::Limit).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of states.
    pub states: u64,
    /// Maximum memory, in bytes.
    pub bytes: u64,
    /// Maximum number of solver steps to decide one state's viability.
    pub steps: u64,
    /// Maximum nesting of an instance.
    pub nesting: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { states: 2_000_000, bytes: 512 << 20, steps: 60_000, nesting: 1_000 }
    }
}
