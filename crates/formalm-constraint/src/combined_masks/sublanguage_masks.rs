//! Mask classes of machines that leave parts of their input to the machines of sublanguages, such as
//! a grammar with JSON schemas in its rules.
//!
//! ```text
//!  host      NAME "("  ┌──────────────┐  ")" ";"
//!  input     find   (  │ {"name": "Jo │ "}) ;          token  "});
//!                      └──────────────┘
//!   inside:  the mask of the sublanguage's machine, by its mask class
//!   leaving: "}  ends a member, at a trie node; the host reads  );  from there
//! ```
//!
//! A class of the host is a list of configurations. One inside a sublanguage counts as the mask
//! class of that machine's state, so inputs that the sublanguage does not distinguish share their
//! masks. The tokens that stay inside are a mask of the sublanguage's machine, which is cached with
//! its own classes. The tokens that leave it continue at the trie nodes where a member ends. These
//! nodes are a lexeme's end to the host, see [`crate::lexical`].
//!
//! Where the host cannot tell by its lexer and parser what may follow, bytes are read one by one.

use std::collections::hash_map::Entry;
use std::sync::{Arc, MutexGuard};

use formalm_core::{
    ByteSet, Error, ForkSafeMutex, LazyDfa, Machine, MaskClassId, Renewal, StateId,
};
use formalm_machines::{
    AcceptingMaskAutomaton, AcceptingVisitor, ApproximateClasses, CharRepetition, ClassAutomaton,
    ClassRenewal, ClassTable, ClassVisitor, HostConfiguration, MaskAutomaton, MaskClasses,
    MaskShortcuts, MemberEnds, NoLexicalMachine, RepresentativeClasses, StateClasses,
    StringClasses, SublanguageHost, SublanguageTables, ValueClasses, self_loop_repetition,
};
use formalm_vocabulary::{TokenTrie, Vocabulary};
use rustc_hash::FxHashMap;

use crate::combined_masks::part_masks::PartMasks;
use crate::lexical::{LexicalMasks, SublanguageTokens};
use crate::mask::{Mask, patch};
use crate::mask_cache::MaskMemory;
use crate::trie_walk::TrieWalk;

/// Flag of classes that are classes of the host, met while reading byte by byte.
const HOST_CLASS: u32 = 1 << 30;

/// Memory for masks of sublanguages of a lookahead machine, which are never queried, in bytes.
const LOOKAHEAD_MASK_BYTES: usize = 1 << 10;

/// In place of the terminal, for a configuration outside sublanguages.
const NO_SUBLANGUAGE: u32 = u32::MAX;

/// A configuration up to what tokens distinguish: terminal, mask class, and the rest.
type ConfigurationClass = [u32; 5];

/// The mask classes of a host, `H`, whose sublanguages have mask classes `K`.
#[derive(Debug)]
pub struct SublanguageMaskClasses<H, K: MaskClasses> {
    host: H,
    vocabulary: Arc<Vocabulary>,
    /// The masks of each sublanguage, by terminal.
    parts: FxHashMap<u32, Arc<PartMasks<K>>>,
    lexical: LexicalMasks,
    keys: ClassTable,
    known: ForkSafeMutex<InternedClasses>,
    /// `true` if the host is dropped with a search: classes are then read on its states.
    is_lookahead: bool,
}

#[derive(Debug, Default)]
struct InternedClasses {
    ids: FxHashMap<Box<[ConfigurationClass]>, u32>,
    /// The first state of each mask class.
    states: Vec<StateId>,
    bytes: usize,
}

impl<H: SublanguageHost, K: MaskClasses> SublanguageMaskClasses<H, K> {
    /// Creates the mask classes of a host for a vocabulary. `parts` returns the mask classes of a
    /// sublanguage's machine, which must distinguish members from other inputs; their masks are
    /// cached in `memory_limit_bytes`. Returns the host if it has no sublanguages, or one without
    /// mask classes.
    ///
    /// # Errors
    ///
    /// The host, unchanged.
    pub fn new(
        host: H,
        vocabulary: Arc<Vocabulary>,
        memory_limit_bytes: usize,
        mut parts: impl FnMut(&Arc<dyn Machine>) -> Option<K>,
    ) -> Result<SublanguageMaskClasses<H, K>, H> {
        let machines = host.sublanguage_machines();
        let address = |machine: &Arc<dyn Machine>| Arc::as_ptr(machine).cast::<()>();
        let mut same: FxHashMap<*const (), K> = FxHashMap::default();
        for (_, machine) in &machines {
            if let Entry::Vacant(place) = same.entry(address(machine)) {
                let Some(keys) = parts(machine) else { return Err(host) };
                place.insert(keys);
            }
        }
        if same.is_empty() {
            return Err(host);
        }
        let memory = MaskMemory::of_several(memory_limit_bytes, same.len());
        let lift = |keys| Arc::new(PartMasks::new(keys, &vocabulary, memory.clone()));
        let same: FxHashMap<*const (), Arc<PartMasks<K>>> =
            same.into_iter().map(|(machine, keys)| (machine, lift(keys))).collect();
        let parts = machines
            .iter()
            .map(|(terminal, machine)| (*terminal, Arc::clone(&same[&address(machine)])))
            .collect();
        Ok(SublanguageMaskClasses::with(host, vocabulary, parts, false))
    }

