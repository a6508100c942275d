//! Signatures: what tokens see of a mask class, in terms that all schemas share.
//!
//! ```text
//! class ──► mode, mark, required of the value, names in tokens ────┐
//!           parent: next part, may it end ──► its parent ──► …     ├──► 128-bit hash
//!           layout, escapes, exponents ────────────────────────────┘
//! ```
//!
//! Classes with equal signatures have equal masks, whatever their schemas, so the vocabulary knows
//! the mask of a new schema's class from another. A class has no signature where tokens see
//! anything else: names of containers that tokens reach into, names that must be one of many, arrays
//! that compare items or whose counts tokens see, verdicts.

use formalm_core::{Error, MaskClassId, keyed_hash};
use formalm_json::escapes::EscapePolicy;

use crate::json::property_names::UNMENTIONED_NAME;
use crate::machine::frame::{
    CharState, ContainerState, DONE, FRESH, Frame, FrameId, NameCandidates, ObligationId,
    ReaderPosition,
};
use crate::machine::residuals::NO_VERDICTS;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::spelling::json::mask_class::continuation::{
    ContainerEnd, ContinuationQuery, NextPart, PropertyStart,
};
use crate::machine::spelling::json::mask_class::isolated_value::ValueSignature;
use crate::machine::spelling::json::mask_class::lookahead::LookaheadState;
use crate::machine::spelling::json::mask_class::part::number_digest;
use crate::machine::spelling::json::whitespace::WhitespaceGap;
use crate::machine::{LazyTables, NO_RECORD};

/// The place of a class in the innermost open value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// Before a value: whether it comes after a colon, and what is required of it.
    Value(bool, ValueSignature),
    /// In a number: what is required of it, and what was read.
    Number(u128),
    Literal(&'static [u8]),
    /// In a string: the number of characters that must and may follow.
    String(u32, Option<u32>),
    /// Before a name, and whether an object is open without one.
    NextName(bool),
    Name,
    /// In a name that may be a known one, or must be.
    BegunName,
    /// Before a colon.
    Colon,
    AfterProperty,
    FirstItem,
    AfterItem,
}

/// A part of a signature: `None` where it has none.
type Part = Result<Option<u128>, Error>;

/// A name that tokens distinguish from others, and what follows it if it may come.
type DistinctName = (Box<[u8]>, Option<u128>);

impl LookaheadState<'_> {
    /// Returns a hash of everything that tokens see of a class; `None` where that is particular to
    /// the schema.
    pub(crate) fn signature(&mut self, class: MaskClassId) -> Part {
        let position = self.position(class);
        if position.record != NO_RECORD || self.tables.masks.continuations.tokens.is_empty() {
            return Ok(None);
        }
        let is_free = self.is_free_string(position);
        let tables = &mut *self.tables;
        let deepest = match position.frame {
            Frame::Name { object, .. } => object,
            frame => frame.parent().unwrap_or(DONE),
        };
        if tables.reader.depth_matters(deepest, tables.abstraction.max_token_len) {
            return Ok(None);
        }
        tables.reader.values.core.base.reset_steps();
        let found = tables.frame_signature(position.frame, is_free);
        if found.is_err() {
            tables.reader.values.core.answers.abandon();
        }
        match found {
            Err(error @ Error::Deadline { .. }) => Err(error),
            // Whoever needs this answer gets the error.
            found => Ok(found.unwrap_or(None)),
        }
    }
}

