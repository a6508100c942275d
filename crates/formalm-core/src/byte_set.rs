//! Sets of bytes ([`ByteSet`]).

/// A set of bytes, as 256 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteSet {
    words: [u64; 4],
}

impl ByteSet {
    /// Creates the set of the bytes whose bits are set: bit `byte & 63` of word `byte >> 6`.
    #[inline]
    pub fn from_words(words: [u64; 4]) -> ByteSet {
        ByteSet { words }
    }

    /// Returns the set as bits, see [`ByteSet::from_words`].
    #[inline]
    pub fn words(&self) -> [u64; 4] {
        self.words
    }

    /// Adds a byte.
    #[inline]
    pub fn insert(&mut self, byte: u8) {
        self.words[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Adds the bytes from `low` to `high`, both included.
    pub fn insert_range(&mut self, low: u8, high: u8) {
        for (at, word) in (0u16..).zip(&mut self.words) {
            let (first, last) = (u16::from(low), u16::from(high));
            let (start, end) = (at * 64, at * 64 + 63);
            if first <= end && last >= start && first <= last {
                let from = first.max(start) - start;
                let to = last.min(end) - start;
                *word |= u64::MAX >> (63 - to) & u64::MAX << from;
            }
        }
    }

    /// Removes a byte.
    pub fn remove(&mut self, byte: u8) {
        self.words[usize::from(byte >> 6)] &= !(1 << (byte & 63));
    }

    /// Returns `true` if a byte is in the set.
    #[inline]
    pub fn contains(&self, byte: u8) -> bool {
        self.words[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    /// Returns the number of bytes in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns `true` if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words == [0; 4]
    }

    /// Returns the bytes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let mut words = self.words;
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < 4 && words[at] == 0 {
                at += 1;
            }
            let word = words.get_mut(at)?;
            let bit = word.trailing_zeros();
            *word &= *word - 1;
            Some((at as u32 * 64 + bit) as u8)
        })
    }

    /// Returns the bytes of either set.
    #[inline]
    pub fn union(mut self, other: ByteSet) -> ByteSet {
        for (word, more) in self.words.iter_mut().zip(other.words) {
            *word |= more;
        }
        self
    }

    /// Returns the bytes of both sets.
    #[inline]
    #[must_use]
    pub fn intersection(mut self, other: ByteSet) -> ByteSet {
        for (word, both) in self.words.iter_mut().zip(other.words) {
            *word &= both;
        }
        self
    }

    /// Returns the ASCII part as bits.
    #[inline]
    pub fn ascii(&self) -> u128 {
        u128::from(self.words[0]) | u128::from(self.words[1]) << 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_each_of_its_bytes() {
        for low in 0..=255u8 {
            for high in [low.saturating_sub(1), low, low | 63, low.saturating_add(70), 255] {
                let (mut at_once, mut one_by_one) = (ByteSet::default(), ByteSet::default());
                at_once.insert_range(low, high);
                (low..=high).for_each(|byte| one_by_one.insert(byte));
                assert_eq!(at_once, one_by_one, "{low}..={high}");
            }
        }
    }

    #[test]
    fn bytes_of_a_set_are_listed_ascending() {
        let of = |bytes: &[u8]| {
            let mut set = ByteSet::default();
            bytes.iter().for_each(|&byte| set.insert(byte));
            set
        };
        let bytes = [0, 1, 63, 64, 127, 128, 191, 192, 255];
        let set = of(&bytes);
        assert_eq!(set.iter().collect::<Vec<u8>>(), bytes);
        assert_eq!(of(&[]).iter().next(), None);
        assert_eq!(set.intersection(of(&[1, 2, 64, 254, 255])), of(&[1, 64, 255]));
    }
}
