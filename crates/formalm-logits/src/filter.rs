//! Copies of the elements that satisfy a condition, next to each other.
//!
//! Processors with vectors of 512 bits have an instruction for it. Elsewhere every element is copied,
//! and the next one overwrites it if it is not wanted: no branch depends on the data.

use crate::exponential::Real;
use crate::row::BLOCK;
use crate::row_scan::{LANES, block_total};
use crate::vectorized::{Kernel, run};

/// Elements that are written at a time, wanted or not: room that a destination needs beyond the
/// wanted ones.
pub(crate) const ROOM: usize = 16;

/// Maximum number of levels of a pass.
pub(crate) const LEVELS: usize = 4;

/// The types whose elements are filtered.
pub(crate) trait Filter: Copy + PartialOrd + 'static {
    /// Copies the elements of a block that have a bit in `words` and are at least `low`; returns their
    /// number.
    ///
    /// # Safety
    ///
    /// `to` has room for a block and [`ROOM`] more.
    unsafe fn copy_from(
        block: &[Self; BLOCK],
        words: &[u32; BLOCK / 32],
        low: Self,
        to: *mut Self,
    ) -> usize {
        // SAFETY: promised by the caller.
        unsafe { copy_from(block, words, low, to) }
    }

    /// Copies those of `count` values that are at least `low` and below `high`, and their weights;
    /// returns their number.
    ///
    /// # Safety
    ///
    /// There are `count` values and weights. The destinations have room for as many and [`ROOM`] more;
    /// they are the sources, or do not overlap with them.
    unsafe fn copy_between(
        from: [*const Self; 2],
        count: usize,
        limits: [Self; 2],
        to: [*mut Self; 2],
    ) -> usize {
        // SAFETY: promised by the caller.
        unsafe { copy_between(from, count, limits, to) }
    }

    /// Returns the total weights of the values from each of a few levels on.
    fn masses_from(values: &[Self], weights: &[Self], levels: &[Self]) -> [f64; LEVELS];

    /// Copies the elements of a block that have a bit in `words` and are at least `low`; returns their
    /// number. `to` has room for a block and [`ROOM`] more.
    fn keep_from(
        block: &[Self; BLOCK],
        words: &[u32; BLOCK / 32],
        low: Self,
        to: &mut [Self],
    ) -> usize {
        assert!(to.len() >= BLOCK + ROOM);
        // SAFETY: there is room.
        unsafe { Self::copy_from(block, words, low, to.as_mut_ptr()) }
    }

    /// Copies the values that are at least `low` and below `high`, and their weights; returns their
    /// number. The destinations have room for all of them and [`ROOM`] more.
    fn keep_between(
        [values, weights]: [&[Self]; 2],
        limits: [Self; 2],
        [to_values, to_weights]: [&mut [Self]; 2],
    ) -> usize {
        let count = values.len();
        assert!(weights.len() == count);
        assert!(to_values.len() >= count + ROOM && to_weights.len() >= count + ROOM);
        let to = [to_values.as_mut_ptr(), to_weights.as_mut_ptr()];
        // SAFETY: there is room; the destinations are borrowed alone.
        unsafe { Self::copy_between([values.as_ptr(), weights.as_ptr()], count, limits, to) }
    }

    /// As [`Filter::keep_between`] of the first `count` values, in their own place.
    fn keep_within([values, weights]: [&mut [Self]; 2], count: usize, limits: [Self; 2]) -> usize {
        assert!(values.len() >= count + ROOM && weights.len() >= count + ROOM);
        let to = [values.as_mut_ptr(), weights.as_mut_ptr()];
        // SAFETY: there is room, and each element is read before its place is written.
        unsafe { Self::copy_between(to.map(<*mut Self>::cast_const), count, limits, to) }
    }
}

impl Filter for f64 {
    fn masses_from(values: &[f64], weights: &[f64], levels: &[f64]) -> [f64; LEVELS] {
        run(MassesFrom { values, weights, levels })
    }
}

