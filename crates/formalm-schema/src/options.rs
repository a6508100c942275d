//! How a schema is read and how its members are written.

use formalm_automata::spelling::Escapes;

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

/// Policies: what a schema leaves open.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The order of members.
    pub order: Order,
    /// Blanks allowed in each gap between the parts of an object or array.
    pub blanks: u8,
    /// How strings are spelled.
    pub escapes: Escapes,
    /// Whether known formats are enforced; otherwise they are annotations.
    pub formats: bool,
    /// Whether what is not exact is taken, and told, rather than refused.
    pub approximate: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            order: Order::Schema,
            blanks: 1,
            escapes: Escapes::Minimal,
            formats: true,
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
