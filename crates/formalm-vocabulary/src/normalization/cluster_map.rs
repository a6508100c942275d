//! A compiled map of characters as the `tokenizers` library applies it: by grapheme clusters.
//!
//! ```text
//!  cluster of fewer than 6 bytes that begins with a key ──► the value of its shortest key
//!  any other cluster                                    ──► character by character
//! ```
//!
//! So the rest of a short cluster is lost, and a longer one keeps pairs that the map contains:
//! `e + U+0301` becomes `é`, and `e` with three such marks stays. If values contain no character that
//! the map changes, and values of pairs are shorter than these, a text is left unchanged iff
//!
//! 1. it contains no single character that the map changes, and
//! 2. no cluster of fewer than 6 bytes begins with a pair that the map contains:
//!
//! a changed character occurs in no result, and without these the text gets shorter.
//!
//! Condition 2 looks ahead. A state holds how many bytes the cluster has if it must go on, and else by
//! what a pair would be completed ([`ClusterRules`]).

use std::collections::BTreeMap;

use formalm_core::CharSet;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::base64::base64;
use crate::sentencepiece::read_charsmap;

/// Clusters with fewer bytes are replaced at once.
const LONG_CLUSTER: usize = 6;

/// Joins pictographs.
pub(super) const JOINER: char = '\u{200D}';

/// A map of characters: what it changes by itself.
#[derive(Clone, Debug)]
pub(super) struct ClusterMap {
    /// The characters that the map changes.
    pub(super) characters: CharSet,
    /// The pairs of other characters that may be a short cluster, and their values.
    pub(super) pairs: Vec<([char; 2], String)>,
}

impl ClusterMap {
    /// Reads a map in base64.
    ///
    /// # Errors
    ///
    /// The data is no map, or the map is of a kind for which the conditions above are not known, with
    /// the reason.
    pub(super) fn read(data: &str) -> Result<ClusterMap, String> {
        let map = base64(data.as_bytes()).and_then(|data| read_charsmap(&data));
        ClusterMap::new(&map.ok_or("its character map cannot be read")?)
    }

    fn new(map: &[(String, String)]) -> Result<ClusterMap, String> {
        let mut changed: FxHashSet<char> = FxHashSet::default();
        for (key, value) in map {
            let mut characters = key.chars();
            if let (Some(one), None) = (characters.next(), characters.next()) {
                if key == value {
                    return Err(format!("its character map keeps {key:?} as it is"));
                }
                changed.insert(one);
            }
        }
        let is_changed = |c: char| changed.contains(&c);
        if let Some((key, _)) = map.iter().find(|(_, value)| value.chars().any(is_changed)) {
            return Err(format!("its character map does not change the result for {key:?} again"));
        }
        let mut longer = Vec::new();
        let mut pairs: FxHashMap<[char; 2], String> = FxHashMap::default();
        for (key, value) in map {
            if key.len() >= LONG_CLUSTER || key.chars().any(is_changed) {
                continue;
            }
            match key.chars().collect::<Vec<char>>()[..] {
                [first, second] => {
                    if value.chars().count() > 1 {
                        return Err(format!("its character map does not shorten {key:?}"));
                    }
                    pairs.insert([first, second], value.clone());
                }
                [first, second, ..] => longer.push(([first, second], key)),
                _ => {}
            }
        }
        if let Some((_, key)) = longer.iter().find(|(start, _)| !pairs.contains_key(start)) {
            return Err(format!("its character map joins {key:?} at once"));
        }
        let mut characters: Vec<char> = changed.into_iter().collect();
        characters.sort_unstable();
        let mut pairs: Vec<([char; 2], String)> = pairs.into_iter().collect();
        pairs.sort_unstable();
        let characters = CharSet::from_ranges(characters.into_iter().map(|c| (c, c)));
        Ok(ClusterMap { characters, pairs })
    }

    /// Returns `true` if pictographs can be joined in a text that the map leaves unchanged.
    pub(super) fn joins_pictographs(&self) -> bool {
        !self.characters.contains(JOINER)
    }
}

/// The part of characters in clusters, by the version of Unicode that is served.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClusterParts {
    /// Characters that belong to the cluster before them.
    pub(super) continuing: CharSet,
    /// Characters to whose cluster the next one belongs.
    pub(super) prepended: CharSet,
    /// Pictographs: one belongs to the cluster of another if a joiner stands between them.
    pub(super) pictographs: CharSet,
    /// Characters that may stand between a pictograph and a joiner.
    pub(super) between: CharSet,
}

/// Condition 2, character by character.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClusterRules {
    parts: ClusterParts,
    /// The rows of characters that begin pairs.
    rows: BTreeMap<char, u16>,
    /// Per row, the characters that complete a pair, ascending.
    seconds: Vec<Vec<char>>,
}

