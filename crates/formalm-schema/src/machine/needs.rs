//! How many bytes the members through a state have at least.

use std::rc::Rc;

use formalm_automata::spelling::Escape;
use formalm_automata::{Error, Machine, Resource, StateId};
use rustc_hash::FxHashMap;

use super::frame::{DONE, Frame, Mode, Owes, OwesId, Place};
use super::gaps::Gap;
use super::{Grown, UNRECORDED};
use crate::core::TextId;
use crate::formula::{Atom, F, Form, TRUE};
use crate::names::NameId;

/// Bytes of a member with a comma in front, its name aside: `,"":0`.
const MEMBER: usize = 5;

/// Bytes of an item with a comma in front.
const ITEM: usize = 2;

/// Steps taken to find how long a value is at least.
const VALUE_STEPS: u64 = 20_000;

/// What a search for one completion has learnt.
pub(super) struct Search {
    steps: u64,
    limit: u64,
    /// By its machine's state what a text needs.
    texts: FxHashMap<(TextId, u32), Rest>,
    /// Bytes that more members and items need at least.
    owed: FxHashMap<OwesId, usize>,
}

/// What is left of a shortest text, decoded, once so much of it is read.
#[derive(Clone)]
pub(super) struct Rest {
    bytes: Rc<[u8]>,
    read: usize,
    /// Whether it is spelled as it is.
    plain: bool,
}

impl Rest {
    /// The next byte, the quote at the end; none where it is not spelled as it is.
    pub(super) fn next(&self) -> Option<u8> {
        self.plain.then(|| self.bytes.get(self.read).copied().unwrap_or(b'"'))
    }
}

impl Search {
    /// A search that takes at most so many steps.
    pub(super) fn new(limit: u64) -> Search {
        Search { steps: 0, limit, texts: FxHashMap::default(), owed: FxHashMap::default() }
    }

    pub(super) fn step(&mut self) -> Result<(), Error> {
        self.steps += 1;
        if self.steps > self.limit {
            let (needed, allowed) = (self.steps, self.limit);
            return Err(Error::Limit { resource: Resource::Steps, needed, allowed });
        }
        Ok(())
    }
}

impl Grown {
    /// Bytes that every continuation has at least; within a text that may be taken from what the
    /// state before needs, which is much to find out.
    pub(super) fn needs(
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
            Frame::Value { owes, blanks, below } => {
                let must = self.parts.owes.get(owes.0).formulas[0];
                let (gap, depth) = self.gap_of_value(below);
                let gap = match below {
                    DONE => 0,
                    _ => self.gap_length(gap, depth).saturating_sub(blanks.into()),
                };
                (gap + self.least_value(must, search), below)
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
                let read = self.records.get(text).2 as usize + 1 + self.comma();
                let owed = if text == UNRECORDED { 0 } else { self.owed(owes, search)? };
                let close = self.gap_length(Gap::Close, self.depth(below) + 1);
                (owed.saturating_sub(read).max(3) + close + 1, below)
            }
            Frame::Object { owes, mode, blanks, below, .. }
            | Frame::Array { owes, mode, blanks, below, .. } => {
                let owed = self.owed(owes, search)?;
                let own = match mode {
                    Mode::First => owed.saturating_sub(self.comma()),
                    Mode::Next => owed.saturating_sub(self.comma()).max(4),
                    Mode::Colon => 2 + owed,
                    Mode::Inside | Mode::After => owed,
                };
                let close = self.gap_length(Gap::Close, self.depth(below) + 1);
                let close = match (mode, self.gap_begun(blanks)) {
                    (Mode::First, begun) if !begun && owed == 0 => 0,
                    (Mode::After, true) => close.saturating_sub(blanks.into()),
                    _ => close,
                };
                (own + close + 1, below)
            }
        };
        let mut all = own;
        loop {
            below = match *self.frames.get(below.0) {
                Frame::Object { owes, below: next, .. }
                | Frame::Array { owes, below: next, .. } => {
                    all += self.owed(owes, search)? + 1;
                    all += self.gap_length(Gap::Close, self.depth(below));
                    next
                }
                _ => return Ok(all),
            };
        }
    }

    /// The rest of a shortest text, the smallest of several.
    pub(super) fn rest_of_text(
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

    /// Bytes of a comma and the blanks of a layout behind it at least, wherever it stands.
    fn comma(&self) -> usize {
        1 + self.gap_length(Gap::Next, 1)
    }

    fn colon(&self) -> usize {
        1 + self.gap_length(Gap::BeforeColon, 1) + self.gap_length(Gap::AfterColon, 1)
    }

    /// Bytes that more members or items have at least, each with a comma in front.
    fn owed(&mut self, owes: OwesId, search: &mut Search) -> Result<usize, Error> {
        if let Some(&known) = search.owed.get(&owes) {
            return Ok(known);
        }
        let must = self.parts.owes.get(owes.0).formulas[0];
        let parts = self.core.formulas.conjuncts(must);
        let (mut named, mut counted) = (0, 0);
        let (comma, colon) = (self.comma() - 1, self.colon() - 1);
        for &part in &parts {
            let (count, each, spared) = match self.core.formulas.get(part).clone() {
                Form::Atom(Atom::Owed(names)) => {
                    let mut all = 0;
                    for name in names {
                        all += MEMBER - 1 + comma + colon + self.core.schema.names.get(name).len();
                        all += self.least_member(&parts, name, search)?;
                    }
                    named = named.max(all);
                    continue;
                }
                // One name at most is empty.
                Form::Atom(Atom::MoreMembers(count)) => (count, MEMBER + 1 + comma + colon, 1),
                Form::Atom(Atom::MoreItems(count)) => (count, ITEM + comma, 0),
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
}
