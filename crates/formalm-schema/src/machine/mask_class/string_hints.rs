//! What spares a look ahead most of its steps: repetitions, strings that refuse nothing, texts that
//! differ from others along a few bytes.

use std::sync::Arc;

use formalm_automata::spelling::{Escape, Escapes};
use formalm_automata::{
    CharSet, Cover, Error, InText, KeyId, Repetition, SetOnce, StateId, Texts, WIDE_PARTS,
};

use crate::core::TextId;
use crate::machine::Grown;
use crate::machine::UNRECORDED;
use crate::machine::frame::{AskedId, Frame, Place, Reach};
use crate::machine::mask_class::lookahead::Looking;
use crate::machine::mask_class::string_states::RUN;
use crate::machine::reader::cache::NOT_ASKED;

/// Letters that must lead to one key for it to stand for a text.
const LETTERS: usize = 14;

/// Whether a key repeats characters.
pub(crate) enum Found {
    Repetition(Repetition),
    Nothing,
    /// To be found out by reading.
    Unknown(KeyId),
}

impl Looking<'_> {
    /// The same key in the midst of its text, if it is there.
    pub(crate) fn within(&mut self, key: KeyId) -> KeyId {
        let place = self.place(key);
        if key.number() >= RUN || self.is_free(place) {
            return key;
        }
        self.runs.key(&self.grown, place).unwrap_or(key)
    }

    /// How strings are spelled, where a string refuses nothing before its end.
    pub(crate) fn in_open_string(&mut self, key: KeyId) -> Result<Option<Escapes>, Error> {
        let key = self.within(key);
        let place = self.place(key);
        if place.record != UNRECORDED || self.is_free(place) {
            return Ok(None);
        }
        let grown = &mut self.grown;
        let is_open = match place.frame {
            Frame::Text { language, state, asked, escape: Escape::None, .. } => {
                let only_counts =
                    grown.is_settled(asked) && grown.count(language, state)?.is_some();
                !only_counts && grown.core.is_open(language, state)?
            }
            Frame::Name { naming, text: UNRECORDED, reach, escape: Escape::None, .. } => {
                grown.is_open_name(naming, reach.classes)?
            }
            _ => false,
        };
        Ok(is_open.then_some(grown.core.options.escapes))
    }

    /// The text that a place is in, where a machine of its own reads it and nothing else matters.
    pub(crate) fn in_text(&mut self, key: KeyId) -> Result<Option<InText>, Error> {
        let key = self.within(key);
        let place = self.place(key);
        if place.record != UNRECORDED || self.is_free(place) {
            return Ok(None);
        }
        let is_dropped = self.is_unbounded(place);
        let (language, state) = match place.frame {
            Frame::Text { language, state, asked, escape: Escape::None, .. }
                if self.grown.is_settled(asked) && self.grown.count(language, state)?.is_none() =>
            {
                (language, state)
            }
            Frame::Name { text: UNRECORDED, reach, escape: Escape::None, .. } => {
                match self.grown.only_class(reach.classes) {
                    Some((_, alive)) => alive,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let machine = Arc::clone(self.grown.core.text(language));
        let escapes = self.grown.core.options.escapes;
        let like = if is_dropped { machine.like(state)? } else { None };
        let fits = !is_dropped || like.is_some();
        Ok(fits.then_some(InText { machine, state, escapes, like }))
    }

    /// The same place with the machine of its text in another state.
    pub(crate) fn in_text_at(&mut self, key: KeyId, state: StateId) -> Result<KeyId, Error> {
        let mut place = self.place(key);
        match &mut place.frame {
            Frame::Text { state: at, .. } => *at = state,
            Frame::Name { reach, .. } => {
                if let Some((which, (class, _))) = self.grown.only_class(reach.classes) {
                    let mut classes = self.grown.parts.asked.get(reach.classes.0).clone();
                    classes.machines[which] = Some((class, state));
                    reach.classes = AskedId(self.grown.parts.asked.intern(classes));
                }
            }
            _ => {}
        }
        self.key(place)
    }

    pub(crate) fn repetition(&mut self, key: KeyId) -> Result<Found, Error> {
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
    pub(crate) fn other_name(&mut self, place: Place) -> Result<Option<KeyId>, Error> {
        let Frame::Name { object, naming, reach, escape: Escape::None, .. } = place.frame else {
            return Ok(None);
        };
        let known = reach.from < reach.to
            && reach.classes != NOT_ASKED
            && self.grown.forgets_names(naming, reach.classes);
        if !known || place.record != UNRECORDED {
            return Ok(None);
        }
        let reach = Reach { from: 0, to: 0, ..reach };
        let (text, escape) = (UNRECORDED, Escape::None);
        let frame = Frame::Name { object, naming, text, reach, escape };
        self.key(Place { frame, ..place }).map(Some)
    }

    /// Known names behind which alone a name differs from any other, or which it has to become.
    pub(crate) fn known_texts(
        &mut self,
        key: KeyId,
        other: Option<KeyId>,
    ) -> Result<Option<Texts>, Error> {
        let policy = self.grown.core.options.escapes;
        let Frame::Name { object, naming, text, reach, escape: Escape::None } =
            self.place(key).frame
        else {
            return Ok(None);
        };
        let fits = match other.map(|other| self.place(other).frame) {
            None => reach.classes == NOT_ASKED,
            Some(Frame::Name {
                object: same,
                text: UNRECORDED,
                reach: Reach { from, to, classes },
                ..
            }) => {
                (same, from == to, classes) == (object, true, reach.classes)
                    && self.grown.is_open_name(naming, classes)?
            }
            Some(_) => false,
        };
        if !fits || text == UNRECORDED || policy == Escapes::Any {
            return Ok(None);
        }
        let depth = self.grown.records.get(text).2 as usize;
        let mut texts = Texts::new(policy);
        for at in reach.from..reach.to {
            if other.is_none() && !self.grown.known_viable(naming, at)? {
                continue;
            }
            let name = self.grown.known_name(naming, at);
            if !name.is_char_boundary(depth) {
                return Ok(None);
            }
            let rest = &name.as_bytes()[depth..];
            let is_plain = |byte: u8| {
                byte >= 0x20
                    && !b"\"\\".contains(&byte)
                    && (byte < 0x80 || policy == Escapes::Minimal)
            };
            if !rest.iter().copied().all(is_plain) {
                // It has other spellings.
                return Ok(None);
            }
            texts.push(rest);
        }
        Ok(Some(texts))
    }

    /// What most letters lead to in a text.
    pub(crate) fn most(&mut self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let mut counts: Vec<(KeyId, usize)> = Vec::new();
        for byte in b'a'..=b'z' {
            let Some(next) = self.step(key, byte)? else { continue };
            match counts.iter_mut().find(|(known, _)| *known == next) {
                Some((_, count)) => *count += 1,
                None => counts.push((next, 1)),
            }
        }
        let most = counts.into_iter().max_by_key(|&(_, count)| count);
        Ok(most.filter(|&(next, count)| count >= LETTERS && next != key).map(|(next, _)| next))
    }
}

impl Grown {
    /// The class that a name is of, if it may be of one only: which, its machine and the state.
    fn only_class(&self, classes: AskedId) -> Option<(usize, (TextId, StateId))> {
        let mut alive = self.parts.asked.get(classes.0).iter().enumerate();
        let found = alive.find_map(|(at, one)| Some((at, (*one)?)))?;
        alive.all(|(_, one)| one.is_none()).then_some(found)
    }
}

/// So many characters of a string, of which nothing else is asked.
fn quoted(policy: Escapes, (min, max): (u32, Option<u32>), exit: KeyId) -> Repetition {
    static PRINTABLE: [SetOnce<(CharSet, Cover, u128)>; 3] = [const { SetOnce::new() }; 3];
    let (class, cover, ascii) = PRINTABLE[policy as usize].get_or_init(|| {
        let (class, cover) = printable(policy);
        let ascii = (0..128u8).filter(|&byte| class.contains(char::from(byte)));
        let ascii = ascii.fold(0, |set, byte| set | 1u128 << byte);
        (class, cover, ascii)
    });
    let (class, wide, ascii) = (class.clone(), [*cover; WIDE_PARTS], *ascii);
    Repetition { class, ascii, wide, min, max, exit: Some(exit), quoted: Some(policy) }
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
