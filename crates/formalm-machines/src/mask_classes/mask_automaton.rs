//! The transition function on mask classes ([`MaskAutomaton`]) and its hints that let a mask skip
//! most steps.

use formalm_automata::{ClassLoop, LeadingWords};
use formalm_core::{
    ByteSet, CharSet, ClassCover, Error, MaskClassId, StateId, WIDE_PARTS, WideParts,
};
use formalm_json::{JsonStringState, escapes::EscapePolicy};

use crate::LexicalMachine;

/// Minimum number of the 52 ASCII letters that must lead to one class for it to serve as reference
/// class. A higher value finds fewer references. Chosen, not measured.
const MIN_REFERENCE_LETTERS: usize = 14;

/// The same for the ten digits: all but a leading zero, or two more. Chosen, not measured.
const MIN_REFERENCE_DIGITS: usize = 8;

/// ASCII letters, as bits.
const LETTERS: u128 = 0x3FF_FFFF << b'a' | 0x3FF_FFFF << b'A';

/// ASCII digits, as bits.
const DIGITS: u128 = 0x3FF << b'0';

/// Reads mask classes byte by byte to compute one mask.
///
/// Classes met on the way can outnumber those of real inputs by far, so a machine may keep them
/// only as long as this value lives.
pub trait ClassAutomaton {
    /// The lexical machine of this kind of machine.
    type LexicalMachine: LexicalMachine;

    /// Returns the machine as one that reads lexemes, if it is one.
    fn lexical_machine(&self) -> Option<&Self::LexicalMachine> {
        None
    }

    /// Returns the class after `byte`, or `None` if it is not viable.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn step(&self, class: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error>;

    /// Returns the viable next bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn live_bytes(&self, class: MaskClassId) -> Result<ByteSet, Error>;

    /// Returns the class as a repetition of a character class, if it is known to be one and reads
    /// UTF-8 only.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn char_repetition(&self, _class: MaskClassId) -> Result<Option<CharRepetition>, Error> {
        Ok(None)
    }

    /// Returns parts of the non-ASCII characters of which every character leads from the class to
    /// itself, as far as that is known without reading.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn wide_loops(&self, _class: MaskClassId) -> Result<WideParts, Error> {
        Ok(WideParts::default())
    }
}

/// What a mask may know about a class without reading its tokens byte by byte.
pub trait MaskShortcuts: ClassAutomaton {
    /// Returns the bitmask of viable tokens, end tokens aside, if the machine computes it directly.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn direct_mask(&self, class: MaskClassId) -> Result<Option<Vec<u32>>, Error> {
        let _ = class;
        Ok(None)
    }

    /// `true` if [`MaskShortcuts::possible_bytes`] returns anything, so that callers can skip the
    /// call.
    const KNOWS_POSSIBLE_BYTES: bool = false;

    /// `true` if a step takes nanoseconds, so that what spares few steps is not worth asking for.
    const HAS_FAST_STEPS: bool = false;

    /// Returns `true` if [`MaskShortcuts::possible_bytes`] may return anything of this machine.
    fn knows_possible_bytes(&self) -> bool {
        Self::KNOWS_POSSIBLE_BYTES
    }

    /// Returns a superset of the viable next bytes, where it is small and known without reading.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn possible_bytes(&self, _class: MaskClassId) -> Result<Option<ByteSet>, Error> {
        Ok(None)
    }

    /// Returns `true` if any string of at most `max_len` of some ASCII characters may follow; they
    /// need not be read then. [`u8::MAX`] stands for any length.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn accepts_any_of(
        &self,
        _class: MaskClassId,
        _characters: u128,
        _max_len: u8,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// Returns a repetition that differs from this class along few strings, if there is one. By
    /// default this is the class that most letters lead to, or the unlimited repetition that most
    /// digits lead to.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn reference_class(&self, class: MaskClassId) -> Result<Option<MaskClassId>, Error> {
        let possible = self.possible_bytes(class)?.map_or(!0, |possible| possible.ascii());
        if let Some(next) =
            most_common_class(self, (class, possible & LETTERS), MIN_REFERENCE_LETTERS)?
        {
            return Ok(Some(next));
        }
        let digits = possible & DIGITS;
        let Some(next) = most_common_class(self, (class, digits), MIN_REFERENCE_DIGITS)? else {
            return Ok(None);
        };
        // A limited repetition differs along most strings of digits.
        let is_unlimited = self.step(next, b'9')? == Some(next);
        Ok(is_unlimited.then_some(next))
    }

    /// Returns words, one of which the class reads before anything else, if they are few and known
    /// without reading. Their exit is a class.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn leading_words(&self, _class: MaskClassId) -> Result<Option<LeadingWords>, Error> {
        Ok(None)
    }

    /// Returns the class under which the mask of a scratch class may be cached.
    fn cacheable_class(&self, _class: MaskClassId) -> Option<MaskClassId> {
        None
    }

    /// Returns the bytes that two classes may read differently, where they are few and known
    /// without reading.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn differing_bytes(
        &self,
        _first: MaskClassId,
        _second: MaskClassId,
    ) -> Result<Option<ByteSet>, Error> {
        Ok(None)
    }
}

