//! Times with an offset that lie on one side of a bound, compared in UTC.
//!
//! ```text
//!  0000-00-00T00:00:00.000000+00:00
//!  │          │       │      │└ AFTER_SIGN       the local time fixes how large the offset may be
//!  0          │       │      └ AFTER_FRACTION
//!             │       └ AFTER_SECONDS
//!             └ TIME_START
//! ```
//!
//! The bound is compared as soon as no further digit can matter. From then on a state keeps only
//! the maximum offset, so the number of states is bounded by that of digits and of offsets.

use formalm_automata::{CharRecognizer, GrowingStates, MemberLengths, RecognizerAlphabet};

use super::idna::StateInterner;

/// The shape of a date and time: digits where this has `0`. A time without a date starts after the
/// `T`.
const TEMPLATE: &[u8] = b"0000-00-00T00:00:00";
/// The largest string of that shape.
const MAX_TEMPLATE: &[u8] = b"9999-12-31T23:59:59";
/// Number of characters read after the seconds.
const AFTER_SECONDS: usize = TEMPLATE.len();
/// Number of characters of the date and its `T`.
const TIME_START: usize = 11;
/// Number of characters read after the decimal point.
const AFTER_POINT: usize = AFTER_SECONDS + 1;
/// Number of characters read after six digits of the fraction; more are not read.
const AFTER_FRACTION: usize = AFTER_POINT + 6;
/// Number of characters read after the sign of the offset, whatever the length of the fraction.
const AFTER_SIGN: usize = AFTER_FRACTION + 1;
/// Number of characters read after an offset `hh:mm`, or after `Z`.
const END: usize = AFTER_SIGN + 5;
/// Maximum absolute offset, in minutes: 23:59.
const MAX_OFFSET_MINUTES: i64 = 24 * 60 - 1;
/// Microseconds per minute.
const MICROSECONDS_PER_MINUTE: i64 = 60_000_000;

/// A recognizer of times `hh:mm:ss.ssssss+hh:mm`, with or without a date before them, on one side
/// of a bound. It does not check the lengths of months.
#[derive(Debug)]
pub(crate) struct BoundedTimestamps {
    bound: TimestampBound,
    /// The start state, which is interned first.
    first: TimestampState,
    states: StateInterner<TimestampState>,
}

/// A bound on times: minutes since 1970 or midnight, and microseconds after that minute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimestampBound {
    /// `true` for times after the bound, `false` for times before it.
    pub(crate) is_above: bool,
    /// `true` if the bound itself is allowed.
    pub(crate) may_equal: bool,
    /// `true` if times have a date.
    pub(crate) has_date: bool,
    /// Whole minutes of the bound, in UTC.
    pub(crate) minutes: i64,
    /// Microseconds after that minute.
    pub(crate) rest: i64,
}

/// The state of a string. The local time is compared as soon as no further digit can matter; what
/// remains is the maximum offset, counted toward the bound.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TimestampState {
    /// Number of characters read, counted as in the constants.
    read: usize,
    /// Maximum offset in minutes; `None` while further digits can matter.
    max_offset: Option<i64>,
    /// The characters read while these matter; then only a digit that restricts the next one.
    text: Vec<u8>,
    /// `true` if a larger absolute offset is farther from the required side.
    larger_is_farther: bool,
}

impl TimestampBound {
    /// Returns the maximum offset after a local time, in minutes. Fractions count up to six digits.
    fn max_offset(&self, time: &[u8]) -> i64 {
        let number = |from: usize, to: usize| {
            let digits = time[from - self.start()..to - self.start()].iter();
            digits.fold(0, |number, digit| 10 * number + i64::from(digit - b'0'))
        };
        let days = if self.has_date {
            days_since_1970(number(0, 4), number(5, 7), number(8, 10))
        } else {
            0
        };
        let minutes = (days * 24 + number(11, 13)) * 60 + number(14, 16) - self.minutes;
        let digits = time.iter().skip(AFTER_POINT - self.start()).chain([b'0'; 6].iter()).take(6);
        let fraction = digits.fold(0, |number, digit| 10 * number + i64::from(digit - b'0'));
        let rest = number(17, 19) * 1_000_000 + fraction - self.rest;
        let is_on_side =
            if self.is_above { rest > 0 } else { rest < 0 } || rest == 0 && self.may_equal;
        let distance = if self.is_above { minutes } else { -minutes };
        (distance - i64::from(!is_on_side)).clamp(-MAX_OFFSET_MINUTES - 1, MAX_OFFSET_MINUTES)
    }

