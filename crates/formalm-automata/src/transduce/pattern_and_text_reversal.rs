//! Reversal of patterns and strings.

use formalm_core::Error;
use formalm_regex::{Pattern, PatternNode};

/// Returns the pattern of the reversed members, by characters.
///
/// # Errors
///
/// [`Error::Language`] for atomic groups and possessive quantifiers: what they give up depends on
/// the direction of reading.
pub(crate) fn reversed_pattern(pattern: &Pattern) -> Result<Pattern, Error> {
    Ok(Pattern { root: reversed(&pattern.root)?, ..pattern.clone() })
}

fn reversed(node: &PatternNode) -> Result<PatternNode, Error> {
    let boxed = |node: &PatternNode| reversed(node).map(Box::new);
    Ok(match node {
        PatternNode::Concat(list) => {
            PatternNode::Concat(list.iter().rev().map(reversed).collect::<Result<_, _>>()?)
        }
        PatternNode::Alternation(list) => {
            PatternNode::Alternation(list.iter().map(reversed).collect::<Result<_, _>>()?)
        }
        PatternNode::Repeat { node, min, max, lazy } => {
            PatternNode::Repeat { node: boxed(node)?, min: *min, max: *max, lazy: *lazy }
        }
        PatternNode::Group { index, node } => {
            PatternNode::Group { index: *index, node: boxed(node)? }
        }
        PatternNode::Look { ahead, negative, node } => {
            PatternNode::Look { ahead: !ahead, negative: *negative, node: boxed(node)? }
        }
        PatternNode::TextStart => PatternNode::TextEnd,
        PatternNode::TextEnd => PatternNode::TextStart,
        PatternNode::Atomic(_) => {
            return Err(Error::language(
                "atomic groups and possessive quantifiers cannot be reversed",
                Some("write the pattern without them"),
            ));
        }
        PatternNode::Empty | PatternNode::Class(_) | PatternNode::WordBoundary { .. } => {
            node.clone()
        }
    })
}

/// Reverses a string by characters; bytes outside of valid UTF-8 are moved one by one.
pub(crate) fn reversed_text(text: &[u8]) -> Vec<u8> {
    let mut pieces: Vec<&[u8]> = Vec::new();
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid();
        pieces.extend(valid.char_indices().map(|(at, c)| &valid.as_bytes()[at..at + c.len_utf8()]));
        pieces.extend(chunk.invalid().chunks(1));
    }
    pieces.into_iter().rev().flatten().copied().collect()
}
