//! Hashes of 128 bits that nobody can construct collisions of.

use std::hash::{BuildHasher, Hash, RandomState};

use super::set_once::SetOnce;

/// Returns a 128-bit hash with random keys of this process, so that nobody can construct
/// collisions.
pub fn keyed_hash(entry: &(impl Hash + ?Sized)) -> u128 {
    static KEYS: SetOnce<[RandomState; 2]> = SetOnce::new();
    let [high, low] = KEYS.get_or_init(|| [RandomState::new(), RandomState::new()]);
    u128::from(high.hash_one(entry)) << 64 | u128::from(low.hash_one(entry))
}