    /// Creates the mask classes of a scratch host. `parts` returns the mask classes of the scratch
    /// copy of a sublanguage's machine, given those of the machine. Returns `None` if it does.
    pub fn over_scratch_host(
        &self,
        host: H,
        mut parts: impl FnMut(&K, &Arc<dyn Machine>) -> Option<K>,
    ) -> Option<SublanguageMaskClasses<H, K>> {
        let mut own = FxHashMap::default();
        let memory = MaskMemory::of_several(LOOKAHEAD_MASK_BYTES, 1);
        for (terminal, machine) in host.sublanguage_machines() {
            let part = self.parts.get(&terminal)?;
            let original = Arc::as_ptr(part.masks.machine()).cast::<()>();
            let scratch = match Arc::as_ptr(&machine).cast::<()>() == original {
                // The machine serves its own lookahead.
                true => Arc::clone(part),
                false => {
                    let keys = parts(part.keys(), &machine)?;
                    Arc::new(PartMasks::new(keys, &self.vocabulary, memory.clone()))
                }
            };
            own.insert(terminal, scratch);
        }
        Some(SublanguageMaskClasses::with(host, Arc::clone(&self.vocabulary), own, true))
    }

    fn with(
        host: H,
        vocabulary: Arc<Vocabulary>,
        parts: FxHashMap<u32, Arc<PartMasks<K>>>,
        is_lookahead: bool,
    ) -> SublanguageMaskClasses<H, K> {
        SublanguageMaskClasses {
            host,
            vocabulary,
            parts,
            lexical: LexicalMasks::default(),
            keys: ClassTable::default(),
            known: ForkSafeMutex::default(),
            is_lookahead,
        }
    }

    /// Returns the mask classes of the host.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// Returns the masks of the sublanguages, each once.
    fn distinct_parts(&self) -> impl Iterator<Item = &PartMasks<K>> {
        let mut parts: Vec<&PartMasks<K>> = self.parts.values().map(|one| &**one).collect();
        parts.sort_unstable_by_key(|&part| std::ptr::from_ref(part));
        parts.dedup_by_key(|part| std::ptr::from_ref(*part));
        parts.into_iter()
    }

    fn known(&self) -> MutexGuard<'_, InternedClasses> {
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

    /// Returns a state's class, given those of its sublanguages' states.
    fn intern_by(
        &self,
        state: StateId,
        key: &mut impl FnMut(&K, StateId) -> Result<MaskClassId, Error>,
    ) -> Result<MaskClassId, Error> {
        let mut items: Vec<ConfigurationClass> = Vec::new();
        for HostConfiguration { sublanguage, rest } in self.host.host_configurations(state) {
            let [lexeme, place, threads] = rest;
            items.push(match sublanguage {
                None => [NO_SUBLANGUAGE, 0, lexeme, place, threads],
                Some((terminal, state)) => {
                    let class = match self.parts.get(&terminal) {
                        Some(part) => key(part.keys(), state)?.number(),
                        None => state.number(),
                    };
                    [terminal, class, lexeme, place, threads]
                }
            });
        }
        items.sort_unstable();
        // Inputs that a sublanguage does not distinguish are one.
        items.dedup();
        let known = &mut *self.known();
        if let Some(&class) = known.ids.get(&*items) {
            return Ok(MaskClassId::from_number(class));
        }
        let class = known.states.len() as u32;
        known.bytes += size_of::<ConfigurationClass>() * items.len() + 48;
        known.states.push(state);
        known.ids.insert(items.into(), class);
        Ok(MaskClassId::from_number(class))
    }

    /// Returns the state that represents a class.
    fn first_state(&self, key: MaskClassId) -> StateId {
        self.known().states[key.number() as usize]
    }

