//! The numbers in a set that is stored as words of 32 bits.

/// Returns the numbers of the bits that are set, ascending. The lowest bit of the first word is 0.
///
/// ```
/// use formalm_core::set_bits;
///
/// assert_eq!(set_bits([0b101, 0, 1 << 31]).collect::<Vec<_>>(), [0, 2, 95]);
/// ```
#[inline]
pub fn set_bits(words: impl IntoIterator<Item = u32>) -> impl Iterator<Item = u32> {
    (0..).zip(words).flat_map(|(at, word)| {
        let rest = std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
        rest.take_while(|&rest| rest != 0).map(move |rest| 32 * at + rest.trailing_zeros())
    })
}
