#![doc = include_str!("../README.md")]

mod ambiguity;
mod automaton;
mod batched_reading;
mod byte_transitions;
mod completion;
mod configuration_reader;
mod configurations;
mod dead_end_proof;
mod expected_terminals;
mod grammar;
mod grammar_state;
mod gss;
mod indentation;
mod lexer;
mod limits;
mod longest_match_conflicts;
mod lr0;
mod mask_classes;
mod normal_form;
mod notation;
mod parser;
mod scratch_states;
mod sublanguages;
mod tree_counts;
mod trees;

pub use ambiguity::{AmbiguityReport, LalrConflict, ambiguity};
pub use automaton::GrammarAutomaton;
pub use grammar::{
    Capture, Grammar, GrammarNote, LexemeReplacement, Lexing, Rule, RuleBody, Sublanguage, Terminal,
};
pub use indentation::{ColumnRules, Indentation};
pub use limits::GrammarLimits;
pub use longest_match_conflicts::unusable_alternatives;
pub use mask_classes::GrammarMaskClasses;
pub use notation::{
    IndentationNames, InlineLanguage, ParseOptions, Syntax, inline_languages, parse, parse_shaped,
    parse_with,
};
pub use sublanguages::external_parsers::{ExternalParserState, SeparatedState};
pub use tree_counts::{CountOptions, tree_counts};
pub use trees::tree_shape::{RuleKind, RuleTreeShape, ShapedGrammar};
pub use trees::{FirstTerminals, ParseResult, TreeNode, TreeNodeKind, TreeParser};

/// The id of nothing in the tables of this crate: of the empty list, and where something is absent.
const NOTHING: u32 = formalm_core::ListInterner::EMPTY;

#[cfg(test)]
mod tests;
