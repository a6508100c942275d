//! Languages that hand-written recognizers define, as leaves of terms.
//!
//! Some languages of strings are not regular (patterns nest), and some have no useful expression
//! (Punycode). A [`CharRecognizer`] reads them character by character. Wrapped in a leaf it can be
//! intersected, complemented and combined like any other language. Bytes inside a character are
//! tracked here, so that recognizers never see them.

use std::fmt::Debug;
use std::sync::Arc;

use formalm_core::{BudgetExhausted, StateId};

/// A simpler language that reads all but some strings as a state does.
///
/// Such languages are few, so masks can be computed on them and corrected for the excluded
/// strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepresentativeState<S> {
    /// What reads the strings alike.
    pub reads: RepresentativeLanguage<S>,
    /// The strings that may be read in another way.
    pub excluded: ExcludedStrings,
    /// Maximum length of strings that are read alike, in characters.
    pub max_chars: u32,
    /// The strings that are too long for the state to read.
    pub refused: RefusedLengths,
    /// How long the strings are that complete those read alike.
    pub completions: CompletionLengths,
}

/// Lengths, in characters, above which a state reads no string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedLengths {
    /// The length for all strings.
    pub max_chars: u32,
    /// ASCII characters, as bits, and the length for strings of these alone.
    pub of_characters: (u128, u32),
}

impl Default for RefusedLengths {
    fn default() -> RefusedLengths {
        RefusedLengths { max_chars: u32::MAX, of_characters: (0, u32::MAX) }
    }
}

/// The strings that a representative reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepresentativeLanguage<S> {
    /// Those that a state reads.
    State {
        /// The state.
        state: S,
        /// An identity of the state that is independent of who numbers the states.
        name: String,
    },
    /// All strings of some ASCII characters, as bits. The state itself reads no string with others.
    Characters(u128),
}

impl<S> RepresentativeState<S> {
    /// Returns the same representative in another numbering of states.
    pub(crate) fn with_state<T, E>(
        self,
        renumbered: &mut impl FnMut(S) -> Result<T, E>,
    ) -> Result<RepresentativeState<T>, E> {
        let RepresentativeState { reads, excluded, max_chars, refused, completions } = self;
        let reads = match reads {
            RepresentativeLanguage::State { state, name } => {
                RepresentativeLanguage::State { state: renumbered(state)?, name }
            }
            RepresentativeLanguage::Characters(ascii) => RepresentativeLanguage::Characters(ascii),
        };
        Ok(RepresentativeState { reads, excluded, max_chars, refused, completions })
    }
}

/// The strings that begin with some characters or a text, contain some characters, or contain one
/// of some texts. Letters of texts stand for both cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExcludedStrings {
    /// ASCII characters that they may begin with, as bits.
    pub first: u128,
    /// An ASCII text that they may begin with; the empty text stands for none.
    pub start: &'static str,
    /// ASCII characters that they may contain anywhere, as bits.
    pub anywhere: u128,
    /// ASCII texts that they may contain.
    pub texts: &'static [&'static str],
}

impl ExcludedStrings {
    /// Returns the strings of both, whose texts are the same unless one of them has none.
    pub(crate) fn or(self, other: ExcludedStrings) -> ExcludedStrings {
        debug_assert!(
            other.texts.iter().all(|text| self.texts.is_empty() || self.texts.contains(text))
        );
        debug_assert!([self.start, ""].contains(&other.start) || self.start.is_empty());
        ExcludedStrings {
            first: self.first | other.first,
            start: if self.start.is_empty() { other.start } else { self.start },
            anywhere: self.anywhere | other.anywhere,
            texts: if self.texts.is_empty() { other.texts } else { self.texts },
        }
    }
}

/// A bound on the lengths of completions that holds for all strings but some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimpleCompletions {
    /// The strings for which it need not hold.
    pub except: ExcludedStrings,
    /// The bound, in characters.
    pub max_chars: u32,
}

/// Bounds on the lengths of the strings that complete what a recognizer read, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionLengths {
    /// Every string read has a completion of at most so many characters.
    pub max_chars: u32,
    /// A bound for all strings but some.
    pub simple: Option<SimpleCompletions>,
    /// Every string read has a completion of `least` to `most` characters if `least` is at most
    /// this number and less than `most`, and `most` is at least one of the bounds above.
    pub extensible_chars: u32,
}

