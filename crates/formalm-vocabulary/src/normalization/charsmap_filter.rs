//! The texts that a compiled map of characters leaves unchanged.
//!
//! The map replaces, from left to right, the longest string that it contains. If no replacement
//! contains a character that is replaced by itself, and strings of several other characters only
//! get shorter, a text is left unchanged iff it contains none of the strings: what it contains of
//! the former is gone afterwards, and without these the text gets shorter.

use formalm_core::CharSet;
use rustc_hash::{FxHashMap, FxHashSet};

/// The characters and pairs of characters that the map changes.
#[derive(Debug)]
pub(crate) struct ChangedPairs {
    pub(crate) characters: CharSet,
    /// The second characters of pairs, by the first.
    pub(crate) pairs: FxHashMap<char, Vec<char>>,
}

impl ChangedPairs {
    /// Reads a map.
    ///
    /// # Errors
    ///
    /// The map is of a kind for which the above is not known, with the reason.
    pub(crate) fn new(map: &[(String, String)]) -> Result<ChangedPairs, String> {
        let mut single: FxHashSet<char> = FxHashSet::default();
        let mut longer: Vec<(Vec<char>, usize)> = Vec::new();
        for (key, value) in map {
            let characters: Vec<char> = key.chars().collect();
            match &characters[..] {
                [one] if key != value => {
                    single.insert(*one);
                }
                [_] => {}
                _ if key == value => {
                    return Err(format!("its character map keeps {key:?} as it is"));
                }
                _ => longer.push((characters, value.chars().count())),
            }
        }
        if let Some((key, _)) =
            map.iter().find(|(_, value)| value.chars().any(|c| single.contains(&c)))
        {
            return Err(format!("its character map does not change the result for {key:?} again"));
        }
        longer.retain(|(key, _)| !key.iter().any(|c| single.contains(c)));
        longer.sort_unstable_by(|one, other| {
            one.0.len().cmp(&other.0.len()).then(one.0.cmp(&other.0))
        });
        let mut pairs: FxHashMap<char, Vec<char>> = FxHashMap::default();
        for (key, length) in longer {
            let text: String = key.iter().collect();
            if length >= key.len() {
                return Err(format!("its character map does not shorten {text:?}"));
            }
            let has_pair = |pair: &[char]| {
                pairs.get(&pair[0]).is_some_and(|seconds| seconds.contains(&pair[1]))
            };
            match key[..] {
                [first, second] => pairs.entry(first).or_default().push(second),
                _ if key.windows(2).any(has_pair) => {}
                _ => return Err(format!("its character map joins {text:?} at once")),
            }
        }
        let characters = CharSet::from_ranges(single.into_iter().map(|c| (c, c)));
        Ok(ChangedPairs { characters, pairs })
    }

    /// Returns `true` if the map changes some pair that begins with `first`.
    pub(crate) fn begins(&self, first: char) -> bool {
        self.pairs.contains_key(&first)
    }

    /// Returns `true` if the map changes some pair that ends with `second`.
    pub(crate) fn ends(&self, second: char) -> bool {
        self.pairs.values().any(|seconds| seconds.contains(&second))
    }

    /// Returns `true` if the map changes a text.
    pub(crate) fn changes(&self, text: &str) -> bool {
        let characters: Vec<char> = text.chars().collect();
        let has_pair = |pair: &[char]| {
            self.pairs.get(&pair[0]).is_some_and(|seconds| seconds.contains(&pair[1]))
        };
        characters.iter().any(|&c| self.characters.contains(c))
            || characters.windows(2).any(has_pair)
    }
}
