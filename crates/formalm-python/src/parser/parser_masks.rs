//! Masks of a user's parser: forced strings, then groups, then a walk of the remaining tokens.

use std::fmt;
use std::sync::Arc;

use formalm_core::{Error, LazyDfa, MaskClassId, Renewal, StateId};
use formalm_machines::{ApproximateClasses, ClassRenewal, ClassVisitor, MemberEnds, StateClasses};
use formalm_vocabulary::Vocabulary;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::direct_mask_automaton::OpaqueAutomaton;
use super::parser_machine::ParserMachine;
use super::python_calls::{NextInput, contract_error};
use super::token_groups::TokenGroups;
use super::trie_walk::ParserWalk;

/// The states of a parser machine, each a mask class of its own, for one vocabulary.
pub(crate) struct ParserMasks {
    machine: Arc<ParserMachine>,
    vocabulary: Arc<Vocabulary>,
    groups: TokenGroups,
}

impl fmt::Debug for ParserMasks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ParserKeys").finish_non_exhaustive()
    }
}

impl ParserMasks {
    pub(crate) fn new(
        py: Python<'_>,
        machine: Arc<ParserMachine>,
        vocabulary: Arc<Vocabulary>,
        groups: Py<PyDict>,
    ) -> ParserMasks {
        ParserMasks { machine, vocabulary, groups: TokenGroups::new(py, groups) }
    }

    fn mask(&self, py: Python<'_>, state: u32) -> Result<Vec<u32>, Error> {
        let (base, tail) = self.machine.tail(state);
        let plan = self.machine.plan(py, base)?;
        let parser = self.machine.parser(py, base)?;
        let mut words = vec![0; self.vocabulary.len().div_ceil(32)];
        if !plan.strings.is_empty() {
            self.forced(&parser, &plan, &tail, &mut words)?;
            return Ok(words);
        }
        if !tail.is_empty() {
            // No token ends inside a character, so no token sequence leads here.
            return Ok(words);
        }
        let calls = &self.machine.calls;
        let group_mask = match plan.has_groups() {
            true => Some(self.groups.group_mask(py, &plan, &self.vocabulary, calls.reads_bytes)?),
            false => None,
        };
        if let Some(group_mask) = &group_mask {
            words.copy_from_slice(&group_mask.allowed);
        }
        let trie = self.vocabulary.trie();
        let mut walk =
            ParserWalk { calls, trie, group_mask: group_mask.as_deref(), words: &mut words };
        walk.below(None, &parser, self.machine.compares())?;
        Ok(words)
    }

    /// Sets the tokens along the strings of which one must follow, and beyond their ends.
    fn forced(
        &self,
        parser: &Bound<'_, PyAny>,
        plan: &NextInput,
        tail: &[u8],
        words: &mut [u32],
    ) -> Result<(), Error> {
        let (trie, calls) = (self.vocabulary.trie(), &self.machine.calls);
        for string in plan.strings.iter().filter(|string| string.starts_with(tail)) {
            let mut node = None;
            for (at, &byte) in string.iter().enumerate().skip(tail.len()) {
                node = match node {
                    None => trie.root_child(byte),
                    Some(node) => trie.child(node, byte),
                };
                let Some(node) = node else { break };
                let is_end = string.get(at + 1).is_none_or(|next| next & 0xC0 != 0x80);
                if is_end || calls.reads_bytes {
                    for &id in trie.tokens_at(node) {
                        words[id as usize >> 5] |= 1 << (id & 31);
                    }
                }
            }
            if let Some(node) = node
                && trie.nodes()[node as usize].end() > node + 1
            {
                let parser = calls.copy(parser)?;
                self.machine.must_append(&parser, string, "next_strings() returned")?;
                let mut walk = ParserWalk { calls, trie, group_mask: None, words };
                walk.below(Some(node), &parser, self.machine.compares())?;
            }
        }
        Ok(())
    }

    /// Returns the verdict of the groups about a token, or `None` if it must be read.
    fn verdict(&self, state: u32, token_id: u32) -> Result<Option<bool>, Error> {
        let known = self.machine.cached_plan(state);
        if known.is_some_and(|plan| !plan.has_groups()) {
            return Ok(None);
        }
        Python::attach(|py| {
            let (base, tail) = self.machine.tail(state);
            let plan = self.machine.plan(py, base)?;
            if !plan.has_groups() || !tail.is_empty() {
                return Ok(None);
            }
            let reads_bytes = self.machine.calls.reads_bytes;
            let group_mask = self.groups.group_mask(py, &plan, &self.vocabulary, reads_bytes)?;
            Ok((!group_mask.must_read(token_id)).then(|| group_mask.is_allowed(token_id)))
        })
    }
}

impl StateClasses for ParserMasks {
    type Machine = ParserMachine;

    fn machine(&self) -> &Arc<ParserMachine> {
        &self.machine
    }

    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        Ok(MaskClassId::from_number(state.number()))
    }

    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        Some(MaskClassId::from_number(state.number()))
    }

    fn read_token(
        &self,
        state: StateId,
        token_id: u32,
        bytes: &[u8],
    ) -> Result<Result<StateId, usize>, Error> {
        let verdict = self.verdict(state.number(), token_id)?;
        if verdict == Some(false) {
            return Ok(Err(0));
        }
        let read = self.machine.walk(state, bytes)?;
        if read.is_err() && verdict == Some(true) {
            let text = String::from_utf8_lossy(bytes);
            let message = format!(
                "append() of a parser rejected {text:?}, a token of one of its allowed_groups()"
            );
            let hint = "an allowed group must contain only tokens that append() accepts";
            return Err(Python::attach(|py| contract_error(py, &message, Some(hint))));
        }
        Ok(read)
    }

    fn visit<P: ClassVisitor>(&self, purpose: P) -> P::Result {
        let mask = |state: StateId| Python::attach(|py| self.mask(py, state.number()));
        purpose.visit(&OpaqueAutomaton { machine: &*self.machine, mask })
    }

    fn memory_bytes(&self) -> usize {
        self.groups.memory_bytes()
    }
}

impl MemberEnds for ParserMasks {}

impl ApproximateClasses for ParserMasks {}

impl ClassRenewal for ParserMasks {
    fn is_abandoned(&self) -> bool {
        self.groups.is_abandoned() || self.machine.is_abandoned()
    }
}
