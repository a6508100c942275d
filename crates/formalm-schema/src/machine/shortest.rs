//! Short completions.
//!
//! Breadth first, but never along what can only be longer or as long and no smaller: blanks, more
//! of a string that may end and of which nothing is asked, members that are not owed. Where
//! members do not depend on each other, those that are owed come in ascending order.

use formalm_automata::{ByteSet, Error, Resource};
use rustc_hash::FxHashSet;

use formalm_automata::spelling::{Escape, Escapes};

use super::frame::{DONE, Frame, Mode, NamingId, OwesId, Place, Reach};
use super::known::NOT_ASKED;
use super::scalars::is_blank;
use super::{DEAD, Grown, UNRECORDED};
use crate::formula::{Atom, Form, TRUE};

/// States looked at; a completion that is further away is refused.
const MAX_SEEN: u64 = 200_000;

/// Values within values whose shortest texts are looked for at once.
const MAX_LOOKING: usize = 40;

impl Grown {
    /// A shortest continuation; the smallest of several.
    pub(super) fn shortest(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        self.looking_for_values = 0;
        self.search(state)
    }

    fn search(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        let mut came: Vec<(u32, usize, u8)> = vec![(state, 0, 0)];
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([state]);
        let mut at = 0;
        while at < came.len() {
            let here = came[at].0;
            if self.is_accepting(here) {
                let mut text = Vec::new();
                while at != 0 {
                    text.push(came[at].2);
                    at = came[at].1;
                }
                text.reverse();
                return Ok(text);
            }
            let tried = match at {
                // The value that is looked for itself.
                0 if self.looking_for_values > 0 => all_but_blanks(),
                _ => self.worth_trying(here)?,
            };
            for byte in tried.iter() {
                let next = self.successor(here, byte)?;
                if next != DEAD && seen.insert(next) {
                    came.push((next, at, byte));
                }
            }
            if seen.len() as u64 > MAX_SEEN {
                let (needed, allowed) = (seen.len() as u64, MAX_SEEN);
                return Err(Error::Limit { resource: Resource::States, needed, allowed });
            }
            at += 1;
        }
        Ok(Vec::new())
    }

    /// Bytes that the smallest of the shortest continuations may begin with.
    fn worth_trying(&mut self, state: u32) -> Result<ByteSet, Error> {
        let Place { frame, record } = *self.states.get(state);
        // Where items must be distinct, what is in them matters.
        if record == UNRECORDED
            && let Some(set) = self.worth_trying_in(state, frame)?
        {
            return Ok(set);
        }
        if !matches!(frame, Frame::Text { .. } | Frame::Name { .. }) {
            return Ok(all_but_blanks());
        }
        // Of bytes that go on alike the smallest will do, unless an item or a name came already.
        let mut set = ByteSet::default();
        for way in self.ways(state)?.iter() {
            for byte in way.iter() {
                set.insert(byte);
                if record == UNRECORDED && self.successor(state, byte)? != DEAD {
                    break;
                }
            }
        }
        Ok(set)
    }

    /// The same where they are few: what may end ends, as long as nothing else depends on it.
    fn worth_trying_in(&mut self, state: u32, frame: Frame) -> Result<Option<ByteSet>, Error> {
        let mut set = ByteSet::default();
        match frame {
            Frame::Text { asked: NOT_ASKED, escape: Escape::None, .. } => {
                if self.successor(state, b'"')? == DEAD {
                    return Ok(None);
                }
                set.insert(b'"');
            }
            Frame::Object { owes, mode: Mode::First | Mode::After, .. } => {
                if !self.may_close(state, owes, b'}')? {
                    return Ok(None);
                }
                set.insert(b'}');
            }
            Frame::Array { owes, mode: Mode::First | Mode::After, .. } => {
                if !self.may_close(state, owes, b']')? {
                    return Ok(None);
                }
                set.insert(b']');
            }
            Frame::Value { owes, .. } => match self.first_of_value(owes)? {
                Some(byte) => set.insert(byte),
                None => return Ok(None),
            },
            // A number ends with what comes behind it.
            Frame::Number { below, .. } => {
                let closes = match *self.frames.get(below.0) {
                    Frame::Object { owes, .. } => self.may_close(state, owes, b'}')?,
                    Frame::Array { owes, .. } => self.may_close(state, owes, b']')?,
                    _ => false,
                };
                if !closes {
                    return Ok(None);
                }
                b"0123456789.eE+-]}".iter().for_each(|&byte| set.insert(byte));
            }
            Frame::Name { naming, text, reach, escape: Escape::None, .. } => {
                let read = self.records.get(text).2 as usize;
                let Some(byte) = self.along_owed(naming, reach, read)? else {
                    return self.along_known_or_ended(state, naming, reach, read);
                };
                set.insert(byte);
            }
            _ => return Ok(None),
        }
        Ok(Some(set))
    }