impl CompletionLengths {
    /// Nothing is known.
    pub const UNKNOWN: CompletionLengths =
        CompletionLengths { max_chars: u32::MAX, simple: None, extensible_chars: 0 };

    /// Every string read has a completion of at most `max_chars` characters.
    pub fn at_most(max_chars: u32) -> CompletionLengths {
        CompletionLengths { max_chars, ..CompletionLengths::UNKNOWN }
    }
}

/// A recognizer with the representative of a state of its automaton.
pub type SharedRepresentative = (Arc<dyn CharRecognizer>, RepresentativeState<StateId>);

/// What is read from a state of an automaton that drops its states after a query.
#[derive(Clone, Debug)]
pub struct TransientState {
    /// The representative of what a recognizer reads.
    pub recognizer: Option<SharedRepresentative>,
    /// The state of the alternatives that no recognizer reads.
    pub regular: Option<StateId>,
}

/// Reads the strings of a language character by character. States are numbers it assigns itself,
/// and every state is live.
///
/// The first four methods define the language. The others offer what is known in addition, each as
/// a small trait whose methods all have defaults.
///
/// ```
/// use std::sync::Arc;
///
/// use formalm_automata::{Automaton, AutomatonLimits, CharRecognizer, Expression};
/// use formalm_core::LazyDfa;
///
/// /// Balanced brackets; a state is the number of open ones.
/// #[derive(Debug)]
/// struct Balanced;
///
/// impl CharRecognizer for Balanced {
///     fn start(&self) -> u32 {
///         0
///     }
///
///     fn step(&self, open: u32, character: char) -> Option<u32> {
///         match character {
///             '(' => Some(open + 1),
///             ')' => open.checked_sub(1),
///             _ => None,
///         }
///     }
///
///     fn accepts_some_in_range(&self, _: u32, _: char, _: char) -> bool {
///         false
///     }
///
///     fn is_accepting(&self, open: u32) -> bool {
///         open == 0
///     }
/// }
///
/// let language = Expression::custom(Arc::new(Balanced));
/// let automaton = Automaton::new(&language, AutomatonLimits::default())?;
/// let state = automaton.walk(automaton.start(), b"(()")?.expect("a viable prefix");
/// assert_eq!(automaton.shortest_completion(state)?, b")");
/// # Ok::<(), formalm_core::Error>(())
/// ```
pub trait CharRecognizer: Debug + Send + Sync {
    /// Returns the state before the first character.
    fn start(&self) -> u32;

    /// Returns the state after `character`, or `None` if no member continues with it.
    fn step(&self, state: u32, character: char) -> Option<u32>;

    /// Returns `true` if some member continues with a non-ASCII character in `first..=last`, all of
    /// which have equally many bytes.
    fn accepts_some_in_range(&self, state: u32, first: char, last: char) -> bool;

    /// Returns `true` if the string read is a member.
    fn is_accepting(&self, state: u32) -> bool;

    /// Returns what is known of characters that are read alike.
    fn alphabet(&self) -> Option<&dyn RecognizerAlphabet> {
        None
    }

    /// Returns what is known of the lengths of members.
    fn member_lengths(&self) -> Option<&dyn MemberLengths> {
        None
    }

    /// Returns the choice of representative states.
    fn representatives(&self) -> Option<&dyn StateRepresentatives> {
        None
    }

    /// Returns the tables of states, if they grow while strings are read.
    fn growing_states(&self) -> Option<&dyn GrowingStates> {
        None
    }
}

/// Which characters occur in the members of a [`CharRecognizer`], and which are read alike.
pub trait RecognizerAlphabet {
    /// Returns the ASCII characters that occur in members, as bits.
    fn ascii_letters(&self) -> u128 {
        !0
    }

    /// Returns a range of ASCII characters around `character` with the same successor, as far as
    /// that is cheap to determine.
    fn ascii_span(&self, _state: u32, character: u8) -> (u8, u8) {
        (character, character)
    }

    /// Returns the state after every character in `_first..=_last` if it is the same for all and
    /// cheap to determine.
    fn step_range(&self, _state: u32, _first: char, _last: char) -> Option<u32> {
        None
    }

