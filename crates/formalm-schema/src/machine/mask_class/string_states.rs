//! Texts and names read in the midst of them, by their machines alone.
//!
//! Between two bytes of a text nothing changes but states of machines, so a key is the number of a
//! text and that of a state, and most steps are look-ups.

use formalm_automata::spelling::{Escape, Escapes};
use formalm_automata::{Error, KeyId, Machine, StateId, every_character};
use rustc_hash::FxHashMap;

use crate::core::TextId;
use crate::machine::frame::{AskedId, Frame, FrameId, NamingId, Place, Reach};
use crate::machine::reader::cache::NOT_ASKED;
use crate::machine::{Grown, UNRECORDED};
use crate::table::{ROOM, Table};

/// Keys in the midst of texts have numbers from here on: the number of the text, then the state.
pub(crate) const RUN: u32 = 1 << 31;
const BITS: u32 = 26;
const STATES: u32 = (1 << BITS) - 1;
const MOST: usize = 1 << (31 - BITS);

/// A text that is being read, with everything that stays the same while it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    /// Read by one machine: its states are those of the run.
    Text { language: TextId, asked: AskedId, below: FrameId },
    /// Read by several.
    Texts { language: TextId, below: FrameId },
    /// A name that begins no known one: states are those of the machines of its classes.
    Name { object: FrameId, naming: NamingId },
}

/// The texts met in one look ahead.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    list: Vec<Run>,
    /// States of several machines.
    products: Table<(StateId, AskedId)>,
    next: FxHashMap<(u32, u8), Stepped>,
}

/// What a byte does in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stepped {
    To(KeyId),
    /// The text goes on, and only one machine matters any more.
    Settled(Place),
    Refused,
    /// Ask the place.
    Unknown,
}

impl Runs {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.products.clear();
        if self.next.len() > ROOM {
            self.next = FxHashMap::default();
        }
        self.next.clear();
    }

    /// The key of a place, if it is in the midst of a text that is not recorded.
    pub(crate) fn key(&mut self, grown: &Grown, place: Place) -> Option<KeyId> {
        if place.record != UNRECORDED {
            return None;
        }
        let (run, state) = match place.frame {
            Frame::Text { language, state, asked, escape: Escape::None, below } => {
                if grown.is_settled(asked) {
                    (Run::Text { language, asked, below }, state.number())
                } else {
                    let product = self.products.intern((state, asked));
                    (Run::Texts { language, below }, product)
                }
            }
            Frame::Name { object, naming, text: UNRECORDED, reach, escape: Escape::None } => {
                (Run::Name { object, naming }, reach.classes.0)
            }
            _ => return None,
        };
        self.key_in(run, state)
    }

    fn key_in(&mut self, run: Run, state: u32) -> Option<KeyId> {
        let at = self.list.iter().position(|one| *one == run).unwrap_or_else(|| {
            self.list.push(run);
            self.list.len() - 1
        });
        if at >= MOST {
            self.list.truncate(MOST);
        }
        (at < MOST && state <= STATES)
            .then(|| KeyId::from_number(RUN + ((at as u32) << BITS) + state))
    }

    fn split(&self, key: KeyId) -> (Run, u32) {
        let number = key.number() - RUN;
        (self.list[(number >> BITS) as usize], number & STATES)
    }

    pub(crate) fn place(&self, key: KeyId) -> Place {
        let (run, state) = self.split(key);
        let (escape, record) = (Escape::None, UNRECORDED);
        match run {
            Run::Text { language, asked, below } => {
                let state = StateId::from_number(state);
                Place { frame: Frame::Text { language, state, asked, escape, below }, record }
            }
            Run::Texts { language, below } => {
                let &(state, asked) = self.products.get(state);
                Place { frame: Frame::Text { language, state, asked, escape, below }, record }
            }
            Run::Name { object, naming } => {
                let reach = Reach { from: 0, to: 0, classes: AskedId(state) };
                let frame = Frame::Name { object, naming, text: UNRECORDED, reach, escape };
                Place { frame, record }
            }
        }
    }

    /// The key after a byte of a string's spelling.
    #[inline]
    pub(crate) fn step(
        &mut self,
        grown: &mut Grown,
        key: KeyId,
        byte: u8,
    ) -> Result<Stepped, Error> {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            return Ok(Stepped::Unknown);
        }
        if byte >= 0x80 && grown.core.options.escapes == Escapes::Ascii {
            return Ok(Stepped::Refused);
        }
        self.step_text(grown, key, byte)
    }

    /// The key after a byte of the text itself.
    #[inline]
    pub(crate) fn step_text(
        &mut self,
        grown: &mut Grown,
        key: KeyId,
        byte: u8,
    ) -> Result<Stepped, Error> {
        let (run, state) = self.split(key);
        if let Run::Text { language, .. } = run {
            let state = StateId::from_number(state);
            let next = grown.core.text(language).step(state, byte)?.map(StateId::number);
            return Ok(match next {
                None => Stepped::Refused,
                Some(next) if next > STATES => Stepped::Unknown,
                Some(next) => Stepped::To(KeyId::from_number((key.number() & !STATES) + next)),
            });
        }
        if let Some(&known) = self.next.get(&(key.number(), byte)) {
            return Ok(known);
        }
        let next = self.step_several(grown, run, state, byte)?;
        self.next.insert((key.number(), byte), next);
        Ok(next)
    }

    /// What a byte does in a text that several machines read.
    fn step_several(
        &mut self,
        grown: &mut Grown,
        run: Run,
        state: u32,
        byte: u8,
    ) -> Result<Stepped, Error> {
        let Run::Texts { language, below } = run else {
            let after = grown.asked_after(AskedId(state), &[byte])?;
            let alive = grown.parts.asked.get(after.0).iter().any(Option::is_some);
            let key = if alive { self.key_in(run, after.0).map(Stepped::To) } else { None };
            return Ok(key.unwrap_or(if alive { Stepped::Unknown } else { Stepped::Refused }));
        };
        let &(state, asked) = self.products.get(state);
        let Some(state) = grown.core.text(language).step(state, byte)? else {
            return Ok(Stepped::Refused);
        };
        let asked = grown.asked_after(asked, &[byte])?;
        if grown.is_settled(asked) {
            // From here on one machine decides, as in texts of which nothing else was asked.
            let frame = Frame::Text { language, state, asked, escape: Escape::None, below };
            return Ok(Stepped::Settled(Place { frame, record: UNRECORDED }));
        }
        let product = self.products.intern((state, asked));
        Ok(self.key_in(run, product).map_or(Stepped::Unknown, Stepped::To))
    }

    /// Whether every character leads back to a key.
    pub(crate) fn is_free(&mut self, grown: &mut Grown, key: KeyId) -> Result<bool, Error> {
        let mut step = |key: KeyId, byte: u8| {
            Ok(match self.step_text(grown, key, byte)? {
                Stepped::To(next) => Some(next),
                Stepped::Settled(_) | Stepped::Refused | Stepped::Unknown => None,
            })
        };
        for byte in 0..128 {
            if step(key, byte)? != Some(key) {
                return Ok(false);
            }
        }
        every_character(key, key, step)
    }
}

impl Grown {
    /// Whether the truths that are asked of a text do not depend on it.
    pub(crate) fn is_settled(&self, asked: AskedId) -> bool {
        asked == NOT_ASKED
            || self.parts.asked.get(asked.0).iter().flatten().all(|&(text, state)| {
                self.core.class_formula(text) == crate::formula::TRUE
                    && state == self.core.text(text).start()
            })
    }
}
