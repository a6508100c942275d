//! Masks of keys that repeat a class of characters.
//!
//! A token read there is of one of these forms, and of one only:
//!
//! * all its characters are of the class: it stays. These are a bitmask of the vocabulary;
//! * it ends in an unfinished character after characters of the class;
//! * p·e·u with p non-empty and of the class and e not of it: allowed iff the repetition may be
//!   left after as many characters as p has, and what follows allows e·u. The vocabulary lists
//!   such tokens by e·u;
//! * it begins with a byte that is not of the class: a walk from the key finds these.

use formalm_automata::{ByteSet, Cover, Error, KeyId, Repetition, SPECIAL, Steps, WIDE_PARTS};
use formalm_vocabulary::{ClassExits, ProfileFilter, Vocabulary};

use crate::json_string::length::{self, Rests};
use crate::mask::Mask;
use crate::trie_strings;
use crate::trie_walk::Walk;

/// With fewer ASCII characters, and none beyond, few tokens stay and a walk is quicker.
const BROAD: u32 = 12;

/// One mask in the making.
struct Making<'a, K> {
    keys: &'a K,
    vocabulary: &'a Vocabulary,
    key: KeyId,
    repetition: Repetition,
    inside: ProfileFilter,
    add: Vec<u32>,
}

/// The mask of `key` if it is a repetition whose mask these tables give; `None` otherwise.
pub(crate) fn mask(
    keys: &impl Steps,
    rests: &Rests,
    vocabulary: &Vocabulary,
    key: KeyId,
) -> Result<Option<Mask>, Error> {
    let Some(repetition) = keys.repetition(key)? else { return Ok(None) };
    if let Some(escapes) = repetition.quoted {
        return length::mask(keys, rests, vocabulary.json_string_tokens(escapes), &repetition)
            .map(Some);
    }
    let wide = repetition.wide != [Cover::None; WIDE_PARTS];
    if repetition.ascii.count_ones() < BROAD && !wide {
        return Ok(None);
    }
    let exits = match repetition.exit {
        Some(exit) => keys.live_bytes(exit)?,
        None => ByteSet::default(),
    };
    let leaves = |byte: u8| match byte {
        0..0x80 => repetition.ascii >> byte & 1 == 0,
        // No character, and so of no class.
        SPECIAL => true,
        // A class with characters beyond ASCII is never followed by others of them.
        _ => !wide,
    };
    let exits: Vec<u8> = exits.iter().filter(|&byte| leaves(byte)).collect();
    if !exits.iter().all(|&byte| ClassExits::covers_byte(byte)) {
        return Ok(None);
    }
    let inside = ProfileFilter::new(repetition.ascii, repetition.wide);
    let mut making = Making { keys, vocabulary, key, repetition, inside, add: Vec::new() };
    making.crossing(&exits)?;
    making.beginning(&exits)?;
    making.staying().map(Some)
}

impl<K: Steps> Making<'_, K> {
    fn has_room(&self, characters: u32) -> bool {
        self.repetition.max.is_none_or(|max| characters <= max)
    }

    /// Tokens p·e·u.
    fn crossing(&mut self, exits: &[u8]) -> Result<(), Error> {
        let Some(exit) = self.repetition.exit else { return Ok(()) };
        let (keys, crossings) = (self.keys, self.vocabulary.class_masks().exits());
        let mut remainders = Vec::new();
        for root in exits.iter().filter_map(|&byte| crossings.root(byte)) {
            trie_strings::words(keys, crossings.nodes(), (root, exit), &mut |word, _| {
                remainders.push(word);
            })?;
        }
        remainders.into_iter().try_for_each(|remainder| self.crossed(crossings, remainder))
    }

    /// Tokens with one remainder that is viable after the repetition.
    fn crossed(&mut self, crossings: &ClassExits, remainder: u32) -> Result<(), Error> {
        for crossing in crossings.tokens(remainder) {
            let before = crossing.before;
            let characters = before.characters;
            let allowed = match self.inside.cover(before.atoms, before.ascii) {
                Cover::Full => characters >= self.repetition.min && self.has_room(characters),
                Cover::Partial => self.walks(crossing.token)?,
                Cover::None => false,
            };
            if allowed {
                self.add.push(crossing.token);
            }
        }
        Ok(())
    }

    /// Tokens that begin with what follows the repetition.
    fn beginning(&mut self, exits: &[u8]) -> Result<(), Error> {
        if self.repetition.min > 0 {
            return Ok(());
        }
        let add = &mut self.add;
        let mut walk = Walk::new(self.keys, self.vocabulary.trie());
        walk.tokens(self.key, exits.iter().copied(), &mut |tokens| add.extend_from_slice(tokens))
    }

    /// Tokens of the class, and everything together.
    fn staying(mut self) -> Result<Mask, Error> {
        let Repetition { ascii, wide, ref class, .. } = self.repetition;
        let stay = self.vocabulary.class_mask(ascii, wide, class);
        if self.repetition.wide != [Cover::Full; WIDE_PARTS] {
            self.ragged()?;
        }
        let Some(most) = self.repetition.max else {
            return Ok(Mask::patched(&stay, self.add, Vec::new()));
        };
        let classes = self.vocabulary.class_masks();
        if classes.at_most_characters(most as usize).is_some() {
            let mut words = stay.to_vec();
            classes.limit_characters(most, &mut words);
            crate::mask::patch(&mut words, &self.add, &[]);
            return Ok(Mask::from_words(words));
        }
        let longer =
            classes.longer_tokens().iter().take_while(|&&(characters, _)| characters > most);
        let within = |token: u32| stay[token as usize >> 5] >> (token & 31) & 1 != 0;
        let remove = longer.map(|&(_, token)| token).filter(|&token| within(token)).collect();
        Ok(Mask::patched(&stay, self.add, remove))
    }

    /// Tokens that end in an unfinished character of a class that has only some of those beyond
    /// ASCII.
    fn ragged(&mut self) -> Result<(), Error> {
        if self.repetition.wide == [Cover::None; WIDE_PARTS] {
            return Ok(());
        }
        let classes = self.vocabulary.class_masks();
        for tail in classes.partial_chars() {
            if !self.reads(tail.bytes())? {
                continue;
            }
            for ragged in classes.tokens_with_partial_char(tail) {
                let before = ragged.before;
                let allowed = match self.inside.cover(before.atoms, before.ascii) {
                    Cover::Full => self.has_room(before.characters.saturating_add(1)),
                    Cover::Partial => self.walks(ragged.token)?,
                    Cover::None => false,
                };
                if allowed {
                    self.add.push(ragged.token);
                }
            }
        }
        Ok(())
    }

    /// Whether a token is viable, byte by byte.
    fn walks(&self, token: u32) -> Result<bool, Error> {
        self.reads(self.vocabulary.token_bytes(token).unwrap_or_default())
    }

    fn reads(&self, bytes: &[u8]) -> Result<bool, Error> {
        Ok(trie_strings::read(self.keys, self.key, bytes)?.is_some())
    }
}
