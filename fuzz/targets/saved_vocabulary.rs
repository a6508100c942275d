//! A stranger's saved vocabulary: read or refused, never a panic, never out of bounds.
#![no_main]

use formalm_vocabulary::Vocabulary;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(vocabulary) = Vocabulary::from_saved(data) else { return };
    for token_id in 0..vocabulary.len().min(10_000) {
        let _ = vocabulary.token_bytes(token_id as u32);
    }
});
