//! Computes the mask of a mask class by the cheapest exact method.
//!
//! A class that another machine shares has the mask that the vocabulary keeps
//! ([`crate::shared_masks`]). Otherwise:
//!
//! 0. A machine with a lexer: token summaries within lexemes, and the parser for what follows
//!    ([`crate::lexical`]).
//! 1. A class that repeats a character class ([`crate::repetition`]): most tokens stay inside the
//!    repetition; their bitmask is shared by every language over the vocabulary.
//! 2. A class most of whose letters lead to such a class (the start of `x+`), or to one with a
//!    known mask: that mask, patched where a walk of both classes together finds a difference.
//! 3. Any other class: a walk along the trie from the viable bytes.
//!
//! A machine may also provide the mask itself.

use formalm_automata::LeadingWords;
use formalm_core::{ByteSet, Error, MaskClassId};
use formalm_machines::{ClassVisitor, LiteralList, MaskAutomaton};
use formalm_vocabulary::{JsonStringTokens, StringOpening, Vocabulary};

use crate::json_string::length::QuoteContinuations;
use crate::json_string::regular::SharedStringMasks;
use crate::json_string::{length, regular};
use crate::json_value::TokenTable;
use crate::lexical::LexicalMasks;
use crate::mask::{Mask, patch};
use crate::mask_cache::MaskCache;
use crate::repetition;
use crate::trie_walk::{TrieWalk, difference};
use crate::trie_word_reading::along;

/// The computation of one mask.
pub(crate) struct MaskBuilder<'a> {
    pub(crate) key: MaskClassId,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) lexical: &'a LexicalMasks,
    /// Masks of other classes.
    pub(crate) memo: &'a MaskCache,
    pub(crate) continuations: &'a QuoteContinuations,
}

impl ClassVisitor for MaskBuilder<'_> {
    type Result = Result<Mask, Error>;

    fn visit(self, steps: &impl MaskAutomaton) -> Result<Mask, Error> {
        if let Some(words) = steps.direct_mask(self.key)? {
            return Ok(Mask::from_words(words));
        }
        if let Some(lexemes) = steps.lexical_machine()
            && let Some(mask) = self.lexical.mask(lexemes, self.vocabulary, self.key, None)?
        {
            return Ok(mask);
        }
        let shared = match steps.shared_mask_id(self.key)? {
            Some(id) => self.vocabulary.extension::<SharedStringMasks>().map(|kept| (kept, id)),
            None => None,
        };
        let Some((kept, id)) = shared else { return self.mask(steps, self.key) };
        match kept.masks.get(id) {
            Some(known) => Ok(known),
            None => Ok(kept.masks.insert(id, self.mask(steps, self.key)?)),
        }
    }
}

