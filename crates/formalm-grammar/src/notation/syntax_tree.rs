//! Right-hand sides as trees: taken apart, filled in, written out.

use crate::notation::{RuleSource, Tree};

/// The tree without brackets that hold one thing.
pub(super) fn only(tree: &Tree) -> &Tree {
    match tree {
        Tree::Sequence(list) | Tree::Choice(list) if list.len() == 1 => only(&list[0]),
        _ => tree,
    }
}

/// A tree with arguments in place of a template's parameters.
pub(super) fn substituted(tree: &Tree, rule: &RuleSource, given: &[Tree]) -> Tree {
    let all = |list: &[Tree]| list.iter().map(|one| substituted(one, rule, given)).collect();
    match tree {
        Tree::Leaf(_) => tree.clone(),
        Tree::Name(name, arguments, span) => {
            match rule.parameters.iter().position(|one| one == name) {
                Some(at) if arguments.is_empty() => given[at].clone(),
                Some(at) => Tree::Name(called(&given[at]), all(arguments), *span),
                None => Tree::Name(name.clone(), all(arguments), *span),
            }
        }
        Tree::Sequence(list) => Tree::Sequence(all(list)),
        Tree::Choice(list) => Tree::Choice(all(list)),
        Tree::Repeat(one, min, max) => {
            Tree::Repeat(Box::new(substituted(one, rule, given)), *min, *max)
        }
        Tree::Maybe(one) => Tree::Maybe(Box::new(substituted(one, rule, given))),
        Tree::Except(first, second, span) => {
            let part = |one| Box::new(substituted(one, rule, given));
            Tree::Except(part(first), part(second), *span)
        }
        Tree::Both(list, span) => Tree::Both(all(list), *span),
        Tree::Outside(one, span) => Tree::Outside(Box::new(substituted(one, rule, given)), *span),
    }
}

/// The name of the template that an argument stands for where it has arguments of its own. Anything
/// else is written out, which is no name.
pub(super) fn called(argument: &Tree) -> String {
    match only(argument) {
        Tree::Name(name, arguments, _) if arguments.is_empty() => name.clone(),
        other => written(other),
    }
}

/// Makes trees show the texts in it, wherever it is filled in.
pub(super) fn keep_texts(tree: &mut Tree) {
    match tree {
        Tree::Leaf(leaf) => leaf.literal = false,
        Tree::Name(_, list, _)
        | Tree::Sequence(list)
        | Tree::Choice(list)
        | Tree::Both(list, _) => list.iter_mut().for_each(keep_texts),
        Tree::Repeat(one, ..) | Tree::Maybe(one) | Tree::Outside(one, _) => keep_texts(one),
        Tree::Except(first, second, _) => {
            keep_texts(first);
            keep_texts(second);
        }
    }
}

/// Parts of a tree once arguments, of so many parts each, are in place of a template's parameters.
pub(super) fn weight(tree: &Tree, rule: &RuleSource, given: &[u64]) -> u64 {
    let all = |list: &[Tree]| -> u64 {
        list.iter().map(|one| weight(one, rule, given)).fold(1, u64::saturating_add)
    };
    match tree {
        Tree::Leaf(_) => 1,
        Tree::Name(name, arguments, _) => {
            let parameter = rule.parameters.iter().position(|one| one == name);
            let parameter = parameter.filter(|_| arguments.is_empty());
            parameter.map_or_else(|| all(arguments), |at| given[at])
        }
        Tree::Sequence(list) | Tree::Choice(list) | Tree::Both(list, _) => all(list),
        Tree::Repeat(one, ..) | Tree::Maybe(one) | Tree::Outside(one, _) => {
            weight(one, rule, given).saturating_add(1)
        }
        Tree::Except(first, second, _) => {
            weight(first, rule, given).saturating_add(weight(second, rule, given))
        }
    }
}

/// How a tree can be written: equal ones are written alike.
pub(super) fn written(tree: &Tree) -> String {
    let all = |list: &[Tree]| list.iter().map(written).collect::<Vec<_>>();
    match tree {
        Tree::Leaf(leaf) => leaf.written.clone(),
        Tree::Name(name, arguments, _) if arguments.is_empty() => name.clone(),
        Tree::Name(name, arguments, _) => format!("{name}{{{}}}", all(arguments).join(", ")),
        Tree::Sequence(list) | Tree::Choice(list) if list.len() == 1 => written(&list[0]),
        Tree::Sequence(list) => format!("({})", all(list).join(" ")),
        Tree::Choice(list) => format!("({})", all(list).join(" | ")),
        Tree::Repeat(one, min, Some(max)) => format!("{}~{min}..{max}", written(one)),
        Tree::Maybe(one) => format!("{}~0..1", written(one)),
        Tree::Repeat(one, min, None) => format!("{}~{min}..", written(one)),
        Tree::Except(first, second, _) => format!("({} - {})", written(first), written(second)),
        Tree::Both(list, _) => format!("({})", all(list).join(" & ")),
        Tree::Outside(one, _) => format!("~{}", written(one)),
    }
}
