//! Walks along prefix trees of escaped strings, read through a machine of their content.

use formalm_core::{ByteSet, Error, LazyDfa, StateId, deadline::check_deadline};
use formalm_json::{
    JsonStringState,
    escapes::{EscapePolicy, EscapeState},
    step_json_string,
};
use formalm_vocabulary::{TrieNode, Vocabulary};

use super::continuing_token_set::ContinuingTokens;
use crate::mask::Mask;
use crate::trie_walk::DEADLINE_CHECK_MASK;

/// Maximum steps of a walk where few bytes may follow; a longer one is abandoned. Chosen, not
/// measured.
const MAX_WALK_STEPS: usize = 1000;

/// Returns the tokens that continue a string, if few bytes may follow. Returns `None` if the walk
/// takes too long.
pub(super) fn continuing_by_walk(
    vocabulary: &Vocabulary,
    text: &JsonStringState,
    live: ByteSet,
) -> Result<Option<ContinuingTokens>, Error> {
    let (trie, mut ids, mut steps_left) = (vocabulary.trie(), Vec::new(), MAX_WALK_STEPS);
    let step = |state: StateId, byte: u8| text.machine.step(state, byte);
    let roots = live.iter().filter(|&byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    for root in roots.chain([b'\\']).filter_map(|byte| trie.root_child(byte)) {
        let nodes = &trie.nodes()[root as usize..trie.nodes()[root as usize].end() as usize];
        let start = (text.state, text.escapes);
        steps_left =
            walk_escaped_within(steps_left, (nodes, root), start, &step, &mut |node, _, _| {
                ids.extend_from_slice(trie.tokens_at(node));
            })?;
    }
    let words = vocabulary.len().div_ceil(32);
    Ok((steps_left > 0).then(|| ContinuingTokens::of(Mask::from_ids(&ids, words))))
}

/// Emits the words of a prefix tree whose content the machine reads: the node, the word and the
/// state after it.
pub(crate) fn walk_escaped<S: Copy>(
    nodes: &[TrieNode],
    from: (S, EscapePolicy),
    step: &impl Fn(S, u8) -> Result<Option<S>, Error>,
    emit: &mut impl FnMut(u32, u32, S),
) -> Result<(), Error> {
    walk_escaped_within(usize::MAX, (nodes, 0), from, step, emit).map(|_| ())
}

/// Walks nodes, the first of which is `first`, in at most `steps_left` steps. Returns the steps
/// left; 0 if they were too few.
fn walk_escaped_within<S: Copy>(
    steps_left: usize,
    (nodes, first): (&[TrieNode], u32),
    (start, policy): (S, EscapePolicy),
    step: &impl Fn(S, u8) -> Result<Option<S>, Error>,
    emit: &mut impl FnMut(u32, u32, S),
) -> Result<usize, Error> {
    let mut stack = vec![(start, EscapeState::None)];
    let (mut at, mut steps_left) = (first, steps_left);
    while let Some(&here) = nodes.get((at - first) as usize) {
        if steps_left == 0 {
            break;
        }
        steps_left -= 1;
        if at & DEADLINE_CHECK_MASK == 0 {
            check_deadline()?;
        }
        let Some(next) = step_json_string(stack[here.depth() - 1], here.byte(), policy, step)?
        else {
            at = here.end();
            continue;
        };
        if let Some(word) = here.word() {
            emit(at, word, next.0);
        }
        stack.truncate(here.depth());
        stack.push(next);
        at += 1;
    }
    Ok(steps_left)
}
