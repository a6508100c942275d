//! Masks of grammars with user parsers in their rules.
//!
//! Tokens may begin, end and span the part that a parser reads, so the vocabulary is walked byte by
//! byte. The parsers read on scratch copies, which are dropped with the walk.

use std::rc::Rc;
use std::sync::Arc;

use formalm_core::{Error, Machine, MaskClassId, StateId};
use formalm_grammar::{ExternalParserState, GrammarAutomaton, SeparatedState};
use formalm_machines::{ApproximateClasses, ClassRenewal, ClassVisitor, MemberEnds, StateClasses};
use formalm_vocabulary::Vocabulary;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::direct_mask_automaton::OpaqueAutomaton;

/// The states of a grammar machine that calls parsers, each a mask class of its own, for one
/// vocabulary.
#[derive(Debug)]
pub(crate) struct GrammarParserMasks {
    machine: Arc<GrammarAutomaton>,
    vocabulary: Arc<Vocabulary>,
}

impl GrammarParserMasks {
    pub(crate) fn new(
        machine: Arc<GrammarAutomaton>,
        vocabulary: Arc<Vocabulary>,
    ) -> GrammarParserMasks {
        GrammarParserMasks { machine, vocabulary }
    }
}

impl StateClasses for GrammarParserMasks {
    type Machine = GrammarAutomaton;

    fn machine(&self) -> &Arc<GrammarAutomaton> {
        &self.machine
    }

    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        Ok(MaskClassId::from_number(state.number()))
    }

    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        Some(MaskClassId::from_number(state.number()))
    }

    fn visit<P: ClassVisitor>(&self, purpose: P) -> P::Result {
        // Parsers are called all the time; the grammar's own work is short.
        let mask = |state| {
            Python::attach(|_| GrammarWalk::new(&self.machine).mask(&self.vocabulary, state))
        };
        purpose.visit(&OpaqueAutomaton { machine: &*self.machine, mask })
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

impl MemberEnds for GrammarParserMasks {}

impl ApproximateClasses for GrammarParserMasks {}

impl ClassRenewal for GrammarParserMasks {}

/// The configurations after a byte.
type NextConfigurations = Option<Rc<SeparatedState>>;

/// A walk along the vocabulary.
struct GrammarWalk<'a> {
    grammar: &'a GrammarAutomaton,
    /// Scratch copies of terminal machines; the number of a copy is its index plus one.
    machines: Vec<Arc<dyn Machine>>,
    /// Start states of terminals, with their machines.
    starts: FxHashMap<u32, (u32, StateId)>,
    /// Successors of configurations without a parser.
    known: FxHashMap<(Rc<SeparatedState>, u8), NextConfigurations>,
}

impl<'a> GrammarWalk<'a> {
    fn new(grammar: &'a GrammarAutomaton) -> GrammarWalk<'a> {
        let (starts, known) = (FxHashMap::default(), FxHashMap::default());
        GrammarWalk { grammar, machines: Vec::new(), starts, known }
    }

    /// Returns the tokens that are viable from a state.
    fn mask(&mut self, vocabulary: &Vocabulary, state: StateId) -> Result<Vec<u32>, Error> {
        let trie = vocabulary.trie();
        let mut words = vec![0; vocabulary.len().div_ceil(32)];
        let mut start = self.grammar.separated_state(state)?;
        for one in start.external_states_mut() {
            self.use_scratch_copy(one)?;
        }
        let mut stack = vec![Rc::new(start)];
        let nodes = trie.nodes();
        let mut at = 0;
        while (at as usize) < nodes.len() {
            let here = nodes[at as usize];
            let depth = here.depth();
            let before = Rc::clone(&stack[depth - 1]);
            let Some(next) = self.after(&before, here.byte())? else {
                at = here.end();
                continue;
            };
            if here.word().is_some() && self.may_end(&next) {
                for &id in trie.tokens_at(at) {
                    words[id as usize >> 5] |= 1 << (id & 31);
                }
            }
            stack.truncate(depth);
            stack.push(next);
            at += 1;
        }
        Ok(words)
    }

    fn after(
        &mut self,
        configurations: &Rc<SeparatedState>,
        byte: u8,
    ) -> Result<NextConfigurations, Error> {
        if !configurations.external_states().is_empty() {
            return self.successors(configurations, byte);
        }
        let key = (Rc::clone(configurations), byte);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let next = self.successors(configurations, byte)?;
        self.known.insert(key, next.clone());
        Ok(next)
    }

    fn successors(
        &mut self,
        configurations: &SeparatedState,
        byte: u8,
    ) -> Result<NextConfigurations, Error> {
        let mut answers = Vec::with_capacity(configurations.external_states().len());
        for one in configurations.external_states() {
            answers.push(match self.machine(one) {
                Some(machine) => machine.step_with_acceptance(one.state, byte)?,
                None => None,
            });
        }
        let Some(mut next) = self.grammar.separated_step(configurations, byte, &answers)? else {
            return Ok(None);
        };
        for one in next.external_states_mut() {
            self.use_scratch_copy(one)?;
        }
        Ok(Some(Rc::new(next)))
    }

    fn machine(&self, one: &ExternalParserState) -> Option<Arc<dyn Machine>> {
        match one.machine.checked_sub(1) {
            Some(at) => self.machines.get(at as usize).cloned(),
            None => self.grammar.sublanguage_machine(one.terminal),
        }
    }

    /// Replaces the machine of a terminal by a scratch copy that is dropped with the walk.
    fn use_scratch_copy(&mut self, one: &mut ExternalParserState) -> Result<(), Error> {
        if one.machine != 0 {
            return Ok(());
        }
        if !one.has_begun
            && let Some(&(machine, state)) = self.starts.get(&one.terminal)
        {
            (one.machine, one.state) = (machine, state);
            return Ok(());
        }
        let Some(machine) = self.grammar.sublanguage_machine(one.terminal) else { return Ok(()) };
        if let Some((aside, state)) = machine.scratch_copy_at(one.state)? {
            self.machines.push(aside);
            (one.machine, one.state) = (self.machines.len() as u32, state);
        }
        if !one.has_begun {
            self.starts.insert(one.terminal, (one.machine, one.state));
        }
        Ok(())
    }

    /// Returns `true` if a token may end here.
    fn may_end(&self, configurations: &SeparatedState) -> bool {
        let mut begun = configurations.external_states().iter().filter(|one| one.has_begun);
        configurations.has_other_configurations()
            || begun.any(|one| {
                self.machine(one).is_some_and(|machine| machine.is_char_boundary(one.state))
            })
    }
}
