//! Languages of other kinds within a grammar, read by machines of their own.
//!
//! An embedded language is no lexeme: nothing competes with it, and it ends wherever a member of it
//! does, in all readings. Where a text is in one stands in a [`Reading`] in place of a lexeme under
//! way. What an earlier lexeme forbids is forbidden on within it, since that is a matter of the
//! text and not of what it is read as.
//!
//! Ahead of a text, tokens come to many more states than the text will. Machines are then looked
//! ahead of ([`Machine::ahead`]), and all that is known of the states met there is dropped with them.

pub(crate) mod external_parsers;

use std::sync::Arc;

use formalm_automata::{Error, Machine, StateId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::grammar::Grammar;
use crate::interner::NOTHING;
use crate::lr0::contains;
use crate::state::{Core, Reading};
use crate::sublanguages::external_parsers::Answers;

/// Tells numbers of places in embedded languages from those of lexer states.
const MARK: u32 = 1 << 31;

/// States from here on are those of a machine to look ahead with.
const OWN: u32 = 1 << 30;

/// Bytes of a member are looked at in so many places before it is taken to be hindered.
const TRIALS: usize = 2_000;

/// The machines of embedded languages, and where texts are in them.
#[derive(Debug, Default)]
pub(crate) struct Embedded {
    /// By terminal.
    machines: Vec<Option<Arc<dyn Machine>>>,
    /// Terminals that are embedded languages, ascending.
    all: Vec<u32>,
    /// What became of bytes in machines that are asked, see [`crate::sublanguages::external_parsers`].
    pub(crate) answers: Answers,
    pub(crate) met: Met,
}

/// Where texts are in embedded languages.
#[derive(Debug, Default)]
pub(crate) struct Met {
    places: Vec<(u32, StateId)>,
    ids: FxHashMap<(u32, u32), u32>,
    known: Known,
    /// Machines to look ahead with, and what is known of their states, while that is done.
    ahead: Option<Ahead>,
}

impl Met {
    /// Those of a grammar's machine to look ahead with, which does nothing else.
    pub(crate) fn of_own() -> Met {
        let ahead = Ahead { places: usize::MAX, ..Ahead::default() };
        Met { ahead: Some(ahead), ..Met::default() }
    }
}

/// What is known of states of embedded languages.
#[derive(Debug, Default)]
struct Known {
    /// Whether members go on.
    goes_on: FxHashMap<(u32, u32), bool>,
    /// Bytes to the end of a member at least.
    least: FxHashMap<(u32, u32), u32>,
    /// Shortest rests of members.
    rests: FxHashMap<(u32, u32), Box<[u8]>>,
}

/// What looking ahead meets.
#[derive(Debug, Default)]
struct Ahead {
    /// By terminal, where they were needed; the machine itself where it will do.
    machines: FxHashMap<u32, Option<Arc<dyn Machine>>>,
    known: Known,
    /// Number of places before.
    places: usize,
}

/// A state with the machine that it belongs to.
struct Within {
    machine: Arc<dyn Machine>,
    state: StateId,
    /// Whether it is a machine to look ahead with.
    is_own: bool,
}

impl Within {
    /// The number that another state of the machine has here.
    fn numbered(&self, state: StateId) -> StateId {
        if self.is_own { StateId::from_number(OWN + state.number()) } else { state }
    }
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
        let Met { places, ids, .. } = &mut self.met;
        *ids.entry((terminal, state.number())).or_insert_with(|| {
            places.push((terminal, state));
            MARK | (places.len() as u32 - 1)
        })
    }

    /// The language and where a text is in it.
    pub(crate) fn at(&self, lexeme: u32) -> (u32, StateId) {
        self.met.places[(lexeme & !MARK) as usize]
    }

    /// The machine of a terminal that is an embedded language.
    pub(crate) fn machine(&self, terminal: u32) -> Option<Arc<dyn Machine>> {
        self.machines.get(terminal as usize)?.clone()
    }

    /// Begins to look ahead; whether that was not done already.
    pub(crate) fn look_ahead(&mut self) -> bool {
        if self.is_empty() || self.met.ahead.is_some() {
            return false;
        }
        self.met.ahead = Some(Ahead { places: self.met.places.len(), ..Ahead::default() });
        true
    }

    /// Ends looking ahead, and drops the places that were met.
    pub(crate) fn look_back(&mut self) {
        let Met { places, ids, ahead, .. } = &mut self.met;
        let Some(ahead) = ahead.take() else { return };
        for (terminal, state) in places.drain(ahead.places..) {
            ids.remove(&(terminal, state.number()));
        }
    }

    /// Whether a place is dropped once looking ahead ends.
    pub(crate) fn is_ahead(&self, reading: Reading) -> bool {
        let at = (reading.lexeme & !MARK) as usize;
        reading.is_embedded() && self.met.ahead.as_ref().is_some_and(|ahead| at >= ahead.places)
    }

    /// A state of an embedded language with the machine to read on with.
    fn within(&mut self, terminal: u32, state: StateId) -> Result<Option<Within>, Error> {
        let Some(machine) = self.machine(terminal) else { return Ok(None) };
        let Some(ahead) = &mut self.met.ahead else {
            return Ok(Some(Within { machine, state, is_own: false }));
        };
        let own = ahead.machines.entry(terminal).or_insert_with(|| machine.ahead_of_any());
        Ok(Some(match own {
            None => Within { machine, state, is_own: false },
            Some(own) => {
                let state = match state.number().checked_sub(OWN) {
                    Some(number) => StateId::from_number(number),
                    None => own.enter(state)?,
                };
                Within { machine: Arc::clone(own), state, is_own: true }
            }
        }))
    }

    /// What is known of a state, where it is kept.
    fn known(&mut self, state: StateId) -> &mut Known {
        match &mut self.met.ahead {
            Some(ahead) if state.number() >= OWN => &mut ahead.known,
            _ => &mut self.met.known,
        }
    }

    /// Some rest of a member.
    pub(crate) fn some_member(
        &mut self,
        terminal: u32,
        state: StateId,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(within) = self.within(terminal, state)? else { return Ok(None) };
        within.machine.some_member(within.state).map(Some)
    }

    /// The place of a machine to look ahead with that goes on as a state of an embedded language.
    pub(crate) fn entered(&mut self, terminal: u32, state: StateId) -> Result<u32, Error> {
        let own = self.within(terminal, state)?.map(|within| within.numbered(within.state));
        Ok(self.place(terminal, own.unwrap_or(state)))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let machines: usize = self.machines.iter().flatten().map(|one| one.memory_bytes()).sum();
        machines + self.answers.memory_bytes() + self.met_bytes()
    }

    /// Memory of what texts have come to, in bytes.
    pub(crate) fn met_bytes(&self) -> usize {
        let ahead = self.met.ahead.as_ref();
        let machines = ahead.iter().flat_map(|ahead| ahead.machines.values().flatten());
        let known = [Some(&self.met.known), ahead.map(|ahead| &ahead.known)];
        machines.map(|one| one.memory_bytes()).sum::<usize>()
            + known.into_iter().flatten().map(Known::memory_bytes).sum::<usize>()
            + self.met.places.capacity() * 8
            + self.met.ids.capacity() * 13
    }
}

