//! A new kind of machine, balanced brackets with a counter, has all that constraints offer.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::Arc;

use formalm_constraint::{Constraint, Matcher, TextBegin};
use formalm_core::{InterruptCheck, LazyDfa, random_member};
use formalm_machines::IdentityClasses;
use formalm_vocabulary::{Vocabulary, bpe::BpeEncoder};

#[path = "support/balanced_brackets.rs"]
mod balanced_brackets;
use balanced_brackets::BalancedBrackets;

const TOKENS: [&str; 5] = ["(", ")", "()", "((", "()()"];
/// Merges in order of rank: the pair, and what it makes.
const MERGES: [(u32, u32, u32); 3] = [(0, 1, 2), (0, 0, 3), (2, 2, 4)];
/// The end token, after the tokens above and those of the other 254 bytes.
const END: u32 = 259;
const WORDS: usize = 9;

fn constraint(canonical: bool) -> Arc<Constraint<IdentityClasses<BalancedBrackets>>> {
    let others = || (0..=255u8).filter(|byte| !b"()".contains(byte));
    let tokens = TOKENS.iter().map(|token| Some(token.as_bytes().to_vec()));
    let tokens = tokens.chain(others().map(|byte| Some(vec![byte]))).chain([None]).collect();
    let vocabulary = Arc::new(Vocabulary::from_tokens(tokens, vec![END]).unwrap());
    let classes = IdentityClasses::new(Arc::new(BalancedBrackets));
    if !canonical {
        return Arc::new(Constraint::over(classes, vocabulary, 1 << 20));
    }
    // Byte-level pieces: a printable byte is itself, any other the next character from U+0100 on.
    let mut spare = (0x100..).filter_map(char::from_u32);
    let pieces = others().map(|byte| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        33..=126 | 161..=172 | 174..=255 => char::from(byte).to_string(),
        _ => spare.next().unwrap().to_string(),
    });
    let pieces = TOKENS.iter().map(|token| (*token).to_owned()).chain(pieces);
    let listed: Vec<String> = pieces.zip(0..).map(|(one, id)| format!("\"{one}\": {id}")).collect();
    let file = format!(
        r#"{{"added_tokens": [], "decoder": {{"type": "ByteLevel"}},
            "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}},
            "model": {{"type": "BPE", "vocab": {{{}}},
                "merges": [["(", ")"], ["(", "("], ["()", "()"]]}}}}"#,
        listed.join(", ")
    );
    let encoder = Arc::new(BpeEncoder::from_tokenizer_json(file.as_bytes(), None).unwrap());
    Arc::new(
        Constraint::canonical_over(classes, vocabulary, encoder, 1 << 20, TextBegin::Anywhere)
            .unwrap(),
    )
}

/// Byte-pair encoding by its definition.
fn encode(text: &[u8]) -> Vec<u32> {
    let mut tokens: Vec<u32> = text.iter().map(|&byte| u32::from(byte == b')')).collect();
    for (left, right, made) in MERGES {
        let mut at = 0;
        while at + 1 < tokens.len() {
            if tokens[at..at + 2] == [left, right] {
                tokens.splice(at..at + 2, [made]);
            }
            at += 1;
        }
    }
    tokens
}

/// Returns all balanced strings of at most `max` bytes.
fn members(max: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), 0usize)];
    while let Some((text, depth)) = open.pop() {
        if depth == 0 {
            found.push(text.clone());
        }
        for (byte, depth) in [(b'(', Some(depth + 1)), (b')', depth.checked_sub(1))] {
            if let Some(depth) = depth.filter(|depth| text.len() + 1 + depth <= max) {
                open.push(([&text[..], &[byte]].concat(), depth));
            }
        }
    }
    found
}

fn allowed(matcher: &Matcher<IdentityClasses<BalancedBrackets>>) -> BTreeSet<u32> {
    let mut mask = [0; WORDS];
    matcher.fill(&mut mask).unwrap();
    (0..=END).filter(|&token| mask[token as usize / 32] >> (token % 32) & 1 != 0).collect()
}

#[test]
fn masks_allow_exactly_the_tokens_that_keep_brackets_balanced() {
    let constraint = constraint(false);
    for depth in 0u32..5 {
        let mut matcher = Matcher::new(Arc::clone(&constraint));
        (0..depth).for_each(|_| matcher.advance(0).unwrap());
        let mut expected = BTreeSet::from([0, 2, 3, 4]);
        expected.insert(if depth == 0 { END } else { 1 });
        assert_eq!(allowed(&matcher), expected);
    }
}

#[test]
fn canonical_masks_allow_exactly_the_tokens_of_encoded_members() {
    let constraint = constraint(true);
    let encoded: Vec<Vec<u32>> = members(14).iter().map(|text| encode(text)).collect();
    for tokens in members(6).iter().map(|text| encode(text)) {
        let mut matcher = Matcher::new(Arc::clone(&constraint));
        for at in 0..=tokens.len() {
            let longer = encoded.iter().filter(|one| one.starts_with(&tokens[..at]));
            let expected: BTreeSet<u32> =
                longer.map(|one| one.get(at).copied().unwrap_or(END)).collect();
            assert_eq!(allowed(&matcher), expected, "after {:?}", &tokens[..at]);
            if let Some(&token) = tokens.get(at) {
                matcher.advance(token).unwrap();
            }
        }
    }
}

#[test]
fn a_budget_and_a_rollback_work() {
    let mut matcher = Matcher::new(constraint(false));
    matcher.advance(3).unwrap();
    matcher.advance(3).unwrap();
    assert_eq!(matcher.shortest_tokens(9).unwrap(), Some(vec![1, 1, 1, 1]));
    let mut mask = [0; WORDS];
    matcher.fill_within(4, &mut mask).unwrap();
    assert_eq!(mask, [0b10, 0, 0, 0, 0, 0, 0, 0, 0]); // only `)` leaves the budget enough
    assert!(matcher.rollback(1));
    assert_eq!(matcher.shortest_tokens(9).unwrap(), Some(vec![1, 1]));
}

#[test]
fn random_members_are_members() {
    let mut go_on = || true;
    let mut poll = InterruptCheck::new(&mut go_on);
    for seed in 0..50 {
        let text = random_member(&BalancedBrackets, seed, 20, &mut poll).unwrap();
        let end = BalancedBrackets.walk(BalancedBrackets.start(), &text).unwrap().unwrap();
        assert!(BalancedBrackets.is_accepting(end).unwrap());
    }
}
