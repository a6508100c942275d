//! Looking ahead of the text, for masks.

use std::cell::RefCell;

use formalm_automata::spelling::{Escape, Escapes};
use formalm_automata::{
    ByteSet, EndSteps, Ended, Error, InText, KeyId, Machine, NoLexemes, Repetition, StateId, Steps,
    Texts, loops_of,
};

use crate::formula::TRUE;
use crate::machine::UNRECORDED;
use crate::machine::frame::{AskedId, Frame, Mode, Place, Reach};
use crate::machine::lookahead_tables::Locked;
use crate::machine::mask_class::string_hints::Found;
use crate::machine::mask_class::string_states::{RUN, Runs, Stepped};
use crate::machine::reader::cache::NOT_ASKED;
use crate::table::Table;

/// Keys met while looking ahead have numbers from here on.
const AHEAD: u32 = 1 << 30;

/// With fewer characters coming back a walk is as quick.
const LOOPS: u32 = 12;

/// With more live bytes a text is not looked for byte by byte.
const FEW: usize = 24;

/// A look ahead of the text. What it meets is dropped with it: a mask meets many more places
/// than texts come to.
#[derive(Debug)]
pub(crate) struct Ahead<'a> {
    looking: RefCell<Looking<'a>>,
}

#[derive(Debug)]
pub(crate) struct Looking<'a> {
    pub(crate) grown: Locked<'a>,
    places: Table<Place>,
    pub(crate) runs: Runs,
    /// How many texts were recorded before.
    records: usize,
    /// How many states of several texts there were, and how much that keeps some of them.
    asked: (usize, [usize; 3]),
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(mut grown: Locked<'a>) -> Ahead<'a> {
        grown.core.ahead();
        let (places, runs) = std::mem::take(&mut grown.spare);
        let records = grown.records.len();
        let asked = (grown.parts.asked.len(), grown.keeping_asked());
        Ahead { looking: RefCell::new(Looking { grown, places, runs, records, asked }) }
    }
}

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        // Texts recorded ahead belong to places that nobody knows any more.
        let grown = &mut *self.grown;
        self.places.clear();
        self.runs.clear();
        grown.spare = (std::mem::take(&mut self.places), std::mem::take(&mut self.runs));
        grown.records.truncate(self.records);
        if grown.core.behind() && self.asked.1 == grown.keeping_asked() {
            grown.parts.asked.truncate(self.asked.0);
        }
    }
}

impl Looking<'_> {
    pub(crate) fn place(&self, key: KeyId) -> Place {
        let number = key.number();
        if number >= RUN {
            return self.runs.place(key);
        }
        match number.checked_sub(AHEAD) {
            Some(at) => *self.places.get(at),
            None => *self.grown.keys.get(number),
        }
    }

    pub(crate) fn key(&mut self, place: Place) -> Result<KeyId, Error> {
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
    pub(crate) fn step(&mut self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
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
    pub(crate) fn is_free(&self, place: Place) -> bool {
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

    /// Whether a place is in a text whose states are dropped with this look ahead.
    pub(crate) fn is_unbounded(&self, place: Place) -> bool {
        let core = &self.grown.core;
        let of = |asked: AskedId| {
            let mut texts = self.grown.parts.asked.get(asked.0).iter().flatten();
            texts.any(|&(text, _)| core.is_unbounded(text))
        };
        match place.frame {
            Frame::Text { language, asked, .. } => core.is_unbounded(language) || of(asked),
            Frame::Name { reach, .. } => of(reach.classes),
            _ => false,
        }
    }

    /// The same place in a free text.
    pub(crate) fn free(&mut self, place: Place) -> Result<KeyId, Error> {
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

    pub(crate) fn few(&mut self, place: Place) -> Result<Option<ByteSet>, Error> {
        let options = &self.grown.core.options;
        let blanks = options.blanks > 0 || options.layout.is_some();
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
            // To ask for the bytes of a state that is met once costs more than to read it.
            Frame::Text { escape: Escape::None, .. } if self.is_unbounded(place) => {
                return Ok(None);
            }
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

    fn few_of_text(&mut self, frame: Frame) -> Result<Option<ByteSet>, Error> {
        let Frame::Text { language, state, .. } = frame else { return Ok(None) };
        if self.grown.core.class_formula(language) == TRUE
            || self.grown.count(language, state)?.is_some()
        {
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
        let looking = &mut *self.looking.borrow_mut();
        looking.few(looking.place(key))
    }

    fn any_digits(&self, key: KeyId) -> Result<bool, Error> {
        if key.number() >= RUN {
            return Ok(false);
        }
        let looking = &mut *self.looking.borrow_mut();
        let frame = looking.place(key).frame;
        Ok(looking.grown.any_digits(frame))
    }

    fn reference(&self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let looking = &mut *self.looking.borrow_mut();
        let key = looking.within(key);
        if key.number() >= RUN {
            return looking.most(key);
        }
        let place = looking.place(key);
        if let Some(other) = looking.other_name(place)? {
            return Ok(Some(other));
        }
        match place.frame {
            Frame::Name { reach, escape: Escape::None, .. } if reach.classes != NOT_ASKED => {
                looking.most(key)
            }
            _ => Ok(None),
        }
    }

    fn in_open_string(&self, key: KeyId) -> Result<Option<Escapes>, Error> {
        self.looking.borrow_mut().in_open_string(key)
    }

    fn in_text(&self, key: KeyId) -> Result<Option<InText>, Error> {
        self.looking.borrow_mut().in_text(key)
    }

    fn in_text_at(&self, key: KeyId, state: StateId) -> Result<KeyId, Error> {
        self.looking.borrow_mut().in_text_at(key, state)
    }

    fn texts(&self, key: KeyId, reference: Option<KeyId>) -> Result<Option<Texts>, Error> {
        if key.number() >= RUN {
            return Ok(None);
        }
        self.looking.borrow_mut().known_texts(key, reference)
    }

    fn apart(&self, key: KeyId) -> Result<Option<KeyId>, Error> {
        self.looking.borrow_mut().apart(key)
    }

    fn common(&self, key: KeyId) -> Option<u64> {
        self.looking.borrow_mut().common(key)
    }

    fn ended(&self, key: KeyId) -> Result<Ended, Error> {
        self.looking.borrow_mut().ended(key)
    }

    fn behind(&self, key: KeyId) -> Result<Option<KeyId>, Error> {
        self.looking.borrow_mut().behind(key)
    }

    fn kept(&self, key: KeyId) -> Option<KeyId> {
        let looking = &mut *self.looking.borrow_mut();
        let place = looking.place(key);
        let is_ahead = key.number() >= AHEAD;
        match place.record {
            UNRECORDED if is_ahead && !looking.is_unbounded(place) => {
                let place = looking.grown.in_common(place);
                Some(KeyId::from_number(looking.grown.keys.intern(place)))
            }
            _ => None,
        }
    }

    fn differing(&self, first: KeyId, second: KeyId) -> Result<Option<ByteSet>, Error> {
        let looking = &mut *self.looking.borrow_mut();
        let (first, second) = (looking.place(first), looking.place(second));
        if let (
            Frame::Name { object, reach: Reach { classes, .. }, .. },
            Frame::Name { object: other, reach, .. },
        ) = (first.frame, second.frame)
            && object == other
            && reach.from == reach.to
            && reach.classes == classes
        {
            return Ok(looking.along_known(first.frame));
        }
        Ok(match (looking.few(first)?, looking.few(second)?) {
            (Some(first), Some(second)) => Some(first.union(second)),
            _ => None,
        })
    }
}