impl Known {
    fn memory_bytes(&self) -> usize {
        let rests: usize = self.rests.values().map(|rest| rest.len() + 32).sum();
        rests + self.goes_on.capacity() * 10 + self.least.capacity() * 13
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
        let Some(within) = self.embedded.within(terminal, state)? else { return Ok(()) };
        let Some(next_state) = within.machine.step(within.state, byte)? else { return Ok(()) };
        let Some(left) = self.pending(forbidden, byte)? else { return Ok(()) };
        if within.machine.is_accepting(next_state)? {
            let behind = self.after(place, terminal)?;
            if behind != NOTHING {
                next(Reading::between(behind, left), Some(terminal));
            }
        }
        let state = within.numbered(next_state);
        let key = (terminal, state.number());
        let goes_on = match self.embedded.known(state).goes_on.get(&key) {
            Some(&known) => known,
            None => {
                let goes_on = reads_more(&*within.machine, next_state)?;
                self.embedded.known(state).goes_on.insert(key, goes_on);
                goes_on
            }
        };
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
        if self.embedded.answers.is_asked(terminal) {
            let behind = self.stacks_after(reading.place, terminal)?;
            return self.stacks.completion_bytes(behind);
        }
        let key = (terminal, state.number());
        let least = match self.embedded.known(state).least.get(&key) {
            Some(&known) => known,
            None => {
                let Some(within) = self.embedded.within(terminal, state)? else { return Ok(0) };
                let (machine, at) = (within.machine, within.state);
                let least = match self.checked {
                    true => match machine.least_bytes(at) {
                        // A bound will do.
                        Err(Error::Limit { .. }) => machine.owed_bytes(at)?,
                        other => other?,
                    },
                    false => machine.shortest(at)?.len(),
                };
                self.embedded.known(state).least.insert(key, least as u32);
                least as u32
            }
        };
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
        let Some(within) = self.embedded.within(terminal, at)? else { return Ok(None) };
        // What has ended already would end with nothing.
        if within.machine.is_accepting(within.state)? {
            return Ok(None);
        }
        let key = (terminal, at.number());
        let member = match self.embedded.known(at).rests.get(&key) {
            Some(known) => known.to_vec(),
            None => {
                let member = within.machine.shortest(within.state)?;
                self.embedded.known(at).rests.insert(key, member.as_slice().into());
                member
            }
        };
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
        let machine = machine.ahead_of_any().unwrap_or(machine);
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
