//! Masks of mask classes that repeat a character class, such as `[a-z]+` or `.{0,80}`.
//!
//! Every token read there has exactly one of these forms:
//!
//! - all its characters are in the class: it stays. These tokens are a cached bitmask of the
//!   vocabulary;
//! - it ends in a partial character after characters of the class;
//! - p·e·u with p non-empty and inside the class, and e outside: allowed iff the repetition may end
//!   after as many characters as p has, and what follows allows e·u. The vocabulary lists such
//!   tokens by e·u;
//! - it begins with a byte outside the class: a walk finds these.

use formalm_core::{ByteSet, ClassCover, Error, MaskClassId, WIDE_PARTS};
use formalm_machines::{CharRepetition, MaskAutomaton, SPECIAL_BYTE};
use formalm_vocabulary::{ClassExits, ProfileFilter, Vocabulary};

use crate::json_string::length;
use crate::json_string::length::QuoteContinuations;
use crate::mask::Mask;
use crate::trie_walk::TrieWalk;
use crate::trie_word_reading;

/// Number of ASCII characters below which, without any beyond ASCII, few tokens stay and a walk is
/// faster: ten digits make 1,110 tokens of many vocabularies, and a walk of them takes five times as
/// long as the tables.
const MIN_ASCII_CHARACTERS: u32 = 10;
/// The same for repetitions of at most one more character, where no more tokens than characters
/// stay.
const MIN_SINGLE_CHARACTERS: u32 = 12;

/// A mask under construction.
struct RepetitionMask<'a, K> {
    keys: &'a K,
    vocabulary: &'a Vocabulary,
    key: MaskClassId,
    repetition: CharRepetition,
    inside: ProfileFilter,
    add: Vec<u32>,
}

/// Returns the mask of `key` if it is a repetition that the tables cover.
pub(crate) fn mask(
    keys: &impl MaskAutomaton,
    continuations: &QuoteContinuations,
    vocabulary: &Vocabulary,
    key: MaskClassId,
) -> Result<Option<Mask>, Error> {
    let Some(repetition) = keys.char_repetition(key)? else { return Ok(None) };
    if let Some(escapes) = repetition.json_string {
        return length::mask(
            keys,
            continuations,
            vocabulary.json_string_tokens(escapes),
            &repetition,
        )
        .map(Some);
    }
    let wide = repetition.wide != [ClassCover::None; WIDE_PARTS];
    let least =
        if repetition.max == Some(1) { MIN_SINGLE_CHARACTERS } else { MIN_ASCII_CHARACTERS };
    if repetition.ascii.count_ones() < least && !wide {
        return Ok(None);
    }
    let exits = match repetition.exit {
        Some(exit) => keys.live_bytes(exit)?,
        None => ByteSet::default(),
    };
    let leaves = |byte: u8| match byte {
        0..0x80 => repetition.ascii >> byte & 1 == 0,
        // SPECIAL is no character, and so in no class.
        SPECIAL_BYTE => true,
        // A class with characters beyond ASCII is never followed by others of them.
        _ => !wide,
    };
    let exits: Vec<u8> = exits.iter().filter(|&byte| leaves(byte)).collect();
    if !exits.iter().all(|&byte| ClassExits::covers_byte(byte)) {
        return Ok(None);
    }
    let inside = ProfileFilter::new(repetition.ascii, repetition.wide);
    let mut builder = RepetitionMask { keys, vocabulary, key, repetition, inside, add: Vec::new() };
    builder.add_exits(&exits)?;
    builder.add_after_repetition(&exits)?;
    builder.finish().map(Some)
}

