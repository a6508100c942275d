//! Shortest completions in tokens, for masks with `finish=True`.
//!
//! A breadth-first search over states finds them. Machines with a stack have infinitely many
//! states: there the shortest string, spelled in the fewest tokens, is a completion known at once.
//! Longer strings that take fewer tokens are searched for only if that is cheap.

mod tokens_sharing_completions;

use std::sync::{Arc, MutexGuard};

use formalm_core::{Error, ForkSafeMutex, Machine, SetOnce, StateId, deadline::check_deadline};
use formalm_vocabulary::{TokenTrie, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet};

use self::tokens_sharing_completions::{ClassFinder, CompletionClass};
use crate::mask::{MaskWords, has, patch};
use crate::trie_walk;

/// The states that one token leads to, each with such a token.
type TokenSuccessors = Arc<[(StateId, u32)]>;

/// Maximum number of cached successor lists. A walk over the whole vocabulary rebuilds one. Chosen,
/// not measured.
const MAX_CACHED_SUCCESSORS: usize = 4096;

/// Work limit of the searches for one answer, in trie nodes walked; beyond it the shortest string
/// counts. Each node may create a state. Chosen, not measured.
const MAX_SEARCH_NODES: usize = 100_000;

/// Caches of completions.
#[derive(Debug, Default)]
pub(crate) struct FinishSearch {
    successors: ForkSafeMutex<FxHashMap<u32, TokenSuccessors>>,
    /// Per state, its shortest string; `None` if finding it exceeds a limit.
    shortest_string: ForkSafeMutex<FxHashMap<u32, Option<ShortestString>>>,
    /// Per state of a machine without a stack, the number of tokens of its shortest completion
    /// (`Ok`) or a strict lower bound (`Err`).
    costs: ForkSafeMutex<FxHashMap<u32, Result<u32, u32>>>,
    /// Tokens that must be read from the concrete state.
    recheck_tokens: SetOnce<Vec<u32>>,
    has_all_bytes: SetOnce<bool>,
    /// States whose completion search exceeded a limit. Tokens that lead to them are masked out.
    given_up: ForkSafeMutex<FxHashSet<u32>>,
}

/// A shortest string.
#[derive(Clone, Debug)]
struct ShortestString {
    text: Arc<[u8]>,
    /// The fewest tokens that spell it; `None` if no tokens do.
    count: Option<u32>,
}

impl ShortestString {
    fn is_within(&self, tokens: u32) -> bool {
        self.count.is_some_and(|count| count <= tokens)
    }
}

/// The result of a search along tokens.
enum SearchResult {
    Path(Vec<u32>),
    /// There is no completion within the limit.
    NotWithinLimit,
    /// The search exceeded its work limit.
    WorkLimit,
}

