//! Intervals of magnitudes, by sign, and operations on them.

/// An interval of magnitudes in units of the last place. An end marked `true` is open. Among
/// multiples the ends are multiples, and closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MagnitudeInterval {
    pub(crate) low: (i128, bool),
    pub(crate) high: Option<(i128, bool)>,
}

/// An interval of signed numbers; open at both ends if so marked.
pub(crate) type SignedInterval = (Option<i128>, Option<i128>, bool);

impl MagnitudeInterval {
    fn is_empty(&self) -> bool {
        let (low, open) = self.low;
        self.high.is_some_and(|high| high.0 < low || (high.0 == low && (open || high.1)))
    }

    /// Returns the intersection, `None` if it is empty.
    pub(crate) fn intersection(&self, other: &MagnitudeInterval) -> Option<MagnitudeInterval> {
        let low = self.low.max(other.low);
        // An open end comes before the same closed end.
        let high = [self.high, other.high].into_iter().flatten();
        let high = high.min_by_key(|&(at, open)| (at, !open));
        Some(MagnitudeInterval { low, high }).filter(|common| !common.is_empty())
    }

    /// Shrinks the interval to multiples of a step, `None` if it contains none.
    pub(crate) fn multiples(self, step: i128) -> Option<MagnitudeInterval> {
        let (low, open) = self.low;
        let low = (low.div_euclid(step) + i128::from(low.rem_euclid(step) != 0 || open)) * step;
        let high = self.high.map(|(high, open)| {
            let first = i128::from(high.rem_euclid(step) == 0 && open);
            ((high.div_euclid(step) - first) * step, false)
        });
        let some = high.is_none_or(|high| low <= high.0);
        some.then_some(MagnitudeInterval { low: (low, false), high })
    }

    /// Returns `true` if some number of `[first, end)` is inside.
    pub(crate) fn intersects(&self, first: i128, end: i128) -> bool {
        let low = self.low.max((first, false));
        match self.high {
            // Between two different numbers there are others.
            Some((high, open)) if high < end => low.0 < high || (low.0 == high && !low.1 && !open),
            _ => low.0 < end,
        }
    }

    /// Returns `true` if everything from a number to an end, possibly open, is inside.
    pub(crate) fn covers(&self, first: i128, last: (i128, bool)) -> bool {
        let ends = self.high.is_none_or(|high| (last.0, !last.1) <= (high.0, !high.1));
        self.low <= (first, false) && ends
    }
}

/// Rounds up to a multiple.
pub(crate) fn round_up(at: i128, step: i128) -> i128 {
    (at.div_euclid(step) + i128::from(at.rem_euclid(step) != 0)) * step
}

/// Splits signed intervals into magnitudes, by sign.
pub(crate) fn split_by_sign(all: Vec<SignedInterval>) -> [Vec<MagnitudeInterval>; 2] {
    let negated = |at: Option<i128>| at.map(|at| -at);
    let mirrored = all.iter().rev().map(|&(low, high, open)| (negated(high), negated(low), open));
    let negative =
        mirrored.filter_map(|(low, high, open)| nonnegative_part(low, high, open)).collect();
    [
        all.iter().filter_map(|&(low, high, open)| nonnegative_part(low, high, open)).collect(),
        negative,
    ]
}

/// Removes points from intervals, all in ascending order.
pub(crate) fn subtract_points(
    intervals: Vec<MagnitudeInterval>,
    holes: impl Iterator<Item = i128>,
) -> Vec<MagnitudeInterval> {
    let mut left = Vec::with_capacity(intervals.len());
    let mut holes = holes.peekable();
    for mut interval in intervals {
        while let Some(&at) = holes.peek()
            && interval.high.is_none_or(|high| at <= high.0)
        {
            if at > interval.low.0 {
                left.push(MagnitudeInterval { high: Some((at, true)), ..interval });
            }
            if at >= interval.low.0 {
                interval.low = (at, true);
            }
            if interval.high.is_some_and(|high| at == high.0) {
                // The next interval may begin there.
                break;
            }
            holes.next();
        }
        if !interval.is_empty() {
            left.push(interval);
        }
    }
    left
}

/// Returns the nonnegative part of an interval.
fn nonnegative_part(
    low: Option<i128>,
    high: Option<i128>,
    open: bool,
) -> Option<MagnitudeInterval> {
    if high.is_some_and(|high| high < 0 || (high == 0 && open)) {
        return None;
    }
    let low = low.filter(|&low| low >= 0).map_or((0, false), |low| (low, open));
    Some(MagnitudeInterval { low, high: high.map(|high| (high, open)) })
}