impl MaskBuilder<'_> {
    fn mask<K: MaskAutomaton>(&self, keys: &K, key: MaskClassId) -> Result<Mask, Error> {
        // Where steps are slow, the bytes may be too, and they are asked for where they are needed.
        if K::HAS_FAST_STEPS && keys.possible_bytes(key)?.is_some_and(|few| few.is_empty()) {
            return Ok(Mask::from_ids(&[], 0));
        }
        if let Some(mask) = self.tabulated(keys, key)? {
            return Ok(mask);
        }
        if let Some(words) = keys.leading_words(key)? {
            return self.along_words(keys, &words);
        }
        if let Some(reference) = keys.reference_class(key)?
            && let Some(mask) = self.reference(keys, reference)?
        {
            let tables = (self.vocabulary, self.continuations);
            return from_reference(keys, tables, (key, reference), mask);
        }
        self.plain(keys, key)
    }

    /// Returns the mask of a class for which precomputed tables classify most tokens.
    fn tabulated(
        &self,
        keys: &impl MaskAutomaton,
        key: MaskClassId,
    ) -> Result<Option<Mask>, Error> {
        if let Some(escapes) = keys.unconstrained_string(key)? {
            let strings = self.vocabulary.json_string_tokens(escapes);
            return length::open(keys, self.continuations, strings, key).map(Some);
        }
        if let Some(text) = keys.json_string_state(key)?
            && let Some(mask) =
                regular::mask(keys, self.vocabulary, self.continuations, (key, &text))?
        {
            return Ok(Some(mask));
        }
        if let Some(texts) = keys.alternative_string_states(key)?
            && let Some(mask) =
                regular::mask_of_any(keys, self.vocabulary, self.continuations, (key, &texts))?
        {
            return Ok(Some(mask));
        }
        repetition::mask(keys, self.continuations, self.vocabulary, key)
    }

    /// Returns the mask that others are derived from, if tables give it. Many are derived from the
    /// same one.
    fn reference(
        &self,
        keys: &impl MaskAutomaton,
        reference: MaskClassId,
    ) -> Result<Option<Mask>, Error> {
        let kept = keys.cacheable_class(reference);
        if let Some(known) = kept.and_then(|kept| self.memo.with(kept.number(), Mask::clone)) {
            return Ok(Some(known));
        }
        let Some(mask) = self.tabulated(keys, reference)? else {
            return Ok(self.memo.with(reference.number(), Mask::clone));
        };
        if let Some(kept) = kept {
            self.memo.insert(kept.number(), mask.clone());
        }
        Ok(Some(mask))
    }

    /// Computes the mask of a class that reads one of `words` first.
    fn along_words(&self, keys: &impl MaskAutomaton, words: &LeadingWords) -> Result<Mask, Error> {
        let trie = self.vocabulary.trie();
        let exit = words.exit.map(|state| MaskClassId::from_number(state.number()));
        let (mut ids, mut read) = (Vec::new(), Vec::new());
        let roots = words.edges(LeadingWords::ROOT).iter();
        let mut open: Vec<(u32, u32)> = roots
            .flat_map(|&(low, high, next)| (low..=high).map(move |byte| (byte, next)))
            .filter_map(|(byte, next)| Some((trie.root_child(byte)?, next)))
            .collect();
        while let Some((node, word)) = open.pop() {
            ids.extend_from_slice(trie.tokens_at(node));
            let (bytes, children) = trie.children(node);
            if word == LeadingWords::END {
                read.extend((!children.is_empty()).then_some(node));
                continue;
            }
            if children.is_empty() {
                continue;
            }
            for &(low, high, next) in words.edges(word) {
                let first = bytes.partition_point(|&byte| byte < low);
                let below = bytes[first..].iter().zip(&children[first..]);
                let below = below.take_while(|&(&byte, _)| byte <= high);
                open.extend(below.map(|(_, &child)| (child, next)));
            }
        }
        if let Some(exit) = exit {
            let mut walk = TrieWalk::new(keys, trie);
            for node in read {
                walk.below(node, exit, &mut |tokens| ids.extend_from_slice(tokens))?;
            }
        }
        Ok(Mask::from_ids(&ids, self.vocabulary.len().div_ceil(32)))
    }

    /// Computes the mask by a walk along the vocabulary.
    fn plain(&self, keys: &impl MaskAutomaton, key: MaskClassId) -> Result<Mask, Error> {
        let vocabulary = self.vocabulary;
        let words = vocabulary.len().div_ceil(32);
        if let Some(literals) = keys.closing_literals(key, None)? {
            let ids = self.along_texts(keys, key, &literals)?;
            return Ok(Mask::from_ids(&ids, words));
        }
        let opened = self.opened(keys, key)?;
        let values = &self.continuations.values;
        match opened {
            None => values.mask(keys, TokenTable::Tokens(vocabulary), (key, words)),
            Some((opened, opening)) => {
                let mut ids = Vec::new();
                let table = TokenTable::Unopened(vocabulary, opening);
                values.below(keys, table, (None, key), &mut ids)?;
                Ok(opened.with(ids))
            }
        }
    }

    /// Returns the tokens along literals that a class reads up to a quote, and after it.
    fn along_texts(
        &self,
        keys: &impl MaskAutomaton,
        key: MaskClassId,
        literals: &LiteralList,
    ) -> Result<Vec<u32>, Error> {
        let (mut ids, trie) = (Vec::new(), self.vocabulary.trie());
        along(trie, None, literals, |node| ids.extend_from_slice(trie.tokens_at(node)));
        let strings = self.vocabulary.json_string_tokens(literals.escapes);
        for text in literals.iter() {
            let Some(number) = strings.prefix_id(text) else { continue };
            let ends =
                length::ClosingAfterPrefix::of(keys, self.continuations, strings, (key, text))?;
            ids.extend(
                strings
                    .closing_tokens(number)
                    .iter()
                    .filter(|one| ends.has(one))
                    .map(|one| one.token),
            );
        }
        Ok(ids)
    }

    /// Returns the tokens that open a JSON string, if at most its length is constrained, if regular
    /// machines read its content, or if it is a name and any name is allowed.
    fn opened<K: MaskAutomaton>(
        &self,
        keys: &K,
        key: MaskClassId,
    ) -> Result<Option<(Mask, StringOpening)>, Error> {
        let step = |key, few: Option<ByteSet>, byte| match few {
            Some(few) if !few.contains(byte) => Ok(None),
            _ => keys.step(key, byte),
        };
        let mut few = keys.possible_bytes(key)?;
        let (inside, opening) = match step(key, few, b'"')? {
            Some(inside) => (inside, StringOpening::Quote),
            None if K::KNOWS_POSSIBLE_BYTES => {
                let Some(spaced) = step(key, few, b' ')? else { return Ok(None) };
                few = keys.possible_bytes(spaced)?;
                let Some(inside) = step(spaced, few, b'"')? else { return Ok(None) };
                (inside, StringOpening::SpaceAndQuote)
            }
            None => return Ok(None),
        };
        // Where no object may begin, a name does.
        let is_name = few.is_some_and(|few| !few.contains(b'{'));
        if let Some(escapes) = keys.unconstrained_string(inside)? {
            let strings = self.vocabulary.string_opening_tokens(opening, escapes);
            let mask = length::open(keys, self.continuations, strings, inside)?;
            return Ok(Some((mask, opening)));
        }
        let place = (inside, opening);
        if let Some(mask) = regular::opened(keys, self.vocabulary, self.continuations, place)? {
            return Ok(Some((mask, opening)));
        }
        let reference = if is_name { keys.reference_class(inside)? } else { None };
        let Some(repetition) = keys.char_repetition(reference.unwrap_or(inside))? else {
            return Ok(None);
        };
        let Some(escapes) = repetition.json_string else { return Ok(None) };
        let literals = match reference {
            None => None,
            Some(_) => match keys.closing_literals(inside, reference)? {
                None => return Ok(None),
                literals => literals,
            },
        };
        let strings = self.vocabulary.string_opening_tokens(opening, escapes);
        let mut mask = length::mask(keys, self.continuations, strings, &repetition)?;
        if let (Some(reference), Some(literals)) = (reference, literals) {
            let tables = (strings, self.continuations);
            let differing = closing_differences(keys, tables, (inside, reference), &literals)?;
            mask = with_differences(mask, differing, self.vocabulary.len().div_ceil(32));
        }
        Ok(Some((mask, opening)))
    }
}

