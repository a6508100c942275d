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
use crate::machine::frame::{DONE, Frame, FrameId, Mode, NamingId, OwesId, Place, TruthsId};
use crate::machine::mask_class::name_continuation::Views;
use crate::machine::reader::cache::{NO_TRUTHS, NOT_ASKED};
use crate::machine::{Grown, UNRECORDED};
use crate::table::Map;

/// Frames that stand for others.
#[derive(Debug, Default)]
pub(crate) struct Outlooks {
    /// What tokens have of names, by vocabulary.
    pub(crate) tokens: Vec<Arc<TokenNames>>,
    known: Map<Outlook, FrameId>,
    common: Map<FrameId, FrameId>,
    /// Objects behind a member, and behind a name.
    after: Map<Outlook, Frame>,
    colons: Map<Member, Frame>,
    pub(crate) views: Views,
}

impl Outlooks {
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
        *self = Outlooks { tokens: std::mem::take(&mut self.tokens), ..Outlooks::default() };
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
            + self.common.memory_bytes()
            + self.after.memory_bytes()
            + self.colons.memory_bytes()
            + self.views.bytes()
    }
}

/// What a frame does once the value in it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Outlook {
    next: Next,
    end: End,
}

/// What may come behind a comma.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    Nothing,
    /// Any name, and no token knows more than that it begins.
    AnyName,
    /// Names of which no token has more than the quote.
    SomeName,
    Names(NamingId),
    Items(OwesId),
}

/// What comes behind the end of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum End {
    Never,
    Plain(FrameId),
    Telling(FrameId, TruthsId),
}

/// What comes behind a name: what the member's value owes, and what stands for its object then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    child: OwesId,
    object: FrameId,
}

impl Grown {
    /// The place that stands for all with the same masks; the place itself where that takes too
    /// long to find.
    pub(crate) fn in_common(&mut self, place: Place) -> Place {
        let Place { frame, record } = place;
        if record != UNRECORDED || self.outlooks.tokens.is_empty() {
            return place;
        }
        self.core.steps = 0;
        match self.frame_in_common(frame) {
            Ok(frame) => Place { frame, record },
            Err(_) => {
                // Whoever needs it will be told.
                self.core.answers.abandon();
                place
            }
        }
    }

    fn frame_in_common(&mut self, mut frame: Frame) -> Result<Frame, Error> {
        let whole = self.gap_start();
        match frame {
            Frame::Name { .. } => return self.name_in_common(frame),
            Frame::Object { mode: Mode::Colon, blanks, .. } if blanks == whole => {
                let Some(member) = self.member_behind(frame)? else { return Ok(frame) };
                return Ok(*self.outlooks.colons.get_or_insert(member, frame));
            }
            Frame::Object { mode: Mode::After, blanks, below, .. } if blanks == whole => {
                let Some(outlook) = self.outlook_behind(frame, below)? else { return Ok(frame) };
                return Ok(*self.outlooks.after.get_or_insert(outlook, frame));
            }
            _ => {}
        }
        match &mut frame {
            Frame::Value { owes, below, .. }
            | Frame::Number { owes, below, .. }
            | Frame::Object { owes, below, .. }
            | Frame::Array { owes, below, .. }
                if self.asks_nothing(*owes) =>
            {
                *below = self.common(*below);
            }
            Frame::Text { asked: NOT_ASKED, below, .. }
            | Frame::Word { truths: NO_TRUTHS, below, .. } => *below = self.common(*below),
            _ => {}
        }
        Ok(frame)
    }

    /// What comes behind a name that was read; `None` if nothing does.
    pub(crate) fn member_behind(&mut self, object: Frame) -> Result<Option<Member>, Error> {
        let Frame::Object { owes, gone, order, below, .. } = object else { return Ok(None) };
        let Some((owes, child)) = self.member(owes, gone)? else { return Ok(None) };
        let (mode, blanks) = (Mode::Inside, self.gap_start());
        let object = self.frame(Frame::Object { owes, gone, order, mode, blanks, below });
        let object = if self.asks_nothing(child) { self.common(object) } else { object };
        Ok(Some(Member { child, object }))
    }

    /// Whether no frame below asks a value for truths.
    pub(crate) fn asks_nothing(&self, owes: OwesId) -> bool {
        self.parts.owes.get(owes.0).asked.is_empty()
    }

