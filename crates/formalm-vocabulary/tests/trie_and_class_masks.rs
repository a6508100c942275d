//! Property tests: trie and class masks against their definitions, on small random vocabularies.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use formalm_core::{ByteSet, CharSet, ClassCover, WIDE_PARTS, WideParts, wide_parts};
use formalm_vocabulary::{CharProfile, ClassExits, ProfileFilter, Vocabulary};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

/// Token bytes: characters of every atom, invalid UTF-8, and long runs.
fn token() -> impl Strategy<Value = Vec<u8>> {
    let parts: Vec<Vec<u8>> =
        ["a", "g", "F", "0", " ", "\n", "\"", "\u{1}", "é", "中", "٣", "\u{2003}", "😀", "𐐀"]
            .iter()
            .map(|part| part.as_bytes().to_vec())
            .chain(
                [&[0x80][..], &[0xC3], &[0xE4, 0xB8], &[0xF0, 0x9F, 0x98], &[0xFF]]
                    .map(<[u8]>::to_vec),
            )
            .collect();
    let short = vec(prop::sample::select(parts), 0..6).prop_map(|parts| parts.concat());
    let long = (prop::sample::select(&b" az\xE4"[..]), 250usize..310)
        .prop_map(|(byte, length)| vec![byte; length]);
    prop_oneof![30 => short, 1 => long]
}

/// A vocabulary that a failing test prints by its tokens.
struct Shown(Vocabulary);

impl std::fmt::Debug for Shown {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |(id, bytes): (u32, &[u8])| format!("{id} {}", bytes.escape_ascii());
        out.debug_list().entries(tokens(&self.0).into_iter().map(text)).finish()
    }
}

fn vocabulary() -> impl Strategy<Value = Shown> {
    vec(weighted(0.9, token()), 1..80).prop_filter_map("no bytes", |tokens| {
        Vocabulary::from_tokens(tokens, vec![]).ok().map(Shown)
    })
}

fn tokens(vocabulary: &Vocabulary) -> Vec<(u32, &[u8])> {
    let ids = 0..vocabulary.len() as u32;
    ids.filter_map(|id| Some((id, vocabulary.token_bytes(id)?))).collect()
}

/// Returns the bytes on the path to each node.
fn paths(vocabulary: &Vocabulary) -> Vec<Vec<u8>> {
    let mut path: Vec<u8> = Vec::new();
    let nodes = vocabulary.trie().nodes().iter();
    nodes
        .map(|node| {
            path.truncate(node.depth() - 1);
            path.push(node.byte());
            assert_eq!(path.len(), node.depth());
            path.clone()
        })
        .collect()
}

fn set(words: &[u32]) -> BTreeSet<u32> {
    (0..words.len() as u32 * 32)
        .filter(|id| words[*id as usize >> 5] >> (id & 31) & 1 != 0)
        .collect()
}

fn ascii(bytes: &[u8]) -> u128 {
    bytes.iter().filter(|byte| byte.is_ascii()).fold(0, |set, byte| set | 1 << byte)
}

/// Returns the number of characters of a whole-character or partial-ended token.
fn characters(bytes: &[u8]) -> Option<usize> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.chars().count()),
        Err(error) if error.error_len().is_none() => {
            Some(characters(&bytes[..error.valid_up_to()])? + 1)
        }
        Err(_) => None,
    }
}

fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        prop::sample::select(vec![
            'a', 'g', 'F', '0', ' ', '\n', '"', 'é', '中', '٣', '\u{2003}', '😀', '𐐀'
        ]),
        prop::char::range('\0', '\u{100}'),
    ]
}

fn charset() -> impl Strategy<Value = CharSet> {
    let range =
        (character(), character()).prop_map(|(one, other)| (one.min(other), one.max(other)));
    let some = vec(range, 0..4).prop_map(CharSet::from_ranges);
    (some, any::<bool>()).prop_map(|(set, negate)| if negate { set.complement() } else { set })
}

fn inside(set: &CharSet) -> ProfileFilter {
    let ascii = (0..128)
        .filter(|&byte| set.contains(byte as u8 as char))
        .fold(0, |all, byte| all | 1 << byte);
    ProfileFilter::new(ascii, set.wide_cover())
}

