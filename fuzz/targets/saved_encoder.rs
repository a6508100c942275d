//! A stranger's saved encoder: read or refused, never a panic, never out of bounds, never endless.
//!
//! What was saved of two small tokenizers is changed in some places and given a true checksum: that
//! finds damage and keeps nobody out. Where it is still read, all that is asked of an encoder is asked.
//! The tokens inside a part of a language are saved with it.
#![no_main]

use std::sync::{Arc, LazyLock};

use formalm_automata::{Automaton, AutomatonLimits, Expression};
use formalm_constraint::{Constraint, Matcher, TextBegin};
use formalm_machines::RegularMaskClasses;
use formalm_regex::{PatternDialect, PatternFlags, parse};
use formalm_vocabulary::{Vocabulary, bpe::BpeEncoder};
use libfuzzer_sys::fuzz_target;
use twox_hash::XxHash3_128;

/// Bytes in front of the payload: label, version, length, checksum.
const START: usize = 16 + 4 + 8 + 16;
const NAME: &[u8] = b"name";

struct Saved {
    vocabulary: Arc<Vocabulary>,
    data: Vec<u8>,
    /// Where what an attacker may choose begins: behind fingerprint and checksum.
    chosen: usize,
}

static SAVED: LazyLock<Vec<Saved>> = LazyLock::new(|| {
    let made = [byte_level(), byte_fallback()].map(|file| {
        let file = file.as_bytes();
        let vocabulary = Vocabulary::from_tokenizer_json(file, None).expect("a vocabulary");
        let vocabulary = Arc::new(vocabulary);
        let encoder = Arc::new(BpeEncoder::from_tokenizer_json(file, None).expect("an encoder"));
        let constraint = constraint(Arc::clone(&encoder), &vocabulary).expect("a constraint");
        let texts = ["", "a", " the"].map(|text| text.as_bytes().to_vec());
        constraint.current().prepare_part(b"", &texts).expect("a small part");
        let data = encoder.save(&vocabulary, NAME);
        let chosen = START + 8 + vocabulary.fingerprint().len() + 8 + 16;
        Saved { vocabulary, data, chosen }
    });
    made.into()
});

/// A tokenizer whose symbols are bytes, written by GPT-2's rule.
fn byte_level() -> String {
    let plain = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut others = (0x100..).filter_map(char::from_u32);
    let symbols = (0..256u32).map(|byte| {
        let own = plain(&byte).then(|| char::from_u32(byte)).flatten();
        own.or_else(|| others.next()).expect("a character").to_string()
    });
    let words = ["th", "the", "en", "then", "\u{120}t", "\u{120}th", "\u{120}the", "\u{120}a"];
    let pieces: Vec<String> = symbols.chain(words.map(str::to_owned)).collect();
    file(
        r#""pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "decoder": {"type": "ByteLevel"}"#,
        &pieces,
        r#""merges": ["t h", "th e", "e n", "th en", "\u0120 t", "\u0120t h", "\u0120th e", "\u0120 a"]"#,
    )
}

/// A tokenizer whose symbols are characters, and that spells others in bytes.
fn byte_fallback() -> String {
    let bytes = (0..=255).map(|byte| format!("<0x{byte:02X}>"));
    let words = ["\u{2581}", "a", "b", "c", "\u{e9}", "ab", "abc", "\u{2581}a", "cc", "bcc"];
    let pieces: Vec<String> = bytes.chain(words.map(str::to_owned)).collect();
    file(
        r#""normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern":
        {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]}"#,
        &pieces,
        r#""byte_fallback": true, "merges": ["a b", "ab c", "\u2581 a", "c c", "b cc"]"#,
    )
}

