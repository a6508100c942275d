//! Languages that are read by rules of their own, as leaves of terms.
//!
//! Some languages of texts are not regular (patterns nest) or no expression of any use says what
//! they are (Punycode). A [`Recognizer`] reads them character by character; wrapped in a leaf it
//! can be intersected, complemented and joined like any other language.

use std::fmt::Debug;
use std::sync::Arc;

use crate::automaton::{Automaton, StateId};
use crate::error::Error;
use crate::terms::derivative::BudgetExhausted;
use crate::terms::{TermArena, TermId, TermNode};

/// A state of a few that others read most texts as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resemblance<S> {
    /// The state.
    pub state: S,
    /// The same for the same state, whoever numbers it, and different for different ones.
    pub name: String,
    /// ASCII characters that texts may begin with which are not read alike.
    pub first: u128,
    /// ASCII characters that such texts may have anywhere.
    pub anywhere: u128,
    /// Longer texts are not read alike either, in characters.
    pub most: u32,
    /// Within so many characters there is a member behind each of the others.
    pub far: u32,
}

/// A state of a machine that reads most texts as one of a few, and the recognizer that is read.
pub type Like = (Arc<dyn Recognizer>, Resemblance<StateId>);

/// Reads the texts of a language, character by character. States are numbers that it gives out
/// itself; every one of them leads to a member.
pub trait Recognizer: Debug + Send + Sync {
    /// Before the first character.
    fn start(&self) -> u32;

    /// After one more character; `None` if no member continues so.
    fn step(&self, state: u32, character: char) -> Option<u32>;

    /// Whether a member continues with some character from `first` to `last`.
    fn some_within(&self, state: u32, first: char, last: char) -> bool;

    /// Whether the text read is a member.
    fn is_accepting(&self, state: u32) -> bool;

    /// The state after whichever of the characters from `first` to `last` if it is the same after
    /// all of them, and easily known.
    fn after_any(&self, _state: u32, _first: char, _last: char) -> Option<u32> {
        None
    }

    /// ASCII characters around one that lead to the same state, as far as that is quick to tell.
    fn span(&self, _state: u32, character: u8) -> (u8, u8) {
        (character, character)
    }

    /// One of a few states from which a text goes on to a member where it does from this one, but
    /// for some texts.
    fn like(&self, _state: u32) -> Option<Resemblance<u32>> {
        None
    }

    /// Whether a member has so many characters more, at least and at most; `None` where a search
    /// has to tell.
    fn goes_on(&self, _state: u32, _least: u32, _most: u32) -> Option<bool> {
        None
    }

    /// The same behind any character beyond ASCII that may come.
    fn goes_on_behind_wide(&self, _state: u32, _least: u32, _most: u32) -> Option<bool> {
        None
    }

    /// ASCII characters that occur in members, by their bits.
    fn letters(&self) -> u128 {
        !0
    }

    /// Characters that a text misses at least to be a member.
    fn least(&self, _state: u32) -> u32 {
        0
    }

    /// The same for a search of the shortest text, which may take longer to find out and spares a
    /// look at all texts up to that length.
    fn needs(&self, state: u32) -> u32 {
        self.least(state)
    }

    /// About how many characters a text misses to be a member: a guess that guides searches.
    fn missing(&self, state: u32) -> u32 {
        self.least(state)
    }

    /// A state that reads every character beyond ASCII, and what follows it, as `state` does.
    /// States inside of characters are as many as the states in front of them.
    fn merge_before_non_ascii(&self, state: u32) -> u32 {
        state
    }

    /// The same recognizer with its states so far, growing on its own; `None` if it has no more
    /// states than are worth keeping.
    fn copy(&self) -> Option<Arc<dyn Recognizer>> {
        None
    }

    /// Whether something was not answered since this was last asked, because that takes more than
    /// a limit: what was said instead is then worth nothing.
    fn gave_up(&self) -> bool {
        false
    }

    /// How often its states were lost, so that their numbers mean nothing any more: a thread was at
    /// work on them while the process was forked, see [`crate::Lock::losses`].
    fn losses(&self) -> u32 {
        0
    }

    /// Whether all characters of as many bytes are alike: then those that share their first byte
    /// are not told apart while they are read.
    fn counts_bytes(&self) -> bool {
        false
    }
}

/// The recognizers of an arena of terms: as they were given, and as this arena grows them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecognizerTable(Vec<(Arc<dyn Recognizer>, Arc<dyn Recognizer>)>);

/// A place in the text of a recognizer, perhaps inside a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecognizerPosition {
    recognizer: u32,
    pub(crate) state: u32,
    /// Bytes of the present character that are still to come, and its bits so far; where these do
    /// not matter any more, [`ANY`], and the state is the one behind the character.
    pub(crate) left: u8,
    pub(crate) bits: u32,
    /// The least character that needs as many bytes.
    pub(crate) least: u32,
}

