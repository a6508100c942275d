//! The terminals of `%ignore` and `%whole`.

use formalm_automata::{Error, Span};

use crate::grammar::{Lexing, Terminal};
use crate::notation::SyntaxTree;
use crate::notation::build::{GrammarBuilder, MAX_DEPTH};
use crate::notation::lark::terminal_length::PatternLengths;
use crate::notation::syntax_tree::{to_source, unwrap_single};
use crate::notation::terminal_order::{RankedTerminal, TerminalRank};

impl GrammarBuilder<'_> {
    pub(in crate::notation) fn ignored_terminals(&mut self) -> Result<Vec<usize>, Error> {
        self.source.ignored.iter().map(|(tree, span)| self.ignored(tree, *span)).collect()
    }

    fn ignored(&mut self, tree: &SyntaxTree, span: Span) -> Result<usize, Error> {
        match unwrap_single(tree) {
            SyntaxTree::Name(name, _, span) => self.named(name, *span),
            // A terminal of its own, even if another one has the same string.
            SyntaxTree::Atom(atom) if self.lexing == Lexing::First => {
                let sort_name = format!("__IGNORE_{}", self.terminals.len());
                let (text, pattern_lengths) = (atom.text.clone(), PatternLengths::of_atom(atom));
                let kind = TerminalRank { priority: 0, text, pattern_lengths, sort_name };
                let at =
                    self.terminal(atom.source_text.clone(), atom.node.clone(), kind, atom.span)?;
                self.by_atom.insert(atom.identity.clone(), at);
                Ok(at)
            }
            SyntaxTree::Atom(atom) => self.anonymous(atom),
            tree if self.uses_algebra(tree) => {
                let language = self.regular(tree, MAX_DEPTH, span)?;
                self.language_terminal(&to_source(tree), 0, language, span)
            }
            tree => {
                let node = self.pattern(tree, MAX_DEPTH, span)?;
                let sort_name = format!("__IGNORE_{}", self.terminals.len());
                let kind = TerminalRank {
                    priority: 0,
                    text: None,
                    pattern_lengths: self.pattern_lengths(tree),
                    sort_name,
                };
                self.terminal(to_source(tree), node, kind, span)
            }
        }
    }

    /// Returns the terminals that no lexeme may end inside. They are distinct from those of rules.
    pub(in crate::notation) fn uncuttable_terminals(&mut self) -> Result<Vec<usize>, Error> {
        self.source.whole.iter().map(|(tree, span)| self.whole(tree, *span)).collect()
    }

    fn whole(&mut self, tree: &SyntaxTree, span: Span) -> Result<usize, Error> {
        if self.lexing != Lexing::Longest {
            let message = "%whole forbids lexemes that something longer begins with";
            let hint = Some("it goes with the longest lexemes only: lexing=\"longest\"");
            return Err(self.refuse(span, message, hint));
        }
        let name = format!("%whole {}", to_source(tree));
        let language = self.regular(tree, MAX_DEPTH, span)?;
        let kind = TerminalRank {
            priority: i64::MIN,
            text: None,
            pattern_lengths: PatternLengths::default(),
            sort_name: name.clone(),
        };
        let terminal = Terminal { name, language, embedded: None, span: Some(span) };
        self.terminals.push(RankedTerminal { terminal, kind });
        Ok(self.terminals.len() - 1)
    }
}