impl LazyTables {
    /// Returns the signature of a frame, all of its parents and the options.
    fn frame_signature(&mut self, frame: Frame, is_free: bool) -> Part {
        let (place, mark, parts) = match frame {
            Frame::Value { obligation, mark, parent } => {
                let Some(value) = self.value_signature(obligation) else { return Ok(None) };
                let (gap, _) = WhitespaceGap::before_value(&self.reader.values.frames, parent);
                let place = Place::Value(gap == WhitespaceGap::AfterColon, value);
                (place, mark, self.after_value_in(parent)?)
            }
            Frame::Number { obligation, digits, parent } => {
                let Some(number) = number_digest(&mut self.reader, obligation, digits) else {
                    return Ok(None);
                };
                (Place::Number(number), FRESH, self.after_value_in(parent)?)
            }
            Frame::Literal { rest, verdicts: NO_VERDICTS, parent } => {
                (Place::Literal(rest), FRESH, self.after_value_in(parent)?)
            }
            Frame::String { language, state, queries, escape: CharState::NONE, parent }
                if queries == NO_QUERIES =>
            {
                let count =
                    if is_free { Some((0, None)) } else { self.remaining_chars(language, state)? };
                let Some((min, max)) = count else { return Ok(None) };
                (Place::String(min, max), FRESH, self.after_value_in(parent)?)
            }
            Frame::Name { .. } if is_free => {
                let Frame::Name { next_names, candidates, .. } = frame else { return Ok(None) };
                let drops = self.abstraction.drops_name(
                    &self.reader.values,
                    next_names,
                    candidates.classes,
                );
                let known = candidates.from < candidates.to;
                let names = if drops && !known { self.other_names(frame)? } else { None };
                (Place::Name, FRESH, names)
            }
            Frame::Name { escape: CharState::NONE, .. } => {
                (Place::BegunName, FRESH, self.begun_name(frame)?)
            }
            Frame::Object { mode: ContainerState::AfterName, mark, .. }
                if !self.masks.continuations.seen.values =>
            {
                (Place::Colon, mark, Some(0))
            }
            Frame::Object { mode: ContainerState::AfterName, mark, .. } => {
                let start = self.query().property_after_name(frame)?;
                let start = match start {
                    Some(start) => self.property_signature(start)?,
                    None => None,
                };
                (Place::Colon, mark, start)
            }
            Frame::Object { mode: ContainerState::AfterValue, mark, parent, .. } => {
                (Place::AfterProperty, mark, self.after_property(frame, parent)?)
            }
            Frame::Object { mode, mark, .. } if mode != ContainerState::InValue => {
                let is_first = mode == ContainerState::AfterOpen;
                (Place::NextName(is_first), mark, self.next_name(frame)?)
            }
            Frame::Array { obligation, mode, mark, from: 0, parent }
                if mode != ContainerState::InValue =>
            {
                let place = match mode {
                    ContainerState::AfterOpen => Place::FirstItem,
                    _ => Place::AfterItem,
                };
                let is_first = mode == ContainerState::AfterOpen;
                (place, mark, self.items(obligation, parent, is_first)?)
            }
            _ => return Ok(None),
        };
        Ok(parts.map(|parts| keyed_hash(&(place, mark, parts, self.spelling_key()))))
    }

