//! Encoded labels (A-labels): what may follow `xn--` so that it decodes to a valid U-label.
//!
//! ```text
//!  bcher-kva ──decode──► bücher ──ULabels──► valid ──encode──► bcher-kva, the same: a member
//!  └ prefix?   1. the standard suffix of codes of its length has room: it completes any code
//!              2. the whole is a member
//!              3. it is the ASCII part of a label, with non-ASCII letters inserted at a few places
//!              4. more digits complete it: a bounded search, short ends first
//! ```
//!
//! **Lemma.** With one non-ASCII left-to-right letter before, after, and after the first character
//! of any string of letters, digits and hyphens, that string is the ASCII part of a valid label:
//! the label begins and ends with a letter, and its third character is one. The encoded letters
//! depend on the string's length alone. So each length has one suffix that completes every code.

use std::sync::Arc;

use formalm_core::{ForkSafeMutex, SetOnce};
use rustc_hash::FxHashMap;

use super::punycode::{PunycodeDecoder, encode};
use super::u_labels::{ULabelState, ULabels};

/// Maximum number of steps of the search for the end of a label. Only the longest labels take many;
/// a label that takes more is rejected. Chosen, not measured.
const MAX_SEARCH_STEPS: u32 = 100_000;

/// Maximum number of prefixes whose viability is cached; then the cache is cleared. Chosen, not
/// measured.
const MAX_CACHED_PREFIXES: usize = 100_000;

/// Maximum number of prefixes whose missing characters are cached; then the cache is cleared.
/// Chosen, not measured.
const MAX_CACHED_MISSING: usize = 10_000;

/// Number of digits up to which ends are searched shortest first. Chosen, not measured.
const SHORT_ENDS: usize = 3;

/// Number of code lengths that have a standard suffix: those of labels of 63 octets.
const SUFFIX_LENGTHS: usize = 60;

/// The letters that a standard suffix may encode; one is chosen for each length.
const SUFFIX_LETTERS: [(char, char); 2] = [('ß', 'ö'), ('ø', 'ÿ')];

/// Returns the standard suffix of codes of `length` characters, which completes all of them in
/// names of both directions: the delimiter and the digits of three letters. `None` beyond
/// [`SUFFIX_LENGTHS`].
///
/// It has no decimal digits where a letter allows that, so that patterns without them fit.
pub(super) fn standard_suffix(length: usize) -> Option<&'static str> {
    static SUFFIXES: SetOnce<Vec<String>> = SetOnce::new();
    let suffixes = SUFFIXES.get_or_init(|| (0..SUFFIX_LENGTHS).map(choose_suffix).collect());
    suffixes.get(length).map(String::as_str)
}

/// Returns the label whose ASCII part is `basic`, with `letter` before, after, and after its first
/// character.
fn with_letters(basic: &str, letter: char) -> Vec<char> {
    let mut text = vec![letter];
    text.extend(basic.chars());
    text.insert(text.len().min(2), letter);
    text.push(letter);
    text
}

fn choose_suffix(length: usize) -> String {
    let basic = "a".repeat(length);
    let suffix = |letter: char| encode(&with_letters(&basic, letter)).split_off(length);
    let mut letters = SUFFIX_LETTERS.into_iter().flat_map(|(first, last)| first..=last);
    let lettered = letters.find_map(|letter| {
        Some(suffix(letter)).filter(|suffix| !suffix.contains(|c: char| c.is_ascii_digit()))
    });
    lettered.unwrap_or_else(|| suffix(SUFFIX_LETTERS[0].0))
}

/// The lower-case strings after `xn--` that encode a valid label, for one set of rules.
#[derive(Debug)]
pub(super) struct ALabels {
    u_labels: Arc<ULabels>,
    viable: ForkSafeMutex<FxHashMap<(String, usize), bool>>,
    missing: ForkSafeMutex<FxHashMap<String, u32>>,
}

impl ALabels {
    /// Returns the encoded forms of the labels that `letters` accepts.
    pub(super) fn new(u_labels: Arc<ULabels>) -> ALabels {
        ALabels { u_labels, viable: ForkSafeMutex::default(), missing: ForkSafeMutex::default() }
    }

    /// Returns `true` if a decoded string is a valid label.
    fn is_decoded(&self, text: &[char]) -> bool {
        self.u_labels.read(text.iter().copied()).is_some_and(ULabelState::is_complete)
    }

    /// Returns `true` if `code`, after the prefix, encodes a valid label.
    pub(super) fn is_member(&self, code: &str) -> bool {
        let (basic, digits) = code.rsplit_once('-').unwrap_or(("", code));
        let mut decoder = PunycodeDecoder::new(basic);
        let read = digits.chars().all(|digit| decoder.read(digit).is_some());
        read && decoder.is_at_character_boundary()
            && decoder.text.iter().any(|c| !c.is_ascii())
            && encode(&decoder.text) == code
            && self.is_decoded(&decoder.text)
    }

