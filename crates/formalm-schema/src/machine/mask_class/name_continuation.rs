//! What a token can tell of a name that is being read.
//!
//! Where any name may come, a known one matters to a token that begins with the rest of it and the
//! quote behind, and few do. So names of all objects have the same mask, wherever they are, but for
//! those rests and for what comes behind the colon. Where only known names may come, those that
//! still may tell.

use formalm_automata::Error;
use formalm_automata::spelling::{Escape, Escapes};

use crate::machine::frame::{AskedId, Frame, FrameId, NamingId, Reach};
use crate::machine::mask_class::continuation::Member;
use crate::machine::{Grown, UNRECORDED};
use crate::names::{NameId, PLACEHOLDER};
use crate::table::{Map, Table};

/// Of so many known names that alone may come, masks are seldom met twice.
const FEW: u32 = 8;

/// What tokens tell apart in a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    /// The machines of names that are not known, with what comes behind one.
    others: Option<(AskedId, Option<Member>)>,
    /// The rests of known names that matter, with what comes behind where tokens can tell and the
    /// name may come.
    known: Box<[Seen]>,
}

/// The rest of a known name, by number, and what comes behind.
type Seen = (u32, Option<Member>);

/// Names that stand for all that look alike.
#[derive(Debug, Default)]
pub(crate) struct Views {
    rests: Table<Box<[u8]>>,
    /// These refer to recorded texts.
    pub(crate) known: Map<View, Frame>,
}

impl Views {
    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let rests = self.rests.iter().map(|one| one.len() + 16);
        let known = 64 * self.known.len();
        rests.sum::<usize>() + known + self.rests.memory_bytes() + self.known.memory_bytes()
    }
}

impl Grown {
    /// The name that stands for all with the same masks.
    pub(crate) fn name_in_common(&mut self, frame: Frame) -> Result<Frame, Error> {
        let Frame::Name { object, naming, text, reach, escape } = frame else { return Ok(frame) };
        if self.tells_depth(object) {
            return Ok(frame);
        }
        let is_open = self.takes_any(reach.classes) && self.forgets_names(naming, reach.classes);
        let is_closed = self.parts.asked.get(reach.classes.0).iter().all(Option::is_none);
        let is_seen = is_open || is_closed && reach.to - reach.from <= FEW;
        if !is_seen || escape != Escape::None || self.core.options.escapes == Escapes::Any {
            let object = self.object_in_common(object);
            return Ok(Frame::Name { object, naming, text, reach, escape });
        }
        let known = self.known_seen(frame, is_open)?;
        let (mut others, mut frame) = (None, frame);
        if is_open {
            let Some(like) = self.class_of(naming, reach) else { return Ok(frame) };
            let member = self.member_of(frame, (PLACEHOLDER, like))?;
            others = Some((reach.classes, member));
            if known.is_empty() {
                // It is like any name that is not known.
                let (text, reach) = (UNRECORDED, Reach { from: 0, to: 0, ..reach });
                frame = Frame::Name { object, naming, text, reach, escape };
            }
        }
        Ok(*self.outlooks.views.known.get_or_insert(View { others, known }, frame))
    }

    /// The known names that tokens tell apart from a name, or that alone may come.
    fn known_seen(&mut self, frame: Frame, is_open: bool) -> Result<Box<[Seen]>, Error> {
        let Frame::Name { naming, text, reach, .. } = frame else { return Ok([].into()) };
        let depth = self.records.get(text).2 as usize;
        let mut known = Vec::new();
        for at in reach.from..reach.to {
            let is_told = self.is_told(naming, at, depth);
            if is_open && !is_told {
                continue;
            }
            let viable = self.known_viable(naming, at)?;
            if !is_open && !viable {
                continue;
            }
            let name = self.names_of(naming).known[at as usize];
            let member =
                if is_told && viable { self.member_of(frame, (name, name))? } else { None };
            let rest = &self.core.schema.names.get(name).as_bytes()[depth..];
            known.push((self.outlooks.views.rests.intern_like(rest, || rest.into()), member));
        }
        Ok(known.into())
    }

    /// Whether some token ends a known name of which so many bytes were read.
    fn is_told(&self, naming: NamingId, at: u32, depth: usize) -> bool {
        let tokens = &self.outlooks.tokens;
        let rest = &self.known_name(naming, at).as_bytes()[depth..];
        let ascii = self.core.options.escapes == Escapes::Ascii;
        let is_plain =
            |byte: u8| byte >= 0x20 && !b"\"\\".contains(&byte) && !(ascii && byte >= 0x80);
        if let Some(&first) = rest.first()
            && is_plain(first)
            && !tokens.iter().any(|names| names.ends_from(first))
        {
            return false;
        }
        // What is spelled with escapes is not looked for.
        !rest.iter().copied().all(is_plain) || tokens.iter().any(|names| names.ends(rest))
    }

    /// What comes behind a name and one that is like it.
    fn member_of(
        &mut self,
        frame: Frame,
        names: (NameId, NameId),
    ) -> Result<Option<Member>, Error> {
        match self.behind_name(frame, names)? {
            Some(object) => self.member_behind(object),
            None => Ok(None),
        }
    }

    /// An object in what stands for all with the same outlook.
    fn object_in_common(&mut self, id: FrameId) -> FrameId {
        let mut object = *self.frames.get(id.0);
        match &mut object {
            Frame::Object { owes, below, .. } if self.asks_nothing(*owes) => {
                *below = self.common(*below);
                self.frame(object)
            }
            _ => id,
        }
    }
}
