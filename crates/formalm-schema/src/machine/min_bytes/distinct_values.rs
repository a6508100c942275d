//! Lower bounds on the total length of *k* distinct values or strings.
//!
//! With at most cₙ values of length n, the k shortest have a total length of at least Σ n·min(cₙ,
//! what is left of k). Counting is exact for small integers and for strings with few states, and
//! over-approximates otherwise.

use std::sync::Arc;

use formalm_core::Error;
use rustc_hash::FxHashMap;

use crate::formula::{FALSE, FormulaArena, FormulaId, TRUE};
use crate::json::decimal::Decimal;
use crate::json::interned_values::{JsonValue, ValueId};
use crate::machine::min_bytes::escaped_strings::StringBounds;
use crate::machine::spelling::Spelling;
use crate::schema_nodes::JsonType;
use crate::solver::context::SolverContext;
use crate::solver::number_satisfies;

/// Values of at least this many bytes are not distinguished by length. Chosen, not measured.
pub(crate) const MAX_LENGTH: usize = 12;

/// A count that stands for enough values of a length.
pub(crate) const UNBOUNDED: u64 = 1 << 40;

/// Upper bounds on the number of values, by length.
pub(crate) type LengthCounts = Arc<[u64; MAX_LENGTH]>;

/// Upper bounds on the number of values by length, and the strings and numbers that were counted
/// exactly.
#[derive(Debug)]
pub(crate) struct ValueLengths {
    counts: [u64; MAX_LENGTH],
    texts: FormulaId,
    numbers: FormulaId,
}

/// Upper bounds on the number of values of formulas, by length.
#[derive(Debug, Default)]
pub(crate) struct DistinctValueBounds {
    lengths: FxHashMap<FormulaId, Arc<ValueLengths>>,
    /// The length that a value was counted for.
    counted: FxHashMap<(FormulaId, ValueId), usize>,
}

impl DistinctValueBounds {
    /// Returns a bound on the total bytes of `count` values, of at least `least` bytes each, that
    /// differ from each other and from `taken`.
    pub(crate) fn min_bytes(
        &mut self,
        core: &mut SolverContext,
        spelling: &dyn Spelling,
        strings: &mut StringBounds,
        value: FormulaId,
        taken: &[ValueId],
        (count, least): (u64, usize),
    ) -> Result<usize, Error> {
        let lengths = match self.lengths.get(&value) {
            Some(known) => Arc::clone(known),
            None => {
                let lengths = Arc::new(ValueLengths::new(core, spelling, strings, value)?);
                self.lengths.insert(value, Arc::clone(&lengths));
                lengths
            }
        };
        let mut counts = lengths.counts;
        for &one in taken {
            let length = match self.counted.get(&(value, one)) {
                Some(&known) => known,
                None => {
                    let length = lengths.counted_for(core, spelling, one)?;
                    self.counted.insert((value, one), length);
                    length
                }
            };
            if let Some(count) = counts.get_mut(length) {
                *count = count.saturating_sub(1);
            }
        }
        Ok(sum_of_shortest(&counts, count, least))
    }

    /// Returns the number of cached bounds.
    pub(crate) fn len(&self) -> usize {
        self.lengths.len() + self.counted.len()
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        128 * self.lengths.capacity() + 24 * self.counted.capacity()
    }
}

impl ValueLengths {
    /// Counts the values of a formula by length.
    fn new(
        core: &mut SolverContext,
        spelling: &dyn Spelling,
        strings: &mut StringBounds,
        value: FormulaId,
    ) -> Result<ValueLengths, Error> {
        let (mut counts, mut texts, mut numbers) = ([0u64; MAX_LENGTH], FALSE, FALSE);
        for of in JsonType::ALL {
            let formula = if value == TRUE { TRUE } else { core.formula_for_type(value, of)? };
            let some: &[(usize, u64)] = match of {
                _ if formula == FALSE => &[],
                // Ten digits have one byte; two digits, or a minus and a digit, have two.
                JsonType::Number => {
                    numbers = formula;
                    let few = (-9..100)
                        .filter(|&one| holds_for_integer(&core.base.formulas, formula, one));
                    few.for_each(|one| counts[if (0..10).contains(&one) { 1 } else { 2 }] += 1);
                    &[(3, UNBOUNDED)]
                }
                JsonType::String => {
                    texts = formula;
                    let escaped = strings.by_length(core, spelling, formula, true)?;
                    for (all, more) in
                        counts.iter_mut().skip(spelling.string_quotes()).zip(escaped.iter())
                    {
                        *all = all.saturating_add(*more);
                    }
                    &[]
                }
                _ => spelling.value_counts(of),
            };
            for &(length, more) in some {
                counts[length] = counts[length].saturating_add(more);
            }
            if let Some(&(length, UNBOUNDED)) = some.last() {
                counts[length..].fill(UNBOUNDED);
            }
        }
        Ok(ValueLengths { counts, texts, numbers })
    }

    /// Returns the length that a value was counted for, or [`MAX_LENGTH`] if it was not counted.
    fn counted_for(
        &self,
        core: &mut SolverContext,
        spelling: &dyn Spelling,
        value: ValueId,
    ) -> Result<usize, Error> {
        let &ValueLengths { texts, numbers, .. } = self;
        Ok(match core.base.schema.values.get(value).clone() {
            JsonValue::String(text)
                if texts != FALSE
                    && core.languages.contains_string(&core.base, texts, &text)? =>
            {
                let content = text.bytes().map(|byte| spelling.byte_len(byte));
                spelling.string_quotes() + content.sum::<usize>()
            }
            JsonValue::Number(number) => {
                let few = (-9..100).find(|&one| number == Decimal::from_integer(one));
                match few.filter(|&one| holds_for_integer(&core.base.formulas, numbers, one)) {
                    Some(0..10) => 1,
                    Some(_) => 2,
                    None => MAX_LENGTH,
                }
            }
            _ => MAX_LENGTH,
        })
    }
}

/// Returns `true` if a formula holds for an integer written without a decimal point.
fn holds_for_integer(formulas: &FormulaArena, numbers: FormulaId, one: i64) -> bool {
    let value = Decimal::from_integer(one);
    formulas.evaluate(numbers, &mut |atom| number_satisfies(atom, &value, true))
}

/// Returns the total length of the `count` shortest values; those beyond the counted lengths have
/// the next one.
pub(crate) fn sum_of_shortest(counts: &[u64], count: u64, least: usize) -> usize {
    let (mut left, mut sum) = (count, 0usize);
    for (length, &some) in counts.iter().enumerate().skip(least) {
        let now = some.min(left);
        left -= now;
        sum = sum.saturating_add(usize::try_from(now).unwrap_or(usize::MAX).saturating_mul(length));
        if left == 0 {
            return sum;
        }
    }
    let length = counts.len().max(least);
    sum.saturating_add(usize::try_from(left).unwrap_or(usize::MAX).saturating_mul(length))
}
