//! The 128-bit XXH3 checksum of saved encoders.
//!
//! It runs at several gigabytes per second and detects damage and mix-ups. It is no protection
//! against intent: whoever changes the data can compute it too.

use twox_hash::XxHash3_128;

/// Length of a checksum, in bytes.
pub const CHECKSUM_BYTES: usize = 16;

/// Returns the checksum of `data`.
pub fn checksum(data: &[u8]) -> [u8; CHECKSUM_BYTES] {
    XxHash3_128::oneshot(data).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_depends_on_every_bit_and_the_length() {
        let data: Vec<u8> = (0..300u32).map(|at| (at * 7 % 251) as u8).collect();
        let mut seen = std::collections::BTreeSet::from([checksum(&data)]);
        for at in 0..data.len() {
            for bit in 0..8 {
                let mut damaged = data.clone();
                damaged[at] ^= 1 << bit;
                assert!(seen.insert(checksum(&damaged)), "byte {at}, bit {bit}");
            }
            assert!(seen.insert(checksum(&data[..at])), "length {at}");
        }
        assert!(seen.insert(checksum(&[&data[..], &[0]].concat())));
    }
}
