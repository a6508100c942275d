//! Property tests: tokens grouped by target, and masks, against reading every token.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use formalm_automata::{Automaton, AutomatonLimits, Expression};
use formalm_core::{LazyDfa, ReadingHints};
use formalm_machines::{RegularMaskClasses, StateClasses};
use formalm_regex::{PatternDialect, PatternFlags, parse};
use formalm_vocabulary::{
    Vocabulary,
    bpe::{BOUNDARIES, Boundary, BpeEncoder, PretokenState},
};
use proptest::prelude::*;

use super::joint_targets::{
    JointTarget, TargetGroups, TokenChoice, TokenSources, tokens, tokens_by_reading,
};
use super::language_targets::LanguageTargetCache;
use super::liveness::Liveness;
use super::product::Product;
use super::subsets::SubsetElement;
use super::{ProductContext, TextBegin};
use crate::mask::patch;

/// Maximum number of targets visited in one language.
const MAX_TARGETS: usize = 300;

/// A `tokenizer.json` whose pieces are spelled in byte-level characters and split as GPT-2 splits.
/// Every piece of two characters has a merge; longer ones are whole tokens.
pub(super) fn file(pieces: &BTreeSet<String>, added: bool, whole: bool, nfc: bool) -> String {
    let plain = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut others = (0x100..).filter_map(char::from_u32);
    let bytes = (0..256u32).map(|byte| {
        let own = plain(&byte).then(|| char::from_u32(byte)).flatten();
        own.or_else(|| others.next()).unwrap()
    });
    let mut vocab: Vec<String> = bytes.map(String::from).collect();
    vocab.extend(pieces.iter().cloned());
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let merges: Vec<String> = pieces
        .iter()
        .filter(|piece| piece.chars().count() == 2)
        .map(|piece| {
            let parts: Vec<String> = piece.chars().map(|c| quoted(&c.to_string())).collect();
            format!("[{}]", parts.join(", "))
        })
        .collect();
    let listed: Vec<String> =
        vocab.iter().enumerate().map(|(id, piece)| format!("{}: {id}", quoted(piece))).collect();
    let added = match added {
        true => format!(r#"[{{"id": {}, "content": "b a", "special": false}}]"#, vocab.len()),
        false => "[]".to_owned(),
    };
    let normalizer = if nfc { r#"{"type": "NFC"}"# } else { "null" };
    format!(
        r#"{{"added_tokens": {added}, "normalizer": {normalizer}, "pre_tokenizer": {{"type": "ByteLevel",
            "add_prefix_space": false, "use_regex": true}}, "decoder": {{"type": "ByteLevel"}},
            "model": {{"type": "BPE", "ignore_merges": {whole}, "vocab": {{{}}},
            "merges": [{}]}}}}"#,
        listed.join(", "),
        merges.join(", ")
    )
}