/// Returns the class other than `class` that most bytes of a set lead to, if at least `least` do.
fn most_common_class<K: ClassAutomaton + ?Sized>(
    classes: &K,
    (class, bytes): (MaskClassId, u128),
    least: usize,
) -> Result<Option<MaskClassId>, Error> {
    if (bytes.count_ones() as usize) < least {
        return Ok(None);
    }
    let mut counts: Vec<(MaskClassId, usize)> = Vec::new();
    for byte in (0..128u8).filter(|&byte| bytes >> byte & 1 != 0) {
        if let Some(next) = classes.step(class, byte)?
            && next != class
        {
            match counts.iter_mut().find(|(known, _)| *known == next) {
                Some((_, count)) => *count += 1,
                None => counts.push((next, 1)),
            }
        }
    }
    let most = counts.into_iter().max_by_key(|&(_, count)| count);
    Ok(most.filter(|&(_, count)| count >= least).map(|(next, _)| next))
}

/// Classes inside JSON strings.
pub trait StringClasses: ClassAutomaton {
    /// Returns the escape policy if the class is inside a JSON string, between two characters, and
    /// nothing is refused before the closing quote. Only tokens that close the string need reading.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn unconstrained_string(&self, _class: MaskClassId) -> Result<Option<EscapePolicy>, Error> {
        Ok(None)
    }

    /// Returns the state of the string's automaton if the class is inside a JSON string that a
    /// regular automaton alone reads. The class after the closing quote is then the same for all
    /// states in which the string may end.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn json_string_state(&self, _class: MaskClassId) -> Result<Option<JsonStringState>, Error> {
        Ok(None)
    }

    /// Returns the states of regular automata if the class is inside a JSON string that may continue
    /// as any of them allows, exceptions aside. What follows the closing quote depends on more.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn alternative_string_states(
        &self,
        _class: MaskClassId,
    ) -> Result<Option<AlternativeStrings>, Error> {
        Ok(None)
    }

    /// Returns the class with the string's automaton in another state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn with_string_state(&self, class: MaskClassId, _state: StateId) -> Result<MaskClassId, Error> {
        Ok(class)
    }

    /// Returns the JSON strings after whose closing quote alone a class differs from its reference.
    /// A token that completes none of them is allowed by both or by neither. Without a reference,
    /// tokens complete one of the strings or begin one. Returns `None` where the strings are
    /// unknown.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn closing_literals(
        &self,
        _class: MaskClassId,
        _reference: Option<MaskClassId>,
    ) -> Result<Option<LiteralList>, Error> {
        Ok(None)
    }
}

