//! Keys of machines in rows, choices and repetitions.
//!
//! A text is in some of the letters of an expression at once, and a token is allowed iff one of them
//! allows it. Letters of regular languages are read together, state by state. Of every other letter
//! the tokens that stay within it are a mask of its own machine, by its own means; the others end a
//! member of the letter on their way, and are few: what follows is read state by state behind these
//! ends. States that are met so are those of a machine to look ahead with.

use std::sync::{Arc, MutexGuard};

use formalm_automata::{
    Ahead, ByteSet, Chunks, Composed, EndPurpose, EndSteps, Error, KeyId, Keys, Lock, Lookahead,
    Machine, NoLexemes, Plainly, Purpose, Repetition, StateId, Steps,
};
use formalm_vocabulary::{TokenTrie, Vocabulary};
use rustc_hash::FxHashMap;

use crate::epoch::StateEpoch;
use crate::mask::{Mask, patch};
use crate::trie_walk::{Walk, difference};

/// Marks states of which a letter forgets something that a few tokens can tell.
const UNSURE: u32 = 1 << 31;

/// So many masks of free text are kept to make others from.
const FREE: usize = 64;

/// A letter with a key of its own, or with its state if its machine is read with others.
type Item = (u32, u32);

/// The states of an expression of machines as keys.
#[derive(Debug)]
pub struct ComposedKeys<K: Keys> {
    machine: Arc<K::Machine>,
    composed: Arc<Composed<K::Machine>>,
    vocabulary: Arc<Vocabulary>,
    /// Of each letter its masks, unless it is read with others.
    letters: Vec<Option<Arc<StateEpoch<K>>>>,
    /// Key of each state and one, where known.
    keys: Chunks,
    known: Lock<Known<K::Machine>>,
    ahead: Lookahead<Composed<K::Machine>>,
}

/// So much is kept for letters of a machine to look ahead with: of those no masks are asked.
const NO_MASKS: usize = 1 << 10;

#[derive(Debug)]
struct Known<M> {
    ids: FxHashMap<Box<[Item]>, u32>,
    /// Of each key the first state that had it.
    states: Vec<StateId>,
    bytes: usize,
    /// Masks of states that texts keep coming back to, and the machine that has these states.
    free: FxHashMap<u32, Mask>,
    free_of: Option<Arc<Composed<M>>>,
}

impl<M> Default for Known<M> {
    fn default() -> Known<M> {
        let (ids, states, free) = Default::default();
        Known { ids, states, bytes: 0, free, free_of: None }
    }
}

impl<M> Known<M> {
    /// The masks of states of a machine.
    fn free(&mut self, machine: &Arc<Composed<M>>) -> &mut FxHashMap<u32, Mask> {
        if self.free_of.as_ref().is_none_or(|of| !Arc::ptr_eq(of, machine)) {
            self.free.clear();
            self.free_of = Some(Arc::clone(machine));
        }
        &mut self.free
    }
}

impl<K: Keys> ComposedKeys<K> {
    /// Keys of a machine that is an expression, for the tokens of a vocabulary. `parts` has keys
    /// for machines with masks of their own; these are kept in `memory_limit_bytes`.
    pub fn new(
        machine: Arc<K::Machine>,
        composed: Arc<Composed<K::Machine>>,
        vocabulary: Arc<Vocabulary>,
        memory_limit_bytes: usize,
        mut parts: impl FnMut(&Arc<K::Machine>) -> Option<K>,
    ) -> ComposedKeys<K> {
        let mut same: FxHashMap<*const K::Machine, Option<K>> = FxHashMap::default();
        for letter in composed.letters() {
            same.entry(Arc::as_ptr(&letter.machine)).or_insert_with(|| parts(&letter.machine));
        }
        let limit = memory_limit_bytes / same.values().flatten().count().max(1);
        let lift = |keys| Arc::new(StateEpoch::over(keys, Arc::clone(&vocabulary), limit));
        let same: FxHashMap<_, Option<Arc<StateEpoch<K>>>> =
            same.into_iter().map(|(machine, keys)| (machine, keys.map(lift))).collect();
        let masks = composed.letters().iter().map(|one| same[&Arc::as_ptr(&one.machine)].clone());
        let letters = masks.collect();
        ComposedKeys::with(machine, composed, vocabulary, letters)
    }

