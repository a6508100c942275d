//! How values are written: the seam between the meaning of a value and its bytes.
//!
//! ```text
//!            bytes                            events
//!  input ───────────► Spelling::read ─────────────────────────► Values (super::values)
//!                       │                 open, string_bytes,     formulas, obligations, names,
//!                       │ Mark, CharState end_string, start_name, numbers, solver
//!                       ▼ in the frames   start_item, …
//!  completion search ◄── SpelledStrings, SpellingLengths   how many bytes, and which
//!                    ◄── SearchHints, CompletionReuse      capabilities, with defaults
//!  masks             ◄── SpelledMaskTables                 what its mask classes keep, if it has them
//! ```
//!
//! A spelling must be deterministic: the bytes read so far fix which events have happened. It keeps
//! no state of its own. What it remembers between two events is a [`Mark`] in the innermost frame or
//! in a container that waits for a child, and a [`CharState`] inside the spelling of a character. A
//! mark is [`FRESH`](super::frame::FRESH) right after an event.
//!
//! Each prefix that a spelling accepts must be viable: before a byte that belongs to no event, such
//! as whitespace of a layout, it asks whether the event that the byte commits to may come
//! ([`Values::may_open`], [`Values::any_name_viable`], [`Values::end_verdicts`]).
//!
//! [`json`] is the only spelling that is shipped, with mask classes of its own
//! ([`json::mask_class`]). The masks of another spelling come from its bytes, as for every new
//! machine, until it has some.

pub(crate) mod json;
#[cfg(test)]
mod s_expression_tests;

use std::fmt::Debug;

use formalm_core::{ByteSet, RecheckPredicate};

use crate::machine::frame::{CharState, DONE, Frame, FrameId, Mark, ReaderPosition};
use crate::machine::values::{AfterEvent, Values};
use crate::options::JsonSchemaOptions;
use crate::schema_nodes::{JsonType, ResolvedSchema};

/// A way to write values.
pub(crate) trait Spelling:
    SpelledStrings + SpellingLengths + SearchHints + CompletionReuse + Debug + Send + Sync + 'static
{
    /// What its mask classes keep. `()` for a spelling whose masks come from its bytes.
    type MaskTables: SpelledMaskTables
    where
        Self: Sized;

    /// Creates the spelling that the options describe.
    fn new(options: &JsonSchemaOptions) -> Self
    where
        Self: Sized;

    /// Returns the position after a byte, `None` if no instance continues so.
    fn read(&self, values: &mut Values, at: ReaderPosition, byte: u8) -> AfterEvent;

    /// Returns a superset of the bytes that [`Spelling::read`] takes at a position, where it is
    /// small and known without reading.
    fn possible_bytes(&self, _values: &Values, _at: ReaderPosition) -> Option<ByteSet> {
        None
    }

    /// Returns `true` if an input that led to a position is an instance.
    fn is_end(&self, values: &mut Values, at: ReaderPosition) -> bool {
        match at.frame {
            Frame::Done => true,
            Frame::Number { obligation, digits, parent: DONE } => {
                values.number_end(obligation, digits).is_some()
            }
            _ => false,
        }
    }

    /// Returns `true` if a value is spelled differently at another depth.
    fn depends_on_depth(&self) -> bool {
        false
    }

    /// Returns `false` for a byte that spells itself in strings and names. Runs of such bytes are
    /// read at once.
    fn ends_run(&self, _byte: u8) -> bool {
        true
    }

    /// Returns typical instance number `_number`, see
    /// [`ReadingHints::typical_input`](formalm_core::ReadingHints::typical_input).
    fn typical_instance(&self, _schema: &ResolvedSchema, _number: usize) -> Option<Vec<u8>> {
        None
    }
}

/// What the mask classes of a spelling keep beside what no token distinguishes in any.
pub(crate) trait SpelledMaskTables: Default + Debug + Send {
    /// The part that only the states of one automaton refer to.
    type Visited: Default + Debug + Send;

    /// Returns the part that a look-ahead swaps for its own.
    fn visited(&mut self) -> &mut Self::Visited;

    /// Returns the memory of that part, in bytes.
    fn visited_bytes(&self) -> usize;

    /// Returns the memory in use, in bytes.
    fn memory_bytes(&self) -> usize;
}

impl SpelledMaskTables for () {
    type Visited = ();

    fn visited(&mut self) -> &mut () {
        self
    }

