//! Exceptions: what a part derives without what another one does.
//!
//! The difference of two context-free languages need not be one, so both parts have to be regular:
//! no rule in them comes back to itself.

use formalm_automata::{Error, Expression, Span};

use super::Tree;
use super::build::{Build, DEPTH, PARTS};
use super::leaves::language;
use super::order::{Kind, Ranked};
use super::shape::Shape;
use super::trees::written;
use crate::grammar::Terminal;
use crate::limits::check;

impl Build<'_> {
    /// The terminal of a difference.
    pub(super) fn difference(
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
        let terminal = Terminal { name: name.clone(), language, span: Some(span) };
        let (shape, sorted) = (Shape::default(), name.clone());
        self.terminals
            .push(Ranked { terminal, kind: Kind { priority: 0, text: None, shape, sorted } });
        self.by_text.insert(name, self.terminals.len() - 1);
        Ok(self.terminals.len() - 1)
    }

    /// A part as a regular language.
    fn regular(&self, tree: &Tree, depth: usize, span: Span) -> Result<Expression, Error> {
        if depth == 0 {
            let message = "an exception has parts that come back to themselves";
            let hint = Some("both sides of \"-\" have to be regular: write them without recursion");
            return Err(self.refuse(span, message, hint));
        }
        self.parts.set(self.parts.get() + 1);
        check(formalm_automata::Resource::Terms, self.parts.get(), PARTS)?;
        let all = |list: &[Tree]| {
            list.iter().map(|one| self.regular(one, depth - 1, span)).collect::<Result<Vec<_>, _>>()
        };
        match tree {
            Tree::Leaf(leaf) => Ok(language(leaf.node.clone())),
            Tree::Name(name, _, place) => match self.templates.get(name.as_str()) {
                Some(source) => self.regular(&source.body, depth - 1, *place),
                None => Err(self.refuse(*place, &format!("{name} is not defined"), None)),
            },
            Tree::Sequence(list) if list.is_empty() => Ok(Expression::texts(vec![Vec::new()])),
            Tree::Sequence(list) => Expression::concat(all(list)?),
            Tree::Choice(list) => Expression::union(all(list)?),
            Tree::Repeat(one, min, max) => self.regular(one, depth - 1, span)?.repeat(*min, *max),
            Tree::Maybe(one) => self.regular(one, depth - 1, span)?.repeat(0, Some(1)),
            Tree::Except(first, second, span) => {
                let whole = self.regular(first, depth - 1, *span)?;
                whole.difference(self.regular(second, depth - 1, *span)?)
            }
        }
    }
}
