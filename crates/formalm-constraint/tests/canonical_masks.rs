//! Property test: canonical masks against the encoding of every string, on random merge lists.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::Arc;

use formalm_automata::{Automaton, AutomatonLimits, Expression};
use formalm_constraint::{Constraint, Matcher};
use formalm_regex::{PatternDialect, PatternFlags, parse};
use formalm_vocabulary::{Vocabulary, bpe::BpeEncoder};
use proptest::prelude::*;

/// Returns the byte-level characters, by GPT-2's rule.
fn characters() -> Vec<char> {
    let plain = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut others = (0x100..).filter_map(char::from_u32);
    (0..256)
        .map(|byte| {
            let own = plain(&byte).then(|| char::from_u32(byte)).flatten();
            own.or_else(|| others.next()).unwrap()
        })
        .collect()
}

/// Pieces and merges over `abc`, in an order that training need not produce.
#[derive(Clone, Debug)]
struct Model {
    pieces: Vec<String>,
    merges: Vec<(String, String)>,
    ignore_merges: bool,
}

fn model() -> impl Strategy<Value = Model> {
    let texts = prop::collection::vec("[abc]{2,4}", 1..10);
    let order = any::<bool>();
    (texts, order, any::<bool>()).prop_map(|(texts, backwards, ignore_merges)| {
        let mut pieces: Vec<String> = characters().into_iter().map(String::from).collect();
        for text in texts {
            if !pieces.contains(&text) {
                pieces.push(text);
            }
        }
        let mut merges = Vec::new();
        for piece in &pieces[256..] {
            for at in 1..piece.len() {
                let (left, right) = (piece[..at].to_owned(), piece[at..].to_owned());
                if pieces.contains(&left) && pieces.contains(&right) {
                    merges.push((left, right));
                }
            }
        }
        if backwards {
            merges.reverse();
        }
        Model { pieces, merges, ignore_merges }
    })
}

impl Model {
    fn file(&self) -> String {
        let quoted = |text: &String| format!("{text:?}");
        let escaped = |text: &String| match text.as_str() {
            "\"" => "\"\\\"\"".to_owned(),
            "\\" => "\"\\\\\"".to_owned(),
            _ => format!("\"{text}\""),
        };
        let vocab: Vec<String> = self
            .pieces
            .iter()
            .enumerate()
            .map(|(id, piece)| format!("{}: {id}", escaped(piece)))
            .collect();
        let merges: Vec<String> = self
            .merges
            .iter()
            .map(|(left, right)| format!("[{}, {}]", quoted(left), quoted(right)))
            .collect();
        format!(
            r#"{{"pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false,
                "use_regex": false}}, "decoder": {{"type": "ByteLevel"}}, "model": {{"type": "BPE",
                "ignore_merges": {}, "vocab": {{{}}}, "merges": [{}]}}}}"#,
            self.ignore_merges,
            vocab.join(", "),
            merges.join(", ")
        )
    }

    /// The reference implementation of the tokenizer.
    fn encode(&self, text: &str) -> Vec<u32> {
        let id = |piece: &String| self.pieces.iter().position(|known| known == piece);
        if self.ignore_merges
            && let Some(whole) = id(&text.to_owned())
        {
            return vec![whole as u32];
        }
        let mut parts: Vec<String> = text.chars().map(String::from).collect();
        while let Some((left, right)) = self.merges.iter().find(|(left, right)| {
            parts.windows(2).any(|pair| pair == [left.clone(), right.clone()])
        }) {
            let at = parts.windows(2).position(|pair| pair == [left.clone(), right.clone()]);
            let at = at.unwrap();
            parts.splice(at..at + 2, [format!("{left}{right}")]);
        }
        parts.iter().map(|part| id(part).unwrap() as u32).collect()
    }
}

/// Collects every token sequence that masks allow up to a string in the language.
fn follow(matcher: &mut Matcher, found: &mut BTreeSet<Vec<u32>>) {
    let mut words = vec![0; matcher.constraint().words()];
    matcher.fill(&mut words).unwrap();
    let allowed: Vec<u32> = (0..words.len() as u32 * 32)
        .filter(|id| words[*id as usize / 32] >> (id % 32) & 1 != 0)
        .collect();
    let accepting = matcher.is_accepting().unwrap();
    assert!(accepting || !allowed.is_empty(), "a dead end: {:?}", matcher.token_ids());
    if accepting {
        assert!(found.insert(matcher.token_ids()), "twice: {:?}", matcher.token_ids());
    }
    for id in allowed {
        matcher.advance(id).unwrap();
        follow(matcher, found);
        assert!(matcher.rollback(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn masks_allow_exactly_the_encodings_of_the_strings(
        model in model(),
        pattern in prop::sample::select(vec![
            "[abc]{0,5}", "a*b{0,3}c", "(?:ab|ba|c){0,4}", "(?:abc|ca){1,3}b?", "a{0,7}", "abcabc",
        ]),
    ) {
        let pattern = pattern.replace("a*", "a{0,4}");
        let file = model.file();
        let vocabulary = Arc::new(Vocabulary::from_tokenizer_json(file.as_bytes(), None).unwrap());
        let encoder = BpeEncoder::from_tokenizer_json(file.as_bytes(), None).unwrap();
        encoder.check(&vocabulary).unwrap();
        let parsed = parse(&pattern, PatternDialect::Python, PatternFlags::default()).unwrap();
        let expression = Expression::pattern(parsed);
        let automaton = Arc::new(Automaton::new(&expression, AutomatonLimits::default()).unwrap());
        let bytes = (0..=255u8).map(|byte| Some(vec![byte])).collect();
        let single = Arc::new(Vocabulary::from_tokens(bytes, vec![]).unwrap());
        let mut members = BTreeSet::new();
        let plain = Constraint::new(Arc::clone(&automaton), single, 1 << 24);
        follow(&mut Matcher::new(Arc::new(plain)), &mut members);
        let expected: BTreeSet<Vec<u32>> = members
            .into_iter()
            .map(|text| text.into_iter().map(|byte| byte as u8 as char).collect::<String>())
            .map(|text| model.encode(&text))
            .collect();
        let canonical =
            Constraint::canonical(automaton, vocabulary, Arc::new(encoder), 1 << 24).unwrap();
        let mut found = BTreeSet::new();
        follow(&mut Matcher::new(Arc::new(canonical)), &mut found);
        prop_assert_eq!(found, expected);
    }
}