impl RecognizerPosition {
    /// Whether no character has begun.
    pub(crate) fn is_char_boundary(self) -> bool {
        self.left == 0
    }
}

/// Stands for the bits of characters that all lead to one state.
pub(crate) const ANY_CHAR: u32 = u32::MAX;

impl RecognizerTable {
    pub(crate) fn of(&self, at: RecognizerPosition) -> &dyn Recognizer {
        &*self.0[at.recognizer as usize].1
    }

    /// Whether the text read so far is a member.
    pub(crate) fn is_accepting(&self, at: RecognizerPosition) -> bool {
        at.left == 0 && self.0[at.recognizer as usize].1.is_accepting(at.state)
    }

    /// ASCII bytes that occur in texts.
    pub(crate) fn letters(&self, at: RecognizerPosition) -> u128 {
        self.0[at.recognizer as usize].1.letters()
    }

    /// Bytes that a text misses at least.
    pub(crate) fn least(&self, at: RecognizerPosition) -> u32 {
        u32::from(at.left) + self.0[at.recognizer as usize].1.least(at.state)
    }

    /// The same for a search of the shortest text.
    pub(crate) fn needs(&self, at: RecognizerPosition) -> u32 {
        match at.left {
            0 => self.0[at.recognizer as usize].1.needs(at.state),
            _ => self.least(at),
        }
    }

    /// About how many bytes a text misses.
    pub(crate) fn missing(&self, at: RecognizerPosition) -> u32 {
        u32::from(at.left) + self.0[at.recognizer as usize].1.missing(at.state)
    }

    /// Whether one of them has more states than are worth keeping.
    pub(crate) fn is_unbounded(&self) -> bool {
        self.0.iter().any(|(given, _)| given.copy().is_some())
    }

    /// The same recognizers with their states so far, growing on their own; `None` if none of
    /// them has more states than are worth keeping.
    pub(crate) fn copy(&self) -> Option<RecognizerTable> {
        self.is_unbounded()
            .then(|| RecognizerTable(self.0.iter().map(with_independent_copy).collect()))
    }

    /// How often any of them lost its states.
    pub(crate) fn losses(&self) -> u32 {
        self.0.iter().map(|(given, grown)| given.losses() + grown.losses()).sum()
    }

    fn step(&self, at: RecognizerPosition, byte: u8) -> Option<RecognizerPosition> {
        if at.bits == ANY_CHAR {
            let (left, is_last) = (at.left - 1, at.left == 1);
            let bits = if is_last { 0 } else { ANY_CHAR };
            return (0x80..=0xBF).contains(&byte).then_some(RecognizerPosition {
                left,
                bits,
                ..at
            });
        }
        let recognizer = &self.0[at.recognizer as usize].1;
        let (left, bits, least) = match (at.left, byte) {
            (0, 0..=0x7F) => (0, u32::from(byte), 0),
            (0, 0xC2..=0xDF) => (1, u32::from(byte & 0x1F), 0x80),
            (0, 0xE0..=0xEF) => (2, u32::from(byte & 0x0F), 0x800),
            (0, 0xF0..=0xF4) => (3, u32::from(byte & 0x07), 0x1_0000),
            (1.., 0x80..=0xBF) => (at.left - 1, at.bits << 6 | u32::from(byte & 0x3F), at.least),
            _ => return None,
        };
        if left == 0 {
            let state =
                recognizer.step(at.state, char::from_u32(bits).filter(|_| bits >= least)?)?;
            return Some(RecognizerPosition { state, left: 0, bits: 0, least: 0, ..at });
        }
        let state =
            if at.left == 0 { recognizer.merge_before_non_ascii(at.state) } else { at.state };
        let first = (bits << (6 * left)).max(least);
        let last = ((bits + 1) << (6 * left)) - 1;
        let ranges = char_ranges(first, last);
        if let [Some((low, high)), None] | [None, Some((low, high))] = ranges
            && (u32::from(low), u32::from(high)) == (bits << (6 * left), last)
            && let Some(state) = recognizer.after_any(state, low, high)
        {
            return Some(RecognizerPosition { state, left, bits: ANY_CHAR, least: 0, ..at });
        }
        let mut ranges = ranges.into_iter().flatten();
        let some = ranges.any(|(first, last)| recognizer.some_within(state, first, last));
        let bits =
            if recognizer.counts_bytes() { merge_equivalent_bits(left, bits, least) } else { bits };
        some.then_some(RecognizerPosition { state, left, bits, least, ..at })
    }
}

