//! The fewest tokens that complete a text.

use std::sync::{Arc, Mutex, PoisonError};

use formalm_automata::{Error, Machine, StateId};
use formalm_vocabulary::Vocabulary;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::mask::{Words, patch};
use crate::walk;

/// The states that one token leads to, each with such a token.
type Successors = Arc<[(StateId, u32)]>;

/// Lists of successors kept; a walk of the whole vocabulary makes one again.
const KEPT: usize = 4096;

/// What was learnt about completions.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    successors: Mutex<FxHashMap<u32, Successors>>,
    /// Per state: tokens of its shortest completion if `Ok`, or more than so many if `Err`.
    costs: Mutex<FxHashMap<u32, Result<u32, u32>>>,
}

impl Completions {
    /// A shortest token sequence from `state` to a member, of at most `limit` tokens.
    ///
    /// Breadth first over states. The searches of one generation start from states that follow
    /// each other, so they meet the same states again and their walks are kept.
    pub(crate) fn shortest(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
    ) -> Result<Option<Vec<u32>>, Error> {
        let mut came = vec![(state, 0usize, 0u32)];
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([state.number()]);
        let (mut layer, mut depth) = (0, 0);
        loop {
            if let Some(at) = (layer..came.len()).find(|&at| machine.is_accepting(came[at].0)) {
                return Ok(Some(trace(&came, at)));
            }
            let end = came.len();
            if layer == end || depth == limit {
                return Ok(None);
            }
            for at in layer..end {
                for &(next, token) in &*self.successors(machine, vocabulary, came[at].0)? {
                    if seen.insert(next.number()) {
                        came.push((next, at, token));
                    }
                }
            }
            layer = end;
            depth += 1;
        }
    }

    /// Clears the tokens after which no member is left within `budget` tokens, the token among
    /// them; end tokens are left alone.
    pub(crate) fn restrict(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        budget: u32,
        words: &mut Words,
    ) -> Result<(), Error> {
        let mut within: FxHashMap<u32, bool> = FxHashMap::default();
        let left = budget.saturating_sub(1);
        for &(next, _) in &*self.successors(machine, vocabulary, state)? {
            let fits = budget > 0 && self.fits(machine, vocabulary, next, left)?;
            within.insert(next.number(), fits);
        }
        if within.values().all(|&fits| fits) {
            return Ok(());
        }
        walk::tokens(machine, vocabulary.trie(), state, |next, tokens| {
            if within.get(&next.number()) != Some(&true) {
                patch(words, &[], tokens);
            }
        })
    }

    /// Whether a state has a completion of at most `limit` tokens.
    fn fits(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
    ) -> Result<bool, Error> {
        let costs = || self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        match costs().get(&state.number()) {
            Some(&Ok(cost)) => return Ok(cost <= limit),
            Some(&Err(least)) if limit <= least => return Ok(false),
            _ => {}
        }
        let path = self.shortest(machine, vocabulary, state, limit)?;
        let fits = path.is_some();
        let mut costs = costs();
        if costs.len() >= 64 * KEPT {
            costs.clear();
        }
        costs.insert(state.number(), path.map(|path| path.len() as u32).ok_or(limit));
        Ok(fits)
    }

    fn successors(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
    ) -> Result<Successors, Error> {
        let kept = || self.successors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = kept().get(&state.number()) {
            return Ok(Arc::clone(list));
        }
        let mut known: FxHashSet<u32> = FxHashSet::default();
        let mut list = Vec::new();
        walk::tokens(machine, vocabulary.trie(), state, |next, tokens| {
            if known.insert(next.number()) {
                list.push((next, tokens[0]));
            }
        })?;
        let list: Successors = list.into();
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(state.number(), Arc::clone(&list));
        Ok(list)
    }
}

/// Tokens on the way to entry `at` of a breadth-first search.
fn trace(came: &[(StateId, usize, u32)], mut at: usize) -> Vec<u32> {
    let mut path = Vec::new();
    while at != 0 {
        path.push(came[at].2);
        at = came[at].1;
    }
    path.reverse();
    path
}
