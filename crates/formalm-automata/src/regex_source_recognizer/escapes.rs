//! Escapes and classes inside patterns that are being recognized.

use formalm_regex::PerlClass;

use super::{RegexSourceState, SourcePosition, property_names};

/// The largest code point.
const LAST: u32 = 0x10_FFFF;

/// The role of a single character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CharRole {
    /// An item of its own.
    Outside,
    /// A member of a class, possibly the first of a range.
    Low,
    /// The last member of a range. The range begins with a code point, or with a set, and then is
    /// no range.
    High(Option<u32>),
}

/// The state inside an escape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum EscapeProgress {
    /// After the backslash.
    Begun(CharRole),
    /// After `\0`, which no digit may follow.
    Null(CharRole),
    /// After `\c`.
    Control(CharRole),
    /// Hexadecimal digits: the number to come, the value so far, and whether surrogates pair up.
    Hex { spot: CharRole, left: u32, number: u32, pairs: bool },
    /// After `\u`.
    Unicode(CharRole),
    /// `\u{…}`: the value so far, and whether it has a digit.
    Braced { spot: CharRole, number: u32, some: bool },
    /// After the first half of a surrogate pair, in a class.
    Lead(CharRole, u32),
    /// After the first half and a backslash.
    LeadBackslash(CharRole, u32),
    /// After the first half, `\u` and digits: the number to come, and the value so far.
    LeadHex { spot: CharRole, lead: u32, left: u32, number: u32 },
    /// The name of a property; `None` before its brace.
    Property(CharRole, Option<String>),
}

impl CharRole {
    /// Returns the smallest code point allowed; 0 if any is.
    fn least(self) -> u32 {
        match self {
            CharRole::High(Some(low)) => low,
            _ => 0,
        }
    }

    /// Returns the position after a code point, or after a set.
    fn filled(self, member: Option<u32>) -> Option<SourcePosition> {
        match (self, member) {
            (CharRole::Outside, _) => Some(SourcePosition::Item(true)),
            (CharRole::Low, member) => Some(SourcePosition::After(member)),
            (CharRole::High(Some(low)), Some(high)) if high < low => None,
            (CharRole::High(_), _) => Some(SourcePosition::Members),
        }
    }
}

/// Returns the largest value that hexadecimal digits can reach.
fn most(number: u32, left: u32) -> u32 {
    (number + 1).checked_shl(4 * left).map_or(u32::MAX, |end| end - 1)
}

/// Returns the code point of a surrogate pair.
fn joined(lead: u32, trail: u32) -> u32 {
    0x1_0000 + ((lead - 0xD800) << 10) + (trail - 0xDC00)
}

fn is_lead(number: u32) -> bool {
    (0xD800..0xDC00).contains(&number)
}

/// Returns `true` if digits in braces can reach a code point from `least` on.
fn can_reach(number: u32, some: bool, least: u32) -> bool {
    let shifts = if some { 0 } else { 1 }..=6;
    shifts.into_iter().any(|left| {
        let first = u64::from(number) << (4 * left);
        first <= LAST.into() && most(number, left).min(LAST) >= least
    })
}

impl EscapeProgress {
    /// Returns `true` if a pattern may end here.
    pub(super) fn may_end_pattern(&self) -> bool {
        matches!(self, EscapeProgress::Null(CharRole::Outside))
    }

    /// Returns `true` if some non-ASCII character up to `last` may follow.
    pub(super) fn accepts_non_ascii(&self, last: char) -> bool {
        match *self {
            EscapeProgress::Begun(spot) => spot.least() <= last.into(),
            // The character belongs to the next member.
            EscapeProgress::Null(_) | EscapeProgress::LeadBackslash(CharRole::Low, _) => true,
            EscapeProgress::Lead(spot, lead) | EscapeProgress::LeadBackslash(spot, lead) => {
                spot.least() <= lead
            }
            _ => false,
        }
    }

    /// Returns `true` if the digits so far can reach an allowed code point.
    fn is_viable(&self) -> bool {
        match *self {
            EscapeProgress::Null(spot) => spot.least() == 0,
            EscapeProgress::Control(spot) => spot.least() <= 26,
            EscapeProgress::Unicode(_) => true,
            EscapeProgress::Hex { spot, left, number, pairs } => {
                let (first, last) = (number << (4 * left), most(number, left));
                let leads = pairs && first < 0xDC00 && last >= 0xD800;
                let last = if leads { joined(last.min(0xDBFF), 0xDFFF) } else { last };
                last >= spot.least()
            }
            EscapeProgress::Braced { spot, number, some } => can_reach(number, some, spot.least()),
            EscapeProgress::Lead(spot, lead) | EscapeProgress::LeadBackslash(spot, lead) => {
                joined(lead, 0xDFFF) >= spot.least()
            }
            EscapeProgress::LeadHex { spot, lead, left, number } => {
                let (first, last) = (number << (4 * left), most(number, left));
                let trails = first < 0xE000 && last >= 0xDC00;
                lead >= spot.least() || trails && joined(lead, last.min(0xDFFF)) >= spot.least()
            }
            EscapeProgress::Begun(_) | EscapeProgress::Property(..) => true,
        }
    }
}

impl RegexSourceState {
    fn escape(&self, escape: EscapeProgress) -> Option<RegexSourceState> {
        if escape.is_viable() { self.to(SourcePosition::Escape(escape)) } else { None }
    }

    fn fill(&self, spot: CharRole, member: Option<u32>) -> Option<RegexSourceState> {
        self.to(spot.filled(member)?)
    }

