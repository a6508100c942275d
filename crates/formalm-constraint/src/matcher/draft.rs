//! Masks of draft tokens: the positions that a speculative decoder verifies in one forward pass.

use formalm_core::Error;
use formalm_machines::MaskClasses;

use crate::epoch::AdvanceError;
use crate::mask::MaskWords;
use crate::matcher::Matcher;

/// The row of the matcher's own position, before any draft token.
pub const ROOT: usize = 0;

/// Draft tokens after a position, as a chain or a tree.
///
/// Row 0 of a draft belongs to the position itself, and row `i + 1` to the position after token
/// `i`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    tokens: Vec<u32>,
    /// For each token: the row of the position that it follows, at most its own index. Empty for a
    /// chain, where every token follows the one before it.
    parents: Vec<usize>,
}

impl Draft {
    /// Creates a chain: each token follows the one before it.
    pub fn chain(tokens: Vec<u32>) -> Draft {
        Draft { tokens, parents: Vec::new() }
    }

    /// Creates a tree. `parents` has the row of the position that each token follows. Returns
    /// `None` unless each token follows an earlier one or the root.
    pub fn tree(tokens: Vec<u32>, parents: Vec<usize>) -> Option<Draft> {
        let is_ordered = parents.iter().enumerate().all(|(at, &parent)| parent <= at);
        let is_tree = parents.len() == tokens.len() && is_ordered;
        is_tree.then_some(Draft { tokens, parents })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.tokens.len() + 1
    }

    fn parent(&self, token: usize) -> usize {
        self.parents.get(token).copied().unwrap_or(token)
    }
}

impl<K: MaskClasses> Matcher<K> {
    /// Overwrites one row for each position of a draft and returns the number of tokens accepted.
    /// The matcher stays where it is.
    ///
    /// The row after a token that is refused, or that follows a refused one, repeats the row of the
    /// last position that was reached. So does the row after an end token, because a row that
    /// allows nothing cannot be sampled from.
    ///
    /// # Errors
    ///
    /// As [`Matcher::fill`]; the rows are then unspecified.
    pub fn fill_draft(
        &mut self,
        draft: &Draft,
        rows: &mut [&mut MaskWords],
    ) -> Result<usize, Error> {
        let before = self.step_count();
        let accepted = self.fill_positions(draft, rows);
        let _ = self.rollback(self.step_count() - before);
        accepted
    }

    fn fill_positions(
        &mut self,
        draft: &Draft,
        rows: &mut [&mut MaskWords],
    ) -> Result<usize, Error> {
        self.fill(rows[ROOT])?;
        // The rows of the positions that this matcher has read, without the root.
        let mut path: Vec<usize> = Vec::new();
        let mut is_open = vec![false; draft.rows()];
        is_open[ROOT] = !self.has_ended();
        let mut accepted = 0;
        for (at, &token) in draft.tokens.iter().enumerate() {
            let (row, parent) = (at + 1, draft.parent(at));
            if is_open[parent] {
                self.move_to(parent, draft, &mut path)?;
                if reads(self, token)? {
                    path.push(row);
                    accepted += 1;
                    is_open[row] = !self.has_ended();
                }
            }
            if is_open[row] {
                self.fill(rows[row])?;
            } else {
                let (earlier, later) = rows.split_at_mut(row);
                later[0].copy_from_slice(earlier[parent]);
            }
        }
        Ok(accepted)
    }

    /// Moves from the end of `path` to a position of the draft that was reached before.
    fn move_to(&mut self, row: usize, draft: &Draft, path: &mut Vec<usize>) -> Result<(), Error> {
        if path.last().copied().unwrap_or(ROOT) == row {
            return Ok(());
        }
        let mut missing = Vec::new();
        let mut shared = row;
        // Rows on a path ascend.
        while shared != ROOT && path.binary_search(&shared).is_err() {
            missing.push(shared);
            shared = draft.parent(shared - 1);
        }
        let kept = match path.binary_search(&shared) {
            Ok(at) => at + 1,
            Err(_) => 0,
        };
        let _ = self.rollback(path.len() - kept);
        path.truncate(kept);
        for &next in missing.iter().rev() {
            if !reads(self, draft.tokens[next - 1])? {
                return Err(Error::language(
                    "a draft token that was accepted was refused when read again",
                    None,
                ));
            }
            path.push(next);
        }
        Ok(())
    }

    /// Returns how many of `tokens` would be read one after the other. The matcher stays where it
    /// is.
    ///
    /// # Errors
    ///
    /// As [`Matcher::fill`].
    pub fn validate(&mut self, tokens: &[u32]) -> Result<usize, Error> {
        let before = self.step_count();
        let mut count = Ok(tokens.len());
        for (at, &token) in tokens.iter().enumerate() {
            match reads(self, token) {
                Ok(true) => {}
                Ok(false) => {
                    count = Ok(at);
                    break;
                }
                Err(error) => {
                    count = Err(error);
                    break;
                }
            }
        }
        let _ = self.rollback(self.step_count() - before);
        count
    }
}

/// Reads a token, and returns `false` if it is refused.
fn reads<K: MaskClasses>(matcher: &mut Matcher<K>, token: u32) -> Result<bool, Error> {
    match matcher.advance(token) {
        Ok(()) => Ok(true),
        Err(AdvanceError::Failed(error)) => Err(error),
        Err(_) => Ok(false),
    }
}