    /// Returns `true` if some code of at most `max_octets` octets starts with `code`.
    pub(super) fn is_viable(&self, code: &str, max_octets: usize) -> bool {
        let Some(room) = max_octets.checked_sub(code.len()) else { return false };
        if !code.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return false;
        }
        if standard_suffix(code.len()).is_some_and(|suffix| suffix.len() <= room) {
            return true;
        }
        let mut known = self.viable.lock();
        let key = (code.to_owned(), room);
        if let Some(&viable) = known.get(&key) {
            return viable;
        }
        let viable = self.is_member(code)
            || self.is_viable_basic_part(code, room)
            || self.has_digit_completion(code, room);
        if known.len() >= MAX_CACHED_PREFIXES {
            known.clear();
        }
        known.insert(key, viable);
        viable
    }

    /// Returns a lower bound on the characters that complete a code that is no member. It is exact
    /// up to two.
    pub(super) fn min_missing_chars(&self, code: &str) -> u32 {
        let known = || self.missing.lock();
        if let Some(&missing) = known().get(code) {
            return missing;
        }
        // One more hyphen turns everything before it into the ASCII part.
        let missing = match () {
            () if self.completes_within(code, 1) => 1,
            () if self.completes_within(code, 2)
                || self.completes_within(&format!("{code}-"), 1) =>
            {
                2
            }
            () => 3,
        };
        let known = &mut *known();
        if known.len() >= MAX_CACHED_MISSING {
            known.clear();
        }
        known.insert(code.to_owned(), missing);
        missing
    }

    /// Returns `true` if at most `digits` more digits complete the code.
    fn completes_within(&self, code: &str, digits: usize) -> bool {
        let (basic, read) = code.rsplit_once('-').unwrap_or(("", code));
        let mut decoder = PunycodeDecoder::new(basic);
        read.chars().all(|digit| self.read_digit(&mut decoder, digit))
            && self.search(&decoder, &mut code.to_owned(), digits, &mut 0)
    }

    /// Returns `true` if the code can be the ASCII part of a label, with letters inserted at up to
    /// three of a few places.
    fn is_viable_basic_part(&self, code: &str, room: usize) -> bool {
        let basic: Vec<char> = code.chars().collect();
        let places = [0, 1, 2, 3, basic.len()].map(|place| place.min(basic.len()));
        (1..1u32 << places.len()).filter(|set| set.count_ones() <= 3).any(|set| {
            let mut text = basic.clone();
            for (at, &place) in places.iter().enumerate().rev() {
                if set >> at & 1 == 1 {
                    text.insert(place, 'ü');
                }
            }
            let whole = encode(&text);
            whole.starts_with(code) && whole.len() <= code.len() + room && self.is_decoded(&text)
        })
    }

    /// Returns `true` if more digits after the last hyphen complete a label.
    fn has_digit_completion(&self, code: &str, room: usize) -> bool {
        let (basic, digits) = code.rsplit_once('-').unwrap_or(("", code));
        let mut decoder = PunycodeDecoder::new(basic);
        if !digits.chars().all(|digit| self.read_digit(&mut decoder, digit)) {
            return false;
        }
        // Most ends are short, so these are searched first, shortest first. If there are longer
        // ones, there are many.
        let mut code = code.to_owned();
        let mut tries = (0..=room.min(SHORT_ENDS)).chain([room]);
        tries.any(|room| self.search(&decoder, &mut code, room, &mut 0))
    }

    /// Reads a digit. Returns `false` if no label continues so: an invalid character stays in it.
    fn read_digit(&self, decoder: &mut PunycodeDecoder, digit: char) -> bool {
        match decoder.read(digit) {
            None => false,
            Some(Some(character)) => self.u_labels.valid.contains(character),
            Some(None) => true,
        }
    }

    /// Returns `true` if at most `room` more digits complete a label.
    fn search(
        &self,
        decoder: &PunycodeDecoder,
        code: &mut String,
        room: usize,
        steps: &mut u32,
    ) -> bool {
        *steps += 1;
        if decoder.is_at_character_boundary() && self.is_member(code) {
            return true;
        }
        if room == 0 || *steps > MAX_SEARCH_STEPS {
            return false;
        }
        ('a'..='z').chain('0'..='9').any(|digit| {
            let mut next = decoder.clone();
            code.push(digit);
            let found =
                self.read_digit(&mut next, digit) && self.search(&next, code, room - 1, steps);
            code.pop();
            found
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Standard, label_rules};
    use super::{ALabels, SUFFIX_LENGTHS, standard_suffix};

    #[test]
    fn standard_suffixes_complete_every_code() {
        let rules = label_rules(Standard::Idna2008).unwrap();
        for rules in rules {
            let labels = ALabels::new(Arc::clone(rules));
            for length in 0..SUFFIX_LENGTHS {
                let suffix = standard_suffix(length).unwrap();
                assert!(length > 26 || !suffix.contains(|c: char| c.is_ascii_digit()), "{suffix}");
                let pieces = ["a", "-", "1", "z0", "--", "l-l", "-a-", "9--", "xn--", "tda-"];
                for piece in pieces {
                    for other in pieces {
                        let code = format!("{piece}{}", other.repeat(length));
                        let code = &code[..length];
                        assert!(labels.is_member(&format!("{code}{suffix}")), "{code}{suffix}");
                        assert!(labels.is_viable(code, length + suffix.len()));
                    }
                }
            }
        }
        assert_eq!(standard_suffix(SUFFIX_LENGTHS), None);
    }
}
