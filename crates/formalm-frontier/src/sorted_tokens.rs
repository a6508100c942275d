//! The tokens of a vocabulary, sorted by bytes.
//!
//! A *rank* is an index in this order. The tokens that start with given bytes are a range of ranks:
//!
//! ```text
//!  rank   0   1    2     3    4      5
//!  bytes  a   an   and   ant  b      be
//!             └──── "an" ───┘                 "an" itself comes first
//! ```

use std::sync::Arc;

use formalm_logits::TokenClasses;

/// Token ids sorted by bytes, made once for a vocabulary.
#[derive(Debug)]
pub struct SortedTokens {
    token_ids: Box<[u32]>,
    rank_of: Box<[u32]>,
    bytes: Box<[u8]>,
    /// Where each rank's bytes start; one more at the end.
    starts: Box<[u32]>,
    /// The first byte of each token; 0 for tokens without bytes.
    first_bytes: Arc<TokenClasses>,
}

/// The rank of a token without bytes.
const NO_RANK: u32 = u32::MAX;

impl SortedTokens {
    /// Sorts the tokens of a vocabulary, given by id; `None` and empty tokens have no rank.
    pub fn new<'a>(tokens: impl Iterator<Item = Option<&'a [u8]>>) -> SortedTokens {
        let all: Vec<Option<&[u8]>> = tokens.map(|one| one.filter(|one| !one.is_empty())).collect();
        let mut token_ids: Vec<u32> =
            (0..all.len() as u32).filter(|&id| all[id as usize].is_some()).collect();
        // A stable order: equal tokens by id.
        token_ids.sort_by(|&one, &other| all[one as usize].cmp(&all[other as usize]));
        let mut rank_of = vec![NO_RANK; all.len()];
        let (mut bytes, mut starts) = (Vec::new(), Vec::with_capacity(token_ids.len() + 1));
        for (rank, &id) in token_ids.iter().enumerate() {
            rank_of[id as usize] = rank as u32;
            starts.push(bytes.len() as u32);
            bytes.extend_from_slice(all[id as usize].unwrap_or_default());
        }
        starts.push(bytes.len() as u32);
        let first = |one: &Option<&[u8]>| one.and_then(|one| one.first().copied()).unwrap_or(0);
        let first_bytes: Vec<u8> = all.iter().map(first).collect();
        SortedTokens {
            first_bytes: Arc::new(TokenClasses::new(&first_bytes)),
            token_ids: token_ids.into(),
            rank_of: rank_of.into(),
            bytes: bytes.into(),
            starts: starts.into(),
        }
    }

    /// Returns the number of ranks.
    pub fn len(&self) -> usize {
        self.token_ids.len()
    }

    /// Returns `true` if no token has bytes.
    pub fn is_empty(&self) -> bool {
        self.token_ids.is_empty()
    }

    /// Returns the token ids by rank.
    pub fn token_ids(&self) -> &[u32] {
        &self.token_ids
    }

    /// Returns the rank of a token, if it has bytes.
    #[inline]
    pub fn rank(&self, token_id: u32) -> Option<u32> {
        self.rank_of.get(token_id as usize).copied().filter(|&rank| rank != NO_RANK)
    }

    /// Returns the first byte of each token, prepared for scans.
    pub(crate) fn first_bytes(&self) -> &Arc<TokenClasses> {
        &self.first_bytes
    }

    /// Returns the bytes of a rank.
    #[inline]
    pub fn bytes(&self, rank: u32) -> &[u8] {
        let at = rank as usize;
        &self.bytes[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Returns the number of bytes of a rank.
    #[inline]
    pub fn length(&self, rank: u32) -> u32 {
        self.starts[rank as usize + 1] - self.starts[rank as usize]
    }

    /// Returns the end of the ranks at the start of a range whose tokens have exactly `length`
    /// bytes. All tokens of the range share their first `length` bytes.
    #[inline]
    pub(crate) fn end_of_exact(&self, (low, high): (u32, u32), length: usize) -> u32 {
        (low..high).find(|&rank| self.length(rank) as usize > length).unwrap_or(high)
    }

    /// Returns the end of the ranks that have the same byte at `depth` as the first one. All tokens
    /// of the range share their first `depth` bytes and are longer.
    #[inline]
    pub(crate) fn end_of_byte(&self, (low, high): (u32, u32), depth: usize) -> u32 {
        let byte_at = |rank: u32| self.bytes[self.starts[rank as usize] as usize + depth];
        let byte = byte_at(low);
        // Most groups are small beside the range.
        let mut step = 1;
        while low + step < high && byte_at(low + step) == byte {
            step *= 2;
        }
        let (mut one, mut other) = (low + step / 2, high.min(low + step));
        while other - one > 1 {
            let middle = one + (other - one) / 2;
            if byte_at(middle) == byte { one = middle } else { other = middle }
        }
        other
    }

    /// Returns the byte of a rank at `depth`.
    #[inline]
    pub(crate) fn byte_at(&self, rank: u32, depth: usize) -> u8 {
        self.bytes[self.starts[rank as usize] as usize + depth]
    }

    /// Returns the ranks with `byte` at `depth` in a range whose tokens share their first `depth`
    /// bytes and are longer.
    pub(crate) fn narrow(&self, (low, high): (u32, u32), depth: usize, byte: u8) -> (u32, u32) {
        let first = |bound: u16| {
            let (mut one, mut other) = (low, high);
            while one < other {
                let middle = one + (other - one) / 2;
                if u16::from(self.byte_at(middle, depth)) < bound {
                    one = middle + 1;
                } else {
                    other = middle;
                }
            }
            one
        };
        (first(u16::from(byte)), first(u16::from(byte) + 1))
    }
}
