//! Notes on patterns that Lark concatenates textually: an unbracketed `|` would split the whole
//! terminal.

use rustc_hash::FxHashSet;

use crate::grammar::GrammarNote;
use crate::notation::atoms::Atom;
use crate::notation::grammar_builder::{Definitions, MAX_DEPTH};
use crate::notation::{SyntaxTree, TerminalSource};

impl<'a> Definitions<'a> {
    /// Returns notes on patterns whose alternatives Lark would extend over adjacent parts.
    pub(in crate::notation) fn pattern_concat_notes(
        &self,
        needed_symbols: &FxHashSet<&str>,
    ) -> Vec<GrammarNote> {
        let terminals = self.source.terminals.iter();
        let needed_symbols = terminals.filter(|one| needed_symbols.contains(one.name.as_str()));
        needed_symbols.filter_map(|one| self.pattern_concat_note(one)).collect()
    }

    fn pattern_concat_note(&self, terminal: &'a TerminalSource) -> Option<GrammarNote> {
        let mut open = vec![&terminal.body];
        while let Some(tree) = open.pop() {
            match tree {
                SyntaxTree::Sequence(list) => {
                    let found = list.iter().find_map(|one| self.unbracketed_pattern(one));
                    if let Some(atom) = found.filter(|_| list.len() > 1) {
                        let (name, written) = (&terminal.name, &atom.source_text);
                        let message = format!(
                            "in the terminal {name}, {written} is one part; Lark joins the pattern \
                             sources, so there its | would split the whole pattern: write (?:…) \
                             around it"
                        );
                        return Some(GrammarNote { message, span: Some(terminal.span) });
                    }
                    open.extend(list);
                }
                SyntaxTree::Choice(list) => open.extend(list),
                SyntaxTree::Optional(one) | SyntaxTree::Repeat(one, ..) => open.push(one),
                _ => {}
            }
        }
        None
    }

    /// Returns the pattern of a part if nothing brackets its alternatives.
    fn unbracketed_pattern(&self, tree: &'a SyntaxTree) -> Option<&'a Atom> {
        let atom = self.single_atom(tree, MAX_DEPTH).filter(|atom| atom.flags.is_empty());
        // The identity of a pattern starts with a slash; imported ones are bracketed.
        atom.filter(|atom| atom.identity.starts_with('/') && has_alternatives(&atom.identity))
    }
}

/// Returns `true` if a pattern has alternatives outside brackets.
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