    /// The first byte of the smallest of the shortest values that owe what nobody asks about. It is
    /// the same wherever they stand, so it is looked for once and by itself.
    fn first_of_value(&mut self, owes: OwesId) -> Result<Option<u8>, Error> {
        if self.is_asked(owes) {
            return Ok(None);
        }
        if let Some(&known) = self.known.first_bytes.get(&owes) {
            return Ok(known);
        }
        // While it is looked for, values within it that owe the same are looked for as all others.
        if self.looking_for_values == MAX_LOOKING {
            return Ok(None);
        }
        self.known.first_bytes.insert(owes, None);
        self.looking_for_values += 1;
        let frame = Frame::Value { owes, blanks: 0, below: DONE };
        let alone = self.states.intern(Place { frame, record: UNRECORDED });
        let found = self.search(alone);
        self.looking_for_values -= 1;
        let first = match found {
            Ok(text) => text.first().copied(),
            Err(error) => {
                self.known.first_bytes.remove(&owes);
                return Err(error);
            }
        };
        self.known.first_bytes.insert(owes, first);
        Ok(first)
    }

    fn is_asked(&self, owes: OwesId) -> bool {
        let owed = self.parts.owes.get(owes.0);
        owed.formulas.len() > 1 || owed.goal != TRUE
    }

    /// Whether a container may be closed now, and nothing below asks what is in it.
    fn may_close(&mut self, state: u32, owes: OwesId, byte: u8) -> Result<bool, Error> {
        Ok(!self.is_asked(owes) && self.successor(state, byte)? != DEAD)
    }

    /// Where a name may be like any other that is not known: what ends it soonest, and the bytes
    /// with which known names go on. More of another name would only be longer.
    fn along_known_or_ended(
        &mut self,
        state: u32,
        naming: NamingId,
        reach: Reach,
        read: usize,
    ) -> Result<Option<ByteSet>, Error> {
        if !self.names_of(naming).plain || !self.takes_any(reach.classes) {
            return Ok(None);
        }
        let mut set = ByteSet::default();
        for at in reach.from..reach.to {
            let Some(&byte) = self.known_name(naming, at).as_bytes().get(read) else { continue };
            // Where it is escaped, it is spelled in more ways than one.
            let plain = (0x20..0x80).contains(&byte) && byte != b'"' && byte != b'\\';
            set.insert(if plain { byte } else { b'\\' });
            set.insert(byte);
        }
        match self.end_of_name(state, set)? {
            Some(byte) => set.insert(byte),
            None => return Ok(None),
        }
        Ok(Some(set))
    }

    /// The end of a name or, where this name came already, the smallest character before an end.
    /// Of a character that was begun it is the smallest byte beside those of known names.
    fn end_of_name(&mut self, state: u32, known: ByteSet) -> Result<Option<u8>, Error> {
        for byte in 0x80..0xC0 {
            if !known.contains(byte) && self.successor(state, byte)? != DEAD {
                return Ok(Some(byte));
            }
        }
        if self.successor(state, b'"')? != DEAD {
            return Ok(Some(b'"'));
        }
        for byte in b' '..0x80 {
            let next = self.successor(state, byte)?;
            if byte != b'\\' && next != DEAD && self.successor(next, b'"')? != DEAD {
                return Ok(Some(byte));
            }
        }
        Ok(None)
    }

    /// The byte with which the smallest name goes on that is owed and begins as the text does.
    fn along_owed(
        &mut self,
        naming: NamingId,
        reach: Reach,
        read: usize,
    ) -> Result<Option<u8>, Error> {
        if !self.names_of(naming).plain {
            return Ok(None);
        }
        let must = self.parts.owes.get(self.names_of(naming).owes.0).formulas[0];
        let mut owed = Vec::new();
        for part in self.core.formulas.conjuncts(must) {
            if let Form::Atom(Atom::Owed(names)) = self.core.formulas.get(part) {
                owed.extend(names.iter().copied());
            }
        }
        let mut least: Option<u8> = None;
        for at in reach.from..reach.to {
            let name = self.names_of(naming).known[at as usize];
            if !owed.contains(&name) || !self.known_viable(naming, at)? {
                continue;
            }
            let text = self.known_name(naming, at).as_bytes();
            let byte = text.get(read).copied().unwrap_or(b'"');
            let ascii = self.core.options.escapes == Escapes::Ascii;
            let escaped = byte < 0x20
                || byte == b'\\'
                || (byte == b'"' && read < text.len())
                || (byte >= 0x80 && ascii);
            if escaped {
                return Ok(None);
            }
            least = Some(least.map_or(byte, |least| least.min(byte)));
        }
        Ok(least)
    }
}

fn all_but_blanks() -> ByteSet {
    let mut set = ByteSet::default();
    (0..=255).filter(|&byte| !is_blank(byte)).for_each(|byte| set.insert(byte));
    set
}
