//! Parts that are put together as languages: `A - B`, `A & B`, `~A`, and languages that are given.
//!
//! The difference and the intersection of two context-free languages need not be one, so the parts
//! have to be regular: no rule in them comes back to itself.

use formalm_automata::{Error, Expression, Span};

use crate::grammar::Terminal;
use crate::limits::check;
use crate::notation::Tree;
use crate::notation::atoms::{Leaf, language};
use crate::notation::build::{Build, DEPTH, PARTS};
use crate::notation::lark::terminal_length::Shape;
use crate::notation::lookaround::{is_lazy, looks_beyond};
use crate::notation::syntax_tree::{substituted, written};
use crate::notation::terminal_order::{Kind, Ranked};

impl Build<'_> {
    /// The terminal of a difference.
    pub(in crate::notation) fn difference(
        &mut self,
        first: &Tree,
        second: &Tree,
        span: Span,
    ) -> Result<usize, Error> {
        let name = format!("{} - {}", written(first), written(second));
        if let Some(&at) = self.by_text.get(&name) {
            return Ok(at);
        }
        let whole = self.regular(first, DEPTH, span)?;
        let without = self.regular(second, DEPTH, span)?;
        let language = whole.difference(without)?;
        let terminal = Terminal { name: name.clone(), language, embedded: None, span: Some(span) };
        let (shape, sorted) = (Shape::default(), name.clone());
        self.terminals
            .push(Ranked { terminal, kind: Kind { priority: 0, text: None, shape, sorted } });
        self.by_text.insert(name, self.terminals.len() - 1);
        Ok(self.terminals.len() - 1)
    }

    /// Finds the terminals that are no patterns: they are put together as languages.
    pub(in crate::notation) fn find_algebra(&mut self) {
        let mut before = usize::MAX;
        while before != self.algebra.len() {
            before = self.algebra.len();
            for one in &self.source.terminals {
                if one.attributes.are_bounds() || self.is_algebra(&one.body) {
                    self.algebra.insert(&one.name);
                }
            }
        }
    }

    /// Whether a part of a terminal is no pattern.
    pub(in crate::notation) fn is_algebra(&self, tree: &Tree) -> bool {
        match tree {
            Tree::Leaf(_) => false,
            Tree::Name(name, ..) => {
                let name = name.as_str();
                self.algebra.contains(name) || self.given.contains_key(name)
            }
            Tree::Sequence(list) | Tree::Choice(list) => {
                list.iter().any(|one| self.is_algebra(one))
            }
            Tree::Maybe(one) | Tree::Repeat(one, ..) => self.is_algebra(one),
            Tree::Except(..) | Tree::Both(..) | Tree::Outside(..) => true,
        }
    }

    /// The language of a leaf, which must not depend on what stands beside it.
    fn alone(&self, leaf: &Leaf) -> Result<Expression, Error> {
        let beyond = looks_beyond(&leaf.node);
        if beyond.ahead || beyond.before.is_some() || is_lazy(&leaf.node) {
            let message = format!(
                "{} looks around or prefers fewer, which has no meaning in a terminal with & or ~",
                leaf.written
            );
            return Err(self.refuse(leaf.span, &message, Some("write what it reads by itself")));
        }
        Ok(language(leaf.node.clone()))
    }

    /// A part as a regular language.
    pub(in crate::notation) fn regular(
        &self,
        tree: &Tree,
        depth: usize,
        span: Span,
    ) -> Result<Expression, Error> {
        if depth == 0 {
            let message =
                "what is put together as languages has parts that come back to themselves";
            let hint = Some(
                "what has max_bytes or stop, or stands beside -, & or ~, is regular: no recursion",
            );
            return Err(self.refuse(span, message, hint));
        }
        self.parts.set(self.parts.get() + 1);
        check(formalm_automata::Resource::Terms, self.parts.get(), PARTS)?;
        let all = |list: &[Tree]| {
            list.iter().map(|one| self.regular(one, depth - 1, span)).collect::<Result<Vec<_>, _>>()
        };
        match tree {
            Tree::Leaf(leaf) => self.alone(leaf),
            Tree::Name(name, arguments, place) => {
                let name = name.as_str();
                if let Some(&given) = self.given.get(name) {
                    return Ok(given.clone());
                }
                if let Some(source) = self.defined.get(name) {
                    return self.whole_terminal(source, depth - 1);
                }
                match self.templates.get(name) {
                    Some(_) if !self.rules_within => {
                        let message =
                            format!("{name} is a rule, and terminals are made of terminals");
                        Err(self.refuse(*place, &message, None))
                    }
                    Some(source) if source.parameters.len() != arguments.len() => {
                        Err(self.wrong_arguments(source, arguments.len(), *place))
                    }
                    Some(source) if arguments.is_empty() => {
                        self.regular(&source.body, depth - 1, *place)
                    }
                    Some(source) => {
                        let body = substituted(&source.body, source, arguments);
                        self.regular(&body, depth - 1, *place)
                    }
                    None => Err(self.refuse(*place, &format!("{name} is not defined"), None)),
                }
            }
            Tree::Sequence(list) if list.is_empty() => Ok(Expression::texts(vec![Vec::new()])),
            Tree::Sequence(list) => Expression::concat(all(list)?),
            Tree::Choice(list) => Expression::union(all(list)?),
            Tree::Repeat(one, min, max) => self.regular(one, depth - 1, span)?.repeat(*min, *max),
            Tree::Maybe(one) => self.regular(one, depth - 1, span)?.repeat(0, Some(1)),
            Tree::Except(first, second, span) => {
                let whole = self.regular(first, depth - 1, *span)?;
                whole.difference(self.regular(second, depth - 1, *span)?)
            }
            Tree::Both(list, _) => Expression::intersection(all(list)?),
            Tree::Outside(one, _) => self.regular(one, depth - 1, span)?.complement(),
        }
    }
}
