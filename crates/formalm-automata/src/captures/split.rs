//! A text divided among members of languages in a row.

use rustc_hash::FxHashSet;

use crate::error::Error;
use crate::machine::Machine;
use crate::syntax::capture_matcher::{check_memory, out_of_steps};
use crate::terms::derivative::StepMeter;

/// What a list of ends takes beside its members, in words.
const LIST_OVERHEAD_WORDS: usize = 3;

/// How many pieces there are to be, and whose members they are.
pub(super) struct SplitRequest<'a> {
    /// Fewest pieces.
    pub(super) least: usize,
    /// Most pieces.
    pub(super) most: Option<usize>,
    /// The machine of a piece by its number, from 0; none if it has no member.
    pub(super) member: &'a dyn Fn(usize) -> Option<&'a dyn Machine>,
}

/// Where the pieces of a text end that are members of languages in a row, `least` of them at least
/// and `most` at most; `None` if it cannot be divided so. Pieces beyond the list are members of its last
/// language; one that has no members has no machine. Every piece in turn takes as much as it can,
/// and is not empty if it is not needed.
///
/// # Errors
///
/// [`Error::Limit`] once machines read more than `steps` bytes, or when too much memory would be
/// needed; what machines report.
pub fn divided(
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

/// Where each piece ends. Every piece in turn takes as much as it can so that the rest can still
/// be divided; more pieces than needed are made only for what is left of the text.
///
/// What cannot be divided is remembered, so that no rest is tried twice.
pub(super) fn split_string(
    text: &[u8],
    division: &SplitRequest,
    work: &mut StepMeter,
) -> Result<Option<Vec<usize>>, Error> {
    let mut failed = FxHashSet::default();
    // For each piece the ends that it may have, the one tried at the end of the list. In front of
    // them stands the start of the text.
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

/// The end to be tried next; pieces without one are taken back, and what led to them has failed.
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
    /// A count of pieces, those being equal that leave the same to do.
    fn equivalent_count(&self, count: usize) -> usize {
        if self.most.is_some() { count } else { count.min(self.least) }
    }
}

/// Where members that begin at `from` end, in ascending order.
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