    /// Reads a character where a member of a class may begin.
    pub(super) fn after_member(&self, spot: CharRole, c: char) -> Option<RegexSourceState> {
        match c {
            ']' => self.to(SourcePosition::Item(true)),
            '\\' => self.to(SourcePosition::Escape(EscapeProgress::Begun(spot))),
            _ => self.fill(spot, Some(c.into())),
        }
    }

    pub(super) fn after_escape(
        &self,
        escape: &EscapeProgress,
        c: char,
    ) -> Option<RegexSourceState> {
        match *escape {
            EscapeProgress::Begun(spot) => self.after_backslash(spot, c),
            EscapeProgress::Null(_) if c.is_ascii_digit() => None,
            EscapeProgress::Null(spot) => self.fill(spot, Some(0))?.after(c),
            EscapeProgress::Control(spot) if c.is_ascii_alphabetic() => {
                self.fill(spot, Some(u32::from(c) & 0x1F))
            }
            EscapeProgress::Control(_) => None,
            EscapeProgress::Unicode(spot) if c == '{' => {
                self.escape(EscapeProgress::Braced { spot, number: 0, some: false })
            }
            EscapeProgress::Unicode(spot) => {
                let number = c.to_digit(16)?;
                self.escape(EscapeProgress::Hex { spot, left: 3, number, pairs: true })
            }
            EscapeProgress::Hex { spot, left, number, pairs } => {
                let (left, number) = (left - 1, number << 4 | c.to_digit(16)?);
                if left > 0 {
                    return self.escape(EscapeProgress::Hex { spot, left, number, pairs });
                }
                self.numbered(spot, number, pairs)
            }
            EscapeProgress::Braced { spot, number, some: true } if c == '}' => {
                self.fill(spot, Some(number))
            }
            EscapeProgress::Braced { spot, number, .. } => {
                let number = number << 4 | c.to_digit(16)?;
                self.escape(EscapeProgress::Braced { spot, number, some: true })
            }
            EscapeProgress::Lead(spot, lead) if c == '\\' => {
                self.escape(EscapeProgress::LeadBackslash(spot, lead))
            }
            EscapeProgress::Lead(spot, lead) => self.fill(spot, Some(lead))?.after(c),
            EscapeProgress::LeadBackslash(spot, lead) if c == 'u' => {
                self.escape(EscapeProgress::LeadHex { spot, lead, left: 4, number: 0 })
            }
            EscapeProgress::LeadBackslash(spot, lead) => {
                self.fill(spot, Some(lead))?.after('\\')?.after(c)
            }
            EscapeProgress::LeadHex { spot, lead, left: 4, .. } if c == '{' => {
                self.fill(spot, Some(lead))?.after('\\')?.after('u')?.after(c)
            }
            EscapeProgress::LeadHex { spot, lead, left, number } => {
                let (left, number) = (left - 1, number << 4 | c.to_digit(16)?);
                if left > 0 {
                    return self.escape(EscapeProgress::LeadHex { spot, lead, left, number });
                }
                if (0xDC00..0xE000).contains(&number) {
                    return self.fill(spot, Some(joined(lead, number)));
                }
                // A member of its own: a hyphen does not join it to the surrogate.
                self.fill(spot, Some(lead))?.numbered(CharRole::Low, number, true)
            }
            EscapeProgress::Property(spot, None) => {
                if c == '{' {
                    self.escape(EscapeProgress::Property(spot, Some(String::new())))
                } else {
                    None
                }
            }
            EscapeProgress::Property(spot, Some(ref name)) if c == '}' => {
                if property_names::is_name(name) { self.fill(spot, None) } else { None }
            }
            EscapeProgress::Property(spot, Some(ref name)) => {
                let name = format!("{name}{c}");
                let begins = property_names::begins_name(&name);
                if begins { self.escape(EscapeProgress::Property(spot, Some(name))) } else { None }
            }
        }
    }

    /// Ends hexadecimal digits, whose value may be the first half of a surrogate pair.
    fn numbered(&self, spot: CharRole, number: u32, pairs: bool) -> Option<RegexSourceState> {
        if pairs && is_lead(number) && spot != CharRole::Outside {
            return self.escape(EscapeProgress::Lead(spot, number));
        }
        self.fill(spot, Some(number))
    }

    fn after_backslash(&self, spot: CharRole, c: char) -> Option<RegexSourceState> {
        if let Some(outside) = self.only_outside(spot, c) {
            return Some(outside);
        }
        if PerlClass::of(c).is_some() {
            return self.fill(spot, None);
        }
        let number = match c {
            'b' if spot != CharRole::Outside => 0x08,
            'f' => 0x0C,
            'n' => 0x0A,
            'r' => 0x0D,
            't' => 0x09,
            'v' => 0x0B,
            '0' => return self.escape(EscapeProgress::Null(spot)),
            'c' => return self.escape(EscapeProgress::Control(spot)),
            'x' => {
                return self.escape(EscapeProgress::Hex { spot, left: 2, number: 0, pairs: false });
            }
            'u' => return self.escape(EscapeProgress::Unicode(spot)),
            'p' | 'P' => return self.escape(EscapeProgress::Property(spot, None)),
            _ if c.is_ascii_alphanumeric() => return None,
            _ => c.into(),
        };
        self.fill(spot, Some(number))
    }

    /// Reads boundaries and references.
    fn only_outside(&self, spot: CharRole, c: char) -> Option<RegexSourceState> {
        if spot != CharRole::Outside {
            return None;
        }
        match c {
            'b' | 'B' => self.to(SourcePosition::Item(false)),
            'k' => self.to(SourcePosition::Named(None)),
            '1'..='9' => {
                let number = u64::from(c) - u64::from('0');
                let needed = self.groups_needed.max(number);
                RegexSourceState { groups_needed: needed, ..self.clone() }
                    .to(SourcePosition::Reference(number))
            }
            _ => None,
        }
    }
}
