//! Tokens that open a string whose content regular machines read.
//!
//! What such a token spells after the quote is read by the machines alone, as inside the string.

use formalm_core::{Error, LazyDfa, MaskClassId, StateId};
use formalm_json::{JsonStringState, escapes::raw_bytes};
use formalm_machines::MaskAutomaton;
use formalm_vocabulary::{StringOpening, Vocabulary};

use super::escaped_walk::walk_roots;
use super::{ClosingTokens, MAX_WALKED_BYTES, StringPlace, read_exceptions};
use crate::json_string::length::{QuoteContinuations, closing_tokens};
use crate::mask::Mask;

/// Returns the tokens that open a string and are viable, given the class after the opening.
/// Returns `None` if machines do not decide them alone, or if few bytes may follow.
pub(crate) fn opened(
    keys: &impl MaskAutomaton,
    vocabulary: &Vocabulary,
    continuations: &QuoteContinuations,
    (inside, opening): (MaskClassId, StringOpening),
) -> Result<Option<Mask>, Error> {
    let trie = vocabulary.trie();
    let Some(node) = trie.find(opening.bytes()) else { return Ok(None) };
    let (alone, texts, exceptions) = match keys.json_string_state(inside)? {
        Some(text) if text.transient.is_none() => (true, vec![text], None),
        Some(_) => return Ok(None),
        None => match keys.alternative_string_states(inside)? {
            Some(found) => (false, found.states, Some(found.exceptions)),
            None => return Ok(None),
        },
    };
    let Some(escapes) = texts.first().map(|text| text.escapes) else { return Ok(None) };
    let mut is_broad = false;
    for text in &texts {
        if !text.is_char_boundary()? {
            return Ok(None);
        }
        is_broad |= text.machine.live_bytes(text.state)?.len() > MAX_WALKED_BYTES;
    }
    if !is_broad {
        return Ok(None);
    }
    let strings = vocabulary.string_opening_tokens(opening, escapes);
    let mut ids = trie.tokens_at(node).to_vec();
    for text in &texts {
        ids.extend(continuing(vocabulary, text, node)?);
    }
    if let Some(exceptions) = exceptions {
        let (node, opening_len) = (Some(node), opening.bytes().len());
        let place = StringPlace { node, opening_len, strings };
        let (viable, mut refused) =
            read_exceptions(keys, vocabulary, (inside, &exceptions), &place)?;
        refused.sort_unstable();
        ids.retain(|token| refused.binary_search(token).is_err());
        ids.extend(viable);
    }
    ids.extend(match &texts[..] {
        [text] if alone => {
            ClosingTokens::of(strings, text)?.viable(keys, continuations, (strings, inside))?
        }
        _ => closing_tokens(keys, continuations, strings, inside)?,
    });
    // Several machines may continue with one token.
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(Mask::from_ids(&ids, vocabulary.len().div_ceil(32))))
}

/// Returns the tokens below the node of an opening that continue the string.
fn continuing(
    vocabulary: &Vocabulary,
    text: &JsonStringState,
    node: u32,
) -> Result<Vec<u32>, Error> {
    let (trie, mut ids) = (vocabulary.trie(), Vec::new());
    let step = |state: StateId, byte: u8| text.machine.step(state, byte);
    let first = |state: StateId| text.machine.first_bytes(state);
    let live = match first(text.state) {
        Some(live) => live,
        None => text.machine.live_bytes(text.state)?,
    };
    let live = raw_bytes(live, text.escapes);
    let (bytes, children) = trie.children(node);
    let children = bytes.iter().zip(children).filter(|&(&byte, _)| live.contains(byte));
    let roots = (trie.flat(), children.map(|(_, &child)| child));
    let mut emit = |node, _, _| ids.extend_from_slice(trie.tokens_at(node));
    walk_roots(usize::MAX, roots, (text.state, text.escapes), (&step, &first), &mut emit)?;
    Ok(ids)
}
