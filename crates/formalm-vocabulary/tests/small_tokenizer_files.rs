//! Small tokenizer files: the bytes they get, and the reasons for which they are rejected.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use formalm_vocabulary::{Error, Vocabulary};
use serde_json::{Value, json};

fn byte_level() -> Value {
    json!({
        "added_tokens": [
            {"id": 4, "content": "<|end|>", "special": true},
            {"id": 6, "content": "<think>\u{e9}\u{3000}", "special": false, "normalized": true, "lstrip": true},
        ],
        "normalizer": null,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}]},
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": {"a": 0, "\u{120}a": 1, "\u{10a}": 2, "\u{e9}": 3},
            "merges": ["\u{120} a"],
        },
    })
}

fn fallback() -> Value {
    json!({
        "added_tokens": [{"id": 1, "content": "<s>", "special": true}],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"},
        "pre_tokenizer": null,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u{2581}"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]},
        "model": {
            "type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
            "vocab": {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "<0xE4>": 3, "\u{2581}a\u{2581}": 4, "\u{e9}": 5, "A": 6, "<0x41>": 7},
            "merges": [["\u{2581}", "a"]],
        },
    })
}

fn read(file: &Value) -> Result<Vocabulary, Error> {
    Vocabulary::from_tokenizer_json(file.to_string().as_bytes(), None)
}

/// Returns the file with one value replaced.
fn with(mut file: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    file.pointer_mut(parent).unwrap()[key] = value;
    file
}

fn refused(file: &Value) -> (String, String) {
    let error = read(file).expect_err("refused");
    (error.message, error.place.unwrap_or_default())
}

#[test]
fn byte_level_pieces_decode_to_bytes() {
    let vocabulary = read(&byte_level()).unwrap();
    let bytes: Vec<Option<&[u8]>> = (0..7).map(|id| vocabulary.token_bytes(id)).collect();
    let added = "<think>é\u{3000}".as_bytes();
    let expected: [Option<&[u8]>; 7] =
        [Some(b"a"), Some(b" a"), Some(b"\n"), Some(b"\xE9"), None, None, Some(added)];
    assert_eq!(bytes, expected);
    assert_eq!(vocabulary.special_tokens(), [("<|end|>".to_owned(), 4)]);
    assert!(vocabulary.end_token_ids().is_empty());
    assert_eq!(
        vocabulary.notes(),
        [
            "tokens missing from the file, never allowed: 5",
            "tokens that absorb surrounding whitespace when text is encoded: 6",
            "tokens matched only after normalization when text is encoded: 6",
        ]
    );
    let text = byte_level().to_string();
    let ended = Vocabulary::from_tokenizer_json(text.as_bytes(), Some(vec![4])).unwrap();
    assert_eq!(ended.end_token_ids(), [4]);
}

/// Decoding does not know added tokens: one that looks like byte-level characters decodes as such.
#[test]
fn added_tokens_are_what_they_decode_to() {
    let added = json!([{"id": 4, "content": "\u{120}x", "special": false}]);
    let vocabulary = read(&with(byte_level(), "/added_tokens", added)).unwrap();
    assert_eq!(vocabulary.token_bytes(4), Some(&b" x"[..]));
    assert!(vocabulary.notes()[0].contains("decode to a different string"));
}

#[test]
fn byte_level_without_a_decoder() {
    let vocabulary = read(&with(byte_level(), "/decoder", Value::Null)).unwrap();
    assert_eq!(vocabulary.token_bytes(1), Some(&b" a"[..]));
    assert!(vocabulary.notes()[0].contains("no decoder"));
}

