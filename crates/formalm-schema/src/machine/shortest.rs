//! Short completions.
//!
//! Breadth first, but never along what can only be longer or as long and no smaller: blanks, more
//! of a string that may end and of which nothing is asked, members that are not owed. Where
//! members do not depend on each other, those that are owed come in ascending order.

use formalm_automata::{ByteSet, Error, Machine, Resource};
use rustc_hash::FxHashSet;

use formalm_automata::spelling::{Escape, Escapes};

use super::frame::{Frame, Mode, NamingId, Place, Reach};
use super::known::NOT_ASKED;
use super::scalars::is_blank;
use super::{DEAD, Grown, UNRECORDED};
use crate::formula::{Atom, Form, TRUE};

/// States looked at; a completion that is further away is refused.
const MAX_SEEN: u64 = 200_000;

impl Grown {
    /// A shortest continuation; the smallest of several.
    pub(super) fn shortest(&mut self, state: u32) -> Result<Vec<u8>, Error> {
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
            for byte in self.worth_trying(here)?.iter() {
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
        let free = record == UNRECORDED;
        let only = match frame {
            Frame::Text { language, state, asked: NOT_ASKED, escape: Escape::None, .. } => {
                let ends = free
                    && self.core.class_formula(language) == TRUE
                    && state == self.core.text(language).start();
                ends.then_some(b'"')
            }
            Frame::Object { owes, mode: Mode::First | Mode::After, .. } => {
                let ends = free && self.is_plain(owes) && self.ended(owes).is_some();
                ends.then_some(b'}')
            }
            Frame::Name { naming, text, reach, escape: Escape::None, .. } if free => {
                let read = self.records.get(text).2 as usize;
                self.along_owed(naming, reach, read)?
            }
            _ => None,
        };
        let mut set = ByteSet::default();
        if let Some(byte) = only {
            set.insert(byte);
            return Ok(set);
        }
        let spelled = matches!(frame, Frame::Text { .. } | Frame::Name { .. });
        (0..=255).filter(|&byte| spelled || !is_blank(byte)).for_each(|byte| set.insert(byte));
        Ok(set)
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
