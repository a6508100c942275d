//! Members that continue a reading: whether there is one, and the shortest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use formalm_automata::{Completion, Error, Look, Resource};
use rustc_hash::FxHashMap;

use crate::completion::stack_shortest_path::NEVER;
use crate::interner::NOTHING;
use crate::limits::check;
use crate::state::{Core, Reading};

/// Readings met before a search that takes members for granted is given up.
const ASSUMED: usize = 1_000;

/// Readings met before it is looked closely.
const NEAR: u64 = 300;

/// The part of the steps allowed that such a search may take.
const NEAR_PART: u64 = 4;

/// What a byte that is missing counts, beside one that was read: any member will do.
const MISSING: u32 = 4;

impl Core {
    /// Whether some member continues a reading under longest lexemes.
    pub(crate) fn is_viable(&mut self, reading: Reading) -> Result<bool, Error> {
        let reading = self.behind_embedded(reading)?.unwrap_or(reading);
        if self.is_at_once(reading)? {
            return Ok(true);
        }
        if let Some(&viable) = self.viable.get(&reading) {
            return Ok(viable);
        }
        let before = self.look;
        let viable = self.look_around(reading);
        self.look = before;
        viable
    }

    /// The same by a search, since members are near mostly and to look closely may take far more work;
    /// then with what completes readings at least, more closely where that is not enough.
    fn look_around(&mut self, reading: Reading) -> Result<bool, Error> {
        let most = self.limits.search;
        for look in [None, Some(Look::Close)] {
            let near = |core: &mut Core| core.look_by(look, reading, most.min(NEAR));
            if let Some(viable) = self.apart(near)? {
                return Ok(viable);
            }
        }
        self.look_by(Some(Look::Closest), reading, most)
    }