    /// The frame that stands for all that do the same once a value of which they ask nothing has
    /// ended.
    pub(crate) fn common(&mut self, id: FrameId) -> FrameId {
        if self.tells_depth(id) {
            return id;
        }
        // Those below come first, without a recursion as deep as the text.
        let (mut chain, mut at) = (Vec::new(), id);
        let mut known = loop {
            if at == DONE {
                break DONE;
            }
            if let Some(&known) = self.outlooks.common.get(&at) {
                break known;
            }
            chain.push(at);
            at = match *self.frames.get(at.0) {
                Frame::Object { owes, below, .. } | Frame::Array { owes, below, .. }
                    if self.asks_nothing(owes) =>
                {
                    below
                }
                Frame::Object { below, .. } | Frame::Array { below, .. } => break below,
                _ => break at,
            };
        };
        for id in chain.into_iter().rev() {
            self.core.steps = 0;
            let outlook = match self.outlook(id, known) {
                Ok(outlook) => outlook,
                Err(error) => {
                    self.core.answers.abandon();
                    if matches!(error, Error::Deadline { .. }) {
                        // Found out again by the next call.
                        return id;
                    }
                    None
                }
            };
            known = outlook.map_or(id, |outlook| *self.outlooks.known.get_or_insert(outlook, id));
            self.outlooks.common.insert(id, known);
        }
        known
    }

    /// Whether the depth of a frame, or that of anything which a token opens in it, matters.
    pub(crate) fn tells_depth(&self, frame: FrameId) -> bool {
        let (options, limits) = (&self.core.options, &self.core.limits);
        let deepest = u64::from(self.depth(frame)) + self.horizon as u64 + 2;
        options.layout.is_some() || options.depth != u32::MAX || deepest > u64::from(limits.nesting)
    }

    /// The outlook of a frame in one that stands for others; `None` if it has one of its own.
    fn outlook(&mut self, id: FrameId, below: FrameId) -> Result<Option<Outlook>, Error> {
        if let Frame::Array { owes, from, .. } = *self.frames.get(id.0)
            && (from > 0 || self.is_unique(owes) || !self.asks_nothing(owes))
        {
            return Ok(None);
        }
        match self.close(id, NO_TRUTHS, UNRECORDED)? {
            Some(Place { frame: Frame::Array { owes, .. }, .. }) => {
                // It may also end behind an item that a token has whole.
                Ok(Some(Outlook { next: Next::Items(owes), end: End::Plain(below) }))
            }
            Some(Place { frame, .. }) => self.outlook_of(frame, below),
            None => Ok(None),
        }
    }

    /// The outlook of an object behind a member.
    fn outlook_behind(&mut self, object: Frame, below: FrameId) -> Result<Option<Outlook>, Error> {
        if self.tells_depth(below) {
            return Ok(None);
        }
        let asks = matches!(object, Frame::Object { owes, .. } if !self.asks_nothing(owes));
        let common = if asks { below } else { self.common(below) };
        self.outlook_of(object, common)
    }

    fn outlook_of(&mut self, after: Frame, common: FrameId) -> Result<Option<Outlook>, Error> {
        let Frame::Object { owes, gone, order, below, .. } = after else { return Ok(None) };
        let next = if self.some_name(after)? {
            let naming = self.naming(owes, gone, order)?;
            self.names_ahead(naming)
        } else {
            Next::Nothing
        };
        let end = match self.ended(owes) {
            None => End::Never,
            Some(NO_TRUTHS) => End::Plain(common),
            Some(truths) => End::Telling(below, truths),
        };
        Ok(Some(Outlook { next, end }))
    }

    /// What tokens can tell of the names that may come next.
    fn names_ahead(&self, naming: NamingId) -> Next {
        let Some(begins) = self.outlooks.begins() else { return Next::Names(naming) };
        let escapes = begins.contains(b'\\') && self.core.options.escapes == Escapes::Any;
        let names = self.names_of(naming);
        let is_told = |at: u32| match self.known_name(naming, at).bytes().next() {
            // One that is spelled as it is has no other spelling.
            Some(first @ 0x20..0x80) if !b"\"\\".contains(&first) => {
                escapes || begins.contains(first)
            }
            _ => true,
        };
        if (0..names.known.len() as u32).any(is_told) {
            return Next::Names(naming);
        }
        match *self.parts.asked.get(names.start.classes.0).machines {
            [] => Next::SomeName,
            [Some((class, _))] if self.core.class_formula(class) == TRUE => Next::AnyName,
            _ => Next::Names(naming),
        }
    }
}
