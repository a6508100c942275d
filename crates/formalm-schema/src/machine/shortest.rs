//! Short completions.
//!
//! How long they are is found first, state by state in the order of the bytes that a member through
//! them has at least; then the smallest of that length, along what can still be so short. Both never
//! look along what can only be longer or as long and no smaller: blanks, more of a string that may
//! end and of which nothing is asked, members that are not owed. Where members do not depend on each
//! other, those that are owed come in ascending order. Names that are like no other are all alike.

use std::collections::BTreeMap;
use std::rc::Rc;

use formalm_automata::{ByteSet, Error, Machine, Resource, StateId};
use rustc_hash::FxHashMap;

use formalm_automata::spelling::{Escape, Escapes};

use super::frame::{DONE, Frame, Mode, NamingId, Owes, OwesId, Place, Reach};
use super::known::NOT_ASKED;
use super::scalars::is_blank;
use super::{DEAD, Grown, UNRECORDED};
use crate::core::TextId;
use crate::formula::{Atom, F, Form, TRUE};
use crate::names::NameId;

/// Steps taken; a completion that is further away is refused.
const MAX_STEPS: u64 = 1_000_000;

/// Bytes of a member with a comma in front, its name aside: `,"":0`.
const MEMBER: usize = 5;

/// Bytes of an item with a comma in front.
const ITEM: usize = 2;

/// Steps taken to find how long a value is at least.
const VALUE_STEPS: u64 = 20_000;

/// What a search for one completion has learnt.
struct Search {
    steps: u64,
    limit: u64,
    /// By its machine's state what a text needs.
    texts: FxHashMap<(TextId, u32), Rest>,
    /// Bytes that more members and items need at least.
    owed: FxHashMap<OwesId, usize>,
}

/// What is left of a shortest text, decoded, once so much of it is read.
#[derive(Clone)]
struct Rest {
    bytes: Rc<[u8]>,
    read: usize,
    /// Whether it is spelled as it is.
    plain: bool,
}

impl Search {
    fn step(&mut self) -> Result<(), Error> {
        self.steps += 1;
        if self.steps > self.limit {
            let (needed, allowed) = (self.steps, self.limit);
            return Err(Error::Limit { resource: Resource::Steps, needed, allowed });
        }
        Ok(())
    }
}

impl Grown {
    /// A shortest continuation; the smallest of several.
    pub(super) fn shortest(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        let (texts, owed) = (FxHashMap::default(), FxHashMap::default());
        let search = &mut Search { steps: 0, limit: MAX_STEPS, texts, owed };
        let length = self.least_length(state, search)?;
        self.smallest(state, length, search)
    }

    /// How many bytes the shortest continuation has.
    fn least_length(&mut self, state: u32, search: &mut Search) -> Result<usize, Error> {
        let mut read = FxHashMap::from_iter([(self.alike(state), 0)]);
        let mut open = BTreeMap::from([(0, vec![(state, 0)])]);
        while let Some(mut least) = open.first_entry() {
            let Some((here, length)) = least.get_mut().pop() else {
                least.remove();
                continue;
            };
            if self.is_accepting(here) {
                return Ok(length);
            }
            if read.get(&self.alike(here)).is_some_and(|&other| other < length) {
                continue;
            }
            let least = self.needs(here, None, search)?;
            for byte in self.tried(here, search)? {
                search.step()?;
                let next = self.successor(here, byte)?;
                if next == DEAD {
                    continue;
                }
                let before = read.entry(self.alike(next)).or_insert(usize::MAX);
                if length + 1 < *before {
                    *before = length + 1;
                    let all = length + 1 + self.needs(next, Some((here, least)), search)?;
                    open.entry(all).or_default().push((next, length + 1));
                }
            }
        }
        Ok(0)
    }

    /// The smallest continuation of so many bytes, which is the least number.
    fn smallest(
        &mut self,
        state: u32,
        length: usize,
        search: &mut Search,
    ) -> Result<Vec<u8>, Error> {
        // How many bytes were too few to end from a place.
        let mut few: FxHashMap<Place, usize> = FxHashMap::default();
        let mut text = Vec::with_capacity(length);
        let mut way = vec![(state, self.tried(state, search)?)];
        while text.len() < length || way.last().is_some_and(|one| !self.is_accepting(one.0)) {
            let Some((here, bytes)) = way.last_mut() else { break };
            let (here, left) = (*here, length - text.len());
            let Some(byte) = bytes.next().filter(|_| left > 0) else {
                few.insert(self.alike(here), left);
                way.pop();
                text.pop();
                continue;
            };
            search.step()?;
            let next = self.successor(here, byte)?;
            let before = Some((here, left));
            let refused = next == DEAD
                || self.needs(next, before, search)? >= left
                || few.get(&self.alike(next)).is_some_and(|&few| few >= left - 1);
            if !refused {
                text.push(byte);
                way.push((next, self.tried(next, search)?));
            }
        }
        Ok(text)
    }