    /// Returns a state that reads every non-ASCII character, and what follows it, as `state` does.
    /// States inside characters are as many as these states.
    fn merge_before_non_ascii(&self, state: u32) -> u32 {
        state
    }

    /// Returns `true` if all characters of equal UTF-8 length are equivalent. Those that share
    /// their first byte are then not distinguished while they are read.
    fn depends_on_length_only(&self) -> bool {
        false
    }
}

/// Bounds on the lengths of the members of a [`CharRecognizer`], from a state on.
pub trait MemberLengths {
    /// Returns a lower bound on the characters missing to a member.
    fn min_chars(&self, _state: u32) -> u32 {
        0
    }

    /// Returns a lower bound as [`MemberLengths::min_chars`] does, for shortest-completion
    /// searches. It may be slower, since it saves visiting all strings below that length.
    fn search_min_chars(&self, state: u32) -> u32 {
        self.min_chars(state)
    }

    /// Returns a heuristic estimate of the characters missing to a member, to guide searches.
    fn estimated_missing_chars(&self, state: u32) -> u32 {
        self.min_chars(state)
    }

    /// Returns whether a member has between `_least` and `_most` more characters, or `None` where a
    /// search must decide.
    fn has_member_of_length(&self, _state: u32, _least: u32, _most: u32) -> Option<bool> {
        None
    }

    /// Returns the answer of [`MemberLengths::has_member_of_length`] after any viable non-ASCII
    /// character.
    fn has_member_after_non_ascii(&self, _state: u32, _least: u32, _most: u32) -> Option<bool> {
        None
    }
}

/// Simpler states in place of a [`CharRecognizer`]'s.
pub trait StateRepresentatives {
    /// Returns a simpler language that continues as `state` does, some strings excluded.
    fn representative(&self, state: u32) -> Option<RepresentativeState<u32>>;

    /// Returns a state of the same recognizer whose strings are a subset or a superset of those
    /// that `state` reads, from which few states are reached. `None` if none is simpler: for the
    /// bounds themselves, above all.
    ///
    /// A search in the intersection with another language decides most questions in these: a member
    /// of the subset is one of the language, and where the superset has none there is none.
    fn bound(&self, _state: u32, _bound: LanguageBound) -> Option<u32> {
        None
    }
}

/// A side from which one language bounds another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanguageBound {
    /// A subset of the language.
    Lower,
    /// A superset of the language.
    Upper,
}

impl LanguageBound {
    /// Returns the bound that a complement turns into this one.
    pub(crate) fn of_complement(self) -> LanguageBound {
        match self {
            LanguageBound::Lower => LanguageBound::Upper,
            LanguageBound::Upper => LanguageBound::Lower,
        }
    }
}

/// Tables of states that a [`CharRecognizer`] extends while it reads.
pub trait GrowingStates {
    /// Returns an independent recognizer with the states known so far, or `None` if its states are
    /// few enough to keep.
    fn independent_copy(&self) -> Option<Arc<dyn CharRecognizer>> {
        None
    }

    /// Returns `true` if an answer since the last call exceeded a limit; these answers must be
    /// discarded.
    fn hit_limit(&self) -> bool {
        false
    }

    /// Returns how often its states were lost, which invalidates their numbers: a thread was
    /// changing them while the process forked, see [`formalm_core::ForkSafeMutex::losses`].
    fn losses(&self) -> u32 {
        0
    }
}

/// The recognizers of an arena of terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecognizerTable(Vec<TableEntry>);

/// A recognizer of an arena of terms.
#[derive(Clone, Debug)]
struct TableEntry {
    /// The original.
    given: Arc<dyn CharRecognizer>,
    /// The copy that the arena extends.
    grown: Arc<dyn CharRecognizer>,
    /// The name that it has in all processes.
    name: Option<&'static str>,
}

/// A position in a recognizer's input, possibly inside a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecognizerPosition {
    recognizer: u32,
    pub(crate) state: u32,
    /// Number of bytes of the current character still to come, and its bits so far. Where the bits
    /// no longer matter they are [`ANY_CHAR`], and the state is the one after the character.
    pub(crate) left: u8,
    pub(crate) bits: u32,
    /// The smallest character that has that many bytes.
    pub(crate) least: u32,
}

