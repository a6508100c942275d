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
use crate::state::{Configuration, GrammarState};
use crate::sublanguages::external_parsers::ParserAnswers;

/// Tells numbers of places in embedded languages from those of lexer states.
const IN_SUBLANGUAGE: u32 = 1 << 31;

/// States from here on are those of a machine to look ahead with.
const SCRATCH: u32 = 1 << 30;

/// Bytes of a member are looked at in so many places before it is taken to be hindered.
const MAX_OUTLIVE_STATES: usize = 2_000;

/// The machines of embedded languages, and where texts are in them.
#[derive(Debug, Default)]
pub(crate) struct Sublanguages {
    /// By terminal.
    machines: Vec<Option<Arc<dyn Machine>>>,
    /// Terminals that are embedded languages, ascending.
    all: Vec<u32>,
    /// What became of bytes in machines that are asked, see [`crate::sublanguages::external_parsers`].
    pub(crate) answers: ParserAnswers,
    pub(crate) visited: SublanguageStates,
}

/// Where texts are in embedded languages.
#[derive(Debug, Default)]
pub(crate) struct SublanguageStates {
    positions: Vec<(u32, StateId)>,
    ids: FxHashMap<(u32, u32), u32>,
    facts: StateFacts,
    /// Machines to look ahead with, and what is known of their states, while that is done.
    scratch: Option<ScratchMachines>,
}

impl SublanguageStates {
    /// Those of a grammar's machine to look ahead with, which does nothing else.
    pub(crate) fn for_scratch_copy() -> SublanguageStates {
        let scratch = ScratchMachines { positions: usize::MAX, ..ScratchMachines::default() };
        SublanguageStates { scratch: Some(scratch), ..SublanguageStates::default() }
    }
}

/// What is known of states of embedded languages.
#[derive(Debug, Default)]
struct StateFacts {
    /// Whether members go on.
    can_continue: FxHashMap<(u32, u32), bool>,
    /// Bytes to the end of a member at least.
    min_bytes: FxHashMap<(u32, u32), u32>,
    /// Shortest rests of members.
    shortest_rests: FxHashMap<(u32, u32), Box<[u8]>>,
}

/// What looking ahead meets.
#[derive(Debug, Default)]
struct ScratchMachines {
    /// By terminal, where they were needed; the machine itself where it will do.
    machines: FxHashMap<u32, Option<Arc<dyn Machine>>>,
    facts: StateFacts,
    /// Number of places before.
    positions: usize,
}

/// A state with the machine that it belongs to.
struct MachineState {
    machine: Arc<dyn Machine>,
    state: StateId,
    /// Whether it is a machine to look ahead with.
    is_scratch: bool,
}

impl MachineState {
    /// The number that another state of the machine has here.
    fn state_id(&self, state: StateId) -> StateId {
        if self.is_scratch { StateId::from_number(SCRATCH + state.number()) } else { state }
    }
}

