//! The fewest tokens that complete a text.

use std::sync::{Arc, Mutex, PoisonError};

use formalm_automata::{Error, Machine, Resource, StateId};
use formalm_vocabulary::Vocabulary;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::mask::{Words, patch};
use crate::walk;

/// The states that one token leads to, each with such a token.
type Successors = Arc<[(StateId, u32)]>;

/// Lists of successors kept; a walk of the whole vocabulary makes one again.
const KEPT: usize = 4096;

/// Walks of the vocabulary that one question about the fewest tokens may take.
const MOST_WALKS: usize = 2000;

/// Walks that one mask within a budget may take beside what is known without.
const MOST_WALKS_OF_MASK: usize = 100;

/// What was learnt about completions.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    successors: Mutex<FxHashMap<u32, Successors>>,
    /// Per state: tokens that are enough if `Ok`, or more than so many are needed if `Err`.
    costs: Mutex<FxHashMap<u32, Result<u32, u32>>>,
    /// Per state: tokens that spell the shortest text that completes it, if any do.
    spelled: Mutex<FxHashMap<u32, Option<u32>>>,
}

impl Completions {
    /// A shortest token sequence from `state` to a member, of at most `limit` tokens.
    ///
    /// The shortest text that completes it can be spelled: as many tokens as that takes are never
    /// looked for. Otherwise breadth first over states. The searches of one generation start from
    /// states that follow each other, so they meet the same states again and their walks are kept.
    pub(crate) fn shortest(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
    ) -> Result<Option<Vec<u32>>, Error> {
        let state = machine.completed_alike(state)?;
        let enough = self.enough(machine, vocabulary, state)?;
        let spelled = || -> Result<Option<Vec<u32>>, Error> {
            Ok(enough.and(fewest(vocabulary, &machine.shortest(state)?)))
        };
        let enough = enough.unwrap_or(u32::MAX);
        if enough == 0 {
            return Ok(Some(Vec::new()));
        }
        let walks = &mut 0;
        match self.fewer(machine, vocabulary, state, limit.min(enough - 1), walks)? {
            Some(found) => Ok(Some(found)),
            None if *walks > MOST_WALKS => {
                let (needed, allowed) = (*walks as u64, MOST_WALKS as u64);
                Err(Error::Limit { resource: Resource::Steps, needed, allowed })
            }
            None if enough <= limit => spelled(),
            None => Ok(None),
        }
    }

    /// Tokens that are enough to complete a state, perhaps not the fewest; `None` if none are known.
    pub(crate) fn enough(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
    ) -> Result<Option<u32>, Error> {
        let kept = || self.spelled.lock().unwrap_or_else(PoisonError::into_inner);
        let state = machine.completed_alike(state)?;
        if let Some(&known) = kept().get(&state.number()) {
            return Ok(known);
        }
        // In the midst of a character its end is looked for alone: there are many such states.
        for byte in [0x80, 0x90, 0xA0] {
            if let Some(next) = machine.step(state, byte)?
                && fewest(vocabulary, &[byte]).is_some()
                && !machine.is_accepting(state)
            {
                let count = self.enough(machine, vocabulary, next)?.map(|count| count + 1);
                kept().insert(state.number(), count);
                return Ok(count);
            }
        }
        let text = match machine.shortest(state) {
            Ok(text) => text,
            Err(Error::Limit { .. }) => {
                kept().insert(state.number(), None);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        // The rest of a shortest text is one for what was come to.
        let counts: Vec<Option<u32>> =
            spellings(vocabulary, &text).iter().map(|best| best.map(|(count, _)| count)).collect();
        let mut here = state;
        for (at, &count) in counts.iter().enumerate() {
            let mut kept = kept();
            if kept.len() >= 64 * KEPT {
                kept.clear();
            }
            let known = kept.entry(here.number()).or_insert(count);
            *known = known.iter().chain(&count).min().copied();
            drop(kept);
            let Some(&byte) = text.get(at) else { break };
            let Some(next) = machine.step(here, byte)? else { break };
            here = machine.completed_alike(next)?;
        }
        Ok(counts[0])
    }

    /// A shortest token sequence of at most `limit` tokens, as far as it is found in [`MOST_WALKS`],
    /// those made before among them.
    fn fewer(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
        walks: &mut usize,
    ) -> Result<Option<Vec<u32>>, Error> {
        let longest = vocabulary.longest_token_bytes();
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
            let left = (limit - depth) as usize;
            for at in layer..end {
                let state = came[at].0;
                if machine.owed_bytes(state)? > left.saturating_mul(longest) {
                    continue;
                }
                *walks += 1;
                if *walks > MOST_WALKS {
                    return Ok(None);
                }
                if left == 1 {
                    if let Some(token) = last_token(machine, vocabulary, state)? {
                        let mut path = trace(&came, at);
                        path.push(token);
                        return Ok(Some(path));
                    }
                    continue;
                }
                for &(next, token) in &*self.successors(machine, vocabulary, state)? {
                    if seen.insert(next.number()) {
                        came.push((next, at, token));
                    }
                }
            }
            layer = end;
            depth += 1;
        }
    }

    /// Clears the tokens after which no member is known to be left within `budget` tokens, the token
    /// among them; end tokens are left alone. A token that leads on to a known one is never cleared.
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
        let state = machine.completed_alike(state)?;
        let walks = &mut (MOST_WALKS - MOST_WALKS_OF_MASK);
        for &(next, _) in &*self.successors(machine, vocabulary, state)? {
            let fits = budget > 0 && self.fits(machine, vocabulary, next, left, walks)?;
            within.insert(next.number(), fits);
        }
        if within.values().all(|&fits| fits) {
            return Ok(());
        }
        alike(machine, vocabulary, state, |next, tokens| {
            if within.get(&next.number()) != Some(&true) {
                patch(words, &[], tokens);
            }
        })
    }

