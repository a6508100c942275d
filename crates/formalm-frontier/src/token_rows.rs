//! The tokens that may follow a node, from the model's answer and the mask of the language.

use formalm_logits::{Allowed, DrawTable, Row, RowScan, RowSums};

use crate::TokenLanguage;
use crate::child_cache::Child;
use crate::log_sum::log_sum;

/// Up to this many allowed tokens are read one by one, without a pass over the row: it takes about
/// as long as that pass over 128k tokens.
const READ_ONE_BY_ONE: u32 = 4096;

/// The rule that keeps the `k` most probable tokens of a row, allowed or not.
#[derive(Clone, Copy, Debug)]
pub struct TopK {
    /// Number of tokens.
    pub k: usize,
    /// `true` if the kept tokens are made to sum to one.
    pub renormalize: bool,
}

/// The model's answer at a node, as the query's decoding rule leaves it.
#[derive(Clone, Copy, Debug)]
pub enum Continuations<'a> {
    /// All tokens, and the logarithm of their sum; 0 for a row of log-probabilities.
    All(Row<'a>, f64),
    /// The best tokens of such a row.
    Best(Row<'a>, f64, TopK),
    /// Some tokens, ascending, with their log-probabilities.
    Kept(&'a [u32], &'a [f64]),
}

/// The best children of a node.
pub(crate) struct BestChildren {
    /// Their log-probabilities include that of the node.
    pub(crate) children: Vec<Child>,
    /// `true` if there are no others.
    pub(crate) is_all: bool,
    /// The log-probability of the sequence that ends here.
    pub(crate) end: f64,
}

/// The scratch space for masks and rows, and the tokens of a vocabulary that matter.
#[derive(Debug)]
pub struct TokenScan {
    scan: RowScan,
    words: Vec<u32>,
    vocabulary_size: usize,
    end_token_ids: Vec<u32>,
}

impl TokenScan {
    /// Creates scratch space for a vocabulary.
    pub fn new(vocabulary_size: usize, end_token_ids: Vec<u32>) -> TokenScan {
        let words = vec![0; vocabulary_size.div_ceil(32)];
        TokenScan { scan: RowScan::default(), words, vocabulary_size, end_token_ids }
    }

    /// Computes the mask of a state without end tokens, and returns `true` if an end may follow.
    pub(crate) fn look<L: TokenLanguage>(
        &mut self,
        language: &mut L,
        state: u32,
    ) -> Result<bool, L::Error> {
        language.fill(state, &mut self.words)?;
        for &id in &self.end_token_ids {
            self.words[id as usize >> 5] &= !(1 << (id & 31));
        }
        Ok(language.is_accepting(state))
    }

    /// Returns the sums of a row and of the tokens that the last [`TokenScan::look`] allows.
    pub(crate) fn sums(&mut self, row: Row<'_>) -> RowSums {
        self.scan.run(row, Allowed::of(&self.words, self.vocabulary_size))
    }

    /// Returns the mask of the last look.
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    /// Returns the tokens that a rule leaves of an answer, if they are few, ascending.
    pub(crate) fn kept(&mut self, answer: Continuations<'_>) -> Option<Vec<Child>> {
        match answer {
            Continuations::All(..) => None,
            Continuations::Best(row, offset, rule) => {
                let all = Allowed::all(row.width());
                let first = Some((u32::MAX, f64::INFINITY));
                let mut kept = self.scan.best(row, all, first, rule.k.min(row.width()));
                if rule.renormalize {
                    let top = kept.first().map_or(0.0, |best| best.1);
                    let mut below: Vec<f64> = kept.iter().map(|one| one.1 - top).collect();
                    let total = log_sum(&mut below);
                    kept.iter_mut().for_each(|one| one.1 = one.1 - top - total);
                } else {
                    kept.iter_mut().for_each(|one| one.1 -= offset);
                }
                kept.iter_mut().for_each(|one| one.1 = one.1.min(0.0));
                kept.sort_unstable_by_key(|one| one.0);
                Some(kept)
            }
            Continuations::Kept(ids, logprobs) => {
                let kept = ids.iter().copied().zip(logprobs.iter().copied());
                Some(kept.filter(|one| one.1 > f64::NEG_INFINITY).collect())
            }
        }
    }

    /// Returns the log-probability of an end, given the few tokens that a rule left, if it did.
    pub(crate) fn end(&self, answer: Continuations<'_>, kept: Option<&[Child]>) -> f64 {
        let value = |id: u32| match (answer, kept) {
            (Continuations::All(row, offset), _) => (row.get(id as usize) - offset).min(0.0),
            (_, Some(kept)) => kept
                .binary_search_by_key(&id, |one| one.0)
                .map_or(f64::NEG_INFINITY, |at| kept[at].1),
            _ => f64::NEG_INFINITY,
        };
        let mut values: Vec<f64> = self.end_token_ids.iter().map(|&id| value(id)).collect();
        log_sum(&mut values)
    }

    /// Returns the log-probability of an end among the few tokens that a rule left, ascending.
    pub(crate) fn end_of_kept(&self, kept: &[Child]) -> f64 {
        self.end(Continuations::Kept(&[], &[]), Some(kept))
    }

    /// Returns the end tokens.
    pub(crate) fn end_token_ids(&self) -> &[u32] {
        &self.end_token_ids
    }

    /// Returns the tokens that may follow a state, without end tokens, and whether an end may.
    pub(crate) fn allowed_ids<L: TokenLanguage>(
        &mut self,
        language: &mut L,
        state: u32,
    ) -> Result<(Vec<u32>, bool), L::Error> {
        let accepting = self.look(language, state)?;
        let mut ids = Vec::new();
        self.each_allowed(|id| ids.push(id));
        Ok((ids, accepting))
    }

    /// Returns the best tokens of the row of the last [`TokenScan::sums`], without another pass.
    pub(crate) fn best_of_scan(&mut self, row: Row<'_>, count: usize) -> Vec<Child> {
        let allowed = Allowed::of(&self.words, self.vocabulary_size);
        self.scan.best(row, allowed, None, count)
    }

    /// Returns the table of a row for draws among the allowed tokens, or none of them.
    pub(crate) fn draw_table(&mut self, row: Row<'_>, is_longest: bool) -> DrawTable {
        let allowed = match is_longest {
            true => Allowed::all(0),
            false => Allowed::of(&self.words, self.vocabulary_size),
        };
        self.scan.run(row, allowed);
        DrawTable::of(&self.scan)
    }

    /// Returns the allowed tokens of the last look.
    pub(crate) fn allowed(&self) -> Allowed<'_> {
        Allowed::of(&self.words, self.vocabulary_size)
    }

    /// Returns `true` if the mask of the last look allows a token.
    #[inline]
    pub(crate) fn allows(&self, id: u32) -> bool {
        self.words.get(id as usize >> 5).is_some_and(|word| word >> (id & 31) & 1 != 0)
    }

    /// Passes the allowed tokens of the last look to `visit`, ascending.
    pub(crate) fn each_allowed(&self, mut visit: impl FnMut(u32)) {
        for (at, &word) in self.words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                visit(at as u32 * 32 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
    }

    /// Returns the number of allowed tokens of the last look.
    pub(crate) fn allowed_count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the children of a node after the best `skipped`, at most `count`.
    pub(crate) fn best_children<L: TokenLanguage>(
        &mut self,
        answer: Continuations<'_>,
        language: &mut L,
        state: u32,
        logprob: f64,
        (skipped, count): (usize, usize),
    ) -> Result<BestChildren, L::Error> {
        let accepting = self.look(language, state)?;
        let kept = self.kept(answer);
        let end = if accepting && !self.end_token_ids.is_empty() {
            logprob + self.end(answer, kept.as_deref())
        } else {
            f64::NEG_INFINITY
        };
        let wanted = skipped + count;
        let (mut children, is_all) = match (answer, kept) {
            (_, Some(mut kept)) => {
                kept.retain(|&(id, _)| self.allows(id));
                (kept, true)
            }
            (Continuations::All(row, offset), None) if self.allowed_count() <= READ_ONE_BY_ONE => {
                let mut all = Vec::new();
                self.each_allowed(|id| all.push((id, (row.get(id as usize) - offset).min(0.0))));
                all.retain(|one| one.1 > f64::NEG_INFINITY);
                (all, true)
            }
            (Continuations::All(row, offset), None) => {
                let allowed = Allowed::of(&self.words, self.vocabulary_size);
                // All tokens follow this one; that takes no sums, which a scan would compute.
                let first = Some((u32::MAX, f64::INFINITY));
                let mut best = self.scan.best(row, allowed, first, wanted + 1);
                let is_all = best.len() <= wanted;
                best.truncate(wanted);
                best.iter_mut().for_each(|one| one.1 = (one.1 - offset).min(0.0));
                (best, is_all)
            }
            (_, None) => (Vec::new(), true),
        };
        let order = crate::child_cache::best_first;
        let mut is_all = is_all;
        if skipped > 0 {
            children.sort_unstable_by(order);
            children.drain(..skipped.min(children.len()));
        }
        if children.len() > count {
            children.select_nth_unstable_by(count - 1, order);
            children.truncate(count);
            is_all = false;
        }
        for child in &mut children {
            child.1 += logprob;
        }
        Ok(BestChildren { children, is_all, end })
    }
}
