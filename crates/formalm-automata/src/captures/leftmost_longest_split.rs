//! Splitting a string into consecutive members of a sequence of languages, leftmost-longest.

use formalm_core::{Error, Machine, StepMeter};
use formalm_regex::capture_matcher::{check_memory, out_of_steps};
use rustc_hash::FxHashSet;

/// Overhead of a list of ends, in words.
const LIST_OVERHEAD_WORDS: usize = 3;

/// The number of pieces and the languages they belong to.
pub(super) struct SplitRequest<'a> {
    /// Minimum number of pieces.
    pub(super) least: usize,
    /// Maximum number of pieces.
    pub(super) most: Option<usize>,
    /// Returns the machine of a piece by its index; `None` if it has no member.
    pub(super) member: &'a dyn Fn(usize) -> Option<&'a dyn Machine>,
}

/// Splits `text` into `least` to `most` consecutive members of the languages and returns where the
/// pieces end, or `None` if there is no such split. Pieces beyond the list belong to its last
/// language; `None` is the empty language. Each piece in turn is as long as possible, and an
/// optional piece is not empty.
///
/// # Errors
///
/// [`Error::Limit`] once machines read more than `steps` bytes, or when too much memory would be
/// needed; what machines report.
pub fn split_among(
    members: &[Option<&dyn Machine>],
    (least, most): (usize, Option<usize>),
    text: &[u8],
    steps: u64,
) -> Result<Option<Vec<usize>>, Error> {
    let last = members.last().copied().flatten();
    let member = |number: usize| members.get(number).copied().unwrap_or(last);
    split_string(
        text,
        &SplitRequest { least, most, member: &member },
        &mut StepMeter { steps: 0, allowed: steps },
    )
}

/// Returns where each piece ends. Each piece in turn is as long as possible such that the rest can
/// still be split; optional pieces are made only of what is left.
///
/// Failed positions are remembered, so that no suffix is tried twice.
pub(super) fn split_string(
    text: &[u8],
    division: &SplitRequest,
    work: &mut StepMeter,
) -> Result<Option<Vec<usize>>, Error> {
    let mut failed = FxHashSet::default();
    // The possible ends of each piece, with the one being tried last. The first list is the start
    // of the string.
    let mut open = vec![vec![0]];
    let mut kept = 0;
    while let Some(&at) = next_end(&mut open, division, &mut failed, &mut kept) {
        let count = open.len() - 1;
        if at == text.len() && count >= division.least {
            return Ok(Some(open[1..].iter().filter_map(|ends| ends.last().copied()).collect()));
        }
        let is_full = division.most.is_some_and(|most| count >= most);
        if is_full || failed.contains(&(division.equivalent_count(count), at)) {
            open.last_mut().and_then(Vec::pop);
            continue;
        }
        let ends = match (division.member)(count) {
            Some(machine) => ends_of(machine, text, at, count < division.least, work)?,
            None => Vec::new(),
        };
        kept += ends.capacity() + LIST_OVERHEAD_WORDS;
        check_memory((kept + failed.capacity() * 2) * size_of::<usize>())?;
        open.push(ends);
    }
    Ok(None)
}

/// Returns the end to try next. Pieces without one are removed, and what led to them has failed.
fn next_end<'a>(
    open: &'a mut Vec<Vec<usize>>,
    division: &SplitRequest,
    failed: &mut FxHashSet<(usize, usize)>,
    kept: &mut usize,
) -> Option<&'a usize> {
    while open.last()?.is_empty() {
        *kept = kept.saturating_sub(open.pop()?.capacity() + LIST_OVERHEAD_WORDS);
        let end = open.last_mut()?.pop()?;
        failed.insert((division.equivalent_count(open.len() - 1), end));
    }
    open.last()?.last()
}

impl SplitRequest<'_> {
    /// Returns a count of pieces, with counts that leave the same to do made equal.
    fn equivalent_count(&self, count: usize) -> usize {
        if self.most.is_some() { count } else { count.min(self.least) }
    }
}

/// Returns the ends of members that begin at `from`, in ascending order.
fn ends_of(
    machine: &dyn Machine,
    text: &[u8],
    from: usize,
    may_be_empty: bool,
    work: &mut StepMeter,
) -> Result<Vec<usize>, Error> {
    let mut ends = Vec::new();
    let mut state = machine.start();
    if may_be_empty && machine.is_accepting(state)? {
        ends.push(from);
    }
    for (at, &byte) in text.iter().enumerate().skip(from) {
        work.step().map_err(|_| out_of_steps(work))?;
        let Some(next) = machine.step(state, byte)? else { break };
        state = next;
        if machine.is_accepting(state)? {
            ends.push(at + 1);
        }
    }
    Ok(ends)
}
