//! Right-hand sides: names become numbers.

use formalm_automata::{Error, Resource, Span};

use super::Build;
use crate::grammar::Node;
use crate::limits::check;
use crate::notation::lark::definition_attributes::Attributes;
use crate::notation::lark::is_terminal;
use crate::notation::syntax_tree::{called, keep_texts, substituted, weight};
use crate::notation::{RuleSource, Tree};
use crate::trees::tree_shape::Shown;

/// Parts of arguments of templates that are written out, in all rules together.
const WRITTEN_OUT: u64 = 200_000;

impl Build<'_> {
    pub(super) fn body(
        &mut self,
        tree: &Tree,
        rule: &RuleSource,
        given: &[Tree],
    ) -> Result<Node, Error> {
        Ok(match tree {
            Tree::Leaf(leaf) if leaf.text.as_deref() == Some("") => Node::Empty,
            Tree::Leaf(leaf) => {
                let at = self.anonymous(leaf)?;
                self.lexeme(at, leaf.literal && !rule.shown.keeps_all)
            }
            Tree::Name(name, arguments, span) => {
                let parameter = rule.parameters.iter().position(|one| one == name);
                if let Some(at) = parameter.filter(|_| !arguments.is_empty()) {
                    let name = called(&given[at]);
                    if !self.templates.contains_key(name.as_str()) {
                        return Err(self.no_template(&name, *span));
                    }
                    let list = self.arguments(arguments, rule, given)?;
                    return Ok(Node::Rule(self.rule(&name, list, *span)?));
                }
                if let Some(at) = parameter {
                    self.write_out(weight(&given[at], &PLAIN, &[]))?;
                    return self.body(&given[at], written_out(rule), &[]);
                }
                if self.has_terminal(name) {
                    let at = self.named(name, *span)?;
                    let hidden = name.starts_with('_') && !rule.shown.keeps_all;
                    return Ok(self.lexeme(at, hidden));
                }
                let list = self.arguments(arguments, rule, given)?;
                if let Some(at) = self.level(name) {
                    let hidden = name.starts_with('_') && !rule.shown.keeps_all;
                    return Ok(self.lexeme(at, hidden));
                }
                if let Some(at) = self.embedded(name, *span) {
                    let hidden = name.starts_with('_') && !rule.shown.keeps_all;
                    return Ok(self.lexeme(at, hidden));
                }
                if let Some((name, _)) = self.source.declared.iter().find(|one| one.0 == *name) {
                    let what = if is_terminal(name) { "terminal" } else { "rule" };
                    let message = format!("the {what} {name} is declared and has no pattern");
                    let hint = "define it, or give it as a language: languages={name: language}; \
                                if lines and levels tell it, say indentation=Indentation(...)";
                    return Err(self.refuse(*span, &message, Some(hint)));
                }
                Node::Rule(self.rule(name, list, *span)?)
            }
            Tree::Sequence(list) => Node::Sequence(
                list.iter().map(|one| self.body(one, rule, given)).collect::<Result<_, _>>()?,
            ),
            Tree::Choice(list) => Node::Choice(
                list.iter().map(|one| self.body(one, rule, given)).collect::<Result<_, _>>()?,
            ),
            Tree::Repeat(one, min, max) => {
                Node::Repeat(Box::new(self.body(one, rule, given)?), *min, *max)
            }
            Tree::Maybe(one) => {
                let size = self.size(one, rule, given);
                let one = self.body(one, rule, given)?;
                self.maybe(one, size)
            }
            Tree::Except(first, second, span) => {
                Node::Terminal(self.difference(first, second, *span)?)
            }
            Tree::Both(_, span) | Tree::Outside(_, span) => {
                let message =
                    "& and ~ are of terminals: what a rule derives may have no complement";
                let hint = Some("give this part the name of a terminal, in capitals");
                return Err(self.refuse(*span, message, hint));
            }
        })
    }
}

impl Build<'_> {
    /// The arguments of a template within a rule, those of the rule filled in.
    fn arguments(
        &self,
        arguments: &[Tree],
        rule: &RuleSource,
        given: &[Tree],
    ) -> Result<Vec<Tree>, Error> {
        let weights = match arguments {
            [] => Vec::new(),
            _ => given.iter().map(|one| weight(one, &PLAIN, &[])).collect(),
        };
        let mut list = Vec::with_capacity(arguments.len());
        for one in arguments {
            self.write_out(weight(one, rule, &weights))?;
            let mut one = substituted(one, rule, given);
            // What was an argument already had its texts kept where it was written, or not.
            if rule.shown.keeps_all && !std::ptr::eq(rule, &KEEPING) {
                keep_texts(&mut one);
            }
            list.push(one);
        }
        Ok(list)
    }

    /// Counts parts of templates that are written out: names of templates without end grow with
    /// every one, and may double.
    fn write_out(&self, parts: u64) -> Result<(), Error> {
        self.written_out.set(self.written_out.get().saturating_add(parts));
        check(Resource::Terms, self.written_out.get(), WRITTEN_OUT)
    }
}

/// Rules without parameters, for arguments that were substituted already.
static PLAIN: RuleSource = nameless(Shown::SOME);
/// The same that shows texts too.
static KEEPING: RuleSource = nameless(Shown::ALL);

const fn nameless(shown: Shown) -> RuleSource {
    RuleSource {
        name: String::new(),
        parameters: Vec::new(),
        body: Tree::Sequence(Vec::new()),
        span: Span { start: 0, end: 0 },
        shown,
        attributes: Attributes::NONE,
    }
}

/// The rule that arguments of a template stand in once they are written out: its signs are theirs.
pub(in crate::notation) fn written_out(template: &RuleSource) -> &'static RuleSource {
    if template.shown.keeps_all { &KEEPING } else { &PLAIN }
}