    fn query(&mut self) -> ContinuationQuery<'_> {
        let LazyTables { reader, abstraction, masks, .. } = self;
        ContinuationQuery { cache: &mut masks.continuations, reader, abstraction }
    }

    /// Returns what is required of a value, if it is the same wherever the value begins: its types,
    /// of scalars anything else, and of containers what tokens see before a name or a second item.
    fn value_signature(&mut self, obligation: ObligationId) -> Option<ValueSignature> {
        let seen = self.masks.continuations.seen;
        self.masks.isolated.value_signature(&mut self.reader, (seen, 0), obligation)
    }

    /// Returns the signature of what comes after the value in a frame.
    fn after_value_in(&mut self, parent: FrameId) -> Part {
        let mut chain = Vec::new();
        let mut at = parent;
        let mut around = loop {
            if at == DONE {
                break Some(0);
            }
            if let Some(&known) = self.masks.continuations.signatures.get(&at) {
                break known;
            }
            chain.push(at);
            at = match self.reader.values.frames.get(at) {
                // What a container reports about itself is seen in its parent.
                Frame::Object { obligation, parent, .. }
                | Frame::Array { obligation, parent, .. }
                    if self.reader.values.residuals.has_no_queries(obligation) =>
                {
                    parent
                }
                _ => break None,
            };
        };
        // Outer frames come first: a recursion would be as deep as the input.
        for id in chain.into_iter().rev() {
            if around.is_some() {
                around = self.continuation_signature(id)?;
            }
            self.masks.continuations.signatures.insert(id, around);
        }
        Ok(around)
    }

    /// Returns the signature of what comes after the value in a frame whose parents have theirs.
    fn continuation_signature(&mut self, id: FrameId) -> Part {
        let frame = self.reader.values.frames.get(id);
        let (Frame::Object { obligation, .. } | Frame::Array { obligation, from: 0, .. }) = frame
        else {
            return Ok(None);
        };
        let is_array = matches!(frame, Frame::Array { .. });
        if is_array && self.reader.values.has_unique_items(obligation) {
            return Ok(None);
        }
        match self.reader.values.close_value(id, NO_VERDICTS, NO_RECORD)? {
            Some(ReaderPosition {
                frame: Frame::Array { obligation, parent, mark, .. }, ..
            }) => {
                let items = self.items(obligation, parent, false)?;
                Ok(items.map(|items| keyed_hash(&(true, mark, items))))
            }
            Some(ReaderPosition { frame: frame @ Frame::Object { parent, mark, .. }, .. }) => {
                let next = self.after_property(frame, parent)?;
                Ok(next.map(|next| keyed_hash(&(false, mark, next))))
            }
            _ => Ok(None),
        }
    }

    /// Returns the signature of an object after a property value.
    fn after_property(&mut self, object: Frame, parent: FrameId) -> Part {
        let Some(continuation) = self.query().continuation_of(object, parent)? else {
            return Ok(None);
        };
        let next = match continuation.next {
            NextPart::Nothing => 0u8,
            NextPart::AnyName => 1,
            NextPart::SomeName => 2,
            NextPart::Names(_) | NextPart::Items(_) | NextPart::SomeItem | NextPart::NoItem => {
                return Ok(None);
            }
        };
        let end = match continuation.end {
            ContainerEnd::Never => None,
            ContainerEnd::Plain(_) => match self.after_value_in(parent)? {
                None => return Ok(None),
                around => around,
            },
            ContainerEnd::EnumIndex(..) => return Ok(None),
        };
        Ok(Some(keyed_hash(&(next, end))))
    }

    /// Returns the signature of an array between two items, if all further items are alike or no
    /// token sees them.
    fn items(&mut self, obligation: ObligationId, parent: FrameId, is_first: bool) -> Part {
        let values = &mut self.reader.values;
        if !values.residuals.has_no_queries(obligation) || values.has_unique_items(obligation) {
            return Ok(None);
        }
        let end = match values.end_verdicts(obligation) {
            None => None,
            Some(NO_VERDICTS) => match self.after_value_in(parent)? {
                None => return Ok(None),
                around => around,
            },
            Some(_) => return Ok(None),
        };
        let values = &mut self.reader.values;
        if !is_first && !self.masks.continuations.seen.items {
            return Ok(Some(keyed_hash(&("items", values.may_start_item(obligation)?, end))));
        }
        let item = match values.residuals.start_item(&mut values.core, obligation)? {
            None => None,
            Some((array, item)) => {
                // Such an item reports nothing to its array.
                let Some(item) = self.value_signature(item) else { return Ok(None) };
                let values = &mut self.reader.values;
                let after =
                    values.residuals.after_plain_child(&mut values.core, array, NO_VERDICTS)?;
                if after != obligation {
                    return Ok(None);
                }
                Some(item)
            }
        };
        Ok(Some(keyed_hash(&(item, end))))
    }

    /// Returns the signature of an object before a name, if any name may come.
    fn next_name(&mut self, object: Frame) -> Part {
        let Frame::Object { obligation, mode, parent, .. } = object else { return Ok(None) };
        let end = match self.reader.values.end_verdicts(obligation) {
            _ if mode != ContainerState::AfterOpen => None,
            None => None,
            Some(NO_VERDICTS) => match self.after_value_in(parent)? {
                None => return Ok(None),
                around => around,
            },
            Some(_) => return Ok(None),
        };
        let at = ReaderPosition { frame: object, record: NO_RECORD };
        let Some(begun) = self.reader.values.start_name(at, FRESH)? else { return Ok(None) };
        let Frame::Name { next_names, candidates, .. } = begun.frame else { return Ok(None) };
        let values = &self.reader.values;
        let is_open = values.strings.allows_any_name(&values.core, candidates.classes)
            && values.strings.has_constant_verdicts(&values.core, candidates.classes)
            && self.abstraction.drops_name(values, next_names, candidates.classes);
        // Known names have other spellings than their own if any character may be escaped.
        if !is_open || values.core.options.escapes == EscapePolicy::Any {
            return Ok(None);
        }
        // What follows a name, if a token that begins before it reaches that far.
        let known = &self.masks.continuations;
        let sees_values =
            known.seen.values && known.tokens.iter().any(|tokens| tokens.some_reach_values());
        let others = if sees_values { self.other_names(begun.frame)? } else { Some(0) };
        let Some(others) = others else { return Ok(None) };
        let mut names: Vec<DistinctName> = Vec::new();
        for at in candidates.from..candidates.to {
            let name =
                self.reader.values.name_tables.known_name(&self.reader.values.core, next_names, at);
            // Names that need escapes are not looked up.
            let is_plain = |byte: u8| (0x20..0x80).contains(&byte) && !b"\"\\".contains(&byte);
            if !name.bytes().all(is_plain) {
                return Ok(None);
            }
            let tokens = &self.masks.continuations.tokens;
            if !tokens.iter().any(|tokens| tokens.contains_quoted(name.as_bytes())) {
                continue;
            }
            let raw = Box::from(name.as_bytes());
            let start = match self.reader.values.names().known_name_viable(next_names, at)? {
                false => None,
                true if !sees_values => Some(0),
                true => {
                    let id = self.reader.values.name_tables.get(next_names).known[at as usize];
                    let start = self.query().property_start_of(begun.frame, (id, id))?;
                    let Some(start) = start else { return Ok(None) };
                    match self.property_signature(start)? {
                        None => return Ok(None),
                        start => start,
                    }
                }
            };
            names.push((raw, start));
        }
        Ok(Some(keyed_hash(&(others, end, names))))
    }

    /// Returns the signature of a name that may become a known one, or must, and of what follows.
    fn begun_name(&mut self, frame: Frame) -> Part {
        let Frame::Name { candidates, .. } = frame else { return Ok(None) };
        if self.reader.values.core.options.escapes == EscapePolicy::Any {
            return Ok(None);
        }
        let Some(is_open) = self.query().sees_few_suffixes(frame)? else { return Ok(None) };
        let values = &self.reader.values;
        if is_open
            && !(values.strings.any_name_may_end(&values.core, candidates.classes)
                && values.strings.has_constant_verdicts(&values.core, candidates.classes))
        {
            return Ok(None);
        }
        let others = if is_open { self.other_names(frame)? } else { Some(0) };
        let Some(others) = others else { return Ok(None) };
        let mut names: Vec<(Box<[u8]>, Option<u128>)> = Vec::new();
        for (rest, end) in self.query().known_suffixes(frame, is_open)? {
            let end = match end {
                None => None,
                Some(None) => Some(0),
                Some(Some(start)) => match self.property_signature(start)? {
                    None => return Ok(None),
                    start => start,
                },
            };
            names.push((self.masks.continuations.names.rests.get(rest).clone(), end));
        }
        Ok(Some(keyed_hash(&(is_open, others, names))))
    }

    /// Returns the signature of what follows the names that are not known.
    fn other_names(&mut self, frame: Frame) -> Part {
        if !self.masks.continuations.seen.values {
            return Ok(Some(0));
        }
        let Frame::Name { next_names, candidates, .. } = frame else { return Ok(None) };
        let candidates = NameCandidates { from: 0, to: 0, ..candidates };
        let like = self.reader.values.names().class_example(next_names, candidates);
        let Some(like) = like else { return Ok(None) };
        match self.query().property_start_of(frame, (UNMENTIONED_NAME, like))? {
            Some(start) => self.property_signature(start),
            None => Ok(None),
        }
    }

    /// Returns the signature of a property value and what comes after it.
    fn property_signature(&mut self, start: PropertyStart) -> Part {
        let Some(value) = self.value_signature(start.child) else { return Ok(None) };
        let after = self.after_value_in(start.object)?;
        Ok(after.map(|after| keyed_hash(&(value, after))))
    }
}
