//! Punycode (RFC 3492): strings of any characters as ASCII letters, digits and hyphens.
//!
//! ```text
//!  bücher ──encode──► bcher - kva       basic characters, hyphen, one variable-length number per
//!                     │       │         non-basic character: the distance to its code point
//!                     basic   digits    and index
//! ```
//!
//! Constants and the bias function are named as in the RFC.

/// The number of digits: letters and decimal digits.
const BASE: u32 = 36;
const TMIN: u32 = 1;
const TMAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const INITIAL_BIAS: u32 = 72;
const INITIAL_N: u32 = 0x80;

/// Minimum digits of the first number of a label, see [`PunycodeDecoder::min_digits`].
const MIN_FIRST_DIGITS: usize = 3;

/// An incremental decoder that reads digits one by one, after the basic characters.
#[derive(Clone)]
pub(super) struct PunycodeDecoder {
    pub(super) text: Vec<char>,
    /// The next code point to insert (`n` in the RFC).
    next: u32,
    /// The position of the insertion, before wrapping (`i` in the RFC).
    at: u32,
    bias: u32,
    /// The position at which the current number started.
    start: u32,
    /// The weight of its next digit (`w` in the RFC).
    weight: u32,
    /// Thirty-six times the number of its next digit (`k` in the RFC).
    digit_base: u32,
}

/// Returns the threshold below which a digit ends its number.
fn threshold(digit_base: u32, bias: u32) -> u32 {
    digit_base.saturating_sub(bias).clamp(TMIN, TMAX)
}

/// Returns the bias after a number (RFC 3492, section 6.1).
fn adapt_bias(delta: u32, count: u32, first: bool) -> u32 {
    let mut delta = if first { delta / DAMP } else { delta / 2 };
    delta += delta / count;
    let mut digit_base = 0;
    while delta > (BASE - TMIN) * TMAX / 2 {
        delta /= BASE - TMIN;
        digit_base += BASE;
    }
    digit_base + (BASE - TMIN + 1) * delta / (delta + SKEW)
}

impl PunycodeDecoder {
    /// Returns a decoder that has read the basic characters.
    pub(super) fn new(basic: &str) -> PunycodeDecoder {
        let text = basic.chars().map(|c| c.to_ascii_lowercase()).collect();
        PunycodeDecoder {
            text,
            next: INITIAL_N,
            at: 0,
            bias: INITIAL_BIAS,
            start: 0,
            weight: 1,
            digit_base: BASE,
        }
    }

    /// Returns `true` if no number is incomplete.
    pub(super) fn is_at_character_boundary(&self) -> bool {
        self.digit_base == BASE
    }

    /// Returns a lower bound on the digits of at least `numbers` more numbers, the current one among
    /// them. The first number of a text has three: less leads to characters below U+00A4, which
    /// occur in no label.
    pub(super) fn min_digits(&self, numbers: usize) -> usize {
        let read = (self.digit_base / BASE - 1) as usize;
        let is_first = self.start == 0;
        match numbers.max(usize::from(read > 0 || is_first)) {
            0 => 0,
            numbers => {
                let all: usize = if is_first { MIN_FIRST_DIGITS } else { 1 };
                all.saturating_sub(read).max(1) + numbers - 1
            }
        }
    }

    /// Reads a digit and returns the character that it completes, if any. Returns `None` if the
    /// digit is invalid here.
    pub(super) fn read(&mut self, c: char) -> Option<Option<char>> {
        let digit = match c {
            'a'..='z' => u32::from(c) - u32::from('a'),
            'A'..='Z' => u32::from(c) - u32::from('A'),
            '0'..='9' => u32::from(c) - u32::from('0') + 26,
            _ => return None,
        };
        self.at = self.at.checked_add(digit.checked_mul(self.weight)?)?;
        let count = self.text.len() as u32 + 1;
        // Numbers only grow, so a code point beyond the last one stays invalid.
        if self.next + self.at / count > u32::from(char::MAX) {
            return None;
        }
        let threshold = threshold(self.digit_base, self.bias);
        if digit >= threshold {
            self.weight = self.weight.checked_mul(BASE - threshold)?;
            self.digit_base += BASE;
            return Some(None);
        }
        self.bias = adapt_bias(self.at - self.start, count, self.start == 0);
        self.next += self.at / count;
        self.at %= count;
        let character = char::from_u32(self.next)?;
        self.text.insert(self.at as usize, character);
        self.at += 1;
        (self.start, self.weight, self.digit_base) = (self.at, 1, BASE);
        Some(Some(character))
    }
}