    /// The letters' masks, each once.
    fn parts(&self) -> impl Iterator<Item = &StateEpoch<K>> {
        let mut parts: Vec<&StateEpoch<K>> =
            self.letters.iter().flatten().map(|one| &**one).collect();
        parts.sort_unstable_by_key(|&part| std::ptr::from_ref(part));
        parts.dedup_by_key(|part| std::ptr::from_ref(*part));
        parts.into_iter()
    }

    fn with(
        machine: Arc<K::Machine>,
        composed: Arc<Composed<K::Machine>>,
        vocabulary: Arc<Vocabulary>,
        letters: Vec<Option<Arc<StateEpoch<K>>>>,
    ) -> ComposedKeys<K> {
        let (keys, known, ahead) = (Chunks::default(), Lock::default(), Lookahead::default());
        ComposedKeys { machine, composed, vocabulary, letters, keys, known, ahead }
    }

    /// The same of a machine to look ahead with, which is an expression too.
    pub fn over_composed(
        &self,
        machine: &Arc<K::Machine>,
        composed: &Arc<Composed<K::Machine>>,
    ) -> Option<ComposedKeys<K>> {
        let mut same: FxHashMap<*const K::Machine, Arc<StateEpoch<K>>> = FxHashMap::default();
        let mut letters = Vec::with_capacity(self.letters.len());
        for (part, letter) in self.letters.iter().zip(composed.letters()) {
            letters.push(match (part, same.get(&Arc::as_ptr(&letter.machine))) {
                (None, _) => None,
                (Some(_), Some(made)) => Some(Arc::clone(made)),
                (Some(part), None) => {
                    // None where the machine is its own to look ahead with.
                    let keys = part.keys().over(&letter.machine)?;
                    let vocabulary = Arc::clone(&self.vocabulary);
                    let made = Arc::new(StateEpoch::over(keys, vocabulary, NO_MASKS));
                    same.insert(Arc::as_ptr(&letter.machine), Arc::clone(&made));
                    Some(made)
                }
            });
        }
        let (machine, composed) = (Arc::clone(machine), Arc::clone(composed));
        Some(ComposedKeys::with(machine, composed, Arc::clone(&self.vocabulary), letters))
    }

