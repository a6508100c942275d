//! The machine of a part in any surroundings: after the part it reads everything, and remembers it.

use std::sync::Arc;

use formalm_core::{
    ByteSet, CompletionClasses, CompletionHints, Error, ForkSafeMutex, Interner, LazyDfa,
    ReadingHints, Renewal, ScratchCopies, StateId,
};

use super::part_table::{END, PartTable};

/// The meaning of a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReaderState {
    /// A position at which a token begins, by its class. Tokens that leave the part at once are
    /// not read: they depend on nothing inside.
    Begin(u32),
    /// A position inside the part.
    Inside(u32),
    /// The bytes read since the part ended.
    After(Box<[u8]>),
    /// The bytes read since a class that was left unread.
    Beyond(u32, Box<[u8]>),
}

/// The machine. It has no members: it only tells where tokens lead.
#[derive(Debug)]
pub(super) struct PartReader {
    table: Arc<PartTable>,
    states: ForkSafeMutex<Interner<ReaderState>>,
}

impl PartReader {
    /// Creates the machine of a table.
    pub(super) fn new(table: Arc<PartTable>) -> PartReader {
        let reader = PartReader { table, states: ForkSafeMutex::default() };
        reader.intern(ReaderState::Begin(0));
        reader
    }

    /// Returns the state before a token.
    pub(super) fn begin(&self, class: u32) -> StateId {
        match self.table.may_end(class) {
            true => self.intern(ReaderState::Begin(class)),
            false => self.intern(ReaderState::Inside(class)),
        }
    }

    /// Returns the meaning of a state.
    pub(super) fn meaning(&self, state: StateId) -> ReaderState {
        self.states.lock().get(state.number()).clone()
    }

    fn intern(&self, state: ReaderState) -> StateId {
        StateId::from_number(self.states.lock().intern(state))
    }
}

impl LazyDfa for PartReader {
    fn start(&self) -> StateId {
        StateId::from_number(0)
    }

    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let from = self.meaning(state);
        let next = match &from {
            ReaderState::Inside(class) if self.table.is_unread(*class) => {
                Some(ReaderState::Beyond(*class, [byte].into()))
            }
            ReaderState::Beyond(class, read) => {
                Some(ReaderState::Beyond(*class, [&read[..], &[byte]].concat().into()))
            }
            ReaderState::Begin(class) | ReaderState::Inside(class) => {
                match self.table.step(*class, byte) {
                    Some(END) => Some(ReaderState::After(Box::default())),
                    Some(class) => Some(ReaderState::Inside(class)),
                    None => {
                        let leaves = matches!(from, ReaderState::Inside(_));
                        (leaves && self.table.may_end(*class))
                            .then(|| ReaderState::After([byte].into()))
                    }
                }
            }
            ReaderState::After(read) => {
                Some(ReaderState::After([&read[..], &[byte]].concat().into()))
            }
        };
        Ok(next.map(|next| self.intern(next)))
    }

    fn is_accepting(&self, _: StateId) -> Result<bool, Error> {
        Ok(false)
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        let all = || {
            (0..=255).fold(ByteSet::default(), |mut all, byte| {
                all.insert(byte);
                all
            })
        };
        Ok(match self.meaning(state) {
            ReaderState::Begin(class) => self.table.bytes(class),
            ReaderState::Inside(class)
                if !self.table.may_end(class) && !self.table.is_unread(class) =>
            {
                self.table.bytes(class)
            }
            _ => all(),
        })
    }

    fn shortest_completion(&self, _: StateId) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }

    fn memory_bytes(&self) -> usize {
        self.states.lock().table_bytes()
    }
}

impl ReadingHints for PartReader {}
impl CompletionHints for PartReader {}
impl CompletionClasses for PartReader {}
impl ScratchCopies for PartReader {}
impl Renewal for PartReader {}
