//! The fewest tokens that complete a text.
//!
//! A breadth-first search over states finds them. Machines with a stack have no end of states: there
//! the shortest text, spelled in the fewest tokens, is a completion that is known at once, and texts
//! that are longer and take fewer tokens are looked for where that takes little.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use formalm_automata::{Error, Machine, StateId};
use formalm_vocabulary::{Trie, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::mask::{Words, patch};
use crate::walk;

/// The states that one token leads to, each with such a token.
type Successors = Arc<[(StateId, u32)]>;

/// Lists of successors kept; a walk of the whole vocabulary makes one again.
const KEPT: usize = 4096;

/// Nodes of the vocabulary that searches for one answer walk along; with more, the shortest text
/// counts. Each may be a state more.
const NODES: usize = 100_000;

/// What was learnt about completions.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    successors: Mutex<FxHashMap<u32, Successors>>,
    /// Per state: the tokens of its shortest text; `None` if none spell it.
    spelled: Mutex<FxHashMap<u32, Option<u32>>>,
    /// Per state of a machine without a stack: tokens of its shortest completion if `Ok`, or more
    /// than so many if `Err`.
    costs: Mutex<FxHashMap<u32, Result<u32, u32>>>,
    /// Tokens that are read from the state itself.
    unsure: OnceLock<Vec<u32>>,
}

/// What a search along tokens found.
enum Found {
    Path(Vec<u32>),
    /// There is none of so few tokens.
    Nothing,
    /// It would have taken long.
    Unknown,
}

impl Completions {
    /// A token sequence from `state` to a member, of at most `limit` tokens: the fewest, or where
    /// finding them takes long those of the shortest text.
    pub(crate) fn shortest(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
    ) -> Result<Option<Vec<u32>>, Error> {
        match self.search(machine, vocabulary, machine.completes_as(state)?, limit, NODES)? {
            Found::Path(path) => Ok(Some(path)),
            Found::Nothing => Ok(None),
            Found::Unknown => {
                let path = fewest(vocabulary.trie(), &machine.shortest(state)?);
                Ok(path.filter(|path| path.len() <= limit as usize))
            }
        }
    }

    /// Whether a state has a completion of at most `limit` tokens, by [`Completions::shortest`].
    pub(crate) fn fits(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
    ) -> Result<bool, Error> {
        let state = machine.completes_as(state)?;
        if self.spelled(machine, vocabulary, state)?.is_some_and(|count| count <= limit) {
            return Ok(true);
        }
        self.reaches(machine, vocabulary, state, limit, NODES)
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
        let mut open = Vec::new();
        for &(next, _) in &*self.successors(machine, vocabulary, state)? {
            let spelled = self.spelled(machine, vocabulary, next)?;
            let fits = budget > 0 && spelled.is_some_and(|count| count <= left);
            if within.insert(next.number(), fits).is_none() && !fits && budget > 0 {
                open.push(next);
            }
        }
        // Texts that are not the shortest are looked at where that is soon done.
        let share = NODES / open.len().max(1);
        if share >= vocabulary.trie().nodes().len() || machine.is_finite() {
            for next in open {
                let fits = self.reaches(machine, vocabulary, next, left, share)?;
                within.insert(next.number(), fits);
            }
        }
        if budget > 0 && !within.values().any(|&fits| fits) {
            // A longer text was found before, or there is none.
            let here = machine.completes_as(state)?;
            if let Found::Path(path) = self.search(machine, vocabulary, here, budget, NODES)?
                && let Some(&first) = path.first()
                && let Ok(next) =
                    machine.walk(here, vocabulary.token_bytes(first).unwrap_or_default())?
            {
                within.insert(machine.completes_as(next)?.number(), true);
            }
        }
        if within.values().all(|&fits| fits) {
            return Ok(());
        }
        self.each(machine, vocabulary, state, |next, tokens| {
            if within.get(&next.number()) != Some(&true) {
                patch(words, &[], tokens);
            }
        })
    }

