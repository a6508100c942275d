//! Tokens as transition functions of the splitter, and the partition of tokens into equal
//! functions.
//!
//! ```text
//!  token  the ──┐
//!  token  cat ──┼──► transition t:  (state, boundary) ↦ state      lowercase words share one function
//!  token  dog ──┘
//! ```
//!
//! A token that begins at a character boundary maps every splitter state, and every boundary before
//! the token, to one state or to none. This function is its *transition*. Most tokens share theirs
//! with many others (a lowercase word with nearly every other one), so pre-token boundaries
//! distinguish a few hundred sets of tokens, whatever the size of the vocabulary. A transition
//! extends another one by one byte, so the targets of all transitions from one state take one step
//! each.

use formalm_core::CompactMap;

use super::pretokenizer::boundary_automaton::{Boundary, BoundaryAutomaton, BoundaryState};
use super::token_set::{MIN_BITMASK_SIZE, TokenSet, set_bit};
use super::transition_interner::TransitionKernels;
use crate::{MaskWords, TokenTrie};

/// The missing target.
pub(super) const DEAD: BoundaryState = BoundaryState::MAX;

/// The missing transition.
pub(super) const NONE: u16 = u16::MAX;

/// The transition of each token, and what each transition extends.
pub(super) type SavedTransitions = (Vec<u16>, Vec<(u16, u8)>);

/// The transitions of all tokens that merging makes and that are in no list of exceptions.
#[derive(Debug)]
pub struct TokenTransitions {
    /// Per token, its transition, if it has one.
    of: Vec<u16>,
    /// Per transition, the one that it extends, if any, and the byte it adds.
    extends: Vec<(u16, u8)>,
    /// The tokens of each transition, and their bitmasks.
    offsets: Vec<u32>,
    tokens: Vec<u32>,
    masks: Vec<Option<Box<MaskWords>>>,
    all: Box<MaskWords>,
}

/// The targets of all tokens from one state, with one boundary before the first byte.
#[derive(Debug)]
pub struct TransitionTargets {
    /// The target of each transition.
    targets: Vec<BoundaryState>,
}

impl TokenTransitions {
    /// Computes the transitions of the tokens in a trie for which `plain` holds. Returns `None` if
    /// there are too many distinct ones.
    pub(crate) fn new(
        splitter: &BoundaryAutomaton,
        trie: &TokenTrie,
        (len, plain): (usize, impl Fn(u32) -> bool),
    ) -> Option<TokenTransitions> {
        let mut kernels = TransitionKernels::new(splitter);
        let mut of = vec![NONE; len];
        let nodes = trie.nodes();
        let mut path: Vec<u16> = Vec::new();
        let mut at = 0;
        while at < nodes.len() {
            let here = nodes[at];
            let depth = here.depth();
            let before = if depth == 1 { NONE } else { path[depth - 2] };
            let transition = kernels.step(before, here.byte())?;
            if kernels.is_dead(transition) {
                at = here.end() as usize;
                continue;
            }
            for &token in trie.tokens_at(at as u32).iter().filter(|&&token| plain(token)) {
                of[token as usize] = transition;
            }
            path.truncate(depth - 1);
            path.push(transition);
            at += 1;
        }
        Some(TokenTransitions::sorted((of, kernels.extends)))
    }

    /// Returns the tables to save: the transition of each token, and what each transition extends.
    pub(super) fn parts(&self) -> SavedTransitions {
        (self.of.clone(), self.extends.clone())
    }

    /// Returns `true` if [`TokenTransitions::sorted`] can rebuild the transitions of `len` tokens.
    pub(super) fn are_consistent((of, extends): &SavedTransitions, len: usize) -> bool {
        let mut earlier = extends.iter().enumerate();
        of.len() == len
            && extends.len() < usize::from(NONE)
            && earlier.all(|(at, &(before, _))| before == NONE || usize::from(before) < at)
            && of.iter().all(|&of| of == NONE || usize::from(of) < extends.len())
    }

    /// Builds the tables from the transition of each token, and what each transition extends.
    pub(super) fn sorted((of, extends): SavedTransitions) -> TokenTransitions {
        let words = of.len().div_ceil(32);
        let mut offsets = vec![0u32; extends.len() + 1];
        let mut all = vec![0; words];
        let listed = || of.iter().enumerate().filter(|(_, transition)| **transition != NONE);
        for (token, &transition) in listed() {
            offsets[usize::from(transition) + 1] += 1;
            all[token >> 5] |= 1 << (token & 31);
        }
        for at in 0..extends.len() {
            offsets[at + 1] += offsets[at];
        }
        let mut next = offsets.clone();
        let mut tokens = vec![0; offsets[extends.len()] as usize];
        for (token, &transition) in listed() {
            let slot = &mut next[usize::from(transition)];
            tokens[*slot as usize] = token as u32;
            *slot += 1;
        }
        let mask = |ends: &[u32]| {
            let tokens = &tokens[ends[0] as usize..ends[1] as usize];
            (tokens.len() >= MIN_BITMASK_SIZE).then(|| {
                let mut words = vec![0; words];
                tokens.iter().for_each(|&token| set_bit(&mut words, token));
                words.into_boxed_slice()
            })
        };
        let masks = offsets.windows(2).map(mask).collect();
        TokenTransitions { of, extends, offsets, tokens, masks, all: all.into_boxed_slice() }
    }

