//! Tree markers: rules added for omitted lexemes and for placeholders, so that right-hand sides
//! stay unchanged.

use crate::grammar::{Rule, RuleBody};
use crate::notation::grammar_builder::{GrammarBuilder, argument_context};
use crate::notation::syntax_tree::template_name;
use crate::notation::{RuleSource, SyntaxTree};
use crate::trees::tree_shape::{RuleKind, RuleTreeShape};

/// The meaning of a marker rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::notation) enum TreeMarker {
    /// A lexeme that trees omit.
    Hidden(usize),
    /// A number of absent children.
    Absent(u32),
}

impl GrammarBuilder<'_> {
    /// Returns the node of a terminal in a rule.
    pub(in crate::notation) fn lexeme(&mut self, terminal: usize, hidden: bool) -> RuleBody {
        if hidden && self.shaped && !self.source.keeps_all {
            RuleBody::Rule(self.mark(TreeMarker::Hidden(terminal)))
        } else {
            RuleBody::Terminal(terminal)
        }
    }

    /// Returns the node of an optional part, with placeholders for the children that it may lack.
    pub(in crate::notation) fn maybe(&mut self, one: RuleBody, size: u32) -> RuleBody {
        if size > 0 && self.shaped && !self.source.without_placeholders {
            RuleBody::Choice(vec![one, RuleBody::Rule(self.mark(TreeMarker::Absent(size)))])
        } else {
            RuleBody::Repeat(Box::new(one), 0, Some(1))
        }
    }

    fn mark(&mut self, mark: TreeMarker) -> usize {
        if let Some(&at) = self.tree_markers.get(&mark) {
            return at;
        }
        let (name, body, kind) = match mark {
            TreeMarker::Hidden(at) => (
                self.terminals[at].terminal.name.clone(),
                RuleBody::Terminal(at),
                RuleKind::OmittedLexeme,
            ),
            TreeMarker::Absent(size) => {
                ("nothing".to_owned(), RuleBody::Empty, RuleKind::Placeholder(size))
            }
        };
        let at = self.rules.len();
        self.add_rule(
            Rule { name, body, span: None },
            &RuleTreeShape { kind, ..RuleTreeShape::ALL },
        );
        self.tree_markers.insert(mark, at);
        at
    }

    /// Returns the maximum number of tree children of a part. As in Lark, long repetitions count as
    /// zero.
    pub(in crate::notation) fn size(
        &self,
        tree: &SyntaxTree,
        rule: &RuleSource,
        given: &[SyntaxTree],
    ) -> u32 {
        /// From this count on, Lark expands a repetition to rules of its own.
        const MANY: u32 = 50;
        let all =
            |list: &[SyntaxTree]| list.iter().map(|one| self.size(one, rule, given)).collect();
        let keeps = rule.shown.keeps_all_lexemes || self.source.keeps_all;
        match tree {
            SyntaxTree::Atom(atom) => u32::from(keeps || !atom.is_string),
            SyntaxTree::Name(name, arguments, _) => {
                match rule.parameters.iter().position(|one| one == name) {
                    Some(at) if !arguments.is_empty() => {
                        u32::from(!template_name(&given[at]).starts_with('_'))
                    }
                    Some(at) => self.size(&given[at], argument_context(rule), &[]),
                    None => {
                        let name = name.as_str();
                        let terminal =
                            self.defined.contains_key(name) || self.given.contains_key(name);
                        u32::from(!name.starts_with('_') || (terminal && keeps))
                    }
                }
            }
            SyntaxTree::Sequence(list) => {
                let sizes: Vec<u32> = all(list);
                sizes.into_iter().fold(0, u32::saturating_add)
            }
            SyntaxTree::Choice(list) => {
                let sizes: Vec<u32> = all(list);
                sizes.into_iter().max().unwrap_or(0)
            }
            SyntaxTree::Optional(one) => self.size(one, rule, given),
            SyntaxTree::Repeat(one, _, Some(max)) if *max < MANY => {
                self.size(one, rule, given).saturating_mul(*max)
            }
            SyntaxTree::Repeat(..) => 0,
            SyntaxTree::Difference(..)
            | SyntaxTree::Intersection(..)
            | SyntaxTree::Complement(..) => 1,
        }
    }
}