    /// Whether a search finds a completion of at most `limit` tokens. What it costs is remembered
    /// where every search comes to an end: elsewhere an answer would depend on those before.
    fn reaches(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
        most: usize,
    ) -> Result<bool, Error> {
        let costs = || self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        match costs().get(&state.number()) {
            Some(&Ok(cost)) => return Ok(cost <= limit),
            Some(&Err(least)) if limit <= least => return Ok(false),
            _ => {}
        }
        let found = self.search(machine, vocabulary, state, limit, most)?;
        if machine.is_finite() {
            let cost = match &found {
                Found::Path(path) => Ok(path.len() as u32),
                _ => Err(limit),
            };
            keep(&mut costs(), 64 * KEPT, state, cost);
        }
        Ok(matches!(found, Found::Path(_)))
    }

    /// Breadth first over states. The searches of one generation start from states that follow
    /// each other, so they meet the same states again and their walks are kept.
    fn search(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
        most: usize,
    ) -> Result<Found, Error> {
        let mut came = vec![(state, 0usize, 0u32)];
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([state.number()]);
        let (mut layer, mut depth, mut nodes) = (0, 0, 0);
        loop {
            if let Some(at) = (layer..came.len()).find(|&at| machine.is_accepting(came[at].0)) {
                return Ok(Found::Path(trace(&came, at)));
            }
            let end = came.len();
            if layer == end || depth == limit {
                return Ok(Found::Nothing);
            }
            for at in layer..end {
                nodes += vocabulary.trie().nodes().len();
                if nodes > most && !machine.is_finite() {
                    return Ok(Found::Unknown);
                }
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

    /// In how few tokens the shortest text is spelled, where that is to be known before any search.
    fn spelled(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
    ) -> Result<Option<u32>, Error> {
        if machine.is_finite() {
            return Ok(None);
        }
        let kept = || self.spelled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = kept().get(&state.number()) {
            return Ok(known);
        }
        let count = match machine.shortest(state) {
            Ok(text) => fewest(vocabulary.trie(), &text).map(|path| path.len() as u32),
            Err(Error::Limit { .. }) => None,
            Err(error) => return Err(error),
        };
        keep(&mut kept(), 64 * KEPT, state, count);
        Ok(count)
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
        self.each(machine, vocabulary, state, |next, tokens| {
            if known.insert(next.number()) {
                list.push((next, tokens[0]));
            }
        })?;
        let list: Successors = list.into();
        keep(&mut kept(), KEPT, state, Arc::clone(&list));
        Ok(list)
    }

    /// The tokens that may follow, with how the text is completed behind them.
    fn each(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        mut emit: impl FnMut(StateId, &[u32]),
    ) -> Result<(), Error> {
        let bytes = |token| vocabulary.token_bytes(token).unwrap_or_default();
        let unsure = self.unsure.get_or_init(|| {
            let all = vocabulary.trie().order().iter().copied();
            all.filter(|&token| machine.is_unsure(bytes(token))).collect()
        });
        walk::tokens(machine, vocabulary.trie(), state, |next, tokens| {
            if unsure.is_empty() || !machine.is_unsure(bytes(tokens[0])) {
                emit(next, tokens);
            }
        })?;
        for &token in unsure {
            if let Ok(next) = machine.walk(state, bytes(token))? {
                emit(machine.completes_as(next)?, &[token]);
            }
        }
        Ok(())
    }
}

/// Remembers something of a state; of so many, all are forgotten.
fn keep<T>(kept: &mut FxHashMap<u32, T>, most: usize, state: StateId, what: T) {
    if kept.len() >= most {
        kept.clear();
    }
    kept.insert(state.number(), what);
}

/// The fewest tokens that spell a text.
fn fewest(trie: &Trie, text: &[u8]) -> Option<Vec<u32>> {
    // By how much of the text is spelled: tokens so far, and the last of them with where it began.
    let mut best: Vec<Option<(u32, usize, u32)>> = vec![None; text.len() + 1];
    best[0] = Some((0, 0, 0));
    for start in 0..text.len() {
        let Some((count, ..)) = best[start] else { continue };
        let (mut node, mut end) = (trie.root_child(text[start]), start + 1);
        while let Some(here) = node {
            if let Some(&token) = trie.tokens_at(here).first()
                && best[end].is_none_or(|(least, ..)| count + 1 < least)
            {
                best[end] = Some((count + 1, start, token));
            }
            node = text.get(end).and_then(|&byte| trie.child(here, byte));
            end += 1;
        }
    }
    let (mut path, mut at) = (Vec::new(), text.len());
    while at > 0 {
        let (_, start, token) = best[at]?;
        path.push(token);
        at = start;
    }
    path.reverse();
    Some(path)
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