/// The recognizer that was given, and one that grows on its own from where the arena's is.
fn with_independent_copy(
    (given, grown): &(Arc<dyn Recognizer>, Arc<dyn Recognizer>),
) -> (Arc<dyn Recognizer>, Arc<dyn Recognizer>) {
    (Arc::clone(given), grown.copy().unwrap_or_else(|| Arc::clone(grown)))
}

/// The bits of a character that may end in the same bytes as one with these, of those that can be
/// completed: what the second byte may be depends on the first, and nothing on the second.
fn merge_equivalent_bits(left: u8, bits: u32, least: u32) -> u32 {
    match (least, left) {
        (0x800, 2) if bits != 0 && bits != 0xD => 1,
        (0x1_0000, 3) if bits != 0 && bits != 4 => 1,
        (0x80, 1) => 2,
        (0x800, 1) | (0x1_0000, 2) => 1 << 6,
        (0x1_0000, 1) => 1 << 12,
        _ => bits,
    }
}

/// Numbers as ranges of characters: surrogates are none.
fn char_ranges(first: u32, last: u32) -> [Option<(char, char)>; 2] {
    let range = |first: u32, last: u32| {
        let range = (char::from_u32(first)?, char::from_u32(last)?);
        (range.0 <= range.1).then_some(range)
    };
    [range(first, last.min(0xD7FF)), range(first.max(0xE000), last.min(u32::from(char::MAX)))]
}

impl TermArena {
    /// The language of a recognizer.
    pub(crate) fn custom(&mut self, recognizer: &Arc<dyn Recognizer>) -> TermId {
        let list = &mut self.recognizers.0;
        let known = list.iter().position(|(given, _)| Arc::ptr_eq(given, recognizer));
        let which = known.unwrap_or_else(|| {
            list.push(with_independent_copy(&(Arc::clone(recognizer), Arc::clone(recognizer))));
            list.len() - 1
        });
        let (state, which) = (list[which].1.start(), which as u32);
        self.intern(TermNode::Custom(RecognizerPosition {
            recognizer: which,
            state,
            left: 0,
            bits: 0,
            least: 0,
        }))
    }

    /// Bytes around one that lead to the same rest of a recognizer's language.
    pub(crate) fn custom_byte_span(&self, at: RecognizerPosition, byte: u8) -> (u8, u8) {
        if !at.is_char_boundary() || !byte.is_ascii() {
            return (byte, byte);
        }
        self.recognizers.0[at.recognizer as usize].1.span(at.state, byte)
    }

    /// The rest of a recognizer's language after a byte.
    pub(crate) fn derive_custom(
        &mut self,
        at: RecognizerPosition,
        byte: u8,
    ) -> Result<Option<TermId>, BudgetExhausted> {
        let next = self.recognizers.step(at, byte);
        if self.recognizers.of(at).gave_up() {
            return Err(BudgetExhausted);
        }
        Ok(next.map(|next| self.intern(TermNode::Custom(next))))
    }
}

impl Automaton {
    /// One of a few states that texts go on from as they do from this one, but for some, where
    /// nothing but a recognizer reads on.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn like(&self, state: StateId) -> Result<Option<Like>, Error> {
        let core = &mut self.lock();
        let (term, room) = core.terms.without_char_limit(self.term(core, state));
        let TermNode::Custom(at) = *core.terms.get(term) else { return Ok(None) };
        let (given, grown) = core.terms.recognizers.0[at.recognizer as usize].clone();
        let found = if at.is_char_boundary() { grown.like(at.state) } else { None };
        let Some(Resemblance { state, name, first, anywhere, most, far }) = found else {
            return Ok(None);
        };
        let most = match room {
            None => most,
            // Of what is read, some member is within the room that there is.
            Some(room) => match room.checked_sub(far) {
                Some(room) => most.min(room),
                None => return Ok(None),
            },
        };
        let term = core.terms.intern(TermNode::Custom(RecognizerPosition { state, ..at }));
        let state = StateId::from_number(self.intern(core, term)?);
        Ok(Some((given, Resemblance { state, name, first, anywhere, most, far })))
    }
}

impl TermArena {
    /// Of "these texts, and at most so many characters" the texts, and how many.
    fn without_char_limit(&self, term: TermId) -> (TermId, Option<u32>) {
        let TermNode::And(list) = self.get(term) else { return (term, None) };
        match list[..] {
            [one, other] => match (self.max_any_chars(one), self.max_any_chars(other)) {
                (Some(most), None) => (other, Some(most)),
                (None, Some(most)) => (one, Some(most)),
                _ => (term, None),
            },
            _ => (term, None),
        }
    }
}
