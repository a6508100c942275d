//! Languages of other kinds within a grammar, read by machines of their own.
//!
//! An embedded language is no lexeme: nothing competes with it, and it ends wherever a member of it
//! does, in all readings. Where a text is in one stands in a [`Reading`] in place of a lexeme under
//! way. What an earlier lexeme forbids is forbidden on within it, since that is a matter of the
//! text and not of what it is read as.

use std::sync::Arc;

use formalm_automata::{Error, Machine, StateId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::asked::Answers;
use crate::core::{Core, Reading};
use crate::grammar::Grammar;
use crate::lists::NOTHING;
use crate::tables::contains;

/// Tells numbers of places in embedded languages from those of lexer states.
const MARK: u32 = 1 << 31;

/// Bytes of a member are looked at in so many places before it is taken to be hindered.
const TRIALS: usize = 2_000;

/// The machines of embedded languages, and where texts are in them.
#[derive(Debug, Default)]
pub(crate) struct Embedded {
    /// By terminal.
    machines: Vec<Option<Arc<dyn Machine>>>,
    /// Terminals that are embedded languages, ascending.
    all: Vec<u32>,
    /// What became of bytes in machines that are asked, see [`crate::asked`].
    pub(crate) answers: Answers,
    places: Vec<(u32, StateId)>,
    ids: FxHashMap<(u32, u32), u32>,
    /// Whether members go on, of those met.
    goes_on: FxHashMap<(u32, u32), bool>,
    /// Bytes to the end of a member at least.
    least: FxHashMap<(u32, u32), u32>,
    /// Shortest rests of members.
    rests: FxHashMap<(u32, u32), Box<[u8]>>,
}

impl Embedded {
    pub(crate) fn new(grammar: &Grammar) -> Embedded {
        let machine =
            |at: usize| Some(Arc::clone(&grammar.terminals[at].embedded.as_ref()?.machine));
        let machines: Vec<_> = (0..grammar.terminals.len()).map(machine).collect();
        let all = (0..).zip(&machines).filter(|(_, one)| one.is_some()).map(|(at, _)| at).collect();
        let asked = machines.iter().map(|one| one.as_ref().is_some_and(|one| !one.is_exact()));
        let answers = Answers::new(asked.collect());
        Embedded { machines, all, answers, ..Embedded::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn has(&self, terminal: u32) -> bool {
        self.all.binary_search(&terminal).is_ok()
    }

    pub(crate) fn place(&mut self, terminal: u32, state: StateId) -> u32 {
        let places = &mut self.places;
        *self.ids.entry((terminal, state.number())).or_insert_with(|| {
            places.push((terminal, state));
            MARK | (places.len() as u32 - 1)
        })
    }

    /// The language and where a text is in it.
    pub(crate) fn at(&self, lexeme: u32) -> (u32, StateId) {
        self.places[(lexeme & !MARK) as usize]
    }

    /// The machine of a terminal that is an embedded language.
    pub(crate) fn machine(&self, terminal: u32) -> Option<Arc<dyn Machine>> {
        self.machines.get(terminal as usize)?.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        for (terminal, state) in self.places.drain(len..) {
            self.ids.remove(&(terminal, state.number()));
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let machines: usize = self.machines.iter().flatten().map(|one| one.memory_bytes()).sum();
        let rests: usize = self.rests.values().map(|rest| rest.len() + 32).sum();
        let known = rests + self.answers.memory_bytes();
        machines + known + self.places.len() * 32 + (self.goes_on.len() + self.least.len()) * 16
    }
}

/// Whether a member goes on from a state.
fn reads_more(machine: &dyn Machine, state: StateId) -> Result<bool, Error> {
    Ok(!machine.is_accepting(state)? || !machine.live_bytes(state)?.is_empty())
}

/// Bytes of a shortest member that is not empty; `None` if there is none.
pub(crate) fn shortest_bytes(machine: &dyn Machine) -> Result<Option<u32>, Error> {
    let start = machine.start();
    if !machine.is_exact() {
        return Ok(Some(1));
    }
    if !machine.is_accepting(start)? {
        return Ok(Some(machine.shortest(start)?.len() as u32));
    }
    let mut least = None;
    for byte in 0..=255 {
        if let Some(next) = machine.step(start, byte)? {
            let bytes = machine.shortest(next)?.len() as u32 + 1;
            least = Some(least.map_or(bytes, |least: u32| least.min(bytes)));
        }
    }
    Ok(least)
}

impl Reading {
    /// Whether the text is in an embedded language.
    pub(crate) fn is_embedded(self) -> bool {
        self.lexeme & MARK != 0
    }
}

impl Core {
    /// Embedded languages that may begin at a place.
    pub(crate) fn embedded_at(&mut self, place: u32) -> Result<Vec<u32>, Error> {
        let allowed = self.stacks.allowed(self.stacks_of(place))?;
        let set = self.stacks.tables.sets.get(allowed);
        Ok(self.embedded.all.iter().copied().filter(|one| contains(set, one + 1)).collect())
    }

    /// What a reading becomes within embedded languages, with the one that ends, if one does.
    pub(crate) fn read_embedded(
        &mut self,
        reading: Reading,
        byte: u8,
        next: &mut impl FnMut(Reading, Option<u32>),
    ) -> Result<(), Error> {
        let Reading { lexeme, place, forbidden } = reading;
        if reading.is_embedded() {
            let (terminal, state) = self.embedded.at(lexeme);
            return self.read_member((terminal, state), (place, forbidden), byte, next);
        }
        for terminal in self.embedded_at(place)? {
            let Some(machine) = self.embedded.machine(terminal) else { continue };
            self.read_member((terminal, machine.start()), (place, forbidden), byte, next)?;
        }
        Ok(())
    }

    fn read_member(
        &mut self,
        (terminal, state): (u32, StateId),
        (place, forbidden): (u32, u32),
        byte: u8,
        next: &mut impl FnMut(Reading, Option<u32>),
    ) -> Result<(), Error> {
        self.stacks.meter.spend(1)?;
        if self.embedded.answers.is_asked(terminal) {
            return self.read_asked((terminal, state), (place, forbidden), byte, next);
        }
        let Some(machine) = self.embedded.machine(terminal) else { return Ok(()) };
        let Some(state) = machine.step(state, byte)? else { return Ok(()) };
        let Some(left) = self.pending(forbidden, byte)? else { return Ok(()) };
        if machine.is_accepting(state)? {
            let behind = self.after(place, terminal)?;
            if behind != NOTHING {
                next(Reading::between(behind, left), Some(terminal));
            }
        }
        let key = (terminal, state.number());
        let goes_on = match self.embedded.goes_on.get(&key) {
            Some(&known) => known,
            None => reads_more(&*machine, state)?,
        };
        self.embedded.goes_on.insert(key, goes_on);
        if goes_on {
            let lexeme = self.embedded.place(terminal, state);
            next(Reading { lexeme, place, forbidden: left }, None);
        }
        Ok(())
    }

    /// The place behind the embedded language that a text is in. If nothing is forbidden, some
    /// member ends there, since its machine shows live states only; of a machine that is asked it is
    /// taken to, whatever is forbidden.
    pub(crate) fn behind_embedded(&mut self, reading: Reading) -> Result<Option<Reading>, Error> {
        if !reading.is_embedded() {
            return Ok(None);
        }
        let (terminal, _) = self.embedded.at(reading.lexeme);
        if reading.forbidden != NOTHING && !self.embedded.answers.is_asked(terminal) {
            return Ok(None);
        }
        let behind = self.after(reading.place, terminal)?;
        Ok((behind != NOTHING).then(|| Reading::between(behind, NOTHING)))
    }

    /// Bytes to the end of a member and of what follows it, at least.
    pub(crate) fn embedded_bytes(&mut self, reading: Reading) -> Result<u32, Error> {
        let (terminal, state) = self.embedded.at(reading.lexeme);
        let Some(machine) = self.embedded.machine(terminal) else { return Ok(0) };
        if self.embedded.answers.is_asked(terminal) {
            let behind = self.stacks_after(reading.place, terminal)?;
            return self.stacks.completion_bytes(behind);
        }
        let key = (terminal, state.number());
        let least = match self.embedded.least.get(&key) {
            Some(&known) => known,
            None if self.checked => match machine.least_bytes(state) {
                // A bound will do.
                Err(Error::Limit { .. }) => machine.owed_bytes(state)? as u32,
                other => other? as u32,
            },
            None => machine.shortest(state)?.len() as u32,
        };
        self.embedded.least.insert(key, least);
        let behind = self.stacks_after(reading.place, terminal)?;
        let rest = self.stacks.completion_bytes(behind)?;
        Ok(least.saturating_add(rest))
    }

    /// Of a state whose texts are within one embedded language: the smallest of its shortest rests,
    /// and the state behind it. What follows does not depend on which member it is.
    pub(crate) fn member_alone(&mut self, state: u32) -> Result<Option<(Vec<u8>, u32)>, Error> {
        if self.embedded.is_empty() {
            return Ok(None);
        }
        let [reading] = self.readings(state)[..] else { return Ok(None) };
        let Some(behind) = self.behind_embedded(reading)? else { return Ok(None) };
        let (terminal, at) = self.embedded.at(reading.lexeme);
        let Some(machine) = self.embedded.machine(terminal) else { return Ok(None) };
        // What has ended already would end with nothing.
        if machine.is_accepting(at)? {
            return Ok(None);
        }
        let member = match self.embedded.rests.get(&(terminal, at.number())) {
            Some(known) => known.to_vec(),
            None => machine.shortest(at)?,
        };
        self.embedded.rests.insert((terminal, at.number()), member.as_slice().into());
        Ok(Some((member, self.state(&[behind]))))
    }

    /// Whether some member of an embedded language can be read although threads must not match,
    /// until they are gone.
    pub(crate) fn outlives(&mut self, terminal: u32, forbidden: u32) -> Result<bool, Error> {
        let Some(machine) = self.embedded.machine(terminal) else { return Ok(false) };
        if self.embedded.answers.is_asked(terminal) {
            // What it refuses is told byte by byte.
            return Ok(true);
        }
        let mut seen = FxHashSet::from_iter([(machine.start().number(), forbidden)]);
        let mut open = vec![(machine.start(), forbidden)];
        while let Some((state, forbidden)) = open.pop() {
            if forbidden == NOTHING {
                return Ok(true);
            }
            for byte in 0..=255 {
                let Some(left) = self.pending(forbidden, byte)? else { continue };
                let Some(next) = machine.step(state, byte)? else { continue };
                if seen.len() < TRIALS && seen.insert((next.number(), left)) {
                    open.push((next, left));
                }
            }
        }
        Ok(false)
    }
}
