//! Words of prefix trees that spell texts which a machine reads.

use formalm_automata::deadline::check_deadline;
use formalm_automata::spelling::{Escape, Escapes};
use formalm_automata::{ByteSet, Error, InText, Machine, StateId, spell};
use formalm_vocabulary::{TrieNode, Vocabulary};

use super::continuing_tokens::Inside;
use crate::mask::Mask;
use crate::trie_walk::CHECKED;

/// Steps of a walk where few bytes may come; a longer one is given up.
const STEPS: usize = 1000;

/// Tokens after which a text goes on, where few bytes may come.
/// `None` if the walk is a long one.
pub(super) fn walked(
    vocabulary: &Vocabulary,
    text: &InText,
    live: ByteSet,
) -> Result<Option<Inside>, Error> {
    let (trie, mut ids, mut left) = (vocabulary.trie(), Vec::new(), STEPS);
    let step = |state: StateId, byte: u8| text.machine.step(state, byte);
    let roots = live.iter().filter(|&byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    for root in roots.chain([b'\\']).filter_map(|byte| trie.root_child(byte)) {
        let nodes = &trie.nodes()[root as usize..trie.nodes()[root as usize].end() as usize];
        let start = (text.state, text.escapes);
        left = spelled_within(left, (nodes, root), start, &step, &mut |node, _, _| {
            ids.extend_from_slice(trie.tokens_at(node));
        })?;
    }
    let words = vocabulary.len().div_ceil(32);
    Ok((left > 0).then(|| Inside::of(Mask::from_ids(&ids, words))))
}

/// Hands out the words of a prefix tree that spell texts which a machine reads: the node, the word
/// and the machine's state behind it.
pub(crate) fn spelled<S: Copy>(
    nodes: &[TrieNode],
    from: (S, Escapes),
    step: &impl Fn(S, u8) -> Result<Option<S>, Error>,
    emit: &mut impl FnMut(u32, u32, S),
) -> Result<(), Error> {
    spelled_within(usize::MAX, (nodes, 0), from, step, emit).map(|_| ())
}

/// The same of nodes the first of which has a number, in at most `left` steps: how many are left,
/// none if they were too few.
fn spelled_within<S: Copy>(
    left: usize,
    (nodes, first): (&[TrieNode], u32),
    (start, policy): (S, Escapes),
    step: &impl Fn(S, u8) -> Result<Option<S>, Error>,
    emit: &mut impl FnMut(u32, u32, S),
) -> Result<usize, Error> {
    let mut stack = vec![(start, Escape::None)];
    let (mut at, mut left) = (first, left);
    while let Some(&here) = nodes.get((at - first) as usize) {
        if left == 0 {
            break;
        }
        left -= 1;
        if at & CHECKED == 0 {
            check_deadline()?;
        }
        let Some(next) = spell(stack[here.depth() - 1], here.byte(), policy, step)? else {
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
    Ok(left)
}