fn lies_in(bytes: &[u8], set: &CharSet) -> bool {
    std::str::from_utf8(bytes)
        .is_ok_and(|text| text.chars().all(|character| set.contains(character)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trie_nodes_are_the_token_prefixes(Shown(vocabulary) in vocabulary()) {
        let (trie, tokens) = (vocabulary.trie(), tokens(&vocabulary));
        let prefixes: BTreeSet<&[u8]> =
            tokens.iter().flat_map(|(_, bytes)| (1..=bytes.len()).map(|end| &bytes[..end])).collect();
        let paths = paths(&vocabulary);
        prop_assert!(paths.iter().map(|path| &path[..]).eq(prefixes.iter().copied()));
        let ids = |chosen: &dyn Fn(&[u8]) -> bool| {
            let mut found: Vec<(&[u8], u32)> =
                tokens.iter().filter(|(_, bytes)| chosen(bytes)).map(|(id, bytes)| (*bytes, *id)).collect();
            found.sort_unstable();
            found.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
        };
        prop_assert_eq!(trie.order(), &ids(&|_| true)[..]);
        for (at, path) in paths.iter().enumerate() {
            let (node, number) = (trie.nodes()[at], at as u32);
            let here = ids(&|bytes| bytes == path);
            prop_assert_eq!(node.word(), here.first().copied());
            prop_assert_eq!(node.slot(), here.first().copied().unwrap_or(trie.spare_slot()));
            prop_assert_eq!(trie.tokens_at(number), &here[..]);
            prop_assert_eq!(trie.tokens_below(number), &ids(&|bytes| bytes.len() > path.len() && bytes.starts_with(path))[..]);
            let below = paths[at..].iter().take_while(|other| other.starts_with(path)).count();
            prop_assert_eq!(node.end() as usize, at + below);
            prop_assert_eq!(trie.find(path), Some(number));
            let (bytes, children) = trie.children(number);
            prop_assert!(bytes.is_sorted());
            let expected: Vec<u32> = (number + 1..node.end())
                .filter(|&child| paths[child as usize].len() == path.len() + 1)
                .collect();
            prop_assert_eq!(children, &expected[..]);
            for (&byte, &child) in bytes.iter().zip(children) {
                prop_assert_eq!(trie.nodes()[child as usize].byte(), byte);
                prop_assert_eq!(trie.child(number, byte), Some(child));
            }
        }
        for (at, path) in paths.iter().enumerate() {
            let longest = paths[at..].iter().filter(|other| other.starts_with(path)).map(Vec::len).max();
            let height = longest.unwrap_or_default() - path.len();
            prop_assert_eq!(usize::from(trie.height(at as u32)), height.min(255));
        }
        prop_assert_eq!(trie.rank().len(), paths.len() + 1);
        prop_assert_eq!(trie.spare_slot() as usize, vocabulary.len().div_ceil(32) * 32);
        let mut others = BTreeSet::new();
        for &(first, other) in trie.duplicates() {
            prop_assert_eq!(vocabulary.token_bytes(first), vocabulary.token_bytes(other));
            prop_assert!(first < other && others.insert(other));
        }
        prop_assert_eq!(tokens.len() - others.len(), trie.nodes().iter().filter(|node| node.word().is_some()).count());
    }

    #[test]
    fn siblings_with_other_bytes_are_passed_over(Shown(vocabulary) in vocabulary(), bytes in vec(token(), 0..3)) {
        let (trie, paths) = (vocabulary.trie(), paths(&vocabulary));
        let mut chosen = ByteSet::default();
        bytes.concat().iter().for_each(|&byte| chosen.insert(byte));
        for (at, path) in paths.iter().enumerate() {
            let above = &path[..path.len() - 1];
            let parent = paths[..at].iter().rposition(|other| other == above);
            let end = parent.map_or(paths.len(), |parent| trie.nodes()[parent].end() as usize);
            let here = trie.nodes()[at].end() as usize;
            let next = trie.flat().next_sibling(parent.map(|parent| parent as u32), at as u32, chosen) as usize;
            let is_sibling = |other: usize| other == end || paths[other].len() == path.len();
            prop_assert!((here..=end).contains(&next) && is_sibling(next));
            let passed = (here..next).filter(|&other| is_sibling(other));
            prop_assert!(passed.into_iter().all(|other| !chosen.contains(trie.nodes()[other].byte())));
        }
    }

    #[test]
    fn signatures_describe_the_bytes_below_a_node(Shown(vocabulary) in vocabulary()) {
        let (trie, tokens) = (vocabulary.trie(), tokens(&vocabulary));
        for (at, path) in paths(&vocabulary).iter().enumerate() {
            let below: Vec<&[u8]> = tokens
                .iter()
                .filter_map(|(_, bytes)| bytes.strip_prefix(&path[..]))
                .filter(|rest| !rest.is_empty())
                .collect();
            let signature = trie.signature(at as u32);
            prop_assert_eq!(signature.ascii(), ascii(&below.concat()));
            prop_assert_eq!(signature.has_non_ascii(), !below.concat().is_ascii());
            for byte in 0..=255 {
                let mut one = ByteSet::default();
                one.insert(byte);
                let occurs = below.concat().iter().any(|&here| here == byte || here >= 0x80 && byte >= 0x80);
                prop_assert_eq!(signature.has_any_of(one), occurs);
            }
            // After the first byte of a longer character, what counts are the characters from it on.
            let lead = path.len() - 1;
            let may_lead = (0xC2..=0xF4).contains(&path[lead]);
            let is_lead = may_lead && std::str::from_utf8(&path[..lead]).is_ok();
            let from = if is_lead { lead } else { path.len() };
            let has_path = |bytes: &[u8]| if is_lead { bytes.len() > lead } else { bytes.len() > path.len() };
            let rests: Vec<Option<&str>> = tokens
                .iter()
                .filter(|(_, bytes)| bytes.starts_with(path) && has_path(bytes))
                .map(|(_, bytes)| std::str::from_utf8(&bytes[from..]).ok())
                .collect();
            let clean = rests.iter().all(Option::is_some);
            let has_below = trie.nodes()[at].end() as usize > at + 1;
            prop_assert!(signature.unclean() || clean || !has_below || may_lead && !is_lead);
            // Further inside a character the signature may be weaker; elsewhere it is exact.
            if has_below && (is_lead || std::str::from_utf8(path).is_ok()) {
                prop_assert_eq!(signature.unclean(), !clean);
                let chars: BTreeSet<char> = rests.iter().flatten().flat_map(|rest| rest.chars()).collect();
                for part in 0..WIDE_PARTS {
                    let is_within = |one: char| one.is_ascii() || wide_parts()[part].contains(one);
                    let expected = clean && chars.iter().all(|&one| is_within(one));
                    prop_assert_eq!(signature.is_within(!0, WideParts::one(part)), expected);
                }
                prop_assert_eq!(signature.is_within(signature.ascii(), WideParts::ALL), clean);
            }
        }
    }

    #[test]
    fn class_masks_hold_the_tokens_within_the_class(Shown(vocabulary) in vocabulary(), set_of in charset()) {
        let classes = vocabulary.class_masks();
        let mut out = vec![!0; vocabulary.len().div_ceil(32) + 2];
        let mut undecided = Vec::new();
        classes.fill_mask(&inside(&set_of), &mut out, &mut undecided);
        let sure = set(&out);
        let expected: BTreeSet<u32> =
            tokens(&vocabulary).into_iter().filter(|(_, bytes)| lies_in(bytes, &set_of)).map(|(id, _)| id).collect();
        let mut found = sure.clone();
        for id in undecided {
            prop_assert!(!sure.contains(&id));
            let bytes = vocabulary.token_bytes(id).unwrap_or_default();
            prop_assert!(!bytes.is_ascii());
            if lies_in(bytes, &set_of) {
                prop_assert!(found.insert(id));
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn tokens_are_classified_by_utf8_shape_and_length(Shown(vocabulary) in vocabulary(), most in 0u32..40) {
        let (classes, tokens) = (vocabulary.class_masks(), tokens(&vocabulary));
        let mut ragged = BTreeMap::new();
        for tail in classes.partial_chars() {
            prop_assert!((1..=3).contains(&tail.bytes().len()));
            for token in classes.tokens_with_partial_char(tail) {
                ragged.insert(token.token, (tail.bytes(), token.before));
            }
        }
        prop_assert_eq!(ragged.len(), classes.partial_tokens().len());
        let (mut clean, broken) = (set(classes.whole_char_tokens()), classes.broken_tokens());
        for &(id, bytes) in &tokens {
            match std::str::from_utf8(bytes) {
                Ok(_) => prop_assert!(clean.remove(&id)),
                Err(error) if error.error_len().is_none() => {
                    let (text, tail) = bytes.split_at(error.valid_up_to());
                    let before = CharProfile::of(std::str::from_utf8(text).unwrap());
                    prop_assert_eq!(ragged.remove(&id), Some((tail, before)));
                }
                Err(_) => prop_assert!(broken.contains(&id)),
            }
        }
        prop_assert!(clean.is_empty() && ragged.is_empty());
        let counts: BTreeMap<u32, usize> =
            tokens.iter().filter_map(|&(id, bytes)| Some((id, characters(bytes)?))).collect();
        let within = |most: usize| counts.iter().filter(|(_, count)| **count <= most).map(|(id, _)| *id).collect::<BTreeSet<_>>();
        for most in 0..=16 {
            prop_assert_eq!(set(classes.at_most_characters(most).unwrap()), within(most));
        }
        let mut out = vec![!0; vocabulary.len().div_ceil(32)];
        classes.limit_characters(most, &mut out);
        let kept: BTreeSet<u32> = set(&out).into_iter().filter(|id| counts.contains_key(id)).collect();
        prop_assert_eq!(kept, within(most as usize));
    }

    #[test]
    fn class_exits_are_the_first_bytes_outside_the_class(Shown(vocabulary) in vocabulary()) {
        let mut expected = BTreeSet::new();
        for (id, bytes) in tokens(&vocabulary) {
            for at in 1..bytes.len() {
                let (before, after) = bytes.split_at(at);
                let Ok(text) = std::str::from_utf8(before) else { continue };
                let kept = match after[0] {
                    byte if byte.is_ascii_alphabetic() => false,
                    byte if byte.is_ascii() => !before.contains(&byte),
                    _ => before.is_ascii(),
                };
                if kept {
                    let profile = CharProfile::of(text);
                    prop_assert!(ClassExits::covers_byte(after[0]));
                    expected.insert((id, after.to_vec(), profile.atoms, profile.ascii, profile.characters));
                }
            }
        }
        let crossings = vocabulary.class_masks().exits();
        let mut found = BTreeSet::new();
        for byte in 0..=255u8 {
            let mut todo: Vec<(u32, Vec<u8>)> = crossings.root(byte).map(|root| (root, vec![byte])).into_iter().collect();
            while let Some((node, path)) = todo.pop() {
                let (bytes, children) = crossings.children(node);
                todo.extend(bytes.iter().zip(children).map(|(&byte, &child)| (child, [&path[..], &[byte]].concat())));
                let Some(remainder) = crossings.nodes()[node as usize].word() else { continue };
                for crossing in crossings.tokens(remainder) {
                    let before = crossing.before;
                    prop_assert!(found.insert((crossing.token, path.clone(), before.atoms, before.ascii, before.characters)));
                }
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_saved_vocabulary_reads_back_equal(Shown(vocabulary) in vocabulary()) {
        let read = Vocabulary::from_saved(&vocabulary.save()).unwrap();
        prop_assert_eq!(read.fingerprint(), vocabulary.fingerprint());
        prop_assert_eq!(read.notes(), vocabulary.notes());
        prop_assert_eq!(tokens(&read), tokens(&vocabulary));
    }
}

/// Groups large enough to have bitmasks, and both directions of `fill_mask`.
#[test]
fn large_groups_use_bitmasks() {
    let mut given = Vec::new();
    for first in b'a'..=b'z' {
        for second in b'a'..=b'z' {
            for third in b' '..=b'~' {
                given.push(Some(vec![first, second, third]));
            }
            given.push(Some([&[first, second][..], "é".as_bytes()].concat()));
        }
    }
    let vocabulary = Vocabulary::from_tokens(given, vec![]).unwrap();
    assert!(vocabulary.class_masks().group_counts().1 > 0);
    let sets = [
        CharSet::from_ranges([('a', 'z')]),
        CharSet::from_ranges([('a', 'm'), ('é', 'é')]),
        CharSet::from_ranges([(' ', '~')]),
        CharSet::from_ranges([('b', char::MAX)]),
        CharSet::single('x').complement(),
        CharSet::all(),
        CharSet::empty(),
    ];
    for set_of in sets {
        let mut out = vec![0; vocabulary.len().div_ceil(32)];
        let mut undecided = Vec::new();
        vocabulary.class_masks().fill_mask(&inside(&set_of), &mut out, &mut undecided);
        let mut found = set(&out);
        found.extend(
            undecided.iter().filter(|id| lies_in(vocabulary.token_bytes(**id).unwrap(), &set_of)),
        );
        let expected: BTreeSet<u32> = tokens(&vocabulary)
            .into_iter()
            .filter(|(_, bytes)| lies_in(bytes, &set_of))
            .map(|(id, _)| id)
            .collect();
        assert_eq!(found, expected, "{set_of:?}");
    }
}

#[test]
fn a_class_of_one_character_covers_its_repetition() {
    let inside = ProfileFilter::new(1 << b'a', [ClassCover::None; 4]);
    let profile = CharProfile::of("aaa");
    assert_eq!(inside.cover(profile.atoms, profile.ascii), ClassCover::Full);
}
