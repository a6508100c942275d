//! Members without canonical tokens: the normalizer changes them, encoding loses a part of them, or
//! the tokenizer does not know it, so decoding does not give them back.

use std::hash::Hash;

use formalm_core::{CompletionHints, Error, LazyDfa, StateId, deadline::check_deadline};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary, SplitterState};
use rustc_hash::{FxHashMap, FxHashSet};

use super::ProductContext;

/// Maximum number of states visited in search of an excluded member. Chosen, not measured.
const MAX_SEARCHED_STATES: usize = 20_000;

/// Maximum number of states of a language whose members are counted. Chosen, not measured.
const MAX_COUNTED_STATES: usize = 100_000;

/// The members that have no canonical tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExcludedMembers {
    /// One of the shortest prefixes after which the tokenizer gives no member back, completed to a
    /// member. `None` if no member is excluded, or the search gave up.
    pub example: Option<Vec<u8>>,
    /// The number of excluded members and of all, if the language is finite and small enough to
    /// count.
    pub counts: Option<(u128, u128)>,
    /// `true` if the search for an example gave up.
    pub is_unknown: bool,
}

/// Finds the members that have no canonical tokens. Languages with special tokens are not searched.
pub(super) fn excluded_members<K: MaskClasses>(
    context: ProductContext<'_, K>,
) -> Result<ExcludedMembers, Error> {
    let mut excluded = ExcludedMembers::default();
    if !context.special.is_empty() {
        excluded.is_unknown = true;
        return Ok(excluded);
    }
    // Pre-tokens multiply the states, so texts that the splitter rejects are searched for first.
    let follows: &[bool] = if TextReader::has_unknown(context) { &[false, true] } else { &[false] };
    for &follows in follows {
        match example(TextReader { context, follows })? {
            Ok(example) => excluded.example = example,
            Err(GaveUp) => excluded.is_unknown = true,
        }
        if excluded.example.is_some() {
            excluded.is_unknown = false;
            break;
        }
    }
    if excluded.example.is_some() {
        excluded.counts = counts(context)?;
    }
    Ok(excluded)
}

/// The search visited too many states.
struct GaveUp;

/// A text as the tokenizer reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct TextState {
    splitter: SplitterState,
    /// The last pre-token, and whether it is an added token; empty if pre-tokens are not followed.
    pretoken: (bool, Vec<u8>),
}

/// The reader of texts. It follows pre-tokens if some of them may have no tokens.
struct TextReader<'a, K: MaskClasses> {
    context: ProductContext<'a, K>,
    follows: bool,
}

impl<K: MaskClasses> Clone for TextReader<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: MaskClasses> Copy for TextReader<'_, K> {}

impl<K: MaskClasses> TextReader<'_, K> {
    /// Returns `true` if a pre-token may have no tokens.
    fn has_unknown(context: ProductContext<'_, K>) -> bool {
        !context.encoder.is_merging() && !context.encoder.encodes_all()
    }

    fn start(self) -> TextState {
        let splitter = self.context.splitter_start();
        TextState { splitter, pretoken: (false, Vec::new()) }
    }

    /// Returns the states after a byte, of which at most one leads to the end of a text.
    fn after(self, state: &TextState, byte: u8) -> Vec<TextState> {
        let splitter = self.context.encoder.splitter();
        let mut list = Vec::new();
        for boundary in BOUNDARIES {
            let Some(next) = splitter.step(state.splitter, byte, boundary) else { continue };
            let mut pretoken = (false, Vec::new());
            if self.follows {
                if boundary == Boundary::Inside {
                    pretoken = state.pretoken.clone();
                } else if self.pretoken_may_end(state) {
                    pretoken.0 = boundary == Boundary::Added;
                } else {
                    continue;
                }
                pretoken.1.push(byte);
            }
            list.push(TextState { splitter: next, pretoken });
        }
        list
    }

    fn pretoken_may_end(self, state: &TextState) -> bool {
        let (is_added, bytes) = &state.pretoken;
        let boundary = if *is_added { Boundary::Added } else { Boundary::Pretoken };
        bytes.is_empty() || self.context.encoder.encode_pretoken(bytes, boundary, &mut Vec::new())
    }

    fn may_end(self, state: &TextState) -> bool {
        self.context.encoder.splitter().may_end(state.splitter) && self.pretoken_may_end(state)
    }
}