    /// Returns `true` if a token has a transition.
    #[inline]
    pub fn has(&self, token: u32) -> bool {
        self.of.get(token as usize).is_some_and(|&transition| transition != NONE)
    }

    /// Returns the bitmask of the tokens that have a transition.
    pub fn all(&self) -> &MaskWords {
        &self.all
    }

    /// Returns the target of a token with a transition.
    #[inline]
    pub fn target(&self, targets: &TransitionTargets, token: u32) -> Option<BoundaryState> {
        let transition = usize::from(*self.of.get(token as usize)?);
        targets.targets.get(transition).copied().filter(|&target| target != DEAD)
    }

    /// Computes the targets of all tokens from a state between characters, if `mark` stands before
    /// the first byte. Targets inside added tokens are left out.
    pub(super) fn targets_from(
        &self,
        splitter: &BoundaryAutomaton,
        from: BoundaryState,
        boundary: Boundary,
    ) -> TransitionTargets {
        let mut targets: Vec<BoundaryState> = Vec::with_capacity(self.extends.len());
        for &(before, byte) in &self.extends {
            let after = match before {
                NONE => splitter.step(from, byte, boundary),
                _ => match targets[usize::from(before)] {
                    DEAD => None,
                    target => splitter.step(target, byte, Boundary::Inside),
                },
            };
            targets.push(after.unwrap_or(DEAD));
        }
        for (transition, target) in targets.iter_mut().enumerate() {
            if self.count_of(transition) > 0
                && *target != DEAD
                && splitter.is_in_added_token(*target)
            {
                *target = DEAD;
            }
        }
        TransitionTargets { targets }
    }

    /// Groups all tokens by their target.
    pub(super) fn all_by_target(
        &self,
        targets: &TransitionTargets,
    ) -> Vec<(BoundaryState, TokenSet)> {
        let mut members: CompactMap<BoundaryState, Vec<usize>> = CompactMap::default();
        for (transition, &target) in targets.targets.iter().enumerate() {
            if target != DEAD && self.count_of(transition) > 0 {
                let at = members.position_or_insert_with(target, Vec::new);
                members.value_mut(at).push(transition);
            }
        }
        let groups = members.into_entries().into_iter();
        groups.map(|(target, transitions)| (target, self.set(&transitions))).collect()
    }

    /// Returns the tokens that lead to a target.
    pub(super) fn tokens_to(&self, targets: &TransitionTargets, target: BoundaryState) -> TokenSet {
        let all = targets.targets.iter().enumerate();
        let leads =
            |(transition, &to): (usize, &BoundaryState)| (to == target).then_some(transition);
        self.set(&all.filter_map(leads).collect::<Vec<_>>())
    }

    /// Adds the tokens whose target is chosen to a bitmask.
    pub(super) fn add_by_target(
        &self,
        targets: &TransitionTargets,
        words: &mut MaskWords,
        mut is_chosen: impl FnMut(BoundaryState) -> bool,
    ) {
        for (transition, &target) in targets.targets.iter().enumerate() {
            if target != DEAD && self.count_of(transition) > 0 && is_chosen(target) {
                self.add(transition, words);
            }
        }
    }

    /// Returns the number of tokens of a transition.
    fn count_of(&self, transition: usize) -> usize {
        (self.offsets[transition + 1] - self.offsets[transition]) as usize
    }

    fn tokens_of(&self, transition: usize) -> &[u32] {
        &self.tokens[self.offsets[transition] as usize..self.offsets[transition + 1] as usize]
    }

    /// Returns the tokens of some transitions.
    fn set(&self, transitions: &[usize]) -> TokenSet {
        let count: usize = transitions.iter().map(|&transition| self.count_of(transition)).sum();
        if count < MIN_BITMASK_SIZE {
            let tokens = transitions.iter().flat_map(|&transition| self.tokens_of(transition));
            return TokenSet::List(tokens.copied().collect());
        }
        let mut words = vec![0; self.all.len()];
        transitions.iter().for_each(|&transition| self.add(transition, &mut words));
        TokenSet::Mask(words)
    }

    /// Adds the tokens of a transition to a bitmask.
    fn add(&self, transition: usize, words: &mut MaskWords) {
        match &self.masks[transition] {
            Some(mask) => words.iter_mut().zip(&**mask).for_each(|(word, more)| *word |= more),
            None => self.tokens_of(transition).iter().for_each(|&token| set_bit(words, token)),
        }
    }

    /// Groups some tokens by their target.
    pub(super) fn group_by_target(
        &self,
        targets: &TransitionTargets,
        tokens: &[u32],
    ) -> Vec<(BoundaryState, TokenSet)> {
        let mut lists: CompactMap<BoundaryState, Vec<u32>> = CompactMap::default();
        for &token in tokens {
            let Some(target) = self.target(targets, token) else { continue };
            let at = lists.position_or_insert_with(target, Vec::new);
            lists.value_mut(at).push(token);
        }
        let lists = lists.into_entries().into_iter();
        lists.map(|(target, list)| (target, TokenSet::List(list))).collect()
    }

    /// Returns the number of distinct transitions.
    pub fn count(&self) -> usize {
        self.extends.len()
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let masks = 1 + self.masks.iter().flatten().count();
        2 * self.of.len()
            + 8 * self.extends.len()
            + 4 * (self.tokens.len() + masks * self.all.len())
    }
}

impl TransitionTargets {
    /// Returns the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        4 * self.targets.len()
    }
}
