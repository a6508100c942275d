//! Split steps after `ByteLevel`: they read the characters that stand for bytes, not the text.
//!
//! ```text
//!  text     o  ò        ²  1          a step Digits after ByteLevel: some bytes are "digits"
//!  bytes    6F C3 | B2  C2 | B2 31
//!  read     o  Ã  | ²   Â  | ²  1
//! ```
//!
//! Such a step can split inside a character. A pattern of characters that all stand for ASCII bytes
//! never does, so it becomes a pattern of text. So does a step that separates the characters of one
//! class from all others: between characters, only the last byte of the one and the first byte of the
//! other matter. Inside characters its splits are forced, and [`SplitBytes`] says where they are.

use formalm_core::CharSet;
use formalm_regex::PatternNode;

use crate::tokenizer_json::byte_level_byte;

/// The way in which a step treats the characters of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassSplit {
    /// Each is a pre-token.
    Single,
    /// Adjacent ones are one pre-token.
    Runs,
}

/// The bytes at which pre-tokens begin inside characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SplitBytes {
    /// The bytes of the class, as bits.
    class: [u64; 4],
    split: ClassSplit,
}

impl SplitBytes {
    /// Returns `true` if a byte belongs to the class.
    #[inline]
    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.class[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    /// Returns `true` if a pre-token begins before a byte inside a character, given whether the byte
    /// before it belongs to the class.
    #[inline]
    pub(crate) fn begins_pretoken(&self, before: bool, byte: u8) -> bool {
        let here = self.contains(byte);
        match self.split {
            ClassSplit::Single => before || here,
            ClassSplit::Runs => before != here,
        }
    }

    /// Returns the numbers to save.
    pub(crate) fn to_numbers(self) -> Vec<u32> {
        let halves = self.class.iter().flat_map(|&bits| [bits as u32, (bits >> 32) as u32]);
        [u32::from(self.split == ClassSplit::Runs)].into_iter().chain(halves).collect()
    }

    /// Reads the output of [`SplitBytes::to_numbers`]. Returns `None` if it is something else.
    pub(crate) fn from_numbers(numbers: &[u32]) -> Option<SplitBytes> {
        let (&split, halves) = numbers.split_first()?;
        let halves: [u32; 8] = halves.try_into().ok()?;
        let split = match split {
            0 => ClassSplit::Single,
            1 => ClassSplit::Runs,
            _ => return None,
        };
        let class = std::array::from_fn(|at| {
            u64::from(halves[2 * at]) | u64::from(halves[2 * at + 1]) << 32
        });
        let bytes = SplitBytes { class, split };
        (0xC2..=0xF4).all(|lead| !bytes.contains(lead)).then_some(bytes)
    }
}

/// Returns the bytes whose characters are in a set.
fn bytes_of(set: &CharSet) -> [u64; 4] {
    let mut class = [0; 4];
    // The characters that stand for bytes are the first of Unicode.
    let characters = '\0'..='\u{17F}';
    for byte in characters.filter(|&c| set.contains(c)).filter_map(byte_level_byte) {
        class[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    class
}

/// Returns the pattern of text for a pattern of byte-level characters, or `None` if it contains the
/// character of a byte that is not ASCII.
pub(crate) fn of_ascii(node: PatternNode) -> Option<PatternNode> {
    let all = |nodes: Vec<PatternNode>| nodes.into_iter().map(of_ascii).collect::<Option<_>>();
    let boxed = |node: Box<PatternNode>| of_ascii(*node).map(Box::new);
    Some(match node {
        PatternNode::Class(set) => {
            let class = bytes_of(&set);
            if class[2..] != [0; 2] {
                return None;
            }
            PatternNode::Class(ascii(&class))
        }
        PatternNode::Concat(nodes) => PatternNode::Concat(all(nodes)?),
        PatternNode::Alternation(nodes) => PatternNode::Alternation(all(nodes)?),
        PatternNode::Repeat { node, min, max, lazy } => {
            PatternNode::Repeat { node: boxed(node)?, min, max, lazy }
        }
        PatternNode::Group { index, node } => PatternNode::Group { index, node: boxed(node)? },
        PatternNode::Atomic(node) => PatternNode::Atomic(boxed(node)?),
        PatternNode::Look { ahead, negative, node } => {
            PatternNode::Look { ahead, negative, node: boxed(node)? }
        }
        other => other,
    })
}

/// Returns the class of a pattern that is one class, or a greedy run of one, and how it splits.
pub(crate) fn class_of(node: &PatternNode) -> Option<(&CharSet, ClassSplit)> {
    match node {
        PatternNode::Class(set) => Some((set, ClassSplit::Single)),
        PatternNode::Group { node, .. } => class_of(node),
        PatternNode::Concat(nodes) if nodes.len() == 1 => class_of(&nodes[0]),
        PatternNode::Repeat { node, min: 1, max: None, lazy: false } => match class_of(node)? {
            (set, ClassSplit::Single) => Some((set, ClassSplit::Runs)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the pattern of text whose matches a step separates that splits at a class of byte-level
/// characters, and its splits inside characters. Returns `None` if the first byte of a character may
/// be in the class.
pub(crate) fn of_class(set: &CharSet, split: ClassSplit) -> Option<(PatternNode, SplitBytes)> {
    let class = bytes_of(set);
    let bytes = SplitBytes { class, split };
    if (0xC2..=0xF4).any(|lead| bytes.contains(lead)) {
        return None;
    }
    let inside = ascii(&class);
    // Further bytes of a character have six bits of its number.
    let ends = |low: u32| bytes.contains(0x80 | low as u8);
    let blocks = (0x80 >> 6)..=(u32::from(char::MAX) >> 6);
    let characters = blocks.flat_map(|block| (0..64).map(move |low| (block << 6 | low, low)));
    let ends_inside = CharSet::from_ranges(
        characters
            .filter(|&(_, low)| ends(low))
            .filter_map(|(code, _)| char::from_u32(code).map(|c| (c, c))),
    );
    let others = inside.union(&ends_inside).complement();
    let class = PatternNode::Class;
    let repeat = |set: &CharSet, min| PatternNode::Repeat {
        node: Box::new(class(set.clone())),
        min,
        max: None,
        lazy: false,
    };
    let mut into = vec![repeat(&others, 0), class(ends_inside)];
    let own = match split {
        ClassSplit::Single => class(inside),
        ClassSplit::Runs => {
            into.push(repeat(&inside, 0));
            repeat(&inside, 1)
        }
    };
    let pieces = vec![PatternNode::Concat(into), repeat(&others, 1), own];
    Some((PatternNode::Alternation(pieces), bytes))
}

/// Returns the ASCII characters of a class of bytes.
fn ascii(class: &[u64; 4]) -> CharSet {
    let within = (0..0x80u8).filter(|byte| class[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0);
    CharSet::from_ranges(within.map(|byte| (char::from(byte), char::from(byte))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits() -> CharSet {
        CharSet::from_ranges(('\0'..='\u{17F}').filter(|c| c.is_numeric()).map(|c| (c, c)))
    }

    #[test]
    fn the_digits_among_byte_level_characters_are_bytes_inside_characters_too() {
        let (_, bytes) = of_class(&digits(), ClassSplit::Runs).expect("no first byte is a digit");
        let expected: Vec<u8> = (b'0'..=b'9').chain([0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE]).collect();
        let found: Vec<u8> = (0..=255).filter(|&byte| bytes.contains(byte)).collect();
        assert_eq!(found, expected);
        assert!(bytes.begins_pretoken(false, 0xB2) && !bytes.begins_pretoken(true, 0xB2));
        assert_eq!(SplitBytes::from_numbers(&bytes.to_numbers()), Some(bytes));
        assert_eq!(SplitBytes::from_numbers(&[2; 9]), None);
    }

    #[test]
    fn a_space_is_written_as_another_character() {
        let single = |c| PatternNode::Class(CharSet::single(c));
        assert_eq!(of_ascii(single('\u{120}')), Some(single(' ')));
        assert_eq!(of_ascii(single(' ')), Some(PatternNode::Class(CharSet::empty())));
        assert_eq!(of_ascii(single('²')), None);
        assert!(of_class(&CharSet::single('Ã'), ClassSplit::Single).is_none());
    }
}
