use super::*;
use crate::Vocabulary;

#[test]
fn tokens_stay_or_end_as_they_are_read() {
    let list: [&[u8]; 12] = [
        b"ab",
        b"a\"",
        b"\"",
        b"b\":1",
        b"\\n\\\"",
        b"\\",
        b"\\u00",
        b"\xE2\x82",
        b"\x82",
        b"a\n",
        b"\\u1",
        b"\xE2\"",
    ];
    let tokens = list.iter().map(|bytes| Some(bytes.to_vec())).collect();
    let vocabulary = Vocabulary::from_tokens(tokens, Vec::new()).unwrap();
    let strings = vocabulary.json_string_tokens(Escapes::Minimal);
    let ids = |most| (0..12).filter(|id| strings.continuing(most)[0] >> id & 1 != 0).collect();
    let (all, one, none): (Vec<u32>, Vec<u32>, Vec<u32>) = (ids(None), ids(Some(1)), ids(Some(0)));
    assert_eq!(all, [0, 4, 5, 6, 7]);
    assert_eq!(one, [5, 6, 7]);
    assert!(none.is_empty());
    let longer: Vec<_> = strings.continuing_longer(1).iter().map(|one| one.1).collect();
    assert_eq!((longer, strings.continuing_longer(2).len()), (vec![0, 4], 0));
    let ends: Vec<_> =
        strings.ending_exactly().iter().map(|one| (one.token, one.characters)).collect();
    assert_eq!(ends, [(1, 1), (2, 0)]);
    assert_eq!(strings.tokens_with_suffix(0), [EndingToken { token: 3, characters: 1 }]);
    assert_eq!(strings.closing_tokens(0), [ClosingToken { token: 2, suffix: None }]);
    let texts = strings.prefix_nodes().iter().filter_map(|node| node.word());
    let closings: Vec<_> = texts.flat_map(|text| strings.closing_tokens(text)).collect();
    let expected =
        [ClosingToken { token: 1, suffix: None }, ClosingToken { token: 3, suffix: Some(0) }];
    assert_eq!(closings, [&expected[0], &expected[1]]);
    let ended = |rests: &[u64]| strings.continuing_or_closing_with(rests).map(|words| words[0]);
    let both = strings.continuing_or_closing()[0];
    assert_eq!(
        (ended(&[0]), ended(&[1]), ended(&[1])),
        (Some(both), Some(both | 1 << 3), Some(both | 1 << 3),)
    );
    let any: Vec<u32> = {
        let strings = vocabulary.json_string_tokens(Escapes::Any);
        (0..12).filter(|id| strings.continuing(None)[0] >> id & 1 != 0).collect()
    };
    assert_eq!(any, [0, 4, 5, 6, 7, 10]);
}
