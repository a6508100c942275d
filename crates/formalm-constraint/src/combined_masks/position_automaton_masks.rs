//! Masks of Glushkov (position) automata whose symbols are machines: concatenations, unions and
//! repetitions of languages.
//!
//! An input is in several positions at once, and a token is allowed iff one of them allows it.
//! Positions with regular languages are read together, state by state. For every other position,
//! the tokens that stay inside it are a mask of its own machine. The remaining tokens are few: they
//! end a string of the position on their way, and a walk from the following positions reads what
//! comes after. States visited by this walk belong to a lookahead machine.

use std::sync::{Arc, MutexGuard};

use formalm_core::{ByteSet, CompactMap, Error, ForkSafeMutex, MaskClassId, Renewal, StateId};
use formalm_machines::{
    AcceptingVisitor, ApproximateClasses, ClassAutomaton, ClassRenewal, ClassTable, ClassVisitor,
    MaskAutomaton, MaskClasses, MaskShortcuts, MemberEnds, NoLexicalMachine, PositionAutomaton,
    RepresentativeClasses, ScratchCache, ScratchMachine, StateClasses, StatesAsClasses,
    StringClasses, ValueClasses,
};
use formalm_vocabulary::{TokenTrie, Vocabulary};
use rustc_hash::FxHashMap;

use crate::combined_masks::part_masks::PartMasks;
use crate::mask::{Mask, MaskUnion, patch};
use crate::mask_cache::MaskMemory;
use crate::trie_walk::{TrieWalk, difference};

/// Maximum number of cached masks that others are derived from. Chosen, not measured.
const MAX_BASE_MASKS: usize = 64;

/// Maximum number of end nodes: with more, walking on from each takes longer than walking once.
/// Chosen, not measured.
const MAX_END_NODES: usize = 4096;

/// A position with its mask class, or with its state if its machine is read together with others.
type PositionClass = (u32, u32);

/// The mask classes of a position automaton.
#[derive(Debug)]
pub struct PositionMaskClasses<K: MaskClasses> {
    machine: Arc<K::Machine>,
    composed: Arc<PositionAutomaton<K::Machine>>,
    vocabulary: Arc<Vocabulary>,
    /// The masks of each position, unless it is read with others.
    letters: Vec<Option<Arc<PartMasks<K>>>>,
    keys: ClassTable,
    known: ForkSafeMutex<InternedClasses<K::Machine>>,
    ahead: ScratchCache<PositionAutomaton<K::Machine>>,
}

/// Memory for masks of positions of a lookahead machine, which are never queried, in bytes.
const LOOKAHEAD_MASK_BYTES: usize = 1 << 10;

#[derive(Debug)]
struct InternedClasses<M> {
    /// The first state of each mask class, by the classes of its parts.
    states: CompactMap<Box<[PositionClass]>, StateId>,
    bytes: usize,
    /// Masks of states that inputs keep returning to, and the machine that has these states.
    base_masks: FxHashMap<u32, Mask>,
    base_machine: Option<Arc<PositionAutomaton<M>>>,
}

impl<M> Default for InternedClasses<M> {
    fn default() -> InternedClasses<M> {
        let (states, base_masks) = Default::default();
        InternedClasses { states, bytes: 0, base_masks, base_machine: None }
    }
}

impl<M> InternedClasses<M> {
    /// Returns the cached masks of states of a machine.
    fn base_masks(&mut self, machine: &Arc<PositionAutomaton<M>>) -> &mut FxHashMap<u32, Mask> {
        if self.base_machine.as_ref().is_none_or(|of| !Arc::ptr_eq(of, machine)) {
            self.base_masks.clear();
            self.base_machine = Some(Arc::clone(machine));
        }
        &mut self.base_masks
    }
}

impl<K: MaskClasses> PositionMaskClasses<K> {
    /// Creates the mask classes of a position automaton for a vocabulary. `parts` returns the mask
    /// classes of machines with masks of their own; these are cached in `memory_limit_bytes`.
    pub fn new(
        machine: Arc<K::Machine>,
        composed: Arc<PositionAutomaton<K::Machine>>,
        vocabulary: Arc<Vocabulary>,
        memory_limit_bytes: usize,
        mut parts: impl FnMut(&Arc<K::Machine>) -> Option<K>,
    ) -> PositionMaskClasses<K> {
        let mut same: FxHashMap<*const K::Machine, Option<K>> = FxHashMap::default();
        for letter in composed.positions() {
            same.entry(Arc::as_ptr(&letter.machine)).or_insert_with(|| parts(&letter.machine));
        }
        let memory = MaskMemory::of_several(memory_limit_bytes, same.values().flatten().count());
        let lift = |keys| Arc::new(PartMasks::new(keys, &vocabulary, memory.clone()));
        let same: FxHashMap<_, Option<Arc<PartMasks<K>>>> =
            same.into_iter().map(|(machine, keys)| (machine, keys.map(lift))).collect();
        let masks = composed.positions().iter().map(|one| same[&Arc::as_ptr(&one.machine)].clone());
        let letters = masks.collect();
        PositionMaskClasses::with(machine, composed, vocabulary, letters)
    }

