//! Step 3 of the proof: the verdict for a concrete set of stacks.
//!
//! A set of stacks is completable if some member continues it after a separator whatever was read
//! before (see [`DeadEndProof::fits_separator`]), and if every allowed lexeme leads to a
//! completable set. Stacks of completable states satisfy this, except after unproven terminals,
//! which are examined here by lookahead.
//!
//! [`DeadEndProof::fits_separator`]: super::spellable_terminals::DeadEndProof::fits_separator

use formalm_core::Error;
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::configuration_reader::ConfigurationReader;
use crate::lr0::elements;

/// Maximum lookahead, in terminals. Chosen, not measured.
const MAX_LOOKAHEAD_TERMINALS: usize = 4;

/// The verdicts of this step so far.
#[derive(Debug, Default)]
pub(crate) struct CompletableStacks {
    /// Whether a set of stacks is completable.
    known: FxHashMap<u32, bool>,
    /// The entries added since the last checkpoint.
    log: Option<Vec<u32>>,
}

impl CompletableStacks {
    /// Returns `true` if the stacks of a parser state are completable and no indentation limit
    /// interferes.
    pub(crate) fn is_completable_at(
        &mut self,
        parser_state: u32,
        reader: &mut ConfigurationReader,
    ) -> Result<bool, Error> {
        let stacks = reader.parser.stacks_of(parser_state);
        Ok(reader.parser.fits_limits(parser_state) && self.is_completable(stacks, reader)?)
    }

    /// Returns `true` if a set of stacks is completable; `false` may also mean that this is
    /// unknown.
    fn is_completable(
        &mut self,
        stacks: u32,
        reader: &mut ConfigurationReader,
    ) -> Result<bool, Error> {
        self.is_completable_within(stacks, MAX_LOOKAHEAD_TERMINALS, reader)
    }

    fn is_completable_within(
        &mut self,
        stacks: u32,
        depth: usize,
        reader: &mut ConfigurationReader,
    ) -> Result<bool, Error> {
        let ConfigurationReader { parser, lexer, .. } = reader;
        if lexer.proof.unproven().is_empty() || stacks == NOTHING || depth == 0 {
            return Ok(lexer.proof.unproven().is_empty() && stacks != NOTHING);
        }
        if let Some(&known) = self.known.get(&stacks) {
            return Ok(known);
        }
        let proven = !parser.gss.graph.is_unproven(stacks);
        let allowed = parser.gss.allowed(stacks)?;
        let allowed = parser.gss.lr0.sets.get(allowed);
        let unproven = |one: &u32| lexer.proof.unproven().binary_search(one).is_ok();
        let unproven_terminals: Vec<u32> = elements(allowed)
            .filter_map(|number| number.checked_sub(1))
            .filter(|one| !proven || unproven(one))
            .collect();
        let mut completable = proven || !unproven_terminals.is_empty();
        for &terminal in &unproven_terminals {
            let next = reader.parser.gss.shift(stacks, terminal)?;
            let is_proven = !reader.parser.gss.graph.is_unproven(next)
                || self.is_completable_within(next, depth - 1, reader)?;
            completable &= is_proven;
            if !completable {
                break;
            }
        }
        if completable && !proven {
            completable = CompletableStacks::can_spell_one(stacks, &unproven_terminals, reader)?;
        }
        self.known.insert(stacks, completable);
        if let Some(log) = &mut self.log {
            log.push(stacks);
        }
        Ok(completable)
    }

    /// Returns `true` if one of the terminals can be spelled after a separator where only they are
    /// allowed.
    fn can_spell_one(
        stacks: u32,
        terminals: &[u32],
        reader: &mut ConfigurationReader,
    ) -> Result<bool, Error> {
        let context = reader.context_on(stacks, reader.parser.indentation.is_some())?;
        for &terminal in terminals {
            for wanted in [terminal, reader.lexer.rules.replacement_terminal(terminal)] {
                let meter = &mut reader.parser.gss.meter;
                let (proof, mut transitions) = reader.lexer.proof_and_transitions(meter);
                if proof.is_spellable_in(context, wanted, &mut transitions)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Starts to log new entries, so that [`CompletableStacks::rollback`] can drop them.
    pub(crate) fn checkpoint(&mut self) {
        self.log = Some(Vec::new());
    }

    /// Keeps everything found since [`CompletableStacks::checkpoint`].
    pub(crate) fn commit(&mut self) {
        self.log = None;
    }

    /// Drops everything found since [`CompletableStacks::checkpoint`].
    pub(crate) fn rollback(&mut self) {
        for stacks in self.log.take().into_iter().flatten() {
            self.known.remove(&stacks);
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.known.len() * 12
    }
}
