//! Times with an offset that lie on one side of a bound, compared in UTC.

use formalm_automata::CharRecognizer;

use super::idna::StateInterner;

/// Digits are read where these have one; times begin behind the `T`.
const SHAPE: &[u8] = b"0000-00-00T00:00:00";
/// The largest text of the shape.
const LARGEST: &[u8] = b"9999-12-31T23:59:59";
const WHOLE: usize = SHAPE.len();
const TIME: usize = 11;
const POINT: usize = WHOLE + 1;
const FRACTION: usize = POINT + 6;
const SIGN: usize = FRACTION + 1;
/// Behind an offset of the shape `hh:mm`, or a `Z`.
const END: usize = SIGN + 5;
/// The largest offset in minutes, to either side.
const FAR: i64 = 24 * 60 - 1;
const MINUTE: i64 = 60_000_000;

/// Reads times of the shape `hh:mm:ss.ssssss+hh:mm`, with or without a date in front, that are a
/// bound or lie to one side of it. Days are counted without regard to the lengths of months.
#[derive(Debug)]
pub(crate) struct BoundedTimestamps {
    bound: TimestampBound,
    /// Where texts begin; the first of all places.
    first: TimestampState,
    places: StateInterner<TimestampState>,
}

/// A bound: minutes since 1970, or midnight, and microseconds beyond.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimestampBound {
    pub(crate) is_above: bool,
    pub(crate) may_equal: bool,
    pub(crate) has_date: bool,
    pub(crate) minutes: i64,
    pub(crate) rest: i64,
}

/// What is known of a text. Its time before its offset is settled as soon as no digit more can
/// matter: then the offset is at most (seen from the side of the bound) a number of minutes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TimestampState {
    read: usize,
    limit: Option<i64>,
    /// Before the time is settled, what was read of it; then the digit that begins a field.
    text: Vec<u8>,
    /// Whether a larger offset is further from what is asked.
    counts_up: bool,
}

impl TimestampBound {
    /// The most that the offset behind a time may be; longer fractions are not.
    fn limit(&self, time: &[u8]) -> i64 {
        let number = |from: usize, to: usize| {
            let digits = time[from - self.start()..to - self.start()].iter();
            digits.fold(0, |number, digit| 10 * number + i64::from(digit - b'0'))
        };
        let days = if self.has_date { days(number(0, 4), number(5, 7), number(8, 10)) } else { 0 };
        let minutes = (days * 24 + number(11, 13)) * 60 + number(14, 16) - self.minutes;
        let digits = time.iter().skip(POINT - self.start()).chain([b'0'; 6].iter()).take(6);
        let fraction = digits.fold(0, |number, digit| 10 * number + i64::from(digit - b'0'));
        let rest = number(17, 19) * 1_000_000 + fraction - self.rest;
        let fits = if self.is_above { rest > 0 } else { rest < 0 } || rest == 0 && self.may_equal;
        let ahead = if self.is_above { minutes } else { -minutes };
        (ahead - i64::from(!fits)).clamp(-FAR - 1, FAR)
    }

    fn start(&self) -> usize {
        if self.has_date { 0 } else { TIME }
    }

    /// The place behind a text before its offset; `None` if no offset makes it one that is asked.
    fn settled(&self, read: usize, text: Vec<u8>) -> Option<TimestampState> {
        let start = self.start();
        let mut ends = [SHAPE, LARGEST].map(|shape| {
            let mut whole = text.clone();
            let at = start + text.len();
            whole.extend(shape.get(at..).unwrap_or_default());
            // A field that begins as the largest does ends no larger; other fields do by a 9.
            if shape == LARGEST && (1..WHOLE).contains(&at) && SHAPE[at] == b'0' {
                let begins = SHAPE[at - 1] == b'0' && text.last() != Some(&LARGEST[at - 1]);
                if at >= 5 && begins {
                    whole[at - start] = b'9';
                }
            }
            whole
        });
        if ends[1].len() == WHOLE - start {
            ends[1].push(b'.');
        }
        ends[1].resize(FRACTION - start, b'9');
        let limits = ends.map(|time| self.limit(&time));
        if limits[0].max(limits[1]) < -FAR {
            return None;
        }
        if limits[0] == limits[1] {
            return Some(TimestampState {
                read,
                limit: Some(limits[0]),
                text: field(read, &text),
                counts_up: true,
            });
        }
        Some(TimestampState { read, limit: None, text, counts_up: true })
    }