impl<K: MaskAutomaton> RepetitionMask<'_, K> {
    fn has_room(&self, characters: u32) -> bool {
        self.repetition.max.is_none_or(|max| characters <= max)
    }

    /// Adds the tokens p·e·u.
    fn add_exits(&mut self, exits: &[u8]) -> Result<(), Error> {
        let Some(exit) = self.repetition.exit else { return Ok(()) };
        let (keys, crossings) = (self.keys, self.vocabulary.class_masks().exits());
        let mut remainders = Vec::new();
        for root in exits.iter().filter_map(|&byte| crossings.root(byte)) {
            trie_word_reading::words(keys, crossings.flat(), (root, exit), &mut |word, _| {
                remainders.push(word);
            })?;
        }
        remainders
            .into_iter()
            .try_for_each(|remainder| self.add_with_remainder(crossings, remainder))
    }

    /// Adds the tokens with one remainder that is viable after the repetition.
    fn add_with_remainder(&mut self, crossings: &ClassExits, remainder: u32) -> Result<(), Error> {
        for candidate in crossings.tokens(remainder) {
            let before = candidate.before;
            let characters = before.characters;
            let allowed = match self.inside.cover(before.atoms, before.ascii) {
                ClassCover::Full => characters >= self.repetition.min && self.has_room(characters),
                ClassCover::Partial => self.is_viable(candidate.token)?,
                ClassCover::None => false,
            };
            if allowed {
                self.add.push(candidate.token);
            }
        }
        Ok(())
    }

    /// Adds the tokens that begin with what follows the repetition.
    fn add_after_repetition(&mut self, exits: &[u8]) -> Result<(), Error> {
        if self.repetition.min > 0 {
            return Ok(());
        }
        let add = &mut self.add;
        let mut walk = TrieWalk::new(self.keys, self.vocabulary.trie());
        walk.tokens(self.key, exits.iter().copied(), &mut |tokens| add.extend_from_slice(tokens))
    }

    /// Combines the tokens of the class with the tokens found.
    fn finish(mut self) -> Result<Mask, Error> {
        let CharRepetition { ascii, wide, .. } = self.repetition;
        if self.repetition.wide != [ClassCover::Full; WIDE_PARTS] {
            self.add_partial()?;
        }
        let (vocabulary, class, max) =
            (self.vocabulary, &self.repetition.class, self.repetition.max);
        if let Some(most) = max
            && let Some(limited) = vocabulary.limited_class_mask(ascii, wide, class, most)
        {
            return Ok(Mask::patched(&limited, self.add, Vec::new()));
        }
        let class_mask = vocabulary.class_mask(ascii, wide, class);
        let Some(most) = max else {
            return Ok(Mask::patched(&class_mask, self.add, Vec::new()));
        };
        let longer = vocabulary
            .class_masks()
            .longer_tokens()
            .iter()
            .take_while(|&&(characters, _)| characters > most);
        let within = |token: u32| class_mask[token as usize >> 5] >> (token & 31) & 1 != 0;
        let remove = longer.map(|&(_, token)| token).filter(|&token| within(token)).collect();
        Ok(Mask::patched(&class_mask, self.add, remove))
    }

    /// Adds the tokens that end in a partial character, for a class with only some characters
    /// beyond ASCII.
    fn add_partial(&mut self) -> Result<(), Error> {
        if self.repetition.wide == [ClassCover::None; WIDE_PARTS] {
            return Ok(());
        }
        let classes = self.vocabulary.class_masks();
        for partial in classes.partial_chars() {
            if !self.reads(partial.bytes())? {
                continue;
            }
            for token in classes.tokens_with_partial_char(partial) {
                let before = token.before;
                let allowed = match self.inside.cover(before.atoms, before.ascii) {
                    ClassCover::Full => self.has_room(before.characters.saturating_add(1)),
                    ClassCover::Partial => self.is_viable(token.token)?,
                    ClassCover::None => false,
                };
                if allowed {
                    self.add.push(token.token);
                }
            }
        }
        Ok(())
    }

    /// Returns `true` if a token is viable, byte by byte.
    fn is_viable(&self, token: u32) -> Result<bool, Error> {
        self.reads(self.vocabulary.token_bytes(token).unwrap_or_default())
    }

    fn reads(&self, bytes: &[u8]) -> Result<bool, Error> {
        Ok(trie_word_reading::read(self.keys, self.key, bytes)?.is_some())
    }
}
