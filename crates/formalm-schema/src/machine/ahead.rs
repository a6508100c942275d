//! Looking ahead of the text, for masks.

use std::cell::RefCell;
use std::sync::MutexGuard;

use formalm_automata::{
    ByteSet, CharSet, Cover, Error, KeyId, Machine, NoLexemes, Repetition, StateId, Steps,
    WIDE_PARTS, beyond_ascii,
};

use super::frame::{AskedId, Escape, Frame, FrameId, Mode, Place, Reach, Table};
use super::known::NOT_ASKED;
use super::{Grown, UNRECORDED};
use crate::core::TextId;
use crate::formula::TRUE;
use crate::options::Escapes;

/// Keys met while looking ahead have numbers from here on,
const AHEAD: u32 = 1 << 30;
/// and those in the midst of texts from here on: the number of the text, then the state.
const RUN: u32 = 1 << 31;
const RUN_BITS: u32 = 26;
const RUN_STATES: u32 = (1 << RUN_BITS) - 1;
const MAX_RUNS: usize = 1 << (31 - RUN_BITS);

/// With fewer characters coming back a walk is as quick.
const LOOPS: u32 = 12;

/// With more live bytes a text is not looked for byte by byte.
const FEW: usize = 24;

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
    /// Texts that are read state by state: their machines and the frames below them.
    runs: Vec<(TextId, FrameId)>,
    /// How many texts were recorded before.
    records: usize,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(grown: MutexGuard<'a, Grown>) -> Ahead<'a> {
        let (places, runs, records) = (Table::default(), Vec::new(), grown.records.len());
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
            let (run, state) = ((number - RUN) >> RUN_BITS, number & RUN_STATES);
            let ((language, below), state) = (self.runs[run as usize], StateId::new(state));
            let (asked, escape) = (NOT_ASKED, Escape::None);
            let frame = Frame::Text { language, state, asked, escape, below };
            return Place { frame, record: UNRECORDED };
        }
        match number.checked_sub(AHEAD) {
            Some(at) => *self.places.get(at),
            None => *self.grown.keys.get(number),
        }
    }

    fn key(&mut self, place: Place) -> Result<KeyId, Error> {
        let Frame::Text { language, state, asked: NOT_ASKED, escape: Escape::None, below } =
            place.frame
        else {
            return Ok(KeyId::from_number(AHEAD + self.places.intern(place)));
        };
        let mut place = place;
        if state == self.grown.core.text(language).start() {
            place.frame = self.grown.freed(place.frame)?;
        }
        if place.record != UNRECORDED || self.is_free(place) || state.number() > RUN_STATES {
            return Ok(KeyId::from_number(AHEAD + self.places.intern(place)));
        }
        let run = (language, below);
        let at = self.runs.iter().position(|one| *one == run).unwrap_or_else(|| {
            self.runs.push(run);
            self.runs.len() - 1
        });
        if at >= MAX_RUNS {
            self.runs.truncate(MAX_RUNS);
            return Ok(KeyId::from_number(AHEAD + self.places.intern(place)));
        }
        Ok(KeyId::from_number(RUN + ((at as u32) << RUN_BITS) + state.number()))
    }

    #[inline]
    fn step(&mut self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        let number = key.number();
        if number >= RUN && !matches!(byte, b'"' | b'\\' | 0..0x20) {
            if byte >= 0x80 && self.grown.core.options.escapes == Escapes::Ascii {
                return Ok(None);
            }
            let (language, _) = self.runs[((number - RUN) >> RUN_BITS) as usize];
            let state = StateId::new(number & RUN_STATES);
            let next = self.grown.core.text(language).step(state, byte)?;
            return match next {
                Some(next) if next.number() <= RUN_STATES => {
                    Ok(Some(KeyId::from_number((number & !RUN_STATES) + next.number())))
                }
                Some(_) => self.step_place(key, byte),
                None => Ok(None),
            };
        }
        self.step_place(key, byte)
    }

    fn step_place(&mut self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        let before = self.place(key);
        let Some(after) = self.grown.read_fresh(before, byte)? else { return Ok(None) };
        let after = self.grown.normal(after);
        if after == before {
            return Ok(Some(key));
        }
        self.key(after).map(Some)
    }

    /// The free string or name that a place is in the middle of, between two characters.
    fn is_free(&self, place: Place) -> bool {
        if place.record != UNRECORDED {
            return false;
        }
        let core = &self.grown.core;
        match place.frame {
            Frame::Text { language, state, asked: NOT_ASKED, escape: Escape::None, .. } => {
                core.class_formula(language) == TRUE && state == core.text(language).start()
            }
            Frame::Name { text: UNRECORDED, reach, escape: Escape::None, .. } => {
                self.grown.takes_any(reach.classes) && self.is_between(reach.classes)
            }
            _ => false,
        }
    }

    /// The same place in a free text.
    fn free(&mut self, place: Place) -> Result<KeyId, Error> {
        let Frame::Text { below, .. } = place.frame else { return self.key(place) };
        let Some(language) = self.grown.core.language(TRUE)? else { return self.key(place) };
        let state = self.grown.core.text(language).start();
        let (asked, escape) = (NOT_ASKED, Escape::None);
        let frame = Frame::Text { language, state, asked, escape, below };
        self.key(Place { frame, ..place })
    }

    /// Whether machines of free texts are between two characters.
    fn is_between(&self, classes: AskedId) -> bool {
        let states = self.grown.parts.asked.get(classes.0);
        states.iter().flatten().all(|&(class, state)| state == self.grown.core.text(class).start())
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
            None if looking.is_free(place) => {
                let policy = looking.grown.core.options.escapes;
                let (class, _) = printable(policy);
                (0x20..0x80).filter(|&byte| class.contains(char::from(byte))).for_each(|byte| {
                    set.insert(byte);
                });
                if policy != Escapes::Ascii {
                    (0xC2..=0xF4).for_each(|byte| set.insert(byte));
                }
                let mut tried = ByteSet::default();
                tried.insert(b'"');
                tried.insert(b'\\');
                tried
            }
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
        let mut looking = self.looking.borrow_mut();
        let place = looking.place(key);
        let policy = looking.grown.core.options.escapes;
        if looking.is_free(place) {
            return Ok(Some(spelled(policy, (0, None), key, 0)));
        }
        let Frame::Text { language, state, asked: NOT_ASKED, escape: Escape::None, .. } =
            place.frame
        else {
            return Ok(None);
        };
        if place.record != UNRECORDED || looking.grown.core.class_formula(language) == TRUE {
            return Ok(None);
        }
        if let Some((min, max)) = looking.grown.count(language, state)? {
            if (min, max) == (0, None) {
                return Ok(Some(spelled(policy, (min, max), key, 0)));
            }
            let exit = looking.free(place)?;
            return Ok(Some(spelled(policy, (min, max), exit, 1 << b'\\')));
        }
        if looking.few(place)?.is_some() {
            return Ok(None);
        }
        drop(looking);
        self.loops(key)
    }

    fn few(&self, key: KeyId) -> Result<Option<ByteSet>, Error> {
        if key.number() >= RUN {
            // Reading a byte is as quick as asking.
            return Ok(None);
        }
        let looking = self.looking.borrow();
        looking.few(looking.place(key))
    }

    /// Any other name, for one that may still be a known one.
    fn reference(&self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let looking = &mut *self.looking.borrow_mut();
        let place = looking.place(key);
        let Frame::Name { object, naming, reach, escape: Escape::None, .. } = place.frame else {
            return Ok(None);
        };
        let grown = &looking.grown;
        if reach.from == reach.to
            || grown.tells_names
            || !grown.takes_any(reach.classes)
            || !looking.is_between(reach.classes)
        {
            return Ok(None);
        }
        let reach = Reach { from: 0, to: 0, ..reach };
        let (text, escape) = (UNRECORDED, Escape::None);
        let frame = Frame::Name { object, naming, text, reach, escape };
        looking.key(Place { frame, ..place }).map(Some)
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

/// The characters that strings have as they are, so many of them.
fn spelled(
    policy: Escapes,
    (min, max): (u32, Option<u32>),
    exit: KeyId,
    reenters: u128,
) -> Repetition {
    let (class, cover) = printable(policy);
    let ascii = (0..128u8).filter(|&byte| class.contains(char::from(byte)));
    let ascii = ascii.fold(0, |set, byte| set | 1u128 << byte);
    Repetition { class, ascii, wide: [cover; WIDE_PARTS], min, max, exit: Some(exit), reenters }
}

impl Ahead<'_> {
    /// The characters over which a text comes back to where it is.
    fn loops(&self, key: KeyId) -> Result<Option<Repetition>, Error> {
        let mut ascii = 0u128;
        for byte in 0x20..0x80u8 {
            if self.step(key, byte)? == Some(key) {
                ascii |= 1 << byte;
            }
        }
        if ascii.count_ones() < LOOPS {
            return Ok(None);
        }
        let Some(wide) = beyond_ascii(self, key)? else { return Ok(None) };
        let looped = (0..128u8).filter(|byte| ascii >> byte & 1 != 0);
        let mut class = CharSet::from_ranges(looped.map(|byte| (byte.into(), byte.into())));
        if wide == Cover::Full {
            class = class.union(&CharSet::from_ranges([('\u{80}', char::MAX)]));
        }
        let (wide, exit) = ([wide; WIDE_PARTS], Some(key));
        Ok(Some(Repetition { class, ascii, wide, min: 0, max: None, exit, reenters: 0 }))
    }
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
