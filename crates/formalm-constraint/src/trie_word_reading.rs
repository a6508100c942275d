//! Reading of words and literals along prefix trees.

use formalm_core::{ByteSet, Error, MaskClassId};
use formalm_machines::{LiteralList, MaskAutomaton, ValueEnd};
use formalm_vocabulary::{FlatTrie, TokenTrie};

/// A node on the path to the current one.
#[derive(Clone, Copy)]
struct PathNode {
    /// The node, or `None` before the root.
    node: Option<u32>,
    /// The class after its byte.
    class: MaskClassId,
    /// The bytes that may follow, if they are few.
    few: Option<ByteSet>,
}

/// Emits the words at and below a node that are viable from a class, with the classes they lead to.
/// The node is not read yet.
pub(crate) fn words<K: MaskAutomaton>(
    keys: &K,
    trie: &FlatTrie,
    (root, key): (u32, MaskClassId),
    emit: &mut impl FnMut(u32, MaskClassId),
) -> Result<(), Error> {
    words_within(keys, trie, (&[(root, false)], key), None, emit)
}

/// Emits the words at and below nodes, or only below those already read, that are viable from a
/// class. Inside an isolated value it reads up to its end.
pub(crate) fn words_within<K: MaskAutomaton>(
    keys: &K,
    trie: &FlatTrie,
    (roots, key): (&[(u32, bool)], MaskClassId),
    mut exits: Option<&mut Vec<u32>>,
    emit: &mut impl FnMut(u32, MaskClassId),
) -> Result<(), Error> {
    let first = keys.possible_bytes(key)?;
    let nodes = trie.nodes();
    let mut stack: Vec<PathNode> = Vec::new();
    for &(root, is_read) in roots {
        let top = nodes[root as usize].depth() + usize::from(is_read);
        let mut at = root + u32::from(is_read);
        stack.clear();
        let node = is_read.then_some(root);
        stack.push(PathNode { node, class: key, few: first });
        if exits.is_some()
            && let ValueEnd::MayEnd(bytes) = keys.value_end(key)?
        {
            stack[0].few = Some(bytes);
        }
        while at < nodes[root as usize].end() {
            let here = nodes[at as usize];
            let depth = here.depth() - top;
            let PathNode { node: parent, class: before, few } = stack[depth];
            if let Some(few) = few
                && !few.contains(here.byte())
            {
                at = parent.map_or(here.end(), |parent| trie.next_sibling(Some(parent), at, few));
                continue;
            }
            let Some(next) = keys.step(before, here.byte())? else {
                at = here.end();
                continue;
            };
            if let Some(word) = here.word() {
                emit(word, next);
            }
            if here.end() > at + 1 {
                let mut few =
                    if K::KNOWS_POSSIBLE_BYTES { keys.possible_bytes(next)? } else { None };
                if let Some(exits) = &mut exits {
                    let ended = keys.value_end(next)?;
                    if ended != ValueEnd::Open {
                        exits.push(at);
                    }
                    match ended {
                        ValueEnd::Open => {}
                        ValueEnd::MayEnd(bytes) => few = Some(bytes),
                        ValueEnd::Ended => {
                            at = here.end();
                            continue;
                        }
                    }
                }
                stack.truncate(depth + 1);
                stack.push(PathNode { node: Some(at), class: next, few });
            }
            at += 1;
        }
    }
    Ok(())
}

/// Emits the trie nodes along literals, each once, below a node that was read or from the root.
pub(crate) fn along(
    trie: &TokenTrie,
    from: Option<u32>,
    literals: &LiteralList,
    mut emit: impl FnMut(u32),
) {
    let (mut before, mut path): (&[u8], Vec<u32>) = (&[], Vec::new());
    for text in literals.iter() {
        let common = before.iter().zip(text).take_while(|(one, other)| one == other).count();
        before = text;
        if path.len() < common {
            // No token is that long.
            continue;
        }
        path.truncate(common);
        for &byte in &text[common..] {
            let next = match path.last().copied().or(from) {
                Some(node) => trie.child(node, byte),
                None => trie.root_child(byte),
            };
            let Some(next) = next else { break };
            path.push(next);
            emit(next);
        }
    }
}

/// Returns the class after a string.
pub(crate) fn read(
    keys: &impl MaskAutomaton,
    key: MaskClassId,
    text: &[u8],
) -> Result<Option<MaskClassId>, Error> {
    let mut key = key;
    for &byte in text {
        match keys.step(key, byte)? {
            Some(next) => key = next,
            None => return Ok(None),
        }
    }
    Ok(Some(key))
}
