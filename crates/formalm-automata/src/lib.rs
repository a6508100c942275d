//! Bytes and states: patterns, regular languages and their lazy machines.
//!
//! Nothing here knows of tokens. A pattern is parsed ([`syntax`]) into a tree, the tree becomes
//! a term, and terms are determinised lazily into a machine over bytes.

mod automaton;
mod byte_set;
mod captures;
mod char_partition;
pub mod charset;
mod combined;
pub mod error;
pub mod explicit;
mod expression;
mod json_name_tokens;
mod json_string_state;
mod machine;
mod non_ascii;
mod runtime;
mod special_tokens;
pub mod spelling;
pub mod syntax;
mod terms;
mod transduce;

pub use automaton::{
    Automaton, KeyId, Limits, Repetition, Saturated, StateId, Viability, Word, words,
};
pub use byte_set::ByteSet;
pub use captures::{CaptureGroups, Grouping, divided};
pub use char_partition::{Partition, Reading};
pub use charset::{CharSet, Cover, WIDE_PARTS, wide_parts};
pub use combined::{
    Ahead, Composed, Filtered, Front, Letter, Lookahead, Plainly, Prefixed, PrefixedKeys,
    SCRATCH_BYTES, ScratchMaskAutomaton, StateKeys,
};
pub use error::{Error, Raised, Resource, Span};
pub use expression::{EDGE, Expression};
pub use json_name_tokens::TokenNames;
pub use json_string_state::{InText, spell};
pub use machine::{
    Aside, BEYOND, Beside, Completion, Context, Doubts, EndPurpose, EndSteps, Ended, Ending, Keys,
    Lexemes, Look, Machine, NoLexemes, Outline, Place, Progress, Purpose, Remembered, Scan, Steps,
    Texts, alike, exact_only, loops_of, part, random_member,
};
pub use non_ascii::every_character;
pub use runtime::{
    Chunks, Lock, Patience, Recent, Segment, SetOnce, Survey, deadline, fork, interrupt,
    note_steps, pool, steps_taken,
};
pub use special_tokens::{SPECIAL, outside_special, special_bytes};
pub use terms::custom_language::{Like, Recognizer, Resemblance};
pub use transduce::{EditScript, Edits, Operations};

#[cfg(test)]
mod tests;
