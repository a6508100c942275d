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
pub mod json_escapes;
mod json_name_tokens;
mod json_string_state;
mod language_expression;
mod machine;
pub mod materialized;
mod non_ascii;
mod runtime;
mod special_tokens;
pub mod syntax;
mod terms;
mod transduce;

pub use automaton::{
    Automaton, AutomatonLimits, BoundedQuotient, CharRepetition, ClassLoop, LiteralAutomaton,
    MaskClassId, RegularMaskClasses, Saturated, StateId, literal_automata,
};
pub use byte_set::ByteSet;
pub use captures::{CaptureFinder, MemberCaptures, split_among};
pub use char_partition::{CharPartition, Utf8Step};
pub use charset::{CharSet, ClassCover, WIDE_PARTS, wide_parts};
pub use combined::{
    IdentityClasses, Intersection, Position, PositionAutomaton, Prefix, PrefixedMachine,
    PrefixedMaskClasses, SCRATCH_BYTES, ScratchCache, ScratchMachine, ScratchMaskAutomaton,
    StatesAsClasses,
};
pub use error::{CallbackError, Error, Resource, SourceSpan};
pub use json_name_tokens::NameTokens;
pub use json_string_state::{JsonStringState, step_json_string};
pub use language_expression::{Expression, LEXEME_END};
pub use machine::{
    AcceptingMaskAutomaton, AcceptingVisitor, ClassVisitor, CompletionLength, LexemeEnd,
    LexemeStep, LexerContextId, LexerStateId, LexicalMachine, LiteralList, Machine, MaskAutomaton,
    MaskClasses, NEEDS_DEEPER_STACK, NoLexicalMachine, OpaqueCache, ParserStateId, Precision,
    ProductCache, RecheckPredicate, ScratchPosition, StackPrefixId, ValueEnd, group_by_successor,
    into_dyn_machine, random_member, require_exact, self_loop_repetition,
};
pub use non_ascii::reads_all_non_ascii;
pub use runtime::{
    AppendVec, ForkCheck, ForkSafeMutex, LruCache, OnceSlice, SetOnce, StepBudget, deadline, fork,
    interrupt, pool, record_steps, steps_taken,
};
pub use special_tokens::{SPECIAL_BYTE, len_outside_special, special_token_bytes};
pub use terms::custom_language::{
    CharRecognizer, GrowingStates, MemberLengths, RecognizerAlphabet, RepresentativeState,
    SharedRepresentative, StateRepresentatives,
};
pub use transduce::{EditOperations, EditRules, EditScript};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

#[cfg(test)]
mod tests;
