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
    let strings = vocabulary.strings(Escapes::Minimal);
    let ids = |most| (0..12).filter(|id| strings.stay(most)[0] >> id & 1 != 0).collect();
    let (all, one, none): (Vec<u32>, Vec<u32>, Vec<u32>) = (ids(None), ids(Some(1)), ids(Some(0)));
    assert_eq!(all, [0, 4, 5, 6, 7]);
    assert_eq!(one, [5, 6, 7]);
    assert!(none.is_empty());
    let longer: Vec<_> = strings.longer(1).iter().map(|one| one.1).collect();
    assert_eq!((longer, strings.longer(2).len()), (vec![0, 4], 0));
    let ends: Vec<_> = strings.ends().iter().map(|one| (one.token, one.characters)).collect();
    assert_eq!(ends, [(1, 1), (2, 0)]);
    assert_eq!(strings.endings(0), [Ending { token: 3, characters: 1 }]);
    assert_eq!(strings.closings(0), [Closing { token: 2, rest: None }]);
    let texts = strings.texts().iter().filter_map(|node| node.word());
    let closings: Vec<_> = texts.flat_map(|text| strings.closings(text)).collect();
    let expected = [Closing { token: 1, rest: None }, Closing { token: 3, rest: Some(0) }];
    assert_eq!(closings, [&expected[0], &expected[1]]);
    let ended = |rests: &[u64]| strings.stay_or_end_with(rests).map(|words| words[0]);
    let both = strings.stay_or_end()[0];
    assert_eq!(
        (ended(&[0]), ended(&[1]), ended(&[1])),
        (Some(both), Some(both | 1 << 3), Some(both | 1 << 3),)
    );
    let any: Vec<u32> = {
        let strings = vocabulary.strings(Escapes::Any);
        (0..12).filter(|id| strings.stay(None)[0] >> id & 1 != 0).collect()
    };
    assert_eq!(any, [0, 4, 5, 6, 7, 10]);
}
