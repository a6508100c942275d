//! Decompositions, compositions and combining classes as the served library knows them.
//!
//! A library normalizes by the Unicode version of its tables, which no interface reports. Combining
//! classes and compositions of assigned characters never change, so newer tables minus what the
//! library leaves unchanged are exactly its tables. [`probes`] lists strings that one fact each
//! would change.

use formalm_core::SetOnce;
use rustc_hash::{FxHashMap, FxHashSet};
use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible,
};

/// End of the code points with decompositions or combining classes; the planes beyond have none.
const END: u32 = 0x3_0000;

/// Hangul syllables compose by rule.
const SYLLABLES: std::ops::RangeInclusive<char> = '\u{AC00}'..='\u{D7A3}';

/// The composition of two characters into a third.
type Composition = ((char, char), char);

/// The facts of the newest tables, each of which a library may lack.
struct NewestTables {
    marks: Vec<(char, u8)>,
    canonical: Vec<char>,
    compatible: Vec<char>,
    compositions: Vec<Composition>,
}

/// The strings that show which facts a library knows: it does iff it changes them.
pub(super) struct Probes {
    /// To be normalized to NFD: one string for each combining mark.
    pub(super) marks: Vec<String>,
    /// To be normalized to NFD.
    pub(super) canonical: Vec<String>,
    /// To be normalized to NFKD.
    pub(super) compatible: Vec<String>,
    /// To be normalized to NFC.
    pub(super) compositions: Vec<String>,
}

/// Whether the library changes each of the [`Probes`].
pub(super) struct ProbesChanged {
    pub(super) marks: Vec<bool>,
    pub(super) canonical: Vec<bool>,
    pub(super) compatible: Vec<bool>,
    pub(super) compositions: Vec<bool>,
}

/// The tables of a library.
#[derive(Debug, Default)]
pub(super) struct UnicodeTables {
    classes: FxHashMap<char, u8>,
    canonical: FxHashSet<char>,
    compatible: FxHashSet<char>,
    compositions: FxHashMap<(char, char), char>,
    /// The second characters of compositions, by the first.
    seconds: FxHashMap<char, Vec<char>>,
}

/// A normalization form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NormalizationForm {
    /// Characters are composed after decomposition (NFC, NFKC).
    pub(super) composes: bool,
    /// Characters are replaced by compatible ones (NFKC, NFKD).
    pub(super) is_compatible: bool,
}

fn newest() -> &'static NewestTables {
    static TABLES: SetOnce<NewestTables> = SetOnce::new();
    TABLES.get_or_init(|| {
        let mut tables = NewestTables {
            marks: Vec::new(),
            canonical: Vec::new(),
            compatible: Vec::new(),
            compositions: Vec::new(),
        };
        for c in (0x80..END).filter_map(char::from_u32).filter(|c| !SYLLABLES.contains(c)) {
            let class = canonical_combining_class(c);
            if class != 0 {
                tables.marks.push((c, class));
            }
            let parts = canonical_parts(c);
            if parts != [c] {
                tables.canonical.push(c);
                tables.compositions.extend(composition(&parts, c));
            }
            let mut count = 0;
            let mut is_own = false;
            decompose_compatible(c, |part| {
                count += 1;
                is_own = part == c;
            });
            if count != 1 || !is_own {
                tables.compatible.push(c);
            }
        }
        tables
    })
}

fn canonical_parts(c: char) -> Vec<char> {
    let mut parts = Vec::with_capacity(4);
    decompose_canonical(c, |part| parts.push(part));
    parts
}

/// Returns the pair that composes to `c`, given its decomposition, unless `c` is excluded from
/// composition.
fn composition(parts: &[char], c: char) -> Option<Composition> {
    let (&last, rest) = parts.split_last()?;
    let (&base, marks) = rest.split_first()?;
    let first = marks.iter().try_fold(base, |first, &mark| compose(first, mark))?;
    (compose(first, last) == Some(c)).then_some(((first, last), c))
}

/// Returns the strings to be normalized by the library.
pub(super) fn probes() -> Probes {
    let tables = newest();
    let mark = |&(c, class): &(char, u8)| match class {
        // Sorts before U+0345 of class 240, or after U+0334 of class 1.
        0..240 => format!("\u{25A1}\u{345}{c}"),
        _ => format!("\u{25A1}{c}\u{334}"),
    };
    Probes {
        marks: tables.marks.iter().map(mark).collect(),
        canonical: tables.canonical.iter().map(char::to_string).collect(),
        compatible: tables.compatible.iter().map(char::to_string).collect(),
        compositions: tables.compositions.iter().map(|((a, b), _)| format!("{a}{b}")).collect(),
    }
}

impl UnicodeTables {
    /// Builds the tables of a library from what it changes. Returns `None` if the number of answers
    /// differs from the number of probes.
    pub(super) fn new(changed: &ProbesChanged) -> Option<UnicodeTables> {
        let tables = newest();
        let fits = changed.marks.len() == tables.marks.len()
            && changed.canonical.len() == tables.canonical.len()
            && changed.compatible.len() == tables.compatible.len()
            && changed.compositions.len() == tables.compositions.len();
        let known = |list: &[char], changed: &[bool]| -> FxHashSet<char> {
            list.iter().zip(changed).filter(|one| *one.1).map(|one| *one.0).collect()
        };
        let mut seconds: FxHashMap<char, Vec<char>> = FxHashMap::default();
        let mut compositions = FxHashMap::default();
        for (&((first, second), c), _) in
            tables.compositions.iter().zip(&changed.compositions).filter(|one| *one.1)
        {
            compositions.insert((first, second), c);
            seconds.entry(first).or_default().push(second);
        }
        let marks = tables.marks.iter().zip(&changed.marks).filter(|one| *one.1);
        fits.then(|| UnicodeTables {
            classes: marks.map(|one| *one.0).collect(),
            canonical: known(&tables.canonical, &changed.canonical),
            compatible: known(&tables.compatible, &changed.compatible),
            compositions,
            seconds,
        })
    }

