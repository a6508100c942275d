//! `fill_drafts`: masks at all positions of the draft tokens of a batch.

use formalm_constraint::Draft;
use formalm_core::{Error, deadline::Deadline, pool};
use pyo3::prelude::*;

use crate::errors;
use crate::interruptible::under;
use crate::logits::numpy_bitmasks::{BitmaskRow, bitmask};
use crate::matcher::{Cursor, Matcher, draft_ids};

/// The draft of one matcher, with the rows that it fills.
struct DraftJob<'a> {
    cursor: &'a mut Cursor,
    draft: &'a Draft,
    rows: Vec<BitmaskRow>,
    deadline: Option<Deadline>,
    accepted: usize,
}

impl DraftJob<'_> {
    fn run(&mut self) -> Result<(), Error> {
        // SAFETY: the bitmask is alive for the whole call, and its rows are distinct.
        let mut rows: Vec<&mut [u32]> =
            self.rows.iter_mut().map(|row| unsafe { row.words() }).collect();
        let (cursor, draft) = (&mut *self.cursor, self.draft);
        self.accepted = under(self.deadline, || cursor.fill_draft(draft, &mut rows))?;
        Ok(())
    }
}

/// Reads a draft: tokens, and for a tree the index of the token that each follows, -1 for the
/// position itself.
fn draft(
    py: Python<'_>,
    tokens: &Bound<'_, PyAny>,
    parents: Option<&Bound<'_, PyAny>>,
) -> PyResult<Draft> {
    let tokens = draft_ids(py, "drafts", tokens)?;
    let Some(parents) = parents else { return Ok(Draft::chain(tokens)) };
    let wrong = || {
        let message = "the parents of a draft must have one entry per token: the index of an \
                       earlier token, or -1";
        errors::argument(py, message, Some("order the tokens so that parents come first"))
    };
    let rows = parents.try_iter()?.map(|parent| {
        let parent: i64 = errors::integer(&parent?, "parent")?;
        usize::try_from(parent.saturating_add(1)).map_err(|_| wrong())
    });
    Draft::tree(tokens, rows.collect::<PyResult<_>>()?).ok_or_else(wrong)
}

/// Fills the rows of each matcher's draft, in parallel, and returns how many tokens each matcher
/// accepts. A matcher that is None accepts all tokens and has rows that allow everything.
#[pyfunction]
#[pyo3(signature = (matchers, drafts, out, rows=None))]
pub(crate) fn fill_drafts(
    py: Python<'_>,
    matchers: Vec<Option<Bound<'_, Matcher>>>,
    drafts: Vec<(Bound<'_, PyAny>, Option<Bound<'_, PyAny>>)>,
    out: &Bound<'_, PyAny>,
    rows: Option<Vec<Bound<'_, PyAny>>>,
) -> PyResult<Vec<usize>> {
    let count = matchers.len();
    if drafts.len() != count {
        let message = format!(
            "drafts must have one entry per matcher: got {count} matchers and {} drafts",
            drafts.len()
        );
        return Err(errors::argument(py, &message, None));
    }
    let drafts: Vec<Draft> = drafts
        .iter()
        .map(|(tokens, parents)| draft(py, tokens, parents.as_ref()))
        .collect::<PyResult<_>>()?;
    let firsts = first_rows(py, &drafts, rows)?;
    let array = bitmask(py, out, true)?;
    let mut guards = Vec::with_capacity(count);
    for matcher in &matchers {
        guards.push(matcher.as_ref().map(|matcher| matcher.get().take(py)).transpose()?);
    }
    let mut jobs = Vec::with_capacity(count);
    let mut free = Vec::new();
    let mut accepted: Vec<usize> = drafts.iter().map(|draft| draft.rows() - 1).collect();
    for (at, (guard, matcher)) in guards.iter_mut().zip(&matchers).enumerate() {
        let needed = guard.as_ref().map_or(0, |guard| guard.epoch().words());
        let rows = (firsts[at]..firsts[at] + drafts[at].rows())
            .map(|row| array.row(py, row, needed))
            .collect::<PyResult<Vec<_>>>()?;
        match (guard, matcher) {
            (Some(guard), Some(matcher)) => {
                // Waiting for other matchers counts toward the time of the call.
                let deadline = matcher.get().timeout().deadline();
                let cursor = &mut **guard;
                jobs.push((
                    at,
                    DraftJob { cursor, draft: &drafts[at], rows, deadline, accepted: 0 },
                ));
            }
            _ => free.extend(rows),
        }
    }
    let filled = py.detach(|| {
        for row in &mut free {
            // SAFETY: as in `DraftJob::run`.
            unsafe { row.words() }.fill(u32::MAX);
        }
        pool::try_for_each(&mut jobs, |(_, job)| job.run())
    });
    filled.map_err(|error| errors::failure(py, &error, None))?;
    for (at, job) in &jobs {
        accepted[*at] = job.accepted;
    }
    Ok(accepted)
}

/// Returns the first row of each draft: as given, or one draft after the other.
fn first_rows(
    py: Python<'_>,
    drafts: &[Draft],
    given: Option<Vec<Bound<'_, PyAny>>>,
) -> PyResult<Vec<usize>> {
    let Some(given) = given else {
        let mut next = 0;
        return Ok(drafts
            .iter()
            .map(|draft| {
                let first = next;
                next += draft.rows();
                first
            })
            .collect());
    };
    let firsts: Vec<usize> =
        given.iter().map(|row| errors::integer(row, "row")).collect::<PyResult<_>>()?;
    if firsts.len() != drafts.len() {
        let message = format!(
            "rows must have one entry per matcher: got {} matchers and {} rows",
            drafts.len(),
            firsts.len()
        );
        return Err(errors::argument(py, &message, None));
    }
    let mut ranges: Vec<(usize, usize)> =
        firsts.iter().zip(drafts).map(|(&first, draft)| (first, draft.rows())).collect();
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[0].0.saturating_add(pair[0].1) > pair[1].0) {
        let message = "the rows of different matchers must not overlap";
        let hint = "a draft of n tokens fills n + 1 rows, from its first row on";
        return Err(errors::argument(py, message, Some(hint)));
    }
    Ok(firsts)
}
