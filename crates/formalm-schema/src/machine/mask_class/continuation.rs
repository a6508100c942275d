//! What may follow a value, as far as a token can tell.
//!
//! Behind a value a token closes containers, or reads a comma and begins the next item or name. So
//! an object is known by whether a name may come and whether it may end, whatever came before and
//! is still owed, unless some token goes on into a name that matters. Values that stand in objects
//! and arrays with the same outlook have the same masks.

use std::sync::Arc;

use formalm_automata::spelling::Escapes;
use formalm_automata::{ByteSet, Error, TokenNames};

use crate::formula::TRUE;
use crate::machine::frame::{
    ContainerState, DONE, Frame, FrameId, NextNamesId, ObligationId, Position, VerdictsId,
};
use crate::machine::mask_class::name_continuation::NameContinuations;
use crate::machine::reader::cache::{NO_QUERIES, NO_VERDICTS};
use crate::machine::{LazyTables, NO_RECORD};
use crate::table::Map;

/// Frames that stand for others.
#[derive(Debug, Default)]
pub(crate) struct Continuations {
    /// What tokens have of names, by vocabulary.
    pub(crate) tokens: Vec<Arc<TokenNames>>,
    known: Map<Continuation, FrameId>,
    parents: Map<FrameId, FrameId>,
    /// Objects behind a member, and behind a name.
    after: Map<Continuation, Frame>,
    colons: Map<PropertyStart, Frame>,
    pub(crate) names: NameContinuations,
}

impl Continuations {
    /// Goes by the tokens of one more vocabulary; whether they were not known.
    pub(crate) fn add(&mut self, names: Arc<TokenNames>) -> bool {
        let is_new = !self.tokens.iter().any(|known| Arc::ptr_eq(known, &names));
        if is_new {
            self.tokens.push(names);
        }
        is_new
    }

    /// Forgets which frames stand for others.
    pub(crate) fn clear(&mut self) {
        *self =
            Continuations { tokens: std::mem::take(&mut self.tokens), ..Continuations::default() };
    }

    /// The first bytes of what tokens have of names behind a comma and a quote; `None` where some
    /// have a name and its colon, or nothing is known of them.
    fn begins(&self) -> Option<ByteSet> {
        let mut all = self.tokens.iter().map(|names| names.begins());
        let first = all.next()??;
        all.try_fold(first, |set, more| Some(set.union(more?)))
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.known.memory_bytes()
            + self.parents.memory_bytes()
            + self.after.memory_bytes()
            + self.colons.memory_bytes()
            + self.names.bytes()
    }
}

/// What a frame does once the value in it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Continuation {
    next: NextPart,
    end: ContainerEnd,
}

/// What may come behind a comma.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NextPart {
    Nothing,
    /// Any name, and no token knows more than that it begins.
    AnyName,
    /// Names of which no token has more than the quote.
    SomeName,
    Names(NextNamesId),
    Items(ObligationId),
}

/// What comes behind the end of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ContainerEnd {
    Never,
    Plain(FrameId),
    EnumIndex(FrameId, VerdictsId),
}

/// What comes behind a name: what the member's value owes, and what stands for its object then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PropertyStart {
    child: ObligationId,
    object: FrameId,
}

impl LazyTables {
    /// The place that stands for all with the same masks; the place itself where that takes too
    /// long to find.
    pub(crate) fn class_representative(&mut self, position: Position) -> Position {
        let Position { frame, record } = position;
        if record != NO_RECORD || self.continuations.tokens.is_empty() {
            return position;
        }
        self.core.steps = 0;
        match self.frame_representative(frame) {
            Ok(frame) => Position { frame, record },
            Err(_) => {
                // Whoever needs it will be told.
                self.core.answers.abandon();
                position
            }
        }
    }

