//! Strings constrained by their length only, for which masks can count characters instead of
//! reading them.

use std::sync::Arc;

use formalm_automata::{BoundedQuotient, ClassLoop};
use formalm_core::{ClassCover, Error, LazyDfa, StateId, WIDE_PARTS};
use rustc_hash::FxHashMap;

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
    by_language: FxHashMap<LanguageId, Option<Box<BoundedQuotient>>>,
}

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
            let keys = BoundedQuotient::new(Arc::clone(machine), self.max_token_len);
            let start = machine.start();
            let counts = max_remaining_chars(&keys, start)?.is_some().then(|| Box::new(keys));
            self.by_language.insert(text, counts);
        }
        let Some(Some(keys)) = self.by_language.get(&text) else { return Ok(None) };
        let Some(max) = max_remaining_chars(keys, state)? else { return Ok(None) };
        let machine = core.languages.automaton(text);
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

/// Returns the maximum number of remaining characters if nothing else matters. The classes do not
/// know the minimum.
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
