//! Whether a recognizer's texts of bounded length have members, where it tells without a search.

use crate::recognized::{ANY, Recognized};
use crate::term::{Term, TermId, Terms};

impl Terms {
    /// Whether "these texts, and so many characters" has members, where a recognizer tells.
    pub(crate) fn decided(&self, term: TermId) -> Option<bool> {
        let Term::And(list) = self.get(term) else { return None };
        let &[one, other] = &list[..] else { return None };
        let (at, count) = match (self.get(one), self.get(other)) {
            (&Term::Recognized(at), _) => (at, other),
            (_, &Term::Recognized(at)) => (at, one),
            _ => return None,
        };
        let recognizer = self.recognizers.of(at);
        if at.is_between() {
            let (least, most) = self.characters(count)?;
            return recognizer.goes_on(at.state, least, most);
        }
        let Term::Cat(rest, count) = *self.get(count) else { return None };
        let (least, most) = self.characters(count)?;
        let (body, ..) = self.repetition(count)?;
        let (&Term::Dag(rest), &Term::Dag(body)) = (self.get(rest), self.get(body)) else {
            return None;
        };
        // The count reads whatever may complete the character.
        let read = at.read()?.try_fold(body, |dag, byte| self.dags.step(dag, byte))?;
        if read == rest { recognizer.goes_on_behind_wide(at.state, least, most) } else { None }
    }
}

impl Recognized {
    /// The bytes of the present character that are read, where they are known.
    fn read(self) -> Option<impl Iterator<Item = u8>> {
        let (lead, length) = match self.least {
            _ if self.bits == ANY => return None,
            0x80 => (0xC0, 2),
            0x800 => (0xE0, 3),
            0x1_0000 => (0xF0, 4),
            _ => return None,
        };
        let bits = self.bits << (6 * self.left);
        let byte = move |at: u8| {
            let mark = if at == 0 { lead } else { 0x80 };
            mark | (bits >> (6 * (length - 1 - at))) as u8 & 0x3F
        };
        Some((0..length - self.left).map(byte))
    }
}
