//! What a mask has, whatever form it is kept in.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::mask::{Mask, Words};

/// Two words of a bitmask make a unit.
const UNIT: usize = 64;

/// Hashes of shared bitmasks kept at once.
const MOST: usize = 256;

/// Hashes of masks by their content: masks of the same tokens have the same hash.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// By address. That of one that is gone is at worst a wrong hash, which tells nothing.
    bases: FxHashMap<usize, u64>,
    one: Vec<u32>,
    other: Vec<u32>,
}

impl Contents {
    pub(crate) fn hash(&mut self, mask: &Mask) -> u64 {
        match mask {
            Mask::Sparse(ids) => ids
                .chunk_by(|&one, &next| place(one) == place(next))
                .map(|ids| mix(place(ids[0]), ids.iter().fold(0, |all, &id| all | bit(id))))
                .fold(0, |hash, more| hash ^ more),
            Mask::Dense(words) => hash_of(words),
            Mask::Patched { base, add, remove } => {
                if self.bases.len() >= MOST {
                    self.bases.clear();
                }
                let known = self.bases.entry(base.as_ptr().addr());
                let hash = *known.or_insert_with(|| hash_of(base));
                if add.is_empty() && remove.is_empty() {
                    return hash;
                }
                let mut changed: Vec<(u32, bool)> = remove.iter().map(|&id| (id, false)).collect();
                changed.extend(add.iter().map(|&id| (id, true)));
                // Two runs in order, which a stable sort merges.
                changed.sort();
                let units = changed.chunk_by(|one, next| place(one.0) == place(next.0));
                units.fold(hash, |hash, changes| {
                    let at = place(changes[0].0);
                    let old = unit(base, at);
                    let new = changes.iter().fold(old, |all, &(id, is_added)| match is_added {
                        true => all | bit(id),
                        false => all & !bit(id),
                    });
                    hash ^ mix(at, old) ^ mix(at, new)
                })
            }
        }
    }

    /// Whether two masks have the same tokens.
    pub(crate) fn are_equal(&mut self, one: &Mask, other: &Mask) -> bool {
        if is_written_alike(one, other) {
            return true;
        }
        let len = one.word_count().max(other.word_count());
        self.one.resize(len, 0);
        self.other.resize(len, 0);
        one.fill(&mut self.one);
        other.fill(&mut self.other);
        self.one == self.other
    }
}

/// Whether two masks are equal as they are written.
fn is_written_alike(one: &Mask, other: &Mask) -> bool {
    match (one, other) {
        (Mask::Sparse(ids), Mask::Sparse(others)) => ids == others,
        (
            Mask::Patched { base, add, remove },
            Mask::Patched { base: other, add: more, remove: less },
        ) => Arc::ptr_eq(base, other) && add == more && remove == less,
        _ => false,
    }
}

fn hash_of(words: &Words) -> u64 {
    let (units, last) = words.as_chunks::<2>();
    let last = last.iter().fold(0, |hash, &word| hash ^ mix(units.len(), u64::from(word)));
    let units = units.iter().map(|&[low, high]| u64::from(low) | u64::from(high) << 32);
    units.enumerate().fold(last, |hash, (at, unit)| hash ^ mix(at, unit))
}

fn unit(words: &Words, at: usize) -> u64 {
    let word = |at| u64::from(words.get(at).copied().unwrap_or(0));
    word(2 * at) | word(2 * at + 1) << 32
}

/// The unit of a token.
fn place(id: u32) -> usize {
    id as usize / UNIT
}

fn bit(id: u32) -> u64 {
    1 << (id as usize % UNIT)
}

/// Nothing for a unit without tokens.
fn mix(at: usize, unit: u64) -> u64 {
    if unit == 0 {
        return 0;
    }
    let factor = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let product = u128::from(unit ^ factor.rotate_left(32)) * u128::from(factor);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mask::patch;

    proptest! {
        #[test]
        fn every_form_has_the_same_hash(
            ids in proptest::collection::btree_set(0u32..700, 0..300),
            others in proptest::collection::btree_set(0u32..700, 0..60),
        ) {
            let ids: Vec<u32> = ids.into_iter().collect();
            let mut words = vec![0; 22];
            patch(&mut words, &ids, &[]);
            let mut near = words.clone();
            for &id in &others {
                near[id as usize / 32] ^= 1 << (id % 32);
            }
            let base: Arc<Words> = near.clone().into();
            let (mut add, mut remove) = (Vec::new(), Vec::new());
            for &id in &others {
                if crate::mask::has(&words, id) { add.push(id) } else { remove.push(id) }
            }
            add.reverse();
            let mut longer = words.clone();
            longer.resize(40, 0);
            let forms = [
                Mask::Sparse(ids.clone().into()),
                Mask::Dense(words.clone().into()),
                Mask::Dense(longer.into()),
                Mask::Patched { base, add: add.into(), remove: remove.into() },
            ];
            let mut contents = Contents::default();
            let hash = contents.hash(&forms[0]);
            for form in &forms[1..] {
                prop_assert_eq!(contents.hash(form), hash);
                prop_assert!(contents.are_equal(&forms[0], form));
            }
            let other = Mask::Dense(near.into());
            let differs = !others.is_empty();
            prop_assert_eq!(contents.are_equal(&forms[0], &other), !differs);
            prop_assert_eq!(contents.hash(&other) == hash, !differs);
        }
    }
}
