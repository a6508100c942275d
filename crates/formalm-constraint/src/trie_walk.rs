//! Walks of a machine along the vocabulary trie.

use std::cell::Cell;
use std::sync::Arc;

use formalm_core::{
    ByteSet, Error, ForkSafeMutex, Machine, MaskClassId, StateId, WideParts,
    deadline::check_deadline,
};
use formalm_machines::{AcceptingMaskAutomaton, CharRepetition, MaskAutomaton, ValueEnd};
use formalm_vocabulary::{TokenTrie, Vocabulary};
use rustc_hash::FxHashMap;

/// The deadline is checked at nodes whose numbers have these bits zero.
pub(crate) const DEADLINE_CHECK_MASK: u32 = 63;

/// Maximum number of possible bytes, where steps are fast, of a class below which a walk asks for
/// those of further classes. Chosen, not measured.
const MAX_FEW_BYTES: usize = 32;

/// The least byte that begins a character beyond ASCII.
const FIRST_LEAD_BYTE: u8 = 0xC2;

/// The characters over which a mask class loops.
#[derive(Clone, Copy, Debug, Default)]
struct SelfLoops {
    ascii: u128,
    wide: WideParts,
}

/// The lists of a walk. They are kept for the next one on the thread, because most walks are so
/// short that touching fresh memory takes as long.
#[derive(Debug, Default)]
struct WalkLists {
    stack: Vec<MaskClassId>,
    few: Vec<Option<ByteSet>>,
    path: Vec<u32>,
}

thread_local! {
    static LISTS: Cell<WalkLists> = const {
        Cell::new(WalkLists { stack: Vec::new(), few: Vec::new(), path: Vec::new() })
    };
}

/// A walk of mask classes along a trie. Tokens are emitted as slices of the trie's order.
pub(crate) struct TrieWalk<'a, K> {
    keys: &'a K,
    trie: &'a TokenTrie,
    /// The machine knows the possible bytes of some class.
    knows_bytes: bool,
    /// The walk below the last node entered asks for possible bytes.
    asks_bytes: bool,
    loops: FxHashMap<MaskClassId, SelfLoops>,
    /// The class whose loops were asked for last.
    last_loops: Option<(MaskClassId, SelfLoops)>,
    stack: Vec<MaskClassId>,
    /// Per stack entry, the bytes that may follow, if they are few.
    few: Vec<Option<ByteSet>>,
    /// Per stack entry, the node that was read. Only for machines that know possible bytes.
    path: Vec<u32>,
    /// Inner nodes at which an isolated value has ended.
    exits: Option<Vec<u32>>,
}

impl<K> Drop for TrieWalk<'_, K> {
    fn drop(&mut self) {
        // No stale entry is ever read.
        self.stack.clear();
        self.few.clear();
        self.path.clear();
        LISTS.set(WalkLists {
            stack: std::mem::take(&mut self.stack),
            few: std::mem::take(&mut self.few),
            path: std::mem::take(&mut self.path),
        });
    }
}

