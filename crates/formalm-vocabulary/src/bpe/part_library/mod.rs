//! The tokens inside parts of languages that recur, such as the strings and numbers of JSON. They
//! are prepared once, saved with the encoder, and shared by all languages.
//!
//! ```text
//!  {"day": "20│24-01-31", …
//!             24           settled     stays inside, and text of the part follows, whatever is after it
//!             1            unsettled   stays inside; what is after the part may decide
//!             24-01-31",   unsettled   leaves the part
//! ```
//!
//! A part is identified by its *name*: the digest of the minimal automaton of what it reads on from
//! a position. Names do not depend on the process, nor on the language around the part. Unsettled
//! tokens are grouped by where they lead, so that a language decides them group by group.

mod saved;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use formalm_core::{ByteSet, ForkSafeMutex, Interner};
use rustc_hash::FxHashMap;

use super::pretokenizer::boundary_automaton::BoundaryState;
use super::pretokenizer::pretoken_splitter::SplitterState;
use super::token_set::TokenSet;
use super::whole_tokens::PretokenState;

/// Maximum size of a library, in bytes; beyond it nothing is added. 12 MiB; chosen, not measured.
const MAX_BYTES: usize = 12 << 20;

/// A position inside a part, not after pieces of a whole token. The state of the splitter is between
/// two characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartPositionKey {
    /// The name of what the part reads on.
    pub name: u128,
    /// The state of the splitter. The filter of the normalizer, if any, is in its weakest state.
    pub boundaries: BoundaryState,
}

/// The tokens that may follow a position inside a part.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PartTokens {
    /// The tokens that stay inside and are allowed whatever comes after the part: those that
    /// continue a pre-token, without checking adjacency, and those that begin one.
    pub settled: [Arc<TokenSet>; 2],
    /// The other tokens. All that are in neither list are allowed nowhere.
    pub unsettled: Box<[Arc<UnsettledTokens>]>,
}

/// Tokens that lead to one state, whatever that is in the language around the part.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct UnsettledTokens {
    /// `true` if they begin a pre-token.
    pub begins: bool,
    /// The state of the splitter after them, in which the filter may be mixed.
    pub splitter_state: SplitterState,
    /// The state of the pre-token after them.
    pub pretoken: PretokenState,
    /// The tokens; there is at least one.
    pub tokens: Arc<TokenSet>,
}

/// The prepared positions.
#[derive(Debug, Default)]
pub struct PartLibrary {
    tables: ForkSafeMutex<PartTables>,
    served: AtomicUsize,
    missed: AtomicUsize,
}

#[derive(Debug, Default)]
struct PartTables {
    /// Equal values are kept once. Those that were read from a file are not in here.
    sets: Interner<Arc<TokenSet>>,
    groups: Interner<Arc<UnsettledTokens>>,
    lists: Interner<Arc<PartTokens>>,
    positions: FxHashMap<PartPositionKey, Arc<PartTokens>>,
    /// The bytes that the prepared positions read on, and whether their parts may end there.
    first_bytes: Vec<(ByteSet, bool)>,
    bytes: usize,
}

impl PartLibrary {
    /// Returns `true` if nothing is prepared.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of prepared positions.
    pub fn len(&self) -> usize {
        self.tables.lock().positions.len()
    }

    /// Returns `true` if a position is prepared.
    pub fn contains(&self, key: &PartPositionKey) -> bool {
        self.tables.lock().positions.contains_key(key)
    }

    /// Returns `false` if no prepared position is in a state that goes on with these bytes, of which
    /// at most `exits` end the part.
    pub fn may_contain(&self, live: ByteSet, exits: usize) -> bool {
        self.tables.lock().first_bytes.iter().any(|&(read, may_end)| {
            let rest = live.len() - read.intersection(live).len();
            read == live || may_end && read.intersection(live) == read && rest <= exits
        })
    }

    /// Returns the tokens at a position, if they are prepared.
    pub fn peek(&self, key: &PartPositionKey) -> Option<Arc<PartTokens>> {
        self.tables.lock().positions.get(key).map(Arc::clone)
    }