fn from_reference(
    keys: &impl MaskAutomaton,
    (vocabulary, continuations): (&Vocabulary, &QuoteContinuations),
    (key, reference): (MaskClassId, MaskClassId),
    mask: Mask,
) -> Result<Mask, Error> {
    let differing = match keys.closing_literals(key, Some(reference))? {
        None => {
            let (mut only_key, mut only_reference) = (Vec::new(), Vec::new());
            let both = (Some(key), Some(reference));
            difference(keys, vocabulary.trie(), None, both, &mut only_key, &mut only_reference)?;
            Differing { only_key, only_reference }
        }
        Some(literals) => {
            let strings = vocabulary.json_string_tokens(literals.escapes);
            closing_differences(keys, (strings, continuations), (key, reference), &literals)?
        }
    };
    Ok(with_differences(mask, differing, vocabulary.len().div_ceil(32)))
}

/// The tokens that only one of two classes allows.
struct Differing {
    only_key: Vec<u32>,
    only_reference: Vec<u32>,
}

/// Returns the tokens of a table that close one of `literals` and that only one class allows.
fn closing_differences(
    keys: &impl MaskAutomaton,
    (strings, continuations): (&JsonStringTokens, &QuoteContinuations),
    (key, reference): (MaskClassId, MaskClassId),
    literals: &LiteralList,
) -> Result<Differing, Error> {
    let (mut only_key, mut only_reference) = (Vec::new(), Vec::new());
    for text in literals.iter() {
        let Some(number) = strings.prefix_id(text) else { continue };
        let after =
            |class| length::ClosingAfterPrefix::of(keys, continuations, strings, (class, text));
        let (ends, others) = (after(key)?, after(reference)?);
        for one in strings.closing_tokens(number) {
            match (ends.has(one), others.has(one)) {
                (true, false) => only_key.push(one.token),
                (false, true) => only_reference.push(one.token),
                _ => {}
            }
        }
    }
    Ok(Differing { only_key, only_reference })
}

/// Returns the mask of a class, given that of its reference class and the difference.
fn with_differences(mask: Mask, differing: Differing, words: usize) -> Mask {
    let Differing { mut only_key, mut only_reference } = differing;
    match mask {
        Mask::Patched { base, add, remove } => {
            only_reference.sort_unstable();
            only_key.sort_unstable();
            let kept = |ids: &[u32], without: &[u32]| -> Vec<u32> {
                ids.iter().copied().filter(|id| without.binary_search(id).is_err()).collect()
            };
            let mut add = kept(&add, &only_reference);
            let mut remove = kept(&remove, &only_key);
            add.extend(only_key);
            remove.extend(only_reference);
            Mask::patched(&base, add, remove)
        }
        mask => {
            let mut words = vec![0; words];
            mask.fill(&mut words);
            patch(&mut words, &only_key, &only_reference);
            Mask::from_words(words)
        }
    }
}