impl<'a, K: MaskAutomaton> TrieWalk<'a, K> {
    pub(crate) fn new(keys: &'a K, trie: &'a TokenTrie) -> TrieWalk<'a, K> {
        let WalkLists { stack, few, path } = LISTS.take();
        let loops = FxHashMap::default();
        let knows_bytes = K::KNOWS_POSSIBLE_BYTES && keys.knows_possible_bytes();
        TrieWalk {
            keys,
            trie,
            knows_bytes,
            asks_bytes: knows_bytes,
            loops,
            last_loops: None,
            stack,
            few,
            path,
            exits: None,
        }
    }

    /// Creates a walk inside an isolated value, up to its end.
    pub(crate) fn inside_value(keys: &'a K, trie: &'a TokenTrie) -> TrieWalk<'a, K> {
        let mut walk = TrieWalk::new(keys, trie);
        walk.exits = Some(Vec::new());
        walk
    }

    /// Returns the inner nodes at which the isolated value has ended.
    pub(crate) fn into_exits(mut self) -> Vec<u32> {
        self.exits.take().unwrap_or_default()
    }

    /// Emits the tokens viable from `key` whose first byte is in `first`.
    pub(crate) fn tokens(
        &mut self,
        key: MaskClassId,
        first: impl IntoIterator<Item = u8>,
        emit: &mut impl FnMut(&[u32]),
    ) -> Result<(), Error> {
        for byte in first {
            if let Some(node) = self.trie.root_child(byte)
                && let Some(next) = self.keys.step(key, byte)?
            {
                self.subtree(node, next, emit)?;
            }
        }
        Ok(())
    }

    /// Emits the tokens viable from `key` that begin with `first`, except those that continue with
    /// `excluded`. For machines that know possible bytes.
    pub(crate) fn tokens_without(
        &mut self,
        key: MaskClassId,
        (first, excluded): (u8, u8),
        emit: &mut impl FnMut(&[u32]),
    ) -> Result<(), Error> {
        let Some(node) = self.trie.root_child(first) else { return Ok(()) };
        let Some(next) = self.keys.step(key, first)? else { return Ok(()) };
        emit(self.trie.tokens_at(node));
        let Some(continues) = self.continues(node, next)? else { return Ok(()) };
        self.enter(node, next)?;
        self.narrow(node, continues);
        let mut others = ByteSet::default();
        (0..=u8::MAX).filter(|&byte| byte != excluded).for_each(|byte| others.insert(byte));
        self.narrow(node, Some(others));
        self.rest_of_subtree(node, emit)
    }

    /// Emits the tokens at and below `node`, which was just read and led to `key`.
    pub(crate) fn subtree(
        &mut self,
        node: u32,
        key: MaskClassId,
        emit: &mut impl FnMut(&[u32]),
    ) -> Result<(), Error> {
        let trie = self.trie;
        let nodes = trie.nodes();
        if nodes[node as usize].word().is_some() {
            emit(trie.tokens_at(node));
        }
        if self.accepts_all_below(node, key)? {
            emit(trie.tokens_below(node));
            return Ok(());
        }
        let Some(continues) = self.continues(node, key)? else { return Ok(()) };
        if self.knows_loops(key) && self.skips(key, node)? {
            emit(trie.tokens_below(node));
            return Ok(());
        }
        self.enter(node, key)?;
        self.narrow(node, continues);
        let few = self.few.get(nodes[node as usize].depth()).copied().flatten();
        if few.is_some_and(|few| !trie.signature(node).has_any_of(few)) {
            return Ok(());
        }
        self.rest_of_subtree(node, emit)
    }

    /// Returns whether an isolated value continues below a node. `Some(Some(bytes))`: only with
    /// `bytes`, others belong to its surroundings. `Some(None)`: with any byte. `None`: it has
    /// ended.
    #[inline]
    fn continues(&mut self, node: u32, key: MaskClassId) -> Result<Option<Option<ByteSet>>, Error> {
        if self.exits.is_none() {
            return Ok(Some(None));
        }
        self.continues_in_value(node, key)
    }

    fn continues_in_value(
        &mut self,
        node: u32,
        key: MaskClassId,
    ) -> Result<Option<Option<ByteSet>>, Error> {
        let Some(exits) = &mut self.exits else { return Ok(Some(None)) };
        if self.trie.nodes()[node as usize].end() == node + 1 {
            return Ok(Some(None));
        }
        let ended = self.keys.value_end(key)?;
        if ended != ValueEnd::Open {
            exits.push(node);
        }
        Ok(match ended {
            ValueEnd::Open => Some(None),
            ValueEnd::MayEnd(bytes) => Some(Some(bytes)),
            ValueEnd::Ended => None,
        })
    }

    /// Restricts the bytes that may follow a node.
    fn narrow(&mut self, node: u32, bytes: Option<ByteSet>) {
        let depth = self.trie.nodes()[node as usize].depth();
        if let (Some(bytes), Some(few)) = (bytes, self.few.get_mut(depth)) {
            *few = Some(few.map_or(bytes, |few| few.intersection(bytes)));
        }
    }

    /// Emits the tokens below `node`, which was read and led to `key`.
    pub(crate) fn below(
        &mut self,
        node: u32,
        key: MaskClassId,
        emit: &mut impl FnMut(&[u32]),
    ) -> Result<(), Error> {
        self.enter(node, key)?;
        if self.exits.is_some()
            && let ValueEnd::MayEnd(bytes) = self.keys.value_end(key)?
        {
            self.narrow(node, Some(bytes));
        }
        self.rest_of_subtree(node, emit)
    }

    /// Records the mask class after a node.
    fn enter(&mut self, node: u32, key: MaskClassId) -> Result<(), Error> {
        let top = self.trie.nodes()[node as usize].depth();
        self.stack.resize(self.stack.len().max(top + 1), key);
        self.stack[top] = key;
        if self.knows_bytes {
            let few = self.keys.possible_bytes(key)?;
            let is_small = few.is_some_and(|few| few.len() <= MAX_FEW_BYTES);
            self.asks_bytes = !K::HAS_FAST_STEPS || is_small;
            self.few.resize(self.few.len().max(top + 1), None);
            self.few[top] = few;
            self.path.resize(self.path.len().max(top + 1), node);
            self.path[top] = node;
        }
        Ok(())
    }

    fn rest_of_subtree(&mut self, node: u32, emit: &mut impl FnMut(&[u32])) -> Result<(), Error> {
        let trie = self.trie;
        let nodes = trie.nodes();
        let end = nodes[node as usize].end();
        let mut at = node + 1;
        while at < end {
            let here = nodes[at as usize];
            let depth = here.depth();
            if self.asks_bytes
                && let Some(few) = self.few[depth - 1]
                && !few.contains(here.byte())
            {
                at = trie.flat().next_sibling(Some(self.path[depth - 1]), at, few);
                continue;
            }
            if at & DEADLINE_CHECK_MASK == 0 {
                check_deadline()?;
            }
            let before = self.stack[depth - 1];
            if here.byte() >= FIRST_LEAD_BYTE
                && here.end() > at + 1
                && self.loops_on_all_from(before, at)
            {
                emit(trie.tokens_below(at));
                at = here.end();
                continue;
            }
            let Some(next) = self.keys.step(before, here.byte())? else {
                at = here.end();
                continue;
            };
            if self.accepts_all_below(at, next)? {
                emit(trie.tokens_at(at));
                emit(trie.tokens_below(at));
                at = here.end();
                continue;
            }
            let Some(continues) = self.continues(at, next)? else {
                emit(trie.tokens_at(at));
                at = here.end();
                continue;
            };
            let may_skip = here.end() > at + 1
                && (next == before || self.knew_loops(next) || self.knows_loops(next));
            if may_skip && self.skips(next, at)? {
                emit(trie.tokens_at(at));
                emit(trie.tokens_below(at));
                at = here.end();
                continue;
            }
            if here.word().is_some() {
                emit(trie.tokens_at(at));
            }
            if depth == self.stack.len() {
                self.stack.push(next);
            } else {
                self.stack[depth] = next;
            }
            if self.asks_bytes && here.end() > at + 1 {
                self.few.resize(self.few.len().max(depth + 1), None);
                self.few[depth] = self.keys.possible_bytes(next)?;
                self.path.resize(self.path.len().max(depth + 1), at);
                self.path[depth] = at;
                self.narrow(at, continues);
                if self.few[depth].is_some_and(|few| !trie.signature(at).has_any_of(few)) {
                    at = here.end();
                    continue;
                }
            }
            at += 1;
        }
        Ok(())
    }

    /// Returns `true` if the subtree below a node is not empty and has only ASCII characters, any
    /// of which may follow.
    #[inline]
    fn accepts_all_below(&self, node: u32, key: MaskClassId) -> Result<bool, Error> {
        if !self.asks_bytes || self.trie.nodes()[node as usize].end() == node + 1 {
            return Ok(false);
        }
        let below = self.trie.signature(node);
        let asks = below.is_within(!0, WideParts::default());
        Ok(asks && self.keys.accepts_any_of(key, below.ascii(), self.trie.height(node))?)
    }

    /// Returns `true` if the loops of a class were asked for last.
    #[inline]
    fn knew_loops(&self, key: MaskClassId) -> bool {
        self.last_loops.is_some_and(|(known, _)| known == key)
    }

    /// Returns `true` if a class, whose loops were asked for last, loops over all characters that
    /// begin with the byte of a node and over everything that follows them.
    #[inline]
    fn loops_on_all_from(&self, key: MaskClassId, node: u32) -> bool {
        self.exits.is_none()
            && self.last_loops.is_some_and(|(known, loops)| {
                known == key && self.trie.signature(node).is_within(loops.ascii, loops.wide)
            })
    }

    /// Returns `true` if the loops of a class are known, for machines with expensive steps.
    fn knows_loops(&self, key: MaskClassId) -> bool {
        self.asks_bytes && self.loops.contains_key(&key)
    }

    /// Returns `true` if the class loops over everything below a node.
    fn skips(&mut self, key: MaskClassId, node: u32) -> Result<bool, Error> {
        let loops = match self.last_loops {
            Some((known, loops)) if known == key => loops,
            _ => match self.loops.get(&key) {
                Some(&loops) => loops,
                None => {
                    let loops = self_loops(self.keys, key)?;
                    self.loops.insert(key, loops);
                    loops
                }
            },
        };
        self.last_loops = Some((key, loops));
        Ok(self.trie.signature(node).is_within(loops.ascii, loops.wide))
    }
}

