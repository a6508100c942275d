//! States of string automata from which every string is viable, such as those of a search pattern:
//! no character is rejected before the string ends.

use formalm_automata::Automaton;
use formalm_core::{CompactMap, Error, LazyDfa, StateId, reads_all_non_ascii};
use rustc_hash::FxHashSet;

use crate::solver::SolverTimer;
use crate::solver::formula_base::FormulaBase;
use crate::solver::strings::languages::{LanguageId, Languages, any_string_automaton};

/// Maximum number of pairs of states that are visited. Chosen, not measured.
const MAX_PAIRS: usize = 400;

/// Number of states of a language from which there are too many pairs before the others are no
/// longer tried: each attempt makes hundreds of states. Answering no is always safe.
const MAX_OVERFLOWS: u32 = 2;

/// The states between two characters that are reachable from a state.
enum ReachableStates {
    /// Each of them reads every character.
    All(Vec<StateId>),
    /// One of them refuses a character.
    Refusing,
    TooMany,
}

impl Languages {
    /// Returns `true` if every string certainly leads from the state to a live one, so nothing is
    /// rejected before the string ends. Returns `false` inside a multi-byte character.
    pub(crate) fn is_always_viable(
        &mut self,
        base: &FormulaBase,
        language: LanguageId,
        state: StateId,
    ) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        if let Some(&known) = self.always_viable.get(&(language, state)) {
            return Ok(known);
        }
        if base.is_search_pattern(self.language_formula(language), &mut CompactMap::default()) {
            return Ok(self.automaton(language).step(state, b'a')?.is_some());
        }
        if self.is_unbounded(language)
            || base.formulas.has_exactly_one(self.language_formula(language))
            || self.overflows.get(&language).is_some_and(|&count| count >= MAX_OVERFLOWS)
        {
            return Ok(false);
        }
        if self.automaton(language).first_bytes(state).is_some_and(|first| first.ascii() != !0) {
            self.always_viable.insert((language, state), false);
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
            Err(Error::Limit { .. }) => ReachableStates::TooMany,
            states => states?,
        };
        match states {
            ReachableStates::All(states) => {
                self.always_viable.insert((language, state), true);
                for state in states {
                    self.always_viable.insert((language, state), true);
                }
                return Ok(true);
            }
            ReachableStates::Refusing => {}
            ReachableStates::TooMany => {
                let before = self.overflows.get(&language).copied().unwrap_or_default();
                self.overflows.insert(language, before + 1);
            }
        }
        self.always_viable.insert((language, state), false);
        Ok(false)
    }

    /// Returns `true` if every string from the state on is certainly a member, and each of its
    /// characters returns to the state.
    pub(crate) fn accepts_everything(
        &mut self,
        language: LanguageId,
        state: StateId,
    ) -> Result<bool, Error> {
        let automaton = self.automaton(language);
        if self.is_unbounded(language)
            || !automaton.is_accepting(state)
            || automaton.step(state, b'a')? != Some(state)
        {
            return Ok(false);
        }
        if let Some(&known) = self.everything.get(&(language, state)) {
            return Ok(known);
        }
        let mut ascii = (0..0x80).map(|byte| Ok(automaton.step(state, byte)? == Some(state)));
        let all = ascii.try_fold(true, |all, returns: Result<bool, Error>| Ok(all && returns?))?
            && reads_all_non_ascii(state, state, |state, byte| automaton.step(state, byte))?;
        self.everything.insert((language, state), all);
        Ok(all)
    }
}

fn reachable_states(machine: &Automaton, state: StateId) -> Result<ReachableStates, Error> {
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
            return Ok(ReachableStates::TooMany);
        }
        for &byte in &bytes {
            let Some(anywhere) = any.step(pair.1, byte)? else { continue };
            let Some(next) = machine.step(pair.0, byte)? else {
                return Ok(ReachableStates::Refusing);
            };
            open.push((next, anywhere));
        }
    }
    let between = seen.into_iter().filter(|pair| pair.1 == any.start());
    Ok(ReachableStates::All(between.map(|pair| pair.0).collect()))
}
