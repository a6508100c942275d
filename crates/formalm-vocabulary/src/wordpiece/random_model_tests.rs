//! Random models against the definition: the longest piece from each end on.

use rustc_hash::FxHashSet;

use super::*;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

const LETTERS: [&str; 3] = ["a", "b", "é"];

fn texts(random: &mut Random, letters: u64) -> Vec<String> {
    let mut texts: Vec<String> = (0..1 + random.below(8))
        .map(|_| {
            let count = 1 + random.below(4);
            (0..count).map(|_| LETTERS[random.below(letters) as usize]).collect()
        })
        .collect();
    texts.sort();
    texts.dedup();
    texts
}

/// The definition, by string comparison.
fn naive(first: &[UnigramPiece], further: &[UnigramPiece], word: &str) -> Option<Vec<u32>> {
    let (mut start, mut tokens) = (0, Vec::new());
    while start < word.len() {
        let pieces = if start == 0 { first } else { further };
        let here = pieces.iter().filter(|piece| word.as_bytes()[start..].starts_with(&piece.text));
        let longest = here.max_by_key(|piece| piece.text.len())?;
        if !longest.has_text {
            return None;
        }
        tokens.push(longest.token);
        start += longest.text.len();
    }
    Some(tokens)
}

#[test]
fn states_accept_the_longest_pieces_of_every_word_and_no_others() {
    let mut random = Random(11);
    let mut sequences = 0;
    for _ in 0..12_000 {
        let letters = 2 + random.below(2);
        let mut token = 0;
        let mut pieces = |random: &mut Random| -> Vec<UnigramPiece> {
            let list = texts(random, letters).into_iter().map(|text| {
                token += 1;
                let has_text = random.below(15) != 0;
                UnigramPiece { text: text.into_bytes(), score: 0.0, token: token - 1, has_text }
            });
            list.collect()
        };
        let (first, further) = (pieces(&mut random), pieces(&mut random));
        let model = WordPieceModel::new(first.clone(), further.clone());
        let mut words = vec![String::new()];
        let mut from = 0;
        for _ in 0..5 {
            let end = words.len();
            for at in from..end {
                for letter in &LETTERS[..letters as usize] {
                    words.push(format!("{}{letter}", words[at]));
                }
            }
            from = end;
        }
        let mut expected: FxHashSet<Vec<u32>> = FxHashSet::default();
        for word in &words[1..] {
            let tokens = naive(&first, &further, word);
            let mut own = Vec::new();
            let encoded = model.encode(word.as_bytes(), true, &mut own).then_some(own);
            assert_eq!(encoded, tokens, "{word:?} {first:?} {further:?}");
            expected.extend(tokens);
        }
        let mut found: FxHashSet<Vec<u32>> = FxHashSet::default();
        let mut pending = vec![(OpenPieces::default(), String::new(), Vec::<u32>::new())];
        while let Some((state, word, tokens)) = pending.pop() {
            if !tokens.is_empty() {
                found.insert(tokens.clone());
            }
            let mut forbidden: FxHashSet<u32> = FxHashSet::default();
            let begins = tokens.is_empty();
            model.for_each_forbidden(&state, begins, |token| {
                forbidden.insert(token);
            });
            for piece in if begins { &first } else { &further } {
                let next = model.step(&state, piece.token, begins);
                let masked = forbidden.contains(&piece.token) || !piece.has_text;
                assert_eq!(next.is_none(), masked, "{first:?} {further:?} {state:?} {piece:?}");
                let longer = format!("{word}{}", String::from_utf8_lossy(&piece.text));
                if let Some(next) = next
                    && longer.chars().count() <= 5
                {
                    let mut tokens = tokens.clone();
                    tokens.push(piece.token);
                    pending.push((next, longer, tokens));
                }
            }
        }
        // A prefix of a canonical sequence is not canonical by itself if longer pieces end with it,
        // but here every word may end everywhere.
        sequences += found.len();
        assert!(found == expected, "{first:?} {further:?}");
    }
    assert!(sequences > 200_000, "{sequences}");
}
