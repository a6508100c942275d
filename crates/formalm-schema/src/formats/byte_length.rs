//! Strings whose length in UTF-8 bytes is bounded.

use formalm_automata::{CharRecognizer, MemberLengths, RecognizerAlphabet};

/// A recognizer of strings with a minimum and maximum number of UTF-8 bytes. A state is the number
/// of bytes read.
#[derive(Debug)]
pub(crate) struct ByteCount {
    min: u32,
    max: Option<u32>,
}

impl ByteCount {
    /// Exclusive upper limit of both bounds, in bytes: 16 MiB. The reader refuses larger ones, so
    /// that counts fit a state. Chosen, not measured.
    pub(crate) const MOST: u64 = 1 << 24;

    /// Returns the recognizer, or `None` if no string has such a length.
    pub(crate) fn new(min: u32, max: Option<u32>) -> Option<ByteCount> {
        (max.is_none_or(|max| min <= max)).then_some(ByteCount { min, max })
    }

    /// Returns the state after a character of `more` bytes. Without a maximum, all counts from the
    /// minimum on are one state.
    fn count_after(&self, state: u32, len: usize) -> Option<u32> {
        let count = state + len as u32;
        match self.max {
            Some(max) => (count <= max).then_some(count),
            None => Some(count.min(self.min)),
        }
    }
}

impl CharRecognizer for ByteCount {
    fn start(&self) -> u32 {
        0
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        self.count_after(state, character.len_utf8())
    }

    fn accepts_some_in_range(&self, state: u32, first: char, _: char) -> bool {
        self.count_after(state, first.len_utf8()).is_some()
    }

    fn is_accepting(&self, state: u32) -> bool {
        state >= self.min
    }

    fn alphabet(&self) -> Option<&dyn RecognizerAlphabet> {
        Some(self)
    }

    fn member_lengths(&self) -> Option<&dyn MemberLengths> {
        Some(self)
    }
}

impl RecognizerAlphabet for ByteCount {
    fn ascii_span(&self, _: u32, _: u8) -> (u8, u8) {
        (0, 0x7F)
    }

    fn step_range(&self, state: u32, first: char, last: char) -> Option<u32> {
        let length = first.len_utf8();
        if length != last.len_utf8() { None } else { self.count_after(state, length) }
    }

    fn depends_on_length_only(&self) -> bool {
        true
    }
}

impl MemberLengths for ByteCount {
    fn min_chars(&self, state: u32) -> u32 {
        self.min.saturating_sub(state).div_ceil(4)
    }

    fn estimated_missing_chars(&self, state: u32) -> u32 {
        self.min.saturating_sub(state)
    }
}
