//! Masks of grammars with parsers in their rules.
//!
//! Tokens may begin, end and span what a parser reads, so the vocabulary is walked byte by byte;
//! the parsers read on aside, and what they meet is dropped with the walk.

use std::rc::Rc;
use std::sync::Arc;

use formalm_automata::{Error, KeyId, Keys, Machine, Purpose, StateId};
use formalm_grammar::{GrammarAutomaton, Ways, Within};
use formalm_vocabulary::Vocabulary;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::opaque::StateSteps;

/// The states of a grammar's machine that asks parsers as keys, for one vocabulary.
#[derive(Debug)]
pub(crate) struct AskingKeys {
    machine: Arc<GrammarAutomaton>,
    vocabulary: Arc<Vocabulary>,
}

impl AskingKeys {
    pub(crate) fn new(machine: Arc<GrammarAutomaton>, vocabulary: Arc<Vocabulary>) -> AskingKeys {
        AskingKeys { machine, vocabulary }
    }
}

impl Keys for AskingKeys {
    type Machine = GrammarAutomaton;

    fn machine(&self) -> &Arc<GrammarAutomaton> {
        &self.machine
    }

    fn key(&self, state: StateId) -> Result<KeyId, Error> {
        Ok(KeyId::from_number(state.number()))
    }

    fn known_key(&self, state: StateId) -> Option<KeyId> {
        Some(KeyId::from_number(state.number()))
    }

    fn read<P: Purpose>(&self, purpose: P) -> P::Result {
        // Parsers are called all the time; the grammar's own work is short.
        let mask =
            |state| Python::attach(|_| Walk::new(&self.machine).mask(&self.vocabulary, state));
        purpose.read(&StateSteps { machine: &*self.machine, mask })
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// What is behind a byte.
type Next = Option<Rc<Ways>>;

/// One walk along the vocabulary.
struct Walk<'a> {
    grammar: &'a GrammarAutomaton,
    /// Machines in place of those of terminals, by number less one.
    machines: Vec<Arc<dyn Machine>>,
    /// Where terminals begin, with their machines.
    starts: FxHashMap<u32, (u32, StateId)>,
    /// What is behind ways in which no parser is.
    known: FxHashMap<(Rc<Ways>, u8), Next>,
}

impl<'a> Walk<'a> {
    fn new(grammar: &'a GrammarAutomaton) -> Walk<'a> {
        let (starts, known) = (FxHashMap::default(), FxHashMap::default());
        Walk { grammar, machines: Vec::new(), starts, known }
    }

    /// The tokens that are viable from a state.
    fn mask(&mut self, vocabulary: &Vocabulary, state: StateId) -> Result<Vec<u32>, Error> {
        let trie = vocabulary.trie();
        let mut words = vec![0; vocabulary.len().div_ceil(32)];
        let mut start = self.grammar.ways_at(state)?;
        for one in start.within_mut() {
            self.put_aside(one)?;
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
            if here.word().is_some() && self.rests(&next) {
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

    fn after(&mut self, ways: &Rc<Ways>, byte: u8) -> Result<Next, Error> {
        if !ways.within().is_empty() {
            return self.found(ways, byte);
        }
        let key = (Rc::clone(ways), byte);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let next = self.found(ways, byte)?;
        self.known.insert(key, next.clone());
        Ok(next)
    }

    fn found(&mut self, ways: &Ways, byte: u8) -> Result<Next, Error> {
        let mut answers = Vec::with_capacity(ways.within().len());
        for one in ways.within() {
            answers.push(match self.machine(one) {
                Some(machine) => machine.step_told(one.state, byte)?,
                None => None,
            });
        }
        let Some(mut next) = self.grammar.ways_after(ways, byte, &answers)? else {
            return Ok(None);
        };
        for one in next.within_mut() {
            self.put_aside(one)?;
        }
        Ok(Some(Rc::new(next)))
    }

    fn machine(&self, one: &Within) -> Option<Arc<dyn Machine>> {
        match one.machine.checked_sub(1) {
            Some(at) => self.machines.get(at as usize).cloned(),
            None => self.grammar.asked(one.terminal),
        }
    }

    /// Puts a machine that is dropped with the walk in place of the terminal's.
    fn put_aside(&mut self, one: &mut Within) -> Result<(), Error> {
        if one.machine != 0 {
            return Ok(());
        }
        if !one.is_begun
            && let Some(&(machine, state)) = self.starts.get(&one.terminal)
        {
            (one.machine, one.state) = (machine, state);
            return Ok(());
        }
        let Some(machine) = self.grammar.asked(one.terminal) else { return Ok(()) };
        if let Some((aside, state)) = machine.aside(one.state)? {
            self.machines.push(aside);
            (one.machine, one.state) = (self.machines.len() as u32, state);
        }
        if !one.is_begun {
            self.starts.insert(one.terminal, (one.machine, one.state));
        }
        Ok(())
    }

    /// Whether a token may end there.
    fn rests(&self, ways: &Ways) -> bool {
        let mut begun = ways.within().iter().filter(|one| one.is_begun);
        ways.is_elsewhere()
            || begun.any(|one| self.machine(one).is_some_and(|machine| machine.is_whole(one.state)))
    }
}
