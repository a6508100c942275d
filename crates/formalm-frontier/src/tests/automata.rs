//! Random languages over the tokens of a small vocabulary, as explicit automata.

use proptest::prelude::*;

use super::{END_ID, TOKENS, row};
use crate::{LengthLimits, TokenLanguage};

/// Number of tokens other than the end.
const LETTERS: usize = END_ID as usize;

/// A deterministic automaton that reads tokens.
#[derive(Clone, Debug)]
pub(super) struct TokenAutomaton {
    pub(super) next: Vec<[Option<u32>; LETTERS]>,
    pub(super) accepting: Vec<bool>,
}

/// Random automata of a few states, in which some steps are missing.
pub(super) fn automata() -> impl Strategy<Value = TokenAutomaton> {
    (1u32..5).prop_flat_map(|states| {
        let target = prop_oneof![1 => Just(None), 3 => (0..states).prop_map(Some)];
        let steps = prop::array::uniform5(target);
        let size = states as usize;
        let parts =
            (prop::collection::vec(steps, size), prop::collection::vec(any::<bool>(), size));
        parts.prop_map(|(next, accepting)| TokenAutomaton { next, accepting })
    })
}

impl TokenLanguage for TokenAutomaton {
    type Error = ();

    fn step(&mut self, state: u32, token_id: u32) -> Result<u32, ()> {
        self.next[state as usize].get(token_id as usize).copied().flatten().ok_or(())
    }

    fn step_byte(&mut self, _state: u32, _byte: u8) -> Result<u32, ()> {
        Err(())
    }

    fn fill(&mut self, state: u32, words: &mut [u32]) -> Result<(), ()> {
        words.fill(0);
        for (id, next) in self.next[state as usize].iter().enumerate() {
            words[0] |= u32::from(next.is_some()) << id;
        }
        words[0] |= u32::from(self.accepting[state as usize]) << END_ID;
        Ok(())
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    fn is_finished(&mut self, state: u32) -> Result<bool, ()> {
        Ok(self.next[state as usize].iter().all(Option::is_none))
    }
}

/// Returns the probability of the event after a sequence, by visiting all that continue it.
pub(super) fn probability(
    automaton: &TokenAutomaton,
    seed: u64,
    lengths: &LengthLimits,
    state: u32,
    path: &[u32],
) -> f64 {
    let (depth, accepts) = (path.len() as u32, automaton.accepting[state as usize]);
    if !lengths.complete && accepts {
        return 1.0;
    }
    if lengths.max_tokens.is_some_and(|most| depth + u32::from(!lengths.complete) > most) {
        return 0.0;
    }
    let row = row(seed, path);
    let mut sum = if lengths.complete && accepts { row[END_ID as usize].exp() } else { 0.0 };
    if lengths.may_grow(depth) {
        for (id, next) in automaton.next[state as usize].iter().enumerate() {
            if let &Some(next) = next
                && row[id] > f64::NEG_INFINITY
            {
                let longer: Vec<u32> = path.iter().copied().chain([id as u32]).collect();
                sum += row[id].exp() * probability(automaton, seed, lengths, next, &longer);
            }
        }
    }
    sum
}

/// Returns the logits of the model after a sequence, as a row of float32.
pub(super) fn logits(seed: u64, path: &[u32]) -> Vec<f32> {
    assert_eq!(TOKENS.len(), LETTERS + 1);
    row(seed, path).iter().map(|&value| value as f32 + 2.5).collect()
}
