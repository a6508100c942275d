//! Operations on syntax trees: unwrapping, substitution of template arguments, size, and rendering.

use crate::notation::{RuleSource, SyntaxTree};

/// Returns the tree without redundant brackets.
pub(super) fn unwrap_single(tree: &SyntaxTree) -> &SyntaxTree {
    match tree {
        SyntaxTree::Sequence(list) | SyntaxTree::Choice(list) if list.len() == 1 => {
            unwrap_single(&list[0])
        }
        _ => tree,
    }
}

/// Substitutes arguments for a template's parameters.
pub(super) fn substitute(tree: &SyntaxTree, rule: &RuleSource, given: &[SyntaxTree]) -> SyntaxTree {
    let all = |list: &[SyntaxTree]| list.iter().map(|one| substitute(one, rule, given)).collect();
    match tree {
        SyntaxTree::Atom(_) => tree.clone(),
        SyntaxTree::Name(name, arguments, span) => {
            match rule.parameters.iter().position(|one| one == name) {
                Some(at) if arguments.is_empty() => given[at].clone(),
                Some(at) => SyntaxTree::Name(template_name(&given[at]), all(arguments), *span),
                None => SyntaxTree::Name(name.clone(), all(arguments), *span),
            }
        }
        SyntaxTree::Sequence(list) => SyntaxTree::Sequence(all(list)),
        SyntaxTree::Choice(list) => SyntaxTree::Choice(all(list)),
        SyntaxTree::Repeat(one, min, max) => {
            SyntaxTree::Repeat(Box::new(substitute(one, rule, given)), *min, *max)
        }
        SyntaxTree::Optional(one) => SyntaxTree::Optional(Box::new(substitute(one, rule, given))),
        SyntaxTree::Difference(first, second, span) => {
            let part = |one| Box::new(substitute(one, rule, given));
            SyntaxTree::Difference(part(first), part(second), *span)
        }
        SyntaxTree::Intersection(list, span) => SyntaxTree::Intersection(all(list), *span),
        SyntaxTree::Complement(one, span) => {
            SyntaxTree::Complement(Box::new(substitute(one, rule, given)), *span)
        }
    }
}

/// Returns the name of the template that an argument denotes when it is applied to arguments of its
/// own. Any other argument is rendered, which is not a name.
pub(super) fn template_name(argument: &SyntaxTree) -> String {
    match unwrap_single(argument) {
        SyntaxTree::Name(name, arguments, _) if arguments.is_empty() => name.clone(),
        other => to_source(other),
    }
}

/// Makes trees show the strings in it, wherever it is substituted.
pub(super) fn keep_all_strings(tree: &mut SyntaxTree) {
    match tree {
        SyntaxTree::Atom(atom) => atom.is_string = false,
        SyntaxTree::Name(_, list, _)
        | SyntaxTree::Sequence(list)
        | SyntaxTree::Choice(list)
        | SyntaxTree::Intersection(list, _) => list.iter_mut().for_each(keep_all_strings),
        SyntaxTree::Repeat(one, ..)
        | SyntaxTree::Optional(one)
        | SyntaxTree::Complement(one, _) => keep_all_strings(one),
        SyntaxTree::Difference(first, second, _) => {
            keep_all_strings(first);
            keep_all_strings(second);
        }
    }
}

/// Returns the size of a tree after substitution, given the sizes of the arguments.
pub(super) fn weight(tree: &SyntaxTree, rule: &RuleSource, given: &[u64]) -> u64 {
    let all = |list: &[SyntaxTree]| -> u64 {
        list.iter().map(|one| weight(one, rule, given)).fold(1, u64::saturating_add)
    };
    match tree {
        SyntaxTree::Atom(_) => 1,
        SyntaxTree::Name(name, arguments, _) => {
            let parameter = rule.parameters.iter().position(|one| one == name);
            let parameter = parameter.filter(|_| arguments.is_empty());
            parameter.map_or_else(|| all(arguments), |at| given[at])
        }
        SyntaxTree::Sequence(list)
        | SyntaxTree::Choice(list)
        | SyntaxTree::Intersection(list, _) => all(list),
        SyntaxTree::Repeat(one, ..)
        | SyntaxTree::Optional(one)
        | SyntaxTree::Complement(one, _) => weight(one, rule, given).saturating_add(1),
        SyntaxTree::Difference(first, second, _) => {
            weight(first, rule, given).saturating_add(weight(second, rule, given))
        }
    }
}

/// Renders a tree in source notation; equal trees are rendered equally.
pub(super) fn to_source(tree: &SyntaxTree) -> String {
    let all = |list: &[SyntaxTree]| list.iter().map(to_source).collect::<Vec<_>>();
    match tree {
        SyntaxTree::Atom(atom) => atom.source_text.clone(),
        SyntaxTree::Name(name, arguments, _) if arguments.is_empty() => name.clone(),
        SyntaxTree::Name(name, arguments, _) => format!("{name}{{{}}}", all(arguments).join(", ")),
        SyntaxTree::Sequence(list) | SyntaxTree::Choice(list) if list.len() == 1 => {
            to_source(&list[0])
        }
        SyntaxTree::Sequence(list) => format!("({})", all(list).join(" ")),
        SyntaxTree::Choice(list) => format!("({})", all(list).join(" | ")),
        SyntaxTree::Repeat(one, min, Some(max)) => format!("{}~{min}..{max}", to_source(one)),
        SyntaxTree::Optional(one) => format!("{}~0..1", to_source(one)),
        SyntaxTree::Repeat(one, min, None) => format!("{}~{min}..", to_source(one)),
        SyntaxTree::Difference(first, second, _) => {
            format!("({} - {})", to_source(first), to_source(second))
        }
        SyntaxTree::Intersection(list, _) => format!("({})", all(list).join(" & ")),
        SyntaxTree::Complement(one, _) => format!("~{}", to_source(one)),
    }
}
