//! Vocabularies from token lists: their bytes, remarks and errors.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use formalm_vocabulary::Vocabulary;

fn bytes(tokens: &[Option<&str>]) -> Vec<Option<Vec<u8>>> {
    tokens.iter().map(|token| token.map(|text| text.as_bytes().to_vec())).collect()
}

fn refused(tokens: &[Option<&str>], ends: &[u32]) -> String {
    Vocabulary::from_tokens(bytes(tokens), ends.to_vec()).expect_err("refused").message
}

#[test]
fn tokens_and_special_tokens() {
    let tokens = bytes(&[Some("a"), None, Some("bc"), Some("a")]);
    let vocabulary = Vocabulary::from_tokens(tokens, vec![1, 1]).unwrap();
    assert_eq!(vocabulary.len(), 4);
    assert_eq!(vocabulary.token_bytes(2), Some(&b"bc"[..]));
    assert_eq!(vocabulary.token_bytes(1), None);
    assert_eq!(vocabulary.token_bytes(4), None);
    assert_eq!(vocabulary.token_bytes(u32::MAX), None);
    assert_eq!(vocabulary.end_token_ids(), [1]);
    assert!(vocabulary.is_end_token(1) && !vocabulary.is_end_token(0));
    assert_eq!(vocabulary.special_token_ids().collect::<Vec<_>>(), [1]);
    assert_eq!(vocabulary.longest_token_bytes(), 2);
    assert!(vocabulary.notes().is_empty());
    assert_eq!(vocabulary.trie().duplicates(), [(0, 3)]);
    assert_eq!(vocabulary.fingerprint().len(), 32);
}

#[test]
fn names_and_notes_are_kept() {
    let tokens = || bytes(&[None, Some("a"), None, Some("")]);
    let named = |names: &[(&str, u32)]| {
        let names = names.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect();
        Vocabulary::from_named_tokens(tokens(), vec![0], names, vec!["from a test".to_owned()])
    };
    let vocabulary = named(&[("<b>", 2), ("<a>", 0)]).unwrap();
    assert_eq!(vocabulary.special_tokens(), [("<a>".to_owned(), 0), ("<b>".to_owned(), 2)]);
    assert_eq!(vocabulary.notes(), ["from a test", "tokens without bytes, never allowed: 3"]);
    let plain = Vocabulary::from_tokens(tokens(), vec![0]).unwrap();
    assert_eq!(vocabulary.fingerprint(), plain.fingerprint());
    let saved = Vocabulary::from_saved(&vocabulary.save()).unwrap();
    assert_eq!(saved.special_tokens(), vocabulary.special_tokens());
    assert!(named(&[("<c>", 4)]).expect_err("no id").message.contains("not a token id"));
}

#[test]
fn tokens_without_progress_are_special() {
    let vocabulary = Vocabulary::from_tokens(bytes(&[Some("a"), Some("")]), vec![]).unwrap();
    assert_eq!(vocabulary.special_token_ids().collect::<Vec<_>>(), [1]);
    assert_eq!(vocabulary.notes(), ["tokens without bytes, never allowed: 1"]);
}

#[test]
fn end_tokens_have_no_bytes() {
    let tokens = bytes(&[Some("a"), Some("</s>"), None]);
    let plain = Vocabulary::from_tokens(tokens.clone(), vec![2]).unwrap();
    assert_eq!(plain.token_bytes(1), Some(&b"</s>"[..]));
    let ended = plain.with_end_token_ids(vec![2, 1]).unwrap();
    assert_eq!(ended.token_bytes(1), None);
    assert_eq!(ended.end_token_ids(), [1, 2]);
    assert_eq!(
        ended.notes(),
        ["tokens with bytes that are end tokens, so never allowed as text: 1"]
    );
    assert_eq!(
        ended.fingerprint(),
        Vocabulary::from_tokens(tokens, vec![1, 2]).unwrap().fingerprint()
    );
    assert_eq!(ended.trie().find(b"<"), None);
    assert!(plain.with_end_token_ids(vec![3]).is_err());
}

#[test]
fn unusable_token_lists_are_rejected() {
    assert_eq!(refused(&[], &[]), "tokens must not be empty");
    assert_eq!(refused(&[None, Some("")], &[]), "at least one token must have bytes");
    assert_eq!(refused(&[Some("a")], &[0]), "at least one token must have bytes");
    assert_eq!(refused(&[Some("a")], &[1]), "end token 1 is not in the vocabulary");
    let long = Some(vec![b'a'; 70_000]);
    let error = Vocabulary::from_tokens(vec![long], vec![]).expect_err("too long");
    assert_eq!(error.message, "token 0 must have at most 65535 bytes, got 70000");
}

#[test]
fn fingerprints_depend_on_token_boundaries() {
    let one = Vocabulary::from_tokens(bytes(&[Some("ab"), Some("c")]), vec![]).unwrap();
    let other = Vocabulary::from_tokens(bytes(&[Some("a"), Some("bc")]), vec![]).unwrap();
    assert_ne!(one.fingerprint(), other.fingerprint());
}
