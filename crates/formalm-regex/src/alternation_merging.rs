//! Merging of alternatives: common prefixes and single characters, as CPython's parser does.

use std::hash::Hash;

use rustc_hash::FxHashSet;

use super::unresolved_items::{CharAtom, ClassMember, UnresolvedItem};

/// Replaces every `(?:…)` in a sequence by its content.
pub(super) fn flatten(items: Vec<UnresolvedItem>) -> Vec<UnresolvedItem> {
    if !items.iter().any(|item| matches!(item, UnresolvedItem::Plain(_))) {
        return items;
    }
    let mut flat = Vec::with_capacity(items.len());
    for item in items {
        match item {
            UnresolvedItem::Plain(content) if flat.is_empty() => flat = content,
            UnresolvedItem::Plain(content) => flat.extend(content),
            other => flat.push(other),
        }
    }
    flat
}

/// The result of [`merge`].
pub(super) struct MergedAlternatives {
    /// The common prefix of all alternatives.
    pub(super) front: Vec<UnresolvedItem>,
    /// The remaining alternatives, unless they became one class.
    pub(super) rest: Option<Vec<Vec<UnresolvedItem>>>,
}

/// Merges alternatives as Python does where that is observable. A common prefix is moved to the
/// front, and alternatives of one listed character each become one class.
///
/// The language changes only through a quirk of case folding (see
/// [`super::unicode::case_folding`]), for whose sake this is done, and because a class is cheaper
/// than alternatives.
pub(super) fn merge(mut alternatives: Vec<Vec<UnresolvedItem>>) -> MergedAlternatives {
    let common = common_length(&alternatives);
    let mut front = Vec::new();
    for alternative in &mut alternatives {
        let rest = alternative.split_off(common);
        front = std::mem::replace(alternative, rest);
    }
    if !alternatives.iter().all(|alternative| is_listed(alternative)) {
        return MergedAlternatives { front, rest: Some(alternatives) };
    }
    let members = alternatives.into_iter().flatten().flat_map(listed_members);
    front.push(UnresolvedItem::Atom(CharAtom::Set { negated: false, members: unique(members) }));
    MergedAlternatives { front, rest: None }
}

/// Returns the length of the common prefix of all alternatives, in items.
fn common_length(alternatives: &[Vec<UnresolvedItem>]) -> usize {
    let Some((first, others)) = alternatives.split_first() else { return 0 };
    let mut common = first.len();
    for other in others {
        let equal = first.iter().zip(other).take(common).take_while(|(a, b)| is_same(a, b));
        common = equal.count();
    }
    common
}

/// Python compares compound items by identity, so they are never equal.
fn is_same(one: &UnresolvedItem, other: &UnresolvedItem) -> bool {
    match (one, other) {
        (UnresolvedItem::Atom(one), UnresolvedItem::Atom(other)) => one == other,
        (UnresolvedItem::Anchor(one), UnresolvedItem::Anchor(other)) => one == other,
        _ => false,
    }
}

fn is_listed(alternative: &[UnresolvedItem]) -> bool {
    matches!(
        alternative,
        [UnresolvedItem::Atom(CharAtom::Literal(_) | CharAtom::Set { negated: false, .. })]
    )
}

fn listed_members(item: UnresolvedItem) -> Vec<ClassMember> {
    match item {
        UnresolvedItem::Atom(CharAtom::Literal(code)) => vec![ClassMember::Literal(code)],
        UnresolvedItem::Atom(CharAtom::Set { members, .. }) => members,
        _ => Vec::new(),
    }
}

/// Returns the first occurrences, in order.
pub(super) fn unique<T: Clone + Eq + Hash>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = FxHashSet::default();
    values.into_iter().filter(|value| seen.insert(value.clone())).collect()
}
