//! Whole tokens: pre-tokens that become one token although merging would make something else of
//! them (`ignore_merges`).
//!
//! A whole token is the only token of its pre-token, and the tokens that merging would make of its
//! string are not canonical there. A trie over those merged sequences detects them.

use rustc_hash::{FxHashMap, FxHashSet};

/// The state of a pre-token: the node that its tokens reach in the trie of merged sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PretokenState(u32);

impl PretokenState {
    /// No prefix of any whole token's merged sequence.
    pub const PLAIN: PretokenState = PretokenState(0);
    const BEGIN: PretokenState = PretokenState(1);
    pub(crate) const WHOLE: PretokenState = PretokenState(2);

    /// Returns the state of open pieces with a number.
    pub(crate) fn of_number(number: u32) -> PretokenState {
        PretokenState(number)
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// The whole tokens and the trie of what merging would make of them.
#[derive(Debug)]
pub(crate) struct WholeTokens {
    steps: FxHashMap<(PretokenState, u32), PretokenState>,
    /// Per node, the tokens with a step from it.
    tokens_after: FxHashMap<PretokenState, Vec<u32>>,
    complete: FxHashSet<PretokenState>,
    tokens: FxHashSet<u32>,
    /// Per token, whether it occurs in any of the tables above.
    noted: Vec<bool>,
    /// The list that the tables were built from.
    list: Vec<(u32, Option<Vec<u32>>)>,
}

impl WholeTokens {
    /// Builds the tables of whole tokens, each with the tokens that merging makes of its string, if
    /// known.
    pub(crate) fn new(list: Vec<(u32, Option<Vec<u32>>)>) -> WholeTokens {
        let mut whole_tokens = WholeTokens {
            steps: FxHashMap::default(),
            tokens_after: FxHashMap::default(),
            complete: FxHashSet::default(),
            tokens: FxHashSet::default(),
            noted: Vec::new(),
            list: Vec::new(),
        };
        let mut count = 3;
        for (token, merged) in &list {
            whole_tokens.tokens.insert(*token);
            for &noted in merged.as_deref().unwrap_or_default().iter().chain([token]) {
                let len = whole_tokens.noted.len().max(noted as usize + 1);
                whole_tokens.noted.resize(len, false);
                whole_tokens.noted[noted as usize] = true;
            }
            let mut path = PretokenState::BEGIN;
            for &token in merged.as_deref().unwrap_or_default() {
                let tokens_after = &mut whole_tokens.tokens_after;
                path = *whole_tokens.steps.entry((path, token)).or_insert_with(|| {
                    tokens_after.entry(path).or_default().push(token);
                    count += 1;
                    PretokenState(count)
                });
            }
            whole_tokens.complete.insert(path);
        }
        whole_tokens.list = list;
        whole_tokens
    }

    /// Returns the list that the tables were built from.
    pub(crate) fn list(&self) -> &[(u32, Option<Vec<u32>>)] {
        &self.list
    }

    /// Returns `true` if a token is a whole token.
    fn is_whole(&self, token: u32) -> bool {
        self.tokens.contains(&token)
    }

    /// Returns `true` if a token occurs in the tables.
    #[inline]
    pub(crate) fn is_noted(&self, token: u32) -> bool {
        self.noted.get(token as usize).is_some_and(|&noted| noted)
    }

    /// Returns the state after a token, which begins a pre-token or not. Returns `None` if the
    /// token may not stand here.
    pub(crate) fn step(
        &self,
        path: PretokenState,
        token: u32,
        begins: bool,
    ) -> Option<PretokenState> {
        if !self.is_noted(token) {
            return (path != PretokenState::WHOLE || begins).then_some(PretokenState::PLAIN);
        }
        match begins {
            true if self.is_whole(token) => Some(PretokenState::WHOLE),
            false if self.is_whole(token) || path == PretokenState::WHOLE => None,
            _ => {
                let from = if begins { PretokenState::BEGIN } else { path };
                Some(self.steps.get(&(from, token)).copied().unwrap_or(PretokenState::PLAIN))
            }
        }
    }

    /// Returns the tokens that lead from a state to another one than from [`PretokenState::PLAIN`],
    /// if they do not begin a pre-token.
    pub(crate) fn tokens_after(&self, path: PretokenState) -> &[u32] {
        self.tokens_after.get(&path).map_or(&[], Vec::as_slice)
    }

    /// Returns `true` if the pre-token may end here.
    pub(crate) fn may_end(&self, path: PretokenState) -> bool {
        path == PretokenState::PLAIN || !self.complete.contains(&path)
    }
}
