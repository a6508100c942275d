//! Terminal algebra: parts combined as languages with `A - B`, `A & B` and `~A`, or given as
//! languages.
//!
//! Context-free languages are not closed under difference and intersection, so the parts must be
//! regular: no rule in them is recursive.

use formalm_automata::Expression;
use formalm_core::{Error, SourceSpan};

use crate::grammar::Terminal;
use crate::limits::check;
use crate::notation::SyntaxTree;
use crate::notation::atoms::{Atom, pattern_expression};
use crate::notation::grammar_builder::{GrammarBuilder, MAX_DEPTH, MAX_PARTS};
use crate::notation::lark::terminal_length::PatternLengths;
use crate::notation::lookaround::{is_lazy, lookaround_of};
use crate::notation::syntax_tree::{substitute, to_source};
use crate::notation::terminal_order::{RankedTerminal, TerminalRank};

impl GrammarBuilder<'_> {
    /// Returns the terminal of a difference.
    pub(in crate::notation) fn difference(
        &mut self,
        first: &SyntaxTree,
        second: &SyntaxTree,
        span: SourceSpan,
    ) -> Result<usize, Error> {
        let name = format!("{} - {}", to_source(first), to_source(second));
        if let Some(&at) = self.by_atom.get(&name) {
            return Ok(at);
        }
        let whole = self.regular(first, MAX_DEPTH, span)?;
        let without = self.regular(second, MAX_DEPTH, span)?;
        let language = whole.difference(without)?;
        let terminal =
            Terminal { name: name.clone(), language, sublanguage: None, span: Some(span) };
        let (pattern_lengths, sort_name) = (PatternLengths::default(), name.clone());
        self.terminals.push(RankedTerminal {
            terminal,
            kind: TerminalRank { priority: 0, text: None, pattern_lengths, sort_name },
        });
        self.by_atom.insert(name, self.terminals.len() - 1);
        Ok(self.terminals.len() - 1)
    }

    /// Finds the terminals that must be combined as languages because they are not patterns.
    pub(in crate::notation) fn find_algebra_terminals(&mut self) {
        let mut before = usize::MAX;
        while before != self.algebra_terminals.len() {
            before = self.algebra_terminals.len();
            for one in &self.source.terminals {
                if one.attributes.are_bounds() || self.uses_algebra(&one.body) {
                    self.algebra_terminals.insert(&one.name);
                }
            }
        }
    }

    /// Returns `true` if a part of a terminal is not a pattern.
    pub(in crate::notation) fn uses_algebra(&self, tree: &SyntaxTree) -> bool {
        match tree {
            SyntaxTree::Atom(_) => false,
            SyntaxTree::Name(name, ..) => {
                let name = name.as_str();
                self.algebra_terminals.contains(name) || self.given.contains_key(name)
            }
            SyntaxTree::Sequence(list) | SyntaxTree::Choice(list) => {
                list.iter().any(|one| self.uses_algebra(one))
            }
            SyntaxTree::Optional(one) | SyntaxTree::Repeat(one, ..) => self.uses_algebra(one),
            SyntaxTree::Difference(..)
            | SyntaxTree::Intersection(..)
            | SyntaxTree::Complement(..) => true,
        }
    }

    /// Returns the language of an atom. Fails if it depends on its context.
    fn alone(&self, atom: &Atom) -> Result<Expression, Error> {
        let lookaround = lookaround_of(&atom.node);
        if lookaround.ahead || lookaround.before.is_some() || is_lazy(&atom.node) {
            let message = format!(
                "{} has lookaround or lazy quantifiers, which are not supported in a terminal with \
                 & or ~",
                atom.source_text
            );
            return Err(self.refuse(atom.span, &message, Some("write a pattern without them")));
        }
        Ok(pattern_expression(atom.node.clone()))
    }

    /// Translates a part to a regular language.
    pub(in crate::notation) fn regular(
        &self,
        tree: &SyntaxTree,
        depth: usize,
        span: SourceSpan,
    ) -> Result<Expression, Error> {
        if depth == 0 {
            let message = "a terminal or rule defined by language operators refers to itself";
            let hint = Some(
                "a definition with max_bytes, stop, -, & or ~ must be regular, so it cannot be \
                 recursive",
            );
            return Err(self.refuse(span, message, hint));
        }
        self.parts.set(self.parts.get() + 1);
        check(formalm_core::Resource::Terms, self.parts.get(), MAX_PARTS)?;
        let all = |list: &[SyntaxTree]| {
            list.iter().map(|one| self.regular(one, depth - 1, span)).collect::<Result<Vec<_>, _>>()
        };
        match tree {
            SyntaxTree::Atom(atom) => self.alone(atom),
            SyntaxTree::Name(name, arguments, place) => {
                let name = name.as_str();
                if let Some(&given) = self.given.get(name) {
                    return Ok(given.clone());
                }
                if let Some(source) = self.defined.get(name) {
                    return self.terminal_language(source, depth - 1);
                }
                match self.templates.get(name) {
                    Some(_) if !self.rules_within => {
                        let message =
                            format!("{name} is a rule, but a terminal may refer to terminals only");
                        Err(self.refuse(*place, &message, None))
                    }
                    Some(source) if source.parameters.len() != arguments.len() => {
                        Err(self.wrong_argument_count(source, arguments.len(), *place))
                    }
                    Some(source) if arguments.is_empty() => {
                        self.regular(&source.body, depth - 1, *place)
                    }
                    Some(source) => {
                        let body = substitute(&source.body, source, arguments);
                        self.regular(&body, depth - 1, *place)
                    }
                    None => Err(self.refuse(*place, &format!("{name} is not defined"), None)),
                }
            }
            SyntaxTree::Sequence(list) if list.is_empty() => {
                Ok(Expression::literals(vec![Vec::new()]))
            }
            SyntaxTree::Sequence(list) => Expression::concat(all(list)?),
            SyntaxTree::Choice(list) => Expression::union(all(list)?),
            SyntaxTree::Repeat(one, min, max) => {
                self.regular(one, depth - 1, span)?.repeat(*min, *max)
            }
            SyntaxTree::Optional(one) => self.regular(one, depth - 1, span)?.repeat(0, Some(1)),
            SyntaxTree::Difference(first, second, span) => {
                let whole = self.regular(first, depth - 1, *span)?;
                whole.difference(self.regular(second, depth - 1, *span)?)
            }
            SyntaxTree::Intersection(list, _) => Expression::intersection(all(list)?),
            SyntaxTree::Complement(one, _) => self.regular(one, depth - 1, span)?.complement(),
        }
    }
}
