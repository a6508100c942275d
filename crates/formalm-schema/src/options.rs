//! How a schema is read and how its members are written.

use formalm_automata::spelling::Escapes;

use crate::formats::NAMES;

/// In which order the members of an object come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// One fixed order at each place: declared names first, as the schema declares them, then the
    /// required names that are not declared, then all others in any order.
    #[default]
    Schema,
    /// Any order.
    Any,
}

/// A set of the formats that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats(u32);

impl Formats {
    /// All of them.
    pub const ALL: Formats = Formats(u32::MAX);
    /// None of them.
    pub const NONE: Formats = Formats(0);

    /// Formats by name; `None` if one is not known.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Formats> {
        names.into_iter().try_fold(Formats::NONE, |set, name| {
            let at = NAMES.iter().position(|known| *known == name)?;
            Some(Formats(set.0 | 1 << at))
        })
    }

    /// Whether a format is known and among these.
    pub(crate) fn enforces(self, name: &str) -> bool {
        NAMES.iter().position(|known| *known == name).is_some_and(|at| self.0 >> at & 1 == 1)
    }
}

/// A few blanks: spaces, tabs and line ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blanks {
    bytes: [u8; Blanks::MOST],
    length: u8,
}

impl Blanks {
    /// Most blanks in one place. Levels are limited, so that those of a line can be counted.
    pub const MOST: usize = 32;

    /// Blanks as a text has them; `None` if there are too many, or others.
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

/// Exactly which blanks stand between the parts of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// What each level adds to the beginning of a line; none is one line for all. Objects and
    /// arrays without parts are never broken.
    pub indent: Option<Blanks>,
    /// Behind a comma, before the end of the line.
    pub after_comma: Blanks,
    /// Before a colon.
    pub before_colon: Blanks,
    /// Behind a colon.
    pub after_colon: Blanks,
}

/// Policies: what a schema leaves open.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The order of members.
    pub order: Order,
    /// Blanks allowed in each gap between the parts of an object or array.
    pub blanks: u8,
    /// Exactly these blanks instead.
    pub layout: Option<Layout>,
    /// Whether numbers have exponents where something is asked of them.
    pub exponents: bool,
    /// How strings are spelled.
    pub escapes: Escapes,
    /// The formats that are enforced; others are annotations.
    pub formats: Formats,
    /// Whether objects take members that nothing is said of, where `additionalProperties` is not
    /// given beside `properties` or `patternProperties`.
    pub takes_more: bool,
    /// Most containers nested in each other where nothing is said of a value.
    pub depth: u32,
    /// Whether what is not exact is taken, and told, rather than refused.
    pub approximate: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            order: Order::Schema,
            blanks: 1,
            layout: None,
            exponents: false,
            escapes: Escapes::Minimal,
            formats: Formats::ALL,
            takes_more: true,
            depth: u32::MAX,
            approximate: false,
        }
    }
}

/// What the machine may use. Exceeding it is an error.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// States kept.
    pub states: u64,
    /// Bytes of memory.
    pub bytes: u64,
    /// Steps of the search that decides whether one state is viable.
    pub steps: u64,
    /// Nesting of the text.
    pub nesting: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { states: 2_000_000, bytes: 512 << 20, steps: 60_000, nesting: 1_000 }
    }
}
