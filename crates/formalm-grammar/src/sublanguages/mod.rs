//! Sublanguages: languages of other kinds inside a grammar, each read by a machine of its own.
//!
//! A sublanguage is not a lexeme: nothing competes with it, and it may end after any of its
//! members, in parallel configurations. The position inside it is stored in a [`Configuration`] in
//! place of the current lexeme. Negative threads of earlier lexemes keep running inside it, because
//! they concern the input and not its parse.
//!
//! Lookahead visits many more states than the input will reach. It reads on scratch copies of the
//! machines (`ScratchCopies::scratch_copy`), and everything known about their states is dropped with
//! them.

pub(crate) mod external_parsers;

use std::sync::Arc;

use formalm_core::{Error, Interner, Machine, MemoryBytes, StateId, memory_bytes};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::NOTHING;
use crate::configuration_reader::ConfigurationReader;
use crate::configurations::Configuration;
use crate::grammar::Grammar;
use crate::lexer::thread_sets::ThreadSets;
use crate::limits::StepMeter;
use crate::lr0::contains;
use crate::sublanguages::external_parsers::ParserAnswers;

/// The bit that distinguishes positions in sublanguages from thread sets.
const IN_SUBLANGUAGE: u32 = 1 << 31;

/// States from here on belong to a scratch copy.
const SCRATCH: u32 = 1 << 30;

/// States explored to decide whether a sublanguage can outlive negative threads. Chosen, not
/// measured.
const MAX_OUTLIVE_STATES: usize = 2_000;

/// The machines of sublanguages, and the positions visited in them.
#[derive(Debug, Default)]
pub(crate) struct Sublanguages {
    /// Machines by terminal.
    machines: Vec<Option<Arc<dyn Machine>>>,
    /// Terminals that are sublanguages, ascending.
    all: Vec<u32>,
    /// Transitions of external parsers, see [`external_parsers`].
    pub(crate) answers: ParserAnswers,
    pub(crate) visited: SublanguageStates,
}

/// The positions visited in sublanguages.
#[derive(Debug, Default)]
pub(crate) struct SublanguageStates {
    positions: Interner<(u32, StateId)>,
    facts: StateFacts,
    /// The scratch copies and the facts about their states, during lookahead.
    scratch: Option<ScratchMachines>,
}

impl SublanguageStates {
    /// Returns the tables of a grammar's scratch copy, which only ever looks ahead.
    pub(crate) fn for_scratch_copy() -> SublanguageStates {
        let scratch = ScratchMachines { positions: usize::MAX, ..ScratchMachines::default() };
        SublanguageStates { scratch: Some(scratch), ..SublanguageStates::default() }
    }
}

/// Cached facts about states of sublanguages.
#[derive(Debug, Default)]
struct StateFacts {
    /// `true` if some longer member exists.
    can_continue: FxHashMap<(u32, u32), bool>,
    /// Minimum bytes to the end of a member.
    min_bytes: FxHashMap<(u32, u32), u32>,
    /// Shortest completions to a member.
    shortest_rests: FxHashMap<(u32, u32), Box<[u8]>>,
}

memory_bytes!(StateFacts { can_continue, min_bytes, shortest_rests });

/// The machines used by a lookahead.
#[derive(Debug, Default)]
struct ScratchMachines {
    /// Scratch copies by terminal, created on demand; `None` if the machine itself serves.
    machines: FxHashMap<u32, Option<Arc<dyn Machine>>>,
    facts: StateFacts,
    /// Number of positions before the lookahead.
    positions: usize,
}

/// A state with the machine that it belongs to.
struct MachineState {
    machine: Arc<dyn Machine>,
    state: StateId,
    /// `true` if the machine is a scratch copy.
    is_scratch: bool,
}

impl MachineState {
    /// Returns the id under which another state of the machine is stored here.
    fn state_id(&self, state: StateId) -> StateId {
        if self.is_scratch { StateId::from_number(SCRATCH + state.number()) } else { state }
    }
}