impl Filter for f32 {
    unsafe fn copy_from(
        block: &[f32; BLOCK],
        words: &[u32; BLOCK / 32],
        low: f32,
        to: *mut f32,
    ) -> usize {
        #[cfg(target_arch = "x86_64")]
        if is_wide() {
            // SAFETY: the processor has the instructions; the rest is promised by the caller.
            return unsafe { wide::copy_from(block, words, low, to) };
        }
        // SAFETY: promised by the caller.
        unsafe { copy_from(block, words, low, to) }
    }

    unsafe fn copy_between(
        from: [*const f32; 2],
        count: usize,
        limits: [f32; 2],
        to: [*mut f32; 2],
    ) -> usize {
        #[cfg(target_arch = "x86_64")]
        if is_wide() {
            // SAFETY: the processor has the instructions; the rest is promised by the caller.
            return unsafe { wide::copy_between(from, count, limits, to) };
        }
        // SAFETY: promised by the caller.
        unsafe { copy_between(from, count, limits, to) }
    }

    fn masses_from(values: &[f32], weights: &[f32], levels: &[f32]) -> [f64; LEVELS] {
        #[cfg(target_arch = "x86_64")]
        if is_wide() {
            // SAFETY: the processor has the instructions.
            return unsafe {
                match *levels {
                    [] => [0.0; LEVELS],
                    [one] => wide::masses_from(values, weights, [one]),
                    [one, two] => wide::masses_from(values, weights, [one, two]),
                    [one, two, three, ..] => {
                        let last = levels.last().copied().unwrap_or(three);
                        wide::masses_from(values, weights, [one, two, three, last])
                    }
                }
            };
        }
        run(MassesFrom { values, weights, levels })
    }
}

/// Returns `true` if the processor has vectors of 512 bits.
#[cfg(target_arch = "x86_64")]
fn is_wide() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("popcnt")
}

/// As [`Filter::copy_from`].
unsafe fn copy_from<R: Copy + PartialOrd>(
    block: &[R; BLOCK],
    words: &[u32; BLOCK / 32],
    low: R,
    to: *mut R,
) -> usize {
    let mut count = 0;
    for (cells, &word) in block.as_chunks::<32>().0.iter().zip(words) {
        for (place, &cell) in cells.iter().enumerate() {
            // SAFETY: `count` is at most the number of elements before this one.
            unsafe { to.add(count).write(cell) };
            count += usize::from(cell >= low) & (word >> place & 1) as usize;
        }
    }
    count
}

/// As [`Filter::copy_between`].
unsafe fn copy_between<R: Copy + PartialOrd>(
    [values, weights]: [*const R; 2],
    length: usize,
    [low, high]: [R; 2],
    [to_values, to_weights]: [*mut R; 2],
) -> usize {
    let mut count = 0;
    for at in 0..length {
        // SAFETY: `count` is at most `at`, which is below the length.
        unsafe {
            let (value, weight) = (values.add(at).read(), weights.add(at).read());
            to_values.add(count).write(value);
            to_weights.add(count).write(weight);
            count += usize::from(value >= low) & usize::from(value < high);
        }
    }
    count
}

/// As [`Filter::masses_from`].
struct MassesFrom<'a, R> {
    values: &'a [R],
    weights: &'a [R],
    levels: &'a [R],
}

impl<R: Real> Kernel for MassesFrom<'_, R> {
    type Output = [f64; LEVELS];

    #[inline(always)]
    fn run<const FMA: bool>(self) -> [f64; LEVELS] {
        let mut masses = [0.0; LEVELS];
        let (values, rest) = self.values.as_chunks::<BLOCK>();
        let (weights, weighed_rest) = self.weights.as_chunks::<BLOCK>();
        let (mut last, mut weighed) = ([R::LOWEST; BLOCK], [R::ZERO; BLOCK]);
        last[..rest.len()].copy_from_slice(rest);
        weighed[..rest.len()].copy_from_slice(weighed_rest);
        for (to, &level) in masses.iter_mut().zip(self.levels) {
            for (values, weights) in values.iter().zip(weights) {
                *to += sum_from(values, weights, level);
            }
            *to += sum_from(&last, &weighed, level);
        }
        masses
    }
}

