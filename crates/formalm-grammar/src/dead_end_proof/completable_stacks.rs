//! Step 3 of the proof: the verdict for a concrete set of stacks.
//!
//! A set of stacks is completable if some member continues it after a separator whatever was read
//! before (see [`GrammarState::fits_separator`]), and if every allowed lexeme leads to a
//! completable set. Stacks of completable states satisfy this, except after unproven terminals,
//! which are examined here by lookahead.

use formalm_core::Error;

use crate::grammar_state::GrammarState;
use crate::list_interner::NOTHING;
use crate::lr0::elements;

/// Maximum lookahead, in terminals. Chosen, not measured.
const MAX_LOOKAHEAD_TERMINALS: usize = 4;

impl GrammarState {
    /// Returns `true` if the stacks of a parser state are completable and no indentation limit
    /// interferes.
    pub(crate) fn is_completable_at(&mut self, parser_state: u32) -> Result<bool, Error> {
        let stacks = self.stacks_of(parser_state);
        Ok(self.fits_limits(parser_state) && self.is_completable(stacks)?)
    }

    /// Returns `true` if a set of stacks is completable; `false` may also mean that this is
    /// unknown.
    pub(crate) fn is_completable(&mut self, stacks: u32) -> Result<bool, Error> {
        self.is_completable_within(stacks, MAX_LOOKAHEAD_TERMINALS)
    }

    fn is_completable_within(&mut self, stacks: u32, depth: usize) -> Result<bool, Error> {
        if self.dead_end_proof.unproven().is_empty() || stacks == NOTHING || depth == 0 {
            return Ok(self.dead_end_proof.unproven().is_empty() && stacks != NOTHING);
        }
        if let Some(&known) = self.completable.get(&stacks) {
            return Ok(known);
        }
        let proven = !self.gss.is_unproven(stacks);
        let allowed = self.gss.allowed(stacks)?;
        let allowed = self.gss.lr0.sets.copy(allowed);
        let unproven = |one: &u32| self.dead_end_proof.unproven().binary_search(one).is_ok();
        let unproven_terminals: Vec<u32> = elements(&allowed)
            .filter_map(|number| number.checked_sub(1))
            .filter(|one| !proven || unproven(one))
            .collect();
        let mut completable = proven || !unproven_terminals.is_empty();
        for &terminal in &unproven_terminals {
            let next = self.gss.shift(stacks, terminal)?;
            let is_proven =
                !self.gss.is_unproven(next) || self.is_completable_within(next, depth - 1)?;
            completable &= is_proven;
            if !completable {
                break;
            }
        }
        if completable && !proven {
            completable = self.can_spell_one(stacks, &unproven_terminals)?;
        }
        self.record_completable(stacks, completable);
        Ok(completable)
    }

    /// Returns `true` if one of the terminals can be spelled after a separator where only they are
    /// allowed.
    fn can_spell_one(&mut self, stacks: u32, terminals: &[u32]) -> Result<bool, Error> {
        let context = self.context_on(stacks, self.indentation.is_some())?;
        for &terminal in terminals {
            for wanted in [terminal, self.replacement_terminal(terminal)] {
                if self.is_spellable_in(context, wanted)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
