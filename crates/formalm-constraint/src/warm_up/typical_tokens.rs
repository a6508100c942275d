//! Tokens such as tokenizers make of a text, without a tokenizer.
//!
//! ```text
//!  {"userName": "a-b"}    pieces    {"  userName  ":  _"  a  -b  "}
//!                         merged    {"  user Name ":  _"  a  -b  "}
//! ```
//!
//! Tokenizers that merge pairs first split a text into words, numbers and runs of punctuation, then
//! merge adjacent parts of each piece, the pair first whose token has the lowest rank. Ranks rise
//! with ids in most vocabularies. The pieces are those of recent models; of others, which split
//! more, no token crosses a boundary that is missing here.

use formalm_vocabulary::Vocabulary;

/// Maximum number of digits of a piece.
const MAX_DIGITS: usize = 3;

/// Maximum length of pieces that are merged, in bytes; longer ones get the longest tokens. Chosen,
/// not measured.
const MAX_MERGED_BYTES: usize = 64;

/// Returns tokens of a text, up to bytes that no token has. They spell the text, but a tokenizer may
/// choose others.
pub(crate) fn typical_tokens(vocabulary: &Vocabulary, text: &[u8]) -> Vec<u32> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece_len(rest));
        rest = after;
        let begun = tokens.len();
        if let Some(whole) = token_of(vocabulary, piece) {
            tokens.push(whole);
        } else if piece.len() > MAX_MERGED_BYTES || !merge(vocabulary, piece, &mut tokens) {
            tokens.truncate(begun);
            if !add_longest(vocabulary, piece, &mut tokens) {
                return tokens;
            }
        }
    }
    tokens
}

/// The kinds of bytes that pieces are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteKind {
    Letter,
    Digit,
    Space,
    LineBreak,
    Other,
}

fn kind(byte: u8) -> ByteKind {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => ByteKind::Letter,
        b'0'..=b'9' => ByteKind::Digit,
        b' ' | b'\t' => ByteKind::Space,
        b'\n' | b'\r' => ByteKind::LineBreak,
        _ => ByteKind::Other,
    }
}

/// Returns the length of the first piece of a text that is not empty.
fn piece_len(text: &[u8]) -> usize {
    let run = |from: usize, wanted: ByteKind| {
        text[from..].iter().take_while(|&&byte| kind(byte) == wanted).count()
    };
    let first = kind(text[0]);
    match first {
        ByteKind::Letter => return run(0, ByteKind::Letter),
        ByteKind::Digit => return run(0, ByteKind::Digit).min(MAX_DIGITS),
        _ => {}
    }
    // A word, with the character before it.
    let letters = run(1, ByteKind::Letter);
    if first != ByteKind::LineBreak && letters > 0 {
        return 1 + letters;
    }
    // Punctuation, with a space before it and line breaks after it.
    let start = usize::from(text[0] == b' ');
    let others = run(start, ByteKind::Other);
    if others > 0 {
        return start + others + run(start + others, ByteKind::LineBreak);
    }
    let is_blank = |&&byte: &&u8| matches!(kind(byte), ByteKind::Space | ByteKind::LineBreak);
    let blanks = text.iter().take_while(is_blank).count();
    // The last blank belongs to what follows.
    if blanks > 1 && blanks < text.len() { blanks - 1 } else { blanks }
}

/// Returns the lowest token with some bytes.
fn token_of(vocabulary: &Vocabulary, bytes: &[u8]) -> Option<u32> {
    let trie = vocabulary.trie();
    trie.nodes()[trie.find(bytes)? as usize].word()
}