#[inline(always)]
fn sum_from<R: Real>(values: &[R; BLOCK], weights: &[R; BLOCK], level: R) -> f64 {
    let mut sums = [R::ZERO; LANES];
    let chunks = values.as_chunks::<LANES>().0.iter();
    for (values, weights) in chunks.zip(weights.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            let own = if values[lane] >= level { weights[lane] } else { R::ZERO };
            sums[lane] = sums[lane].plus(own);
        }
    }
    block_total(&sums)
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        _CMP_GE_OQ, _CMP_LT_OQ, _mm512_add_pd, _mm512_castps512_ps256, _mm512_cmp_ps_mask,
        _mm512_cvtps_pd, _mm512_extractf32x8_ps, _mm512_loadu_ps, _mm512_mask_add_ps,
        _mm512_mask_cmp_ps_mask, _mm512_maskz_compress_ps, _mm512_maskz_loadu_ps,
        _mm512_reduce_add_pd, _mm512_set1_ps, _mm512_setzero_pd, _mm512_setzero_ps,
        _mm512_storeu_ps,
    };

    use crate::row::BLOCK;

    const LANES: usize = 16;
    /// Vectors that are added in float32, with an error of 4.2e-7.
    const CHUNK: usize = 8;

    /// As [`super::Filter::masses_from`].
    ///
    /// # Safety
    ///
    /// The processor has AVX-512.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) unsafe fn masses_from<const COUNT: usize>(
        values: &[f32],
        weights: &[f32],
        levels: [f32; COUNT],
    ) -> [f64; super::LEVELS] {
        let levels = levels.map(|level| _mm512_set1_ps(level));
        let mut sums = [[_mm512_setzero_pd(); 2]; COUNT];
        let length = values.len().min(weights.len());
        for start in (0..length).step_by(CHUNK * LANES) {
            let mut lanes = [_mm512_setzero_ps(); COUNT];
            for at in (start..length.min(start + CHUNK * LANES)).step_by(LANES) {
                let left = length - at;
                let bits = if left >= LANES { u16::MAX } else { (1 << left) - 1 };
                // SAFETY: only elements below the length are read.
                let (cells, weighed) = unsafe {
                    (
                        _mm512_maskz_loadu_ps(bits, values.as_ptr().add(at)),
                        _mm512_maskz_loadu_ps(bits, weights.as_ptr().add(at)),
                    )
                };
                for level in 0..COUNT {
                    let bits = _mm512_mask_cmp_ps_mask::<_CMP_GE_OQ>(bits, cells, levels[level]);
                    lanes[level] = _mm512_mask_add_ps(lanes[level], bits, lanes[level], weighed);
                }
            }
            for level in 0..COUNT {
                let low = _mm512_cvtps_pd(_mm512_castps512_ps256(lanes[level]));
                let high = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(lanes[level]));
                sums[level][0] = _mm512_add_pd(sums[level][0], low);
                sums[level][1] = _mm512_add_pd(sums[level][1], high);
            }
        }
        let mut masses = [0.0; super::LEVELS];
        for level in 0..COUNT {
            masses[level] = _mm512_reduce_add_pd(_mm512_add_pd(sums[level][0], sums[level][1]));
        }
        masses
    }

    /// # Safety
    ///
    /// The processor has AVX-512 and POPCNT; the rest as [`super::Filter::copy_from`].
    #[target_feature(enable = "avx512f,popcnt")]
    pub(super) unsafe fn copy_from(
        block: &[f32; BLOCK],
        words: &[u32; BLOCK / 32],
        low: f32,
        to: *mut f32,
    ) -> usize {
        let low = _mm512_set1_ps(low);
        let mut count = 0;
        for (pair, &word) in words.iter().enumerate() {
            for half in 0..2 {
                // SAFETY: within the block, and within the room of `to`.
                unsafe {
                    let cells = _mm512_loadu_ps(block.as_ptr().add(pair * 32 + half * LANES));
                    let bits = (word >> (half * LANES)) as u16;
                    let bits = _mm512_mask_cmp_ps_mask::<_CMP_GE_OQ>(bits, cells, low);
                    // In a register first: a direct store takes hundreds of cycles on some processors.
                    let kept = _mm512_maskz_compress_ps(bits, cells);
                    _mm512_storeu_ps(to.add(count), kept);
                    count += bits.count_ones() as usize;
                }
            }
        }
        count
    }

    /// # Safety
    ///
    /// The processor has AVX-512 and POPCNT; the rest as [`super::Filter::copy_between`].
    #[target_feature(enable = "avx512f,popcnt")]
    pub(super) unsafe fn copy_between(
        [values, weights]: [*const f32; 2],
        length: usize,
        [low, high]: [f32; 2],
        [to_values, to_weights]: [*mut f32; 2],
    ) -> usize {
        let (low, high) = (_mm512_set1_ps(low), _mm512_set1_ps(high));
        let mut count = 0;
        for at in (0..length).step_by(LANES) {
            let left = length - at;
            let lanes = if left >= LANES { u16::MAX } else { (1 << left) - 1 };
            // SAFETY: only elements below the length are read. At most as many were kept as were read,
            // so writes reach neither unread elements nor beyond the room.
            unsafe {
                let cells = _mm512_maskz_loadu_ps(lanes, values.add(at));
                let weighed = _mm512_maskz_loadu_ps(lanes, weights.add(at));
                let bits = _mm512_mask_cmp_ps_mask::<_CMP_GE_OQ>(lanes, cells, low);
                let bits = bits & _mm512_cmp_ps_mask::<_CMP_LT_OQ>(cells, high);
                _mm512_storeu_ps(to_values.add(count), _mm512_maskz_compress_ps(bits, cells));
                _mm512_storeu_ps(to_weights.add(count), _mm512_maskz_compress_ps(bits, weighed));
                count += bits.count_ones() as usize;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_elements_are_those_of_a_loop() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state
        };
        for case in 0..200 {
            let mut block = [0.0f32; BLOCK];
            block.fill_with(|| (random() >> 8) as f32 / 1e6 - 8.0);
            if case % 3 == 0 {
                block[..100].fill(f32::NEG_INFINITY);
            }
            let mut words = [0u32; BLOCK / 32];
            words.fill_with(|| random() | random() >> (case % 8));
            let (low, high) = (block[case + 120], block[case + 121].max(0.0));
            let is_allowed = |at: usize| words[at / 32] >> (at % 32) & 1 != 0;
            let expected: Vec<f32> = (0..BLOCK)
                .filter(|&at| is_allowed(at) && block[at] >= low)
                .map(|at| block[at])
                .collect();
            let mut to = [0.0f32; BLOCK + ROOM];
            let count = f32::keep_from(&block, &words, low, &mut to);
            assert_eq!(to[..count], expected);
            let mut to = [0.0f64; BLOCK + ROOM];
            let count = f64::keep_from(&block.map(f64::from), &words, low.into(), &mut to);
            assert!(
                to[..count].iter().eq(expected
                    .iter()
                    .map(|&one| f64::from(one))
                    .collect::<Vec<_>>()
                    .iter())
            );
            let length = case * 2;
            let weights: Vec<f32> = (0..length).map(|at| at as f32).collect();
            let inside: Vec<usize> =
                (0..length).filter(|&at| block[at] >= low && block[at] < high).collect();
            let (mut values, mut kept) = ([0.0f32; BLOCK + ROOM], [0.0f32; BLOCK + ROOM]);
            let from = [&block[..length], &weights[..]];
            let count = f32::keep_between(from, [low, high], [&mut values, &mut kept]);
            assert_eq!(values[..count], inside.iter().map(|&at| block[at]).collect::<Vec<_>>());
            assert_eq!(kept[..count], inside.iter().map(|&at| at as f32).collect::<Vec<_>>());
            values[..length].copy_from_slice(&block[..length]);
            kept[..length].copy_from_slice(&weights);
            let count = f32::keep_within([&mut values, &mut kept], length, [low, high]);
            assert_eq!(values[..count], inside.iter().map(|&at| block[at]).collect::<Vec<_>>());
            let from = from.map(|part| part.as_ptr());
            // SAFETY: there is room for a block.
            let count = unsafe {
                let to = [values.as_mut_ptr(), kept.as_mut_ptr()];
                copy_between(from, length, [low, high], to)
            };
            assert_eq!(kept[..count], inside.iter().map(|&at| at as f32).collect::<Vec<_>>());
        }
    }
}
