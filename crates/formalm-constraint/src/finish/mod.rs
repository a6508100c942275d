//! The fewest tokens that complete a text.
//!
//! A breadth-first search over states finds them. Machines with a stack have no end of states: there
//! the shortest text, spelled in the fewest tokens, is a completion that is known at once, and texts
//! that are longer and take fewer tokens are looked for where that takes little.

mod completion_classes;

use std::sync::{Arc, MutexGuard};

use formalm_automata::deadline::check_deadline;
use formalm_automata::{Error, Lock, Machine, SetOnce, StateId};
use formalm_vocabulary::{TokenTrie, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet};

use self::completion_classes::{Part, Parts};
use crate::mask::{MaskWords, has, patch};
use crate::trie_walk;

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
    successors: Lock<FxHashMap<u32, Successors>>,
    /// Per state: its shortest text; `None` where finding it exceeds a limit.
    spelled: Lock<FxHashMap<u32, Option<Spelled>>>,
    /// Per state of a machine without a stack: tokens of its shortest completion if `Ok`, or more
    /// than so many if `Err`.
    costs: Lock<FxHashMap<u32, Result<u32, u32>>>,
    /// Tokens that are read from the state itself.
    unsure: SetOnce<Vec<u32>>,
    has_all_bytes: SetOnce<bool>,
    /// States that tokens are left out for leading to, as no text was found in time that completes
    /// them.
    given_up: Lock<FxHashSet<u32>>,
}

/// A shortest text.
#[derive(Clone, Debug)]
struct Spelled {
    text: Arc<[u8]>,
    /// The fewest tokens that spell it; `None` if none do.
    count: Option<u32>,
}

impl Spelled {
    fn is_within(&self, tokens: u32) -> bool {
        self.count.is_some_and(|count| count <= tokens)
    }
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
    /// Memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        fn locked<T>(table: &Lock<T>) -> MutexGuard<'_, T> {
            table.lock()
        }
        let successors = locked(&self.successors);
        let spelled = locked(&self.spelled);
        let lists: usize = successors.values().map(|list| size_of_val(&**list)).sum();
        let texts: usize = spelled.values().flatten().map(|one| one.text.len()).sum();
        let entries = successors.capacity() * 24
            + spelled.capacity() * 40
            + locked(&self.costs).capacity() * 16
            + locked(&self.given_up).capacity() * 5;
        entries + lists + texts
    }

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

    /// How many states were given up: tokens that lead there are left out of what fits a budget.
    pub(crate) fn given_up_count(&self) -> usize {
        self.given_up.lock().len()
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
        if self.spelled(machine, vocabulary, state)?.is_some_and(|one| one.is_within(limit)) {
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
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let Some(left) = budget.checked_sub(1) else {
            let ends = vocabulary.end_token_ids().iter().copied();
            let ends: Vec<u32> = ends.filter(|&end| has(words, end)).collect();
            words.fill(0);
            patch(words, &ends, &[]);
            return Ok(());
        };
        let likely = Vec::new();
        let parts = Parts { completions: self, machine, vocabulary, state, left, likely };
        let mut parts = parts.find()?;
        self.look_further(machine, vocabulary, (state, left), &mut parts)?;
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
            // A longer text was found before, or there is none.
            let here = machine.completes_as(state)?;
            if let Found::Path(path) = self.search(machine, vocabulary, here, budget, NODES)?
                && let Some(&first) = path.first()
            {
                patch(words, &[first], &[]);
            }
        }
        Ok(())
    }

    /// Looks at texts that are not the shortest, where that is soon done.
    fn look_further(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        (state, left): (StateId, u32),
        parts: &mut Vec<Part>,
    ) -> Result<(), Error> {
        let most = NODES / vocabulary.trie().nodes().len().max(1);
        let open = parts.iter().filter(|part| !part.fits).count();
        if machine.is_finite() {
            for part in parts {
                part.fits = self.reaches(machine, vocabulary, part.state, left, NODES)?;
            }
            return Ok(());
        }
        if open == 0 || open > most {
            return Ok(());
        }
        // These searches tell apart all that differs.
        let mut all: Vec<Part> = Vec::new();
        let mut known: FxHashMap<u32, usize> = FxHashMap::default();
        for &token in parts.iter().filter(|part| !part.fits).flat_map(|part| &part.tokens) {
            let bytes = vocabulary.token_bytes(token).unwrap_or_default();
            let Ok(next) = machine.walk(state, bytes)? else { continue };
            let next = machine.completes_as(next)?;
            let at = *known.entry(next.number()).or_insert(all.len());
            if at == all.len() {
                all.push(Part { state: next, tokens: Vec::new(), fits: false });
            }
            all[at].tokens.push(token);
            if all.len() > most {
                return Ok(());
            }
        }
        let share = NODES / all.len().max(1);
        for part in &mut all {
            part.fits = self.reaches(machine, vocabulary, part.state, left, share)?;
        }
        // Tokens that are not viable are in no mask.
        parts.retain(|part| part.fits);
        parts.append(&mut all);
        Ok(())
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
        let costs = || self.costs.lock();
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
            check_deadline()?;
            for at in layer..came.len() {
                if machine.is_accepting(came[at].0)? {
                    return Ok(Found::Path(trace(&came, at)));
                }
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

    /// The shortest text, where that is to be known before any search.
    fn spelled(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
    ) -> Result<Option<Spelled>, Error> {
        if machine.is_finite() {
            return Ok(None);
        }
        if let Some(known) = self.known(state) {
            return Ok(known);
        }
        let spelled = match machine.shortest(state) {
            Ok(text) => {
                let count = fewest(vocabulary.trie(), &text).map(|path| path.len() as u32);
                Some(Spelled { text: text.into(), count })
            }
            Err(Error::Limit { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut kept = self.spelled.lock();
        keep(&mut kept, 4 * KEPT, state, spelled.clone());
        Ok(spelled)
    }

    /// The shortest text, if it was asked for before.
    fn known(&self, state: StateId) -> Option<Option<Spelled>> {
        let kept = self.spelled.lock();
        kept.get(&state.number()).cloned()
    }

    fn successors(
        &self,
        machine: &impl Machine,
        vocabulary: &Vocabulary,
        state: StateId,
    ) -> Result<Successors, Error> {
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
        let unsure = self.unsure(machine, vocabulary);
        let alike = |state| machine.completes_as(state);
        trie_walk::tokens(machine, vocabulary.trie(), state, alike, |next, tokens| {
            for tokens in tokens.split(|token| unsure.binary_search(token).is_ok()) {
                if !tokens.is_empty() {
                    emit(next, tokens);
                }
            }
        })?;
        for &token in unsure {
            if let Ok(next) = machine.walk(state, bytes(token))? {
                emit(alike(next)?, &[token]);
            }
        }
        Ok(())
    }

    /// Tokens that have to be read from a state itself, sorted.
    fn unsure(&self, machine: &impl Machine, vocabulary: &Vocabulary) -> &[u32] {
        self.unsure.get_or_init(|| {
            let all = 0..vocabulary.len() as u32;
            let bytes = |token| vocabulary.token_bytes(token).unwrap_or_default();
            all.filter(|&token| machine.is_unsure(bytes(token))).collect()
        })
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
fn fewest(trie: &TokenTrie, text: &[u8]) -> Option<Vec<u32>> {
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