    fn after(&self, place: &TimestampState, c: char) -> Option<TimestampState> {
        let byte = u8::try_from(c).ok().filter(u8::is_ascii)?;
        let read = place.read;
        if read >= SIGN {
            return self.after_offset(place, byte);
        }
        if read == WHOLE || read > POINT {
            let limit = || place.limit.unwrap_or_else(|| self.limit(&place.text));
            let counts_up = (byte == b'+') == self.is_above;
            match byte {
                b'Z' | b'z' => return offset(END, limit(), true, Vec::new()),
                b'+' | b'-' => return offset(SIGN, limit(), counts_up, Vec::new()),
                _ => {}
            }
        }
        let byte = match (read, SHAPE.get(read)) {
            (WHOLE, _) if byte == b'.' => byte,
            (POINT..FRACTION, _) if byte.is_ascii_digit() => byte,
            (_, Some(b'0')) if is_digit(read, place.text.last(), byte) => byte,
            (_, Some(b'T')) if matches!(byte, b'T' | b't' | b' ') => b'T',
            (_, Some(&sign)) if sign == byte && byte != b'0' => byte,
            _ => return None,
        };
        let mut text = place.text.clone();
        text.push(byte);
        match place.limit {
            None => self.settled(read + 1, text),
            limit => Some(TimestampState {
                read: read + 1,
                limit,
                text: field(read + 1, &text),
                counts_up: true,
            }),
        }
    }

    fn after_offset(&self, place: &TimestampState, byte: u8) -> Option<TimestampState> {
        let at = place.read - SIGN;
        let weight = match at {
            2 => {
                return (byte == b':')
                    .then(|| TimestampState { read: place.read + 1, ..place.clone() });
            }
            0 | 1 | 3 | 4 => [600, 60, 0, 10, 1][at],
            _ => return None,
        };
        if !is_digit(TIME + at, place.text.last(), byte) {
            return None;
        }
        let minutes = i64::from(byte - b'0') * weight;
        let limit = place.limit? + if place.counts_up { -minutes } else { minutes };
        let text = if at == 0 { vec![if byte == b'2' { b'2' } else { b'0' }] } else { Vec::new() };
        offset(place.read + 1, limit, place.counts_up, text)
    }
}

/// The place within an offset whose rest is at most a number of minutes, or at least its negative.
fn offset(read: usize, limit: i64, counts_up: bool, text: Vec<u8>) -> Option<TimestampState> {
    let most = match read - SIGN {
        0 => FAR,
        1 if text == b"2" => 239,
        1 => 599,
        2 | 3 => 59,
        4 => 9,
        _ => 0,
    };
    let (least, largest) = if counts_up { (0, most) } else { (-most, 0) };
    if limit < least {
        return None;
    }
    let is_sure = limit >= largest;
    let (limit, counts_up) = if is_sure { (most, true) } else { (limit, counts_up) };
    Some(TimestampState { read, limit: Some(limit), text, counts_up })
}

/// Whether a digit may stand there: no month, day, hour, minute or second is too large.
fn is_digit(at: usize, before: Option<&u8>, digit: u8) -> bool {
    let is_second = at > 4 && SHAPE[at - 1] == b'0' && before == Some(&LARGEST[at - 1]);
    let is_first = at > 4 && SHAPE[at - 1] != b'0';
    digit.is_ascii_digit() && (!(is_first || is_second) || digit <= LARGEST[at])
}

