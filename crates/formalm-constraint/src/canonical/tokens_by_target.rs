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

/// Strings after which a class that loops is looked for: a character beyond ASCII, a letter, and a
/// digit. Chosen, not measured.
const STRINGS_TRIED: [&[u8]; 3] = ["é".as_bytes(), b"a", b"1"];

/// The targets of tokens from one mask class.
#[derive(Debug)]
pub(super) struct ClassTargets {
    pub(super) loop_class: Option<CoarseCharClass>,
    /// A string after which the class is another one that reads the same bytes to the same classes,
    /// and that stands for it here.
    pub(super) stood_in_after: Option<&'static [u8]>,
    /// The tokens with a transition.
    pub(super) groups: Vec<TargetGroup>,
    /// The tokens without one that begin at a character boundary, by their position among all.
    pub(super) untabulated: Vec<(u32, MaskClassId)>,
}

/// The tokens that lead to one mask class.
#[derive(Debug)]
pub(super) struct TargetGroup {
    pub(super) key: MaskClassId,
    /// A token that leads there, with or without a transition.
    pub(super) first: u32,
    pub(super) tokens: Arc<TokenSet>,
}

/// The characters on which a mask class loops, as far as they were tested.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClassSelfLoops {
    ascii: u128,
    /// The ASCII characters that were tested.
    tested: u128,
    /// `true` if the class loops on every character beyond ASCII.
    wide: Option<bool>,
}

impl ClassSelfLoops {
    /// Returns `true` if a class loops on all characters of an ASCII set. Tests only until one does
    /// not: each test reads a byte, which ends a value where it must not repeat an earlier one.
    fn has_ascii(
        &mut self,
        steps: &impl MaskAutomaton,
        key: MaskClassId,
        characters: u128,
    ) -> Result<bool, Error> {
        if characters & self.tested & !self.ascii != 0 {
            return Ok(false);
        }
        let mut open = characters & !self.tested;
        while open != 0 {
            let byte = open.trailing_zeros();
            open &= open - 1;
            self.tested |= 1 << byte;
            if steps.step(key, byte as u8)? != Some(key) {
                return Ok(false);
            }
            self.ascii |= 1 << byte;
        }
        Ok(true)
    }

    /// Returns `true` if a class loops on every character beyond ASCII.
    fn has_non_ascii(
        &mut self,
        steps: &impl MaskAutomaton,
        key: MaskClassId,
    ) -> Result<bool, Error> {
        if let Some(wide) = self.wide {
            return Ok(wide);
        }
        let wide = reads_all_non_ascii(key, key, |key, byte| steps.step(key, byte))?;
        self.wide = Some(wide);
        Ok(wide)
    }
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

/// Returns a class that is met on the way, reads the same bytes to the same classes and loops on
/// them, with a string that leads there. A machine may number the classes that it meets apart from
/// those it begins at.
fn stand_in(
    steps: &impl MaskAutomaton,
    key: MaskClassId,
) -> Result<Option<(MaskClassId, &'static [u8])>, Error> {
    for read in STRINGS_TRIED {
        let mut next = Some(key);
        for &byte in read {
            next = match next {
                Some(here) => steps.step(here, byte)?,
                None => break,
            };
        }
        let Some(next) = next.filter(|&next| next != key) else { continue };
        let same = |from_key: Option<MaskClassId>, from_next: Option<MaskClassId>| {
            from_key == from_next || from_key == Some(key) && from_next == Some(next)
        };
        let mut loops = false;
        for byte in 0..=255 {
            let from_next = steps.step(next, byte)?;
            loops = loops || from_next == Some(next);
            if !same(steps.step(key, byte)?, from_next) {
                return Ok(None);
            }
        }
        if loops {
            return Ok(Some((next, read)));
        }
    }
    Ok(None)
}

/// Computes the targets of the tokens from a mask class. Another class may stand in for it if
/// `may_stand_in`.
pub(super) fn class_targets<K: MaskClasses>(
    context: ProductContext<'_, K>,
    transitions: &TokenTransitions,
    steps: &impl MaskAutomaton,
    (key, may_stand_in): (MaskClassId, bool),
    loops: &mut FxHashMap<u32, ClassSelfLoops>,
) -> Result<ClassTargets, Error> {
    let stand_in = if may_stand_in { stand_in(steps, key)? } else { None };
    let key = stand_in.map_or(key, |(next, _)| next);
    let mut walk = TargetWalk { context, steps, loops, sorted: TargetSorter::default() };
    let loop_class = walk.loop_class(key)?;
    match loop_class {
        Some(loop_class) => {
            let exits = context.encoder.exit_targets(context.vocabulary, transitions, loop_class);
            walk.leave(key, &exits)?;
        }
        None => walk.all(key)?,
    }
    let untabulated = walk.untabulated(key)?;
    let stood_in_after = stand_in.map(|(_, read)| read);
    let groups = walk.sorted.finish(transitions);
    Ok(ClassTargets { loop_class, stood_in_after, groups, untabulated })
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

    /// Reads the tokens without a transition.
    fn untabulated(&self, key: MaskClassId) -> Result<Vec<(u32, MaskClassId)>, Error> {
        let ProductContext { vocabulary, encoder, .. } = self.context;
        let mut list = Vec::new();
        let tokens = encoder.untabulated_tokens(vocabulary);
        let live = self.steps.live_bytes(key)?;
        tokens.read(
            vocabulary,
            (key, live.iter()),
            |here, _, byte| self.steps.step(here, byte),
            |at, there| list.push((at, there)),
        )?;
        Ok(list)
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
            if here.end() > at + MAX_READ_NODES && self.loops_below(next, at)? {
                self.sorted.add(next, trie.tokens_below(at), words);
                at = here.end();
                continue;
            }
            stack.truncate(depth);
            stack.push(next);
            at += 1;
        }
        Ok(())
    }

    /// Returns the characters on which a mask class loops, if any are ASCII.
    fn loop_class(&mut self, key: MaskClassId) -> Result<Option<CoarseCharClass>, Error> {
        let loops = self.loops.entry(key.number()).or_default();
        for byte in 0..128u32 {
            loops.has_ascii(self.steps, key, 1 << byte)?;
        }
        let ascii = loops.ascii;
        Ok(match ascii {
            0 => None,
            _ => Some((ascii, loops.has_non_ascii(self.steps, key)?)),
        })
    }

    /// Returns `true` if a mask class loops on all characters below a node.
    fn loops_below(&mut self, key: MaskClassId, node: u32) -> Result<bool, Error> {
        let signature = self.context.vocabulary.trie().signature(node);
        if signature.unclean() {
            return Ok(false);
        }
        let loops = self.loops.entry(key.number()).or_default();
        Ok(loops.has_ascii(self.steps, key, signature.ascii())?
            && (!signature.has_non_ascii() || loops.has_non_ascii(self.steps, key)?))
    }
}