impl PunycodeDecoder {
    /// Returns the code point of the current (or next) number, its index in the text and the number
    /// of missing digits, if the remaining digits have the value `rest`.
    pub(super) fn complete_with(&self, rest: u32) -> Option<(u32, usize, usize)> {
        let at = u64::from(self.weight) * u64::from(rest) + u64::from(self.at);
        let count = self.text.len() as u64 + 1;
        let code = u64::from(self.next) + u32::try_from(at).ok().map(u64::from)? / count;
        let (mut rest, mut digit_base, mut digits) = (rest, self.digit_base, 1);
        loop {
            let threshold = threshold(digit_base, self.bias);
            if rest < threshold {
                return Some((u32::try_from(code).ok()?, (at % count) as usize, digits));
            }
            rest = (rest - threshold) / (BASE - threshold);
            digit_base += BASE;
            digits += 1;
        }
    }

    /// Returns the least value of the remaining digits with which the current number reaches this
    /// character or a later one.
    pub(super) fn first_number_reaching(&self, character: char) -> u32 {
        let count = self.text.len() as u64 + 1;
        let at = u64::from(u32::from(character).saturating_sub(self.next)) * count;
        let rest = at.saturating_sub(self.at.into()).div_ceil(self.weight.into());
        u32::try_from(rest).unwrap_or(u32::MAX)
    }
}

/// Encodes a string in Punycode.
pub(super) fn encode(text: &[char]) -> String {
    let mut code: String = text.iter().filter(|c| c.is_ascii()).collect();
    let basic = code.len() as u32;
    let mut done = basic;
    if basic > 0 {
        code.push('-');
    }
    let (mut next, mut delta, mut bias) = (INITIAL_N, 0u32, INITIAL_BIAS);
    while (done as usize) < text.len() {
        let later = text.iter().map(|&c| u32::from(c)).filter(|&c| c >= next);
        let Some(least) = later.min() else { break };
        delta = delta.saturating_add((least - next).saturating_mul(done + 1));
        next = least;
        for &c in text {
            if u32::from(c) < next {
                delta = delta.saturating_add(1);
            }
            if u32::from(c) == next {
                push_number(&mut code, delta, bias);
                bias = adapt_bias(delta, done + 1, done == basic);
                delta = 0;
                done += 1;
            }
        }
        delta = delta.saturating_add(1);
        next += 1;
    }
    code
}

/// Appends a number as digits of variable length (RFC 3492, section 3.3).
fn push_number(code: &mut String, mut rest: u32, bias: u32) {
    let digit = |value: u32| char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[value as usize]);
    let mut digit_base = BASE;
    loop {
        let threshold = threshold(digit_base, bias);
        if rest < threshold {
            code.push(digit(rest));
            return;
        }
        code.push(digit(threshold + (rest - threshold) % (BASE - threshold)));
        rest = (rest - threshold) / (BASE - threshold);
        digit_base += BASE;
    }
}

#[cfg(test)]
mod tests {
    use super::{PunycodeDecoder, encode};

    #[test]
    fn encoding_and_decoding_are_inverse() {
        let samples = [
            ("bücher", "bcher-kva"),
            ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
            ("3年b組金八先生", "3b-ww4c5e180e575a65lsy2b"),
            ("-> $1.00 <-", "-> $1.00 <--"),
            ("ü", "tda"),
        ];
        for (text, code) in samples {
            let characters: Vec<char> = text.chars().collect();
            assert_eq!(encode(&characters), code);
            let (basic, digits) = code.rsplit_once('-').unwrap_or(("", code));
            let mut decoder = PunycodeDecoder::new(basic);
            for digit in digits.chars() {
                assert!(decoder.read(digit).is_some(), "{code}");
            }
            assert!(decoder.is_at_character_boundary() && decoder.text == characters, "{text}");
        }
    }
}