    fn visited_bytes(&self) -> usize {
        0
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// How the content of strings and names is spelled. Of several spellings of a character, this is
/// the shortest.
pub(crate) trait SpelledStrings {
    /// Returns the bytes after the content.
    fn string_end(&self) -> &'static [u8];

    /// Returns the number of bytes that spell a byte of the content; 1 if it stands for itself. The
    /// first byte of a character counts for a spelling of the whole character, the others for none.
    fn byte_len(&self, byte: u8) -> usize;

    /// Returns [`SpelledStrings::byte_len`], but shared among the bytes of a character, so that
    /// each has at least one.
    fn shared_byte_len(&self, byte: u8) -> usize {
        self.byte_len(byte)
    }

    /// Returns the spelling of the first character of `text`, which does not stand for itself.
    fn spell_char(&self, text: &[u8]) -> Vec<u8>;

    /// Returns the first three bytes of the spelling of a byte, the first one most significant, to
    /// compare spellings of equal length.
    fn byte_order(&self, byte: u8) -> u32;

    /// Returns the state inside a character's spelling after one more byte, `None` if the character
    /// ends or the byte is not allowed.
    fn char_after(&self, at: CharState, byte: u8) -> Option<CharState>;

    /// Returns how much of a character's spelling was read.
    fn partial_len(&self, at: CharState) -> PartialLen;
}

/// The part of a character's spelling that was read, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartialLen {
    pub(crate) read: usize,
    /// A lower bound on the rest.
    pub(crate) left: usize,
    /// The rest less the longest UTF-8 encoding of what the spelling may become.
    pub(crate) slack: isize,
}

/// Lower bounds on the bytes between and around the values. The search for a completion needs them
/// to be admissible; the closer they are, the fewer positions it visits.
pub(crate) trait SpellingLengths {
    /// Returns the bytes from the frame before a value to the end of the value, which takes `value`
    /// bytes from its first one on.
    fn value_rest(&self, _values: &Values, _parent: FrameId, _mark: Mark, value: usize) -> usize {
        value
    }

    /// Returns the bytes of an item after another one, but for its value.
    fn item_len(&self) -> usize;

    /// Returns the bytes of a property after another one, but for its value and the content of its
    /// name.
    fn property_len(&self) -> usize;

    /// Returns the bytes that end a container after a part, at a depth.
    fn close_len(&self, depth: u32) -> usize;

    /// Returns the bytes from a frame of a container to its end. `parts` is the length of the parts
    /// to come, as if each came after another one.
    fn container_rest(&self, values: &Values, frame: &Frame, parts: usize) -> usize;

    /// Returns the bytes from inside a name to the end of the properties. `parts` is the length of
    /// the properties to come, this one among them, as if each came after another one. Of its name,
    /// `read` bytes were read, if that is known.
    fn name_rest(&self, read: Option<usize>, escape: CharState, parts: usize) -> usize;

    /// Returns the bytes around the content of a string.
    fn string_quotes(&self) -> usize;

    /// Returns upper bounds on the number of values of a type by their length. The last one is for
    /// all greater lengths if it is [`UNBOUNDED`](super::min_bytes::distinct_values::UNBOUNDED).
    /// Strings and numbers are counted otherwise.
    fn value_counts(&self, of: JsonType) -> &'static [(usize, u64)];
}

/// Bytes that a completion search need not branch on. Without them it tries every byte.
pub(crate) trait SearchHints {
    /// Returns the bytes that may be needed in a frame, `None` if any may be.
    fn useful_bytes(&self, _frame: &Frame) -> Option<ByteSet> {
        None
    }

    /// Returns the first byte on the way to the end of an object that may end.
    fn closing_byte(&self, _values: &Values, _object: &Frame) -> Option<u8> {
        None
    }

    /// Returns the only byte that may come before a value.
    fn gap_byte(&self, _values: &Values, _parent: FrameId, _mark: Mark) -> Option<u8> {
        None
    }

    /// Returns the byte between two items, so that unique ones can be completed one by one and
    /// sorted; `None` if that cannot be done.
    fn item_separator(&self) -> Option<u8> {
        None
    }

    /// Returns `true` for the bytes that may come between the separator and an item.
    fn is_item_gap(&self, _byte: u8) -> bool {
        false
    }
}

/// Completions shared by states that differ in what must not be repeated.
pub(crate) trait CompletionReuse {
    /// Returns `true` if [`CompletionReuse::recheck_predicate`] finds the repetitions in a text.
    fn finds_repetitions(&self) -> bool {
        false
    }

    /// Returns `true` if a token may end one property name and begin another. Over-approximates.
    fn joins_names(&self, _token: &[u8]) -> bool {
        true
    }

    /// Returns the position without names and items that can only forbid repetition.
    fn without_repetitions(&self, _values: &mut Values, at: ReaderPosition) -> ReaderPosition {
        at
    }

    /// Returns `true` if a completion of the abstract position is known to repeat nothing, and so to
    /// complete the position itself.
    fn repeats_nothing(
        &self,
        _values: &mut Values,
        _at: ReaderPosition,
        _completion: &[u8],
    ) -> bool {
        false
    }

    /// Returns a predicate for tokens after which the completion of an abstract position may repeat
    /// something. Returns `None` if it is valid after every token.
    fn recheck_predicate(
        &self,
        _values: &mut Values,
        _at: Option<ReaderPosition>,
        _forgetful: Frame,
        _completion: &[u8],
    ) -> Option<RecheckPredicate> {
        None
    }
}
