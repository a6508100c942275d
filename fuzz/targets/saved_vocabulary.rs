//! A stranger's saved vocabulary: read or refused, never a panic, never out of bounds.
//!
//! The bytes are taken as the payload and given a true header: a digest keeps accidents out, but
//! whoever means harm computes it too.
#![no_main]

use formalm_vocabulary::Vocabulary;
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

fuzz_target!(|payload: &[u8]| {
    let mut data = b"formalm vocabulary\n".to_vec();
    data.extend_from_slice(&1_u32.to_le_bytes());
    data.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    data.extend_from_slice(&Sha256::digest(payload)[..16]);
    data.extend_from_slice(payload);
    let Ok(vocabulary) = Vocabulary::from_saved(&data) else { return };
    for token_id in 0..vocabulary.len().min(10_000) {
        let _ = vocabulary.token_bytes(token_id as u32);
    }
    assert_eq!(vocabulary.save(), data, "what was read is saved differently");
});