    /// Returns the combining class of a character.
    pub(super) fn class(&self, c: char) -> u8 {
        self.classes.get(&c).copied().unwrap_or_default()
    }

    /// Returns the characters with a combining class other than 0.
    pub(super) fn marks(&self) -> impl Iterator<Item = char> {
        self.classes.keys().copied()
    }

    /// Returns the characters that a form decomposes, without Hangul syllables.
    pub(super) fn decomposed(&self, form: NormalizationForm) -> impl Iterator<Item = char> {
        let list = if form.is_compatible { &self.compatible } else { &self.canonical };
        list.iter().copied()
    }

    /// Returns the characters that begin a composition, without Hangul.
    pub(super) fn first_characters(&self) -> impl Iterator<Item = char> {
        self.seconds.keys().copied()
    }

    /// Returns the characters that may compose with `starter`, alone or with a part of its
    /// decomposition, without Hangul.
    pub(super) fn possible_seconds(&self, starter: char) -> Vec<char> {
        let canonical = NormalizationForm { composes: false, is_compatible: false };
        let mut parts = Vec::new();
        self.decompose(starter, canonical, &mut parts);
        let mut list = Vec::new();
        let Some((&base, marks)) = parts.split_first() else { return list };
        let mut prefixes = vec![base];
        for &mark in marks {
            let longer: Vec<char> =
                prefixes.iter().filter_map(|&prefix| self.compose(prefix, mark)).collect();
            prefixes.extend(longer);
        }
        for prefix in prefixes {
            list.extend(self.seconds.get(&prefix).into_iter().flatten());
        }
        list.sort_unstable();
        list.dedup();
        list
    }

    fn compose(&self, first: char, second: char) -> Option<char> {
        self.compositions.get(&(first, second)).copied().or_else(|| {
            // Hangul; the first character is a leading consonant or a syllable.
            let is_hangul = matches!(first, '\u{1100}'..='\u{1112}') || SYLLABLES.contains(&first);
            if is_hangul { compose(first, second) } else { None }
        })
    }

    fn decompose(&self, c: char, form: NormalizationForm, out: &mut Vec<char>) {
        if SYLLABLES.contains(&c) || self.canonical.contains(&c) && !form.is_compatible {
            decompose_canonical(c, |part| out.push(part));
        } else if form.is_compatible && self.compatible.contains(&c) {
            decompose_compatible(c, |part| out.push(part));
        } else {
            out.push(c);
        }
    }

    /// Normalizes characters.
    pub(super) fn normalize(&self, text: &[char], form: NormalizationForm) -> Vec<char> {
        let mut parts = Vec::new();
        text.iter().for_each(|&c| self.decompose(c, form, &mut parts));
        let mut at = 0;
        while at < parts.len() {
            let marks = parts[at..].iter().take_while(|&&c| self.class(c) != 0).count();
            parts[at..at + marks].sort_by_key(|&c| self.class(c));
            at += marks.max(1);
        }
        if !form.composes {
            return parts;
        }
        let mut out: Vec<char> = Vec::with_capacity(parts.len());
        let (mut starter, mut last_class) = (None, 0);
        for c in parts {
            let class = self.class(c);
            if let Some(at) = starter {
                let is_blocked = out.len() > at + 1 && last_class >= class;
                if !is_blocked && let Some(composed) = self.compose(out[at], c) {
                    out[at] = composed;
                    continue;
                }
            }
            if class == 0 {
                starter = Some(out.len());
            }
            last_class = class;
            out.push(c);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    use super::*;

    fn all() -> UnicodeTables {
        let tables = newest();
        let changed = ProbesChanged {
            marks: vec![true; tables.marks.len()],
            canonical: vec![true; tables.canonical.len()],
            compatible: vec![true; tables.compatible.len()],
            compositions: vec![true; tables.compositions.len()],
        };
        UnicodeTables::new(&changed).expect("as many answers as probes")
    }

    proptest! {
        #[test]
        fn normalization_is_that_of_the_unicode_normalization_crate(
            text in "[\u{41}-\u{17f}\u{300}-\u{345}\u{1100}-\u{11ff}가각\u{958}\u{9be}\u{9c7}\u{1e00}-\u{1eff}ﬁ²]{0,8}",
        ) {
            let (tables, chars) = (all(), text.chars().collect::<Vec<_>>());
            let own = |composes, is_compatible| -> String {
                let form = NormalizationForm { composes, is_compatible };
                tables.normalize(&chars, form).into_iter().collect()
            };
            prop_assert_eq!(own(true, false), text.nfc().collect::<String>());
            prop_assert_eq!(own(true, true), text.nfkc().collect::<String>());
            prop_assert_eq!(own(false, false), text.nfd().collect::<String>());
            prop_assert_eq!(own(false, true), text.nfkd().collect::<String>());
        }
    }
}
