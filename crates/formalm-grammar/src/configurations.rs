//! Configurations, and the automaton states that are made of them.
//!
//! A state of the automaton is a list of [`Configuration`]s, one per way to split the input into
//! lexemes.

use formalm_core::{ListInterner, memory_bytes};

use crate::NOTHING;

/// One parse hypothesis: a way to split the input read so far into lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Configuration {
    /// Threads of the lexeme being read; [`NOTHING`] between lexemes.
    pub(crate) lexeme: u32,
    /// The parser state before that lexeme: a set of stacks, with the open indentation levels if
    /// indentation matters.
    pub(crate) parser_state: u32,
    /// Negative threads: they must not match, because a lexeme ended although they could have
    /// continued.
    pub(crate) negative_threads: u32,
}

impl Configuration {
    /// Returns the configuration at `parser_state` between lexemes.
    pub(crate) fn between(parser_state: u32, negative_threads: u32) -> Configuration {
        Configuration { lexeme: NOTHING, parser_state, negative_threads }
    }

    pub(crate) fn is_between(self) -> bool {
        self.lexeme == NOTHING
    }
}

/// Integers per configuration in the list of an automaton state.
const CONFIGURATION_LEN: usize = 3;

/// The interned states of the automaton: lists of configurations.
#[derive(Debug, Default)]
pub(crate) struct Configurations {
    lists: ListInterner,
    /// A buffer reused between calls.
    flat_list: Vec<u32>,
}

memory_bytes!(Configurations { lists; flat_list });

impl Configurations {
    /// Interns a list of configurations and returns its id.
    pub(crate) fn intern(&mut self, configurations: &[Configuration]) -> u32 {
        self.flat_list.clear();
        self.flat_list.extend(
            configurations
                .iter()
                .flat_map(|one| [one.lexeme, one.parser_state, one.negative_threads]),
        );
        self.lists.intern(&self.flat_list)
    }

    /// Interns a single configuration and returns its id.
    pub(crate) fn intern_one(&mut self, one: Configuration) -> u32 {
        self.lists.intern(&[one.lexeme, one.parser_state, one.negative_threads])
    }

    pub(crate) fn count(&self, state: u32) -> usize {
        self.lists.get(state).len() / CONFIGURATION_LEN
    }

    pub(crate) fn at(&self, state: u32, at: usize) -> Configuration {
        let one = &self.lists.get(state)[at * CONFIGURATION_LEN..][..CONFIGURATION_LEN];
        Configuration { lexeme: one[0], parser_state: one[1], negative_threads: one[2] }
    }

    /// Returns the configurations of a state.
    pub(crate) fn get(&self, state: u32) -> Vec<Configuration> {
        (0..self.count(state)).map(|at| self.at(state, at)).collect()
    }

    /// Returns the number of states, including the dead one.
    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    /// Drops all states with ids from `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.lists.truncate(len);
    }
}
