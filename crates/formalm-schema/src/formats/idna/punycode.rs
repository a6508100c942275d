//! Punycode (RFC 3492): texts of any characters as letters, digits and hyphens.

const BASE: u32 = 36;
const LEAST: u32 = 1;
const MOST: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const BIAS: u32 = 72;
const FIRST: u32 = 0x80;

/// Reads digits of Punycode one by one, from the basic characters on.
#[derive(Clone)]
pub(super) struct PunycodeDecoder {
    pub(super) text: Vec<char>,
    next: u32,
    at: u32,
    bias: u32,
    /// The number under way: its beginning, its weight and its next place.
    begun: u32,
    weight: u32,
    place: u32,
}

fn threshold(place: u32, bias: u32) -> u32 {
    place.saturating_sub(bias).clamp(LEAST, MOST)
}

fn adapted(delta: u32, count: u32, first: bool) -> u32 {
    let mut delta = if first { delta / DAMP } else { delta / 2 };
    delta += delta / count;
    let mut place = 0;
    while delta > (BASE - LEAST) * MOST / 2 {
        delta /= BASE - LEAST;
        place += BASE;
    }
    place + (BASE - LEAST + 1) * delta / (delta + SKEW)
}

impl PunycodeDecoder {
    pub(super) fn new(basic: &str) -> PunycodeDecoder {
        let text = basic.chars().map(|c| c.to_ascii_lowercase()).collect();
        PunycodeDecoder { text, next: FIRST, at: 0, bias: BIAS, begun: 0, weight: 1, place: BASE }
    }

    /// Whether no number is under way.
    pub(super) fn is_between(&self) -> bool {
        self.place == BASE
    }

    /// Reads a digit; the character that it completes. `None` if it cannot come.
    pub(super) fn read(&mut self, c: char) -> Option<Option<char>> {
        let digit = match c {
            'a'..='z' => u32::from(c) - u32::from('a'),
            'A'..='Z' => u32::from(c) - u32::from('A'),
            '0'..='9' => u32::from(c) - u32::from('0') + 26,
            _ => return None,
        };
        self.at = self.at.checked_add(digit.checked_mul(self.weight)?)?;
        let count = self.text.len() as u32 + 1;
        // Numbers only grow: beyond the last character nothing helps.
        if self.next + self.at / count > u32::from(char::MAX) {
            return None;
        }
        let threshold = threshold(self.place, self.bias);
        if digit >= threshold {
            self.weight = self.weight.checked_mul(BASE - threshold)?;
            self.place += BASE;
            return Some(None);
        }
        self.bias = adapted(self.at - self.begun, count, self.begun == 0);
        self.next += self.at / count;
        self.at %= count;
        let character = char::from_u32(self.next)?;
        self.text.insert(self.at as usize, character);
        self.at += 1;
        (self.begun, self.weight, self.place) = (self.at, 1, BASE);
        Some(Some(character))
    }
}

impl PunycodeDecoder {
    /// The character that the number under way, or the next one, stands for, its place in the text
    /// and the digits that are missing, where the number is the `rest`th of those that begin so.
    pub(super) fn completed(&self, rest: u32) -> Option<(u32, usize, usize)> {
        let at = u64::from(self.weight) * u64::from(rest) + u64::from(self.at);
        let count = self.text.len() as u64 + 1;
        let code = u64::from(self.next) + u32::try_from(at).ok().map(u64::from)? / count;
        let (mut rest, mut place, mut digits) = (rest, self.place, 1);
        loop {
            let threshold = threshold(place, self.bias);
            if rest < threshold {
                return Some((u32::try_from(code).ok()?, (at % count) as usize, digits));
            }
            rest = (rest - threshold) / (BASE - threshold);
            place += BASE;
            digits += 1;
        }
    }

    /// The first of the numbers that begin as the one under way which stands for this character, or
    /// one after it.
    pub(super) fn reaching(&self, character: char) -> u32 {
        let count = self.text.len() as u64 + 1;
        let at = u64::from(u32::from(character).saturating_sub(self.next)) * count;
        let rest = at.saturating_sub(self.at.into()).div_ceil(self.weight.into());
        u32::try_from(rest).unwrap_or(u32::MAX)
    }
}

/// A text in Punycode.
pub(super) fn encode(text: &[char]) -> String {
    let mut code: String = text.iter().filter(|c| c.is_ascii()).collect();
    let basic = code.len() as u32;
    let mut done = basic;
    if basic > 0 {
        code.push('-');
    }
    let (mut next, mut delta, mut bias) = (FIRST, 0u32, BIAS);
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
                bias = adapted(delta, done + 1, done == basic);
                delta = 0;
                done += 1;
            }
        }
        delta = delta.saturating_add(1);
        next += 1;
    }
    code
}

fn push_number(code: &mut String, mut rest: u32, bias: u32) {
    let digit = |value: u32| char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[value as usize]);
    let mut place = BASE;
    loop {
        let threshold = threshold(place, bias);
        if rest < threshold {
            code.push(digit(rest));
            return;
        }
        code.push(digit(threshold + (rest - threshold) % (BASE - threshold)));
        rest = (rest - threshold) / (BASE - threshold);
        place += BASE;
    }
}

#[cfg(test)]
mod tests {
    use super::{PunycodeDecoder, encode};

    #[test]
    fn what_is_encoded_is_decoded() {
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
            assert!(decoder.is_between() && decoder.text == characters, "{text}");
        }
    }
}
