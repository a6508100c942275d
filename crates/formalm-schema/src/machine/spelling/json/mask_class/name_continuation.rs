//! The continuation of a property name being read, as far as a token distinguishes it.
//!
//! If any name is allowed, a known name matters only to tokens that begin with the rest of it and
//! the closing quote; there are few. Names of all objects thus share a mask, except for these
//! suffixes and what comes after the colon. If only known names are allowed, the suffixes of those
//! that are still possible matter.

use formalm_core::{CompactMap, Error, Interner};
use formalm_json::escapes::EscapePolicy;

use crate::json::property_names::{NameId, UNMENTIONED_NAME};
use crate::machine::NO_RECORD;
use crate::machine::frame::{CharState, Frame, FrameId, NameCandidates, NextNamesId, QueriesId};
use crate::machine::spelling::json::mask_class::continuation::{ContinuationQuery, PropertyStart};

/// Up to this many known names are represented by their suffixes; with more, equal masks are rare.
/// Chosen, not measured.
const MAX_KNOWN_NAMES: u32 = 8;

/// Everything that tokens distinguish in a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameContinuation {
    /// The automata of unknown names, with what follows such a name.
    others: Option<(QueriesId, Option<PropertyStart>)>,
    /// The suffixes of known names that matter.
    known: Box<[KnownNameSuffix]>,
}

/// The suffix of a known name, by number. If tokens can end the name and it is allowed: what
/// follows it, if they see that.
pub(crate) type KnownNameSuffix = (u32, Option<Option<PropertyStart>>);

/// Representatives of names with equal continuations.
#[derive(Debug, Default)]
pub(crate) struct NameContinuations {
    pub(crate) rests: Interner<Box<[u8]>>,
    /// Some representatives refer to recorded inputs.
    pub(crate) known: CompactMap<NameContinuation, Frame>,
}

impl NameContinuations {
    /// Returns the memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let rests = self.rests.iter().map(|one| one.len() + 16);
        let known = 64 * self.known.len();
        rests.sum::<usize>() + known + self.rests.table_bytes() + self.known.table_bytes()
    }
}

