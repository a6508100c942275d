//! How many bytes complete what is left of a text: shortest ways through things that stand on each
//! other.
//!
//! What is left is completed by what is left of it alone, and then by what lies below. Things above
//! the same node may lead to each other and are settled together; all others lie deeper, so what is
//! asked for is followed with a stack of its own.

use std::hash::Hash;

use formalm_automata::Error;
use rustc_hash::FxHashMap;

/// What no text completes.
pub(crate) const NEVER: u32 = u32::MAX;

/// A way on.
pub(crate) struct Way<T> {
    /// Where it begins, in the list of things that are settled together.
    pub(crate) from: usize,
    pub(crate) bytes: u32,
    /// What it leads to; `None` completes the text.
    pub(crate) to: Option<T>,
}

/// Things that are settled together, each once.
pub(crate) struct Group<T> {
    things: Vec<T>,
    places: FxHashMap<T, usize>,
}

impl<T: Copy + Eq + Hash> Group<T> {
    fn new(first: T) -> Group<T> {
        Group { things: vec![first], places: FxHashMap::from_iter([(first, 0)]) }
    }

    /// Adds a thing, if it is not among them.
    pub(crate) fn add(&mut self, thing: T) {
        let things = &mut self.things;
        self.places.entry(thing).or_insert_with(|| {
            things.push(thing);
            things.len() - 1
        });
    }
}

/// Things that are left to be completed.
pub(crate) trait Rests {
    /// One of them.
    type Rest: Copy + Eq + Hash;

    /// The bytes that complete one, if they were found out.
    fn known(&self, rest: &Self::Rest) -> Option<u32>;

    /// Keeps what was found out.
    fn keep(&mut self, rest: Self::Rest, bytes: u32);

    /// Appends the ways on from one, which is at place `from`, and adds to the group what lies
    /// above the same node and is not known.
    fn ways(
        &mut self,
        rest: Self::Rest,
        from: usize,
        group: &mut Group<Self::Rest>,
        ways: &mut Vec<Way<Self::Rest>>,
    ) -> Result<(), Error>;

    /// Counts steps of work.
    fn spend(&mut self, steps: usize) -> Result<(), Error>;
}

/// Bytes that complete what is left, at most `NEVER - 1` if something does.
pub(crate) fn least<R: Rests>(rests: &mut R, rest: R::Rest) -> Result<u32, Error> {
    let mut path = vec![rest];
    while let Some(&top) = path.last() {
        if rests.known(&top).is_some() {
            path.pop();
            continue;
        }
        let (mut group, mut ways) = (Group::new(top), Vec::new());
        let mut at = 0;
        while let Some(&thing) = group.things.get(at) {
            rests.ways(thing, at, &mut group, &mut ways)?;
            at += 1;
        }
        let before = path.len();
        let targets = ways.iter().filter_map(|way| way.to);
        path.extend(
            targets.filter(|to| !group.places.contains_key(to) && rests.known(to).is_none()),
        );
        if path.len() == before {
            settle(rests, group, &ways)?;
        }
    }
    Ok(rests.known(&rest).unwrap_or(NEVER))
}

/// Settles a group all of whose ways lead into it or to what is known.
fn settle<R: Rests>(
    rests: &mut R,
    group: Group<R::Rest>,
    ways: &[Way<R::Rest>],
) -> Result<(), Error> {
    let mut bytes = vec![NEVER; group.things.len()];
    let mut changed = true;
    while changed {
        changed = false;
        rests.spend(ways.len())?;
        for way in ways {
            let more = match way.to {
                None => 0,
                Some(to) => match group.places.get(&to) {
                    Some(&at) => bytes[at],
                    None => rests.known(&to).unwrap_or(NEVER),
                },
            };
            if way.bytes == NEVER || more == NEVER {
                continue;
            }
            let all = way.bytes.saturating_add(more).min(NEVER - 1);
            changed |= all < bytes[way.from];
            bytes[way.from] = bytes[way.from].min(all);
        }
    }
    for (thing, bytes) in group.things.into_iter().zip(bytes) {
        rests.keep(thing, bytes);
    }
    Ok(())
}
