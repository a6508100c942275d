//! Regular languages over bytes and their lazy automata.
//!
//! ```text
//! PatternNode ──lower──► TermNode ──derive──► Automaton ──► MaterializedDfa
//! (formalm_regex)        (terms/)   by bytes  (automaton/)  (materialized/)
//! ```
//!
//! The tree of a pattern is lowered to a hash-consed *term*. Byte derivatives of terms are the
//! states of an [`Automaton`], which is determinized lazily.
//!
//! ```
//! use formalm_automata::{Automaton, AutomatonLimits, Expression};
//! use formalm_core::LazyDfa;
//! use formalm_regex::{PatternDialect, PatternFlags, parse};
//!
//! let pattern = parse("[0-9]{4}-Q[1-4]", PatternDialect::Python, PatternFlags::default())?;
//! let automaton = Automaton::new(&Expression::pattern(pattern), AutomatonLimits::default())?;
//! let state = automaton.walk(automaton.start(), b"2024-")?.expect("a viable prefix");
//! assert!(!automaton.is_accepting(state));
//! assert_eq!(automaton.shortest_completion(state)?, b"Q1");
//! # Ok::<(), formalm_core::Error>(())
//! ```

mod automaton;
mod captures;
mod language_expression;
pub mod materialized;
mod regex_source_recognizer;
mod terms;
mod transduce;

pub use automaton::{
    Automaton, AutomatonLimits, BoundedQuotient, ClassLoop, FiniteWords, LeadingWords,
    LiteralAutomaton, Saturated, WordPosition, literal_automata,
};
pub use captures::{CaptureFinder, MemberCaptures, split_among};
pub use language_expression::{Expression, LEXEME_END};
pub use regex_source_recognizer::RegexSourceRecognizer;
pub use terms::custom_language::{
    CharRecognizer, CompletionLengths, ExcludedStrings, GrowingStates, LanguageBound,
    MemberLengths, RecognizerAlphabet, RefusedLengths, RepresentativeLanguage, RepresentativeState,
    SharedRepresentative, SimpleCompletions, StateRepresentatives, TransientState,
};
pub use transduce::{EditOperations, EditRules, EditScript};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

#[cfg(test)]
mod tests;
