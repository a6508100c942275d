//! Grouping of tokens by the mask class they lead to, by one walk over the vocabulary.

use std::sync::Arc;

use formalm_core::{Error, MaskClassId, reads_all_non_ascii};
use formalm_machines::{MaskAutomaton, MaskClasses};
use formalm_vocabulary::bpe::{CoarseCharClass, ExitTargets, TokenSet, TokenTransitions};
use rustc_hash::FxHashMap;

use super::ProductContext;
use crate::mask::patch;

/// Group size, in tokens, from which on a group is a bitmask. Chosen, not measured.
const MIN_BITMASK_TOKENS: usize = 768;

/// Subtrees of at most this many nodes are read rather than tested for loops. Chosen, not measured.
const MAX_READ_NODES: u32 = 4;

/// The targets, from one mask class, of the tokens with a transition.
#[derive(Debug)]
pub(super) struct ClassTargets {
    pub(super) loop_class: Option<CoarseCharClass>,
    pub(super) groups: Vec<TargetGroup>,
}

/// The tokens that lead to one mask class.
#[derive(Debug)]
pub(super) struct TargetGroup {
    pub(super) key: MaskClassId,
    /// A token that leads there, with or without a transition.
    pub(super) first: u32,
    pub(super) tokens: Arc<TokenSet>,
}

/// The characters on which a mask class loops.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClassSelfLoops {
    ascii: u128,
    wide: bool,
}

/// Collects tokens by target.
#[derive(Default)]
struct TargetSorter {
    index: FxHashMap<u32, usize>,
    groups: Vec<TargetBucket>,
    last: usize,
}

/// The tokens that lead to one mask class; a bitmask once they are many.
struct TargetBucket {
    key: MaskClassId,
    first: u32,
    list: Vec<u32>,
    mask: Option<Vec<u32>>,
}

impl TargetSorter {
    #[inline]
    fn group(&mut self, key: MaskClassId, first: u32) -> &mut TargetBucket {
        if self.groups.get(self.last).is_none_or(|group| group.key != key) {
            self.last = *self.index.entry(key.number()).or_insert_with(|| {
                self.groups.push(TargetBucket { key, first, list: Vec::new(), mask: None });
                self.groups.len() - 1
            });
        }
        &mut self.groups[self.last]
    }

    /// Adds tokens, switching to a bitmask once they are many.
    #[inline]
    fn add(&mut self, key: MaskClassId, tokens: &[u32], words: usize) {
        let Some(&first) = tokens.first() else { return };
        let group = self.group(key, first);
        match &mut group.mask {
            Some(mask) => patch(mask, tokens, &[]),
            None => {
                group.list.extend_from_slice(tokens);
                if group.list.len() >= MIN_BITMASK_TOKENS {
                    let mut made = vec![0; words];
                    patch(&mut made, &group.list, &[]);
                    group.list.clear();
                    group.mask = Some(made);
                }
            }
        }
    }

    fn finish(self, transitions: &TokenTransitions) -> Vec<TargetGroup> {
        let kept = |TargetBucket { key, first, mut list, mask }: TargetBucket| {
            let tokens = match mask {
                Some(mut words) => {
                    words.iter_mut().zip(transitions.all()).for_each(|(word, all)| *word &= all);
                    TokenSet::from_words(words)
                }
                None => {
                    list.retain(|&token| transitions.has(token));
                    TokenSet::List(list)
                }
            };
            TargetGroup { key, first, tokens: Arc::new(tokens) }
        };
        self.groups.into_iter().map(kept).collect()
    }
}

/// Computes the targets of the tokens with a transition from a mask class.
pub(super) fn class_targets<K: MaskClasses>(
    context: ProductContext<'_, K>,
    transitions: &TokenTransitions,
    steps: &impl MaskAutomaton,
    key: MaskClassId,
    loops: &mut FxHashMap<u32, ClassSelfLoops>,
) -> Result<ClassTargets, Error> {
    let mut walk = TargetWalk { context, steps, loops, sorted: TargetSorter::default() };
    let loops = walk.loops(key)?;
    let loop_class = (loops.ascii != 0).then_some((loops.ascii, loops.wide));
    match loop_class {
        Some(loop_class) => {
            let exits = context.encoder.exit_targets(context.vocabulary, transitions, loop_class);
            walk.leave(key, &exits)?;
        }
        None => walk.all(key)?,
    }
    Ok(ClassTargets { loop_class, groups: walk.sorted.finish(transitions) })
}

/// A walk over the vocabulary.
struct TargetWalk<'a, K: MaskClasses, S> {
    context: ProductContext<'a, K>,
    steps: &'a S,
    loops: &'a mut FxHashMap<u32, ClassSelfLoops>,
    sorted: TargetSorter,
}

impl<K: MaskClasses, S: MaskAutomaton> TargetWalk<'_, K, S> {
    /// Reads all tokens that begin at a character boundary.
    fn all(&mut self, key: MaskClassId) -> Result<(), Error> {
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

    /// Reads the tokens that leave the characters on which a mask class loops.
    fn leave(&mut self, key: MaskClassId, exits: &ExitTargets) -> Result<(), Error> {
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

    /// Reads the tokens at and below a node, which leads to a mask class.
    fn below(&mut self, key: MaskClassId, root: u32) -> Result<(), Error> {
        let trie = self.context.vocabulary.trie();
        let nodes = trie.nodes();
        let words = self.context.vocabulary.len().div_ceil(32);
        let (end, top) = (nodes[root as usize].end(), nodes[root as usize].depth());
        // The mask classes on the path from the root.
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
            if here.end() > at + MAX_READ_NODES {
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

    /// Returns the characters on which a mask class loops.
    fn loops(&mut self, key: MaskClassId) -> Result<ClassSelfLoops, Error> {
        if let Some(&known) = self.loops.get(&key.number()) {
            return Ok(known);
        }
        let mut loops = ClassSelfLoops::default();
        for byte in 0..128u8 {
            if self.steps.step(key, byte)? == Some(key) {
                loops.ascii |= 1 << byte;
            }
        }
        loops.wide = loops.ascii != 0
            && reads_all_non_ascii(key, key, |key, byte| self.steps.step(key, byte))?;
        self.loops.insert(key.number(), loops);
        Ok(loops)
    }
}
