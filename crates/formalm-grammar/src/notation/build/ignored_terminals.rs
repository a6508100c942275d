//! What may stand anywhere, as terminals.

use formalm_automata::{Error, Span};

use crate::grammar::{Lexing, Terminal};
use crate::notation::Tree;
use crate::notation::build::{Build, DEPTH};
use crate::notation::lark::terminal_length::Shape;
use crate::notation::syntax_tree::{only, written};
use crate::notation::terminal_order::{Kind, Ranked};

impl Build<'_> {
    pub(in crate::notation) fn all_ignored(&mut self) -> Result<Vec<usize>, Error> {
        self.source.ignored.iter().map(|(tree, span)| self.ignored(tree, *span)).collect()
    }

    fn ignored(&mut self, tree: &Tree, span: Span) -> Result<usize, Error> {
        match only(tree) {
            Tree::Name(name, _, span) => self.named(name, *span),
            // A terminal of its own, although another one may have the same text.
            Tree::Leaf(leaf) if self.lexing == Lexing::First => {
                let sorted = format!("__IGNORE_{}", self.terminals.len());
                let (text, shape) = (leaf.text.clone(), Shape::of_leaf(leaf));
                let kind = Kind { priority: 0, text, shape, sorted };
                let at = self.terminal(leaf.written.clone(), leaf.node.clone(), kind, leaf.span)?;
                self.by_text.insert(leaf.key.clone(), at);
                Ok(at)
            }
            Tree::Leaf(leaf) => self.anonymous(leaf),
            tree if self.is_algebra(tree) => {
                let language = self.regular(tree, DEPTH, span)?;
                self.given_terminal(&written(tree), 0, language, span)
            }
            tree => {
                let node = self.pattern(tree, DEPTH, span)?;
                let sorted = format!("__IGNORE_{}", self.terminals.len());
                let kind = Kind { priority: 0, text: None, shape: self.shape(tree), sorted };
                self.terminal(written(tree), node, kind, span)
            }
        }
    }

    /// Terminals that no lexeme may end within; never those of rules, whatever they are called.
    pub(in crate::notation) fn all_whole(&mut self) -> Result<Vec<usize>, Error> {
        self.source.whole.iter().map(|(tree, span)| self.whole(tree, *span)).collect()
    }

    fn whole(&mut self, tree: &Tree, span: Span) -> Result<usize, Error> {
        if self.lexing != Lexing::Longest {
            let message = "%whole forbids lexemes that something longer begins with";
            let hint = Some("it goes with the longest lexemes only: lexing=\"longest\"");
            return Err(self.refuse(span, message, hint));
        }
        let name = format!("%whole {}", written(tree));
        let language = self.regular(tree, DEPTH, span)?;
        let kind =
            Kind { priority: i64::MIN, text: None, shape: Shape::default(), sorted: name.clone() };
        let terminal = Terminal { name, language, embedded: None, span: Some(span) };
        self.terminals.push(Ranked { terminal, kind });
        Ok(self.terminals.len() - 1)
    }
}