impl<K: AcceptingMaskAutomaton> TrieWalk<'_, K> {
    /// Returns the inner nodes at which the input read from a class is in the language; `None` if
    /// there are more than `most`.
    pub(crate) fn ends(
        &mut self,
        key: MaskClassId,
        most: usize,
    ) -> Result<Option<Vec<u32>>, Error> {
        let roots: Vec<u32> = (0..=255).filter_map(|byte| self.trie.root_child(byte)).collect();
        self.ends_from(key, &roots, most)
    }

    /// As [`TrieWalk::ends`], for the nodes at and below `roots`, whose bytes are read from `key`.
    pub(crate) fn ends_from(
        &mut self,
        key: MaskClassId,
        roots: &[u32],
        most: usize,
    ) -> Result<Option<Vec<u32>>, Error> {
        let nodes = self.trie.nodes();
        let mut found = Vec::new();
        let few = if self.knows_bytes { self.keys.possible_bytes(key)? } else { None };
        for &root in roots {
            let end = nodes[root as usize].end();
            let mut at = root;
            while at < end {
                let from = (at == root).then_some((key, few));
                if self.reads_on(from, at, &mut found)? {
                    at += 1;
                } else {
                    at = nodes[at as usize].end();
                }
                if found.len() > most {
                    return Ok(None);
                }
            }
        }
        Ok(Some(found))
    }

    /// As [`TrieWalk::ends`], where members end with the bytes of `selected`.
    pub(crate) fn ends_among(
        &mut self,
        key: MaskClassId,
        selected: &NodesBeforeBytes,
        most: usize,
    ) -> Result<Option<Vec<u32>>, Error> {
        let nodes = self.trie.nodes();
        let mut found = Vec::new();
        let few = if self.knows_bytes { self.keys.possible_bytes(key)? } else { None };
        let mut at = 0;
        while let Some(&(node, end)) = selected.0.get(at) {
            let from = (nodes[node as usize].depth() == 1).then_some((key, few));
            at = if self.reads_on(from, node, &mut found)? { at + 1 } else { end as usize };
            if found.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Reads the byte of a node, from a class or from what was read before. Adds the node if the
    /// input is in the language, and returns `true` if nodes below may be read.
    fn reads_on(
        &mut self,
        from: Option<(MaskClassId, Option<ByteSet>)>,
        at: u32,
        found: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        let here = self.trie.nodes()[at as usize];
        let depth = here.depth();
        let (before, few) = from
            .unwrap_or_else(|| (self.stack[depth - 1], self.few.get(depth - 1).copied().flatten()));
        if at & DEADLINE_CHECK_MASK == 0 {
            check_deadline()?;
        }
        let is_leaf = here.end() == at + 1;
        if is_leaf || few.is_some_and(|few| !few.contains(here.byte())) {
            return Ok(false);
        }
        let Some(next) = self.keys.step(before, here.byte())? else { return Ok(false) };
        if self.keys.is_accepting_class(next)? {
            found.push(at);
        } else if next == before && self.skips(next, at)? {
            return Ok(false);
        }
        self.enter(at, next)?;
        Ok(true)
    }
}

/// The inner nodes of a trie whose byte is one of a set, and the nodes before them, in order. Each
/// has the index of the first one that is not below it.
#[derive(Debug)]
pub(crate) struct NodesBeforeBytes(Vec<(u32, u32)>);

impl NodesBeforeBytes {
    /// Selects the nodes of a trie.
    pub(crate) fn new(trie: &TokenTrie, bytes: ByteSet) -> NodesBeforeBytes {
        let nodes = trie.nodes();
        let mut selected: Vec<(u32, u32)> = Vec::new();
        // The path to the current node; the first `kept` of its nodes are selected.
        let (mut path, mut kept): (Vec<u32>, usize) = (Vec::new(), 0);
        let mut open: Vec<usize> = Vec::new();
        for (at, here) in (0..).zip(nodes) {
            path.truncate(here.depth() - 1);
            kept = kept.min(path.len());
            path.push(at);
            if here.end() == at + 1 || !bytes.contains(here.byte()) {
                continue;
            }
            while open.len() > kept {
                let last = open.len() - 1;
                selected[open[last]].1 = selected.len() as u32;
                open.pop();
            }
            for &node in &path[kept..] {
                open.push(selected.len());
                selected.push((node, 0));
            }
            kept = path.len();
        }
        let len = selected.len() as u32;
        for at in open {
            selected[at].1 = len;
        }
        NodesBeforeBytes(selected)
    }
}

/// The selections of a vocabulary's trie, by their bytes. Languages end in one of few ways.
#[derive(Debug, Default)]
pub(crate) struct NodeSelections(ForkSafeMutex<Vec<(ByteSet, Arc<NodesBeforeBytes>)>>);

/// Maximum number of selections kept: as many as there are sets of kinds of JSON values.
const MAX_SELECTIONS: usize = 64;

impl NodeSelections {
    /// Returns the nodes before some bytes, see [`NodesBeforeBytes::new`].
    pub(crate) fn of(&self, trie: &TokenTrie, bytes: ByteSet) -> Arc<NodesBeforeBytes> {
        let known = &mut *self.0.lock();
        if let Some((_, nodes)) = known.iter().find(|one| one.0 == bytes) {
            return Arc::clone(nodes);
        }
        let nodes = Arc::new(NodesBeforeBytes::new(trie, bytes));
        if known.len() < MAX_SELECTIONS {
            known.push((bytes, Arc::clone(&nodes)));
        }
        nodes
    }
}

fn self_loops<K: MaskAutomaton>(keys: &K, key: MaskClassId) -> Result<SelfLoops, Error> {
    let repetition = keys.char_repetition(key)?;
    let repetition = repetition.filter(|one| one.min == 0 && one.max.is_none());
    if let Some(CharRepetition { ascii, wide, .. }) = repetition {
        return Ok(SelfLoops { ascii, wide: WideParts::full(wide) });
    }
    let few = if K::KNOWS_POSSIBLE_BYTES { keys.possible_bytes(key)? } else { None };
    let mut loops = SelfLoops { ascii: 0, wide: keys.wide_loops(key)? };
    for byte in (0..128u8).filter(|&byte| few.is_none_or(|few| few.contains(byte))) {
        if keys.step(key, byte)? == Some(key) {
            loops.ascii |= 1 << byte;
        }
    }
    Ok(loops)
}

/// Walks two classes in lockstep. Collects the tokens that only the first or only the second
/// allows, at and below a node that was just read, or everywhere.
pub(crate) fn difference<K: MaskAutomaton>(
    keys: &K,
    trie: &TokenTrie,
    root: Option<u32>,
    pair: (Option<MaskClassId>, Option<MaskClassId>),
    only_first: &mut Vec<u32>,
    only_second: &mut Vec<u32>,
) -> Result<(), Error> {
    let differing =
        |(first, second): (Option<MaskClassId>, Option<MaskClassId>)| match (first, second) {
            _ if !K::KNOWS_POSSIBLE_BYTES => Ok(None),
            (Some(first), Some(second)) => keys.differing_bytes(first, second),
            (Some(one), None) | (None, Some(one)) => keys.possible_bytes(one),
            (None, None) => Ok(None),
        };
    let nodes = trie.nodes();
    let (top, mut at, end) = match root {
        Some(root) => {
            let here = nodes[root as usize];
            match pair {
                (Some(_), None) => only_first.extend_from_slice(trie.tokens_at(root)),
                (None, Some(_)) => only_second.extend_from_slice(trie.tokens_at(root)),
                _ => {}
            }
            (here.depth(), root + 1, here.end())
        }
        None => (0, 0, nodes.len() as u32),
    };
    if pair.0 == pair.1 {
        return Ok(());
    }
    let mut stack = vec![(root, pair, differing(pair)?)];
    while at < end {
        let here = nodes[at as usize];
        let depth = here.depth() - top;
        let (parent, (first, second), bytes) = stack[depth - 1];
        if let Some(bytes) = bytes
            && !bytes.contains(here.byte())
        {
            at = trie.flat().next_sibling(parent, at, bytes);
            continue;
        }
        if at & DEADLINE_CHECK_MASK == 0 {
            check_deadline()?;
        }
        let first = first.map_or(Ok(None), |key| keys.step(key, here.byte()))?;
        let second = second.map_or(Ok(None), |key| keys.step(key, here.byte()))?;
        if first == second {
            at = here.end();
            continue;
        }
        if here.word().is_some() {
            match (first, second) {
                (Some(_), None) => only_first.extend_from_slice(trie.tokens_at(at)),
                (None, Some(_)) => only_second.extend_from_slice(trie.tokens_at(at)),
                _ => {}
            }
        }
        stack.truncate(depth);
        let leaf = here.end() == at + 1;
        let bytes = if leaf { None } else { differing((first, second))? };
        stack.push((Some(at), (first, second), bytes));
        at += 1;
    }
    Ok(())
}

/// Returns the tokens that must be read from the concrete state
/// ([`formalm_core::CompletionClasses::input_needs_recheck`]), sorted.
pub(crate) fn recheck_tokens(machine: &impl Machine, vocabulary: &Vocabulary) -> Vec<u32> {
    let all = 0..vocabulary.len() as u32;
    let bytes = |token| vocabulary.token_bytes(token).unwrap_or_default();
    all.filter(|&token| machine.input_needs_recheck(bytes(token))).collect()
}

/// Emits the viable tokens of every trie node with the state they lead to. The walk continues from
/// `representative(state)`, the representative of equivalent states.
pub(crate) fn tokens(
    machine: &impl Machine,
    trie: &TokenTrie,
    state: StateId,
    representative: impl Fn(StateId) -> Result<StateId, Error>,
    mut emit: impl FnMut(StateId, &[u32]),
) -> Result<(), Error> {
    let step = |state, byte| machine.step(state, byte)?.map(&representative).transpose();
    let mut loops: FxHashMap<u32, u128> = FxHashMap::default();
    let nodes = trie.nodes();
    let mut stack = vec![state];
    let mut at = 0;
    while (at as usize) < nodes.len() {
        let here = nodes[at as usize];
        let depth = here.depth();
        if at & DEADLINE_CHECK_MASK == 0 {
            check_deadline()?;
        }
        let before = stack[depth - 1];
        let Some(next) = step(before, here.byte())? else {
            at = here.end();
            continue;
        };
        if here.word().is_some() {
            emit(next, trie.tokens_at(at));
        }
        if next == before && here.end() > at + 1 {
            let loops = match loops.get(&next.number()) {
                Some(&known) => known,
                None => {
                    let mut found = 0;
                    for byte in 0..128 {
                        found |= u128::from(step(next, byte)? == Some(next)) << byte;
                    }
                    *loops.entry(next.number()).or_insert(found)
                }
            };
            if trie.signature(at).is_within(loops, WideParts::default()) {
                emit(next, trie.tokens_below(at));
                at = here.end();
                continue;
            }
        }
        stack.truncate(depth);
        stack.push(next);
        at += 1;
    }
    Ok(())
}
