//! Strings of a language that differ from given ones, and languages with many strings.

use formalm_core::{ByteSet, Error, LazyDfa, Machine, StateId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::TRUE;
use crate::solver::SolverTimer;
use crate::solver::formula_base::FormulaBase;
use crate::solver::strings::languages::{LanguageId, Languages};

/// Number of values that counts as enough. No token sequence in use reads so many items, and no
/// schema that demands half of them is assumed to have them. Chosen, not measured.
pub(crate) const ENOUGH_VALUES: u64 = 1 << 20;

/// Maximum number of steps of the search for a cycle. Chosen, not measured.
const MAX_STEPS: usize = 2_000;

/// Steps of that search before prefixes are counted instead. Chosen, not measured.
const FEW_STEPS: usize = 24;

/// Maximum number of states whose prefixes are counted. Chosen, not measured.
const MAX_COUNTED: usize = 1_000;

impl Languages {
    /// Returns a string of a language that is not excluded, or `None`.
    pub(crate) fn fresh_string(
        &self,
        language: LanguageId,
        excluded: &[&str],
    ) -> Result<Option<String>, Error> {
        let _solving = SolverTimer::begin();
        let machine = self.automaton(language);
        let excluded: Vec<&[u8]> = excluded.iter().map(|string| string.as_bytes()).collect();
        let found = fresh_completion(&**machine, machine.start(), &excluded)?;
        // Languages of strings contain valid UTF-8 only.
        Ok(found.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    /// Returns `true` if a language certainly has at least [`ENOUGH_VALUES`] strings.
    pub(crate) fn has_many_strings(
        &mut self,
        base: &FormulaBase,
        language: LanguageId,
    ) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        if self.language_formula(language) == TRUE {
            return Ok(true);
        }
        if let Some(&known) = self.has_many.get(&language) {
            return Ok(known);
        }
        if base.is_complement_of_enum(self.language_formula(language)) {
            return Ok(true);
        }
        let machine = &**self.automaton(language);
        let plenty = has_cycle(machine, FEW_STEPS)?
            || has_many_prefixes(machine)?
            || has_cycle(machine, MAX_STEPS)?;
        self.has_many.insert(language, plenty);
        Ok(plenty)
    }
}

/// Returns `true` if there are [`ENOUGH_VALUES`] prefixes of one length. All visible states are
/// live, so each prefix belongs to a different string.
fn has_many_prefixes<M: Machine>(machine: &M) -> Result<bool, Error> {
    let mut counts: FxHashMap<StateId, u64> = [(machine.start(), 1)].into_iter().collect();
    let mut seen = 0;
    while !counts.is_empty() {
        seen += counts.len();
        if seen > MAX_COUNTED {
            return Ok(false);
        }
        let mut after: FxHashMap<StateId, u64> = FxHashMap::default();
        let mut before: Vec<(StateId, u64)> = counts.into_iter().collect();
        before.sort_unstable_by_key(|&(state, _)| state.number());
        for (state, count) in before {
            for byte in machine.live_bytes(state)?.iter() {
                if let Some(next) = machine.step(state, byte)? {
                    *after.entry(next).or_default() += count;
                }
            }
        }
        if after.values().sum::<u64>() >= ENOUGH_VALUES {
            return Ok(true);
        }
        counts = after;
    }
    Ok(false)
}

/// Returns `true` if a short search meets a cycle, so that there are infinitely many strings.
fn has_cycle<M: Machine>(machine: &M, steps: usize) -> Result<bool, Error> {
    let mut path: Vec<(StateId, Vec<u8>)> = Vec::new();
    let mut done = FxHashSet::default();
    let mut open = Some(machine.start());
    for _ in 0..steps {
        if let Some(state) = open.take() {
            // Cycles are where most bytes lead, which are among the last.
            path.push((state, machine.live_bytes(state)?.iter().collect()));
        }
        let Some((state, bytes)) = path.last_mut() else { return Ok(false) };
        let Some(byte) = bytes.pop() else {
            done.insert(*state);
            path.pop();
            continue;
        };
        let Some(next) = machine.step(*state, byte)? else { continue };
        if path.iter().any(|&(one, _)| one == next) {
            return Ok(true);
        }
        if !done.contains(&next) {
            open = Some(next);
        }
    }
    Ok(false)
}

/// Returns a continuation from `state` that is not excluded.
fn fresh_completion<M: Machine>(
    machine: &M,
    state: StateId,
    excluded: &[&[u8]],
) -> Result<Option<Vec<u8>>, Error> {
    let Some((read, state)) = fresh_prefix(machine, state, excluded)? else { return Ok(None) };
    let rest = machine.shortest_completion(state)?;
    Ok(Some([read, rest].concat()))
}

/// Returns a prefix and its state such that the shortest completion makes it a string that is not
/// excluded.
///
/// All visible states are live, so the first byte that no excluded string has leads to one.
pub(crate) fn fresh_prefix<M: Machine>(
    machine: &M,
    state: StateId,
    excluded: &[&[u8]],
) -> Result<Option<(Vec<u8>, StateId)>, Error> {
    let mut open = vec![(state, Vec::new(), excluded.to_vec())];
    while let Some((state, read, excluded)) = open.pop() {
        let is_member =
            excluded.iter().all(|one| !one.is_empty()) && machine.is_accepting(state)?;
        if excluded.is_empty() || is_member {
            return Ok(Some((read, state)));
        }
        let live = machine.live_bytes(state)?;
        let mut taken = ByteSet::default();
        excluded.iter().filter_map(|string| string.first()).for_each(|&byte| taken.insert(byte));
        // Letters first: the string represents its class and may be shown to the user.
        let order = || (b'a'..=b'z').chain(0..b'a').chain(b'z' + 1..=255);
        for byte in order().filter(|&byte| live.contains(byte) && !taken.contains(byte)) {
            if let Some(next) = machine.step(state, byte)? {
                return Ok(Some(([&read[..], &[byte]].concat(), next)));
            }
        }
        let mut later = Vec::new();
        for byte in order().filter(|&byte| live.contains(byte)) {
            let Some(next) = machine.step(state, byte)? else { continue };
            let starts = excluded.iter().filter(|string| string.first() == Some(&byte));
            let excluded: Vec<&[u8]> = starts.map(|string| &string[1..]).collect();
            later.push((next, [&read[..], &[byte]].concat(), excluded));
        }
        open.extend(later.into_iter().rev());
    }
    Ok(None)
}
