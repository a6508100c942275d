//! A checksum that reads some gigabytes a second: it finds damage and other data, not intent.

use twox_hash::XxHash3_128;

/// Bytes of a checksum.
pub(crate) const CHECKSUM: usize = 16;

/// The checksum of data.
pub(crate) fn checksum(data: &[u8]) -> [u8; CHECKSUM] {
    XxHash3_128::oneshot(data).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_and_the_length_count() {
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
