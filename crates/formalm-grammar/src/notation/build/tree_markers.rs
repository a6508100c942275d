//! What trees do not show, and marks for what is not there: as rules of their own, so that the
//! right-hand sides of a grammar stay what they are.

use crate::grammar::{Node, Rule};
use crate::notation::build::{Build, written_out};
use crate::notation::syntax_tree::called;
use crate::notation::{RuleSource, Tree};
use crate::trees::tree_shape::{Kind, Shown};

/// What a rule stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::notation) enum Mark {
    /// A lexeme of a terminal that trees leave out.
    Hidden(usize),
    /// So many parts that are not there.
    Absent(u32),
}

impl Build<'_> {
    /// A terminal at one place of a rule.
    pub(in crate::notation) fn lexeme(&mut self, terminal: usize, hidden: bool) -> Node {
        if hidden && self.shaped && !self.source.keeps_all {
            Node::Rule(self.mark(Mark::Hidden(terminal)))
        } else {
            Node::Terminal(terminal)
        }
    }

    /// A part that may be absent, and how many places it has then.
    pub(in crate::notation) fn maybe(&mut self, one: Node, size: u32) -> Node {
        if size > 0 && self.shaped && !self.source.without_placeholders {
            Node::Choice(vec![one, Node::Rule(self.mark(Mark::Absent(size)))])
        } else {
            Node::Repeat(Box::new(one), 0, Some(1))
        }
    }

    fn mark(&mut self, mark: Mark) -> usize {
        if let Some(&at) = self.marks.get(&mark) {
            return at;
        }
        let (name, body, kind) = match mark {
            Mark::Hidden(at) => {
                (self.terminals[at].terminal.name.clone(), Node::Terminal(at), Kind::Hidden)
            }
            Mark::Absent(size) => ("nothing".to_owned(), Node::Empty, Kind::Absent(size)),
        };
        let at = self.rules.len();
        self.add_rule(Rule { name, body, span: None }, &Shown { kind, ..Shown::ALL });
        self.marks.insert(mark, at);
        at
    }

    /// How many children of a tree a part is at most, as Lark counts them: what is repeated counts
    /// for nothing.
    pub(in crate::notation) fn size(&self, tree: &Tree, rule: &RuleSource, given: &[Tree]) -> u32 {
        /// From here on Lark repeats by rules of its own.
        const MANY: u32 = 50;
        let all = |list: &[Tree]| list.iter().map(|one| self.size(one, rule, given)).collect();
        let keeps = rule.shown.keeps_all || self.source.keeps_all;
        match tree {
            Tree::Leaf(leaf) => u32::from(keeps || !leaf.literal),
            Tree::Name(name, arguments, _) => {
                match rule.parameters.iter().position(|one| one == name) {
                    Some(at) if !arguments.is_empty() => {
                        u32::from(!called(&given[at]).starts_with('_'))
                    }
                    Some(at) => self.size(&given[at], written_out(rule), &[]),
                    None => {
                        let name = name.as_str();
                        let terminal =
                            self.defined.contains_key(name) || self.given.contains_key(name);
                        u32::from(!name.starts_with('_') || (terminal && keeps))
                    }
                }
            }
            Tree::Sequence(list) => {
                let sizes: Vec<u32> = all(list);
                sizes.into_iter().fold(0, u32::saturating_add)
            }
            Tree::Choice(list) => {
                let sizes: Vec<u32> = all(list);
                sizes.into_iter().max().unwrap_or(0)
            }
            Tree::Maybe(one) => self.size(one, rule, given),
            Tree::Repeat(one, _, Some(max)) if *max < MANY => {
                self.size(one, rule, given).saturating_mul(*max)
            }
            Tree::Repeat(..) => 0,
            Tree::Except(..) | Tree::Both(..) | Tree::Outside(..) => 1,
        }
    }
}