impl ContinuationQuery<'_> {
    /// Returns the representative of all names with equal masks.
    pub(crate) fn name_representative(&mut self, frame: Frame) -> Result<Frame, Error> {
        let Frame::Name { object, next_names, text, candidates, escape } = frame else {
            return Ok(frame);
        };
        if self.depends_on_depth(object) {
            return Ok(frame);
        }
        let Some(is_open) = self.sees_few_suffixes(frame)? else {
            let object = self.object_representative(object);
            return Ok(Frame::Name { object, next_names, text, candidates, escape });
        };
        if escape != CharState::NONE || self.reader.values.core.options.escapes == EscapePolicy::Any
        {
            let object = self.object_representative(object);
            return Ok(Frame::Name { object, next_names, text, candidates, escape });
        }
        let known = self.known_suffixes(frame, is_open)?;
        let (mut others, mut frame) = (None, frame);
        if is_open {
            let mut member = None;
            if self.cache.seen.values {
                let like = self.reader.values.names().class_example(next_names, candidates);
                let Some(like) = like else { return Ok(frame) };
                member = self.property_start_of(frame, (UNMENTIONED_NAME, like))?;
            }
            others = Some((candidates.classes, member));
            if known.is_empty() {
                // The name is like any unknown one.
                let (text, candidates) =
                    (NO_RECORD, NameCandidates { from: 0, to: 0, ..candidates });
                frame = Frame::Name { object, next_names, text, candidates, escape };
            }
        }
        Ok(*self.cache.names.known.get_or_insert(NameContinuation { others, known }, frame))
    }

    /// Returns whether names other than the known ones may come, if tokens distinguish no more than
    /// a few suffixes of known names.
    pub(crate) fn sees_few_suffixes(&mut self, frame: Frame) -> Result<Option<bool>, Error> {
        let Frame::Name { next_names, candidates, .. } = frame else { return Ok(None) };
        let values = &mut self.reader.values;
        let queries = values.strings.get(candidates.classes);
        if queries.iter().all(Option::is_none) {
            let few = candidates.to - candidates.from <= MAX_KNOWN_NAMES;
            return Ok(few.then_some(false));
        }
        if !self.abstraction.drops_name(values, next_names, candidates.classes) {
            return Ok(None);
        }
        // Where no token sees what follows a name, its class does not matter. All names with this
        // prefix may be of the only class that is left.
        let allows_any = values.strings.allows_any_name(&values.core, candidates.classes)
            || !self.cache.seen.values && values.name_tables.allows_all_others(next_names)
            || match values.strings.single_class(candidates.classes) {
                Some((_, (class, state))) if !values.strings.get(candidates.classes).has_guard => {
                    values.core.languages.accepts_everything(class, state)?
                }
                _ => false,
            };
        Ok(allows_any.then_some(true))
    }

    /// Returns the suffixes of known names that tokens distinguish, or that alone are allowed.
    pub(crate) fn known_suffixes(
        &mut self,
        frame: Frame,
        is_open: bool,
    ) -> Result<Box<[KnownNameSuffix]>, Error> {
        let Frame::Name { next_names, text, candidates, .. } = frame else { return Ok([].into()) };
        let depth = self.reader.values.records.length(text) as usize;
        let mut known = Vec::new();
        for at in candidates.from..candidates.to {
            let is_distinguished = self.is_distinguished(next_names, at, depth);
            if is_open && !is_distinguished {
                continue;
            }
            let viable = self.reader.values.names().known_name_viable(next_names, at)?;
            if !is_open && !viable {
                continue;
            }
            let name = self.reader.values.name_tables.get(next_names).known[at as usize];
            let member = match is_distinguished && viable {
                false => None,
                true if self.cache.seen.values => {
                    self.property_start_of(frame, (name, name))?.map(Some)
                }
                true => Some(None),
            };
            let rest = &self.reader.values.core.base.schema.names.get(name).as_bytes()[depth..];
            known.push((self.cache.names.rests.intern_borrowed(rest, || rest.into()), member));
        }
        Ok(known.into())
    }

    /// Returns `true` if some token ends a known name of which `depth` bytes were read.
    fn is_distinguished(&self, next_names: NextNamesId, at: u32, depth: usize) -> bool {
        let tokens = &self.cache.tokens;
        let rest = &self
            .reader
            .values
            .name_tables
            .known_name(&self.reader.values.core, next_names, at)
            .as_bytes()[depth..];
        let ascii = self.reader.values.core.options.escapes == EscapePolicy::Ascii;
        let is_unescaped =
            |byte: u8| byte >= 0x20 && !b"\"\\".contains(&byte) && !(ascii && byte >= 0x80);
        if let Some(&first) = rest.first()
            && is_unescaped(first)
            && !tokens.iter().any(|names| names.may_close_after_byte(first))
        {
            return false;
        }
        // Suffixes that need escapes are not looked up, and count as distinguished.
        !rest.iter().copied().all(is_unescaped)
            || tokens.iter().any(|names| names.closes_after(rest))
    }

    /// Returns what follows a name. The second of `names` has the same rules as the first.
    pub(crate) fn property_start_of(
        &mut self,
        frame: Frame,
        names: (NameId, NameId),
    ) -> Result<Option<PropertyStart>, Error> {
        match self.reader.values.object_after_name(frame, names)? {
            Some(object) => self.property_after_name(object),
            None => Ok(None),
        }
    }

    /// Returns the object inside the representative of its parent.
    fn object_representative(&mut self, id: FrameId) -> FrameId {
        let mut object = self.reader.values.frames.get(id);
        match &mut object {
            Frame::Object { obligation, parent, .. }
                if self.reader.values.residuals.has_no_queries(*obligation) =>
            {
                *parent = self.parent_representative(*parent);
                self.reader.values.frames.intern(object)
            }
            _ => id,
        }
    }
}
