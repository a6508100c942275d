//! A stranger's tokenizer file: read or refused, never a panic, and what is read holds together.
#![no_main]

use formalm_vocabulary::Vocabulary;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(vocabulary) = Vocabulary::from_tokenizer_json(data, None) else { return };
    let saved = vocabulary.save();
    let again = Vocabulary::from_saved(&saved).expect("what we saved can be read");
    assert_eq!(vocabulary.fingerprint(), again.fingerprint());
});
