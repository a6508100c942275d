//! Texts of so many bytes.

use formalm_automata::CharRecognizer;

/// Reads texts of at least and at most so many bytes of UTF-8. A state is the number of bytes read.
#[derive(Debug)]
pub(crate) struct ByteCount {
    min: u32,
    max: Option<u32>,
}

impl ByteCount {
    /// Counts beyond this one are not told apart.
    pub(crate) const MOST: u64 = 1 << 24;

    /// The texts of so many bytes; `None` if there are none.
    pub(crate) fn new(min: u32, max: Option<u32>) -> Option<ByteCount> {
        (max.is_none_or(|max| min <= max)).then_some(ByteCount { min, max })
    }

    /// The state behind some bytes more. Where there is no most, all counts from the least on are alike.
    fn behind(&self, state: u32, more: usize) -> Option<u32> {
        let count = state + more as u32;
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
        self.behind(state, character.len_utf8())
    }

    fn accepts_some_in_range(&self, state: u32, first: char, _: char) -> bool {
        self.behind(state, first.len_utf8()).is_some()
    }

    fn is_accepting(&self, state: u32) -> bool {
        state >= self.min
    }

    fn ascii_span(&self, _: u32, _: u8) -> (u8, u8) {
        (0, 0x7F)
    }

    fn step_range(&self, state: u32, first: char, last: char) -> Option<u32> {
        let length = first.len_utf8();
        if length != last.len_utf8() { None } else { self.behind(state, length) }
    }

    fn min_chars(&self, state: u32) -> u32 {
        self.min.saturating_sub(state).div_ceil(4)
    }

    fn estimated_missing_chars(&self, state: u32) -> u32 {
        self.min.saturating_sub(state)
    }

    fn depends_on_length_only(&self) -> bool {
        true
    }
}