    /// Returns the masks of the positions, each once.
    fn parts(&self) -> impl Iterator<Item = &PartMasks<K>> {
        let mut parts: Vec<&PartMasks<K>> =
            self.letters.iter().flatten().map(|one| &**one).collect();
        parts.sort_unstable_by_key(|&part| std::ptr::from_ref(part));
        parts.dedup_by_key(|part| std::ptr::from_ref(*part));
        parts.into_iter()
    }

    fn with(
        machine: Arc<K::Machine>,
        composed: Arc<PositionAutomaton<K::Machine>>,
        vocabulary: Arc<Vocabulary>,
        letters: Vec<Option<Arc<PartMasks<K>>>>,
    ) -> PositionMaskClasses<K> {
        let (keys, known, ahead) =
            (ClassTable::default(), ForkSafeMutex::default(), ScratchCache::default());
        PositionMaskClasses { machine, composed, vocabulary, letters, keys, known, ahead }
    }

    /// Creates the mask classes of a lookahead machine, which is a position automaton too.
    pub fn over_composed(
        &self,
        machine: &Arc<K::Machine>,
        composed: &Arc<PositionAutomaton<K::Machine>>,
    ) -> Option<PositionMaskClasses<K>> {
        let mut same: FxHashMap<*const K::Machine, Arc<PartMasks<K>>> = FxHashMap::default();
        let mut letters = Vec::with_capacity(self.letters.len());
        for (part, letter) in self.letters.iter().zip(composed.positions()) {
            letters.push(match (part, same.get(&Arc::as_ptr(&letter.machine))) {
                (None, _) => None,
                (Some(_), Some(made)) => Some(Arc::clone(made)),
                (Some(part), None) => {
                    // `None` if the machine is its own lookahead machine.
                    let keys = part.keys().over_scratch(&letter.machine)?;
                    let memory = MaskMemory::of_one(LOOKAHEAD_MASK_BYTES);
                    let made = Arc::new(PartMasks::new(keys, &self.vocabulary, memory));
                    same.insert(Arc::as_ptr(&letter.machine), Arc::clone(&made));
                    Some(made)
                }
            });
        }
        let (machine, composed) = (Arc::clone(machine), Arc::clone(composed));
        Some(PositionMaskClasses::with(machine, composed, Arc::clone(&self.vocabulary), letters))
    }

