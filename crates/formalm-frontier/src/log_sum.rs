//! Sums of probabilities given by their logarithms.

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
            // Neumaier's summation; the terms descend, so each correction is of the next one.
            let (mut sum, mut lost) = (0.0, 0.0);
            for value in values.iter() {
                let term = (value - top).exp();
                let next: f64 = sum + term;
                lost += if sum >= term { (sum - next) + term } else { (term - next) + sum };
                sum = next;
            }
            top + (sum + lost).ln()
        }
    }
}

/// Returns the logarithm of the sum of two exponentials.
#[inline]
pub(crate) fn log_add(one: f64, other: f64) -> f64 {
    let (high, low) = if one >= other { (one, other) } else { (other, one) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}