    fn known(&self) -> MutexGuard<'_, Known<K::Machine>> {
        self.known.lock()
    }

    fn find(&self, state: StateId) -> Result<u32, Error> {
        let mut unsure = 0;
        let key = self.find_by(state, &mut |keys, state| {
            let key = keys.key(state)?;
            unsure |= if keys.is_unsure(state) { UNSURE } else { 0 };
            Ok(key)
        })?;
        self.keys.set(state.number() as usize, (key + 1) | unsure);
        Ok(key)
    }

    /// The number of a state by the keys of its parts.
    fn find_by(
        &self,
        state: StateId,
        key: &mut impl FnMut(&K, StateId) -> Result<KeyId, Error>,
    ) -> Result<u32, Error> {
        let mut items = Vec::new();
        for (letter, state) in self.composed.items(state) {
            items.push(match &self.letters[letter as usize] {
                Some(part) => (letter, key(part.keys(), state)?.number()),
                None => (letter, state.number()),
            });
        }
        items.sort_unstable();
        let known = &mut *self.known();
        let next = known.states.len() as u32;
        Ok(match known.ids.get(&*items) {
            Some(&key) => key,
            None => {
                known.bytes += 8 * items.len() + 48;
                known.states.push(state);
                known.ids.insert(items.into(), next);
                next
            }
        })
    }

    /// A state with a key.
    fn state(&self, key: KeyId) -> StateId {
        self.known().states[key.number() as usize]
    }

    /// Tokens that end a member of a letter on their way, and go on with what may follow.
    fn add_leaving(
        &self,
        (letter, state): (u32, StateId),
        part: &StateEpoch<K>,
        words: &mut [u32],
    ) -> Result<(), Error> {
        let machine = &self.composed.letters()[letter as usize].machine;
        if machine.owed_bytes(state)? >= self.vocabulary.longest_token_bytes() {
            return Ok(());
        }
        let trie = self.vocabulary.trie();
        let Some(ends) = part.keys().read_ends(state, Ends { trie })?? else {
            return self.add_walked(&[(letter, state)], words);
        };
        match self.ahead.of(&self.composed) {
            Some(ahead) => {
                let Some(behind) = ahead.machine.state_behind(letter)? else { return Ok(()) };
                add_behind(&ahead.steps(), trie, (ahead.own(behind), &ends), words)
            }
            None => {
                let Some(behind) = self.composed.state_behind(letter)? else { return Ok(()) };
                let behind = KeyId::from_number(behind.number());
                add_behind(&Plainly::new(&*self.composed), trie, (behind, &ends), words)
            }
        }
    }

    /// Tokens from a state within some letters, byte by byte.
    fn add_walked(&self, items: &[(u32, StateId)], words: &mut [u32]) -> Result<(), Error> {
        match self.ahead.of(&self.composed) {
            Some(ahead) => {
                let Some(state) = ahead.machine.entered_within(items)? else { return Ok(()) };
                let key = ahead.own(state);
                self.add_walked_along((&ahead.steps(), &ahead.machine), key, words)
            }
            None => {
                let Some(state) = self.composed.state_within(items)? else { return Ok(()) };
                let key = KeyId::from_number(state.number());
                let steps = Plainly::new(&*self.composed);
                self.add_walked_along((&steps, &self.composed), key, words)
            }
        }
    }

    fn add_walked_along(
        &self,
        (steps, machine): (&impl Steps, &Arc<Composed<K::Machine>>),
        key: KeyId,
        words: &mut [u32],
    ) -> Result<(), Error> {
        let Some(other) = steps.reference(key)? else {
            let mask = self.walked(steps, key)?;
            mask.join(words);
            return Ok(());
        };
        // In the midst of a mark most tokens do what they do elsewhere in free text.
        let known = self.known().free(machine).get(&other.number()).cloned();
        let base = match known {
            Some(base) => base,
            None => {
                let base = self.walked(steps, other)?;
                let known = &mut *self.known();
                let free = known.free(machine);
                if free.len() == FREE {
                    free.clear();
                }
                free.insert(other.number(), base.clone());
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

    fn walked(&self, steps: &impl Steps, key: KeyId) -> Result<Mask, Error> {
        let mut ids = Vec::new();
        let mut walk = Walk::new(steps, self.vocabulary.trie());
        walk.tokens(key, 0..=255, &mut |tokens| ids.extend_from_slice(tokens))?;
        Ok(Mask::from_ids(&ids, self.vocabulary.len().div_ceil(32)))
    }
}

impl<K: Keys> Keys for ComposedKeys<K> {
    type Machine = K::Machine;

    fn machine(&self) -> &Arc<K::Machine> {
        &self.machine
    }

    #[inline]
    fn key(&self, state: StateId) -> Result<KeyId, Error> {
        match self.keys.get(state.number() as usize) & !UNSURE {
            0 => self.find(state).map(KeyId::from_number),
            key => Ok(KeyId::from_number(key - 1)),
        }
    }

    fn lasting_key(&self, state: StateId) -> Result<KeyId, Error> {
        let key = self.find_by(state, &mut |keys, state| keys.lasting_key(state))?;
        Ok(KeyId::from_number(key))
    }

    #[inline]
    fn known_key(&self, state: StateId) -> Option<KeyId> {
        let key = self.keys.get(state.number() as usize) & !UNSURE;
        key.checked_sub(1).map(KeyId::from_number)
    }

    #[inline]
    fn is_unsure(&self, state: StateId) -> bool {
        self.keys.get(state.number() as usize) & UNSURE != 0
    }

    fn forgets_items(&self) -> bool {
        self.letters.iter().flatten().any(|part| part.keys().forgets_items())
    }

    fn read<P: Purpose>(&self, purpose: P) -> P::Result {
        match self.ahead.of(&self.composed) {
            Some(ahead) => purpose.read(&Masking { keys: self, ahead: &ahead }),
            None => purpose.read(&Onward(self)),
        }
    }

    fn read_ends<P: EndPurpose>(&self, state: StateId, purpose: P) -> Result<P::Result, Error> {
        let key = KeyId::from_number(state.number());
        Ok(match self.ahead.of(&self.composed) {
            Some(ahead) => purpose.read(&ahead.steps(), key),
            None => purpose.read(&Plainly::new(&*self.composed), key),
        })
    }

    fn is_abandoned(&self) -> bool {
        self.known.is_abandoned()
            || self.machine.is_abandoned()
            || self.parts().any(StateEpoch::is_abandoned)
    }

    fn memory_bytes(&self) -> usize {
        let parts = self.parts().map(|part| part.sizes());
        let classes: usize = parts.map(|sizes| sizes.classes + sizes.completions).sum();
        let known = self.known().bytes;
        let looks = self.ahead.memory_bytes();
        self.keys.memory_bytes() + looks + known + classes + self.mask_bytes()
    }

    fn mask_bytes(&self) -> usize {
        let free: usize = self.known().free.values().map(Mask::memory_bytes).sum();
        free + self.parts().map(|part| part.sizes().masks).sum::<usize>()
    }
}

/// Keys of a machine to look ahead with, each by a state that has it.
struct Onward<'a, K: Keys>(&'a ComposedKeys<K>);

impl<K: Keys> Steps for Onward<'_, K> {
    type Lexemes = NoLexemes;

    fn lexemes(&self) -> Option<&NoLexemes> {
        None
    }

    fn step(&self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        match self.0.composed.step(self.0.state(key), byte)? {
            Some(next) => self.0.key(next).map(Some),
            None => Ok(None),
        }
    }

    fn live_bytes(&self, key: KeyId) -> Result<ByteSet, Error> {
        self.0.composed.live_bytes(self.0.state(key))
    }

    fn repetition(&self, _: KeyId) -> Result<Option<Repetition>, Error> {
        Ok(None)
    }
}