    /// Returns the number of characters that a start without a date skips.
    fn start(&self) -> usize {
        if self.has_date { 0 } else { TIME_START }
    }

    /// Returns the state after a prefix of the local time, or `None` if no offset puts it on the
    /// required side. Compares the smallest and the largest time with that prefix.
    fn state_before_offset(&self, read: usize, text: Vec<u8>) -> Option<TimestampState> {
        let start = self.start();
        let mut extremes = [TEMPLATE, MAX_TEMPLATE].map(|shape| {
            let mut padded = text.clone();
            let at = start + text.len();
            padded.extend(shape.get(at..).unwrap_or_default());
            // A field that starts with its maximum digit ends at its maximum; others end with 9.
            if shape == MAX_TEMPLATE && (1..AFTER_SECONDS).contains(&at) && TEMPLATE[at] == b'0' {
                let is_second_digit =
                    TEMPLATE[at - 1] == b'0' && text.last() != Some(&MAX_TEMPLATE[at - 1]);
                if at >= 5 && is_second_digit {
                    padded[at - start] = b'9';
                }
            }
            padded
        });
        if extremes[1].len() == AFTER_SECONDS - start {
            extremes[1].push(b'.');
        }
        extremes[1].resize(AFTER_FRACTION - start, b'9');
        let limits = extremes.map(|time| self.max_offset(&time));
        if limits[0].max(limits[1]) < -MAX_OFFSET_MINUTES {
            return None;
        }
        if limits[0] == limits[1] {
            return Some(TimestampState {
                read,
                max_offset: Some(limits[0]),
                text: digits_that_restrict_next(read, &text),
                larger_is_farther: true,
            });
        }
        Some(TimestampState { read, max_offset: None, text, larger_is_farther: true })
    }

    /// Returns the state after one more character.
    fn after(&self, place: &TimestampState, c: char) -> Option<TimestampState> {
        let byte = u8::try_from(c).ok().filter(u8::is_ascii)?;
        let read = place.read;
        if read >= AFTER_SIGN {
            return self.after_offset(place, byte);
        }
        if read == AFTER_SECONDS || read > AFTER_POINT {
            let max_offset = || place.max_offset.unwrap_or_else(|| self.max_offset(&place.text));
            let larger_is_farther = (byte == b'+') == self.is_above;
            match byte {
                b'Z' | b'z' => return offset_state(END, max_offset(), true, Vec::new()),
                b'+' | b'-' => {
                    return offset_state(AFTER_SIGN, max_offset(), larger_is_farther, Vec::new());
                }
                _ => {}
            }
        }
        let byte = match (read, TEMPLATE.get(read)) {
            (AFTER_SECONDS, _) if byte == b'.' => byte,
            (AFTER_POINT..AFTER_FRACTION, _) if byte.is_ascii_digit() => byte,
            (_, Some(b'0')) if is_digit(read, place.text.last(), byte) => byte,
            (_, Some(b'T')) if matches!(byte, b'T' | b't' | b' ') => b'T',
            (_, Some(&sign)) if sign == byte && byte != b'0' => byte,
            _ => return None,
        };
        let mut text = place.text.clone();
        text.push(byte);
        match place.max_offset {
            None => self.state_before_offset(read + 1, text),
            max_offset => Some(TimestampState {
                read: read + 1,
                max_offset,
                text: digits_that_restrict_next(read + 1, &text),
                larger_is_farther: true,
            }),
        }
    }

