//! Regular languages over bytes, their lazy automata, and the traits every machine implements.
//!
//! ```text
//! pattern ──parse──► PatternNode ──lower──► TermNode ──derive──► Automaton ──┐
//! (syntax/)          (tree)                 (terms/)   by bytes  (automaton/)├─► dyn Machine
//! grammars, schemas (other crates), combined/ ───────────────────────────────┘       │
//!                                                             MaskClasses, MaskAutomaton
//! ```
//!
//! A pattern is parsed into a syntax tree ([`syntax`]). The tree is lowered to a hash-consed
//! *term*. Byte derivatives of terms are the states of an [`Automaton`], which is determinized
//! lazily. Everything downstream talks to the trait [`Machine`]: `start`, `step`, `is_accepting`,
//! plus optional knowledge that makes masks fast.
//!
//! ```
//! use formalm_automata::syntax::{PatternDialect, PatternFlags, parse};
//! use formalm_automata::{Automaton, AutomatonLimits, Expression, Machine};
//!
//! let pattern = parse("[0-9]{4}-Q[1-4]", PatternDialect::Python, PatternFlags::default())?;
//! let automaton = Automaton::new(&Expression::pattern(pattern), AutomatonLimits::default())?;
//! let state = automaton.walk(automaton.start(), b"2024-")?.expect("a viable prefix");
//! assert!(!automaton.is_accepting(state));
//! assert_eq!(automaton.shortest_completion(state)?, b"Q1");
//! # Ok::<(), formalm_automata::Error>(())
//! ```

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
pub use captures::{Grouping, MemberCaptures, divided};
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

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

#[cfg(test)]
mod tests;