impl RecognizerPosition {
    /// Returns `true` if no character is incomplete.
    pub(crate) fn is_char_boundary(self) -> bool {
        self.left == 0
    }

    /// Returns the position in another state of the recognizer.
    pub(crate) fn with_state(self, state: u32) -> RecognizerPosition {
        RecognizerPosition { state, ..self }
    }
}

/// The bits of an incomplete character that leads to one state whatever it becomes.
pub(crate) const ANY_CHAR: u32 = u32::MAX;

impl RecognizerTable {
    fn of(&self, at: RecognizerPosition) -> &dyn CharRecognizer {
        &*self.0[at.recognizer as usize].grown
    }

    /// Returns a description of what is read on from a position that holds in all processes.
    pub(crate) fn description(&self, at: RecognizerPosition) -> Option<String> {
        let name = self.0[at.recognizer as usize].name?;
        let RecognizerPosition { state, left, bits, least, .. } = at;
        Some(format!("{name} {state} {left} {bits} {least}"))
    }

    /// Returns the recognizer's bounds on lengths.
    pub(crate) fn lengths(&self, at: RecognizerPosition) -> Option<&dyn MemberLengths> {
        self.of(at).member_lengths()
    }

    /// Returns the position before the first character; a recognizer is added when it is new.
    pub(crate) fn start(
        &mut self,
        recognizer: &Arc<dyn CharRecognizer>,
        name: Option<&'static str>,
    ) -> RecognizerPosition {
        let list = &mut self.0;
        let known = list.iter().position(|entry| Arc::ptr_eq(&entry.given, recognizer));
        let which = known.unwrap_or_else(|| {
            let [given, grown] = [(); 2].map(|()| Arc::clone(recognizer));
            list.push(TableEntry { given, grown, name }.with_independent_copy());
            list.len() - 1
        });
        let (state, recognizer) = (list[which].grown.start(), which as u32);
        RecognizerPosition { recognizer, state, left: 0, bits: 0, least: 0 }
    }

    /// Returns the original recognizer, and the representative of a position between characters.
    pub(crate) fn representative(
        &self,
        at: RecognizerPosition,
    ) -> Option<(Arc<dyn CharRecognizer>, RepresentativeState<u32>)> {
        let TableEntry { given, grown, .. } = &self.0[at.recognizer as usize];
        if !at.is_char_boundary() {
            return None;
        }
        let found = grown.representatives()?.representative(at.state)?;
        Some((Arc::clone(given), found))
    }

    /// Returns a position between characters whose language bounds that of `at`.
    pub(crate) fn bound(
        &self,
        at: RecognizerPosition,
        bound: LanguageBound,
    ) -> Option<RecognizerPosition> {
        if !at.is_char_boundary() {
            return None;
        }
        Some(at.with_state(self.of(at).representatives()?.bound(at.state, bound)?))
    }

    /// Returns `true` if the string read so far is a member.
    pub(crate) fn is_accepting(&self, at: RecognizerPosition) -> bool {
        at.left == 0 && self.of(at).is_accepting(at.state)
    }

    /// Returns the ASCII bytes that occur in members, as bits.
    pub(crate) fn ascii_letters(&self, at: RecognizerPosition) -> u128 {
        self.of(at).alphabet().map_or(!0, |alphabet| alphabet.ascii_letters())
    }

    /// Returns a lower bound on the bytes missing to a member.
    pub(crate) fn min_bytes(&self, at: RecognizerPosition) -> u32 {
        u32::from(at.left) + self.lengths(at).map_or(0, |lengths| lengths.min_chars(at.state))
    }

    /// Returns a lower bound for shortest-completion searches.
    pub(crate) fn search_min_bytes(&self, at: RecognizerPosition) -> u32 {
        match at.left {
            0 => self.lengths(at).map_or(0, |lengths| lengths.search_min_chars(at.state)),
            _ => self.min_bytes(at),
        }
    }

    /// Returns an estimate of the bytes missing to a member.
    pub(crate) fn estimated_missing_bytes(&self, at: RecognizerPosition) -> u32 {
        let missing = |lengths: &dyn MemberLengths| lengths.estimated_missing_chars(at.state);
        u32::from(at.left) + self.lengths(at).map_or(0, missing)
    }

