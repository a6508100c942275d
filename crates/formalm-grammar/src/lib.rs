#![doc = include_str!("../README.md")]

mod ambiguity;
mod automaton;
mod batched_reading;
mod completion;
mod configuration_step;
mod dead_end_proof;
mod expected_terminals;
mod grammar;
mod grammar_state;
mod gss;
mod indentation;
mod lexer;
mod limits;
mod list_interner;
mod lr0;
mod mask_classes;
mod normal_form;
mod notation;
mod scratch_states;
mod sublanguages;
mod transition_table;
mod tree_counts;
mod trees;
mod unusable_alternatives;

pub use ambiguity::{Ambiguity, Conflict, ambiguity};
pub use automaton::GrammarAutomaton;
pub use grammar::{
    Capture, Embedded, Grammar, LexemeReplacement, Lexing, Node, Note, Rule, Terminal,
};
pub use indentation::{Indentation, Rules};
pub use limits::Limits;
pub use mask_classes::GrammarKeys;
pub use notation::{Inlined, Levels, Options, Syntax, inlined, parse, parse_shaped, parse_with};
pub use sublanguages::external_parsers::{Ways, Within};
pub use tree_counts::{Lengths, tree_counts};
pub use trees::tree_shape::{Kind, Shaped, Shown};
pub use trees::{Beginnings, Branch, Parse, Part, Trees};
pub use unusable_alternatives::unusable;

#[cfg(test)]
mod tests;
