//! A checksum that reads some gigabytes a second: it finds damage and other data, not intent.

/// Bytes of a checksum.
pub(crate) const CHECKSUM: usize = 16;

/// Numbers that are mixed side by side.
const LANES: usize = 8;

/// Odd, with bits set all over: multiplication by them is undone by no shift.
const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

/// The checksum of data. Damage to one word of eight bytes always changes the mixed numbers.
pub(crate) fn checksum(data: &[u8]) -> [u8; CHECKSUM] {
    let mut lanes: [u64; LANES] = std::array::from_fn(|at| FACTORS[0].wrapping_mul(at as u64 + 1));
    let word = |bytes: &[u8]| {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(whole)
    };
    let blocks = data.chunks_exact(8 * LANES);
    let rest = blocks.remainder();
    for block in blocks {
        for (lane, bytes) in lanes.iter_mut().zip(block.chunks_exact(8)) {
            *lane = mixed(*lane, word(bytes));
        }
    }
    for (lane, bytes) in lanes.iter_mut().zip(rest.chunks(8)) {
        *lane = mixed(*lane, word(bytes));
    }
    let mut sums = [data.len() as u64; 2];
    for lane in lanes {
        for (sum, factor) in sums.iter_mut().zip(FACTORS) {
            *sum = (*sum ^ lane).wrapping_mul(factor);
            *sum ^= *sum >> 31;
        }
    }
    let mut out = [0; CHECKSUM];
    out[..8].copy_from_slice(&sums[0].to_le_bytes());
    out[8..].copy_from_slice(&sums[1].to_le_bytes());
    out
}

#[inline]
fn mixed(lane: u64, word: u64) -> u64 {
    (lane ^ word).rotate_left(29).wrapping_mul(FACTORS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_and_the_length_count() {
        let data: Vec<u8> = (0..200u32).map(|at| (at * 7 % 251) as u8).collect();
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
