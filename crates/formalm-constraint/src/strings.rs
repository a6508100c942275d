//! Masks inside of strings of JSON, where at most the number of characters matters.

use formalm_automata::{Error, KeyId, Repetition, Steps};
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
        rests(keys, strings, closed, &mut |rest| {
            add.extend(strings.endings(rest).iter().filter(fits).map(|one| one.token));
        })?;
    }
    Ok(Mask::patched(base, add, Vec::new()))
}

/// Rests that are viable behind the quote of a string.
fn rests(
    keys: &impl Steps,
    strings: &Strings,
    closed: KeyId,
    emit: &mut impl FnMut(u32),
) -> Result<(), Error> {
    let live = match keys.few(closed)? {
        Some(few) => few,
        None => keys.live_bytes(closed)?,
    };
    live.iter().filter_map(|byte| strings.root(byte)).try_for_each(|root| {
        walk::words(keys, strings.nodes(), (root, closed), &mut |rest, _| emit(rest))
    })
}

/// The mask between two characters of a string that refuses nothing before its end: tokens that
/// end it are read up to the quote, and what is behind it once for each key that it leads to.
pub(crate) fn open(keys: &impl Steps, strings: &Strings, key: KeyId) -> Result<Mask, Error> {
    let mut texts = vec![(0, key)];
    for root in (0..=255).filter_map(|byte| strings.text_root(byte)) {
        walk::words(keys, strings.texts(), (root, key), &mut |text, after| {
            texts.push((text, after));
        })?;
    }
    let mut ended: Vec<u32> = Vec::new();
    let mut known: Vec<(KeyId, Vec<u32>)> = Vec::new();
    for (text, after) in texts {
        let Some(closed) = keys.step(after, b'"')? else { continue };
        let at = match known.iter().position(|one| one.0 == closed) {
            Some(at) => at,
            None => {
                let mut viable = Vec::new();
                rests(keys, strings, closed, &mut |rest| viable.push(rest))?;
                viable.sort_unstable();
                known.push((closed, viable));
                known.len() - 1
            }
        };
        let viable = |rest: u32| known[at].1.binary_search(&rest).is_ok();
        let closings = strings.closings(text).iter();
        ended.extend(closings.filter(|one| one.rest.is_none_or(viable)).map(|one| one.token));
    }
    let (base, all) = (strings.stay_or_end(), strings.ends());
    ended.sort_unstable();
    let missing: Vec<u32> =
        all.iter().map(|one| one.token).filter(|one| ended.binary_search(one).is_err()).collect();
    if 2 * missing.len() > all.len() {
        return Ok(Mask::patched(strings.stay(None), ended, Vec::new()));
    }
    let mut only: Vec<u32> = all.iter().map(|one| one.token).collect();
    only.sort_unstable();
    ended.retain(|one| only.binary_search(one).is_err());
    Ok(Mask::patched(base, ended, missing))
}