    /// Returns the class of the host for a class, which is represented by its first state.
    fn host_class(&self, key: MaskClassId) -> Result<MaskClassId, Error> {
        match key.number() & HOST_CLASS {
            0 => self.host.mask_class(self.first_state(key)),
            _ => Ok(MaskClassId::from_number(key.number() & !HOST_CLASS)),
        }
    }
}

impl<H: SublanguageHost, K: MaskClasses> StateClasses for SublanguageMaskClasses<H, K> {
    type Machine = H::Machine;

    fn machine(&self) -> &Arc<H::Machine> {
        self.host.machine()
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
        match self.is_lookahead {
            // Classes of the host tell apart all inputs; those here only what tokens distinguish.
            true => {
                purpose.visit(&RepresentativeClasses::new(self, |class| self.first_state(class)))
            }
            false => self.host.visit(HostVisitor { keys: self, purpose }),
        }
    }

    fn visit_accepting<P: AcceptingVisitor>(
        &self,
        state: StateId,
        purpose: P,
    ) -> Result<P::Result, Error> {
        self.host.visit_accepting(state, purpose)
    }

    fn memory_bytes(&self) -> usize {
        let classes: usize = self.distinct_parts().map(PartMasks::memory_bytes).sum();
        let own = self.keys.memory_bytes() + self.known().bytes + self.lexical.memory_bytes();
        self.host.memory_bytes() + own + classes
    }
}

impl<H: SublanguageHost, K: MaskClasses> MemberEnds for SublanguageMaskClasses<H, K> {}

impl<H: SublanguageHost, K: MaskClasses> ApproximateClasses for SublanguageMaskClasses<H, K> {
    #[inline]
    fn is_approximate(&self, state: StateId) -> bool {
        self.keys.is_approximate(state)
    }

    fn drops_seen_items(&self) -> bool {
        self.parts.values().any(|part| part.keys().drops_seen_items())
    }
}

impl<H: SublanguageHost, K: MaskClasses> ClassRenewal for SublanguageMaskClasses<H, K> {
    fn is_abandoned(&self) -> bool {
        self.known.is_abandoned()
            || self.machine().is_abandoned()
            || self.distinct_parts().any(|part| part.masks.is_abandoned())
    }

    fn mask_bytes(&self) -> usize {
        self.distinct_parts().map(|part| part.masks.mask_bytes()).sum()
    }
}

/// Runs a visitor on the classes of the host, with masks of their own.
struct HostVisitor<'a, H, K: MaskClasses, P> {
    keys: &'a SublanguageMaskClasses<H, K>,
    purpose: P,
}

impl<H: SublanguageHost, K: MaskClasses, P: ClassVisitor> ClassVisitor
    for HostVisitor<'_, H, K, P>
{
    type Result = P::Result;

    fn visit(self, steps: &impl MaskAutomaton) -> P::Result {
        self.purpose.visit(&HostSteps { keys: self.keys, steps })
    }
}

/// The classes of [`SublanguageMaskClasses`], read on the classes of the host.
struct HostSteps<'a, H, K: MaskClasses, S> {
    keys: &'a SublanguageMaskClasses<H, K>,
    steps: &'a S,
}

impl<H: SublanguageHost, K: MaskClasses, S: MaskAutomaton> ClassAutomaton
    for HostSteps<'_, H, K, S>
{
    type LexicalMachine = NoLexicalMachine;

    fn step(&self, key: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        let next = self.steps.step(self.keys.host_class(key)?, byte)?;
        Ok(next.map(|next| MaskClassId::from_number(next.number() | HOST_CLASS)))
    }

    fn live_bytes(&self, key: MaskClassId) -> Result<ByteSet, Error> {
        self.steps.live_bytes(self.keys.host_class(key)?)
    }

    fn char_repetition(&self, key: MaskClassId) -> Result<Option<CharRepetition>, Error> {
        self_loop_repetition(self, key, 1)
    }
}

impl<H: SublanguageHost, K: MaskClasses, S: MaskAutomaton> MaskShortcuts
    for HostSteps<'_, H, K, S>
{
    fn direct_mask(&self, key: MaskClassId) -> Result<Option<Vec<u32>>, Error> {
        if key.number() & HOST_CLASS != 0 {
            return Ok(None);
        }
        let Some(lexemes) = self.steps.lexical_machine() else { return Ok(None) };
        let keys = self.keys;
        let class = keys.host_class(key)?;
        let mut words = vec![0; keys.vocabulary.len().div_ceil(32)];
        if let Some(mask) = keys.lexical.mask(lexemes, &keys.vocabulary, class, Some(keys))? {
            mask.join(&mut words);
            return Ok(Some(words));
        }
        Ok(self.add_all(lexemes, class, &mut words)?.then_some(words))
    }
}

