//! Special tokens in a text of Lark: `<|name|>`.

use formalm_automata::{Error, Expression, Span, special_bytes};

use super::Tree;
use super::build::Build;
use super::lark::Reader;
use super::order::{Kind, Ranked};
use super::shape::Shape;
use crate::grammar::Terminal;

impl Reader {
    /// A special token, whose name has its angle brackets.
    pub(super) fn special(&mut self) -> Result<Tree, Error> {
        let start = self.scanner.at;
        self.scanner.at += 1;
        let inner = self.scanner.take_while(|one| !one.is_whitespace() && !"<>".contains(one));
        if inner.is_empty() || !self.scanner.eat(">") {
            let hint = "it is written as its name, with the angle brackets: <|name|>";
            return Err(self.scanner.refuse(start, "this is no special token", Some(hint)));
        }
        let name = format!("<{inner}>");
        if !self.source.special.iter().any(|one| one.0 == name) {
            let language = Expression::texts(vec![special_bytes(&name)]);
            self.source.special.push((name.clone(), language));
        }
        Ok(Tree::Name(name, Vec::new(), self.scanner.span(start)))
    }
}

impl Build<'_> {
    /// The terminal of a special token. No other one begins as it does, so it has no rank.
    pub(super) fn special_terminal(
        &mut self,
        name: &str,
        language: Expression,
        span: Span,
    ) -> usize {
        let (shape, sorted) = (Shape::default(), name.to_owned());
        let kind = Kind { priority: 0, text: None, shape, sorted };
        let terminal =
            Terminal { name: name.to_owned(), language, embedded: None, span: Some(span) };
        self.terminals.push(Ranked { terminal, kind });
        self.terminals.len() - 1
    }
}