    /// Returns `true` if a recognizer has more states than are worth keeping.
    pub(crate) fn has_many_states(&self) -> bool {
        self.0.iter().any(|entry| independent_copy(&entry.given).is_some())
    }

    /// Returns independent recognizers with the states known so far, or `None` if none of them has
    /// more states than are worth keeping.
    pub(crate) fn independent_copy(&self) -> Option<RecognizerTable> {
        self.has_many_states().then(|| {
            RecognizerTable(self.0.iter().map(TableEntry::with_independent_copy).collect())
        })
    }

    /// Returns how often any of them lost its states.
    pub(crate) fn losses(&self) -> u32 {
        let losses = |one: &Arc<dyn CharRecognizer>| {
            one.growing_states().map_or(0, |states| states.losses())
        };
        self.0.iter().map(|entry| losses(&entry.given) + losses(&entry.grown)).sum()
    }

    /// Returns the bytes around `byte` with the same residual.
    pub(crate) fn byte_span(&self, at: RecognizerPosition, byte: u8) -> (u8, u8) {
        match self.of(at).alphabet() {
            Some(alphabet) if at.is_char_boundary() && byte.is_ascii() => {
                alphabet.ascii_span(at.state, byte)
            }
            _ => (byte, byte),
        }
    }

    /// Returns the position after a byte, unless the recognizer exceeded a limit.
    pub(crate) fn step_within_limits(
        &self,
        at: RecognizerPosition,
        byte: u8,
    ) -> Result<Option<RecognizerPosition>, BudgetExhausted> {
        let next = self.step(at, byte);
        match self.of(at).growing_states() {
            Some(states) if states.hit_limit() => Err(BudgetExhausted),
            _ => Ok(next),
        }
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
        let recognizer = self.of(at);
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
        let alphabet = recognizer.alphabet();
        let state = match alphabet {
            Some(alphabet) if at.left == 0 => alphabet.merge_before_non_ascii(at.state),
            _ => at.state,
        };
        let first = (bits << (6 * left)).max(least);
        let last = ((bits + 1) << (6 * left)) - 1;
        let ranges = char_ranges(first, last);
        if let [Some((low, high)), None] | [None, Some((low, high))] = ranges
            && (u32::from(low), u32::from(high)) == (bits << (6 * left), last)
            && let Some(alphabet) = alphabet
            && let Some(state) = alphabet.step_range(state, low, high)
        {
            return Some(RecognizerPosition { state, left, bits: ANY_CHAR, least: 0, ..at });
        }
        let mut ranges = ranges.into_iter().flatten();
        let some = ranges.any(|(first, last)| recognizer.accepts_some_in_range(state, first, last));
        let bits = if alphabet.is_some_and(RecognizerAlphabet::depends_on_length_only) {
            merge_equivalent_bits(left, bits, least)
        } else {
            bits
        };
        some.then_some(RecognizerPosition { state, left, bits, least, ..at })
    }
}

impl TableEntry {
    /// Returns the original recognizer with an independent copy of the arena's one.
    fn with_independent_copy(&self) -> TableEntry {
        let grown = independent_copy(&self.grown).unwrap_or_else(|| Arc::clone(&self.grown));
        TableEntry { given: Arc::clone(&self.given), grown, name: self.name }
    }
}

fn independent_copy(recognizer: &Arc<dyn CharRecognizer>) -> Option<Arc<dyn CharRecognizer>> {
    recognizer.growing_states()?.independent_copy()
}

/// Merges the bits of characters that may end in the same bytes, of those that can be completed.
/// The allowed second bytes depend on the first; later ones depend on nothing.
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

/// Splits a range of code points into ranges of characters, without the surrogates.
fn char_ranges(first: u32, last: u32) -> [Option<(char, char)>; 2] {
    let range = |first: u32, last: u32| {
        let range = (char::from_u32(first)?, char::from_u32(last)?);
        (range.0 <= range.1).then_some(range)
    };
    [range(first, last.min(0xD7FF)), range(first.max(0xE000), last.min(u32::from(char::MAX)))]
}
