//! Bytes with which searches for short completions go on: those that can only be longer, or as long
//! and no smaller, are left out.

use formalm_automata::spelling::{Escape, Escapes};
use formalm_automata::{ByteSet, Error, Machine, StateId};
use rustc_hash::FxHashSet;

use crate::core::{Core, TextId};
use crate::formula::{Atom, F, Form, TRUE};
use crate::machine::frame::{DONE, Frame, Mode, NamingId, Place, Reach};
use crate::machine::min_bytes::Search;
use crate::machine::min_bytes::escaped_strings::cost;
use crate::machine::reader::cache::NOT_ASKED;
use crate::machine::reader::whitespace::Gap;
use crate::machine::{Grown, Recorded, UNRECORDED};
use crate::options::Order;
use crate::table::Map;

impl Grown {
    /// Bytes that the smallest of the shortest continuations may begin with.
    pub(crate) fn worth_trying(
        &mut self,
        place: Place,
        search: &mut Search,
    ) -> Result<ByteSet, Error> {
        let Place { frame, record } = place;
        // Where items must be distinct, what is in them matters.
        let free = record == UNRECORDED;
        let only = match frame {
            Frame::Text { language, state, asked: NOT_ASKED, escape, .. } if free => {
                let escapes = self.core.options.escapes;
                self.rest_of_text(language, state, search)?.next(escape, escapes)
            }
            Frame::Object {
                owes, mode: mode @ (Mode::First | Mode::After), blanks, below, ..
            } => {
                let ends = free && self.is_plain(owes) && self.ended(owes).is_some();
                match mode {
                    Mode::First if self.gap_begun(blanks) => None,
                    Mode::First => ends.then_some(b'}'),
                    _ => {
                        let blank = self.gap_byte(Gap::Close, self.depth(below) + 1, blanks);
                        ends.then(|| blank.unwrap_or(b'}'))
                    }
                }
            }
            Frame::Value { blanks, below, .. } if below != DONE => {
                let (gap, depth) = self.gap_of_value(below);
                self.gap_byte(gap, depth, blanks)
            }
            Frame::Name { naming, text, reach, escape: Escape::None, .. } if free => {
                let read = self.records.get(text).2 as usize;
                let owed = self.along_owed(naming, reach, read)?;
                if owed.is_none() || !self.names_of(naming).plain {
                    let last = owed.unwrap_or(u8::MAX);
                    // Inside a character, bytes of other ones lead nowhere.
                    let others_are_alike =
                        self.takes_none(reach.classes) || self.ends_any(reach.classes);
                    let mut all = match others_are_alike {
                        true => self.along_known(naming, reach, read),
                        false => {
                            let along = self.along_classes((naming, text), reach, read, search)?;
                            along.unwrap_or_else(any_byte)
                        }
                    };
                    (last..=u8::MAX).skip(1).for_each(|byte| all.remove(byte));
                    return Ok(all);
                }
                owed
            }
            _ => None,
        };
        let mut set = ByteSet::default();
        if let Some(byte) = only {
            set.insert(byte);
            return Ok(set);
        }
        if let Frame::Text { language, state, escape: Escape::None, .. } = frame {
            return self.along_text(language, state);
        }
        let laid_out = self.core.options.layout.is_some();
        match self.may_begin(frame) {
            None => return Ok(any_byte()),
            Some(bytes) => {
                let blanks: &[u8] = if laid_out { b" \t\n\r" } else { b"" };
                bytes.iter().chain(blanks).for_each(|&byte| set.insert(byte));
            }
        }
        Ok(set)
    }

