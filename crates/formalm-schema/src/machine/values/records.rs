//! Records of what was read. Only what is needed again is recorded: names, and unique items.

use formalm_core::{Interner, memory_bytes};

/// The id of a recorded input: `0` is none, `1` the empty one.
pub(crate) type RecordId = u32;
/// Nothing is recorded.
pub(crate) const NO_RECORD: RecordId = 0;
/// The empty recorded input.
pub(crate) const EMPTY_RECORD: RecordId = 1;

/// Recorded inputs as linked lists with shared beginnings.
#[derive(Debug)]
pub(crate) struct Records {
    /// `(record without the last byte, last byte, length)`
    nodes: Interner<(RecordId, u8, u32)>,
}

memory_bytes!(Records { nodes });

impl Default for Records {
    fn default() -> Records {
        let mut nodes = Interner::default();
        nodes.intern((NO_RECORD, 0, 0));
        nodes.intern((NO_RECORD, 1, 0));
        Records { nodes }
    }
}

impl Records {
    /// Appends a byte to a recorded input.
    pub(crate) fn extend(&mut self, record: RecordId, byte: u8) -> RecordId {
        let length = self.length(record);
        self.nodes.intern((record, byte, length + 1))
    }

    /// Appends bytes, unless nothing is recorded.
    #[inline]
    pub(crate) fn write(&mut self, record: RecordId, bytes: &[u8]) -> RecordId {
        if record == NO_RECORD {
            return NO_RECORD;
        }
        bytes.iter().fold(record, |record, &byte| self.extend(record, byte))
    }

    /// Appends bytes of a string as JSON text, unless nothing is recorded.
    #[inline]
    pub(crate) fn write_string_bytes(&mut self, record: RecordId, bytes: &[u8]) -> RecordId {
        if record == NO_RECORD {
            return NO_RECORD;
        }
        bytes.iter().fold(record, |record, &byte| match byte {
            b'"' | b'\\' => self.write(record, &[b'\\', byte]),
            0..0x20 => self.write(record, format!("\\u{byte:04x}").as_bytes()),
            _ => self.extend(record, byte),
        })
    }

    /// Returns the length of a recorded input, 0 if nothing is recorded.
    #[inline]
    pub(crate) fn length(&self, record: RecordId) -> u32 {
        self.nodes.get(record).2
    }

    /// Returns the recorded input from offset `from` on.
    pub(crate) fn bytes_from(&self, record: RecordId, from: u32) -> Vec<u8> {
        let mut text = Vec::new();
        let mut at = record;
        loop {
            let &(before, byte, length) = self.nodes.get(at);
            if length <= from {
                break;
            }
            text.push(byte);
            at = before;
        }
        text.reverse();
        text
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Drops the records from number `length` on; nothing may refer to them.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.nodes.truncate(length);
    }
}
