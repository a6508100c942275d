//! The continuation of a value: the JSON after it, as far as a token distinguishes it.
//!
//! After a value, a token closes containers, or reads a comma and begins the next item or name. An
//! object is therefore known by whether another name may come and whether it may end. What came
//! before and what is still required do not matter, unless some token continues into a name that
//! does. Values whose parents have equal continuations have equal masks.

use std::sync::Arc;

use formalm_core::{ByteSet, CompactMap, Error};
use formalm_json::{NameTokens, escapes::EscapePolicy};

use crate::formula::TRUE;
use crate::machine::NO_RECORD;
use crate::machine::frame::{
    ContainerState, DONE, FRESH, Frame, FrameId, NextNamesId, ObligationId, ReaderPosition,
    VerdictsId,
};
use crate::machine::mask_class::abstraction::MaskAbstraction;
use crate::machine::reader::Reader;
use crate::machine::residuals::NO_VERDICTS;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::spelling::json::mask_class::name_continuation::NameContinuations;
use crate::machine::spelling::json::whitespace::{GapRules, WhitespaceGap};

/// Representatives of frames with equal continuations.
#[derive(Debug, Default)]
pub(crate) struct ContinuationCache {
    /// The parts of property names in tokens, one table for each vocabulary.
    pub(crate) tokens: Vec<Arc<NameTokens>>,
    /// What some token contains besides the end of a part.
    pub(crate) seen: SeenParts,
    known: CompactMap<ValueContinuation, FrameId>,
    parents: CompactMap<FrameId, FrameId>,
    /// Objects after a property value, and after a name.
    after: CompactMap<ValueContinuation, Frame>,
    /// `None` where tokens see nothing of values.
    colons: CompactMap<Option<PropertyStart>, Frame>,
    pub(crate) names: NameContinuations,
    /// The signatures of what comes after the values in frames.
    pub(crate) signatures: CompactMap<FrameId, Option<u128>>,
}

impl ContinuationCache {
    /// Adds the tokens of a vocabulary. Returns `true` if it is new.
    pub(crate) fn add(&mut self, names: Arc<NameTokens>, gaps: &GapRules) -> bool {
        let is_new = !self.tokens.iter().any(|known| Arc::ptr_eq(known, &names));
        if is_new {
            self.tokens.push(names);
            self.seen = SeenParts::of(&self.tokens, gaps);
        }
        is_new
    }

    /// Drops all representatives.
    pub(crate) fn clear(&mut self) {
        *self = ContinuationCache {
            tokens: std::mem::take(&mut self.tokens),
            seen: self.seen,
            ..ContinuationCache::default()
        };
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.known.table_bytes()
            + self.parents.table_bytes()
            + self.after.table_bytes()
            + self.colons.table_bytes()
            + self.names.bytes()
            + self.signatures.table_bytes()
    }
}

/// What tokens contain besides the end of a part and the whitespace after it. Whitespace between
/// the parts of an instance is fixed by a layout, and few tokens have any inside.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeenParts {
    /// The first bytes of names after a comma. `None` if a token contains a whole name with its
    /// colon, or if nothing is known.
    names: Option<ByteSet>,
    /// Items after a comma.
    pub(crate) items: bool,
    /// Values after a colon.
    pub(crate) values: bool,
    /// Names behind the brace and the quote of an object that opens.
    pub(crate) first_names: bool,
}

impl SeenParts {
    fn of(tokens: &[Arc<NameTokens>], gaps: &GapRules) -> SeenParts {
        let after_comma = |text: &[u8]| gaps.may_fill(WhitespaceGap::Next, text);
        let after_colon = |text: &[u8]| gaps.may_fill(WhitespaceGap::AfterColon, text);
        let names = tokens.iter().try_fold(ByteSet::default(), |all, tokens| {
            Some(all.union(tokens.first_name_bytes(after_comma)?))
        });
        let items = tokens.iter().any(|tokens| tokens.some_reach_beyond_comma(after_comma));
        let values = tokens.iter().any(|tokens| tokens.some_reach_beyond_colon(after_colon));
        let first_names = tokens.iter().any(|tokens| tokens.some_open_names());
        SeenParts { names, items, values, first_names }
    }
}

/// The behavior of a frame after the value in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ValueContinuation {
    pub(crate) next: NextPart,
    pub(crate) end: ContainerEnd,
}

/// The part that may come after a comma.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NextPart {
    Nothing,
    /// Any name, and tokens see no more of it than its beginning.
    AnyName,
    /// Names of which no token contains more than the quote.
    SomeName,
    Names(NextNamesId),
    Items(ObligationId),
    /// Items of which tokens see no more than the comma, and none.
    SomeItem,
    NoItem,
}

/// The frame after the end of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ContainerEnd {
    Never,
    Plain(FrameId),
    EnumIndex(FrameId, VerdictsId),
}