    /// Bytes that no other than blanks can take the place of; none where any may come.
    fn may_begin(&self, frame: Frame) -> Option<&'static [u8]> {
        Some(match frame {
            Frame::Text { escape, .. } | Frame::Name { escape, .. } => match escape {
                Escape::None => return None,
                Escape::Slash { .. } => b"\"/\\bfnrtu",
                Escape::Hex { .. } => b"0123456789ABCDEFabcdef",
                Escape::Half { .. } => b"\\",
            },
            Frame::Object { mode, .. } => match mode {
                Mode::First => b"\"}",
                Mode::Next => b"\"",
                Mode::Colon => b":",
                Mode::Inside | Mode::After => b",}",
            },
            Frame::Array { mode: Mode::After, .. } => b",]",
            Frame::Array { .. } => b"\"-0123456789[]fnt{",
            Frame::Value { .. } => b"\"-0123456789[fnt{",
            Frame::Number { .. } => b"+,-.0123456789E]e}",
            Frame::Word { rest, .. } => &rest[..1],
            Frame::Done => b"",
        })
    }

    /// The quote, and the bytes with which a text goes on. What need not be escaped is not.
    fn along_text(&self, language: TextId, state: StateId) -> Result<ByteSet, Error> {
        let mut set = ByteSet::default();
        set.insert(b'"');
        for byte in self.core.text(language).live_bytes(state)?.iter() {
            let is_plain = cost(byte, self.core.options.escapes) == 1;
            set.insert(if is_plain { byte } else { b'\\' });
        }
        Ok(set)
    }

    /// The quote, and the bytes with which known names go on.
    fn next_of_known(&self, naming: NamingId, reach: Reach, read: usize) -> ByteSet {
        let ascii = self.core.options.escapes == Escapes::Ascii;
        let mut set = ByteSet::default();
        set.insert(b'"');
        for at in reach.from..reach.to {
            let Some(&byte) = self.known_name(naming, at).as_bytes().get(read) else { continue };
            let escaped = byte < 0x20 || matches!(byte, b'"' | b'\\') || (byte >= 0x80 && ascii);
            set.insert(if escaped { b'\\' } else { byte });
        }
        set
    }

    /// The same and the bytes with which the smallest of the shortest names of each class go on:
    /// names of a class are alike. None where several may be needed, whose order matters, and where
    /// one of them is a known name, which is of no class.
    fn along_classes(
        &mut self,
        (naming, text): (NamingId, Recorded),
        reach: Reach,
        read: usize,
        search: &mut Search,
    ) -> Result<Option<ByteSet>, Error> {
        let owed = self.parts.owes.get(self.names_of(naming).owes.0);
        if owed.goal != TRUE || !owed.formulas.iter().all(|&id| self.core.needs_no_others(id)) {
            return Ok(None);
        }
        let mut set = self.next_of_known(naming, reach, read);
        let classes = self.parts.asked.get(reach.classes.0);
        if classes.is_guarded {
            // Names that the tests tell apart may have values of other lengths.
            return Ok(None);
        }
        let classes = classes.machines.clone();
        let so_far = self.recorded(text, 0);
        for &(class, state) in classes.iter().flatten() {
            let rest = self.rest_of_text(class, state, search)?;
            let whole = [&so_far, rest.left()].concat();
            if (reach.from..reach.to).any(|at| self.known_name(naming, at).as_bytes() == whole) {
                return Ok(None);
            }
            if let Some(byte) = rest.next(Escape::None, self.core.options.escapes) {
                set.insert(byte);
            }
        }
        Ok(Some(set))
    }

    /// The quote, the bytes with which known names go on, and the smallest with which none does:
    /// behind it names are all alike, and free.
    fn along_known(&self, naming: NamingId, reach: Reach, read: usize) -> ByteSet {
        let mut set = self.next_of_known(naming, reach, read);
        let plain = (b' '..0x7F).find(|&byte| byte != b'\\' && !set.contains(byte));
        match plain {
            Some(byte) => set.insert(byte),
            None => return any_byte(),
        }
        set
    }

    /// The byte with which the smallest name goes on that is owed and begins as the text does. What
    /// an object still gets is smallest in ascending order, which only a declared one forbids.
    fn along_owed(
        &mut self,
        naming: NamingId,
        reach: Reach,
        read: usize,
    ) -> Result<Option<u8>, Error> {
        if !self.names_of(naming).plain && self.core.options.order != Order::Any {
            return Ok(None);
        }
        let must = self.parts.owes.get(self.names_of(naming).owes.0).formulas[0];
        let mut owed = FxHashSet::default();
        for part in self.core.formulas.conjuncts(must) {
            if let Form::Atom(Atom::Owed(names)) = self.core.formulas.get(part) {
                owed.extend(names.iter().copied());
            }
        }
        let mut least: Option<u8> = None;
        for at in reach.from..reach.to {
            let name = self.names_of(naming).known[at as usize];
            if !owed.contains(&name) {
                continue;
            }
            let text = self.known_name(naming, at).as_bytes();
            let byte = text.get(read).copied().unwrap_or(b'"');
            let ascii = self.core.options.escapes == Escapes::Ascii;
            let escaped = byte < 0x20
                || byte == b'\\'
                || (byte == b'"' && read < text.len())
                || (byte >= 0x80 && ascii);
            // Whether a name may come takes longer than to see that it is not the smallest.
            if (!escaped && least.is_some_and(|least| least <= byte))
                || !self.known_viable(naming, at)?
            {
                continue;
            }
            if escaped {
                return Ok(None);
            }
            least = Some(byte);
        }
        Ok(least)
    }
}

impl Core {
    /// Whether members that a formula does not name never help to satisfy it.
    fn needs_no_others(&self, id: F) -> bool {
        self.needs_no_others_within(id, &mut Map::default())
    }

    fn needs_no_others_within(&self, id: F, known: &mut Map<F, bool>) -> bool {
        let is_small = self.formulas.is_small(id);
        if !is_small && let Some(&known) = known.get(&id) {
            return known;
        }
        let names_only =
            |id: F| !self.formulas.some_atom(&[id], |one| !matches!(one, Atom::Owed(_)));
        let needs_none = match self.formulas.get(id) {
            Form::Atom(Atom::MoreMembers(_)) => false,
            Form::Not(inner) => {
                let is_most = matches!(self.formulas.get(*inner), Form::Atom(Atom::MoreMembers(_)));
                is_most || names_only(*inner)
            }
            Form::One(_) => names_only(id),
            Form::And(list) | Form::Or(list) => {
                list.iter().all(|&one| self.needs_no_others_within(one, known))
            }
            _ => true,
        };
        if !is_small {
            known.insert(id, needs_none);
        }
        needs_none
    }
}

fn any_byte() -> ByteSet {
    let mut set = ByteSet::default();
    (0..=255).for_each(|byte| set.insert(byte));
    set
}
