//! Times with a leap second: those that are 23:59:60 in UTC, whatever their offset.
//!
//! ```text
//!  h h : m m : 6 0 . f f + h h : m m      00:59:60+01:00 is 23:59:60 in UTC
//!  0             8 9 10  11          16   number of characters read; a fraction counts as one
//! ```

use formalm_automata::{CharRecognizer, MemberLengths, RecognizerAlphabet};

/// Minutes per day.
const MINUTES_PER_DAY: u32 = 24 * 60;

/// 23:59, in minutes since midnight.
const LAST_MINUTE: u32 = MINUTES_PER_DAY - 1;

/// A recognizer of `hh:mm:60` with a fraction and an offset. After the sign, the offset is
/// determined.
#[derive(Debug)]
pub(super) struct LeapSeconds;

/// A state: the number of characters read (a fraction counts as one), the local time so far in
/// minutes, and the sign of the offset. Packed into one number.
#[derive(Clone, Copy, PartialEq)]
struct LeapSecondState {
    read: u32,
    minutes: u32,
    is_negative: bool,
}

/// Numbers of characters read in `hh:mm:60.0+hh:mm`.
const AFTER_POINT: u32 = 9;
const AFTER_FRACTION: u32 = 10;
const AFTER_SIGN: u32 = 11;
const END: u32 = 16;

impl LeapSecondState {
    fn from_number(state: u32) -> LeapSecondState {
        LeapSecondState {
            read: state & 31,
            minutes: state >> 5 & 0xFFF,
            is_negative: state >> 17 == 1,
        }
    }

    fn number(self) -> u32 {
        self.read | self.minutes << 5 | u32::from(self.is_negative) << 17
    }

    /// Returns the absolute offset, in minutes, that makes this 23:59 in UTC.
    fn offset(self) -> u32 {
        let ahead = (self.minutes + MINUTES_PER_DAY - LAST_MINUTE) % MINUTES_PER_DAY;
        if self.is_negative { (MINUTES_PER_DAY - ahead) % MINUTES_PER_DAY } else { ahead }
    }

    fn after(self, c: char) -> Option<LeapSecondState> {
        let next = LeapSecondState { read: self.read + 1, ..self };
        let digit = c.to_digit(10);
        let minutes = |max: u32, unit: u32| {
            let digit = digit.filter(|&digit| digit <= max)?;
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
            8 if c == '.' => Some(LeapSecondState { read: AFTER_POINT, ..self }),
            AFTER_POINT | AFTER_FRACTION if digit.is_some() => {
                Some(LeapSecondState { read: AFTER_FRACTION, ..self })
            }
            8 | AFTER_FRACTION if matches!(c, 'Z' | 'z') && self.minutes == LAST_MINUTE => {
                Some(LeapSecondState { read: END, ..self })
            }
            8 | AFTER_FRACTION if matches!(c, '+' | '-') => {
                Some(LeapSecondState { read: AFTER_SIGN, is_negative: c == '-', ..self })
            }
            AFTER_SIGN..END => {
                let offset = self.offset();
                let text = format!("{:02}:{:02}", offset / 60, offset % 60);
                let at = (self.read - AFTER_SIGN) as usize;
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
        LeapSecondState::from_number(state).after(character).map(LeapSecondState::number)
    }

    fn accepts_some_in_range(&self, _: u32, _: char, _: char) -> bool {
        false
    }

    fn is_accepting(&self, state: u32) -> bool {
        LeapSecondState::from_number(state).read == END
    }

    fn alphabet(&self) -> Option<&dyn RecognizerAlphabet> {
        Some(self)
    }

    fn member_lengths(&self) -> Option<&dyn MemberLengths> {
        Some(self)
    }
}

impl RecognizerAlphabet for LeapSeconds {
    fn ascii_letters(&self) -> u128 {
        b"0123456789:.+-Zz".iter().fold(0, |set, &byte| set | 1 << byte)
    }
}

impl MemberLengths for LeapSeconds {
    fn min_chars(&self, state: u32) -> u32 {
        let position = LeapSecondState::from_number(state);
        match position.read {
            read @ AFTER_SIGN..=END => END - read,
            AFTER_POINT => 2,
            AFTER_FRACTION => 1,
            // `Z` suffices if the local time can still be 23:59; otherwise an offset is needed.
            read => {
                let last = [0, 1200, 1380, 1380, 1430].get(read as usize).unwrap_or(&LAST_MINUTE);
                AFTER_POINT - read + if position.minutes == *last { 0 } else { END - AFTER_SIGN }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use formalm_automata::{CharRecognizer, MemberLengths, RecognizerAlphabet};

    use super::LeapSeconds;

    /// Compares all times and offsets with arithmetic on whole days.
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
    fn min_chars_is_a_lower_bound() {
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
        let state_after =
            |text: &str| text.chars().try_fold(leap.start(), |at, c| leap.step(at, c));
        assert_eq!(state_after("23:59").map(|at| leap.min_chars(at)), Some(4));
        assert_eq!(state_after("22").map(|at| leap.min_chars(at)), Some(12));
    }
}