    /// What is found out with a part of the steps that are allowed; `None` if that is too much work.
    fn apart(
        &mut self,
        look: impl FnOnce(&mut Core) -> Result<bool, Error>,
    ) -> Result<Option<bool>, Error> {
        let call = self.stacks.meter.apart(self.limits.steps / NEAR_PART);
        let found = look(self);
        self.stacks.meter.go_on(call);
        match found {
            Err(Error::Limit { resource: Resource::Readings | Resource::Steps, .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    fn look_by(&mut self, look: Option<Look>, reading: Reading, most: u64) -> Result<bool, Error> {
        self.look = look;
        let viable = match self.completion(reading)? {
            Completion::Never => false,
            Completion::Exactly(_) => true,
            _ => return self.look_for_member(reading, most),
        };
        self.learn(reading, viable);
        Ok(viable)
    }

    /// Whether a member continues a reading, as is seen without a search.
    fn is_at_once(&mut self, reading: Reading) -> Result<bool, Error> {
        let reading = self.behind_embedded(reading)?.unwrap_or(reading);
        // What the end of the text stands for takes longer to find out.
        Ok(self.is_certain(reading)? || self.accepts(reading)?)
    }

    /// Whether the certificate shows that a member continues a reading.
    fn is_certain(&mut self, reading: Reading) -> Result<bool, Error> {
        let Reading { lexeme, place, forbidden } = reading;
        if reading.is_embedded()
            || !self.is_certified(lexeme, forbidden)?
            || !self.is_settled_at(place)?
        {
            return Ok(false);
        }
        if !reading.is_between() || self.certificate.fragile().is_empty() {
            return Ok(true);
        }
        let context = self.context(place)?;
        self.fits(context, forbidden)
    }

    /// Searches the readings from one, those first that seem to need the fewest bytes, and remembers what
    /// it learns. Every reading is judged by itself: each is the only one right about a text.
    fn look_for_member(&mut self, from: Reading, most: u64) -> Result<bool, Error> {
        let asking = self.embedded.answers.assume();
        self.embedded.answers.assumed = false;
        let begins = self.embedded.look_ahead();
        let found = self.look_on(from, most);
        if begins {
            self.embedded.look_back();
        }
        self.embedded.answers.asking = asking;
        found
    }

    fn look_on(&mut self, from: Reading, most: u64) -> Result<bool, Error> {
        let mut came: Vec<(Reading, usize)> = vec![(from, 0)];
        let mut seen: FxHashMap<Reading, ()> = FxHashMap::from_iter([(from, ())]);
        let mut queue: BinaryHeap<(Reverse<u32>, u32, usize)> = BinaryHeap::new();
        queue.push((Reverse(0), 0, 0));
        let mut next = Vec::new();
        // What was found out before must not matter to where a search is given up.
        let asks = self.asks();
        while let Some((_, read, at)) = queue.pop() {
            for byte in self.lexer.representatives().to_vec() {
                next.clear();
                self.read(came[at].0, byte, &mut next)?;
                for &reading in &next {
                    let known = self.viable.get(&reading).copied();
                    if (known == Some(false) && !asks) || seen.insert(reading, ()).is_some() {
                        continue;
                    }
                    came.push((reading, at));
                    let found = known == Some(true) || self.is_at_once(reading)?;
                    if found {
                        self.mark_viable(&came);
                        return Ok(true);
                    }
                    if self.embedded.answers.assumed && came.len() > ASSUMED {
                        self.learn(from, true);
                        return Ok(true);
                    }
                    check(Resource::Readings, came.len() as u64, most)?;
                    let missing = self.least_bytes(reading)?;
                    if missing == NEVER {
                        continue;
                    }
                    let missing = missing.saturating_mul(MISSING);
                    let rank = Reverse(missing.saturating_add(read + 1));
                    queue.push((rank, read + 1, came.len() - 1));
                }
            }
        }
        for (reading, _) in came {
            self.learn(reading, false);
        }
        Ok(false)
    }

    /// Marks the way to the last of the readings that were met.
    fn mark_viable(&mut self, came: &[(Reading, usize)]) {
        let mut at = came.len() - 1;
        loop {
            self.learn(came[at].0, true);
            if at == 0 {
                return;
            }
            at = came[at].1;
        }
    }

    /// The shortest text, and the smallest of several, that makes a state a member. Ways to it need
    /// not be known to lead anywhere: none of them is longer than the way there is.
    pub(crate) fn shortest(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        let mut exact: FxHashMap<u32, u32> = FxHashMap::default();
        let mut state = state;
        // Rules that double each other have members that nobody writes down; what is more than
        // 32 bits hold is a bound of its own.
        check(Resource::Text, u64::from(self.bound(state)?), self.limits.text)?;
        let Some(mut left) = self.distance(state, u32::MAX, &mut exact)? else {
            return Ok(Vec::new());
        };
        let mut text = Vec::new();
        while left > 0 {
            if let Some((member, behind)) = self.member_alone(state)? {
                left = left.saturating_sub(member.len() as u32);
                text.extend(member);
                state = behind;
                continue;
            }
            left -= 1;
            let before = text.len();
            for byte in self.lexer.representatives().to_vec() {
                self.stacks.meter.reset();
                let next = self.step_on(state, byte)?;
                if next != NOTHING && self.distance(next, left, &mut exact)? == Some(left) {
                    text.push(byte);
                    state = next;
                    break;
                }
            }
            if text.len() == before {
                break;
            }
        }
        Ok(text)
    }

    /// Bytes to the nearest member, if at most `most`.
    fn distance(
        &mut self,
        state: u32,
        most: u32,
        exact: &mut FxHashMap<u32, u32>,
    ) -> Result<Option<u32>, Error> {
        let least = self.bound(state)?;
        if least > most || !self.checked {
            return Ok(Some(least).filter(|&least| least <= most));
        }
        if let Some(&known) = exact.get(&state) {
            return Ok(Some(known).filter(|&known| known <= most));
        }
        let mut came: Vec<(u32, usize, u32)> = vec![(state, 0, 0)];
        let mut seen: FxHashMap<u32, u32> = FxHashMap::from_iter([(state, 0)]);
        let mut queue = BinaryHeap::from([(Reverse(least), 0u32, 0usize)]);
        let before = self.stacks.meter.total();
        while let Some((Reverse(all), read, at)) = queue.pop() {
            let here = came[at].0;
            let rest = match exact.get(&here) {
                Some(&rest) => Some(rest),
                None if all == read => self.is_accepting(here)?.then_some(0),
                None => None,
            };
            if let Some(rest) = rest.filter(|rest| read + rest <= all) {
                return Ok(Some(mark_exact(&came, at, rest, exact)).filter(|&one| one <= most));
            }
            if let Some(rest) = rest {
                queue.push((Reverse(read + rest), read, at));
                continue;
            }
            let steps = self.stacks.meter.total() - before;
            check(Resource::Steps, steps, self.limits.nearest)?;
            for (next, read) in self.nexts(here, read)? {
                if seen.get(&next).is_some_and(|&before| before <= read) {
                    continue;
                }
                seen.insert(next, read);
                check(Resource::States, came.len() as u64 + 1, self.limits.states)?;
                let bound = self.bound(next)?;
                let all = bound.saturating_add(read);
                if all <= most && bound != NEVER {
                    came.push((next, at, read));
                    queue.push((Reverse(all), read, came.len() - 1));
                }
            }
        }
        Ok(None)
    }

    /// The states that a shortest text may come to next, with the bytes read up to them: one byte
    /// further, or behind the member of an embedded language.
    fn nexts(&mut self, state: u32, read: u32) -> Result<Vec<(u32, u32)>, Error> {
        if let Some((member, behind)) = self.member_alone(state)? {
            return Ok(vec![(behind, read + member.len() as u32)]);
        }
        let mut nexts = Vec::new();
        for byte in self.lexer.representatives().to_vec() {
            self.stacks.meter.reset();
            let next = self.step_on(state, byte)?;
            if next != NOTHING {
                nexts.push((next, read + 1));
            }
        }
        Ok(nexts)
    }

    /// A lower bound of the bytes to the nearest member.
    pub(crate) fn bound(&mut self, state: u32) -> Result<u32, Error> {
        let mut least = u32::MAX;
        for reading in self.readings(state) {
            least = least.min(self.least_bytes(reading)?);
        }
        Ok(least)
    }

    /// Whether the text may end in a state.
    pub(crate) fn is_accepting(&mut self, state: u32) -> Result<bool, Error> {
        for reading in self.readings(state) {
            if self.accepts(reading)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Notes the distances along the way to entry `at`, which is `rest` from a member; that of the
/// first entry.
fn mark_exact(
    came: &[(u32, usize, u32)],
    at: usize,
    rest: u32,
    exact: &mut FxHashMap<u32, u32>,
) -> u32 {
    let all = came[at].2 + rest;
    let mut at = at;
    loop {
        exact.insert(came[at].0, all - came[at].2);
        if at == 0 {
            return all;
        }
        at = came[at].1;
    }
}
