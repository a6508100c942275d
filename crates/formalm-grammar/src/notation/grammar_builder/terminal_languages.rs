//! The parts of terminals as patterns, and as languages where they are combined with `A - B`,
//! `A & B` and `~A`, or given as languages.
//!
//! Context-free languages are not closed under difference and intersection, so the parts must be
//! regular: no rule in them is recursive.

use formalm_automata::Expression;
use formalm_core::{Error, Resource, SourceSpan};
use formalm_regex::{self as syntax};

use super::{Definitions, MAX_DEPTH};
use crate::grammar::Lexing;
use crate::limits::check;
use crate::notation::SyntaxTree;
use crate::notation::atoms::{Atom, pattern_expression};
use crate::notation::lark::terminal_length;
use crate::notation::lark::terminal_length::PatternLengths;
use crate::notation::lookaround::{is_lazy, lookaround_of};
use crate::notation::syntax_tree::{substitute, unwrap_single};

/// Maximum parts of all terminals together. Chosen, not measured.
const MAX_PARTS: u64 = 1_000_000;

impl<'a> Definitions<'a> {
    /// Returns the string or pattern that a part of a terminal consists of, following names.
    pub(in crate::notation) fn single_atom(
        &self,
        tree: &'a SyntaxTree,
        depth: usize,
    ) -> Option<&'a Atom> {
        match unwrap_single(tree) {
            SyntaxTree::Atom(atom) => Some(atom),
            SyntaxTree::Name(name, ..) if depth > 0 => {
                let source = self.defined.get(name.as_str())?;
                let free = !source.attributes.are_bounds();
                self.single_atom(&source.body, depth - 1).filter(|_| free)
            }
            _ => None,
        }
    }

    /// Translates a part of a terminal to a pattern.
    pub(in crate::notation) fn pattern(
        &self,
        tree: &SyntaxTree,
        depth: usize,
        span: SourceSpan,
    ) -> Result<syntax::PatternNode, Error> {
        if depth == 0 {
            let message = "a terminal refers to itself, or is nested too deeply";
            return Err(self.refuse(span, message, Some("make it a rule: rules may be recursive")));
        }
        // Terminals inside terminals are expanded, which can double at every level.
        self.parts.set(self.parts.get() + 1);
        check(Resource::Terms, self.parts.get(), MAX_PARTS)?;
        let all = |list: &[SyntaxTree]| {
            list.iter().map(|one| self.pattern(one, depth - 1, span)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match tree {
            SyntaxTree::Atom(atom) => atom.node.clone(),
            SyntaxTree::Name(name, _, place) => match self.defined.get(name.as_str()) {
                Some(source) => self.pattern(&source.body, depth - 1, *place)?,
                None => {
                    let name = name.split('@').next().unwrap_or(name);
                    let message = format!("{name} is not a defined terminal");
                    let import = self.import_hint(name);
                    let hint =
                        import.as_deref().unwrap_or("a terminal may refer to terminals only");
                    return Err(self.refuse(*place, &message, Some(hint)));
                }
            },
            SyntaxTree::Sequence(list) => syntax::PatternNode::Concat(all(list)?),
            SyntaxTree::Choice(list) if self.lexing == Lexing::First => {
                // Lark sorts the alternatives inside a terminal in this order.
                let mut ranked: Vec<_> = list
                    .iter()
                    .map(|one| self.pattern_lengths(one).alternative_rank())
                    .zip(all(list)?)
                    .collect();
                ranked.sort_by_key(|one| one.0);
                syntax::PatternNode::Alternation(ranked.into_iter().map(|one| one.1).collect())
            }
            SyntaxTree::Choice(list) => syntax::PatternNode::Alternation(all(list)?),
            SyntaxTree::Difference(_, _, span)
            | SyntaxTree::Intersection(_, span)
            | SyntaxTree::Complement(_, span) => {
                return Err(self.refuse(
                    *span,
                    "a terminal may contain strings and patterns only",
                    None,
                ));
            }
            SyntaxTree::Optional(one) => syntax::PatternNode::Repeat {
                node: Box::new(self.pattern(one, depth - 1, span)?),
                min: 0,
                max: Some(1),
                lazy: false,
            },
            SyntaxTree::Repeat(one, min, max) => syntax::PatternNode::Repeat {
                node: Box::new(self.pattern(one, depth - 1, span)?),
                min: *min,
                max: *max,
                lazy: false,
            },
        })
    }

    pub(in crate::notation) fn pattern_lengths(&self, tree: &SyntaxTree) -> PatternLengths {
        terminal_length::pattern_lengths(tree, &|name| self.defined.get(name).copied(), MAX_DEPTH)
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
        check(Resource::Terms, self.parts.get(), MAX_PARTS)?;
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
                    None => Err(self.undefined(name, *place)),
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
