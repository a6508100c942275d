//! Looking ahead of the text, for masks.

use std::cell::RefCell;
use std::sync::MutexGuard;

use formalm_automata::spelling::{Escape, Escapes};
use formalm_automata::{
    ByteSet, CharSet, Cover, EndSteps, Error, KeyId, Machine, NoLexemes, Repetition, Steps,
    WIDE_PARTS, loops_of,
};

use super::frame::{Frame, Mode, Place, Reach, Table};
use super::known::NOT_ASKED;
use super::runs::{RUN, Runs, Stepped};
use super::{Grown, UNRECORDED};
use crate::formula::TRUE;

/// Keys met while looking ahead have numbers from here on.
const AHEAD: u32 = 1 << 30;

/// With fewer characters coming back a walk is as quick.
const LOOPS: u32 = 12;

/// With more live bytes a text is not looked for byte by byte.
const FEW: usize = 24;

/// Letters that must lead to one key for it to stand for a text.
const LETTERS: usize = 14;

/// A look ahead of the text. What it meets is dropped with it: a mask meets many more places
/// than texts come to.
#[derive(Debug)]
pub(super) struct Ahead<'a> {
    looking: RefCell<Looking<'a>>,
}

#[derive(Debug)]
struct Looking<'a> {
    grown: MutexGuard<'a, Grown>,
    places: Table<Place>,
    runs: Runs,
    /// How many texts were recorded before.
    records: usize,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(grown: MutexGuard<'a, Grown>) -> Ahead<'a> {
        let (places, runs, records) = (Table::default(), Runs::default(), grown.records.len());
        Ahead { looking: RefCell::new(Looking { grown, places, runs, records }) }
    }
}

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        // Texts recorded ahead belong to places that nobody knows any more.
        self.grown.records.truncate(self.records);
    }
}