/// Keys read ahead of the text, for masks: those of the text by a state that has them, the others
/// are states of a machine to look ahead with.
struct Masking<'a, K: Keys> {
    keys: &'a ComposedKeys<K>,
    ahead: &'a Ahead<Composed<K::Machine>>,
}

impl<K: Keys> Masking<'_, K> {
    /// The key to read on from with a machine to look ahead with.
    fn onward(&self, key: KeyId) -> KeyId {
        match self.ahead.is_own(key) {
            true => key,
            false => KeyId::from_number(self.keys.state(key).number()),
        }
    }
}

impl<K: Keys> Steps for Masking<'_, K> {
    type Lexemes = NoLexemes;

    fn lexemes(&self) -> Option<&NoLexemes> {
        None
    }

    fn step(&self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        self.ahead.step_to_own(self.onward(key), byte)
    }

    fn live_bytes(&self, key: KeyId) -> Result<ByteSet, Error> {
        self.ahead.steps().live_bytes(self.onward(key))
    }

    fn mask(&self, key: KeyId) -> Result<Option<Vec<u32>>, Error> {
        if self.ahead.is_own(key) {
            return Ok(None);
        }
        let keys = self.keys;
        let mut words = vec![0; keys.vocabulary.len().div_ceil(32)];
        let mut together = Vec::new();
        for item in keys.composed.items(keys.state(key)) {
            match &keys.letters[item.0 as usize] {
                Some(part) => {
                    part.with_mask(item.1, |mask| mask.join(&mut words))?;
                    keys.add_leaving(item, part, &mut words)?;
                }
                None => together.push(item),
            }
        }
        keys.add_walked(&together, &mut words)?;
        Ok(Some(words))
    }

    fn repetition(&self, _: KeyId) -> Result<Option<Repetition>, Error> {
        Ok(None)
    }
}

/// Adds the tokens that go on from nodes with what is behind them.
fn add_behind(
    steps: &impl Steps,
    trie: &TokenTrie,
    (behind, nodes): (KeyId, &[u32]),
    words: &mut [u32],
) -> Result<(), Error> {
    let mut walk = Walk::new(steps, trie);
    for &node in nodes {
        walk.below(node, behind, &mut |tokens| patch(words, tokens, &[]))?;
    }
    Ok(())
}

/// Nodes of a trie at which members end.
struct Ends<'a> {
    trie: &'a TokenTrie,
}

impl EndPurpose for Ends<'_> {
    type Result = Result<Option<Vec<u32>>, Error>;

    fn read(self, steps: &impl EndSteps, key: KeyId) -> Self::Result {
        Walk::new(steps, self.trie).ends(key)
    }
}
