//! Masks read on abstract states, for machines whose states also encode what was read where that
//! can only forbid repetition, such as property names.
//!
//! Inside a name of a JSON object, every token leads to another state, and each of them would have
//! to be shown to be live. Their abstract states are few. A token is allowed where a completion of
//! the abstract state is known to complete the state, too; the others are read from the state
//! itself.

use std::sync::Arc;

use formalm_core::{ByteSet, Error, Machine, MaskClassId, SetOnce, StateId};
use formalm_machines::{
    AcceptingVisitor, ApproximateClasses, ClassAutomaton, ClassRenewal, ClassVisitor,
    IdentityClasses, MaskShortcuts, MemberEnds, NoLexicalMachine, ScratchMachine, StateClasses,
    StatesAsClasses, StringClasses, ValueClasses,
};
use formalm_vocabulary::Vocabulary;

use crate::mask::patch;
use crate::tokens_by_abstract_state::tokens_by_abstract_state;
use crate::trie_walk;

/// Maximum number of abstract states that the tokens of one mask may lead to; each needs a
/// completion. Chosen, not measured.
const MAX_NEXT_STATES: usize = 1 << 12;

/// Maximum number of tokens that are asked about one by one. Chosen, not measured.
const MAX_ASKED_TOKENS: usize = 1 << 10;

/// The states of a machine as its mask classes, with masks found on abstract states.
#[derive(Debug)]
pub struct AbstractStateClasses<M> {
    states: IdentityClasses<M>,
    vocabulary: Arc<Vocabulary>,
    /// Tokens that must be read from the concrete state, sorted.
    recheck_tokens: SetOnce<Vec<u32>>,
}

impl<M: Machine> AbstractStateClasses<M> {
    /// Creates the classes of a machine for a vocabulary.
    pub fn new(machine: Arc<M>, vocabulary: Arc<Vocabulary>) -> AbstractStateClasses<M> {
        AbstractStateClasses {
            states: IdentityClasses::new(machine),
            vocabulary,
            recheck_tokens: SetOnce::new(),
        }
    }

    /// Returns a test for tokens that must be read from the concrete state. Few tokens are asked
    /// about one by one, many are looked up in a list.
    fn recheck_test<'a>(
        &'a self,
        machine: &'a M,
        count: usize,
    ) -> impl Fn(u32, &[u8]) -> bool + use<'a, M> {
        let listed = match self.recheck_tokens.get() {
            None if count <= MAX_ASKED_TOKENS => None,
            _ => Some(
                self.recheck_tokens
                    .get_or_init(|| trie_walk::recheck_tokens(machine, &self.vocabulary)),
            ),
        };
        move |token, bytes| match listed {
            Some(listed) => listed.binary_search(&token).is_ok(),
            None => machine.input_needs_recheck(bytes),
        }
    }

    /// Returns the bitmask of a state; `None` if its tokens lead to too many abstract states.
    fn mask(&self, machine: &M, state: StateId) -> Result<Option<Vec<u32>>, Error> {
        let trie = self.vocabulary.trie();
        let groups = tokens_by_abstract_state(machine, trie, state, MAX_NEXT_STATES)?;
        let Some(groups) = groups else { return Ok(None) };
        let mut words = vec![0; self.vocabulary.len().div_ceil(32)];
        for (next, tokens) in groups {
            let completion = machine.any_completion(next)?;
            let doubts = machine.needs_recheck(Some(state), next, &completion)?;
            let needs_recheck = self.recheck_test(machine, tokens.len());
            let mut allowed = Vec::with_capacity(tokens.len());
            for token in tokens {
                let bytes = self.vocabulary.token_bytes(token).unwrap_or_default();
                let is_doubtful =
                    needs_recheck(token, bytes) || doubts.as_ref().is_some_and(|one| one(bytes));
                if !is_doubtful || machine.walk(state, bytes)?.is_ok() {
                    allowed.push(token);
                }
            }
            patch(&mut words, &allowed, &[]);
        }
        Ok(Some(words))
    }
}

impl<M: Machine> StateClasses for AbstractStateClasses<M> {
    type Machine = M;

    fn machine(&self) -> &Arc<M> {
        self.states.machine()
    }

    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        self.states.mask_class(state)
    }

    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        self.states.known_mask_class(state)
    }

    fn visit<P: ClassVisitor>(&self, visitor: P) -> P::Result {
        match self.states.scratch() {
            Some(ahead) => visitor.visit(&AbstractStateAutomaton { classes: self, ahead: &ahead }),
            None => visitor.visit(&StatesAsClasses::new(&**self.machine())),
        }
    }

    fn visit_accepting<P: AcceptingVisitor>(
        &self,
        state: StateId,
        visitor: P,
    ) -> Result<P::Result, Error> {
        self.states.visit_accepting(state, visitor)
    }

    fn memory_bytes(&self) -> usize {
        let rechecked = self.recheck_tokens.get().map_or(0, |tokens| 4 * tokens.len());
        self.states.memory_bytes() + rechecked
    }
}

impl<M: Machine> MemberEnds for AbstractStateClasses<M> {}

impl<M: Machine> ApproximateClasses for AbstractStateClasses<M> {}

impl<M: Machine> ClassRenewal for AbstractStateClasses<M> {
    fn over_scratch(&self, machine: &Arc<M>) -> Option<AbstractStateClasses<M>> {
        Some(AbstractStateClasses::new(Arc::clone(machine), Arc::clone(&self.vocabulary)))
    }
}

/// The states of a scratch machine as classes; those of the input have masks.
struct AbstractStateAutomaton<'a, M> {
    classes: &'a AbstractStateClasses<M>,
    ahead: &'a ScratchMachine<M>,
}

impl<M: Machine> ClassAutomaton for AbstractStateAutomaton<'_, M> {
    type LexicalMachine = NoLexicalMachine;

    fn step(&self, class: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        self.ahead.mask_automaton().step(class, byte)
    }

    fn live_bytes(&self, class: MaskClassId) -> Result<ByteSet, Error> {
        self.ahead.mask_automaton().live_bytes(class)
    }
}

impl<M: Machine> MaskShortcuts for AbstractStateAutomaton<'_, M> {
    fn direct_mask(&self, class: MaskClassId) -> Result<Option<Vec<u32>>, Error> {
        if self.ahead.is_scratch_class(class) {
            return Ok(None);
        }
        let state = self.ahead.import_state(StateId::from_number(class.number()))?;
        self.classes.mask(&self.ahead.machine, state)
    }
}

impl<M: Machine> StringClasses for AbstractStateAutomaton<'_, M> {}

impl<M: Machine> ValueClasses for AbstractStateAutomaton<'_, M> {}
