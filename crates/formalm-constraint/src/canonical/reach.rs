//! Where tokens lead in the language alone, whatever their cuts: found once for each state.
//!
//! Most tokens read in a text that a language leaves free lead back to the state they are read in.
//! Those are the same for all states that stay on the same characters ([`Exits`]); the others are
//! read from where they leave these characters. Below there a walk takes tokens as whole subtrees
//! of the vocabulary, where the bytes below a node spell characters on which the state stays.

use std::sync::Arc;

use formalm_automata::{Error, Machine, StateId};
use formalm_vocabulary::canonical::{Exits, Passages, Stay, TokenSet};
use rustc_hash::FxHashMap;

use super::Context;
use crate::mask::patch;

/// From this many tokens on a set is a bitmask.
const DENSE: usize = 768;

/// Subtrees of so many nodes are not worth a look at what is below.
const SMALL: u32 = 4;

/// Memory for what is kept, in bytes; beyond it all is forgotten.
const MOST_BYTES: usize = 16 << 20;

/// Where tokens lead from one state.
#[derive(Debug)]
pub(crate) struct Reach {
    /// The characters on which the state stays, if there are any: tokens with a passage that have
    /// no others lead back to it.
    pub(crate) stay: Option<Stay>,
    /// The others with a passage, by the state they lead to.
    pub(crate) groups: Vec<(StateId, TokenSet)>,
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

/// Characters on which a state stays.
#[derive(Clone, Copy, Debug, Default)]
struct Loops {
    ascii: u128,
    wide: bool,
}

/// Tokens by the state they lead to.
#[derive(Default)]
struct Sorted {
    index: FxHashMap<u32, usize>,
    groups: Vec<(StateId, Vec<u32>, Option<Vec<u32>>)>,
    last: usize,
}

impl Sorted {
    #[inline]
    fn group(&mut self, state: StateId) -> &mut (StateId, Vec<u32>, Option<Vec<u32>>) {
        if self.groups.get(self.last).is_none_or(|group| group.0 != state) {
            self.last = *self.index.entry(state.number()).or_insert_with(|| {
                self.groups.push((state, Vec::new(), None));
                self.groups.len() - 1
            });
        }
        &mut self.groups[self.last]
    }

    /// Adds tokens, as a bitmask once they are many.
    #[inline]
    fn add(&mut self, state: StateId, tokens: &[u32], words: usize) {
        let (_, list, mask) = self.group(state);
        match mask {
            Some(mask) => patch(mask, tokens, &[]),
            None => {
                list.extend_from_slice(tokens);
                if list.len() >= DENSE {
                    let mut made = vec![0; words];
                    patch(&mut made, list, &[]);
                    list.clear();
                    *mask = Some(made);
                }
            }
        }
    }

    fn finish(self, passages: &Passages) -> Vec<(StateId, TokenSet)> {
        let kept = |(state, mut list, mask): (StateId, Vec<u32>, Option<Vec<u32>>)| {
            let tokens = match mask {
                Some(mut words) => {
                    words.iter_mut().zip(passages.all()).for_each(|(word, all)| *word &= all);
                    TokenSet::from_words(words)
                }
                None => {
                    list.retain(|&token| passages.has(token));
                    TokenSet::List(list)
                }
            };
            (state, tokens)
        };
        self.groups.into_iter().map(kept).collect()
    }
}

impl Reaches {
    /// Where tokens that begin where a character does lead from a state.
    pub(crate) fn of<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        passages: &Passages,
        state: StateId,
    ) -> Result<Arc<Reach>, Error> {
        if let Some(known) = self.known.get(&state.number()) {
            return Ok(Arc::clone(known));
        }
        let loops = self.loops(context.machine, state)?;
        let stay = (loops.ascii != 0).then_some((loops.ascii, loops.wide));
        let mut sorted = Sorted::default();
        match stay {
            Some(stay) => {
                let exits = context.encoder.exits(context.vocabulary, passages, stay);
                self.leave(context, state, &exits, &mut sorted)?;
            }
            None => {
                let trie = context.vocabulary.trie();
                for byte in context.machine.live_bytes(state)?.iter() {
                    if let Some(root) = trie.root_child(byte)
                        && !(0x80..0xc0).contains(&byte)
                        && let Some(next) = context.machine.step(state, byte)?
                    {
                        self.walk(context, (next, root), &mut sorted)?;
                    }
                }
            }
        }
        let groups = sorted.finish(passages);
        let mut odd = Vec::new();
        for &token in context.encoder.odd_tokens(context.vocabulary) {
            let bytes = context.vocabulary.token_bytes(token).unwrap_or_default();
            if !bytes.is_empty()
                && let Ok(next) = context.machine.walk(state, bytes)?
            {
                odd.push((token, next));
            }
        }
        let reach = Arc::new(Reach { stay, groups, odd });
        if self.bytes > MOST_BYTES {
            self.known.clear();
            self.bytes = 0;
        }
        let bytes: usize = reach.groups.iter().map(|group| group.1.memory_bytes()).sum();
        self.bytes += 64 + bytes + 8 * reach.odd.len();
        self.known.insert(state.number(), Arc::clone(&reach));
        Ok(reach)
    }