    /// Returns the tokens at a position that a language needs, if they are prepared.
    pub fn get(&self, key: &PartPositionKey) -> Option<Arc<PartTokens>> {
        let known = self.peek(key);
        let count = if known.is_some() { &self.served } else { &self.missed };
        count.fetch_add(1, Ordering::Relaxed);
        known
    }

    /// Counts a position that a language needs and that is not prepared.
    pub fn count_missed(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many positions inside parts languages needed so far: those that were prepared,
    /// and those that were not.
    pub fn counts(&self) -> (usize, usize) {
        (self.served.load(Ordering::Relaxed), self.missed.load(Ordering::Relaxed))
    }

    /// Adds positions with the same tokens. If they are to be found by what they read on: the bytes,
    /// and whether the part may end there. Returns `false` if there is no room.
    pub fn insert(
        &self,
        keys: &[PartPositionKey],
        first_bytes: Option<(ByteSet, bool)>,
        tokens: PartTokens,
    ) -> bool {
        let tables = &mut *self.tables.lock();
        if tables.bytes > MAX_BYTES {
            return false;
        }
        let tokens = tables.share_position(tokens);
        keys.iter().for_each(|&key| tables.insert(key, &tokens));
        if let Some(first_bytes) = first_bytes {
            tables.note(first_bytes);
        }
        true
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.tables.lock().bytes
    }
}

impl PartTables {
    fn note(&mut self, first_bytes: (ByteSet, bool)) {
        if !self.first_bytes.contains(&first_bytes) {
            self.first_bytes.push(first_bytes);
        }
    }

    fn insert(&mut self, key: PartPositionKey, tokens: &Arc<PartTokens>) {
        self.bytes += size_of::<(PartPositionKey, usize)>() + size_of::<usize>();
        self.positions.insert(key, Arc::clone(tokens));
    }

    /// Returns the one copy of the tokens of a position.
    fn share_position(&mut self, tokens: PartTokens) -> Arc<PartTokens> {
        let PartTokens { settled, unsettled } = tokens;
        let settled = settled.map(|set| self.share(set));
        let unsettled = unsettled.into_iter().map(|group| self.share_group(group)).collect();
        let known = self.lists.len();
        let number = self.lists.intern(Arc::new(PartTokens { settled, unsettled }));
        let tokens = Arc::clone(self.lists.get(number));
        if number as usize == known {
            self.bytes += list_bytes(&tokens);
        }
        tokens
    }

    /// Returns the one copy of a group.
    fn share_group(&mut self, group: Arc<UnsettledTokens>) -> Arc<UnsettledTokens> {
        if let Some(known) = self.groups.find(&group) {
            return Arc::clone(&self.groups[known]);
        }
        let UnsettledTokens { begins, splitter_state, pretoken, ref tokens } = *group;
        let tokens = self.share(Arc::clone(tokens));
        let group = Arc::new(UnsettledTokens { begins, splitter_state, pretoken, tokens });
        self.bytes += GROUP_BYTES;
        self.groups.intern(Arc::clone(&group));
        group
    }

    /// Returns the one copy of a set.
    fn share(&mut self, set: Arc<TokenSet>) -> Arc<TokenSet> {
        let known = self.sets.len();
        let number = self.sets.intern(set);
        let set = Arc::clone(self.sets.get(number));
        if number as usize == known {
            self.bytes += set_bytes(&set);
        }
        set
    }
}

/// Size of a group, in bytes.
const GROUP_BYTES: usize = size_of::<UnsettledTokens>() + 4 * size_of::<usize>();

/// Returns the size of a set, in bytes.
fn set_bytes(set: &TokenSet) -> usize {
    set.memory_bytes() + 4 * size_of::<usize>()
}

/// Returns the size of the tokens of a position without their sets and groups, in bytes.
fn list_bytes(tokens: &PartTokens) -> usize {
    size_of::<PartTokens>() + size_of_val(&tokens.unsettled[..]) + 4 * size_of::<usize>()
}