impl FinishSearch {
    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        fn locked<T>(table: &ForkSafeMutex<T>) -> MutexGuard<'_, T> {
            table.lock()
        }
        let successors = locked(&self.successors);
        let shortest_string = locked(&self.shortest_string);
        let lists: usize = successors.values().map(|list| size_of_val(&**list)).sum();
        let texts: usize = shortest_string.values().flatten().map(|one| one.text.len()).sum();
        let entries = successors.capacity() * 24
            + shortest_string.capacity() * 40
            + locked(&self.costs).capacity() * 16
            + locked(&self.given_up).capacity() * 5;
        entries + lists + texts
    }

    /// Returns a token sequence of at most `limit` tokens from `state` to acceptance: a shortest
    /// one or, if finding it is expensive, that of the shortest string.
    pub(crate) fn shortest(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
    ) -> Result<Option<Vec<u32>>, Error> {
        match self.search(
            machine,
            vocabulary,
            machine.completion_class(state)?,
            limit,
            MAX_SEARCH_NODES,
        )? {
            SearchResult::Path(path) => Ok(Some(path)),
            SearchResult::NotWithinLimit => Ok(None),
            SearchResult::WorkLimit => {
                let path = fewest_tokens(vocabulary.trie(), &machine.shortest_completion(state)?);
                Ok(path.filter(|path| path.len() <= limit as usize))
            }
        }
    }

    /// Returns the number of states whose search gave up; tokens that lead there are masked out.
    pub(crate) fn given_up_count(&self) -> usize {
        self.given_up.lock().len()
    }

    /// Returns `true` if [`FinishSearch::shortest`] finds a completion of at most `limit` tokens.
    pub(crate) fn fits(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
    ) -> Result<bool, Error> {
        let state = machine.completion_class(state)?;
        if self.shortest_string(machine, vocabulary, state)?.is_some_and(|one| one.is_within(limit))
        {
            return Ok(true);
        }
        self.completes_within(machine, vocabulary, state, limit, MAX_SEARCH_NODES)
    }

    /// Clears the tokens after which no string can be completed within `budget` tokens, that token
    /// included. End tokens are left alone.
    pub(crate) fn restrict(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        budget: u32,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let Some(left) = budget.checked_sub(1) else {
            let ends = vocabulary.end_token_ids().iter().copied();
            let ends: Vec<u32> = ends.filter(|&end| has(words, end)).collect();
            words.fill(0);
            patch(words, &ends, &[]);
            return Ok(());
        };
        let recent = Vec::new();
        let parts = ClassFinder { completions: self, machine, vocabulary, state, left, recent };
        let mut parts = parts.find()?;
        self.search_longer_strings(machine, vocabulary, (state, left), &mut parts)?;
        for part in parts.iter().filter(|part| !part.fits) {
            if matches!(self.known(part.state), Some(None))
                && part.tokens.iter().any(|&token| has(words, token))
            {
                let mut given_up = self.given_up.lock();
                given_up.insert(part.state.number());
            }
            patch(words, &[], &part.tokens);
        }
        let mut fitting = parts.iter().filter(|part| part.fits).flat_map(|part| &part.tokens);
        if !fitting.any(|&token| has(words, token)) {
            // Either a longer string was found before, or none exists.
            let here = machine.completion_class(state)?;
            if let SearchResult::Path(path) =
                self.search(machine, vocabulary, here, budget, MAX_SEARCH_NODES)?
                && let Some(&first) = path.first()
            {
                patch(words, &[first], &[]);
            }
        }
        Ok(())
    }

    /// Searches strings that are not the shortest, if that is cheap.
    fn search_longer_strings(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        (state, left): (StateId, u32),
        parts: &mut Vec<CompletionClass>,
    ) -> Result<(), Error> {
        let most = MAX_SEARCH_NODES / vocabulary.trie().nodes().len().max(1);
        let open = parts.iter().filter(|part| !part.fits).count();
        if machine.is_finite() {
            for part in parts {
                part.fits =
                    self.completes_within(machine, vocabulary, part.state, left, MAX_SEARCH_NODES)?;
            }
            return Ok(());
        }
        if open == 0 || open > most {
            return Ok(());
        }
        // These searches distinguish all states that differ.
        let mut all: Vec<CompletionClass> = Vec::new();
        let mut known: FxHashMap<u32, usize> = FxHashMap::default();
        for &token in parts.iter().filter(|part| !part.fits).flat_map(|part| &part.tokens) {
            let bytes = vocabulary.token_bytes(token).unwrap_or_default();
            let Ok(next) = machine.walk(state, bytes)? else { continue };
            let next = machine.completion_class(next)?;
            let at = *known.entry(next.number()).or_insert(all.len());
            if at == all.len() {
                all.push(CompletionClass { state: next, tokens: Vec::new(), fits: false });
            }
            all[at].tokens.push(token);
            if all.len() > most {
                return Ok(());
            }
        }
        let share = MAX_SEARCH_NODES / all.len().max(1);
        for part in &mut all {
            part.fits = self.completes_within(machine, vocabulary, part.state, left, share)?;
        }
        // Tokens that are not viable are in no mask.
        parts.retain(|part| part.fits);
        parts.append(&mut all);
        Ok(())
    }

    /// Returns `true` if a search finds a completion of at most `limit` tokens. The cost is cached
    /// only if every search terminates; otherwise an answer would depend on earlier ones.
    fn completes_within(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
        most: usize,
    ) -> Result<bool, Error> {
        let costs = || self.costs.lock();
        match costs().get(&state.number()) {
            Some(&Ok(cost)) => return Ok(cost <= limit),
            Some(&Err(least)) if limit <= least => return Ok(false),
            _ => {}
        }
        let found = self.search(machine, vocabulary, state, limit, most)?;
        if machine.is_finite() {
            let cost = match &found {
                SearchResult::Path(path) => Ok(path.len() as u32),
                _ => Err(limit),
            };
            keep(&mut costs(), 64 * MAX_CACHED_SUCCESSORS, state, cost);
        }
        Ok(matches!(found, SearchResult::Path(_)))
    }

    /// Breadth-first search over states. The searches of one epoch start from consecutive states,
    /// so they visit the same states again, and their walks are cached.
    fn search(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        limit: u32,
        most: usize,
    ) -> Result<SearchResult, Error> {
        let mut visited = vec![(state, 0usize, 0u32)];
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([state.number()]);
        let (mut layer, mut depth, mut nodes) = (0, 0, 0);
        loop {
            check_deadline()?;
            for at in layer..visited.len() {
                if machine.is_accepting(visited[at].0)? {
                    return Ok(SearchResult::Path(trace(&visited, at)));
                }
            }
            let end = visited.len();
            if layer == end || depth == limit {
                return Ok(SearchResult::NotWithinLimit);
            }
            for at in layer..end {
                nodes += vocabulary.trie().nodes().len();
                if nodes > most && !machine.is_finite() {
                    return Ok(SearchResult::WorkLimit);
                }
                for &(next, token) in &*self.successors(machine, vocabulary, visited[at].0)? {
                    if seen.insert(next.number()) {
                        visited.push((next, at, token));
                    }
                }
            }
            layer = end;
            depth += 1;
        }
    }

    /// Returns the shortest string, if it is to be known before any search.
    fn shortest_string(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
    ) -> Result<Option<ShortestString>, Error> {
        if machine.is_finite() {
            return Ok(None);
        }
        if let Some(known) = self.known(state) {
            return Ok(known);
        }
        let shortest_string = match machine.shortest_completion(state) {
            Ok(text) => {
                let count = fewest_tokens(vocabulary.trie(), &text).map(|path| path.len() as u32);
                Some(ShortestString { text: text.into(), count })
            }
            Err(Error::Limit { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut kept = self.shortest_string.lock();
        keep(&mut kept, 4 * MAX_CACHED_SUCCESSORS, state, shortest_string.clone());
        Ok(shortest_string)
    }

    /// Returns the shortest string, if it is cached.
    fn known(&self, state: StateId) -> Option<Option<ShortestString>> {
        let kept = self.shortest_string.lock();
        kept.get(&state.number()).cloned()
    }

    fn successors(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
    ) -> Result<TokenSuccessors, Error> {
        let kept = || self.successors.lock();
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
        let list: TokenSuccessors = list.into();
        keep(&mut kept(), MAX_CACHED_SUCCESSORS, state, Arc::clone(&list));
        Ok(list)
    }

    /// Passes the tokens that may follow to `emit`, grouped by completion-equivalent state.
    fn each(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
        mut emit: impl FnMut(StateId, &[u32]),
    ) -> Result<(), Error> {
        let bytes = |token| vocabulary.token_bytes(token).unwrap_or_default();
        let recheck_tokens = self.recheck_tokens(machine, vocabulary);
        let representative = |state| machine.completion_class(state);
        trie_walk::tokens(machine, vocabulary.trie(), state, representative, |next, tokens| {
            for tokens in tokens.split(|token| recheck_tokens.binary_search(token).is_ok()) {
                if !tokens.is_empty() {
                    emit(next, tokens);
                }
            }
        })?;
        for &token in recheck_tokens {
            if let Ok(next) = machine.walk(state, bytes(token))? {
                emit(representative(next)?, &[token]);
            }
        }
        Ok(())
    }

    /// Returns the tokens that must be read from the concrete state, sorted.
    fn recheck_tokens(&self, machine: &impl Machine, vocabulary: &Vocabulary) -> &[u32] {
        self.recheck_tokens.get_or_init(|| trie_walk::recheck_tokens(machine, vocabulary))
    }
}

/// Inserts into a cache that is cleared when it reaches `most` entries.
fn keep<T>(kept: &mut FxHashMap<u32, T>, most: usize, state: StateId, what: T) {
    if kept.len() >= most {
        kept.clear();
    }
    kept.insert(state.number(), what);
}

/// Returns the fewest tokens that spell a string.
fn fewest_tokens(trie: &TokenTrie, text: &[u8]) -> Option<Vec<u32>> {
    // Per length of the prefix: the number of tokens, and the last of them with its start.
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

/// Returns the tokens on the path to entry `at` of a breadth-first search.
fn trace(visited: &[(StateId, usize, u32)], mut at: usize) -> Vec<u32> {
    let mut path = Vec::new();
    while at != 0 {
        path.push(visited[at].2);
        at = visited[at].1;
    }
    path.reverse();
    path
}
