//! Sums of probabilities given by their logarithms.

use formalm_logits::wide_exponential_sum;

/// A sum of terms that are not negative, with a correction of its rounding (Neumaier's summation).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompensatedSum {
    sum: f64,
    lost: f64,
}

impl CompensatedSum {
    #[inline]
    pub(crate) fn add(&mut self, term: f64) {
        let next = self.sum + term;
        self.lost +=
            if self.sum >= term { (self.sum - next) + term } else { (term - next) + self.sum };
        self.sum = next;
    }

    pub(crate) fn value(self) -> f64 {
        self.sum + self.lost
    }
}

/// Returns the logarithm of a sum of exponentials. It does not depend on the order of the values,
/// which are sorted.
pub fn log_sum(values: &mut [f64]) -> f64 {
    match values {
        [] => f64::NEG_INFINITY,
        [one] => *one,
        _ => {
            values.sort_unstable_by(|one, other| other.total_cmp(one));
            let top = values[0];
            if top == f64::NEG_INFINITY {
                return top;
            }
            let mut sum = CompensatedSum::default();
            values.iter().for_each(|value| sum.add((value - top).exp()));
            top + sum.value().ln()
        }
    }
}

/// Returns the logarithm of a sum of exponentials of sorted values, largest first, rounded up: it
/// exceeds the sum by less than 1e-12.
pub(crate) fn log_sum_of_sorted(values: &[f64]) -> f64 {
    match values {
        [] => f64::NEG_INFINITY,
        [one] => *one,
        &[top, ..] if top == f64::NEG_INFINITY => top,
        &[top, ..] => top + wide_exponential_sum(values, top).ln() + 2e-13,
    }
}

/// Returns the logarithm of the sum of two exponentials.
#[inline]
pub(crate) fn log_add(one: f64, other: f64) -> f64 {
    let (high, low) = if one >= other { (one, other) } else { (other, one) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}