    /// Returns the state after one more character of the offset.
    fn after_offset(&self, place: &TimestampState, byte: u8) -> Option<TimestampState> {
        let at = place.read - AFTER_SIGN;
        let weight = match at {
            2 => {
                return (byte == b':')
                    .then(|| TimestampState { read: place.read + 1, ..place.clone() });
            }
            0 | 1 | 3 | 4 => [600, 60, 0, 10, 1][at],
            _ => return None,
        };
        if !is_digit(TIME_START + at, place.text.last(), byte) {
            return None;
        }
        let minutes = i64::from(byte - b'0') * weight;
        let max_offset =
            place.max_offset? + if place.larger_is_farther { -minutes } else { minutes };
        let text = if at == 0 { vec![if byte == b'2' { b'2' } else { b'0' }] } else { Vec::new() };
        offset_state(place.read + 1, max_offset, place.larger_is_farther, text)
    }
}

/// Returns the state inside an offset whose remaining digits may add at most `limit` minutes, or
/// must add at least its negative; `None` if they cannot.
fn offset_state(
    read: usize,
    max_offset: i64,
    larger_is_farther: bool,
    text: Vec<u8>,
) -> Option<TimestampState> {
    let most = match read - AFTER_SIGN {
        0 => MAX_OFFSET_MINUTES,
        1 if text == b"2" => 239,
        1 => 599,
        2 | 3 => 59,
        4 => 9,
        _ => 0,
    };
    let (least, largest) = if larger_is_farther { (0, most) } else { (-most, 0) };
    if max_offset < least {
        return None;
    }
    let is_decided = max_offset >= largest;
    let (max_offset, larger_is_farther) =
        if is_decided { (most, true) } else { (max_offset, larger_is_farther) };
    Some(TimestampState { read, max_offset: Some(max_offset), text, larger_is_farther })
}

/// Returns `true` if `digit` may follow at position `at`: no month, day, hour, minute or second is
/// too large.
fn is_digit(at: usize, before: Option<&u8>, digit: u8) -> bool {
    let is_second = at > 4 && TEMPLATE[at - 1] == b'0' && before == Some(&MAX_TEMPLATE[at - 1]);
    let is_first = at > 4 && TEMPLATE[at - 1] != b'0';
    digit.is_ascii_digit() && (!(is_first || is_second) || digit <= MAX_TEMPLATE[at])
}

/// Returns the last digit if it restricts the next one, as the 2 of an hour does.
fn digits_that_restrict_next(read: usize, text: &[u8]) -> Vec<u8> {
    let is_second_digit =
        (5..AFTER_SECONDS).contains(&read) && TEMPLATE[read] == b'0' && TEMPLATE[read - 1] == b'0';
    match text.last() {
        Some(last) if is_second_digit && *last == MAX_TEMPLATE[read - 1] => vec![*last],
        _ => Vec::new(),
    }
}

/// Returns the days since 1970-01-01; monotone also for days that do not exist.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = if month <= 2 { month + 9 } else { month - 3 };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leaps + (153 * month + 2) / 5 + day - 1 - 719_468
}

impl BoundedTimestamps {
    /// Returns the recognizer, or `None` if the bound is out of range or excludes all times.
    pub(crate) fn new(bound: TimestampBound) -> Option<BoundedTimestamps> {
        let is_known =
            (0..MICROSECONDS_PER_MINUTE).contains(&bound.rest) && bound.minutes.abs() < 1 << 40;
        let first = bound.state_before_offset(bound.start(), Vec::new()).filter(|_| is_known)?;
        Some(BoundedTimestamps { bound, first, states: StateInterner::default() })
    }
}

impl CharRecognizer for BoundedTimestamps {
    fn start(&self) -> u32 {
        self.states.intern(self.first.clone())
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        let next = self.bound.after(&self.states.get(state), character)?;
        Some(self.states.intern(next))
    }

    fn accepts_some_in_range(&self, _: u32, _: char, _: char) -> bool {
        false
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.states.get(state).read == END
    }

    fn alphabet(&self) -> Option<&dyn RecognizerAlphabet> {
        Some(self)
    }

    fn member_lengths(&self) -> Option<&dyn MemberLengths> {
        Some(self)
    }

    fn growing_states(&self) -> Option<&dyn GrowingStates> {
        Some(self)
    }
}

