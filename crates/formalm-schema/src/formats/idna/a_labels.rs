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

use formalm_core::ForkSafeMutex;
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

/// For each length, the suffix that completes every code of that many characters, in names of both
/// directions: the delimiter and the digits of three letters, two equal ones and one of `ß` to `ÿ`.
/// They were chosen short, and without decimal digits where that is possible, so that patterns
/// without these fit.
const STANDARD_SUFFIXES: [&str; 60] = [
    "zcaaa", "-pfaba", "-fiabb", "-clabb", "-unabd", "-kqabe", "-gtabb", "-zvabg", "-pyabh",
    "-jbbbb", "-ebbbb", "-lbbbb", "-bbbbl", "-ndbbb", "-zfbbn", "-pibbo", "-flbbp", "-mobbb",
    "-uqbbr", "-ktbbs", "-uwbbb", "-zybbu", "-vbcbb", "-kbcbb", "-obcbb", "-kbcbb", "-kdcbz",
    "-uhcbb", "-sjcbb", "-jmcbb", "-xrcbb", "-xscbb", "-rucbb", "-ixcbb", "-8zcbb", "-bfdbb",
    "-bhdbb", "-nbdbb", "-cddbb", "-yedbb", "-phdbb", "-gkdbb", "-fodbb", "-xpdbb", "-osdbb",
    "-fvdbb", "-izdbb", "-ibebb", "-nbebb", "-obebb", "-lbebb", "-vcebb", "-mfebb", "-diebb",
    "-omebb", "-unebb", "-lqebb", "-ctebb", "-rxebb", "-tyebb",
];

/// Returns the standard suffix of codes of `length` characters, `None` beyond the maximum length.
pub(super) fn standard_suffix(length: usize) -> Option<&'static str> {
    STANDARD_SUFFIXES.get(length).copied()
}

/// Returns a lower bound on the letters that must be inserted to make a label of characters: before
/// a leading hyphen, after a trailing one, and before the fourth character if it and the third are
/// hyphens.
fn min_insertions(text: &[char]) -> usize {
    let is_hyphen = |at: usize| text.get(at) == Some(&'-');
    let front = match (is_hyphen(0), is_hyphen(1) && is_hyphen(2)) {
        (true, true) => 2,
        (true, false) => 1,
        (false, _) => usize::from(is_hyphen(2) && is_hyphen(3)),
    };
    front + usize::from(text.last() == Some(&'-'))
}

/// The lower-case strings after `xn--` that encode a valid label, for one set of rules.
#[derive(Debug)]
pub(super) struct ALabels {
    u_labels: Arc<ULabels>,
    /// Completions of prefixes within some octets, where no standard suffix fits; `None` if there
    /// is none.
    completions: ForkSafeMutex<FxHashMap<(String, usize), Option<String>>>,
    missing: ForkSafeMutex<FxHashMap<String, u32>>,
}

impl ALabels {
    /// Returns the encoded forms of the labels that `letters` accepts.
    pub(super) fn new(u_labels: Arc<ULabels>) -> ALabels {
        let (completions, missing) = (ForkSafeMutex::default(), ForkSafeMutex::default());
        ALabels { u_labels, completions, missing }
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
        standard_suffix(code.len()).is_some_and(|suffix| suffix.len() <= room)
            || self.completion(code, room).is_some()
    }

