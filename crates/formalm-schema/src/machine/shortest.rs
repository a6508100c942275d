//! Short completions.

use formalm_automata::{Error, Resource};
use rustc_hash::FxHashSet;

use super::{DEAD, Grown};

/// States looked at; a completion that is further away is refused.
const MAX_SEEN: u64 = 200_000;

impl Grown {
    /// A shortest continuation, breadth first; the smallest of several.
    pub(super) fn shortest(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        let mut came: Vec<(u32, usize, u8)> = vec![(state, 0, 0)];
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([state]);
        let mut at = 0;
        while at < came.len() {
            let here = came[at].0;
            if self.is_accepting(here) {
                let mut text = Vec::new();
                while at != 0 {
                    text.push(came[at].2);
                    at = came[at].1;
                }
                text.reverse();
                return Ok(text);
            }
            for byte in 0..=255 {
                let next = self.successor(here, byte)?;
                if next != DEAD && seen.insert(next) {
                    came.push((next, at, byte));
                }
            }
            if seen.len() as u64 > MAX_SEEN {
                let (needed, allowed) = (seen.len() as u64, MAX_SEEN);
                return Err(Error::Limit { resource: Resource::States, needed, allowed });
            }
            at += 1;
        }
        Ok(Vec::new())
    }
}
