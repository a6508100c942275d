//! What a token can tell of a name that is being read.
//!
//! Where any name may come, a known one matters to a token that begins with the rest of it and the
//! quote behind, and few do. So names of all objects have the same mask, wherever they are, but for
//! those rests and for what comes behind the colon. Where only known names may come, those that
//! still may tell.

use formalm_automata::Error;
use formalm_automata::spelling::{Escape, Escapes};

use crate::machine::frame::{Frame, FrameId, NameCandidates, NextNamesId, QueriesId};
use crate::machine::mask_class::continuation::PropertyStart;
use crate::machine::{LazyTables, NO_RECORD};
use crate::names::{NameId, PLACEHOLDER};
use crate::table::{Map, Table};

/// Of so many known names that alone may come, masks are seldom met twice.
const MAX_KNOWN_NAMES: u32 = 8;

/// What tokens tell apart in a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameContinuation {
    /// The machines of names that are not known, with what comes behind one.
    others: Option<(QueriesId, Option<PropertyStart>)>,
    /// The rests of known names that matter, with what comes behind where tokens can tell and the
    /// name may come.
    known: Box<[KnownNameSuffix]>,
}

/// The rest of a known name, by number, and what comes behind.
type KnownNameSuffix = (u32, Option<PropertyStart>);

/// Names that stand for all that look alike.
#[derive(Debug, Default)]
pub(crate) struct NameContinuations {
    rests: Table<Box<[u8]>>,
    /// These refer to recorded texts.
    pub(crate) known: Map<NameContinuation, Frame>,
}

impl NameContinuations {
    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let rests = self.rests.iter().map(|one| one.len() + 16);
        let known = 64 * self.known.len();
        rests.sum::<usize>() + known + self.rests.memory_bytes() + self.known.memory_bytes()
    }
}

impl LazyTables {
    /// The name that stands for all with the same masks.
    pub(crate) fn name_representative(&mut self, frame: Frame) -> Result<Frame, Error> {
        let Frame::Name { object, next_names, text, candidates, escape } = frame else {
            return Ok(frame);
        };
        if self.depends_on_depth(object) {
            return Ok(frame);
        }
        let is_open = self.allows_any_name(candidates.classes)
            && self.drops_name(next_names, candidates.classes);
        let is_closed = self.parts.queries.get(candidates.classes.0).iter().all(Option::is_none);
        let is_seen = is_open || is_closed && candidates.to - candidates.from <= MAX_KNOWN_NAMES;
        if !is_seen || escape != Escape::None || self.core.options.escapes == Escapes::Any {
            let object = self.object_representative(object);
            return Ok(Frame::Name { object, next_names, text, candidates, escape });
        }
        let known = self.known_suffixes(frame, is_open)?;
        let (mut others, mut frame) = (None, frame);
        if is_open {
            let Some(like) = self.class_example(next_names, candidates) else { return Ok(frame) };
            let member = self.property_start_of(frame, (PLACEHOLDER, like))?;
            others = Some((candidates.classes, member));
            if known.is_empty() {
                // It is like any name that is not known.
                let (text, candidates) =
                    (NO_RECORD, NameCandidates { from: 0, to: 0, ..candidates });
                frame = Frame::Name { object, next_names, text, candidates, escape };
            }
        }
        Ok(*self.continuations.names.known.get_or_insert(NameContinuation { others, known }, frame))
    }

    /// The known names that tokens tell apart from a name, or that alone may come.
    fn known_suffixes(
        &mut self,
        frame: Frame,
        is_open: bool,
    ) -> Result<Box<[KnownNameSuffix]>, Error> {
        let Frame::Name { next_names, text, candidates, .. } = frame else { return Ok([].into()) };
        let depth = self.records.get(text).2 as usize;
        let mut known = Vec::new();
        for at in candidates.from..candidates.to {
            let is_distinguished = self.is_distinguished(next_names, at, depth);
            if is_open && !is_distinguished {
                continue;
            }
            let viable = self.known_viable(next_names, at)?;
            if !is_open && !viable {
                continue;
            }
            let name = self.names_at(next_names).known[at as usize];
            let member = if is_distinguished && viable {
                self.property_start_of(frame, (name, name))?
            } else {
                None
            };
            let rest = &self.core.schema.names.get(name).as_bytes()[depth..];
            known.push((self.continuations.names.rests.intern_like(rest, || rest.into()), member));
        }
        Ok(known.into())
    }

    /// Whether some token ends a known name of which so many bytes were read.
    fn is_distinguished(&self, next_names: NextNamesId, at: u32, depth: usize) -> bool {
        let tokens = &self.continuations.tokens;
        let rest = &self.known_name(next_names, at).as_bytes()[depth..];
        let ascii = self.core.options.escapes == Escapes::Ascii;
        let has_independent_names =
            |byte: u8| byte >= 0x20 && !b"\"\\".contains(&byte) && !(ascii && byte >= 0x80);
        if let Some(&first) = rest.first()
            && has_independent_names(first)
            && !tokens.iter().any(|names| names.ends_from(first))
        {
            return false;
        }
        // What is spelled with escapes is not looked for.
        !rest.iter().copied().all(has_independent_names)
            || tokens.iter().any(|names| names.ends(rest))
    }

    /// What comes behind a name and one that is like it.
    fn property_start_of(
        &mut self,
        frame: Frame,
        names: (NameId, NameId),
    ) -> Result<Option<PropertyStart>, Error> {
        match self.object_after_name(frame, names)? {
            Some(object) => self.property_after_name(object),
            None => Ok(None),
        }
    }

    /// An object in what stands for all with the same outlook.
    fn object_representative(&mut self, id: FrameId) -> FrameId {
        let mut object = *self.frames.get(id.0);
        match &mut object {
            Frame::Object { obligation, parent, .. } if self.has_no_queries(*obligation) => {
                *parent = self.parent_representative(*parent);
                self.frame(object)
            }
            _ => id,
        }
    }
}
