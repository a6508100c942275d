//! Strings constrained by their length only, for which masks can count characters instead of
//! reading them.

use std::sync::Arc;

use formalm_automata::{Automaton, BoundedQuotient, ClassLoop};
use formalm_core::{ClassCover, Error, LazyDfa, StateId, WIDE_PARTS, char_len};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::TRUE;
use crate::machine::frame::Frame;
use crate::solver::context::{LanguageId, SolverContext};

/// The minimum and maximum number of remaining characters, as far as a token can distinguish them.
pub(crate) type RemainingChars = (u32, Option<u32>);

/// The mask classes of strings that are constrained by their length only.
#[derive(Debug, Default)]
pub(crate) struct StringLengths {
    /// Length of the longest token, in bytes.
    max_token_len: usize,
    /// `None` for strings that are constrained otherwise.
    by_language: FxHashMap<LanguageId, Option<LengthClasses>>,
}

/// The classes of strings whose lengths alone matter.
#[derive(Debug)]
struct LengthClasses {
    classes: Box<BoundedQuotient>,
    /// `true` if the lengths are known to have no gap, as those of `.{0,1}|.{3,}` have.
    is_interval: bool,
}

/// Number of lengths up to which a language is searched for a gap in advance. Chosen, not measured.
const MAX_TESTED_LENGTHS: usize = 1024;

/// Number of characters after which a language must count them and nothing else. Chosen, not
/// measured.
const MAX_TESTED_CHARACTERS: usize = 64;

impl StringLengths {
    /// Creates the tables for tokens of at most `max_token_len` bytes.
    pub(crate) fn new(max_token_len: usize) -> StringLengths {
        StringLengths { max_token_len, by_language: FxHashMap::default() }
    }

    /// Returns the number of remaining characters if nothing else matters; `None` otherwise, and
    /// inside a character.
    pub(crate) fn remaining_chars(
        &mut self,
        core: &SolverContext,
        text: LanguageId,
        state: StateId,
    ) -> Result<Option<RemainingChars>, Error> {
        if core.languages.is_unbounded(text) {
            return Ok(None);
        }
        if !self.by_language.contains_key(&text) {
            let machine = core.languages.automaton(text);
            let first = machine.first_bytes(machine.start());
            if first.is_some_and(|first| !first.is_empty() && first.ascii() != !0) {
                // Some characters cannot come, so more than the length matters.
                self.by_language.insert(text, None);
                return Ok(None);
            }
            let keys = BoundedQuotient::new(Arc::clone(machine), self.max_token_len);
            let start = machine.start();
            let is_interval = match max_remaining_chars(&keys, start)? {
                // A search takes a state for each length.
                Some(_) if machine.counts_any_characters(start) => Some(true),
                Some(_) if lengths_decide(machine, start)? => {
                    has_interval(&**machine, start, MAX_TESTED_LENGTHS)?
                }
                _ => Some(false),
            };
            let counts = (is_interval != Some(false)).then(|| LengthClasses {
                classes: Box::new(keys),
                is_interval: is_interval == Some(true),
            });
            self.by_language.insert(text, counts);
        }
        let Some(Some(LengthClasses { classes, is_interval })) = self.by_language.get(&text) else {
            return Ok(None);
        };
        let Some(max) = max_remaining_chars(classes, state)? else { return Ok(None) };
        let machine = core.languages.automaton(text);
        if !is_interval && has_interval(&**machine, state, self.max_token_len)? == Some(false) {
            return Ok(None);
        }
        // All characters are equivalent. Counting stops at the longest token.
        let (mut min, mut at) = (0, Some(state));
        while let Some(state) = at.filter(|&state| !machine.is_accepting(state)) {
            min += 1;
            at =
                if min as usize > self.max_token_len { None } else { machine.step(state, b'a')? };
        }
        Ok(Some((min, max)))
    }

    /// Replaces a string frame by that of an unconstrained string if no token distinguishes them.
    pub(crate) fn relaxed_string(
        &mut self,
        core: &mut SolverContext,
        frame: Frame,
    ) -> Result<Frame, Error> {
        let Frame::String { language, state, queries, escape, parent } = frame else {
            return Ok(frame);
        };
        if core.languages.language_formula(language) == TRUE {
            return Ok(frame);
        }
        if self.remaining_chars(core, language, state)? != Some((0, None)) {
            let state =
                core.languages.automaton(language).saturate_counters(state, self.max_token_len)?;
            return Ok(Frame::String { language, state, queries, escape, parent });
        }
        let Some(language) = core.languages.language(&core.base, TRUE)? else { return Ok(frame) };
        let state = core.languages.automaton(language).start();
        Ok(Frame::String { language, state, queries, escape, parent })
    }
}

/// Returns `true` if strings of one length are known to be all members or none, as of
/// `.{0,3}|.{5,}`. Those of `a|.{2,}` are not, although any character may come first.
fn lengths_decide(machine: &Automaton, start: StateId) -> Result<bool, Error> {
    let mut at = start;
    for _ in 0..MAX_TESTED_CHARACTERS {
        if machine.counts_any_characters(at) {
            return Ok(true);
        }
        let next = states_after_characters(machine, at)?;
        match next[..] {
            [] => return Ok(true),
            [next] if next == at => return Ok(true),
            [next] => at = next,
            _ => return Ok(false),
        }
    }
    Ok(false)
}

/// Returns the states after one character: all of them if they are at most one, else at least two.
fn states_after_characters(machine: &Automaton, state: StateId) -> Result<Vec<StateId>, Error> {
    let mut reached: Vec<StateId> = Vec::new();
    let mut open = vec![(state, 0)];
    let mut seen = FxHashSet::default();
    while let Some((at, bytes_left)) = open.pop() {
        for byte in machine.live_bytes(at)?.iter() {
            let Some(next) = machine.step(at, byte)? else { continue };
            // None are left at the beginning of the character only.
            let left = if bytes_left == 0 { char_len(byte) } else { bytes_left } - 1;
            if left > 0 {
                if seen.insert((next, left)) {
                    open.push((next, left));
                }
            } else if !reached.contains(&next) {
                reached.push(next);
                if reached.len() > 1 {
                    return Ok(reached);
                }
            }
        }
    }
    Ok(reached)
}

/// Returns `true` if the lengths that are accepted from a state have no gap, all characters being
/// equivalent; `None` if none was found up to a length.
fn has_interval(
    machine: &impl LazyDfa,
    state: StateId,
    max_length: usize,
) -> Result<Option<bool>, Error> {
    let (mut at, mut was_accepting) = (state, false);
    for _ in 0..=max_length {
        let is_accepting = machine.is_accepting(at)?;
        if was_accepting && !is_accepting {
            return Ok(Some(false));
        }
        was_accepting |= is_accepting;
        at = match machine.step(at, b'a')? {
            Some(next) if next != at => next,
            _ => return Ok(Some(true)),
        };
    }
    Ok(None)
}

/// Returns the maximum number of remaining characters if any character may come. The classes know
/// neither the minimum nor which strings are members.
fn max_remaining_chars(
    keys: &BoundedQuotient,
    state: StateId,
) -> Result<Option<Option<u32>>, Error> {
    let key = keys.class_of(state)?;
    let Some(ClassLoop { ascii, wide, max, exit, .. }) = keys.char_repetition(key)? else {
        return Ok(None);
    };
    let all = ascii == !0 && wide == [ClassCover::Full; WIDE_PARTS] && exit.is_none();
    Ok(all.then_some(max))
}