    /// Whether a state is known to have a completion of at most `limit` tokens.
    pub(crate) fn is_within(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
    ) -> Result<bool, Error> {
        let state = machine.completed_alike(state)?;
        self.fits(machine, vocabulary, state, limit, &mut 0)
    }

    fn fits(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
        walks: &mut usize,
    ) -> Result<bool, Error> {
        let costs = || self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        match costs().get(&state.number()) {
            Some(&Ok(cost)) if cost <= limit => return Ok(true),
            Some(&Err(least)) if limit <= least => return Ok(false),
            _ => {}
        }
        if self.enough(machine, vocabulary, state)?.is_some_and(|enough| enough <= limit) {
            return Ok(true);
        }
        if *walks > MOST_WALKS {
            return Ok(false);
        }
        let path = self.fewer(machine, vocabulary, state, limit, walks)?;
        let mut states = vec![state];
        for &token in path.iter().flatten() {
            let (Some(&last), Some(text)) = (states.last(), vocabulary.token_bytes(token)) else {
                break;
            };
            let Ok(next) = machine.walk(last, text)? else { break };
            states.push(machine.completed_alike(next)?);
        }
        let mut costs = costs();
        if costs.len() >= 64 * KEPT {
            costs.clear();
        }
        match &path {
            // Whoever takes a token of the way finds the rest of it.
            Some(path) => {
                for (at, state) in states.iter().enumerate() {
                    costs.insert(state.number(), Ok((path.len() - at) as u32));
                }
            }
            None if *walks <= MOST_WALKS => {
                costs.insert(state.number(), Err(limit));
            }
            None => {}
        }
        Ok(path.is_some())
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
        alike(machine, vocabulary, state, |next, tokens| {
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

/// The tokens of a state, each with a state that is completed as the one is that it leads to.
fn alike(
    machine: &impl Machine,
    vocabulary: &Vocabulary,
    state: StateId,
    emit: impl FnMut(StateId, &[u32]),
) -> Result<(), Error> {
    let like = |state| machine.completed_alike(state);
    walk::tokens_to(machine, vocabulary.trie(), state, like, emit)
}

/// For each end of a text, how many tokens spell it at least and the first of them; `None` where
/// none do.
fn spellings(vocabulary: &Vocabulary, text: &[u8]) -> Vec<Option<(u32, u32)>> {
    let trie = vocabulary.trie();
    let mut best: Vec<Option<(u32, u32)>> = vec![None; text.len() + 1];
    best[text.len()] = Some((0, 0));
    for from in (0..text.len()).rev() {
        let mut node = trie.root_child(text[from]);
        let mut end = from + 1;
        while let Some(here) = node {
            if trie.nodes()[here as usize].word().is_some()
                && let Some((count, _)) = best[end]
                && best[from].is_none_or(|(known, _)| known > count + 1)
            {
                best[from] = Some((count + 1, trie.tokens_at(here)[0]));
            }
            node = text.get(end).and_then(|&byte| trie.child(here, byte));
            end += 1;
        }
    }
    best
}

/// The fewest tokens that spell a text; `None` if none do.
fn fewest(vocabulary: &Vocabulary, text: &[u8]) -> Option<Vec<u32>> {
    let best = spellings(vocabulary, text);
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let (_, token) = best[at]?;
        tokens.push(token);
        at += vocabulary.token_bytes(token)?.len();
    }
    Some(tokens)
}

/// A token that completes a state by itself.
fn last_token(
    machine: &impl Machine,
    vocabulary: &Vocabulary,
    state: StateId,
) -> Result<Option<u32>, Error> {
    let trie = vocabulary.trie();
    let nodes = trie.nodes();
    let mut stack = vec![state];
    let mut at = 0;
    while (at as usize) < nodes.len() {
        let here = nodes[at as usize];
        let depth = here.depth();
        let next = machine.step(stack[depth - 1], here.byte())?;
        let Some(next) = next else {
            at = here.end();
            continue;
        };
        let next = machine.completed_alike(next)?;
        if here.word().is_some() && machine.is_accepting(next) {
            return Ok(Some(trie.tokens_at(at)[0]));
        }
        let deepest = nodes[at as usize + 1..here.end() as usize].iter().map(|one| one.depth());
        let below = deepest.max().map_or(0, |deepest| deepest - depth);
        // No token is long enough for a state that owes more.
        if machine.owed_bytes(next)? > below {
            at = here.end();
            continue;
        }
        stack.truncate(depth);
        stack.push(next);
        at += 1;
    }
    Ok(None)
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
