//! Where tokens lead in the language alone, whatever their cuts: found once for each state, and of
//! machines with a stack once for each key.
//!
//! Most tokens read in a text that a language leaves free lead back to the state they are read in.
//! Those are the same for all states that stay on the same characters ([`Exits`]); the others are
//! read from where they leave these characters. Below there a walk takes tokens as whole subtrees
//! of the vocabulary, where the bytes below a node spell characters on which the state stays.

use std::sync::Arc;

use formalm_automata::{Error, KeyId, Keys, Machine, Plainly, Purpose, StateId, Steps};
use formalm_vocabulary::canonical::{Passages, Stay, TokenSet};
use rustc_hash::FxHashMap;

use super::Context;
use super::sorted::{Group, KeyReach, Loops, reach};
use crate::mask::patch;

/// Memory for what is kept, in bytes; beyond it all is forgotten.
const MOST_BYTES: usize = 16 << 20;

/// Where tokens lead from one state.
#[derive(Debug)]
pub(crate) struct Reach {
    /// The characters on which the state stays, if there are any: tokens with a passage that have
    /// no others lead back to it.
    pub(crate) stay: Option<Stay>,
    /// The others with a passage, by the state they lead to.
    pub(crate) groups: Vec<(StateId, Arc<TokenSet>)>,
    /// Tokens without one that begin where a character does.
    pub(crate) odd: Vec<(u32, StateId)>,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Reaches {
    /// Of states as they are.
    known: FxHashMap<u32, Arc<Reach>>,
    /// Of keys, where a machine with a stack has more states than are worth telling apart.
    of_keys: FxHashMap<u32, Arc<KeyReach>>,
    loops: FxHashMap<u32, Loops>,
    bytes: usize,
}

impl Reaches {
    /// Where tokens that begin where a character does lead from a state.
    ///
    /// Of a machine with a stack a state serves for all that have its key: there what was read can
    /// make a state of every text, and no token tells them apart.
    pub(crate) fn of<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        passages: &Passages,
        state: StateId,
    ) -> Result<Arc<Reach>, Error> {
        if let Some(known) = self.known.get(&state.number()) {
            return Ok(Arc::clone(known));
        }
        if self.bytes > MOST_BYTES {
            (self.known, self.of_keys) = Default::default();
            self.bytes = 0;
        }
        let (vocabulary, machine) = (context.vocabulary, context.machine);
        let mut asked = context.encoder.odd_tokens(vocabulary).to_vec();
        let mut unsure: &[u32] = &[];
        let (stay, groups);
        if machine.is_finite() {
            let steps = &Plainly::new(machine);
            let key = KeyId::from_number(state.number());
            let found = reach(context, passages, steps, key, &mut self.loops)?;
            let state = |group: Group| (StateId::from_number(group.key.number()), group.tokens);
            (stay, groups) = (found.stay, found.groups.into_iter().map(state).collect());
        } else {
            let key = context.keys.key(state)?;
            let found = self.of_key(context, passages, key)?;
            if context.keys.is_unsure(state) {
                unsure = vocabulary.joins_items();
                asked.extend(unsure);
                asked.sort_unstable();
                asked.dedup();
            }
            let mut list = Vec::with_capacity(found.groups.len());
            for group in &found.groups {
                let there = match group.key == key {
                    true => Ok(state),
                    false => {
                        let bytes = vocabulary.token_bytes(group.first).unwrap_or_default();
                        machine.walk(state, bytes)?
                    }
                };
                if let Ok(there) = there {
                    list.push((there, without(&group.tokens, unsure)));
                }
            }
            (stay, groups) = (found.stay, list);
        }
        let mut odd = Vec::new();
        for token in asked {
            let bytes = vocabulary.token_bytes(token).unwrap_or_default();
            if !bytes.is_empty()
                && let Ok(next) = machine.walk(state, bytes)?
            {
                odd.push((token, next));
            }
        }
        let reach = Arc::new(Reach { stay, groups, odd });
        if machine.is_finite() {
            let bytes: usize = reach.groups.iter().map(|group| group.1.memory_bytes()).sum();
            self.bytes += 64 + bytes + 8 * reach.odd.len();
            self.known.insert(state.number(), Arc::clone(&reach));
        }
        Ok(reach)
    }

    /// Where tokens with a passage lead from a key.
    fn of_key<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        passages: &Passages,
        key: KeyId,
    ) -> Result<Arc<KeyReach>, Error> {
        if let Some(known) = self.of_keys.get(&key.number()) {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(context.keys.read(Reading { context, passages, key })?);
        let bytes: usize = found.groups.iter().map(|group| 64 + group.tokens.memory_bytes()).sum();
        self.bytes += 64 + bytes;
        self.of_keys.insert(key.number(), Arc::clone(&found));
        Ok(found)
    }

    /// Memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + 40 * self.loops.len()
    }
}

/// Tokens less some, of which there are few.
fn without(tokens: &Arc<TokenSet>, few: &[u32]) -> Arc<TokenSet> {
    if few.is_empty() {
        return Arc::clone(tokens);
    }
    Arc::new(match &**tokens {
        TokenSet::List(list) => {
            TokenSet::List(list.iter().copied().filter(|token| !few.contains(token)).collect())
        }
        TokenSet::Mask(words) => {
            let mut words = words.clone();
            patch(&mut words, &[], few);
            TokenSet::from_words(words)
        }
    })
}

/// Reads the tokens from a key.
struct Reading<'a, K: Keys> {
    context: Context<'a, K>,
    passages: &'a Passages,
    key: KeyId,
}

impl<K: Keys> Purpose for Reading<'_, K> {
    type Result = Result<KeyReach, Error>;

    fn read(self, steps: &impl Steps) -> Self::Result {
        // Keys met on the way mean nothing afterwards, and neither does what they stay on.
        reach(self.context, self.passages, steps, self.key, &mut FxHashMap::default())
    }
}