/// The start of a property value: its obligation, and the representative of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PropertyStart {
    pub(crate) child: ObligationId,
    pub(crate) object: FrameId,
}

/// Finds representatives of positions and frames with equal continuations.
pub(crate) struct ContinuationQuery<'a> {
    pub(crate) cache: &'a mut ContinuationCache,
    pub(crate) reader: &'a mut Reader,
    pub(crate) abstraction: &'a MaskAbstraction,
}

impl ContinuationQuery<'_> {
    /// Returns the representative of all positions with equal masks; the position itself if finding
    /// that exceeds the step limit.
    pub(crate) fn class_representative(&mut self, position: ReaderPosition) -> ReaderPosition {
        let ReaderPosition { frame, record } = position;
        if record != NO_RECORD || self.cache.tokens.is_empty() {
            return position;
        }
        self.reader.values.core.base.reset_steps();
        match self.frame_representative(frame) {
            Ok(frame) => ReaderPosition { frame, record },
            Err(_) => {
                // Whoever needs this answer gets the error.
                self.reader.values.core.answers.abandon();
                position
            }
        }
    }

    /// Replaces the parent of a frame by its representative, or the whole frame between the parts
    /// of an object.
    fn frame_representative(&mut self, mut frame: Frame) -> Result<Frame, Error> {
        match frame {
            Frame::Name { .. } => return self.name_representative(frame),
            Frame::Object { mode: ContainerState::AfterName, mark: FRESH, .. } => {
                let mut member = None;
                if self.cache.seen.values {
                    member = self.property_after_name(frame)?;
                    if member.is_none() {
                        return Ok(frame);
                    }
                }
                return Ok(*self.cache.colons.get_or_insert(member, frame));
            }
            Frame::Object { mode: ContainerState::AfterValue, mark: FRESH, parent, .. } => {
                let Some(continuation) = self.continuation_after(frame, parent)? else {
                    return Ok(frame);
                };
                return Ok(*self.cache.after.get_or_insert(continuation, frame));
            }
            _ => {}
        }
        match &mut frame {
            Frame::Value { obligation, parent, .. }
            | Frame::Number { obligation, parent, .. }
            | Frame::Object { obligation, parent, .. }
            | Frame::Array { obligation, parent, .. }
                if self.reader.values.residuals.has_no_queries(*obligation) =>
            {
                *parent = self.parent_representative(*parent);
            }
            Frame::String { queries: NO_QUERIES, parent, .. }
            | Frame::Literal { verdicts: NO_VERDICTS, parent, .. } => {
                *parent = self.parent_representative(*parent)
            }
            _ => {}
        }
        Ok(frame)
    }

    /// Returns what follows a name that was read, `None` if nothing may.
    pub(crate) fn property_after_name(
        &mut self,
        object: Frame,
    ) -> Result<Option<PropertyStart>, Error> {
        let Frame::Object { obligation, used_names, order, parent, .. } = object else {
            return Ok(None);
        };
        let Some((obligation, child)) =
            self.reader.values.names().start_property(obligation, used_names)?
        else {
            return Ok(None);
        };
        let (mode, mark) = (ContainerState::InValue, FRESH);
        let object = self.reader.values.frames.intern(Frame::Object {
            obligation,
            used_names,
            order,
            mode,
            mark,
            parent,
        });
        let object = if self.reader.values.residuals.has_no_queries(child) {
            self.parent_representative(object)
        } else {
            object
        };
        Ok(Some(PropertyStart { child, object }))
    }

    /// Returns the representative of all frames that behave alike after a value without queries.
    pub(crate) fn parent_representative(&mut self, id: FrameId) -> FrameId {
        if self.depends_on_depth(id) {
            return id;
        }
        // Outer frames come first: a recursion would be as deep as the input.
        let (mut chain, mut at) = (Vec::new(), id);
        let mut known = loop {
            if at == DONE {
                break DONE;
            }
            if let Some(&known) = self.cache.parents.get(&at) {
                break known;
            }
            chain.push(at);
            at = match self.reader.values.frames.get(at) {
                Frame::Object { obligation, parent, .. }
                | Frame::Array { obligation, parent, .. }
                    if self.reader.values.residuals.has_no_queries(obligation) =>
                {
                    parent
                }
                Frame::Object { parent, .. } | Frame::Array { parent, .. } => break parent,
                _ => break at,
            };
        };
        for id in chain.into_iter().rev() {
            self.reader.values.core.base.reset_steps();
            let continuation = match self.continuation(id, known) {
                Ok(continuation) => continuation,
                Err(error) => {
                    self.reader.values.core.answers.abandon();
                    if matches!(error, Error::Deadline { .. }) {
                        // The next call computes it again.
                        return id;
                    }
                    None
                }
            };
            known = continuation
                .map_or(id, |continuation| *self.cache.known.get_or_insert(continuation, id));
            self.cache.parents.insert(id, known);
        }
        known
    }

    /// Returns `true` if the depth of a frame, or of what a token may open in it, matters.
    pub(crate) fn depends_on_depth(&self, frame: FrameId) -> bool {
        self.reader.depth_matters(frame, self.abstraction.max_token_len)
    }

    /// Returns the continuation of a frame inside `parent`, a representative; `None` if nothing
    /// else has the same one.
    fn continuation(
        &mut self,
        id: FrameId,
        parent: FrameId,
    ) -> Result<Option<ValueContinuation>, Error> {
        if let Frame::Array { obligation, from, .. } = self.reader.values.frames.get(id)
            && (from > 0
                || self.reader.values.has_unique_items(obligation)
                || !self.reader.values.residuals.has_no_queries(obligation))
        {
            return Ok(None);
        }
        match self.reader.values.close_value(id, NO_VERDICTS, NO_RECORD)? {
            Some(ReaderPosition { frame: Frame::Array { obligation, .. }, .. })
                if self.cache.seen.items =>
            {
                // A token may end the array after a whole further item.
                Ok(Some(ValueContinuation {
                    next: NextPart::Items(obligation),
                    end: ContainerEnd::Plain(parent),
                }))
            }
            Some(ReaderPosition { frame: Frame::Array { obligation, .. }, .. }) => {
                let next = match self.reader.values.may_start_item(obligation)? {
                    true => NextPart::SomeItem,
                    false => NextPart::NoItem,
                };
                let end = match self.reader.values.end_verdicts(obligation) {
                    None => ContainerEnd::Never,
                    Some(NO_VERDICTS) => ContainerEnd::Plain(parent),
                    Some(_) => return Ok(None),
                };
                Ok(Some(ValueContinuation { next, end }))
            }
            Some(ReaderPosition { frame, .. }) => self.continuation_of(frame, parent),
            None => Ok(None),
        }
    }

    /// Returns the continuation of an object after a property value.
    fn continuation_after(
        &mut self,
        object: Frame,
        parent: FrameId,
    ) -> Result<Option<ValueContinuation>, Error> {
        if self.depends_on_depth(parent) {
            return Ok(None);
        }
        let asks = matches!(object, Frame::Object { obligation, .. } if !self.reader.values.residuals.has_no_queries(obligation));
        let common = if asks { parent } else { self.parent_representative(parent) };
        self.continuation_of(object, common)
    }

    /// Returns the continuation of `after`, an object after a property value; `common` represents
    /// its parent.
    pub(crate) fn continuation_of(
        &mut self,
        after: Frame,
        common: FrameId,
    ) -> Result<Option<ValueContinuation>, Error> {
        let Frame::Object { obligation, used_names, order, parent, .. } = after else {
            return Ok(None);
        };
        let next = if !self.reader.values.any_name_viable(after)? {
            NextPart::Nothing
        } else if self.cache.seen.names.is_some_and(|begins| begins.is_empty()) {
            NextPart::SomeName
        } else {
            let next_names =
                self.reader.values.names().next_names(obligation, used_names, order)?;
            self.names_after_comma(next_names)
        };
        let end = match self.reader.values.end_verdicts(obligation) {
            None => ContainerEnd::Never,
            Some(NO_VERDICTS) => ContainerEnd::Plain(common),
            Some(verdicts) => ContainerEnd::EnumIndex(parent, verdicts),
        };
        Ok(Some(ValueContinuation { next, end }))
    }

    /// Returns what tokens distinguish of the names that may come next.
    fn names_after_comma(&self, next_names: NextNamesId) -> NextPart {
        let Some(begins) = self.cache.seen.names else { return NextPart::Names(next_names) };
        let escapes =
            begins.contains(b'\\') && self.reader.values.core.options.escapes == EscapePolicy::Any;
        let names = self.reader.values.name_tables.get(next_names);
        let is_distinguished = |at: u32| match self
            .reader
            .values
            .name_tables
            .known_name(&self.reader.values.core, next_names, at)
            .bytes()
            .next()
        {
            // A character that stands for itself has no other spelling.
            Some(first @ 0x20..0x80) if !b"\"\\".contains(&first) => {
                escapes || begins.contains(first)
            }
            _ => true,
        };
        if (0..names.known.len() as u32).any(is_distinguished) {
            return NextPart::Names(next_names);
        }
        match *self.reader.values.strings.get(names.start.classes).machines {
            [] => NextPart::SomeName,
            [Some((class, _))]
                if self.reader.values.core.languages.language_formula(class) == TRUE =>
            {
                NextPart::AnyName
            }
            _ => NextPart::Names(next_names),
        }
    }
}
