//! The states that tokens lead to in the language alone, whatever the pre-token boundaries.
//!
//! They are computed once per state, and once per mask class for machines with a stack. In
//! unconstrained text most tokens lead back to the state they start from. These are the same for
//! all states that loop on the same characters
//! ([`ExitTargets`](formalm_vocabulary::bpe::ExitTargets)); the others are read from where they
//! leave these characters. Below there a walk takes whole subtrees of the vocabulary if the bytes
//! below a node spell characters on which the state loops.

use std::sync::Arc;

use formalm_core::{Error, LazyDfa, MaskClassId, ReadingHints, StateId, map_slot_bytes};
use formalm_machines::{ClassVisitor, MaskAutomaton, MaskClasses, StatesAsClasses};
use formalm_vocabulary::bpe::{CoarseCharClass, TokenSet, TokenTransitions};
use rustc_hash::FxHashMap;

use super::ProductContext;
use super::tokens_by_target::{ClassSelfLoops, ClassTargets, TargetGroup, class_targets};

/// Maximum size of the cache, in bytes; beyond it everything is dropped. 16 MiB; chosen, not
/// measured.
const MAX_BYTES: usize = 16 << 20;

/// The targets of all tokens from one state.
#[derive(Debug)]
pub(crate) struct LanguageTargets {
    /// The characters on which the state loops, if any. Tokens with a transition and no other
    /// characters lead back to the state.
    pub(crate) loop_class: Option<CoarseCharClass>,
    /// The other tokens with a transition, grouped by target.
    pub(crate) groups: Vec<(StateId, Arc<TokenSet>)>,
    /// The positions of tokens without a transition.
    pub(crate) untabulated: Vec<(u32, StateId)>,
}

/// The cache.
#[derive(Debug, Default)]
pub(crate) struct LanguageTargetCache {
    known: FxHashMap<u32, Arc<LanguageTargets>>,
    loops: FxHashMap<u32, ClassSelfLoops>,
    bytes: usize,
}

impl LanguageTargetCache {
    /// Returns the targets, from a state, of the tokens that begin at a character boundary.
    ///
    /// For a machine with a stack, tokens are read along its mask classes, and one token represents
    /// all that lead to the same class; otherwise every input could create new states.
    pub(crate) fn of<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        transitions: &TokenTransitions,
        state: StateId,
    ) -> Result<Arc<LanguageTargets>, Error> {
        if let Some(known) = self.known.get(&state.number()) {
            return Ok(Arc::clone(known));
        }
        if self.bytes > MAX_BYTES {
            self.known.clear();
            self.bytes = 0;
        }
        let (vocabulary, machine) = (context.vocabulary, context.machine);
        let ClassTargets { loop_class, groups: found, untabulated: others, .. } =
            match machine.is_finite() {
                true => {
                    let key = MaskClassId::from_number(state.number());
                    class_targets(
                        context,
                        transitions,
                        &StatesAsClasses::new(machine),
                        (key, false),
                        &mut self.loops,
                    )?
                }
                false => {
                    let key = context.keys.mask_class(state)?;
                    let visit = |may_stand_in| {
                        context.keys.visit(ReadTokens { context, transitions, key, may_stand_in })
                    };
                    let found = visit(true)?;
                    match found.stood_in_after {
                        Some(read) if !context.ends_alike(state, read)? => visit(false)?,
                        _ => found,
                    }
                }
            };
        // The state of each mask class that tokens lead to, by a token that does.
        let mut states: FxHashMap<u32, StateId> = FxHashMap::default();
        let mut state_of = |key: MaskClassId, first: u32| {
            if machine.is_finite() {
                return Ok(Some(StateId::from_number(key.number())));
            }
            if let Some(&known) = states.get(&key.number()) {
                return Ok(Some(known));
            }
            let bytes = vocabulary.token_bytes(first).unwrap_or_default();
            let there = machine.walk(state, bytes)?.ok();
            states.extend(there.map(|there| (key.number(), there)));
            Ok::<_, Error>(there)
        };
        let mut groups = Vec::with_capacity(found.len());
        for TargetGroup { key, first, tokens } in found {
            groups.extend(state_of(key, first)?.map(|there| (there, tokens)));
        }
        let mut untabulated = Vec::with_capacity(others.len());
        let tokens = context.encoder.untabulated_tokens(vocabulary);
        for (at, key) in others {
            untabulated.extend(state_of(key, tokens.token(at))?.map(|there| (at, there)));
        }
        let class_targets = Arc::new(LanguageTargets { loop_class, groups, untabulated });
        let bytes: usize =
            class_targets.groups.iter().map(|group| 32 + group.1.memory_bytes()).sum();
        let list = size_of::<LanguageTargets>() + 2 * size_of::<usize>();
        self.bytes += list + bytes + 8 * class_targets.untabulated.capacity();
        self.known.insert(state.number(), Arc::clone(&class_targets));
        Ok(class_targets)
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + map_slot_bytes(&self.known) + map_slot_bytes(&self.loops)
    }
}

/// Reads the tokens from a mask class.
struct ReadTokens<'a, K: MaskClasses> {
    context: ProductContext<'a, K>,
    transitions: &'a TokenTransitions,
    key: MaskClassId,
    may_stand_in: bool,
}

impl<K: MaskClasses> ClassVisitor for ReadTokens<'_, K> {
    type Result = Result<ClassTargets, Error>;

    fn visit(self, steps: &impl MaskAutomaton) -> Self::Result {
        // Mask classes of the lookahead are meaningless afterwards, and so are their loops.
        let ReadTokens { context, transitions, key, may_stand_in } = self;
        class_targets(context, transitions, steps, (key, may_stand_in), &mut FxHashMap::default())
    }
}