    /// The tokens that leave the characters on which a state stays.
    fn leave<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        state: StateId,
        exits: &Exits,
        sorted: &mut Sorted,
    ) -> Result<(), Error> {
        let words = context.vocabulary.len().div_ceil(32);
        for exit in &exits.ways {
            let Ok(next) = context.machine.walk(state, &exit.bytes)? else { continue };
            sorted.add(next, &exit.tokens, words);
            for &node in &exit.nodes {
                self.walk(context, (next, node), sorted)?;
            }
        }
        Ok(())
    }

    /// The tokens at and below a node, which leads to a state.
    fn walk<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        (state, root): (StateId, u32),
        sorted: &mut Sorted,
    ) -> Result<(), Error> {
        let trie = context.vocabulary.trie();
        let nodes = trie.nodes();
        let words = context.vocabulary.len().div_ceil(32);
        let (end, top) = (nodes[root as usize].end(), nodes[root as usize].depth());
        // The states before nodes, from the root on.
        let mut stack = Vec::new();
        let mut at = root;
        while at < end {
            let here = nodes[at as usize];
            let depth = here.depth() - top;
            let next = match depth {
                0 => Some(state),
                _ => context.machine.step(stack[depth - 1], here.byte())?,
            };
            let Some(next) = next else {
                at = here.end();
                continue;
            };
            if here.word().is_some() {
                sorted.add(next, trie.tokens_at(at), words);
            }
            if here.end() > at + SMALL {
                let loops = self.loops(context.machine, next)?;
                if trie.signature(at).is_within(loops.ascii, loops.wide) {
                    sorted.add(next, trie.tokens_below(at), words);
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

    /// The characters on which a state stays.
    fn loops(&mut self, machine: &impl Machine, state: StateId) -> Result<Loops, Error> {
        if let Some(&known) = self.loops.get(&state.number()) {
            return Ok(known);
        }
        let mut loops = Loops::default();
        for byte in 0..128u8 {
            if machine.step(state, byte)? == Some(state) {
                loops.ascii |= 1 << byte;
            }
        }
        loops.wide = loops.ascii != 0 && stays_on_wide(machine, state)?;
        self.loops.insert(state.number(), loops);
        Ok(loops)
    }

    /// Memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + 40 * self.loops.len()
    }
}

/// Whether a state stays where it is on every character beyond ASCII.
fn stays_on_wide(machine: &impl Machine, state: StateId) -> Result<bool, Error> {
    // What is left of a character: bytes, and the range of the next one.
    let leads = (0xc2..=0xf4u8).map(|byte| match byte {
        0xc2..=0xdf => (byte, 1, 0x80, 0xbf),
        0xe0 => (byte, 2, 0xa0, 0xbf),
        0xed => (byte, 2, 0x80, 0x9f),
        0xe1..=0xef => (byte, 2, 0x80, 0xbf),
        0xf0 => (byte, 3, 0x90, 0xbf),
        0xf4 => (byte, 3, 0x80, 0x8f),
        _ => (byte, 3, 0x80, 0xbf),
    });
    let mut left: Vec<(StateId, u8, u8, u8)> = Vec::new();
    for (byte, more, low, high) in leads {
        match machine.step(state, byte)? {
            None => return Ok(false),
            Some(next) if !left.contains(&(next, more, low, high)) => {
                left.push((next, more, low, high));
            }
            Some(_) => {}
        }
    }
    let mut at = 0;
    while at < left.len() {
        let (inside, more, low, high) = left[at];
        for byte in low..=high {
            match (machine.step(inside, byte)?, more) {
                (Some(next), 1) if next == state => {}
                (Some(next), 2..) => {
                    let further = (next, more - 1, 0x80, 0xbf);
                    if !left.contains(&further) {
                        left.push(further);
                    }
                }
                _ => return Ok(false),
            }
        }
        at += 1;
    }
    Ok(true)
}
