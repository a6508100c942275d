//! Where tokens lead in the language alone, whatever their cuts: found once for each state, and of
//! machines with a stack once for each key.
//!
//! Most tokens read in a text that a language leaves free lead back to the state they are read in.
//! Those are the same for all states that stay on the same characters ([`ExitTargets`]); the others are
//! read from where they leave these characters. Below there a walk takes tokens as whole subtrees
//! of the vocabulary, where the bytes below a node spell characters on which the state stays.

use std::sync::Arc;

use formalm_automata::{Error, KeyId, Keys, Machine, Plainly, Purpose, StateId, Steps};
use formalm_vocabulary::bpe::{CoarseCharClass, TokenSet, TokenTransitions};
use rustc_hash::FxHashMap;

use super::Context;
use super::tokens_by_target::{Group, KeyReach, Loops, reach};

/// Memory for what is kept, in bytes; beyond it all is forgotten.
const MOST_BYTES: usize = 16 << 20;

/// Where tokens lead from one state.
#[derive(Debug)]
pub(crate) struct Reach {
    /// The characters on which the state stays, if there are any: tokens with a passage that have
    /// no others lead back to it.
    pub(crate) stay: Option<CoarseCharClass>,
    /// The others with a passage, by the state they lead to.
    pub(crate) groups: Vec<(StateId, Arc<TokenSet>)>,
    /// Tokens without one that begin where a character does.
    pub(crate) odd: Vec<(u32, StateId)>,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Reaches {
    known: FxHashMap<u32, Arc<Reach>>,
    loops: FxHashMap<u32, Loops>,
    bytes: usize,
}

impl Reaches {
    /// Where tokens that begin where a character does lead from a state.
    ///
    /// Of a machine with a stack tokens are read along its keys, and one leads there for all that
    /// lead to the same key: what was read can make a state of every text.
    pub(crate) fn of<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        passages: &TokenTransitions,
        state: StateId,
    ) -> Result<Arc<Reach>, Error> {
        if let Some(known) = self.known.get(&state.number()) {
            return Ok(Arc::clone(known));
        }
        if self.bytes > MOST_BYTES {
            self.known.clear();
            self.bytes = 0;
        }
        let (vocabulary, machine) = (context.vocabulary, context.machine);
        let KeyReach { stay, groups: found } = match machine.is_finite() {
            true => {
                let key = KeyId::from_number(state.number());
                reach(context, passages, &Plainly::new(machine), key, &mut self.loops)?
            }
            false => {
                let key = context.keys.key(state)?;
                context.keys.read(Reading { context, passages, key })?
            }
        };
        let mut groups = Vec::with_capacity(found.len());
        for Group { key, first, tokens } in found {
            let there = match machine.is_finite() {
                true => Ok(StateId::from_number(key.number())),
                false => {
                    let bytes = vocabulary.token_bytes(first).unwrap_or_default();
                    machine.walk(state, bytes)?
                }
            };
            groups.extend(there.ok().map(|there| (there, tokens)));
        }
        let mut odd = Vec::new();
        for &token in context.encoder.untabulated_tokens(vocabulary) {
            let bytes = vocabulary.token_bytes(token).unwrap_or_default();
            if !bytes.is_empty()
                && let Ok(next) = machine.walk(state, bytes)?
            {
                odd.push((token, next));
            }
        }
        let reach = Arc::new(Reach { stay, groups, odd });
        let bytes: usize = reach.groups.iter().map(|group| 16 + group.1.memory_bytes()).sum();
        self.bytes += 64 + bytes + 8 * reach.odd.len();
        self.known.insert(state.number(), Arc::clone(&reach));
        Ok(reach)
    }

    /// Memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + 40 * self.loops.len()
    }
}

/// Reads the tokens from a key.
struct Reading<'a, K: Keys> {
    context: Context<'a, K>,
    passages: &'a TokenTransitions,
    key: KeyId,
}

impl<K: Keys> Purpose for Reading<'_, K> {
    type Result = Result<KeyReach, Error>;

    fn read(self, steps: &impl Steps) -> Self::Result {
        // Keys met on the way mean nothing afterwards, and neither does what they stay on.
        reach(self.context, self.passages, steps, self.key, &mut FxHashMap::default())
    }
}