/// Classes inside JSON values that can be read in isolation from their context.
pub trait ValueClasses: ClassAutomaton {
    /// Returns a class that reads the innermost value, current or next, in isolation: it behaves
    /// the same until the value ends, in every context. Returns `None` where the context matters.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn isolated_value(&self, _class: MaskClassId) -> Result<Option<MaskClassId>, Error> {
        Ok(None)
    }

    /// Returns an identity of an [isolated value](ValueClasses::isolated_value) that machines
    /// share. Classes with equal numbers allow the same strings, in whatever machine.
    fn shared_value_id(&self, _class: MaskClassId) -> Option<u128> {
        None
    }

    /// Returns an identity of a class that machines share, if anything else is particular to this
    /// machine. Classes with equal numbers have equal masks, in whatever machine.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn shared_mask_id(&self, _class: MaskClassId) -> Result<Option<u128>, Error> {
        Ok(None)
    }

    /// Returns whether an [isolated value](ValueClasses::isolated_value) has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn value_end(&self, _class: MaskClassId) -> Result<ValueEnd, Error> {
        Ok(ValueEnd::Open)
    }

    /// Returns the class after the innermost value, current or next, once it has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn after_value(&self, _class: MaskClassId) -> Result<Option<MaskClassId>, Error> {
        Ok(None)
    }
}

/// A mask automaton with all that it knows; a new one implements [`ClassAutomaton`].
pub trait MaskAutomaton: ClassAutomaton + MaskShortcuts + StringClasses + ValueClasses {}

impl<T: ClassAutomaton + MaskShortcuts + StringClasses + ValueClasses> MaskAutomaton for T {}

/// The end of a value that is read in isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueEnd {
    /// The value continues.
    Open,
    /// The value may end here, or continue with one of these bytes.
    MayEnd(ByteSet),
    /// The value has ended; what follows belongs to its context.
    Ended,
}

/// A JSON string that continues as any of several automata allows.
#[derive(Clone, Debug)]
pub struct AlternativeStrings {
    /// The states of the automata; at least one.
    pub states: Vec<JsonStringState>,
    /// Contents, sorted and without escapes, whose prefixes the class itself must read.
    pub exceptions: LiteralList,
}

/// A list of raw JSON string contents, as they stand before the closing quote. Strings with a
/// common prefix are adjacent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiteralList {
    /// The escape policy of the strings.
    pub escapes: EscapePolicy,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl LiteralList {
    /// Creates an empty list.
    pub fn new(escapes: EscapePolicy) -> LiteralList {
        LiteralList { escapes, bytes: Vec::new(), ends: Vec::new() }
    }

    /// Appends a string.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// Returns the strings in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

/// A mask class that reads `min` to `max` characters of a character class before anything else.
#[derive(Clone, Debug)]
pub struct CharRepetition {
    /// The characters; of the ASCII ones only those in `ascii` repeat.
    pub class: CharSet,
    /// ASCII characters that repeat, as bits.
    pub ascii: u128,
    /// How much of each part of the non-ASCII characters repeats.
    pub wide: [ClassCover; WIDE_PARTS],
    /// Minimum number of characters before the exit is taken.
    pub min: u32,
    /// Maximum number of characters; `None` if it exceeds the longest token.
    pub max: Option<u32>,
    /// The class from which the repetition is left once enough characters are read; `None` if
    /// nothing follows.
    pub exit: Option<MaskClassId>,
    /// The escape policy if the class is the inside of a JSON string, between two characters. The
    /// repeated characters are then all, and `exit` reads the closing quote.
    pub json_string: Option<EscapePolicy>,
}

impl From<ClassLoop> for CharRepetition {
    fn from(of: ClassLoop) -> CharRepetition {
        let ClassLoop { class, ascii, wide, min, max, exit } = of;
        let exit = exit.map(|state| MaskClassId::from_number(state.number()));
        CharRepetition { class, ascii, wide, min, max, exit, json_string: None }
    }
}
