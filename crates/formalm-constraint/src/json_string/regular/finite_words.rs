//! Strings that end as one of finitely many words, such as enumerations: their words are followed
//! along the prefix trees of tokens, without states of a machine and without tables of one.

use formalm_automata::{FiniteWords, WordPosition};
use formalm_core::Error;
use formalm_json::{JsonStringState, escapes::raw_bytes};
use formalm_vocabulary::{JsonStringTokens, Vocabulary};

use super::ClosingTokens;
use super::continuing_token_set::ContinuingTokens;
use super::escaped_walk::walk_roots;
use crate::mask::Mask;

/// Maximum steps along the tokens; where words share no more of them, a state for each prefix costs
/// as much. Chosen, not measured.
const MAX_WALK_STEPS: usize = 10_000;

/// Returns the tokens that continue a string, and those that close it; `None` unless one of finitely
/// many words follows.
pub(super) fn word_tokens(
    vocabulary: &Vocabulary,
    strings: &JsonStringTokens,
    text: &JsonStringState,
) -> Result<Option<(ContinuingTokens, ClosingTokens)>, Error> {
    if text.transient.is_some() {
        return Ok(None);
    }
    let read = |words: FiniteWords<'_>| read_words(vocabulary, strings, text, words);
    let Some(found) = text.machine.read_finite_words(text.state, read) else { return Ok(None) };
    let Some((continuing, mut ends, may_end)) = found? else { return Ok(None) };
    if may_end {
        ends.state = Some(text.machine.end_state()?);
    }
    Ok(Some((continuing, ends)))
}

/// Returns the tokens that continue a string, those that close it, and whether any may close it.
fn read_words(
    vocabulary: &Vocabulary,
    strings: &JsonStringTokens,
    text: &JsonStringState,
    words: FiniteWords<'_>,
) -> Result<Option<(ContinuingTokens, ClosingTokens, bool)>, Error> {
    let (trie, mut ids) = (vocabulary.trie(), Vec::new());
    let (start, escapes) = (words.start(), text.escapes);
    let step = |at: WordPosition, byte: u8| Ok(words.step(at, byte));
    let first = |at: WordPosition| Some(words.next_bytes(at));
    let machine = (&step, &first);
    let roots = raw_bytes(words.next_bytes(start), escapes);
    let roots = roots.iter().filter_map(|byte| trie.root_child(byte));
    let mut emit = |node, _, _| ids.extend_from_slice(trie.tokens_at(node));
    let read =
        walk_roots(MAX_WALK_STEPS, (trie.flat(), roots), (start, escapes), machine, &mut emit);
    if read? == 0 {
        return Ok(None);
    }
    let is_end = |at: WordPosition| words.is_end(at);
    let (ends, last) = ClosingTokens::read(strings, (start, escapes), machine, &is_end)?;
    let all = Mask::from_ids(&ids, vocabulary.len().div_ceil(32));
    Ok(Some((ContinuingTokens::of(all), ends, last.is_some())))
}