impl Looking<'_> {
    fn place(&self, key: KeyId) -> Place {
        let number = key.number();
        if number >= RUN {
            return self.runs.place(key);
        }
        match number.checked_sub(AHEAD) {
            Some(at) => *self.places.get(at),
            None => *self.grown.keys.get(number),
        }
    }

    fn key(&mut self, place: Place) -> Result<KeyId, Error> {
        let mut place = place;
        if let Frame::Text { language, state, escape: Escape::None, .. } = place.frame
            && state == self.grown.core.text(language).start()
        {
            place.frame = self.grown.freed(place.frame)?;
        }
        if !self.is_free(place)
            && let Some(key) = self.runs.key(&self.grown, place)
        {
            return Ok(key);
        }
        Ok(KeyId::from_number(AHEAD + self.places.intern(place)))
    }

    #[inline]
    fn step(&mut self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        if key.number() >= RUN {
            match self.runs.step(&mut self.grown, key, byte)? {
                Stepped::To(next) => return Ok(Some(next)),
                Stepped::Settled(place) => return self.key(place).map(Some),
                Stepped::Refused => return Ok(None),
                Stepped::Unknown => {}
            }
        }
        let before = self.place(key);
        let Some(after) = self.grown.read_fresh(before, byte)? else { return Ok(None) };
        let after = self.grown.normal(after)?;
        if after == before {
            return Ok(Some(key));
        }
        self.key(after).map(Some)
    }

    /// Whether a place is in the middle of a free string or name, between two characters.
    fn is_free(&self, place: Place) -> bool {
        if place.record != UNRECORDED {
            return false;
        }
        let core = &self.grown.core;
        match place.frame {
            Frame::Text { language, state, asked, escape: Escape::None, .. } => {
                core.class_formula(language) == TRUE
                    && state == core.text(language).start()
                    && self.grown.is_settled(asked)
            }
            Frame::Name { text: UNRECORDED, reach, escape: Escape::None, .. } => {
                self.grown.takes_any(reach.classes) && self.grown.is_settled(reach.classes)
            }
            _ => false,
        }
    }

    /// The same place in a free text.
    fn free(&mut self, place: Place) -> Result<KeyId, Error> {
        let Frame::Text { below, asked, .. } = place.frame else { return self.key(place) };
        let Some(language) = self.grown.core.language(TRUE)? else { return self.key(place) };
        let state = self.grown.core.text(language).start();
        let frame = Frame::Text { language, state, asked, escape: Escape::None, below };
        self.key(Place { frame, ..place })
    }

    /// Bytes that a name goes on with along the known ones.
    fn along_known(&self, frame: Frame) -> Option<ByteSet> {
        let Frame::Name { naming, text, reach, escape: Escape::None, .. } = frame else {
            return None;
        };
        let mut set = ByteSet::default();
        set.insert(b'"');
        set.insert(b'\\');
        let depth = self.grown.records.get(text).2 as usize;
        for at in reach.from..reach.to {
            if let Some(&byte) = self.grown.known_name(naming, at).as_bytes().get(depth) {
                set.insert(byte);
            }
        }
        Some(set)
    }

    fn few(&self, place: Place) -> Result<Option<ByteSet>, Error> {
        let blanks = self.grown.core.options.blanks > 0;
        let bytes: &[u8] = match place.frame {
            Frame::Done => b"",
            Frame::Value { .. } => b" \n\r\t\"[{-0123456789tfn",
            Frame::Word { rest, .. } => &rest[..1],
            Frame::Number { .. } => b" \n\r\t0123456789.eE+-,]}",
            Frame::Object { mode, .. } => match mode {
                Mode::First => b" \n\r\t\"}",
                Mode::Next => b" \n\r\t\"",
                Mode::Colon => b" \n\r\t:",
                Mode::Inside | Mode::After => b" \n\r\t,}",
            },
            Frame::Array { mode: Mode::First, .. } => b" \n\r\t\"[]{-0123456789tfn",
            Frame::Array { .. } => b" \n\r\t,]",
            Frame::Text { escape: Escape::None, .. } => return self.few_of_text(place.frame),
            Frame::Name { escape: Escape::None, reach, .. } => {
                let only_known = reach.classes == NOT_ASKED;
                return Ok(if only_known { self.along_known(place.frame) } else { None });
            }
            Frame::Text { .. } | Frame::Name { .. } => b"\"\\/bfnrtu0123456789abcdefABCDEF",
        };
        let bytes = if blanks || bytes.first() != Some(&b' ') { bytes } else { &bytes[4..] };
        let mut set = ByteSet::default();
        bytes.iter().for_each(|&byte| set.insert(byte));
        Ok(Some(set))
    }

    fn few_of_text(&self, frame: Frame) -> Result<Option<ByteSet>, Error> {
        let Frame::Text { language, state, .. } = frame else { return Ok(None) };
        if self.grown.core.class_formula(language) == TRUE {
            return Ok(None);
        }
        let mut live = self.grown.core.text(language).live_bytes(state)?;
        if live.len() > FEW {
            return Ok(None);
        }
        live.insert(b'"');
        live.insert(b'\\');
        Ok(Some(live))
    }

    /// The same key in the midst of its text, if it is there.
    fn within(&mut self, key: KeyId) -> KeyId {
        let place = self.place(key);
        if key.number() >= RUN || self.is_free(place) {
            return key;
        }
        self.runs.key(&self.grown, place).unwrap_or(key)
    }

    /// The key without the count of characters that are left, and how many it may read.
    fn nearly(&mut self, key: KeyId) -> Result<Option<(KeyId, u32)>, Error> {
        let place = self.place(key);
        let Frame::Text { language, state, asked, escape: Escape::None, below } = place.frame
        else {
            return Ok(None);
        };
        if place.record != UNRECORDED
            || !self.grown.is_settled(asked)
            || self.grown.count(language, state)?.is_some()
        {
            return Ok(None);
        }
        let near = self.grown.core.text(language).uncounted(state)?;
        Ok(near.map(|(state, most)| {
            let frame = Frame::Text { language, state, asked, escape: Escape::None, below };
            let key = self.grown.keys.intern(Place { frame, ..place });
            (KeyId::from_number(key), u32::try_from(most).unwrap_or(u32::MAX))
        }))
    }

    fn repetition(&mut self, key: KeyId) -> Result<Found, Error> {
        let key = self.within(key);
        let place = self.place(key);
        let policy = self.grown.core.options.escapes;
        if self.is_free(place) {
            return Ok(Found::Repetition(quoted(policy, (0, None), key)));
        }
        if let Frame::Text { language, state, asked, escape: Escape::None, .. } = place.frame
            && place.record == UNRECORDED
            && self.grown.is_settled(asked)
            && let Some(count) = self.grown.count(language, state)?
        {
            let exit = self.free(place)?;
            return Ok(Found::Repetition(quoted(policy, count, exit)));
        }
        if key.number() < RUN || self.few(place)?.is_some() {
            return Ok(Found::Nothing);
        }
        Ok(match self.runs.is_free(&mut self.grown, key)? {
            true => Found::Repetition(quoted(policy, (0, None), key)),
            false => Found::Unknown(key),
        })
    }

    /// Any other name, for one that may still be a known one.
    fn other_name(&mut self, place: Place) -> Result<Option<KeyId>, Error> {
        let Frame::Name { object, naming, reach, escape: Escape::None, .. } = place.frame else {
            return Ok(None);
        };
        let known = reach.from < reach.to && self.grown.forgets_names(naming, reach.classes);
        if !known || place.record != UNRECORDED {
            return Ok(None);
        }
        let reach = Reach { from: 0, to: 0, ..reach };
        let (text, escape) = (UNRECORDED, Escape::None);
        let frame = Frame::Name { object, naming, text, reach, escape };
        self.key(Place { frame, ..place }).map(Some)
    }

    /// What most letters lead to in a text.
    fn most(&mut self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let mut counts: Vec<(KeyId, usize)> = Vec::new();
        for byte in b'a'..=b'z' {
            let next = match self.runs.step(&mut self.grown, key, byte)? {
                Stepped::To(next) => next,
                Stepped::Settled(place) => self.key(place)?,
                Stepped::Refused | Stepped::Unknown => continue,
            };
            match counts.iter_mut().find(|(known, _)| *known == next) {
                Some((_, count)) => *count += 1,
                None => counts.push((next, 1)),
            }
        }
        let most = counts.into_iter().max_by_key(|&(_, count)| count);
        Ok(most.filter(|&(next, count)| count >= LETTERS && next != key).map(|(next, _)| next))
    }
}

