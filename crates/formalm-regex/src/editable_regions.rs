//! Editable regions: the named groups that edits may be confined to, and their restrictions.

use formalm_core::{CharSet, Error, SourceSpan};

use crate::{Pattern, PatternNode};

/// Returns the characters of a pattern that is one class, or a choice of classes.
pub fn class_of(node: &PatternNode) -> Option<CharSet> {
    match node {
        PatternNode::Class(set) => Some(set.clone()),
        PatternNode::Group { node, .. } => class_of(node),
        PatternNode::Alternation(list) => list
            .iter()
            .try_fold(CharSet::empty(), |joined, one| Some(joined.union(&class_of(one)?))),
        _ => None,
    }
}

impl Pattern {
    /// Returns the numbers of the groups called `name`.
    pub fn groups_named(&self, name: &str) -> Vec<u32> {
        let numbered = (1..).zip(&self.groups);
        let named = numbered.filter(|(_, group)| group.name.as_deref() == Some(name));
        named.map(|(number, _)| number).collect()
    }
}

/// Checks that the groups called `name` can be edited by themselves.
///
/// # Errors
///
/// [`Error::Language`] if there is no such group; if one is repeated, since the edits of all its
/// occurrences would have to be counted together; or if the pattern has lookaround, whose
/// surroundings edits would change.
pub fn check_region(pattern: &Pattern, name: &str) -> Result<(), Error> {
    let groups = pattern.groups_named(name);
    let Some(&first) = groups.first() else {
        let names: Vec<&str> =
            pattern.groups.iter().filter_map(|group| group.name.as_deref()).collect();
        return Err(Error::language(
            format!("the pattern has no group named {name:?}"),
            Some(&if names.is_empty() {
                format!("name a part of the pattern: (?P<{name}>…)")
            } else {
                format!("its named groups are {}", names.join(", "))
            }),
        ));
    };
    let span = pattern.groups[first as usize - 1].span;
    check_node(&pattern.root, &groups, false, span).map(|_| ())
}

/// Returns `true` if a region is in the node.
fn check_node(
    node: &PatternNode,
    groups: &[u32],
    inside: bool,
    span: SourceSpan,
) -> Result<bool, Error> {
    match node {
        PatternNode::Empty | PatternNode::Class(_) => Ok(false),
        PatternNode::Concat(list) | PatternNode::Alternation(list) => {
            let mut found = false;
            for one in list {
                found |= check_node(one, groups, inside, span)?;
            }
            Ok(found)
        }
        PatternNode::Repeat { node, max, .. } => {
            let found = check_node(node, groups, inside, span)?;
            if found && *max != Some(1) {
                return Err(Error::at(
                    "a repeated group cannot be a region of edits",
                    span,
                    Some("move the repetition into the group"),
                ));
            }
            Ok(found)
        }
        PatternNode::Group { index, node } => {
            let region = groups.contains(index);
            if region && inside {
                let message = "a region of edits cannot contain another group of the same name";
                return Err(Error::at(message, span, None));
            }
            Ok(check_node(node, groups, inside || region, span)? || region)
        }
        PatternNode::Atomic(_) | PatternNode::Look { .. } | PatternNode::WordBoundary { .. } => {
            Err(Error::at(
                "a group cannot be a region of edits in a pattern with lookaround or atomic groups",
                span,
                Some("edits would change what they match; write the pattern without them"),
            ))
        }
        PatternNode::TextStart | PatternNode::TextEnd => {
            let message = "a region of edits cannot contain an anchor";
            let hint = Some("remove the anchor: the pattern always matches the whole string");
            if inside { Err(Error::at(message, span, hint)) } else { Ok(false) }
        }
    }
}
