//! Context-free grammars as lazy deterministic machines over bytes.
//!
//! A front-end reads the text of a grammar into a [`Grammar`]; [`GrammarAutomaton`] is its
//! machine. Between the two: right-hand sides become plain productions, useless ones are dropped
//! and cycles of units merged ([`prepare`]); LR(0) states are built on demand ([`tables`]), stacks
//! of them are interned ([`stacks`]); terminals are read together by one lazy lexer ([`lexer`]).
//! Nothing recurses along a text or its nesting.

mod ambiguity;
mod asked;
mod automaton;
mod bounds;
mod certificate;
mod completions;
mod contexts;
mod core;
mod counting;
mod embedded;
mod expected;
mod firmness;
mod grammar;
mod indentation;
mod keys;
mod layout;
mod lexer;
mod limits;
mod lines;
mod lists;
mod lower;
mod machines;
mod outlines;
mod own;
mod places;
mod prepare;
mod readings;
mod rests;
mod rows;
mod scans;
mod search;
mod settled;
mod shown;
mod spelling;
mod stacks;
mod tables;
mod text;
mod texts;
mod trees;
mod units;
mod unusable;

pub use ambiguity::{Ambiguity, Conflict, ambiguity};
pub use asked::{Ways, Within};
pub use automaton::GrammarAutomaton;
pub use counting::{Lengths, tree_counts};
pub use grammar::{Capture, Embedded, Grammar, Lexing, Node, Note, Replaced, Rule, Terminal};
pub use indentation::{Indentation, Rules};
pub use keys::GrammarKeys;
pub use limits::Limits;
pub use shown::{Kind, Shaped, Shown};
pub use text::{Inlined, Levels, Options, Syntax, inlined, parse, parse_shaped, parse_with};
pub use trees::{Beginnings, Branch, Parse, Part, Trees};
pub use unusable::unusable;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