/// Of a text, what tells which digits may follow.
fn field(read: usize, text: &[u8]) -> Vec<u8> {
    let begins = (5..WHOLE).contains(&read) && SHAPE[read] == b'0' && SHAPE[read - 1] == b'0';
    match text.last() {
        Some(last) if begins && *last == LARGEST[read - 1] => vec![*last],
        _ => Vec::new(),
    }
}

/// Days since 1970-01-01, in order even where there is no such day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = if month <= 2 { month + 9 } else { month - 3 };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leaps + (153 * month + 2) / 5 + day - 1 - 719_468
}

impl BoundedTimestamps {
    pub(crate) fn new(bound: TimestampBound) -> Option<BoundedTimestamps> {
        let is_known = (0..MINUTE).contains(&bound.rest) && bound.minutes.abs() < 1 << 40;
        let first = bound.settled(bound.start(), Vec::new()).filter(|_| is_known)?;
        Some(BoundedTimestamps { bound, first, places: StateInterner::default() })
    }
}

impl CharRecognizer for BoundedTimestamps {
    fn start(&self) -> u32 {
        self.places.intern(self.first.clone())
    }

    fn losses(&self) -> u32 {
        self.places.losses()
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        let next = self.bound.after(&self.places.get(state), character)?;
        Some(self.places.intern(next))
    }

    fn accepts_some_in_range(&self, _: u32, _: char, _: char) -> bool {
        false
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.places.get(state).read == END
    }

    fn ascii_letters(&self) -> u128 {
        b"0123456789:.+-ZzTt ".iter().fold(0, |set, &byte| set | 1 << byte)
    }

    fn min_chars(&self, state: u32) -> u32 {
        let read = self.places.get(state).read;
        let left = match read {
            SIGN..=END => END - read,
            POINT => 2,
            _ => WHOLE.saturating_sub(read) + 1,
        };
        left as u32
    }
}

#[cfg(test)]
mod tests {
    use super::{BoundedTimestamps, FAR, TimestampBound};
    use formalm_automata::CharRecognizer;

    fn read(moments: &BoundedTimestamps, text: &str) -> Option<u32> {
        text.chars().try_fold(moments.start(), |state, c| moments.step(state, c))
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
                let moments = BoundedTimestamps::new(bound).unwrap();
                for local in (0..1440).step_by(7).chain([1439]) {
                    for offset in (-FAR..=FAR).step_by(61).chain([local - minutes]) {
                        for (tail, micros) in
                            [("00", 0), ("30.5", 30_500_000), ("59.999999", 59_999_999)]
                        {
                            if offset.abs() > FAR {
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
                            let state = read(&moments, &text);
                            let found = state.is_some_and(|state| moments.is_accepting(state));
                            assert_eq!(found, expected, "{text} {bound:?}");
                        }
                    }
                }
            }
        }
    }

    /// From every place some character leads on, so that no text ends in a dead end.
    #[test]
    fn every_place_goes_on() {
        let letters = "0123456789:.+-ZT";
        let bounds = bounds(true, 28_488_240, 59_999_999).chain(bounds(true, 28_488_240, 0));
        for bound in bounds.chain(bounds_of_times()) {
            let moments = BoundedTimestamps::new(bound).unwrap();
            let mut state = 0;
            // Places are numbered as they are found.
            while state < 3000 && state < moments.places.count() {
                let next = letters.chars().filter(|&c| moments.step(state, c).is_some()).count();
                assert!(next > 0 || moments.is_accepting(state), "{:?}", moments.places.get(state));
                state += 1;
            }
        }
    }

    fn bounds_of_times() -> impl Iterator<Item = TimestampBound> {
        bounds(false, 720, 0)
            .chain(bounds(false, 1439 + FAR, 0))
            .filter(|bound| BoundedTimestamps::new(*bound).is_some())
    }
}
