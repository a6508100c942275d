//! Real tokenizer files against an independent second reader of the same file.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![allow(clippy::print_stdout, reason = "a skipped test says why")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use formalm_vocabulary::Vocabulary;
use serde_json::Value;

/// Returns the byte of each byte-level character, built as in GPT-2's code.
fn bytes_of_characters() -> BTreeMap<char, u8> {
    let plain: Vec<u8> = (33..=126).chain(161..=172).chain(174..=255).collect();
    let rest = (0..=255u8).filter(|byte| !plain.contains(byte)).zip(256u32..);
    plain
        .iter()
        .map(|&byte| (char::from(byte), byte))
        .chain(rest.map(|(byte, code)| (char::from_u32(code).unwrap(), byte)))
        .collect()
}

fn check(file: &Value, vocabulary: &Vocabulary) {
    let table = bytes_of_characters();
    let byte_level = file["decoder"]["type"] == "ByteLevel";
    let mut expected: BTreeMap<u64, Option<Vec<u8>>> = BTreeMap::new();
    for (piece, id) in file["model"]["vocab"].as_object().unwrap() {
        let bytes = if byte_level {
            piece.chars().map(|character| table.get(&character).copied()).collect()
        } else if piece.len() == 6 && piece.starts_with("<0x") {
            Some(vec![u8::from_str_radix(&piece[3..5], 16).unwrap()])
        } else {
            Some(piece.replace('\u{2581}', " ").into_bytes())
        };
        expected.insert(id.as_u64().unwrap(), bytes);
    }
    for added in file["added_tokens"].as_array().unwrap() {
        let special = added["special"] == true;
        let text = added["content"].as_str().unwrap().as_bytes().to_vec();
        expected.insert(added["id"].as_u64().unwrap(), (!special).then_some(text));
    }
    assert_eq!(expected.keys().last().unwrap() + 1, vocabulary.len() as u64);
    let mut seen = [false; 256];
    for (id, bytes) in expected {
        assert_eq!(vocabulary.token_bytes(id as u32), bytes.as_deref(), "id {id}");
        if let Some(&[byte]) = bytes.as_deref() {
            seen[byte as usize] = true;
        }
    }
    assert!(seen.iter().all(|&seen| seen), "a byte has no token");
    let trie = vocabulary.trie();
    for id in 0..vocabulary.len() as u32 {
        let Some(bytes) = vocabulary.token_bytes(id) else { continue };
        let node = trie.find(bytes).unwrap();
        assert!(trie.tokens_at(node).contains(&id));
    }
}

#[test]
fn real_files_get_the_bytes_of_a_second_reader() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/tokenizers");
    let Ok(entries) = std::fs::read_dir(&directory) else {
        println!("skipped: there are no tokenizer files in ../shared/tokenizers");
        return;
    };
    let mut count = 0;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|end| end != "gz") {
            continue;
        }
        let mut data = Vec::new();
        let file = std::fs::File::open(&path).unwrap();
        flate2::read::GzDecoder::new(file).read_to_end(&mut data).unwrap();
        let vocabulary = Vocabulary::from_tokenizer_json(&data, None).unwrap();
        check(&serde_json::from_slice(&data).unwrap(), &vocabulary);
        assert!(!vocabulary.special_tokens().is_empty());
        // Only for small files: unoptimized tests are slow.
        if vocabulary.len() < 60_000 {
            let read = Vocabulary::from_saved(&vocabulary.save()).unwrap();
            assert_eq!(read.fingerprint(), vocabulary.fingerprint());
        }
        count += 1;
    }
    assert!(count > 0, "no tokenizer files");
}
