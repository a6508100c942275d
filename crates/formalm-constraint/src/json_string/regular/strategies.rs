//! Ways to the tokens after which a text goes on where many bytes may come.

use formalm_automata::spelling::Escape;
use formalm_automata::{Error, InText, KeyId, Keys, Machine, Purpose, StateId, Steps, spell};
use formalm_vocabulary::{JsonStringTokens, Vocabulary};

use super::continuing_tokens::Inside;
use super::escaped_walk::spelled;
use super::{Kept, Within};
use crate::mask::{Mask, has, patch};
use crate::mask_builder::MaskOf;
use crate::prefix_sharing::{SHORT, read_in_order};

/// Alternatives that so many bytes may begin at most are read by themselves.
const NARROW: usize = 24;

impl Within {
    /// Tokens after which the text goes on, and whether they are those of another state.
    pub(super) fn find(
        &self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        text: &InText,
    ) -> Result<(Inside, bool), Error> {
        if let Some(found) = self.nearly(vocabulary, text)? {
            return Ok(found);
        }
        let both = self.apart(vocabulary, strings, text)?;
        Ok((both.map_or_else(|| self.read(vocabulary, strings, text), Ok)?, false))
    }

    /// The same where some alternatives begin with few bytes: the others are often those of many
    /// states.
    fn apart(
        &self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        text: &InText,
    ) -> Result<Option<Inside>, Error> {
        let apart = text.machine.narrow_and_broad(text.state, NARROW)?;
        let Some((narrow, broad)) = apart else { return Ok(None) };
        let of = |state| self.inside(vocabulary, strings, &InText { state, ..text.clone() });
        let words = vocabulary.len().div_ceil(32);
        Ok(Some(of(broad)?.or(&of(narrow)?, words)))
    }

    /// The same where most tokens cannot come to the end of a count.
    fn nearly(
        &self,
        vocabulary: &Vocabulary,
        text: &InText,
    ) -> Result<Option<(Inside, bool)>, Error> {
        let near = text.machine.uncounted(text.state)?;
        let Some(near) = near.filter(|near| near.same >= SHORT.into()) else { return Ok(None) };
        let Some(kept) = vocabulary.extension::<Kept>() else { return Ok(None) };
        let strings = vocabulary.json_string_tokens(text.escapes);
        let base =
            self.inside(vocabulary, strings, &InText { state: near.state, ..text.clone() })?;
        let (mut refused, mut unsure) = (Vec::new(), Vec::new());
        for &(characters, token) in kept.long.of(vocabulary, text.escapes) {
            let characters = u64::from(characters);
            if characters > near.same && base.has(token) {
                let list = if characters > near.most { &mut refused } else { &mut unsure };
                list.push(token);
            }
        }
        let step = |state: StateId, byte: u8| text.machine.step(state, byte);
        let step = |place, byte: u8| spell(place, byte, text.escapes, &step);
        let start = (text.state, Escape::None);
        read_in_order(vocabulary, unsure, start, &step, &mut |token, is_viable| {
            refused.extend((!is_viable).then_some(token));
        })?;
        Ok(Some((base.without(&refused), refused.is_empty())))
    }

    /// The same by the ways of regular languages.
    fn read(
        &self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        text: &InText,
    ) -> Result<Inside, Error> {
        let key = self.keys.key(text.state)?;
        let mask = self.mask(vocabulary, key)?;
        let mut escaped = Vec::new();
        let step = |key: KeyId, byte: u8| self.keys.step(key, byte);
        spelled(strings.escaped_nodes(), (key, text.escapes), &step, &mut |_, spelling, _| {
            escaped.extend_from_slice(strings.escaped_tokens(spelling));
        })?;
        let plain = strings.continuing_unescaped();
        let mask = match mask {
            Mask::Sparse(ids) => {
                let ids = ids.iter().copied().filter(|&id| has(plain, id)).chain(escaped);
                Mask::from_ids(&ids.collect::<Vec<u32>>(), plain.len())
            }
            mask => {
                let mut words = vec![0; plain.len()];
                mask.fill(&mut words);
                words.iter_mut().zip(&**plain).for_each(|(word, plain)| *word &= plain);
                patch(&mut words, &escaped, &[]);
                Mask::from_words(words)
            }
        };
        Ok(Inside::of(mask))
    }

    /// The machine's own mask of a key, changed from that of the key that most letters lead to and
    /// mostly stay at, where there is one.
    fn mask(&self, vocabulary: &Vocabulary, key: KeyId) -> Result<Mask, Error> {
        let (lexical, memo, rests) = (&self.own.0, &self.own.1, &self.own.2);
        if let Some(known) = memo.with(key.number(), Mask::clone) {
            return Ok(known);
        }
        let of = |key| MaskOf { key, vocabulary, lexical, memo, rests }.read(&self.keys);
        if let Some(next) = self.keys.reference(key)?
            && !memo.has(next.number())
            && self.stays_mostly(next)?
        {
            let mask = of(next)?;
            self.count(&mut self.tables(), mask.memory_bytes());
            memo.insert(next.number(), mask);
        }
        of(key)
    }

    /// Whether most letters lead from a key to itself, but not all: where all do, a walk does not
    /// read them.
    fn stays_mostly(&self, key: KeyId) -> Result<bool, Error> {
        let mut others = 0;
        for byte in b'a'..=b'z' {
            others += usize::from(self.keys.step(key, byte)? != Some(key));
        }
        Ok((1..13).contains(&others))
    }
}
