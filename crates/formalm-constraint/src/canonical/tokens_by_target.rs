//! Tokens by the keys they lead to, read along the vocabulary.

use std::sync::Arc;

use formalm_automata::{Error, KeyId, Keys, Steps, every_character};
use formalm_vocabulary::bpe::{CoarseCharClass, ExitTargets, TokenSet, TokenTransitions};
use rustc_hash::FxHashMap;

use super::Context;
use crate::mask::patch;

/// From this many tokens on a set is a bitmask.
const DENSE: usize = 768;

/// Subtrees of so many nodes are not worth a look at what is below.
const SMALL: u32 = 4;

/// Where tokens with a passage lead from one key.
#[derive(Debug)]
pub(super) struct KeyReach {
    pub(super) stay: Option<CoarseCharClass>,
    pub(super) groups: Vec<Group>,
}

/// Tokens that lead to one key.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) key: KeyId,
    /// One that leads there, whether it has a passage or not.
    pub(super) first: u32,
    pub(super) tokens: Arc<TokenSet>,
}

/// Characters on which a key stays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loops {
    ascii: u128,
    wide: bool,
}

/// Tokens by the key they lead to.
#[derive(Default)]
struct Sorted {
    index: FxHashMap<u32, usize>,
    groups: Vec<Gathered>,
    last: usize,
}

/// Tokens that lead to a key; a bitmask once they are many.
struct Gathered {
    key: KeyId,
    first: u32,
    list: Vec<u32>,
    mask: Option<Vec<u32>>,
}

impl Sorted {
    #[inline]
    fn group(&mut self, key: KeyId, first: u32) -> &mut Gathered {
        if self.groups.get(self.last).is_none_or(|group| group.key != key) {
            self.last = *self.index.entry(key.number()).or_insert_with(|| {
                self.groups.push(Gathered { key, first, list: Vec::new(), mask: None });
                self.groups.len() - 1
            });
        }
        &mut self.groups[self.last]
    }

    /// Adds tokens, as a bitmask once they are many.
    #[inline]
    fn add(&mut self, key: KeyId, tokens: &[u32], words: usize) {
        let Some(&first) = tokens.first() else { return };
        let group = self.group(key, first);
        match &mut group.mask {
            Some(mask) => patch(mask, tokens, &[]),
            None => {
                group.list.extend_from_slice(tokens);
                if group.list.len() >= DENSE {
                    let mut made = vec![0; words];
                    patch(&mut made, &group.list, &[]);
                    group.list.clear();
                    group.mask = Some(made);
                }
            }
        }
    }

    fn finish(self, passages: &TokenTransitions) -> Vec<Group> {
        let kept = |Gathered { key, first, mut list, mask }: Gathered| {
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
            Group { key, first, tokens: Arc::new(tokens) }
        };
        self.groups.into_iter().map(kept).collect()
    }
}

/// Where tokens with a passage lead from a key.
pub(super) fn reach<K: Keys>(
    context: Context<'_, K>,
    passages: &TokenTransitions,
    steps: &impl Steps,
    key: KeyId,
    loops: &mut FxHashMap<u32, Loops>,
) -> Result<KeyReach, Error> {
    let mut walk = Walk { context, steps, loops, sorted: Sorted::default() };
    let loops = walk.loops(key)?;
    let stay = (loops.ascii != 0).then_some((loops.ascii, loops.wide));
    match stay {
        Some(stay) => {
            let exits = context.encoder.exit_targets(context.vocabulary, passages, stay);
            walk.leave(key, &exits)?;
        }
        None => walk.all(key)?,
    }
    Ok(KeyReach { stay, groups: walk.sorted.finish(passages) })
}

/// A walk along the vocabulary.
struct Walk<'a, K: Keys, S> {
    context: Context<'a, K>,
    steps: &'a S,
    loops: &'a mut FxHashMap<u32, Loops>,
    sorted: Sorted,
}

impl<K: Keys, S: Steps> Walk<'_, K, S> {
    /// All tokens that begin where a character does.
    fn all(&mut self, key: KeyId) -> Result<(), Error> {
        let trie = self.context.vocabulary.trie();
        for byte in self.steps.live_bytes(key)?.iter() {
            if let Some(root) = trie.root_child(byte)
                && !(0x80..0xc0).contains(&byte)
                && let Some(next) = self.steps.step(key, byte)?
            {
                self.below(next, root)?;
            }
        }
        Ok(())
    }

    /// The tokens that leave the characters on which a key stays.
    fn leave(&mut self, key: KeyId, exits: &ExitTargets) -> Result<(), Error> {
        let words = self.context.vocabulary.len().div_ceil(32);
        for exit in &exits.exits {
            let mut next = Some(key);
            for &byte in &exit.bytes {
                next = match next {
                    Some(here) => self.steps.step(here, byte)?,
                    None => break,
                };
            }
            let Some(next) = next else { continue };
            self.sorted.add(next, &exit.tokens, words);
            for &node in &exit.nodes {
                self.below(next, node)?;
            }
        }
        Ok(())
    }

    /// The tokens at and below a node, which leads to a key.
    fn below(&mut self, key: KeyId, root: u32) -> Result<(), Error> {
        let trie = self.context.vocabulary.trie();
        let nodes = trie.nodes();
        let words = self.context.vocabulary.len().div_ceil(32);
        let (end, top) = (nodes[root as usize].end(), nodes[root as usize].depth());
        // The keys before nodes, from the root on.
        let mut stack = Vec::new();
        let mut at = root;
        while at < end {
            let here = nodes[at as usize];
            let depth = here.depth() - top;
            let next = match depth {
                0 => Some(key),
                _ => self.steps.step(stack[depth - 1], here.byte())?,
            };
            let Some(next) = next else {
                at = here.end();
                continue;
            };
            if here.word().is_some() {
                self.sorted.add(next, trie.tokens_at(at), words);
            }
            if here.end() > at + SMALL {
                let loops = self.loops(next)?;
                if trie.signature(at).is_within(loops.ascii, loops.wide) {
                    self.sorted.add(next, trie.tokens_below(at), words);
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

    /// The characters on which a key stays.
    fn loops(&mut self, key: KeyId) -> Result<Loops, Error> {
        if let Some(&known) = self.loops.get(&key.number()) {
            return Ok(known);
        }
        let mut loops = Loops::default();
        for byte in 0..128u8 {
            if self.steps.step(key, byte)? == Some(key) {
                loops.ascii |= 1 << byte;
            }
        }
        loops.wide =
            loops.ascii != 0 && every_character(key, key, |key, byte| self.steps.step(key, byte))?;
        self.loops.insert(key.number(), loops);
        Ok(loops)
    }
}
