//! Strategies for computing the tokens that continue a string if many bytes may follow.

use formalm_core::{Error, LazyDfa, MaskClassId, StateId};
use formalm_json::{JsonStringState, escapes::EscapeState, step_json_string};
use formalm_machines::{ClassAutomaton, ClassVisitor, MaskShortcuts};
use formalm_vocabulary::{JsonStringTokens, Vocabulary};

use super::continuing_token_set::ContinuingTokens;
use super::escaped_walk::walk_escaped;
use super::{RegularStringMasks, SharedStringMasks, StringClassTables};
use crate::mask::{Mask, MaskWords, has, patch};
use crate::mask_builder::MaskBuilder;
use crate::sorted_token_reading::{MAX_SHORT_LENGTH, read_in_order};

/// Maximum number of first bytes of the alternatives that are read separately. Chosen, not
/// measured.
const MAX_NARROW_BYTES: usize = 24;

impl RegularStringMasks {
    /// Returns the tokens that continue the string, and whether they are those of another state.
    pub(super) fn find(
        &self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        text: &JsonStringState,
    ) -> Result<(ContinuingTokens, bool), Error> {
        if let Some(found) = self.without_counter(vocabulary, text)? {
            return Ok(found);
        }
        if let Some(both) = self.split_alternatives(vocabulary, strings, text)? {
            return Ok((both, false));
        }
        let derived = self.by_pure_state(vocabulary, strings, text)?;
        Ok((derived.map_or_else(|| self.read(vocabulary, strings, text), Ok)?, false))
    }

    /// Splits off alternatives that begin with few bytes; many states often share the others.
    fn split_alternatives(
        &self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        text: &JsonStringState,
    ) -> Result<Option<ContinuingTokens>, Error> {
        let split_alternatives = text.machine.split_union(text.state, MAX_NARROW_BYTES)?;
        let Some((narrow, broad)) = split_alternatives else { return Ok(None) };
        let of = |state| {
            self.continuing(vocabulary, strings, &JsonStringState { state, ..text.clone() })
        };
        let words = vocabulary.len().div_ceil(32);
        Ok(Some(of(broad)?.or(&of(narrow)?, words)))
    }

    /// Derives the tokens from the state without its counter, if most tokens cannot exhaust the
    /// count.
    fn without_counter(
        &self,
        vocabulary: &Vocabulary,
        text: &JsonStringState,
    ) -> Result<Option<(ContinuingTokens, bool)>, Error> {
        let uncounted_state = text.machine.without_counter(text.state)?;
        let Some(uncounted_state) = uncounted_state
            .filter(|uncounted_state| uncounted_state.exact_chars >= MAX_SHORT_LENGTH.into())
        else {
            return Ok(None);
        };
        let Some(kept) = vocabulary.extension::<SharedStringMasks>() else { return Ok(None) };
        let strings = vocabulary.json_string_tokens(text.escapes);
        let base = self.continuing(
            vocabulary,
            strings,
            &JsonStringState { state: uncounted_state.state, ..text.clone() },
        )?;
        let (mut refused, mut unsure) = (Vec::new(), Vec::new());
        for &(characters, token) in kept.long_tokens.of(vocabulary, text.escapes) {
            let characters = u64::from(characters);
            if characters > uncounted_state.exact_chars && base.has(token) {
                let list =
                    if characters > uncounted_state.max_chars { &mut refused } else { &mut unsure };
                list.push(token);
            }
        }
        let step = |state: StateId, byte: u8| text.machine.step(state, byte);
        let step = |place, byte: u8| step_json_string(place, byte, text.escapes, &step);
        let start = (text.state, EscapeState::None);
        read_in_order(vocabulary, unsure, start, &step, &mut |token, is_viable| {
            refused.extend((!is_viable).then_some(token));
        })?;
        Ok(Some((base.without(&refused), refused.is_empty())))
    }

    /// Computes the tokens with the methods of regular languages.
    fn read(
        &self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        text: &JsonStringState,
    ) -> Result<ContinuingTokens, Error> {
        let (number, key) = self.class_of(text)?;
        let classes = self.classes(number);
        let mask = self.mask(vocabulary, classes, key)?;
        let mut escaped = Vec::new();
        let step = |key: MaskClassId, byte: u8| classes.keys.step(key, byte);
        let first = |key: MaskClassId| classes.keys.possible_bytes(key).ok().flatten();
        walk_escaped(
            strings.escaped_spellings(),
            (key, text.escapes),
            (&step, &first),
            &mut |_, spelling, _| {
                escaped.extend_from_slice(strings.escaped_tokens(spelling));
            },
        )?;
        let plain = strings.continuing_unescaped();
        let mask = match mask {
            Mask::Sparse(ids) => {
                let ids = ids.iter().copied().filter(|&id| has(plain, id)).chain(escaped);
                Mask::from_ids(&ids.collect::<Vec<u32>>(), plain.len())
            }
            // A class without characters that need an escape: its bitmask is shared as it is.
            Mask::Patched { base, add, remove } if is_within(&base, plain) => {
                let add = add.iter().copied().filter(|&id| has(plain, id)).chain(escaped);
                Mask::patched(&base, add.collect(), remove.into_vec())
            }
            mask => {
                let mut words = vec![0; plain.len()];
                mask.fill(&mut words);
                words.iter_mut().zip(&**plain).for_each(|(word, plain)| *word &= plain);
                patch(&mut words, &escaped, &[]);
                Mask::from_words(words)
            }
        };
        Ok(ContinuingTokens::of(mask))
    }

    /// Returns the machine's own mask of a class. It is derived from that of the class to which
    /// most letters lead and in which they mostly stay, if there is one.
    fn mask(
        &self,
        vocabulary: &Vocabulary,
        classes: &StringClassTables,
        key: MaskClassId,
    ) -> Result<Mask, Error> {
        let StringClassTables { keys, own: (lexical, memo, continuations) } = classes;
        if let Some(known) = memo.with(key.number(), Mask::clone) {
            return Ok(known);
        }
        let of = |key| MaskBuilder { key, vocabulary, lexical, memo, continuations }.visit(keys);
        if let Some(next) = keys.reference_class(key)?
            && !memo.has(next.number())
            && classes.mostly_loops(next)?
        {
            let mask = of(next)?;
            self.count(&mut self.tables(), mask.memory_bytes());
            memo.insert(next.number(), mask);
        }
        of(key)
    }
}

impl StringClassTables {
    /// Returns `true` if most letters, but not all, loop on a class. If all do, a walk does not
    /// read them.
    fn mostly_loops(&self, key: MaskClassId) -> Result<bool, Error> {
        let mut others = 0;
        for byte in b'a'..=b'z' {
            others += usize::from(self.keys.step(key, byte)? != Some(key));
        }
        Ok((1..13).contains(&others))
    }
}

/// Returns `true` if one bitmask has no token that the other lacks.
fn is_within(one: &MaskWords, other: &MaskWords) -> bool {
    one.iter().zip(other).all(|(one, other)| one & !other == 0)
}