/// Returns the target of each token.
fn sorted(groups: &TargetGroups) -> BTreeMap<u32, (u32, u32, PretokenState)> {
    let mut found = BTreeMap::new();
    for (target, tokens) in groups {
        tokens.find(|token| {
            let before = found.insert(
                token,
                (target.state.number(), target.splitter_state.boundaries, target.pretoken),
            );
            assert_eq!(before, None, "token {token} twice");
            None::<()>
        });
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn grouping_by_target_matches_reading_every_token(
        // Letters, a space, digits, an apostrophe, and the bytes of é and 中.
        pieces in prop::collection::btree_set("[absĠ1'.Ã©ä¸Ń]{2,4}", 1..40),
        crowd in 0..1200usize,
        added in any::<bool>(),
        whole in any::<bool>(),
        pattern in prop::sample::select(vec![
            r"(?s:.*)", r#""[^"]*""#, "[ab ]{0,6}", "(?:a|b| a|'s|1)*b", r"(?:\w| )*", "é*中?a*",
        ]),
    ) {
        // Enough tokens that sets of them are bitmasks.
        let mut pieces = pieces;
        pieces.extend((0..crowd).map(|at| {
            let letter = |at: usize| char::from(b'a' + (at % 26) as u8);
            format!("{}{}{}", letter(at), letter(at / 26), letter(at / 676))
        }));
        let file = file(&pieces, added, whole, false);
        let vocabulary = Vocabulary::from_tokenizer_json(file.as_bytes(), None).unwrap();
        let encoder = BpeEncoder::from_tokenizer_json(file.as_bytes(), None).unwrap();
        encoder.check(&vocabulary).unwrap();
        let parsed = parse(pattern, PatternDialect::Python, PatternFlags::default()).unwrap();
        let machine = Automaton::new(&Expression::pattern(parsed), AutomatonLimits::default()).unwrap();
        let keys = RegularMaskClasses::new(Arc::new(machine), vocabulary.longest_token_bytes());
        let (keys, machine, vocabulary, encoder) = (&keys, &**keys.machine(), &vocabulary, &encoder);
        let open_pieces = formalm_vocabulary::unigram::OpenPiecesTable::default();
        let context = ProductContext { keys, machine, vocabulary, encoder, special: &[], open_pieces: &open_pieces, begin: TextBegin::Anywhere };
        prop_assert!(encoder.token_transitions(vocabulary).is_some());
        let mut language_targets = LanguageTargetCache::default();
        let splitter_state = encoder.splitter().start();
        let mut found_targets = vec![JointTarget { state: machine.start(), splitter_state, pretoken: PretokenState::PLAIN }];
        let mut at = 0;
        while at < found_targets.len().min(MAX_TARGETS) {
            for boundary in BOUNDARIES {
                let expected = tokens_by_reading(context, found_targets[at], boundary).unwrap();
                let found = tokens(context, TokenSources { language_targets: &mut language_targets, free: None }, found_targets[at], boundary, TokenChoice::All).unwrap();
                prop_assert_eq!(sorted(&found), sorted(&expected));
                for (target, _) in expected {
                    if !found_targets.contains(&target) {
                        found_targets.push(target);
                    }
                }
            }
            at += 1;
        }
    }

    #[test]
    fn masks_hold_the_live_tokens_that_reading_finds(
        // As above, with more of what may end inside a character, and combining marks.
        pieces in prop::collection::btree_set("[absĠ1'.Ã©ä¸Ń]{2,3}|[Ãä¸]{2}|[a.]Ã|Ġä¸?|[ea.]Ìģ?|Ìģ|Ìĥ", 1..40),
        added in any::<bool>(),
        whole in any::<bool>(),
        nfc in any::<bool>(),
        pattern in prop::sample::select(vec![
            r"(?s:.*)", r#""[^"]*""#, r"[^é]*", r"a[^\n]*\n", r"(?:\w| )*", "(?:é|中|a| )*b",
            "(?:[^x]*x)?e\u{301}?[^e]*", "(?:[^x]|e\u{301})*",
        ]),
    ) {
        let file = file(&pieces, added, whole, nfc);
        let vocabulary = Vocabulary::from_tokenizer_json(file.as_bytes(), None).unwrap();
        let encoder = BpeEncoder::from_tokenizer_json(file.as_bytes(), None).unwrap();
        encoder.check(&vocabulary).unwrap();
        let parsed = parse(pattern, PatternDialect::Python, PatternFlags::default()).unwrap();
        let machine = Automaton::new(&Expression::pattern(parsed), AutomatonLimits::default()).unwrap();
        prop_assert!(machine.reads_text());
        let keys = RegularMaskClasses::new(Arc::new(machine), vocabulary.longest_token_bytes());
        let (keys, machine, vocabulary, encoder) = (&keys, &**keys.machine(), &vocabulary, &encoder);
        let open_pieces = formalm_vocabulary::unigram::OpenPiecesTable::default();
        let context = ProductContext { keys, machine, vocabulary, encoder, special: &[], open_pieces: &open_pieces, begin: TextBegin::Anywhere };
        let (mut live, mut product) = (Liveness::default(), Product::default());
        let (mut other_live, mut other_product) = (Liveness::default(), Product::default());
        let splitter_state = encoder.splitter().start();
        let mut found_targets = vec![JointTarget { state: machine.start(), splitter_state, pretoken: PretokenState::PLAIN }];
        let mut at = 0;
        while at < found_targets.len().min(MAX_TARGETS / 4) {
            let from = found_targets[at];
            let words = vocabulary.len().div_ceil(32);
            let (mut inside, mut begins) = (vec![0; words], vec![0; words]);
            let product_state = product.intern(context, from.state, from.splitter_state).unwrap();
            let element = SubsetElement { product_state, pretoken: from.pretoken };
            let masks = (&mut inside[..], &mut begins[..]);
            live.allowed(context, &mut product, element, TokenChoice::All, masks).unwrap();
            let mut expected = [vec![0; words], vec![0; words]];
            for boundary in BOUNDARIES {
                let may_stand = match boundary {
                    Boundary::Inside => !encoder.pretoken_must_end(from.pretoken),
                    Boundary::Pretoken | Boundary::Added => encoder.pretoken_may_end(from.pretoken),
                };
                if !may_stand {
                    continue;
                }
                let list = &mut expected[usize::from(boundary != Boundary::Inside)];
                for (target, tokens) in tokens_by_reading(context, from, boundary).unwrap() {
                    let product_state =
                        other_product.intern(context, target.state, target.splitter_state).unwrap();
                    let next = SubsetElement { product_state, pretoken: target.pretoken };
                    tokens.find(|token| {
                        if other_live.is_live(context, &mut other_product, next, token).unwrap() {
                            patch(list, &[token], &[]);
                        }
                        None::<()>
                    });
                    if !found_targets.contains(&target) {
                        found_targets.push(target);
                    }
                }
            }
            prop_assert_eq!([inside, begins], expected, "{:?}", from);
            at += 1;
        }
    }
}