/// Appends the tokens that merging makes of a piece. Returns `false` if one of its bytes has no
/// token.
fn merge(vocabulary: &Vocabulary, piece: &[u8], tokens: &mut Vec<u32>) -> bool {
    // The start of each part, and the rank of the token that it makes with the next one.
    let mut starts: Vec<usize> = (0..=piece.len()).collect();
    let rank = |starts: &[usize], at: usize| {
        let end = starts.get(at + 2)?;
        token_of(vocabulary, &piece[starts[at]..*end])
    };
    let mut ranks: Vec<Option<u32>> = (0..piece.len()).map(|at| rank(&starts, at)).collect();
    while let Some((_, at)) =
        ranks.iter().enumerate().filter_map(|(at, rank)| Some(((*rank)?, at))).min()
    {
        starts.remove(at + 1);
        ranks.remove(at + 1);
        ranks[at] = rank(&starts, at);
        if let Some(before) = at.checked_sub(1) {
            ranks[before] = rank(&starts, before);
        }
    }
    starts.windows(2).all(|part| {
        let token = token_of(vocabulary, &piece[part[0]..part[1]]);
        tokens.extend(token);
        token.is_some()
    })
}

/// Appends the longest token at each place. Returns `false` at bytes that no token has.
fn add_longest(vocabulary: &Vocabulary, text: &[u8], tokens: &mut Vec<u32>) -> bool {
    let (trie, mut rest) = (vocabulary.trie(), text);
    while let Some((&first, after)) = rest.split_first() {
        let (mut node, mut longest) = (trie.root_child(first), None);
        let mut bytes = after.iter();
        let mut length = 1;
        while let Some(at) = node {
            if let Some(&token) = trie.tokens_at(at).first() {
                longest = Some((token, length));
            }
            node = bytes.next().and_then(|&byte| trie.child(at, byte));
            length += 1;
        }
        let Some((token, length)) = longest else { return false };
        tokens.push(token);
        rest = &rest[length..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(merged: &[&str]) -> Vocabulary {
        let bytes = (0..=255u8).map(|byte| Some(vec![byte]));
        let merged = merged.iter().map(|text| Some(text.as_bytes().to_vec()));
        Vocabulary::from_tokens(bytes.chain(merged).collect(), vec![]).unwrap()
    }

    fn shown(vocabulary: &Vocabulary, text: &str) -> Vec<String> {
        let spelled =
            |token| String::from_utf8_lossy(vocabulary.token_bytes(token).unwrap()).into();
        typical_tokens(vocabulary, text.as_bytes()).into_iter().map(spelled).collect()
    }

    #[test]
    fn texts_are_split_before_parts_are_merged() {
        let all =
            vocabulary(&["\"n", "na", "me", "name", "\":", " \"", "\": ", "12", "123", "1234"]);
        let tokens = shown(&all, "{\"name\": \"12345 7\", }");
        assert_eq!(
            tokens,
            ["{", "\"", "name", "\":", " \"", "123", "4", "5", " ", "7", "\"", ",", " ", "}"]
        );
    }

    #[test]
    fn the_pair_of_the_lowest_rank_is_merged_first() {
        let all = vocabulary(&["bc", "ab", "cd", "abc", "xy"]);
        assert_eq!(shown(&all, "abcd"), ["abc", "d"]);
        let all = vocabulary(&["ab", "cd", "bc", "xy"]);
        assert_eq!(shown(&all, "abcd xyxz"), ["ab", "cd", " ", "xy", "x", "z"]);
    }

    #[test]
    fn tokens_spell_the_text_up_to_a_byte_without_token() {
        let few: Vec<Option<Vec<u8>>> = ["ab", "b", "cab", "\u{e9}"]
            .iter()
            .map(|text| Some(text.as_bytes().to_vec()))
            .collect();
        let few = Vocabulary::from_tokens(few, vec![]).unwrap();
        assert_eq!(shown(&few, "abcabb\u{e9}ab?ab"), ["ab", "cab", "b", "\u{e9}", "ab"]);
        let long = "ab".repeat(MAX_MERGED_BYTES);
        assert_eq!(shown(&few, &long).len(), MAX_MERGED_BYTES);
        assert!(shown(&few, "").is_empty());
        let all = vocabulary(&["  ", " \n"]);
        for text in ["", " ", "a  b", "\n\n{\n  \"a\": [1.5, -2e10]\n}", "?!  ", "\t\tx y\u{20ac}1"]
        {
            assert_eq!(
                shown(&all, text).concat(),
                text.replace('\u{20ac}', "\u{fffd}\u{fffd}\u{fffd}")
            );
        }
    }
}