/// Breadth-first search for a text of the language that the reader does not give back.
fn example<K: MaskClasses>(
    reader: TextReader<'_, K>,
) -> Result<Result<Option<Vec<u8>>, GaveUp>, Error> {
    let machine = reader.context.machine;
    let start = (machine.start(), vec![reader.start()]);
    let mut visited = vec![(start.clone(), 0, 0u8)];
    let mut seen = FxHashSet::from_iter([start]);
    let mut at = 0;
    while at < visited.len() {
        check_deadline()?;
        let (state, states) = visited[at].0.clone();
        let prefix = |mut at: usize| {
            let mut text = Vec::new();
            while at != 0 {
                text.push(visited[at].2);
                at = visited[at].1;
            }
            text.reverse();
            text
        };
        if machine.is_accepting(state)? && !states.iter().any(|one| reader.may_end(one)) {
            return Ok(Ok(Some(prefix(at))));
        }
        let mut found = Vec::new();
        for byte in machine.live_bytes(state)?.iter() {
            let Some(next) = machine.step(state, byte)? else { continue };
            let mut after: Vec<TextState> =
                states.iter().flat_map(|one| reader.after(one, byte)).collect();
            after.sort_unstable();
            after.dedup();
            if after.is_empty() {
                let mut text = prefix(at);
                text.push(byte);
                text.extend(machine.any_completion(next)?);
                return Ok(Ok(Some(text)));
            }
            if seen.insert((next, after.clone())) {
                found.push(((next, after), at, byte));
            }
        }
        visited.append(&mut found);
        if visited.len() > MAX_SEARCHED_STATES {
            return Ok(Err(GaveUp));
        }
        at += 1;
    }
    Ok(Ok(None))
}

/// Counts the excluded members and all. The splitter admits exactly one annotation of each text
/// that the tokenizer gives back, so paths of the product are members.
fn counts<K: MaskClasses>(context: ProductContext<'_, K>) -> Result<Option<(u128, u128)>, Error> {
    let machine = context.machine;
    let reader = TextReader { context, follows: TextReader::has_unknown(context) };
    let after = |state: StateId| -> Result<Vec<(StateId, u8)>, Error> {
        let live = machine.live_bytes(state)?;
        let mut list = Vec::new();
        for byte in live.iter() {
            list.extend(machine.step(state, byte)?.map(|next| (next, byte)));
        }
        Ok(list)
    };
    let all = count_paths(
        machine.start(),
        |&state| machine.is_accepting(state),
        |&state| Ok(after(state)?.into_iter().map(|one| one.0).collect()),
    )?;
    let Some(all) = all else { return Ok(None) };
    let kept = count_paths(
        (machine.start(), reader.start()),
        |(state, one)| Ok(reader.may_end(one) && machine.is_accepting(*state)?),
        |(state, one)| {
            let mut list = Vec::new();
            for (next, byte) in after(*state)? {
                list.extend(reader.after(one, byte).into_iter().map(|one| (next, one)));
            }
            Ok(list)
        },
    )?;
    Ok(kept.map(|kept| (all - kept, all)))
}

/// Counts the paths to acceptance. Returns `None` if there are infinitely many, more than a number
/// holds, or too many states.
fn count_paths<N: Clone + Eq + Hash>(
    start: N,
    is_accepting: impl Fn(&N) -> Result<bool, Error>,
    after: impl Fn(&N) -> Result<Vec<N>, Error>,
) -> Result<Option<u128>, Error> {
    // `None` while a state is on the path.
    let mut counts: FxHashMap<N, Option<u128>> = FxHashMap::from_iter([(start.clone(), None)]);
    let (count, further) = (u128::from(is_accepting(&start)?), after(&start)?);
    let mut path = vec![(start, count, further)];
    loop {
        check_deadline()?;
        let Some((here, count, pending)) = path.last_mut() else { return Ok(None) };
        let Some(next) = pending.pop() else {
            let (here, count) = (here.clone(), *count);
            counts.insert(here, Some(count));
            path.pop();
            let Some((_, before, _)) = path.last_mut() else { return Ok(Some(count)) };
            match before.checked_add(count) {
                Some(sum) => *before = sum,
                None => return Ok(None),
            }
            continue;
        };
        match counts.get(&next) {
            Some(None) => return Ok(None),
            Some(&Some(known)) => match count.checked_add(known) {
                Some(sum) => *count = sum,
                None => return Ok(None),
            },
            None if counts.len() > MAX_COUNTED_STATES => return Ok(None),
            None => {
                counts.insert(next.clone(), None);
                let (count, further) = (u128::from(is_accepting(&next)?), after(&next)?);
                path.push((next, count, further));
            }
        }
    }
}