    fn known(&self) -> MutexGuard<'_, InternedClasses<K::Machine>> {
        self.known.lock()
    }

    fn find(&self, state: StateId) -> Result<MaskClassId, Error> {
        let mut is_approximate = false;
        let key = self.intern_by(state, &mut |keys, state| {
            let key = keys.mask_class(state)?;
            is_approximate |= keys.is_approximate(state);
            Ok(key)
        })?;
        Ok(self.keys.insert(state, key, is_approximate))
    }

    /// Returns the class of a state, by the mask classes of its parts.
    fn intern_by(
        &self,
        state: StateId,
        key: &mut impl FnMut(&K, StateId) -> Result<MaskClassId, Error>,
    ) -> Result<MaskClassId, Error> {
        let mut items = Vec::new();
        for (letter, state) in self.composed.active_positions(state) {
            items.push(match &self.letters[letter as usize] {
                Some(part) => (letter, key(part.keys(), state)?.number()),
                None => (letter, state.number()),
            });
        }
        items.sort_unstable();
        let known = &mut *self.known();
        Ok(MaskClassId::from_number(match known.states.find(&*items) {
            Some(key) => key,
            None => {
                known.bytes += 8 * items.len() + 48;
                known.states.position_or_insert_with(items.into(), || state)
            }
        }))
    }

    /// Returns a state of a mask class.
    fn state(&self, key: MaskClassId) -> StateId {
        *self.known().states.value(key.number())
    }

    /// Adds the tokens that end a string of a position on their way and continue with what may
    /// follow.
    fn add_leaving(
        &self,
        (letter, state): (u32, StateId),
        part: &PartMasks<K>,
        words: &mut [u32],
    ) -> Result<(), Error> {
        if self.composed.positions()[letter as usize].follows.is_empty() {
            return Ok(());
        }
        let trie = self.vocabulary.trie();
        let Some(ends) = part.ends(state, MAX_END_NODES)? else {
            return self.add_walked(&[(letter, state)], words);
        };
        if ends.is_empty() {
            return Ok(());
        }
        match self.ahead.of(&self.composed) {
            Some(ahead) => {
                let Some(after) = ahead.machine.state_after(letter)? else { return Ok(()) };
                add_below_nodes(
                    &ahead.mask_automaton(),
                    trie,
                    (ahead.scratch_class(after), &ends),
                    words,
                )
            }
            None => {
                let Some(after) = self.composed.state_after(letter)? else { return Ok(()) };
                let after = MaskClassId::from_number(after.number());
                add_below_nodes(&StatesAsClasses::new(&*self.composed), trie, (after, &ends), words)
            }
        }
    }

    /// Adds the tokens from a state inside some positions, byte by byte.
    fn add_walked(&self, items: &[(u32, StateId)], words: &mut [u32]) -> Result<(), Error> {
        match self.ahead.of(&self.composed) {
            Some(ahead) => {
                let Some(state) = ahead.machine.imported_state_of(items)? else { return Ok(()) };
                let key = ahead.scratch_class(state);
                self.add_walked_along((&ahead.mask_automaton(), &ahead.machine), key, words)
            }
            None => {
                let Some(state) = self.composed.state_of(items)? else { return Ok(()) };
                let key = MaskClassId::from_number(state.number());
                let steps = StatesAsClasses::new(&*self.composed);
                self.add_walked_along((&steps, &self.composed), key, words)
            }
        }
    }

    fn add_walked_along(
        &self,
        (steps, machine): (&impl MaskAutomaton, &Arc<PositionAutomaton<K::Machine>>),
        key: MaskClassId,
        words: &mut [u32],
    ) -> Result<(), Error> {
        let Some(other) = steps.reference_class(key)? else {
            let mask = self.walked(steps, key)?;
            mask.join(words);
            return Ok(());
        };
        // Inside a special token most tokens do what they do elsewhere in unconstrained text.
        let known = self.known().base_masks(machine).get(&other.number()).cloned();
        let base = match known {
            Some(base) => base,
            None => {
                let base = self.walked(steps, other)?;
                let known = &mut *self.known();
                let base_masks = known.base_masks(machine);
                if base_masks.len() == MAX_BASE_MASKS {
                    base_masks.clear();
                }
                base_masks.insert(other.number(), base.clone());
                base
            }
        };
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        let pair = (Some(key), Some(other));
        difference(steps, self.vocabulary.trie(), None, pair, &mut add, &mut remove)?;
        let mut own = vec![0; words.len()];
        base.join(&mut own);
        patch(&mut own, &add, &remove);
        words.iter_mut().zip(own).for_each(|(word, more)| *word |= more);
        Ok(())
    }

    fn walked(&self, steps: &impl MaskAutomaton, key: MaskClassId) -> Result<Mask, Error> {
        let mut ids = Vec::new();
        let mut walk = TrieWalk::new(steps, self.vocabulary.trie());
        walk.tokens(key, 0..=255, &mut |tokens| ids.extend_from_slice(tokens))?;
        Ok(Mask::from_ids(&ids, self.vocabulary.len().div_ceil(32)))
    }
}

impl<K: MaskClasses> StateClasses for PositionMaskClasses<K> {
    type Machine = K::Machine;

    fn machine(&self) -> &Arc<K::Machine> {
        &self.machine
    }