/// The current cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Cluster {
    /// No pair will begin it.
    #[default]
    Settled,
    /// It is one character that begins pairs: the row, and its number of bytes.
    First(u16, u8),
    /// A pair begins it. It has so many bytes, and must have more.
    Short(u8),
    /// The next character belongs to it, whatever it is.
    Prepended,
}

/// The end of a chain of pictographs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Chain {
    #[default]
    None,
    Pictograph,
    Joined,
}

/// A state of [`ClusterRules`]; the default one begins a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ClusterState {
    cluster: Cluster,
    chain: Chain,
}

impl ClusterState {
    /// Returns `true` if the cluster must go on.
    pub(crate) fn is_short(self) -> bool {
        matches!(self.cluster, Cluster::Short(_))
    }
}

impl ClusterRules {
    /// Builds the rules of a map.
    ///
    /// # Errors
    ///
    /// A character that begins pairs may belong to the cluster before it, with the reason.
    pub(super) fn new(map: &ClusterMap, parts: ClusterParts) -> Result<ClusterRules, String> {
        let mut by_first: FxHashMap<char, Vec<char>> = FxHashMap::default();
        for &([first, second], _) in &map.pairs {
            if parts.continuing.contains(first) || parts.prepended.contains(first) {
                return Err(format!("its character map joins {first:?} with others"));
            }
            if parts.continuing.contains(second) {
                by_first.entry(first).or_default().push(second);
            }
        }
        let mut firsts: Vec<(char, Vec<char>)> = by_first.into_iter().collect();
        firsts.sort_unstable();
        let mut rules = ClusterRules { parts, ..ClusterRules::default() };
        for (first, seconds) in firsts {
            let known = rules.seconds.iter().position(|row| *row == seconds);
            let row = known.unwrap_or_else(|| {
                rules.seconds.push(seconds);
                rules.seconds.len() - 1
            });
            rules.rows.insert(first, row as u16);
        }
        Ok(rules)
    }

    /// Returns the sets of characters that the rules distinguish.
    pub(crate) fn sets(&self) -> Vec<CharSet> {
        let of = |list: Vec<char>| CharSet::from_ranges(list.into_iter().map(|c| (c, c)));
        let lengths = ['\u{7F}', '\u{7FF}', '\u{FFFF}'];
        let mut sets: Vec<CharSet> =
            lengths.iter().map(|&last| CharSet::from_ranges([('\0', last)])).collect();
        let ClusterParts { continuing, prepended, pictographs, between } = &self.parts;
        sets.extend([continuing, prepended, pictographs, between].map(CharSet::clone));
        sets.push(CharSet::single(JOINER));
        let mut firsts = vec![Vec::new(); self.seconds.len()];
        self.rows.iter().for_each(|(&first, &row)| firsts[usize::from(row)].push(first));
        sets.extend(firsts.into_iter().map(of));
        // Characters that complete pairs of the same rows are equivalent.
        let mut columns: BTreeMap<char, Vec<usize>> = BTreeMap::new();
        for (row, seconds) in self.seconds.iter().enumerate() {
            seconds.iter().for_each(|&second| columns.entry(second).or_default().push(row));
        }
        let mut by_rows: BTreeMap<Vec<usize>, Vec<char>> = BTreeMap::new();
        for (second, rows) in columns {
            by_rows.entry(rows).or_default().push(second);
        }
        sets.extend(by_rows.into_values().map(of));
        sets
    }

    /// Reads a character. Returns `None` if the map changes the text.
    pub(crate) fn step(&self, state: ClusterState, c: char) -> Option<ClusterState> {
        let parts = &self.parts;
        let length = c.len_utf8() as u8;
        if parts.continuing.contains(c) {
            let short = |bytes: u8| match usize::from(bytes) < LONG_CLUSTER {
                true => Cluster::Short(bytes),
                false => Cluster::Settled,
            };
            let cluster = match state.cluster {
                Cluster::First(row, bytes)
                    if self.seconds[usize::from(row)].binary_search(&c).is_ok() =>
                {
                    short(bytes + length)
                }
                Cluster::Short(bytes) => short(bytes + length),
                _ => Cluster::Settled,
            };
            let chain = match state.chain {
                Chain::Pictograph if c == JOINER => Chain::Joined,
                Chain::Pictograph if parts.between.contains(c) => Chain::Pictograph,
                _ => Chain::None,
            };
            return Some(ClusterState { cluster, chain });
        }
        if state.is_short() {
            return None;
        }
        let is_pictograph = parts.pictographs.contains(c);
        let belongs =
            state.cluster == Cluster::Prepended || state.chain == Chain::Joined && is_pictograph;
        let cluster = match self.rows.get(&c) {
            _ if parts.prepended.contains(c) => Cluster::Prepended,
            Some(&row) if !belongs => Cluster::First(row, length),
            _ => Cluster::Settled,
        };
        let chain = if is_pictograph { Chain::Pictograph } else { Chain::None };
        Some(ClusterState { cluster, chain })
    }

