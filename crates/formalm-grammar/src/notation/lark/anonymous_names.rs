//! Names that Lark gives to texts and patterns within rules: they sort what is alike otherwise.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::notation::Tree;
use crate::notation::atoms::Leaf;
use crate::notation::build::Build;
use crate::notation::lark::terminal_length;

impl Build<'_> {
    /// The names by the keys of texts and patterns. Lark goes through the rules as they are defined,
    /// and through the parts of each from those that are nested deepest; templates come last.
    pub(in crate::notation) fn names_of_unnamed(&self) -> FxHashMap<String, String> {
        let (plain, templates): (Vec<_>, Vec<_>) =
            self.source.rules.iter().partition(|one| one.parameters.is_empty());
        let (mut names, mut taken, mut unnamed) = (FxHashMap::default(), FxHashSet::default(), 0);
        for rule in plain.into_iter().chain(templates) {
            let mut all = Vec::new();
            if let Tree::Choice(list) = &rule.body {
                for (at, one) in list.iter().enumerate() {
                    let has_alias = rule.shown.aliases.get(at).is_some_and(Option::is_some);
                    leaves(one, if has_alias { 2 } else { 1 }, &mut all);
                }
            } else {
                leaves(&rule.body, 1, &mut all);
            }
            all.sort_by_key(|one| Reverse(one.0));
            for (_, leaf) in all {
                if names.contains_key(&leaf.key) || self.named_texts.contains_key(&leaf.key) {
                    continue;
                }
                let is_taken = |name: &str| self.defined.contains_key(name) || taken.contains(name);
                let name = terminal_length::name(leaf, unnamed, is_taken);
                unnamed += usize::from(name.starts_with("__ANON_"));
                taken.insert(name.clone());
                names.insert(leaf.key.clone(), name);
            }
        }
        names
    }
}

/// The texts and patterns of a part, with how deep they are nested in what Lark reads it as.
fn leaves<'a>(tree: &'a Tree, depth: usize, all: &mut Vec<(usize, &'a Leaf)>) {
    match tree {
        Tree::Leaf(leaf) => all.push((depth, leaf)),
        Tree::Name(_, list, _) => list.iter().for_each(|one| leaves(one, depth + 2, all)),
        Tree::Sequence(list) | Tree::Choice(list) | Tree::Both(list, _) => {
            list.iter().for_each(|one| leaves(one, depth + 1, all));
        }
        Tree::Maybe(one) | Tree::Repeat(one, ..) | Tree::Outside(one, _) => {
            leaves(one, depth + 1, all);
        }
        Tree::Except(first, second, _) => {
            leaves(first, depth + 1, all);
            leaves(second, depth + 1, all);
        }
    }
}