    fn tried(&mut self, state: u32, search: &mut Search) -> Result<std::vec::IntoIter<u8>, Error> {
        Ok(self.worth_trying(state, search)?.iter().collect::<Vec<u8>>().into_iter())
    }

    /// A state without what makes no difference to how it is completed: the text of a name that is
    /// like no other.
    fn alike(&self, state: u32) -> Place {
        let mut place = *self.states.get(state);
        if let Frame::Name { object, naming, reach, escape, .. } = place.frame
            && place.record == UNRECORDED
            && reach.from == reach.to
            && self.has_plenty_names(naming, reach.classes)
        {
            place.frame = Frame::Name { object, naming, text: UNRECORDED, reach, escape };
        }
        place
    }

    /// Bytes that every continuation has at least; within a text that may be taken from what the
    /// state before needs, which is much to find out.
    fn needs(
        &mut self,
        state: u32,
        before: Option<(u32, usize)>,
        search: &mut Search,
    ) -> Result<usize, Error> {
        let frame = self.states.get(state).frame;
        if let (Frame::Text { language, state, .. }, Some((before, least))) = (frame, before)
            && let Frame::Text { .. } = self.states.get(before).frame
            && !search.texts.contains_key(&(language, state.number()))
        {
            return Ok(least.saturating_sub(1));
        }
        let (own, mut below) = match frame {
            Frame::Done => return Ok(0),
            Frame::Value { owes, below, .. } => {
                let must = self.parts.owes.get(owes.0).formulas[0];
                (self.least_value(must, search), below)
            }
            Frame::Word { rest, below, .. } => (rest.len(), below),
            Frame::Number { below, .. } => (0, below),
            Frame::Text { language, state, escape: Escape::None, below, .. } => {
                let rest = self.rest_of_text(language, state, search)?;
                (rest.bytes.len() - rest.read + 1, below)
            }
            Frame::Text { below, .. } => (2, below),
            Frame::Name { object, text, .. } => {
                let Frame::Object { owes, below, .. } = *self.frames.get(object.0) else {
                    return Ok(0);
                };
                // What was read, its quote too, may be of a name that is owed, of which the comma
                // is read as well.
                let read = self.records.get(text).2 as usize + 2;
                let owed = if text == UNRECORDED { 0 } else { self.owed(owes, search)? };
                (owed.saturating_sub(read).max(3) + 1, below)
            }
            Frame::Object { owes, mode, below, .. } => {
                let owed = self.owed(owes, search)?;
                let own = match mode {
                    Mode::First => owed.saturating_sub(1),
                    Mode::Next => owed.saturating_sub(1).max(4),
                    Mode::Colon => 2 + owed,
                    Mode::Inside | Mode::After => owed,
                };
                (own + 1, below)
            }
            Frame::Array { owes, mode, below, .. } => {
                let comma = usize::from(mode == Mode::First);
                (self.owed(owes, search)?.saturating_sub(comma) + 1, below)
            }
        };
        let mut all = own;
        loop {
            below = match *self.frames.get(below.0) {
                Frame::Object { owes, below, .. } | Frame::Array { owes, below, .. } => {
                    all += self.owed(owes, search)? + 1;
                    below
                }
                _ => return Ok(all),
            };
        }
    }

    /// The rest of a shortest text, the smallest of several.
    fn rest_of_text(
        &self,
        language: TextId,
        state: StateId,
        search: &mut Search,
    ) -> Result<Rest, Error> {
        if let Some(known) = search.texts.get(&(language, state.number())) {
            return Ok(known.clone());
        }
        let machine = self.core.text(language);
        let mut bytes = machine.shortest(state)?;
        if bytes.iter().all(|&byte| byte < b' ') {
            // Spelled, blanks are shorter, and come before all others.
            let blanks = vec![b' '; bytes.len()];
            if machine.walk(state, &blanks)?.is_ok_and(|end| machine.is_accepting(end)) {
                bytes = blanks;
            }
        }
        let is_plain = |&byte: &u8| (b' '..0x7F).contains(&byte) && !b"\"\\".contains(&byte);
        let plain = bytes.iter().all(is_plain);
        let bytes: Rc<[u8]> = bytes.into();
        let mut at = Some(state);
        for read in 0..=bytes.len() {
            let Some(here) = at else { break };
            let rest = Rest { bytes: Rc::clone(&bytes), read, plain };
            search.texts.insert((language, here.number()), rest);
            at = match bytes.get(read) {
                Some(&byte) => machine.step(here, byte)?,
                None => None,
            };
        }
        Ok(Rest { bytes, read: 0, plain })
    }

