//! Patterns beside other parts of a terminal, whose texts Lark joins as they are written.

use rustc_hash::FxHashSet;

use crate::grammar::Note;
use crate::notation::atoms::Leaf;
use crate::notation::build::{Build, DEPTH};
use crate::notation::{TerminalSource, Tree};

impl<'a> Build<'a> {
    /// Notes of patterns with alternatives that Lark would let reach over what stands beside them.
    pub(in crate::notation) fn joined(&self, needed: &FxHashSet<&str>) -> Vec<Note> {
        let terminals = self.source.terminals.iter();
        let needed = terminals.filter(|one| needed.contains(one.name.as_str()));
        needed.filter_map(|one| self.joined_within(one)).collect()
    }

    fn joined_within(&self, terminal: &'a TerminalSource) -> Option<Note> {
        let mut open = vec![&terminal.body];
        while let Some(tree) = open.pop() {
            match tree {
                Tree::Sequence(list) => {
                    let found = list.iter().find_map(|one| self.bare(one));
                    if let Some(leaf) = found.filter(|_| list.len() > 1) {
                        let (name, written) = (&terminal.name, &leaf.written);
                        let message = format!(
                            "in the terminal {name}, {written} is one part; Lark joins the texts of \
                             patterns, where its | would split all of it: put it into (?:…)"
                        );
                        return Some(Note { message, span: Some(terminal.span) });
                    }
                    open.extend(list);
                }
                Tree::Choice(list) => open.extend(list),
                Tree::Maybe(one) | Tree::Repeat(one, ..) => open.push(one),
                _ => {}
            }
        }
        None
    }

    /// The pattern that a part is, if nothing holds its alternatives together.
    fn bare(&self, tree: &'a Tree) -> Option<&'a Leaf> {
        let leaf = self.only_leaf(tree, DEPTH).filter(|leaf| leaf.flags.is_empty());
        // Keys of patterns begin so; what is imported has brackets around it.
        leaf.filter(|leaf| leaf.key.starts_with('/') && has_alternatives(&leaf.key))
    }
}

/// Whether a pattern has alternatives that no bracket holds.
fn has_alternatives(pattern: &str) -> bool {
    let (mut depth, mut characters) = (0, pattern.chars().peekable());
    while let Some(one) = characters.next() {
        match one {
            '\\' => drop(characters.next()),
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth == 0 => return true,
            '[' => {
                characters.next_if_eq(&'^');
                characters.next_if_eq(&']');
                while let Some(one) = characters.next().filter(|&one| one != ']') {
                    if one == '\\' {
                        characters.next();
                    }
                }
            }
            _ => {}
        }
    }
    false
}
