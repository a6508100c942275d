//! Members without canonical tokens: the normalizer changes them, or encoding loses a part of them,
//! so decoding does not give them back.

use std::hash::Hash;

use formalm_core::{CompletionHints, Error, LazyDfa, StateId, deadline::check_deadline};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::{BOUNDARIES, SplitterState};
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
    match example(context)? {
        Ok(example) => excluded.example = example,
        Err(GaveUp) => excluded.is_unknown = true,
    }
    if excluded.example.is_some() {
        excluded.counts = counts(context)?;
    }
    Ok(excluded)
}

/// The search visited too many states.
struct GaveUp;

/// The splitter states after a text, of which at most one leads to its end.
type PossibleStates = Vec<SplitterState>;

fn step<K: MaskClasses>(
    context: ProductContext<'_, K>,
    states: &[SplitterState],
    byte: u8,
) -> PossibleStates {
    let splitter = context.encoder.splitter();
    let after = |&state: &SplitterState| {
        BOUNDARIES.into_iter().filter_map(move |boundary| splitter.step(state, byte, boundary))
    };
    let mut next: PossibleStates = states.iter().flat_map(after).collect();
    next.sort_unstable();
    next.dedup();
    next
}

/// Breadth-first search for a text of the language that the splitter rejects.
fn example<K: MaskClasses>(
    context: ProductContext<'_, K>,
) -> Result<Result<Option<Vec<u8>>, GaveUp>, Error> {
    let (machine, splitter) = (context.machine, context.encoder.splitter());
    let start = (machine.start(), vec![splitter.start()]);
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
        if machine.is_accepting(state)? && !states.iter().any(|&one| splitter.may_end(one)) {
            return Ok(Ok(Some(prefix(at))));
        }
        let mut found = Vec::new();
        for byte in machine.live_bytes(state)?.iter() {
            let Some(next) = machine.step(state, byte)? else { continue };
            let states = step(context, &states, byte);
            if states.is_empty() {
                let mut text = prefix(at);
                text.push(byte);
                text.extend(machine.any_completion(next)?);
                return Ok(Ok(Some(text)));
            }
            if seen.insert((next, states.clone())) {
                found.push(((next, states), at, byte));
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
    let (machine, splitter) = (context.machine, context.encoder.splitter());
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
        (machine.start(), splitter.start()),
        |&(state, one)| Ok(splitter.may_end(one) && machine.is_accepting(state)?),
        |&(state, one)| {
            let mut list = Vec::new();
            for (next, byte) in after(state)? {
                let steps = BOUNDARIES.into_iter();
                list.extend(steps.filter_map(|it| splitter.step(one, byte, it)).map(|s| (next, s)));
            }
            Ok(list)
        },
    )?;
    Ok(kept.map(|kept| (all - kept, all)))
}

/// Counts the paths to acceptance. Returns `None` if there are infinitely many, more than a number
/// holds, or too many states.
fn count_paths<N: Copy + Eq + Hash>(
    start: N,
    is_accepting: impl Fn(&N) -> Result<bool, Error>,
    after: impl Fn(&N) -> Result<Vec<N>, Error>,
) -> Result<Option<u128>, Error> {
    // `None` while a state is on the path.
    let mut counts: FxHashMap<N, Option<u128>> = FxHashMap::from_iter([(start, None)]);
    let mut path = vec![(start, u128::from(is_accepting(&start)?), after(&start)?)];
    loop {
        check_deadline()?;
        let Some((here, count, pending)) = path.last_mut() else { return Ok(None) };
        let Some(next) = pending.pop() else {
            let (here, count) = (*here, *count);
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
                counts.insert(next, None);
                path.push((next, u128::from(is_accepting(&next)?), after(&next)?));
            }
        }
    }
}