impl Sublanguages {
    pub(crate) fn new(grammar: &Grammar) -> Sublanguages {
        let machine =
            |at: usize| Some(Arc::clone(&grammar.terminals[at].embedded.as_ref()?.machine));
        let machines: Vec<_> = (0..grammar.terminals.len()).map(machine).collect();
        let all = (0..).zip(&machines).filter(|(_, one)| one.is_some()).map(|(at, _)| at).collect();
        let is_external =
            machines.iter().map(|one| one.as_ref().is_some_and(|one| !one.is_exact()));
        let answers = ParserAnswers::new(is_external.collect());
        Sublanguages { machines, all, answers, ..Sublanguages::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn has(&self, terminal: u32) -> bool {
        self.all.binary_search(&terminal).is_ok()
    }

    pub(crate) fn position(&mut self, terminal: u32, state: StateId) -> u32 {
        let SublanguageStates { positions, ids, .. } = &mut self.visited;
        *ids.entry((terminal, state.number())).or_insert_with(|| {
            positions.push((terminal, state));
            IN_SUBLANGUAGE | (positions.len() as u32 - 1)
        })
    }

    /// The language and where a text is in it.
    pub(crate) fn at(&self, lexeme: u32) -> (u32, StateId) {
        self.visited.positions[(lexeme & !IN_SUBLANGUAGE) as usize]
    }

    /// The machine of a terminal that is an embedded language.
    pub(crate) fn machine(&self, terminal: u32) -> Option<Arc<dyn Machine>> {
        self.machines.get(terminal as usize)?.clone()
    }

    /// Begins to look ahead; whether that was not done already.
    pub(crate) fn begin_scratch(&mut self) -> bool {
        if self.is_empty() || self.visited.scratch.is_some() {
            return false;
        }
        self.visited.scratch = Some(ScratchMachines {
            positions: self.visited.positions.len(),
            ..ScratchMachines::default()
        });
        true
    }

    /// Ends looking ahead, and drops the places that were met.
    pub(crate) fn end_scratch(&mut self) {
        let SublanguageStates { positions, ids, scratch, .. } = &mut self.visited;
        let Some(scratch) = scratch.take() else { return };
        for (terminal, state) in positions.drain(scratch.positions..) {
            ids.remove(&(terminal, state.number()));
        }
    }

    /// Whether a place is dropped once looking ahead ends.
    pub(crate) fn is_scratch_position(&self, configuration: Configuration) -> bool {
        let at = (configuration.lexeme & !IN_SUBLANGUAGE) as usize;
        configuration.is_in_sublanguage()
            && self.visited.scratch.as_ref().is_some_and(|scratch| at >= scratch.positions)
    }

    /// A state of an embedded language with the machine to read on with.
    fn machine_state(
        &mut self,
        terminal: u32,
        state: StateId,
    ) -> Result<Option<MachineState>, Error> {
        let Some(machine) = self.machine(terminal) else { return Ok(None) };
        let Some(scratch) = &mut self.visited.scratch else {
            return Ok(Some(MachineState { machine, state, is_scratch: false }));
        };
        let own = scratch.machines.entry(terminal).or_insert_with(|| machine.ahead_of_any());
        Ok(Some(match own {
            None => MachineState { machine, state, is_scratch: false },
            Some(own) => {
                let state = match state.number().checked_sub(SCRATCH) {
                    Some(number) => StateId::from_number(number),
                    None => own.enter(state)?,
                };
                MachineState { machine: Arc::clone(own), state, is_scratch: true }
            }
        }))
    }

    /// What is known of a state, where it is kept.
    fn facts(&mut self, state: StateId) -> &mut StateFacts {
        match &mut self.visited.scratch {
            Some(scratch) if state.number() >= SCRATCH => &mut scratch.facts,
            _ => &mut self.visited.facts,
        }
    }

    /// Some rest of a member.
    pub(crate) fn some_member(
        &mut self,
        terminal: u32,
        state: StateId,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(machine_state) = self.machine_state(terminal, state)? else { return Ok(None) };
        machine_state.machine.some_member(machine_state.state).map(Some)
    }

    /// The place of a machine to look ahead with that goes on as a state of an embedded language.
    pub(crate) fn enter_position(&mut self, terminal: u32, state: StateId) -> Result<u32, Error> {
        let own = self
            .machine_state(terminal, state)?
            .map(|machine_state| machine_state.state_id(machine_state.state));
        Ok(self.position(terminal, own.unwrap_or(state)))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let machines: usize = self.machines.iter().flatten().map(|one| one.memory_bytes()).sum();
        machines + self.answers.memory_bytes() + self.visited_bytes()
    }

    /// Memory of what texts have come to, in bytes.
    pub(crate) fn visited_bytes(&self) -> usize {
        let scratch = self.visited.scratch.as_ref();
        let machines = scratch.iter().flat_map(|scratch| scratch.machines.values().flatten());
        let facts = [Some(&self.visited.facts), scratch.map(|scratch| &scratch.facts)];
        machines.map(|one| one.memory_bytes()).sum::<usize>()
            + facts.into_iter().flatten().map(StateFacts::memory_bytes).sum::<usize>()
            + self.visited.positions.capacity() * 8
            + self.visited.ids.capacity() * 13
    }
}

impl StateFacts {
    fn memory_bytes(&self) -> usize {
        let shortest_rests: usize = self.shortest_rests.values().map(|rest| rest.len() + 32).sum();
        shortest_rests + self.can_continue.capacity() * 10 + self.min_bytes.capacity() * 13
    }
}

/// Whether a member goes on from a state.
fn reads_more(machine: &dyn Machine, state: StateId) -> Result<bool, Error> {
    Ok(!machine.is_accepting(state)? || !machine.live_bytes(state)?.is_empty())
}

/// Bytes of a shortest member that is not empty; `None` if there is none.
pub(crate) fn shortest_nonempty_len(machine: &dyn Machine) -> Result<Option<u32>, Error> {
    let start = machine.start();
    if !machine.is_exact() {
        return Ok(Some(1));
    }
    if !machine.is_accepting(start)? {
        return Ok(Some(machine.shortest(start)?.len() as u32));
    }
    let mut min_bytes = None;
    for byte in 0..=255 {
        if let Some(next) = machine.step(start, byte)? {
            let bytes = machine.shortest(next)?.len() as u32 + 1;
            min_bytes = Some(min_bytes.map_or(bytes, |min_bytes: u32| min_bytes.min(bytes)));
        }
    }
    Ok(min_bytes)
}

impl Configuration {
    /// Whether the text is in an embedded language.
    pub(crate) fn is_in_sublanguage(self) -> bool {
        self.lexeme & IN_SUBLANGUAGE != 0
    }
}

impl GrammarState {
    /// Embedded languages that may begin at a place.
    pub(crate) fn sublanguages_at(&mut self, parser_state: u32) -> Result<Vec<u32>, Error> {
        let allowed = self.gss.allowed(self.stacks_of(parser_state))?;
        let set = self.gss.lr0.sets.get(allowed);
        Ok(self.sublanguages.all.iter().copied().filter(|one| contains(set, one + 1)).collect())
    }

    /// What a reading becomes within embedded languages, with the one that ends, if one does.
    pub(crate) fn step_sublanguages(
        &mut self,
        configuration: Configuration,
        byte: u8,
        next: &mut impl FnMut(Configuration, Option<u32>),
    ) -> Result<(), Error> {
        let Configuration { lexeme, parser_state, negative_threads } = configuration;
        if configuration.is_in_sublanguage() {
            let (terminal, state) = self.sublanguages.at(lexeme);
            return self.step_sublanguage(
                (terminal, state),
                (parser_state, negative_threads),
                byte,
                next,
            );
        }
        for terminal in self.sublanguages_at(parser_state)? {
            let Some(machine) = self.sublanguages.machine(terminal) else { continue };
            self.step_sublanguage(
                (terminal, machine.start()),
                (parser_state, negative_threads),
                byte,
                next,
            )?;
        }
        Ok(())
    }

    fn step_sublanguage(
        &mut self,
        (terminal, state): (u32, StateId),
        (parser_state, negative_threads): (u32, u32),
        byte: u8,
        next: &mut impl FnMut(Configuration, Option<u32>),
    ) -> Result<(), Error> {
        self.gss.meter.spend(1)?;
        if self.sublanguages.answers.is_external(terminal) {
            return self.step_external_parser(
                (terminal, state),
                (parser_state, negative_threads),
                byte,
                next,
            );
        }
        let Some(machine_state) = self.sublanguages.machine_state(terminal, state)? else {
            return Ok(());
        };
        let Some(next_state) = machine_state.machine.step(machine_state.state, byte)? else {
            return Ok(());
        };
        let Some(left) = self.step_negative_threads(negative_threads, byte)? else { return Ok(()) };
        if machine_state.machine.is_accepting(next_state)? {
            let after = self.after(parser_state, terminal)?;
            if after != NOTHING {
                next(Configuration::between(after, left), Some(terminal));
            }
        }
        let state = machine_state.state_id(next_state);
        let key = (terminal, state.number());
        let can_continue = match self.sublanguages.facts(state).can_continue.get(&key) {
            Some(&facts) => facts,
            None => {
                let can_continue = reads_more(&*machine_state.machine, next_state)?;
                self.sublanguages.facts(state).can_continue.insert(key, can_continue);
                can_continue
            }
        };
        if can_continue {
            let lexeme = self.sublanguages.position(terminal, state);
            next(Configuration { lexeme, parser_state, negative_threads: left }, None);
        }
        Ok(())
    }

    /// The place behind the embedded language that a text is in. If nothing is forbidden, some
    /// member ends there, since its machine shows live states only; of a machine that is asked it is
    /// taken to, whatever is forbidden.
    pub(crate) fn after_sublanguage(
        &mut self,
        configuration: Configuration,
    ) -> Result<Option<Configuration>, Error> {
        if !configuration.is_in_sublanguage() {
            return Ok(None);
        }
        let (terminal, _) = self.sublanguages.at(configuration.lexeme);
        if configuration.negative_threads != NOTHING
            && !self.sublanguages.answers.is_external(terminal)
        {
            return Ok(None);
        }
        let after = self.after(configuration.parser_state, terminal)?;
        Ok((after != NOTHING).then(|| Configuration::between(after, NOTHING)))
    }

    /// Bytes to the end of a member and of what follows it, at least.
    pub(crate) fn sublanguage_min_bytes(
        &mut self,
        configuration: Configuration,
    ) -> Result<u32, Error> {
        let (terminal, state) = self.sublanguages.at(configuration.lexeme);
        if self.sublanguages.answers.is_external(terminal) {
            let after = self.stacks_after_terminal(configuration.parser_state, terminal)?;
            return self.gss.min_completion_bytes(after);
        }
        let key = (terminal, state.number());
        let min_bytes = match self.sublanguages.facts(state).min_bytes.get(&key) {
            Some(&facts) => facts,
            None => {
                let Some(machine_state) = self.sublanguages.machine_state(terminal, state)? else {
                    return Ok(0);
                };
                let (machine, at) = (machine_state.machine, machine_state.state);
                let min_bytes = match self.checked {
                    true => match machine.least_bytes(at) {
                        // A bound will do.
                        Err(Error::Limit { .. }) => machine.owed_bytes(at)?,
                        other => other?,
                    },
                    false => machine.shortest(at)?.len(),
                };
                self.sublanguages.facts(state).min_bytes.insert(key, min_bytes as u32);
                min_bytes as u32
            }
        };
        let after = self.stacks_after_terminal(configuration.parser_state, terminal)?;
        let rest = self.gss.min_completion_bytes(after)?;
        Ok(min_bytes.saturating_add(rest))
    }

    /// Of a state whose texts are within one embedded language: the smallest of its shortest rests,
    /// and the state behind it. What follows does not depend on which member it is.
    pub(crate) fn forced_sublanguage_completion(
        &mut self,
        state: u32,
    ) -> Result<Option<(Vec<u8>, u32)>, Error> {
        if self.sublanguages.is_empty() {
            return Ok(None);
        }
        let [configuration] = self.configurations(state)[..] else { return Ok(None) };
        let Some(after) = self.after_sublanguage(configuration)? else { return Ok(None) };
        let (terminal, at) = self.sublanguages.at(configuration.lexeme);
        let Some(machine_state) = self.sublanguages.machine_state(terminal, at)? else {
            return Ok(None);
        };
        // What has ended already would end with nothing.
        if machine_state.machine.is_accepting(machine_state.state)? {
            return Ok(None);
        }
        let key = (terminal, at.number());
        let member = match self.sublanguages.facts(at).shortest_rests.get(&key) {
            Some(facts) => facts.to_vec(),
            None => {
                let member = machine_state.machine.shortest(machine_state.state)?;
                self.sublanguages.facts(at).shortest_rests.insert(key, member.as_slice().into());
                member
            }
        };
        Ok(Some((member, self.state(&[after]))))
    }

    /// Whether some member of an embedded language can be read although threads must not match,
    /// until they are gone.
    pub(crate) fn can_outlive(
        &mut self,
        terminal: u32,
        negative_threads: u32,
    ) -> Result<bool, Error> {
        let Some(machine) = self.sublanguages.machine(terminal) else { return Ok(false) };
        if self.sublanguages.answers.is_external(terminal) {
            // What it refuses is told byte by byte.
            return Ok(true);
        }
        let machine = machine.ahead_of_any().unwrap_or(machine);
        let mut seen = FxHashSet::from_iter([(machine.start().number(), negative_threads)]);
        let mut open = vec![(machine.start(), negative_threads)];
        while let Some((state, negative_threads)) = open.pop() {
            if negative_threads == NOTHING {
                return Ok(true);
            }
            for byte in 0..=255 {
                let Some(left) = self.step_negative_threads(negative_threads, byte)? else {
                    continue;
                };
                let Some(next) = machine.step(state, byte)? else { continue };
                if seen.len() < MAX_OUTLIVE_STATES && seen.insert((next.number(), left)) {
                    open.push((next, left));
                }
            }
        }
        Ok(false)
    }
}