impl<H: SublanguageHost, K: MaskClasses, S: MaskAutomaton> HostSteps<'_, H, K, S> {
    /// Adds the tokens of a class of the host: those that stay inside a sublanguage by its masks,
    /// the others byte by byte. Returns `false` if it has no positions inside sublanguages, or one
    /// that depends on more than these.
    fn add_all(
        &self,
        lexemes: &S::LexicalMachine,
        class: MaskClassId,
        words: &mut [u32],
    ) -> Result<bool, Error> {
        let (keys, steps) = (self.keys, self.steps);
        let positions = lexemes.sublanguage_positions(class)?.unwrap_or_default();
        if positions.is_empty() {
            return Ok(false);
        }
        let mut walk = TrieWalk::new(steps, keys.vocabulary.trie());
        for position in &positions {
            let (terminal, state) = (position.terminal, position.state);
            keys.mask(terminal, state)?.join(words);
            let ends = keys.ends(terminal, state)?;
            if ends.is_empty() {
                continue;
            }
            let Some(after) = lexemes.class_after_sublanguage(position)? else { continue };
            for node in ends {
                walk.below(node, after, &mut |tokens| patch(words, tokens, &[]))?;
            }
        }
        if let Some(outside) = lexemes.class_outside_sublanguages(class) {
            walk.tokens(outside, 0..=255, &mut |tokens| patch(words, tokens, &[]))?;
        }
        Ok(true)
    }
}

impl<H: SublanguageHost, K: MaskClasses, S: MaskAutomaton> StringClasses
    for HostSteps<'_, H, K, S>
{
}

impl<H: SublanguageHost, K: MaskClasses, S: MaskAutomaton> ValueClasses for HostSteps<'_, H, K, S> {}

impl<H: SublanguageHost, K: MaskClasses> SublanguageTokens for SublanguageMaskClasses<H, K> {
    fn start(&self, terminal: u32) -> Option<StateId> {
        Some(self.parts.get(&terminal)?.masks.machine().start())
    }

    fn class(&self, terminal: u32, state: StateId) -> Result<u32, Error> {
        match self.parts.get(&terminal) {
            Some(part) => Ok(part.keys().mask_class(state)?.number()),
            None => Ok(state.number()),
        }
    }

    fn mask(&self, terminal: u32, state: StateId) -> Result<Mask, Error> {
        match self.parts.get(&terminal) {
            Some(part) => part.masks.with_mask(state, Mask::clone),
            None => Ok(Mask::from_ids(&[], 0)),
        }
    }

    fn ends(&self, terminal: u32, state: StateId) -> Result<Vec<u32>, Error> {
        let Some(part) = self.parts.get(&terminal) else { return Ok(Vec::new()) };
        Ok(part.ends(state, usize::MAX)?.unwrap_or_default())
    }

    fn below(&self, terminal: u32, nodes: &[u32]) -> Result<(Vec<u32>, Vec<u32>), Error> {
        let Some(part) = self.parts.get(&terminal) else { return Ok(Default::default()) };
        let trie = self.vocabulary.trie();
        part.keys().visit_accepting(part.masks.machine().start(), FromNodes { trie, nodes })?
    }
}

/// The tokens at and below nodes that are viable from a class, read from the bytes of these nodes
/// on, and the trie nodes among them at which a string of the language ends.
struct FromNodes<'a> {
    trie: &'a TokenTrie,
    nodes: &'a [u32],
}

impl AcceptingVisitor for FromNodes<'_> {
    type Result = Result<(Vec<u32>, Vec<u32>), Error>;

    fn visit(self, steps: &impl AcceptingMaskAutomaton, key: MaskClassId) -> Self::Result {
        let mut walk = TrieWalk::new(steps, self.trie);
        let mut tokens = Vec::new();
        for &node in self.nodes {
            let byte = self.trie.nodes()[node as usize].byte();
            if let Some(next) = steps.step(key, byte)? {
                walk.subtree(node, next, &mut |some| tokens.extend_from_slice(some))?;
            }
        }
        let ends = walk.ends_from(key, self.nodes, usize::MAX)?.unwrap_or_default();
        Ok((tokens, ends))
    }
}