#[test]
fn byte_fallback_pieces_decode_to_bytes() {
    let vocabulary = read(&fallback()).unwrap();
    let bytes: Vec<Option<&[u8]>> = (0..8).map(|id| vocabulary.token_bytes(id)).collect();
    let expected: [Option<&[u8]>; 8] = [
        None,
        None,
        Some(b"\n"),
        Some(b"\xE4"),
        Some(b" a "),
        Some("é".as_bytes()),
        Some(b"A"),
        Some(b"A"),
    ];
    assert_eq!(bytes, expected);
    assert_eq!(vocabulary.special_tokens(), [("<unk>".to_owned(), 0), ("<s>".to_owned(), 1)]);
    assert!(vocabulary.notes()[0].contains("space at the start"));
    let decoder = json!({"type": "Sequence", "decoders": [
        {"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "never"},
        {"type": "ByteFallback"}, {"type": "Fuse"},
    ]});
    let same = read(&with(fallback(), "/decoder", decoder)).unwrap();
    assert_eq!(same.fingerprint(), vocabulary.fingerprint());
    assert!(same.notes().is_empty());
}

#[test]
fn unknown_models_and_options_are_rejected() {
    let (message, place) = refused(&with(byte_level(), "/model/type", json!("WordLevel")));
    assert!(message.contains("WordLevel") && place == "model.type", "{message}");
    let unigram =
        json!({"model": {"type": "Unigram", "vocab": [["a", -1.5], ["b", -2]], "unk_id": 0}});
    assert!(refused(&unigram).0.contains("a space is put between any two pieces"));
    let joined = with(unigram, "/decoder", json!({"type": "Fuse"}));
    assert_eq!(read(&joined).unwrap().token_bytes(1), Some(&b"b"[..]));
    let clip = with(byte_level(), "/model/end_of_word_suffix", json!("</w>"));
    assert_eq!(refused(&clip).1, "model.end_of_word_suffix");
    let plain = with(fallback(), "/model/byte_fallback", json!(false));
    assert!(refused(&plain).0.contains("neither byte-level pieces nor byte fallback"));
}

#[test]
fn unsupported_decoders_are_rejected() {
    let replace = json!({"type": "Replace", "pattern": {"String": "\u{2581}"}, "content": " "});
    let pattern = json!({"type": "Replace", "pattern": {"Regex": "x+"}, "content": " "});
    let (bytes, fuse) = (json!({"type": "ByteFallback"}), json!({"type": "Fuse"}));
    let strip = json!({"type": "Strip", "content": " ", "start": 1, "stop": 0});
    let ends = json!({"type": "Strip", "content": " ", "start": 1, "stop": 1});
    let lists = [
        json!([replace]),
        json!([bytes, replace]),
        json!([pattern, bytes]),
        json!([replace, bytes, strip]),
        json!([replace, bytes, fuse, ends]),
        json!([replace, bytes, bytes]),
        json!([replace, bytes, {"type": "CTC"}]),
        json!([replace, {"type": "ByteLevel"}]),
        json!([{}, 3]),
    ];
    for list in lists {
        let decoder = json!({"type": "Sequence", "decoders": list});
        assert_eq!(refused(&with(fallback(), "/decoder", decoder)).1, "decoder");
    }
}

#[test]
fn pieces_with_characters_outside_of_the_byte_level_alphabet_are_their_own_utf_8() {
    for raw in ["a b", "\u{200d}", "\u{203c}"] {
        let vocabulary =
            read(&with(byte_level(), &format!("/model/vocab/{raw}"), json!(9))).unwrap();
        assert_eq!(vocabulary.token_bytes(9), Some(raw.as_bytes()));
    }
}

#[test]
fn contradictory_ids_are_rejected() {
    let (message, place) = refused(&with(byte_level(), "/model/vocab/x", json!(2)));
    // The order of the two in the file is not fixed.
    let orders = [("x", "\u{10a}"), ("\u{10a}", "x")];
    assert!(orders.iter().any(|(first, second)| {
        message == format!("id 2 is already used by {first:?}")
            && place == format!("model.vocab[{second:?}]")
    }));
    let added = |id: u32, content: &str| json!([{"id": id, "content": content, "special": true}]);
    for (id, content) in [(7, "a"), (0, "b")] {
        let (_, place) = refused(&with(byte_level(), "/added_tokens", added(id, content)));
        assert_eq!(place, "added_tokens[0]");
    }
    let twice = json!([{"id": 8, "content": "x"}, {"id": 8, "content": "y"}]);
    assert_eq!(refused(&with(byte_level(), "/added_tokens", twice)).1, "added_tokens[1]");
    let text = byte_level().to_string().replace("\"a\":0", "\"a\":0,\"a\":9");
    let error = Vocabulary::from_tokenizer_json(text.as_bytes(), None).expect_err("a twice");
    assert_eq!(error.message, "this piece already has id 0");
}

#[test]
fn files_that_are_no_tokenizer_are_rejected() {
    for text in
        ["", "{}", "[]", "{\"model\": 3}", "{\"model\": {\"vocab\": {\"a\": -1}}}", "{\"a\": 1}"]
    {
        Vocabulary::from_tokenizer_json(text.as_bytes(), None).expect_err(text);
    }
    let error = Vocabulary::from_tokenizer_json(b"{\"a\": \"\xFF\"}", None).expect_err("no UTF-8");
    assert_eq!(error.place.as_deref(), Some("byte 7"));
    let empty = with(byte_level(), "/model/vocab", json!({}));
    refused(&with(empty, "/added_tokens", Value::Null));
    let (message, _) = refused(&with(byte_level(), "/model/vocab/x", json!(u32::MAX)));
    assert!(message.contains("exceeds the limit"), "{message}");
    // A file cut anywhere is rejected, and nothing panics.
    let text = byte_level().to_string();
    for end in 0..text.len() {
        Vocabulary::from_tokenizer_json(&text.as_bytes()[..end], None).expect_err("cut");
    }
}