    /// Returns the rules as lists of numbers, to save: four sets, then the pairs.
    pub(crate) fn to_numbers(&self) -> Vec<Vec<u32>> {
        let ClusterParts { continuing, prepended, pictographs, between } = &self.parts;
        let ranges = |set: &CharSet| {
            let ranges = set.ranges().iter();
            ranges.flat_map(|&(first, last)| [u32::from(first), u32::from(last)]).collect()
        };
        let mut lists: Vec<Vec<u32>> =
            [continuing, prepended, pictographs, between].map(ranges).into();
        let mut pairs: Vec<[u32; 2]> = Vec::new();
        for (&first, &row) in &self.rows {
            let seconds = self.seconds[usize::from(row)].iter();
            pairs.extend(seconds.map(|&second| [u32::from(first), u32::from(second)]));
        }
        pairs.sort_unstable();
        lists.push(pairs.into_flattened());
        lists
    }

    /// Rebuilds the rules from [`ClusterRules::to_numbers`]. Returns `None` if they are something
    /// else.
    pub(crate) fn from_numbers(lists: &[Vec<u32>]) -> Option<ClusterRules> {
        let mut read: Vec<Vec<[char; 2]>> = Vec::new();
        for list in lists {
            let (pairs, []) = list.as_chunks::<2>() else { return None };
            let pair =
                |&[one, other]: &[u32; 2]| Some([char::from_u32(one)?, char::from_u32(other)?]);
            read.push(pairs.iter().map(pair).collect::<Option<_>>()?);
        }
        let [continuing, prepended, pictographs, between, pairs] = &read[..] else { return None };
        let is_range = |&[first, last]: &[char; 2]| first <= last;
        if !read[..4].iter().flatten().all(is_range) {
            return None;
        }
        let set = |list: &[[char; 2]]| CharSet::from_ranges(list.iter().map(|&[a, b]| (a, b)));
        let parts = ClusterParts {
            continuing: set(continuing),
            prepended: set(prepended),
            pictographs: set(pictographs),
            between: set(between),
        };
        let pairs = pairs.iter().map(|&pair| (pair, String::new())).collect();
        ClusterRules::new(&ClusterMap { characters: CharSet::empty(), pairs }, parts).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(list: &[(&str, &str)]) -> Result<ClusterMap, String> {
        let own = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        ClusterMap::new(&list.iter().map(own).collect::<Vec<_>>())
    }

    fn rules() -> ClusterRules {
        let map = map(&[("e\u{301}", "é"), ("ﬁ", "fi"), ("ↄ\u{301}", "c")]).expect("a usual map");
        let single = CharSet::single;
        let parts = ClusterParts {
            continuing: single('\u{301}').union(&single(JOINER)),
            prepended: single('\u{600}'),
            pictographs: single('☺').union(&single('ↄ')),
            between: single('\u{301}'),
        };
        ClusterRules::new(&map, parts).expect("pairs of starters and marks")
    }

    fn keeps(text: &str) -> bool {
        let rules = rules();
        let state = text.chars().try_fold(ClusterState::default(), |at, c| rules.step(at, c));
        state.is_some_and(|state| !state.is_short())
    }

    #[test]
    fn a_short_cluster_does_not_begin_with_a_pair_and_a_long_one_may() {
        for text in [
            "",
            "e",
            "\u{301}",
            "\u{301}e",
            "a\u{301}",
            "e\u{301}\u{301}\u{301}",
            "\u{600}e\u{301}",
        ] {
            assert!(keeps(text), "{text:?}");
        }
        for text in ["e\u{301}", "ae\u{301}\u{301}", "e\u{301}e", "\u{600}ae\u{301}"] {
            assert!(!keeps(text), "{text:?}");
        }
    }

    #[test]
    fn a_joined_pictograph_begins_no_cluster() {
        assert!(keeps("☺\u{200D}ↄ\u{301}") && keeps("☺\u{301}\u{200D}ↄ\u{301}"));
        assert!(!keeps("☺ↄ\u{301}") && !keeps("a\u{200D}ↄ\u{301}"));
    }

    #[test]
    fn saved_rules_read_back_equal() {
        let rules = rules();
        assert_eq!(ClusterRules::from_numbers(&rules.to_numbers()), Some(rules.clone()));
        assert_eq!(ClusterRules::from_numbers(&rules.to_numbers()[1..]), None);
        assert_eq!(ClusterRules::from_numbers(&vec![vec![0xD800, 1]; 5]), None);
    }

    #[test]
    fn maps_of_other_kinds_are_refused() {
        let reason = |list: &[(&str, &str)]| map(list).expect_err("a strange map");
        assert!(reason(&[("a", "a")]).contains("keeps"));
        assert!(reason(&[("a", "b"), ("b", "a")]).contains("again"));
        assert!(reason(&[("e\u{301}", "ee")]).contains("shorten"));
        assert!(reason(&[("abc", "d")]).contains("at once"));
        // The key is longer than any cluster that is replaced at once.
        assert!(map(&[("abcdef", "d")]).is_ok());
    }
}
