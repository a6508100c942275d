//! Walks along prefix trees of escaped strings, read through a machine of their content.

use std::ops::Range;

use formalm_core::{ByteSet, Error, LazyDfa, StateId, deadline::check_deadline};
use formalm_json::{
    JsonStringState,
    escapes::{EscapePolicy, EscapeState, raw_bytes},
    step_json_string,
};
use formalm_vocabulary::{FlatTrie, Vocabulary};

use super::continuing_token_set::ContinuingTokens;
use crate::mask::Mask;
use crate::trie_walk::DEADLINE_CHECK_MASK;

/// Maximum steps of a walk where few bytes may follow; a longer one is abandoned. Chosen, not
/// measured.
const MAX_WALK_STEPS: usize = 1000;

/// Number of viable bytes after the first from which on a walk of many tokens is not tried. Chosen,
/// not measured.
const MIN_BROAD_BYTES: usize = 26;

/// Returns the tokens that continue a string, if few bytes may follow. Returns `None` if the walk
/// takes too long.
pub(super) fn continuing_by_walk(
    vocabulary: &Vocabulary,
    text: &JsonStringState,
    live: ByteSet,
) -> Result<Option<ContinuingTokens>, Error> {
    let (trie, mut ids) = (vocabulary.trie(), Vec::new());
    let step = |state: StateId, byte: u8| text.machine.step(state, byte);
    let first = |state: StateId| text.machine.first_bytes(state);
    let roots = raw_bytes(live, text.escapes);
    let roots = roots.iter().filter_map(|byte| trie.root_child(byte)).collect::<Vec<u32>>();
    // Where many tokens begin so and nearly anything may follow, the walk would be abandoned.
    for &root in &roots {
        let node = trie.nodes()[root as usize];
        if (node.end() - root) as usize > MAX_WALK_STEPS
            && let Some(next) = step(text.state, node.byte())?
            && first(next).is_some_and(|live| live.len() >= MIN_BROAD_BYTES)
        {
            return Ok(None);
        }
    }
    let start = (text.state, text.escapes);
    let mut emit = |node, _, _| ids.extend_from_slice(trie.tokens_at(node));
    let roots = (trie.flat(), roots.into_iter());
    let left = walk_roots(MAX_WALK_STEPS, roots, start, (&step, &first), &mut emit)?;
    let words = vocabulary.len().div_ceil(32);
    Ok((left > 0).then(|| ContinuingTokens::of(Mask::from_ids(&ids, words))))
}

/// Walks the subtrees of some nodes, whose bytes are possible, as [`walk_escaped`] does, in at most
/// `steps_left` steps. Returns the steps left; 0 if they were too few.
pub(super) fn walk_roots<S: Copy>(
    steps_left: usize,
    (trie, roots): (&FlatTrie, impl Iterator<Item = u32>),
    start: (S, EscapePolicy),
    machine: (&impl Fn(S, u8) -> Result<Option<S>, Error>, &impl Fn(S) -> Option<ByteSet>),
    emit: &mut impl FnMut(u32, u32, S),
) -> Result<usize, Error> {
    let mut steps_left = steps_left;
    for root in roots {
        let nodes = root..trie.nodes()[root as usize].end();
        steps_left = walk_escaped_within(steps_left, (trie, nodes), start, machine, emit)?;
    }
    Ok(steps_left)
}

/// Emits the words of a prefix tree whose content the machine reads: the node, the word and the
/// state after it. The machine is a step function, and one that returns the bytes of content that
/// may follow a state if they are known without steps.
pub(crate) fn walk_escaped<S: Copy>(
    trie: &FlatTrie,
    from: (S, EscapePolicy),
    machine: (&impl Fn(S, u8) -> Result<Option<S>, Error>, &impl Fn(S) -> Option<ByteSet>),
    emit: &mut impl FnMut(u32, u32, S),
) -> Result<(), Error> {
    let nodes = 0..trie.nodes().len() as u32;
    walk_escaped_within(usize::MAX, (trie, nodes), from, machine, emit).map(|_| ())
}

/// A node on the path to the current one, or the root.
#[derive(Clone, Copy)]
struct PathNode<S> {
    node: Option<u32>,
    state: (S, EscapeState),
    /// The bytes that may follow, if they are known.
    few: Option<ByteSet>,
}

/// Walks subtrees of a trie, all its nodes or those of one root, in at most `steps_left` steps.
/// Returns the steps left; 0 if they were too few.
fn walk_escaped_within<S: Copy>(
    steps_left: usize,
    (trie, nodes): (&FlatTrie, Range<u32>),
    (start, policy): (S, EscapePolicy),
    (step, first): (&impl Fn(S, u8) -> Result<Option<S>, Error>, &impl Fn(S) -> Option<ByteSet>),
    emit: &mut impl FnMut(u32, u32, S),
) -> Result<usize, Error> {
    let possible = |(state, escape): (S, EscapeState)| match escape {
        EscapeState::None => first(state).map(|content| raw_bytes(content, policy)),
        _ => None,
    };
    let state = (start, EscapeState::None);
    let above = trie.nodes().get(nodes.start as usize).map_or(0, |first| first.depth() - 1);
    let mut stack = vec![PathNode { node: None, state, few: possible(state) }];
    let (mut at, mut steps_left) = (nodes.start, steps_left);
    while at < nodes.end {
        let here = trie.nodes()[at as usize];
        let PathNode { node: parent, state, few } = stack[here.depth() - above - 1];
        if let Some(few) = few
            && !few.contains(here.byte())
        {
            at = trie.next_sibling(parent, at, few);
            continue;
        }
        if steps_left == 0 {
            break;
        }
        steps_left -= 1;
        if at & DEADLINE_CHECK_MASK == 0 {
            check_deadline()?;
        }
        let Some(next) = step_json_string(state, here.byte(), policy, step)? else {
            at = here.end();
            continue;
        };
        if let Some(word) = here.word() {
            emit(at, word, next.0);
        }
        if here.end() > at + 1 {
            stack.truncate(here.depth() - above);
            stack.push(PathNode { node: Some(at), state: next, few: possible(next) });
        }
        at += 1;
    }
    Ok(steps_left)
}