    /// Returns at most `room` characters that complete a code.
    pub(super) fn completion(&self, code: &str, room: usize) -> Option<String> {
        let key = (code.to_owned(), room);
        let known = &mut *self.completions.lock();
        if let Some(completion) = known.get(&key) {
            return completion.clone();
        }
        let completion = match self.is_member(code) {
            true => Some(String::new()),
            false => {
                self.basic_part_completion(code, room).or_else(|| self.digit_completion(code, room))
            }
        };
        if known.len() >= MAX_CACHED_PREFIXES {
            known.clear();
        }
        known.insert(key, completion.clone());
        completion
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

    /// Returns the rest of an encoded label whose ASCII part is the code, with letters inserted at
    /// up to three of a few places.
    fn basic_part_completion(&self, code: &str, room: usize) -> Option<String> {
        let basic: Vec<char> = code.chars().collect();
        let places = [0, 1, 2, 3, basic.len()].map(|place| place.min(basic.len()));
        (1..1u32 << places.len()).filter(|set| set.count_ones() <= 3).find_map(|set| {
            let mut text = basic.clone();
            for (at, &place) in places.iter().enumerate().rev() {
                if set >> at & 1 == 1 {
                    text.insert(place, 'ü');
                }
            }
            let whole = encode(&text);
            let rest = whole.strip_prefix(code).filter(|rest| rest.len() <= room)?;
            self.is_decoded(&text).then(|| rest.to_owned())
        })
    }

    /// Returns more digits after the last hyphen that complete a label.
    fn digit_completion(&self, code: &str, room: usize) -> Option<String> {
        let (basic, digits) = code.rsplit_once('-').unwrap_or(("", code));
        let mut decoder = PunycodeDecoder::new(basic);
        if !digits.chars().all(|digit| self.read_digit(&mut decoder, digit)) {
            return None;
        }
        // Most ends are short, so these are searched first, shortest first. If there are longer
        // ones, there are many.
        let mut whole = code.to_owned();
        let mut tries = (0..=room.min(SHORT_ENDS)).chain([room]);
        let is_found = tries.any(|room| self.search(&decoder, &mut whole, room, &mut 0));
        is_found.then(|| whole.split_off(code.len()))
    }

    /// Reads a digit. Returns `false` if no label continues so: an invalid character stays in it.
    fn read_digit(&self, decoder: &mut PunycodeDecoder, digit: char) -> bool {
        match decoder.read(digit) {
            None => false,
            Some(Some(character)) => self.u_labels.valid.contains(character),
            Some(None) => true,
        }
    }

    /// Returns `true` if at most `room` more digits complete a label, and appends them to the code.
    fn search(
        &self,
        decoder: &PunycodeDecoder,
        code: &mut String,
        room: usize,
        steps: &mut u32,
    ) -> bool {
        if decoder.min_digits(min_insertions(&decoder.text)) > room {
            return false;
        }
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
            if !found {
                code.pop();
            }
            found
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Standard, label_rules};
    use super::{ALabels, STANDARD_SUFFIXES, standard_suffix};

    #[test]
    fn standard_suffixes_complete_every_code() {
        let rules = label_rules(Standard::Idna2008).unwrap();
        for rules in rules {
            let labels = ALabels::new(Arc::clone(rules));
            for (length, suffix) in STANDARD_SUFFIXES.into_iter().enumerate() {
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
        assert_eq!(standard_suffix(STANDARD_SUFFIXES.len()), None);
    }
    #[test]
    fn completions_without_room_for_a_standard_suffix_equal_exhaustive_search() {
        let [rules, _] = label_rules(Standard::Idna2008).unwrap();
        let labels = ALabels::new(Arc::clone(rules));
        let mut found = [0; 2];
        for code in ["", "a", "-", "--", "ab--", "a-", "tda", "td", "---", "a-b-", "-a--x"] {
            for room in 0..4 {
                let mut ends = vec![String::new()];
                for _ in 0..room {
                    let longer = ends.iter().flat_map(|end| {
                        ('a'..='z').chain('0'..='9').chain(['-']).map(move |c| format!("{end}{c}"))
                    });
                    ends = ends.iter().cloned().chain(longer).collect();
                    ends.sort_unstable();
                    ends.dedup();
                }
                let is_viable = ends.iter().any(|end| labels.is_member(&format!("{code}{end}")));
                let completion = labels.completion(code, room);
                assert_eq!(completion.is_some(), is_viable, "{code} {room}");
                if let Some(end) = completion {
                    assert!(end.len() <= room && labels.is_member(&format!("{code}{end}")));
                }
                found[usize::from(is_viable)] += 1;
            }
        }
        assert!(found.iter().all(|&count| count > 5), "{found:?}");
    }
}