    #[inline]
    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        self.keys.get(state).map_or_else(|| self.find(state), Ok)
    }

    fn completion_mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        self.intern_by(state, &mut |keys, state| keys.completion_mask_class(state))
    }

    #[inline]
    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        self.keys.get(state)
    }

    fn visit<P: ClassVisitor>(&self, purpose: P) -> P::Result {
        match self.ahead.of(&self.composed) {
            Some(ahead) => purpose.visit(&MaskingClasses { keys: self, ahead: &ahead }),
            None => purpose.visit(&RepresentativeClasses::new(self, |class| self.state(class))),
        }
    }

    fn visit_accepting<P: AcceptingVisitor>(
        &self,
        state: StateId,
        purpose: P,
    ) -> Result<P::Result, Error> {
        // What is read is in a single position, and ends with it.
        if let [(letter, inner)] = self.composed.active_positions(state)[..]
            && let Some(part) = &self.letters[letter as usize]
            && let position = &self.composed.positions()[letter as usize]
            && position.follows.is_empty()
            && position.last
        {
            return part.keys().visit_accepting(inner, purpose);
        }
        let key = MaskClassId::from_number(state.number());
        Ok(match self.ahead.of(&self.composed) {
            Some(ahead) => purpose.visit(&ahead.mask_automaton(), key),
            None => purpose.visit(&StatesAsClasses::new(&*self.composed), key),
        })
    }

    fn memory_bytes(&self) -> usize {
        let classes: usize = self.parts().map(PartMasks::memory_bytes).sum();
        let known = self.known().bytes;
        let looks = self.ahead.memory_bytes();
        self.keys.memory_bytes() + looks + known + classes
    }
}

impl<K: MaskClasses> MemberEnds for PositionMaskClasses<K> {}

impl<K: MaskClasses> ApproximateClasses for PositionMaskClasses<K> {
    #[inline]
    fn is_approximate(&self, state: StateId) -> bool {
        self.keys.is_approximate(state)
    }

    fn drops_seen_items(&self) -> bool {
        self.letters.iter().flatten().any(|part| part.keys().drops_seen_items())
    }
}

impl<K: MaskClasses> ClassRenewal for PositionMaskClasses<K> {
    fn is_abandoned(&self) -> bool {
        self.known.is_abandoned()
            || self.machine.is_abandoned()
            || self.parts().any(|part| part.masks.is_abandoned())
    }

    fn mask_bytes(&self) -> usize {
        let base_masks: usize = self.known().base_masks.values().map(Mask::memory_bytes).sum();
        base_masks + self.parts().map(|part| part.masks.mask_bytes()).sum::<usize>()
    }
}

/// Mask classes read ahead of the input: those of the input by a representative state, the others
/// as states of a lookahead machine.
struct MaskingClasses<'a, K: MaskClasses> {
    keys: &'a PositionMaskClasses<K>,
    ahead: &'a ScratchMachine<PositionAutomaton<K::Machine>>,
}

impl<K: MaskClasses> MaskingClasses<'_, K> {
    /// Returns the class from which the lookahead machine continues.
    fn lookahead_class(&self, key: MaskClassId) -> MaskClassId {
        match self.ahead.is_scratch_class(key) {
            true => key,
            false => MaskClassId::from_number(self.keys.state(key).number()),
        }
    }
}

impl<K: MaskClasses> ClassAutomaton for MaskingClasses<'_, K> {
    type LexicalMachine = NoLexicalMachine;

    fn step(&self, key: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        self.ahead.step_to_scratch(self.lookahead_class(key), byte)
    }

    fn live_bytes(&self, key: MaskClassId) -> Result<ByteSet, Error> {
        self.ahead.mask_automaton().live_bytes(self.lookahead_class(key))
    }
}

impl<K: MaskClasses> MaskShortcuts for MaskingClasses<'_, K> {
    fn direct_mask(&self, key: MaskClassId) -> Result<Option<Vec<u32>>, Error> {
        if self.ahead.is_scratch_class(key) {
            return Ok(None);
        }
        let keys = self.keys;
        let mut union = MaskUnion::new(keys.vocabulary.len().div_ceil(32));
        let mut together = Vec::new();
        for item in keys.composed.active_positions(keys.state(key)) {
            match &keys.letters[item.0 as usize] {
                Some(part) => {
                    part.masks.with_mask(item.1, |mask| union.add(mask))?;
                    keys.add_leaving(item, part, union.words())?;
                }
                None => together.push(item),
            }
        }
        keys.add_walked(&together, union.words())?;
        Ok(Some(union.into_words()))
    }
}

impl<K: MaskClasses> StringClasses for MaskingClasses<'_, K> {}

impl<K: MaskClasses> ValueClasses for MaskingClasses<'_, K> {}

/// Adds the tokens below nodes, read from the class `after`.
fn add_below_nodes(
    steps: &impl MaskAutomaton,
    trie: &TokenTrie,
    (after, nodes): (MaskClassId, &[u32]),
    words: &mut [u32],
) -> Result<(), Error> {
    let mut walk = TrieWalk::new(steps, trie);
    for &node in nodes {
        walk.below(node, after, &mut |tokens| patch(words, tokens, &[]))?;
    }
    Ok(())
}
