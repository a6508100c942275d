//! Labels of host names in their encoded form.

use std::sync::Arc;

use formalm_automata::ForkSafeMutex;
use rustc_hash::FxHashMap;

use super::punycode::{PunycodeDecoder, encode};
use super::u_labels::{ULabelState, ULabels};

/// Steps of the search for the end of a label; only at the longest labels does it take many, and
/// one that takes more is left out.
const STEPS: u32 = 100_000;

/// Texts of which it is kept whether some label begins so.
const VIABLE: usize = 100_000;

/// Texts of which it is kept what they miss.
const MISSING: usize = 10_000;

/// Digits of ends that are looked for before longer ones.
const SHORT: usize = 3;

/// What stands behind `xn--`, in lower case, for labels of other characters.
#[derive(Debug)]
pub(super) struct ALabels {
    letters: Arc<ULabels>,
    viable: ForkSafeMutex<FxHashMap<(String, usize), bool>>,
    missing: ForkSafeMutex<FxHashMap<String, u32>>,
}

impl ALabels {
    pub(super) fn new(letters: Arc<ULabels>) -> ALabels {
        ALabels { letters, viable: ForkSafeMutex::default(), missing: ForkSafeMutex::default() }
    }

    fn is_decoded(&self, text: &[char]) -> bool {
        self.letters.read(text.iter().copied()).is_some_and(ULabelState::is_complete)
    }

    /// Whether what follows the mark stands for a label. Letters mean the same in either case.
    pub(super) fn is_member(&self, code: &str) -> bool {
        let (basic, digits) = code.rsplit_once('-').unwrap_or(("", code));
        let mut decoder = PunycodeDecoder::new(basic);
        let read = digits.chars().all(|digit| decoder.read(digit).is_some());
        read && decoder.is_between()
            && decoder.text.iter().any(|c| !c.is_ascii())
            && encode(&decoder.text) == code
            && self.is_decoded(&decoder.text)
    }

    /// Whether some label of at most `most` octets begins with this text.
    pub(super) fn is_viable(&self, code: &str, most: usize) -> bool {
        let Some(room) = most.checked_sub(code.len()) else { return false };
        if !code.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return false;
        }
        let mut known = self.viable.lock();
        let key = (code.to_owned(), room);
        if let Some(&viable) = known.get(&key) {
            return viable;
        }
        let viable = self.is_member(code) || self.has_basic(code, room) || self.goes_on(code, room);
        if known.len() >= VIABLE {
            known.clear();
        }
        known.insert(key, viable);
        viable
    }

    /// Characters at least that a text which is no label misses to be one: exact up to two.
    pub(super) fn missing(&self, code: &str) -> u32 {
        let known = || self.missing.lock();
        if let Some(&missing) = known().get(code) {
            return missing;
        }
        // A hyphen more makes all before it the ASCII part.
        let missing = match () {
            () if self.ends_with(code, 1) => 1,
            () if self.ends_with(code, 2) || self.ends_with(&format!("{code}-"), 1) => 2,
            () => 3,
        };
        let known = &mut *known();
        if known.len() >= MISSING {
            known.clear();
        }
        known.insert(code.to_owned(), missing);
        missing
    }

    /// Whether so many digits more, or fewer, make the text a label.
    fn ends_with(&self, code: &str, digits: usize) -> bool {
        let (basic, read) = code.rsplit_once('-').unwrap_or(("", code));
        let mut decoder = PunycodeDecoder::new(basic);
        read.chars().all(|digit| self.read(&mut decoder, digit))
            && self.search(&decoder, &mut code.to_owned(), digits, &mut 0)
    }

    /// Whether the text can be the ASCII part of a label with letters put in at a few places.
    fn has_basic(&self, code: &str, room: usize) -> bool {
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

    /// Whether the digits behind the last hyphen can go on to the end of a label.
    fn goes_on(&self, code: &str, room: usize) -> bool {
        let (basic, digits) = code.rsplit_once('-').unwrap_or(("", code));
        let mut decoder = PunycodeDecoder::new(basic);
        if !digits.chars().all(|digit| self.read(&mut decoder, digit)) {
            return false;
        }
        // Most ends are short: those with the fewest digits are looked at first. Of the longer ones
        // there are many where there are any.
        let mut code = code.to_owned();
        let mut tries = (0..=room.min(SHORT)).chain([room]);
        tries.any(|room| self.search(&decoder, &mut code, room, &mut 0))
    }

    /// Reads a digit; whether that can be: a character that no label has stays in it.
    fn read(&self, decoder: &mut PunycodeDecoder, digit: char) -> bool {
        match decoder.read(digit) {
            None => false,
            Some(Some(character)) => self.letters.valid.contains(character),
            Some(None) => true,
        }
    }

    /// Whether at most so many digits more end a label.
    fn search(
        &self,
        decoder: &PunycodeDecoder,
        code: &mut String,
        room: usize,
        steps: &mut u32,
    ) -> bool {
        *steps += 1;
        if decoder.is_between() && self.is_member(code) {
            return true;
        }
        if room == 0 || *steps > STEPS {
            return false;
        }
        ('a'..='z').chain('0'..='9').any(|digit| {
            let mut next = decoder.clone();
            code.push(digit);
            let found = self.read(&mut next, digit) && self.search(&next, code, room - 1, steps);
            code.pop();
            found
        })
    }
}