    /// Bytes that more members or items have at least, each with a comma in front.
    fn owed(&mut self, owes: OwesId, search: &mut Search) -> Result<usize, Error> {
        if let Some(&known) = search.owed.get(&owes) {
            return Ok(known);
        }
        let must = self.parts.owes.get(owes.0).formulas[0];
        let parts = self.core.formulas.conjuncts(must);
        let (mut named, mut counted) = (0, 0);
        for &part in &parts {
            let (count, each, spared) = match self.core.formulas.get(part).clone() {
                Form::Atom(Atom::Owed(names)) => {
                    let mut all = 0;
                    for name in names {
                        all += MEMBER - 1 + self.core.schema.names.get(name).len();
                        all += self.least_member(&parts, name, search)?;
                    }
                    named = named.max(all);
                    continue;
                }
                // One name at most is empty.
                Form::Atom(Atom::MoreMembers(count)) => (count, MEMBER + 1, 1),
                Form::Atom(Atom::MoreItems(count)) => (count, ITEM, 0),
                _ => continue,
            };
            let all = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(each);
            counted = counted.max(all.saturating_sub(spared));
        }
        let least = named.max(counted).min(1 << 32);
        search.owed.insert(owes, least);
        Ok(least)
    }

    /// Bytes that the value of a member has at least, given the conjuncts that its object owes.
    fn least_member(
        &mut self,
        parts: &[F],
        name: NameId,
        search: &mut Search,
    ) -> Result<usize, Error> {
        let mut value = Vec::new();
        for &part in parts {
            if let Form::Atom(Atom::Members(rules)) = self.core.formulas.get(part).clone() {
                value.push(self.core.rules_at(&rules, name)?);
            }
        }
        let value = self.core.formulas.and(value);
        Ok(self.least_value(value, search))
    }

    /// Bytes that a value has at least that is looked for in few steps.
    fn least_value(&mut self, value: F, search: &mut Search) -> usize {
        if value == TRUE {
            return 1;
        }
        if let Some(&known) = self.known.least.get(&value) {
            return known;
        }
        // Whoever asks for it on the way has to do with this.
        self.known.least.insert(value, 1);
        let owes = Owes { formulas: [value].into(), asked: [].into(), goal: TRUE };
        let frame = Frame::Value { owes: self.parts.owes(owes), blanks: 0, below: DONE };
        let state = self.states.intern(Place { frame, record: UNRECORDED });
        let limit = search.limit;
        search.limit = limit.min(search.steps + VALUE_STEPS);
        let least = self.least_length(state, search).unwrap_or(1).max(1);
        search.limit = limit;
        self.known.least.insert(value, least);
        least
    }

    /// Bytes that the smallest of the shortest continuations may begin with.
    fn worth_trying(&mut self, state: u32, search: &mut Search) -> Result<ByteSet, Error> {
        let Place { frame, record } = *self.states.get(state);
        // Where items must be distinct, what is in them matters.
        let free = record == UNRECORDED;
        let only = match frame {
            Frame::Text { language, state, asked: NOT_ASKED, escape: Escape::None, .. } if free => {
                let rest = self.rest_of_text(language, state, search)?;
                rest.plain.then(|| rest.bytes.get(rest.read).copied().unwrap_or(b'"'))
            }
            Frame::Object { owes, mode: Mode::First | Mode::After, .. } => {
                let ends = free && self.is_plain(owes) && self.ended(owes).is_some();
                ends.then_some(b'}')
            }
            Frame::Name { naming, text, reach, escape: Escape::None, .. } if free => {
                let read = self.records.get(text).2 as usize;
                let owed = self.along_owed(naming, reach, read)?;
                if owed.is_none() && self.takes_any(reach.classes) {
                    return Ok(self.along_known(naming, reach, read));
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
        let spelled = matches!(frame, Frame::Text { .. } | Frame::Name { .. });
        (0..=255).filter(|&byte| spelled || !is_blank(byte)).for_each(|byte| set.insert(byte));
        Ok(set)
    }

    /// The quote, the bytes with which known names go on, and the smallest with which none does:
    /// behind it names are all alike, and free.
    fn along_known(&self, naming: NamingId, reach: Reach, read: usize) -> ByteSet {
        let ascii = self.core.options.escapes == Escapes::Ascii;
        let mut set = ByteSet::default();
        set.insert(b'"');
        for at in reach.from..reach.to {
            let Some(&byte) = self.known_name(naming, at).as_bytes().get(read) else { continue };
            let escaped = byte < 0x20 || matches!(byte, b'"' | b'\\') || (byte >= 0x80 && ascii);
            set.insert(if escaped { b'\\' } else { byte });
        }
        let plain = (b' '..0x7F).find(|&byte| byte != b'\\' && !set.contains(byte));
        match plain {
            Some(byte) => set.insert(byte),
            None => (0..=255).for_each(|byte| set.insert(byte)),
        }
        set
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
