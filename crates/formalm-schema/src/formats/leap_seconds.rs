//! Times with a leap second: those that are 23:59:60 in UTC, whatever their offset.

use formalm_automata::CharRecognizer;

/// Minutes of a day.
const DAY: u32 = 24 * 60;

/// 23:59 in UTC.
const LAST: u32 = DAY - 1;

/// Reads `hh:mm:60` with its fraction and offset. Behind the sign the text is determined.
#[derive(Debug)]
pub(super) struct LeapSeconds;

/// A state: characters read (those of a fraction count as one), the time of day so far in
/// minutes, and the sign of the offset.
#[derive(Clone, Copy, PartialEq)]
struct LeapSecondState {
    read: u32,
    minutes: u32,
    minus: bool,
}

/// Places in `hh:mm:60.0+hh:mm`.
const POINT: u32 = 9;
const FRACTION: u32 = 10;
const SIGN: u32 = 11;
const END: u32 = 16;

impl LeapSecondState {
    fn of(state: u32) -> LeapSecondState {
        LeapSecondState { read: state & 31, minutes: state >> 5 & 0xFFF, minus: state >> 17 == 1 }
    }

    fn state(self) -> u32 {
        self.read | self.minutes << 5 | u32::from(self.minus) << 17
    }

    /// The offset, in minutes, that makes it 23:59 in UTC.
    fn offset(self) -> u32 {
        let ahead = (self.minutes + DAY - LAST) % DAY;
        if self.minus { (DAY - ahead) % DAY } else { ahead }
    }

    fn after(self, c: char) -> Option<LeapSecondState> {
        let next = LeapSecondState { read: self.read + 1, ..self };
        let digit = c.to_digit(10);
        let minutes = |most: u32, unit: u32| {
            let digit = digit.filter(|&digit| digit <= most)?;
            Some(LeapSecondState { minutes: self.minutes + digit * unit, ..next })
        };
        match self.read {
            0 => minutes(2, 600),
            1 => minutes(if self.minutes == 1200 { 3 } else { 9 }, 60),
            3 => minutes(5, 10),
            4 => minutes(9, 1),
            2 | 5 if c == ':' => Some(next),
            6 if c == '6' => Some(next),
            7 if c == '0' => Some(LeapSecondState { read: 8, ..self }),
            8 if c == '.' => Some(LeapSecondState { read: POINT, ..self }),
            POINT | FRACTION if digit.is_some() => Some(LeapSecondState { read: FRACTION, ..self }),
            8 | FRACTION if matches!(c, 'Z' | 'z') && self.minutes == LAST => {
                Some(LeapSecondState { read: END, ..self })
            }
            8 | FRACTION if matches!(c, '+' | '-') => {
                Some(LeapSecondState { read: SIGN, minus: c == '-', ..self })
            }
            SIGN..END => {
                let offset = self.offset();
                let text = format!("{:02}:{:02}", offset / 60, offset % 60);
                let at = (self.read - SIGN) as usize;
                (text.as_bytes()[at] == c as u8 && c.is_ascii()).then_some(next)
            }
            _ => None,
        }
    }
}

impl CharRecognizer for LeapSeconds {
    fn start(&self) -> u32 {
        0
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        LeapSecondState::of(state).after(character).map(LeapSecondState::state)
    }

    fn accepts_some_in_range(&self, _: u32, _: char, _: char) -> bool {
        false
    }

    fn is_accepting(&self, state: u32) -> bool {
        LeapSecondState::of(state).read == END
    }

    fn ascii_letters(&self) -> u128 {
        b"0123456789:.+-Zz".iter().fold(0, |set, &byte| set | 1 << byte)
    }

    fn min_chars(&self, state: u32) -> u32 {
        let place = LeapSecondState::of(state);
        match place.read {
            read @ SIGN..=END => END - read,
            POINT => 2,
            FRACTION => 1,
            // An offset takes the place of `Z` where it cannot be 23:59.
            read => {
                let last = [0, 1200, 1380, 1380, 1430].get(read as usize).unwrap_or(&LAST);
                POINT - read + if place.minutes == *last { 0 } else { END - SIGN }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LeapSeconds;
    use formalm_automata::CharRecognizer;

    /// All times and offsets, by arithmetic on whole days.
    #[test]
    fn leap_seconds_are_one_second_before_midnight() {
        let member = |text: &str| {
            let read = text.chars().try_fold(0, |state, c| LeapSeconds.step(state, c));
            read.is_some_and(|state| LeapSeconds.is_accepting(state))
        };
        for time in 0..1440i32 {
            for offset in (0..1440).step_by(7).chain([60, 1380]) {
                for sign in [1, -1] {
                    let expected = (time - sign * offset).rem_euclid(1440) == 1439;
                    let mark = if sign == 1 { '+' } else { '-' };
                    let (h, m, oh, om) = (time / 60, time % 60, offset / 60, offset % 60);
                    let text = format!("{h:02}:{m:02}:60{mark}{oh:02}:{om:02}");
                    assert_eq!(member(&text), expected, "{text}");
                }
            }
        }
        assert!(member("23:59:60Z") && member("23:59:60.25z") && member("00:29:60.0+00:30"));
        assert!(!member("23:58:60Z") && !member("23:59:60.Z") && !member("24:59:60Z"));
    }

    #[test]
    fn no_text_misses_less_than_it_is_told_to() {
        let leap = LeapSeconds;
        for text in ["23:59:60Z", "23:59:60.5z", "00:59:60.12+01:00", "12:00:60-11:59"] {
            let mut state = leap.start();
            for (read, c) in text.chars().enumerate() {
                let least = leap.min_chars(state) as usize;
                assert!(least <= text.len() - read && (least > 0), "{text} at {read}");
                assert!(leap.ascii_letters() & 1 << c as u32 != 0);
                state = leap.step(state, c).expect("a leap second");
            }
            assert!(leap.is_accepting(state) && leap.min_chars(state) == 0);
        }
        let behind = |text: &str| text.chars().try_fold(leap.start(), |at, c| leap.step(at, c));
        assert_eq!(behind("23:59").map(|at| leap.min_chars(at)), Some(4));
        assert_eq!(behind("22").map(|at| leap.min_chars(at)), Some(12));
    }
}