impl Sublanguages {
    pub(crate) fn new(grammar: &Grammar) -> Sublanguages {
        let machine =
            |at: usize| Some(Arc::clone(&grammar.terminals[at].sublanguage.as_ref()?.machine));
        let machines: Vec<_> = (0..grammar.terminals.len()).map(machine).collect();
        let all = (0..).zip(&machines).filter(|(_, one)| one.is_some()).map(|(at, _)| at).collect();
        let external = machines.iter().map(|one| one.as_ref().is_some_and(|one| !one.is_exact()));
        let answers = ParserAnswers::new(external.collect());
        Sublanguages { machines, all, answers, ..Sublanguages::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn has(&self, terminal: u32) -> bool {
        self.all.binary_search(&terminal).is_ok()
    }

    pub(crate) fn position(&mut self, terminal: u32, state: StateId) -> u32 {
        IN_SUBLANGUAGE | self.visited.positions.intern((terminal, state))
    }

    /// Returns the terminal and the state of a position.
    pub(crate) fn at(&self, lexeme: u32) -> (u32, StateId) {
        self.visited.positions[lexeme & !IN_SUBLANGUAGE]
    }

    /// Returns the machine of a sublanguage.
    pub(crate) fn machine(&self, terminal: u32) -> Option<Arc<dyn Machine>> {
        self.machines.get(terminal as usize)?.clone()
    }

    /// Returns the terminal and the state of a position, numbered as by the machine that reads it.
    pub(crate) fn machine_position(&self, lexeme: u32) -> (u32, StateId) {
        let (terminal, state) = self.at(lexeme);
        let number = state.number();
        (terminal, StateId::from_number(number.checked_sub(SCRATCH).unwrap_or(number)))
    }

    /// Returns the machines of all sublanguages, by terminal: during a lookahead, those that it
    /// reads on.
    pub(crate) fn all_machines(&mut self) -> Vec<(u32, Arc<dyn Machine>)> {
        let mut all = Vec::with_capacity(self.all.len());
        for at in 0..self.all.len() {
            let terminal = self.all[at];
            let Some(machine) = self.machine(terminal) else { continue };
            let scratch = self.scratch_copy(terminal, &machine).cloned();
            all.push((terminal, scratch.unwrap_or(machine)));
        }
        all
    }

    /// Returns the scratch copy of a machine during a lookahead, if it has one.
    fn scratch_copy(
        &mut self,
        terminal: u32,
        machine: &Arc<dyn Machine>,
    ) -> Option<&Arc<dyn Machine>> {
        let scratch = self.visited.scratch.as_mut()?;
        let machines = scratch.machines.entry(terminal);
        machines.or_insert_with(|| machine.dyn_scratch_copy()).as_ref()
    }

    /// Starts a lookahead. Returns `false` if one was already active.
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

    /// Ends the lookahead and drops the positions visited.
    pub(crate) fn end_scratch(&mut self) {
        let Some(scratch) = self.visited.scratch.take() else { return };
        self.visited.positions.truncate(scratch.positions);
    }

    /// Returns `true` if a configuration's position is dropped when the lookahead ends.
    pub(crate) fn is_scratch_position(&self, configuration: Configuration) -> bool {
        let at = (configuration.lexeme & !IN_SUBLANGUAGE) as usize;
        configuration.is_in_sublanguage()
            && self.visited.scratch.as_ref().is_some_and(|scratch| at >= scratch.positions)
    }

    /// Returns a state with the machine to continue reading with.
    fn machine_state(
        &mut self,
        terminal: u32,
        state: StateId,
    ) -> Result<Option<MachineState>, Error> {
        let Some(machine) = self.machine(terminal) else { return Ok(None) };
        Ok(Some(match self.scratch_copy(terminal, &machine) {
            None => MachineState { machine, state, is_scratch: false },
            Some(own) => {
                let state = match state.number().checked_sub(SCRATCH) {
                    Some(number) => StateId::from_number(number),
                    None => own.import_state(state)?,
                };
                MachineState { machine: Arc::clone(own), state, is_scratch: true }
            }
        }))
    }

    /// Returns the cache that holds the facts about a state.
    fn facts(&mut self, state: StateId) -> &mut StateFacts {
        match &mut self.visited.scratch {
            Some(scratch) if state.number() >= SCRATCH => &mut scratch.facts,
            _ => &mut self.visited.facts,
        }
    }

    /// Returns some completion of a state to a member.
    pub(crate) fn some_member(
        &mut self,
        terminal: u32,
        state: StateId,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(machine_state) = self.machine_state(terminal, state)? else { return Ok(None) };
        machine_state.machine.any_completion(machine_state.state).map(Some)
    }

    /// Returns the scratch position that corresponds to a state.
    pub(crate) fn enter_position(&mut self, terminal: u32, state: StateId) -> Result<u32, Error> {
        let own = self
            .machine_state(terminal, state)?
            .map(|machine_state| machine_state.state_id(machine_state.state));
        Ok(self.position(terminal, own.unwrap_or(state)))
    }

    /// Returns `true` if some member can be read until all negative threads are gone.
    pub(crate) fn can_outlive(
        &self,
        terminal: u32,
        negative_threads: u32,
        threads: &mut ThreadSets,
        meter: &mut StepMeter,
    ) -> Result<bool, Error> {
        let Some(machine) = self.machine(terminal) else { return Ok(false) };
        if self.answers.is_external(terminal) {
            // An external parser rejects byte by byte.
            return Ok(true);
        }
        let machine = machine.dyn_scratch_copy().unwrap_or(machine);
        let mut seen = FxHashSet::from_iter([(machine.start().number(), negative_threads)]);
        let mut open = vec![(machine.start(), negative_threads)];
        while let Some((state, negative_threads)) = open.pop() {
            if negative_threads == NOTHING {
                return Ok(true);
            }
            for byte in 0..=255 {
                let Some(left) = threads.step_negative_threads(negative_threads, byte, meter)?
                else {
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

    pub(crate) fn memory_bytes(&self) -> usize {
        let machines: usize = self.machines.iter().flatten().map(|one| one.memory_bytes()).sum();
        machines + self.answers.memory_bytes() + self.visited_bytes()
    }

    /// Returns the bytes used by the visited positions.
    pub(crate) fn visited_bytes(&self) -> usize {
        let scratch = self.visited.scratch.as_ref();
        let machines = scratch.iter().flat_map(|scratch| scratch.machines.values().flatten());
        let facts = [Some(&self.visited.facts), scratch.map(|scratch| &scratch.facts)];
        machines.map(|one| one.memory_bytes()).sum::<usize>()
            + facts.into_iter().flatten().map(StateFacts::memory_bytes).sum::<usize>()
            + self.visited.positions.table_bytes()
    }
}

/// Returns `true` if some longer member exists.
fn reads_more(machine: &dyn Machine, state: StateId) -> Result<bool, Error> {
    Ok(!machine.is_accepting(state)? || !machine.live_bytes(state)?.is_empty())
}

/// Returns the length of a shortest nonempty member; `None` if there is none.
pub(crate) fn shortest_nonempty_len(machine: &dyn Machine) -> Result<Option<u32>, Error> {
    let start = machine.start();
    if !machine.is_exact() {
        return Ok(Some(1));
    }
    if !machine.is_accepting(start)? {
        return Ok(Some(machine.shortest_completion(start)?.len() as u32));
    }
    let mut min_bytes = None;
    for byte in 0..=255 {
        if let Some(next) = machine.step(start, byte)? {
            let bytes = machine.shortest_completion(next)?.len() as u32 + 1;
            min_bytes = Some(min_bytes.map_or(bytes, |min_bytes: u32| min_bytes.min(bytes)));
        }
    }
    Ok(min_bytes)
}

impl Configuration {
    /// Returns `true` if the input is inside a sublanguage.
    pub(crate) fn is_in_sublanguage(self) -> bool {
        self.lexeme & IN_SUBLANGUAGE != 0
    }
}

impl ConfigurationReader {
    /// Returns the sublanguages that may begin in a parser state.
    pub(crate) fn sublanguages_at(&mut self, parser_state: u32) -> Result<Vec<u32>, Error> {
        let allowed = self.parser.allowed(parser_state)?;
        let set = self.parser.gss.lr0.sets.get(allowed);
        Ok(self.sublanguages.all.iter().copied().filter(|one| contains(set, one + 1)).collect())
    }

    /// Appends the successors of a configuration in sublanguages, each with the sublanguage that
    /// ends, if any.
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
        self.meter().spend(1)?;
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
            let after = self.parser.shift_lexeme(parser_state, terminal)?;
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

    /// Returns the configuration after the current sublanguage. Without negative threads, some
    /// member ends there, because all states are live. An external parser is assumed to end
    /// regardless of negative threads.
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
        let after = self.parser.shift_lexeme(configuration.parser_state, terminal)?;
        Ok((after != NOTHING).then(|| Configuration::between(after, NOTHING)))
    }

    /// Returns a lower bound on the bytes to the end of the member and of what follows it.
    pub(crate) fn sublanguage_min_bytes(
        &mut self,
        configuration: Configuration,
    ) -> Result<u32, Error> {
        let (terminal, state) = self.sublanguages.at(configuration.lexeme);
        if self.sublanguages.answers.is_external(terminal) {
            let after = self.parser.stacks_after_terminal(configuration.parser_state, terminal)?;
            return self.parser.gss.min_completion_bytes(after);
        }
        let key = (terminal, state.number());
        let min_bytes = match self.sublanguages.facts(state).min_bytes.get(&key) {
            Some(&facts) => facts,
            None => {
                let Some(machine_state) = self.sublanguages.machine_state(terminal, state)? else {
                    return Ok(0);
                };
                let (machine, at) = (machine_state.machine, machine_state.state);
                let min_bytes = match self.lexer.needs_viability_checks {
                    true => match machine.min_bytes(at) {
                        // A weaker bound suffices.
                        Err(Error::Limit { .. }) => machine.min_bytes_hint(at)?,
                        other => other?,
                    },
                    false => machine.shortest_completion(at)?.len(),
                };
                self.sublanguages.facts(state).min_bytes.insert(key, min_bytes as u32);
                min_bytes as u32
            }
        };
        let after = self.parser.stacks_after_terminal(configuration.parser_state, terminal)?;
        let rest = self.parser.gss.min_completion_bytes(after)?;
        Ok(min_bytes.saturating_add(rest))
    }

    /// Returns the smallest shortest completion of the member that a configuration is in, and the
    /// configuration after it.
    pub(crate) fn forced_sublanguage_completion(
        &mut self,
        configuration: Configuration,
    ) -> Result<Option<(Vec<u8>, Configuration)>, Error> {
        let Some(after) = self.after_sublanguage(configuration)? else { return Ok(None) };
        let (terminal, at) = self.sublanguages.at(configuration.lexeme);
        let Some(machine_state) = self.sublanguages.machine_state(terminal, at)? else {
            return Ok(None);
        };
        // A member that has already ended would be completed by nothing.
        if machine_state.machine.is_accepting(machine_state.state)? {
            return Ok(None);
        }
        let key = (terminal, at.number());
        let member = match self.sublanguages.facts(at).shortest_rests.get(&key) {
            Some(facts) => facts.to_vec(),
            None => {
                let member = machine_state.machine.shortest_completion(machine_state.state)?;
                self.sublanguages.facts(at).shortest_rests.insert(key, member.as_slice().into());
                member
            }
        };
        Ok(Some((member, after)))
    }
}
