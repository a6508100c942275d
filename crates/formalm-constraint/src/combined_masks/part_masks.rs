//! The masks of one part of a composite machine: a position of a position automaton, or a
//! sublanguage of a grammar.
//!
//! ```text
//!  input     {"days": 1│2}</call>        │ the part: an object
//!   inside:  the part's own mask          2   "   ,   }
//!   leaving: the trie nodes at which a member of the part ends
//!            2} │   } │   }< │            the composite machine reads on from there
//! ```
//!
//! Members of some languages end with few bytes: objects with a brace. Only the trie nodes of these
//! bytes, and the nodes before them, can then be the end of a member.

use std::sync::Arc;

use formalm_core::{CompletionHints, Error, MaskClassId, SetOnce, StateId};
use formalm_machines::{AcceptingMaskAutomaton, AcceptingVisitor, MaskClasses};
use formalm_vocabulary::{TokenTrie, Vocabulary};

use crate::epoch::StateEpoch;
use crate::json_string::regular::SharedStringMasks;
use crate::mask_cache::MaskMemory;
use crate::shared_masks::SharedMasks;
use crate::trie_walk::{NodesBeforeBytes, TrieWalk};

/// A part's machine over the vocabulary.
#[derive(Debug)]
pub(crate) struct PartMasks<K: MaskClasses> {
    pub(crate) masks: StateEpoch<K>,
    /// The trie nodes at which members can end, if they are few.
    end_nodes: SetOnce<Option<Arc<NodesBeforeBytes>>>,
}

impl<K: MaskClasses> PartMasks<K> {
    /// Creates the masks of a part, cached in `memory`.
    pub(crate) fn new(keys: K, vocabulary: &Arc<Vocabulary>, memory: MaskMemory) -> PartMasks<K> {
        let masks = StateEpoch::within(keys, Arc::clone(vocabulary), memory);
        PartMasks { masks, end_nodes: SetOnce::new() }
    }

    /// Returns the mask classes of the part.
    pub(crate) fn keys(&self) -> &K {
        self.masks.keys()
    }

    /// Returns the trie nodes at which a member ends that a state is inside of; `None` if there are
    /// more than `most`.
    pub(crate) fn ends(&self, state: StateId, most: usize) -> Result<Option<Vec<u32>>, Error> {
        let vocabulary = self.masks.vocabulary();
        if self.masks.machine().min_bytes_hint(state)? >= vocabulary.longest_token_bytes() {
            return Ok(Some(Vec::new()));
        }
        let (trie, selected) = (vocabulary.trie(), self.end_nodes(vocabulary)?);
        let shared = vocabulary.extension::<SharedStringMasks>().map(|kept| &kept.masks);
        self.keys().visit_accepting(state, EndNodes { trie, selected, shared, most })?
    }

    fn end_nodes(&self, vocabulary: &Vocabulary) -> Result<Option<&NodesBeforeBytes>, Error> {
        if let Some(known) = self.end_nodes.get() {
            return Ok(known.as_deref());
        }
        let last = self.keys().last_bytes()?;
        let made = self.end_nodes.get_or_init(|| {
            let kept = vocabulary.extension::<SharedStringMasks>()?;
            Some(kept.end_nodes.of(vocabulary.trie(), last?))
        });
        Ok(made.as_deref())
    }

    /// Returns the memory in use in addition to the machine's and the masks', in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.masks.class_bytes() + self.masks.completion_bytes()
    }
}

/// The trie nodes at which a string of the language ends.
struct EndNodes<'a> {
    trie: &'a TokenTrie,
    /// The nodes at which one can end, with those before them, if they are few.
    selected: Option<&'a NodesBeforeBytes>,
    shared: Option<&'a SharedMasks>,
    most: usize,
}

impl AcceptingVisitor for EndNodes<'_> {
    type Result = Result<Option<Vec<u32>>, Error>;

    fn visit(self, steps: &impl AcceptingMaskAutomaton, key: MaskClassId) -> Self::Result {
        let shared = match (self.shared, steps.shared_mask_id(key)?) {
            (Some(shared), Some(id)) => Some((shared, id)),
            _ => None,
        };
        if let Some((shared, id)) = shared
            && let Some(known) = shared.ends(id)
            && known.len() <= self.most
        {
            return Ok(Some(known.to_vec()));
        }
        let mut walk = TrieWalk::new(steps, self.trie);
        let ends = match self.selected {
            Some(selected) => walk.ends_among(key, selected, self.most),
            None => walk.ends(key, self.most),
        }?;
        if let (Some((shared, id)), Some(ends)) = (shared, &ends) {
            shared.insert_ends(id, ends);
        }
        Ok(ends)
    }
}
