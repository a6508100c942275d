//! Bytes and states: patterns, regular languages and their lazy machines.
//!
//! Nothing here knows of tokens. A pattern is parsed ([`syntax`]) into a tree, the tree becomes
//! a term, and terms are determinised lazily into a machine over bytes.

mod alternatives;
mod atomic;
mod automaton;
mod bytes;
mod characters;
pub mod charset;
mod chunks;
mod combined;
mod dag;
pub mod deadline;
mod decided;
mod derive;
mod drawing;
pub mod error;
pub mod explicit;
mod expression;
mod facts;
pub mod fork;
mod grouping;
mod in_text;
pub mod interrupt;
mod lasting;
mod lexemes;
mod liveness;
mod lock;
mod loops;
mod lower;
mod machine;
mod near;
mod partition;
mod patience;
pub mod pool;
mod prefixed;
mod recent;
mod recognized;
mod set_once;
mod shortest;
mod spans;
mod special;
pub mod spelling;
mod steps;
pub mod syntax;
mod table;
mod term;
mod token_names;
mod transduce;
mod union;
mod viability;
mod words;

pub use automaton::{Automaton, Limits, StateId};
pub use bytes::ByteSet;
pub use characters::every_character;
pub use charset::{CharSet, Cover, WIDE_PARTS, wide_parts};
pub use chunks::Chunks;
pub use combined::{
    AHEAD_BYTES, Ahead, Composed, Filtered, Letter, Lookahead, Plainly, StateKeys, StepsAhead,
};
pub use drawing::random_member;
pub use error::{Error, Raised, Resource, Span};
pub use expression::{EDGE, Expression};
pub use grouping::{Captured, Grouping, divided};
pub use in_text::{InText, spell};
pub use lexemes::{BEYOND, Context, Ending, Lexemes, NoLexemes, Outline, Place, Progress, Scan};
pub use lock::{Lock, Survey};
pub use loops::loops_of;
pub use machine::{
    Aside, Beside, Completion, Doubts, EndPurpose, EndSteps, Keys, Look, Machine, Purpose,
    Remembered, alike, exact_only, part,
};
pub use near::Near;
pub use partition::{Partition, Reading};
pub use patience::{Patience, note_steps, steps_taken};
pub use prefixed::{Front, Prefixed, PrefixedKeys};
pub use recent::Recent;
pub use recognized::{Like, Recognizer, Resemblance};
pub use set_once::{Segment, SetOnce};
pub use special::{SPECIAL, outside_special, special_bytes};
pub use steps::{Ended, Steps, Texts};
pub use token_names::TokenNames;
pub use transduce::{Edits, Operations, Script};
pub use viability::{KeyId, Repetition, Viability};
pub use words::{Word, words};

#[cfg(test)]
mod tests;
