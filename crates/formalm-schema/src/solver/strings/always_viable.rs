//! States of string automata from which every string is viable, such as those of a search pattern:
//! no character is rejected before the string ends.

use formalm_automata::Automaton;
use formalm_core::{Error, LazyDfa, StateId};
use rustc_hash::FxHashSet;

use crate::formula::{Formula, FormulaAtom, FormulaId};
use crate::interner::CompactMap;
use crate::solver::SolverTimer;
use crate::solver::context::{LanguageId, SolverContext, any_string_automaton};

/// Maximum number of pairs of states that are visited. Chosen, not measured.
const MAX_PAIRS: usize = 400;

impl SolverContext {
    /// Returns `true` if every string certainly leads from the state to a live one, so nothing is
    /// rejected before the string ends. Returns `false` inside a multi-byte character.
    pub(crate) fn is_always_viable(
        &mut self,
        language: LanguageId,
        state: StateId,
    ) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        if let Some(&known) = self.always_viable.get(&(language, state)) {
            return Ok(known);
        }
        if self.is_search_pattern(self.language_formula(language), &mut CompactMap::default()) {
            return Ok(self.automaton(language).step(state, b'a')?.is_some());
        }
        if self.is_unbounded(language) || self.has_exactly_one(self.language_formula(language)) {
            return Ok(false);
        }
        // With a maximum length, some string is too long.
        if self
            .automaton(language)
            .without_counter(state)?
            .is_some_and(|near| near.max_chars < u64::MAX)
        {
            return Ok(false);
        }
        let states = match reachable_states(self.automaton(language), state) {
            Err(Error::Limit { .. }) => None,
            states => states?,
        };
        let is_open = states.is_some();
        self.always_viable.insert((language, state), is_open);
        for state in states.into_iter().flatten() {
            self.always_viable.insert((language, state), true);
        }
        Ok(is_open)
    }
}

impl SolverContext {
    /// Returns `true` for an "exactly one", which mostly rejects strings that satisfy two operands;
    /// exploring its states would find that out late.
    fn has_exactly_one(&self, id: FormulaId) -> bool {
        match self.formulas.get(id) {
            Formula::ExactlyOne(_) => true,
            Formula::And(list) => list.iter().any(|&one| self.has_exactly_one(one)),
            _ => false,
        }
    }

    /// Returns `true` if the language certainly is that of a search pattern, which is always
    /// viable. Decided without looking at states.
    fn is_search_pattern(&self, id: FormulaId, known: &mut CompactMap<FormulaId, bool>) -> bool {
        if let Some(&known) = known.get(&id) {
            return known;
        }
        let is_search = match self.formulas.get(id) {
            Formula::Atom(FormulaAtom::InLanguage(regex)) => {
                self.schema.extensible_regexes.contains(regex)
            }
            Formula::And(list) => list.iter().all(|&one| self.is_search_pattern(one, known)),
            Formula::Or(list) => list.iter().any(|&one| self.is_search_pattern(one, known)),
            _ => false,
        };
        known.insert(id, is_search);
        is_search
    }
}

/// Returns the reachable states between two characters, if each of them reads every character;
/// `None` otherwise, or if there are too many.
fn reachable_states(machine: &Automaton, state: StateId) -> Result<Option<Vec<StateId>>, Error> {
    let any = any_string_automaton()?;
    let mut bytes = [machine.class_starts(), any.class_starts()].concat();
    bytes.sort_unstable();
    bytes.dedup();
    let mut seen: FxHashSet<(StateId, StateId)> = FxHashSet::default();
    let mut open = vec![(state, any.start())];
    while let Some(pair) = open.pop() {
        if !seen.insert(pair) {
            continue;
        }
        if seen.len() > MAX_PAIRS {
            return Ok(None);
        }
        for &byte in &bytes {
            let Some(anywhere) = any.step(pair.1, byte)? else { continue };
            let Some(next) = machine.step(pair.0, byte)? else { return Ok(None) };
            open.push((next, anywhere));
        }
    }
    let between = seen.into_iter().filter(|pair| pair.1 == any.start());
    Ok(Some(between.map(|pair| pair.0).collect()))
}