/// Whether a key repeats characters.
enum Found {
    Repetition(Repetition),
    Nothing,
    /// To be found out by reading.
    Unknown(KeyId),
}

impl EndSteps for Ahead<'_> {
    fn is_end(&self, key: KeyId) -> Result<bool, Error> {
        let looking = &mut *self.looking.borrow_mut();
        let frame = looking.place(key).frame;
        Ok(looking.grown.is_end(frame))
    }
}

impl Steps for Ahead<'_> {
    type Lexemes = NoLexemes;

    const KNOWS_FEW: bool = true;

    fn lexemes(&self) -> Option<&NoLexemes> {
        None
    }

    fn step(&self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        self.looking.borrow_mut().step(key, byte)
    }

    fn live_bytes(&self, key: KeyId) -> Result<ByteSet, Error> {
        let looking = &mut *self.looking.borrow_mut();
        let place = looking.place(key);
        let mut set = ByteSet::default();
        let tried = match looking.few(place)? {
            Some(few) => few,
            None => {
                let mut all = ByteSet::default();
                (0x20..=0xF4).for_each(|byte| all.insert(byte));
                all
            }
        };
        for byte in tried.iter() {
            if looking.step(key, byte)?.is_some() {
                set.insert(byte);
            }
        }
        Ok(set)
    }

    fn repetition(&self, key: KeyId) -> Result<Option<Repetition>, Error> {
        let found = self.looking.borrow_mut().repetition(key)?;
        match found {
            Found::Repetition(repetition) => Ok(Some(repetition)),
            Found::Nothing => Ok(None),
            Found::Unknown(key) => loops_of(self, key, LOOPS),
        }
    }

    fn few(&self, key: KeyId) -> Result<Option<ByteSet>, Error> {
        if key.number() >= RUN {
            // Reading a byte is as quick as asking.
            return Ok(None);
        }
        let looking = self.looking.borrow();
        looking.few(looking.place(key))
    }

    fn reference(&self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let looking = &mut *self.looking.borrow_mut();
        let key = looking.within(key);
        if key.number() >= RUN {
            return looking.most(key);
        }
        let place = looking.place(key);
        looking.other_name(place)
    }

    fn nearly(&self, key: KeyId) -> Result<Option<(KeyId, u32)>, Error> {
        self.looking.borrow_mut().nearly(key)
    }

    fn differing(&self, first: KeyId, second: KeyId) -> Result<Option<ByteSet>, Error> {
        let looking = self.looking.borrow();
        let (first, second) = (looking.place(first), looking.place(second));
        if let (Frame::Name { object, .. }, Frame::Name { object: other, reach, .. }) =
            (first.frame, second.frame)
            && object == other
            && reach.from == reach.to
        {
            return Ok(looking.along_known(first.frame));
        }
        Ok(match (looking.few(first)?, looking.few(second)?) {
            (Some(first), Some(second)) => Some(first.union(second)),
            _ => None,
        })
    }
}

/// So many characters of a string, of which nothing else is asked.
fn quoted(policy: Escapes, (min, max): (u32, Option<u32>), exit: KeyId) -> Repetition {
    let (class, cover) = printable(policy);
    let ascii = (0..128u8).filter(|&byte| class.contains(char::from(byte)));
    let ascii = ascii.fold(0, |set, byte| set | 1u128 << byte);
    let (wide, exit, quoted) = ([cover; WIDE_PARTS], Some(exit), Some(policy));
    Repetition { class, ascii, wide, min, max, exit, quoted }
}

/// The characters that strings have as they are.
fn printable(policy: Escapes) -> (CharSet, Cover) {
    let ascii = CharSet::from_ranges([(' ', '!'), ('#', '['), (']', '\u{7F}')]);
    let wide = CharSet::from_ranges([('\u{80}', char::MAX)]);
    match policy {
        Escapes::Ascii => (ascii, Cover::None),
        _ => (ascii.union(&wide), Cover::Full),
    }
}
