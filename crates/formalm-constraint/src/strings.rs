//! Masks inside of strings of JSON, where at most the number of characters matters.

use formalm_automata::{Error, Repetition, Steps};
use formalm_vocabulary::{Ending, Strings};

use crate::mask::Mask;
use crate::walk;

/// The mask between two characters of a string.
pub(crate) fn mask(
    keys: &impl Steps,
    strings: &Strings,
    repetition: &Repetition,
) -> Result<Mask, Error> {
    let &Repetition { min, max, exit, .. } = repetition;
    let fits = |one: &&Ending| one.characters >= min && max.is_none_or(|max| one.characters <= max);
    let mut add: Vec<u32> = Vec::new();
    let closed = exit.map_or(Ok(None), |exit| keys.step(exit, b'"'))?;
    let mut base = strings.stay(max);
    if let Some(closed) = closed {
        if (min, max) == (0, None) {
            base = strings.stay_or_end();
        } else {
            add.extend(strings.ends().iter().filter(fits).map(|one| one.token));
        }
        let live = match keys.few(closed)? {
            Some(few) => few,
            None => keys.live_bytes(closed)?,
        };
        for root in live.iter().filter_map(|byte| strings.root(byte)) {
            walk::words(keys, strings.nodes(), (root, closed), &mut |rest| {
                add.extend(strings.endings(rest).iter().filter(fits).map(|one| one.token));
            })?;
        }
    }
    Ok(Mask::patched(base, add, Vec::new()))
}