    fn frame_representative(&mut self, mut frame: Frame) -> Result<Frame, Error> {
        let whole = self.gap_start();
        match frame {
            Frame::Name { .. } => return self.name_representative(frame),
            Frame::Object { mode: ContainerState::AfterName, whitespace, .. }
                if whitespace == whole =>
            {
                let Some(member) = self.property_after_name(frame)? else { return Ok(frame) };
                return Ok(*self.continuations.colons.get_or_insert(member, frame));
            }
            Frame::Object { mode: ContainerState::AfterValue, whitespace, parent, .. }
                if whitespace == whole =>
            {
                let Some(continuation) = self.continuation_after(frame, parent)? else {
                    return Ok(frame);
                };
                return Ok(*self.continuations.after.get_or_insert(continuation, frame));
            }
            _ => {}
        }
        match &mut frame {
            Frame::Value { obligation, parent, .. }
            | Frame::Number { obligation, parent, .. }
            | Frame::Object { obligation, parent, .. }
            | Frame::Array { obligation, parent, .. }
                if self.has_no_queries(*obligation) =>
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

    /// What comes behind a name that was read; `None` if nothing does.
    pub(crate) fn property_after_name(
        &mut self,
        object: Frame,
    ) -> Result<Option<PropertyStart>, Error> {
        let Frame::Object { obligation, used_names, order, parent, .. } = object else {
            return Ok(None);
        };
        let Some((obligation, child)) = self.start_property(obligation, used_names)? else {
            return Ok(None);
        };
        let (mode, whitespace) = (ContainerState::InValue, self.gap_start());
        let object =
            self.frame(Frame::Object { obligation, used_names, order, mode, whitespace, parent });
        let object =
            if self.has_no_queries(child) { self.parent_representative(object) } else { object };
        Ok(Some(PropertyStart { child, object }))
    }

    /// Whether no frame below asks a value for truths.
    pub(crate) fn has_no_queries(&self, obligation: ObligationId) -> bool {
        self.parts.obligations.get(obligation.0).asked.is_empty()
    }

    /// The frame that stands for all that do the same once a value of which they ask nothing has
    /// ended.
    pub(crate) fn parent_representative(&mut self, id: FrameId) -> FrameId {
        if self.depends_on_depth(id) {
            return id;
        }
        // Those below come first, without a recursion as deep as the text.
        let (mut chain, mut at) = (Vec::new(), id);
        let mut known = loop {
            if at == DONE {
                break DONE;
            }
            if let Some(&known) = self.continuations.parents.get(&at) {
                break known;
            }
            chain.push(at);
            at = match *self.frames.get(at.0) {
                Frame::Object { obligation, parent, .. }
                | Frame::Array { obligation, parent, .. }
                    if self.has_no_queries(obligation) =>
                {
                    parent
                }
                Frame::Object { parent, .. } | Frame::Array { parent, .. } => break parent,
                _ => break at,
            };
        };
        for id in chain.into_iter().rev() {
            self.core.steps = 0;
            let continuation = match self.continuation(id, known) {
                Ok(continuation) => continuation,
                Err(error) => {
                    self.core.answers.abandon();
                    if matches!(error, Error::Deadline { .. }) {
                        // Found out again by the next call.
                        return id;
                    }
                    None
                }
            };
            known = continuation.map_or(id, |continuation| {
                *self.continuations.known.get_or_insert(continuation, id)
            });
            self.continuations.parents.insert(id, known);
        }
        known
    }

    /// Whether the depth of a frame, or that of anything which a token opens in it, matters.
    pub(crate) fn depends_on_depth(&self, frame: FrameId) -> bool {
        let (options, limits) = (&self.core.options, &self.core.limits);
        let deepest = u64::from(self.depth(frame)) + self.max_token_len as u64 + 2;
        options.layout.is_some() || options.depth != u32::MAX || deepest > u64::from(limits.nesting)
    }

    /// The outlook of a frame in one that stands for others; `None` if it has one of its own.
    fn continuation(
        &mut self,
        id: FrameId,
        parent: FrameId,
    ) -> Result<Option<Continuation>, Error> {
        if let Frame::Array { obligation, from, .. } = *self.frames.get(id.0)
            && (from > 0 || self.has_unique_items(obligation) || !self.has_no_queries(obligation))
        {
            return Ok(None);
        }
        match self.close_value(id, NO_VERDICTS, NO_RECORD)? {
            Some(Position { frame: Frame::Array { obligation, .. }, .. }) => {
                // It may also end behind an item that a token has whole.
                Ok(Some(Continuation {
                    next: NextPart::Items(obligation),
                    end: ContainerEnd::Plain(parent),
                }))
            }
            Some(Position { frame, .. }) => self.continuation_of(frame, parent),
            None => Ok(None),
        }
    }

    /// The outlook of an object behind a member.
    fn continuation_after(
        &mut self,
        object: Frame,
        parent: FrameId,
    ) -> Result<Option<Continuation>, Error> {
        if self.depends_on_depth(parent) {
            return Ok(None);
        }
        let asks =
            matches!(object, Frame::Object { obligation, .. } if !self.has_no_queries(obligation));
        let common = if asks { parent } else { self.parent_representative(parent) };
        self.continuation_of(object, common)
    }

    fn continuation_of(
        &mut self,
        after: Frame,
        common: FrameId,
    ) -> Result<Option<Continuation>, Error> {
        let Frame::Object { obligation, used_names, order, parent, .. } = after else {
            return Ok(None);
        };
        let next = if self.any_name_viable(after)? {
            let next_names = self.next_names(obligation, used_names, order)?;
            self.names_after_comma(next_names)
        } else {
            NextPart::Nothing
        };
        let end = match self.end_verdicts(obligation) {
            None => ContainerEnd::Never,
            Some(NO_VERDICTS) => ContainerEnd::Plain(common),
            Some(verdicts) => ContainerEnd::EnumIndex(parent, verdicts),
        };
        Ok(Some(Continuation { next, end }))
    }

    /// What tokens can tell of the names that may come next.
    fn names_after_comma(&self, next_names: NextNamesId) -> NextPart {
        let Some(begins) = self.continuations.begins() else { return NextPart::Names(next_names) };
        let escapes = begins.contains(b'\\') && self.core.options.escapes == Escapes::Any;
        let names = self.names_at(next_names);
        let is_distinguished = |at: u32| match self.known_name(next_names, at).bytes().next() {
            // One that is spelled as it is has no other spelling.
            Some(first @ 0x20..0x80) if !b"\"\\".contains(&first) => {
                escapes || begins.contains(first)
            }
            _ => true,
        };
        if (0..names.known.len() as u32).any(is_distinguished) {
            return NextPart::Names(next_names);
        }
        match *self.parts.queries.get(names.start.classes.0).machines {
            [] => NextPart::SomeName,
            [Some((class, _))] if self.core.class_formula(class) == TRUE => NextPart::AnyName,
            _ => NextPart::Names(next_names),
        }
    }
}
