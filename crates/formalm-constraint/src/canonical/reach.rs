//! Where tokens lead in the language alone, whatever their cuts: found once for each state.
//!
//! Most tokens read in a text that a language leaves free lead back to the state they are read in.
//! A walk takes them as whole subtrees of the vocabulary, where the bytes below a node spell
//! characters on which the state stays.

use std::sync::Arc;

use formalm_automata::{Error, Machine, StateId};
use formalm_vocabulary::Words;
use formalm_vocabulary::canonical::Passages;
use rustc_hash::FxHashMap;

use super::Context;
use crate::mask::patch;

/// From this many tokens on a set is a bitmask.
const DENSE: usize = 768;

/// Subtrees of so many nodes are not worth a look at what is below.
const SMALL: u32 = 4;

/// Memory for what is kept, in bytes; beyond it all is forgotten.
const MOST_BYTES: usize = 16 << 20;

/// A set of tokens.
#[derive(Clone, Debug)]
pub(crate) enum Tokens {
    List(Vec<u32>),
    Mask(Vec<u32>),
}

/// Where tokens lead from one state.
#[derive(Debug)]
pub(crate) struct Reach {
    /// Tokens with a passage, by the state they lead to.
    pub(crate) groups: Vec<(StateId, Tokens)>,
    /// The others that begin where a character does.
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

impl Tokens {
    /// The smaller form of a bitmask.
    pub(crate) fn from_words(words: Vec<u32>) -> Tokens {
        let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        if count >= DENSE {
            return Tokens::Mask(words);
        }
        let mut list = Vec::with_capacity(count);
        ones(&words, |token| list.push(token));
        Tokens::List(list)
    }

    /// The tokens one by one, until something is found.
    pub(crate) fn find<R>(&self, mut look: impl FnMut(u32) -> Option<R>) -> Option<R> {
        match self {
            Tokens::List(list) => list.iter().find_map(|&token| look(token)),
            Tokens::Mask(words) => {
                for (at, &word) in words.iter().enumerate() {
                    let mut rest = word;
                    while rest != 0 {
                        let found = look(at as u32 * 32 + rest.trailing_zeros());
                        if found.is_some() {
                            return found;
                        }
                        rest &= rest - 1;
                    }
                }
                None
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Tokens::List(list) | Tokens::Mask(list) => 40 + 4 * list.len(),
        }
    }
}

/// Hands out the tokens of a bitmask.
pub(crate) fn ones(words: &Words, mut each: impl FnMut(u32)) {
    for (at, &word) in words.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            each(at as u32 * 32 + rest.trailing_zeros());
            rest &= rest - 1;
        }
    }
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

    fn finish(self, passages: &Passages) -> Vec<(StateId, Tokens)> {
        let kept = |(state, mut list, mask): (StateId, Vec<u32>, Option<Vec<u32>>)| {
            let tokens = match mask {
                Some(mut words) => {
                    words.iter_mut().zip(passages.all()).for_each(|(word, all)| *word &= all);
                    Tokens::from_words(words)
                }
                None => {
                    list.retain(|&token| passages.has(token));
                    Tokens::List(list)
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
        let groups = self.walk(context, state)?.finish(passages);
        let mut odd = Vec::new();
        for &token in context.encoder.odd_tokens(context.vocabulary) {
            let bytes = context.vocabulary.token_bytes(token).unwrap_or_default();
            if !bytes.is_empty()
                && let Ok(next) = context.machine.walk(state, bytes)?
            {
                odd.push((token, next));
            }
        }
        let reach = Arc::new(Reach { groups, odd });
        if self.bytes > MOST_BYTES {
            self.known.clear();
            self.bytes = 0;
        }
        let bytes: usize = reach.groups.iter().map(|group| group.1.memory_bytes()).sum();
        self.bytes += 64 + bytes + 8 * reach.odd.len();
        self.known.insert(state.number(), Arc::clone(&reach));
        Ok(reach)
    }

    fn walk<M: Machine>(
        &mut self,
        context: Context<'_, M>,
        state: StateId,
    ) -> Result<Sorted, Error> {
        let trie = context.vocabulary.trie();
        let nodes = trie.nodes();
        let words = context.vocabulary.len().div_ceil(32);
        let mut sorted = Sorted::default();
        let mut stack = vec![state];
        for byte in context.machine.live_bytes(state)?.iter() {
            let Some(root) = trie.root_child(byte).filter(|_| !(0x80..0xc0).contains(&byte)) else {
                continue;
            };
            let end = nodes[root as usize].end();
            let mut at = root;
            while at < end {
                let here = nodes[at as usize];
                let depth = here.depth();
                let Some(next) = context.machine.step(stack[depth - 1], here.byte())? else {
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
        }
        Ok(sorted)
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
