//! A stranger's tokenizer file: read or refused, never a panic, and what is read holds together.
#![no_main]

use formalm_vocabulary::{Vocabulary, bpe::BpeEncoder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(vocabulary) = Vocabulary::from_tokenizer_json(data, None) else { return };
    let saved = vocabulary.save();
    let again = Vocabulary::from_saved(&saved).expect("what we saved can be read");
    assert_eq!(vocabulary.fingerprint(), again.fingerprint());
    let Ok(encoder) = BpeEncoder::from_tokenizer_json(data, None) else { return };
    if encoder.check(&vocabulary).is_ok()
        && let Some(tokens) = encoder.encode("don't\n\n 12")
    {
        let spelled = tokens.iter().filter_map(|&id| vocabulary.token_bytes(id));
        assert_eq!(spelled.collect::<Vec<_>>().concat(), b"don't\n\n 12");
    }
});
