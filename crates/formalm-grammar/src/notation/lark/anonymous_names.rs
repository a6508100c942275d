//! Names that Lark gives to anonymous strings and patterns in rules, which break ties in its
//! terminal order.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::notation::SyntaxTree;
use crate::notation::atoms::Atom;
use crate::notation::grammar_builder::Definitions;
use crate::notation::lark::terminal_length;

impl Definitions<'_> {
    /// Returns the names by atom identity. Lark visits rules in source order, templates last, and
    /// the parts of each rule deepest first.
    pub(in crate::notation) fn anonymous_names(&self) -> FxHashMap<String, String> {
        let (plain, templates): (Vec<_>, Vec<_>) =
            self.source.rules.iter().partition(|one| one.parameters.is_empty());
        let (mut collect_names, mut taken, mut anonymous_names) =
            (FxHashMap::default(), FxHashSet::default(), 0);
        for rule in plain.into_iter().chain(templates) {
            let mut all = Vec::new();
            if let SyntaxTree::Choice(list) = &rule.body {
                for (at, one) in list.iter().enumerate() {
                    let has_alias = rule.shown.aliases.get(at).is_some_and(Option::is_some);
                    atoms(one, if has_alias { 2 } else { 1 }, &mut all);
                }
            } else {
                atoms(&rule.body, 1, &mut all);
            }
            all.sort_by_key(|one| Reverse(one.0));
            for (_, atom) in all {
                if collect_names.contains_key(&atom.identity)
                    || self.named_atoms.contains_key(&atom.identity)
                {
                    continue;
                }
                let is_taken = |name: &str| self.defined.contains_key(name) || taken.contains(name);
                let name = terminal_length::anonymous_name(atom, anonymous_names, is_taken);
                anonymous_names += usize::from(name.starts_with("__ANON_"));
                taken.insert(name.clone());
                collect_names.insert(atom.identity.clone(), name);
            }
        }
        collect_names
    }
}

/// Collects the strings and patterns of a part, with their depth in Lark's parse tree.
fn atoms<'a>(tree: &'a SyntaxTree, depth: usize, all: &mut Vec<(usize, &'a Atom)>) {
    match tree {
        SyntaxTree::Atom(atom) => all.push((depth, atom)),
        SyntaxTree::Name(_, list, _) => list.iter().for_each(|one| atoms(one, depth + 2, all)),
        SyntaxTree::Sequence(list)
        | SyntaxTree::Choice(list)
        | SyntaxTree::Intersection(list, _) => {
            list.iter().for_each(|one| atoms(one, depth + 1, all));
        }
        SyntaxTree::Optional(one)
        | SyntaxTree::Repeat(one, ..)
        | SyntaxTree::Complement(one, _) => {
            atoms(one, depth + 1, all);
        }
        SyntaxTree::Difference(first, second, _) => {
            atoms(first, depth + 1, all);
            atoms(second, depth + 1, all);
        }
    }
}