impl RecognizerAlphabet for BoundedTimestamps {
    fn ascii_letters(&self) -> u128 {
        b"0123456789:.+-ZzTt ".iter().fold(0, |set, &byte| set | 1 << byte)
    }
}

impl MemberLengths for BoundedTimestamps {
    fn min_chars(&self, state: u32) -> u32 {
        let read = self.states.get(state).read;
        let left = match read {
            AFTER_SIGN..=END => END - read,
            AFTER_POINT => 2,
            _ => AFTER_SECONDS.saturating_sub(read) + 1,
        };
        left as u32
    }
}

impl GrowingStates for BoundedTimestamps {
    fn losses(&self) -> u32 {
        self.states.losses()
    }
}

#[cfg(test)]
mod tests {
    use formalm_automata::CharRecognizer;

    use super::{BoundedTimestamps, MAX_OFFSET_MINUTES, TimestampBound};

    fn read(timestamps: &BoundedTimestamps, text: &str) -> Option<u32> {
        text.chars().try_fold(timestamps.start(), |state, c| timestamps.step(state, c))
    }

    fn bounds(has_date: bool, minutes: i64, rest: i64) -> impl Iterator<Item = TimestampBound> {
        let sides = [(true, true), (true, false), (false, true), (false, false)];
        sides.into_iter().map(move |(is_above, may_equal)| TimestampBound {
            is_above,
            may_equal,
            has_date,
            minutes,
            rest,
        })
    }

    #[test]
    fn times_are_compared_in_utc() {
        for (minutes, rest) in [(0, 0), (700, 30_500_000), (1439, 59_999_999), (-90, 1)] {
            for bound in bounds(false, minutes, rest) {
                let timestamps = BoundedTimestamps::new(bound).unwrap();
                for local in (0..1440).step_by(7).chain([1439]) {
                    for offset in (-MAX_OFFSET_MINUTES..=MAX_OFFSET_MINUTES)
                        .step_by(61)
                        .chain([local - minutes])
                    {
                        for (tail, micros) in
                            [("00", 0), ("30.5", 30_500_000), ("59.999999", 59_999_999)]
                        {
                            if offset.abs() > MAX_OFFSET_MINUTES {
                                continue;
                            }
                            let (sign, off) = (if offset < 0 { '-' } else { '+' }, offset.abs());
                            let text = format!(
                                "{:02}:{:02}:{tail}{sign}{:02}:{:02}",
                                local / 60,
                                local % 60,
                                off / 60,
                                off % 60
                            );
                            let order = (local - offset, micros).cmp(&(minutes, rest));
                            let expected =
                                if bound.is_above { order.is_gt() } else { order.is_lt() }
                                    || order.is_eq() && bound.may_equal;
                            let state = read(&timestamps, &text);
                            let found = state.is_some_and(|state| timestamps.is_accepting(state));
                            assert_eq!(found, expected, "{text} {bound:?}");
                        }
                    }
                }
            }
        }
    }

    /// Checks that every state has a successor or accepts.
    #[test]
    fn no_state_is_a_dead_end() {
        let letters = "0123456789:.+-ZT";
        let bounds = bounds(true, 28_488_240, 59_999_999).chain(bounds(true, 28_488_240, 0));
        for bound in bounds.chain(bounds_of_times()) {
            let timestamps = BoundedTimestamps::new(bound).unwrap();
            let mut state = 0;
            // States are numbered in order of discovery.
            while state < 3000 && state < timestamps.states.count() {
                let next = letters.chars().filter(|&c| timestamps.step(state, c).is_some()).count();
                assert!(
                    next > 0 || timestamps.is_accepting(state),
                    "{:?}",
                    timestamps.states.get(state)
                );
                state += 1;
            }
        }
    }

    fn bounds_of_times() -> impl Iterator<Item = TimestampBound> {
        bounds(false, 720, 0)
            .chain(bounds(false, 1439 + MAX_OFFSET_MINUTES, 0))
            .filter(|bound| BoundedTimestamps::new(*bound).is_some())
    }
}