fn file(parts: &str, pieces: &[String], model: &str) -> String {
    let quoted = |piece: &String| piece.replace('\\', "\\\\").replace('"', "\\\"");
    let ids = pieces.iter().enumerate();
    let ids: Vec<String> = ids.map(|(id, piece)| format!("\"{}\": {id}", quoted(piece))).collect();
    let vocab = ids.join(", ");
    format!(r#"{{{parts}, "model": {{"type": "BPE", "vocab": {{{vocab}}}, {model}}}}}"#)
}

/// Texts in which the tokenizers merge, split and fall back to bytes.
const TEXTS: [&str; 4] = ["the then", "don't\n\n 12", " a\u{e9}\u{4e2d}", ""];

// A byte for the tokenizer; then changes of five bytes: a place (3), what to do (1), a byte (1).
fuzz_target!(|input: &[u8]| {
    let Some((which, changes)) = input.split_first() else { return };
    let saved = &SAVED[usize::from(*which) % SAVED.len()];
    let mut data = saved.data.clone();
    for change in changes.chunks_exact(5).take(64) {
        let room = data.len() - saved.chosen;
        if room < 16 {
            break;
        }
        let place = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize;
        let (at, byte) = (saved.chosen + place % room, change[4]);
        match change[3] % 6 {
            0 => data[at] = byte,
            1 => data[at] ^= byte,
            2 => data.insert(at, byte),
            3 => drop(data.remove(at)),
            4 => data.truncate(at),
            _ => {
                let part = data[at..data.len().min(at + usize::from(byte))].to_vec();
                data.splice(at..at, part);
            }
        }
    }
    let length = (data.len() - START) as u64;
    data[20..28].copy_from_slice(&length.to_le_bytes());
    let checksum = XxHash3_128::oneshot(&data[START..]).to_le_bytes();
    data[28..START].copy_from_slice(&checksum);
    let vocabulary = &saved.vocabulary;
    let Ok(encoder) = BpeEncoder::from_saved(&data, vocabulary, NAME) else { return };
    ask(&encoder, vocabulary);
    let again = encoder.save(vocabulary, NAME);
    let again =
        BpeEncoder::from_saved(&again, vocabulary, NAME).expect("what we saved can be read");
    for text in TEXTS {
        assert_eq!(again.encode(text), encoder.encode(text), "it is saved differently");
    }
    masks(encoder, vocabulary);
});

fn ask(encoder: &BpeEncoder, vocabulary: &Vocabulary) {
    let _ = (encoder.check(vocabulary), encoder.added_token_strings(), encoder.early_count());
    for text in TEXTS {
        encoder.encode(text);
        encoder.splitter().pretokens(text.as_bytes());
        encoder.merge(text.as_bytes(), &mut Vec::new());
    }
    let size = vocabulary.len() as u32;
    for token in (0..size).chain([u32::MAX]) {
        encoder.forbidden(token, true, |_| {});
        encoder.forbidden(token, false, |_| {});
        let _ = (encoder.origin(token), encoder.may_follow(token, size / 2));
        let _ = encoder.crossing_merge(size / 2, token);
    }
}

fn constraint(encoder: Arc<BpeEncoder>, vocabulary: &Arc<Vocabulary>) -> Option<Constraint> {
    let pattern =
        parse("(the|then| a|\u{e9})*[0-9]", PatternDialect::Python, PatternFlags::default());
    let expression = Expression::pattern(pattern.expect("a pattern"));
    let machine =
        Arc::new(Automaton::new(&expression, AutomatonLimits::default()).expect("a machine"));
    let keys = RegularMaskClasses::new(machine, vocabulary.longest_token_bytes());
    let vocabulary = Arc::clone(vocabulary);
    Constraint::canonical_over(keys, vocabulary, encoder, 1 << 20, TextBegin::Anywhere).ok()
}

fn masks(encoder: BpeEncoder, vocabulary: &Arc<Vocabulary>) {
    let Some(made) = constraint(Arc::new(encoder), vocabulary) else { return };
    let mut matcher = Matcher::new(Arc::new(made));
    for _ in 0..4 {
        let mut words = vec![0; matcher.constraint().words()];
        if matcher.fill(&mut words).is_err() {
            return;
        }
        let first = words.iter().position(|&word| word != 0);
        let Some(first) = first else { return };
        let token = 32 * first as u32 + words[first].trailing_zeros();
        if matcher.advance(token).is_err() {
            return;
        }
    }
}
