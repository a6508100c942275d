//! The queue of a string search: byte strings with their partial tokenizations.

use std::cmp::Ordering;

use crate::binary_heap;
use crate::prefix_strings::PrefixStrings;

/// An evaluated reading, a range of ranks of its next tokens, and the log-probability of the reading
/// with any of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenRange {
    pub(crate) node: u32,
    pub(crate) low: u32,
    pub(crate) high: u32,
    pub(crate) logprob: f64,
}

/// A set of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteBits(pub(crate) [u64; 4]);

impl ByteBits {
    #[inline]
    pub(crate) fn has(self, byte: u8) -> bool {
        self.0[byte as usize >> 6] >> (byte & 63) & 1 != 0
    }

    pub(crate) fn insert(&mut self, byte: u8) {
        self.0[byte as usize >> 6] |= 1 << (byte & 63);
    }
}

/// The next bytes of an entry that were not followed, with the log-probability of each.
#[derive(Clone, Debug)]
pub(crate) enum NextBytes {
    /// They are not known. Each has at most this log-probability.
    Unknown(f64),
    /// The best ones, best last.
    Best(Vec<(f64, u8)>),
    /// All, best last.
    All(Vec<(f64, u8)>),
}

/// A queue entry: a byte string and its readings, as nodes of the tree.
#[derive(Clone, Debug)]
pub(crate) struct StringEntry {
    pub(crate) string: u32,
    pub(crate) context: u32,
    /// `true` if the entry stands for the string itself, as a member, and not for its extensions.
    pub(crate) member: bool,
    /// An upper bound on the log-probability of a member.
    pub(crate) bound: f64,
    /// Readings that spell all of it; only for members.
    pub(crate) exact: Vec<u32>,
    /// Readings of its prefixes that were not evaluated; for members, those that can add to it.
    pub(crate) pending: Vec<u32>,
    /// The log-probability of the pending readings together, and of the largest of them; NaN if they
    /// are not known.
    pub(crate) pending_sum: f64,
    pub(crate) pending_top: f64,
    /// The number of evaluations before the pending readings were last looked through for evaluated
    /// ones.
    pub(crate) looked_at: u32,
    /// The tokens with which evaluated readings extend beyond it.
    pub(crate) ranges: Vec<TokenRange>,
    /// The bytes whose strings are queued already. Those strings have a copy of the pending readings.
    pub(crate) done: ByteBits,
    pub(crate) next: NextBytes,
}

impl StringEntry {
    pub(crate) fn new(string: u32, context: u32, member: bool) -> StringEntry {
        StringEntry {
            string,
            context,
            member,
            bound: f64::NEG_INFINITY,
            exact: Vec::new(),
            pending: Vec::new(),
            pending_sum: f64::NEG_INFINITY,
            pending_top: f64::NEG_INFINITY,
            looked_at: 0,
            ranges: Vec::new(),
            done: ByteBits::default(),
            next: NextBytes::Unknown(f64::INFINITY),
        }
    }

    /// Returns the approximate memory, including the place in the queue, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let next = match &self.next {
            NextBytes::Unknown(_) => 0,
            NextBytes::Best(next) | NextBytes::All(next) => next.capacity(),
        };
        size_of::<StringEntry>()
            + size_of::<QueuedEntry>()
            + 4 * (self.exact.capacity() + self.pending.capacity())
            + size_of::<TokenRange>() * self.ranges.capacity()
            + 16 * next
    }
}

#[derive(Clone, Copy, Debug)]
struct QueuedEntry {
    bound: f64,
    length: u32,
    entry: u32,
}

/// Entries by descending bound; ties go to the shorter, then the smaller string.
#[derive(Debug, Default)]
pub(crate) struct EntryQueue {
    heap: Vec<QueuedEntry>,
    entries: Vec<Option<Box<StringEntry>>>,
    free: Vec<u32>,
    bytes: usize,
}

impl EntryQueue {
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + 8 * self.entries.len()
    }

    /// Returns the bound of the first entry.
    pub(crate) fn top(&self) -> Option<f64> {
        self.heap.first().map(|one| one.bound)
    }

    /// Iterates over the entries in no particular order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &StringEntry> {
        self.entries.iter().filter_map(Option::as_deref)
    }

    /// Queues an entry, unless nothing can come of it.
    pub(crate) fn push(&mut self, strings: &PrefixStrings, entry: Box<StringEntry>) {
        if entry.bound == f64::NEG_INFINITY {
            return;
        }
        self.bytes += entry.memory_bytes();
        let (bound, length) = (entry.bound, strings.length(entry.string));
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = Some(entry);
                place
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() as u32 - 1
            }
        };
        let entries = &self.entries;
        let queued = QueuedEntry { bound, length, entry: place };
        binary_heap::push(&mut self.heap, queued, |one, other| {
            is_before(entries, strings, one, other)
        });
    }

    /// Removes and returns the entry with the largest bound.
    pub(crate) fn pop(&mut self, strings: &PrefixStrings) -> Option<Box<StringEntry>> {
        let entries = &self.entries;
        let first =
            binary_heap::pop(&mut self.heap, |one, other| is_before(entries, strings, one, other))?;
        self.free.push(first.entry);
        let entry = self.entries[first.entry as usize].take()?;
        self.bytes -= entry.memory_bytes();
        Some(entry)
    }
}

#[inline]
fn is_before(
    entries: &[Option<Box<StringEntry>>],
    strings: &PrefixStrings,
    one: QueuedEntry,
    other: QueuedEntry,
) -> bool {
    let order = other.bound.total_cmp(&one.bound).then(one.length.cmp(&other.length));
    if order != Ordering::Equal {
        return order == Ordering::Less;
    }
    let (Some(a), Some(b)) = (&entries[one.entry as usize], &entries[other.entry as usize]) else {
        return false;
    };
    let order = strings.cmp(a.string, b.string).then(a.context.cmp(&b.context));
    order.then(b.member.cmp(&a.member)) == Ordering::Less
}
