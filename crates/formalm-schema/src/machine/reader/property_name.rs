//! Names of members, character by character.

use formalm_automata::spelling::{Escape, Read, may_become, read, some_completion};
use formalm_automata::{Error, Machine};

use crate::formula::{Atom, TRUE};
use crate::machine::frame::{Frame, Reach};
use crate::machine::{EMPTY_RECORD, Grown, Recorded, UNRECORDED};
use crate::names::{NameId, PLACEHOLDER};

impl Grown {
    /// Whether some name may come next in an object.
    pub(crate) fn some_name(&mut self, object: Frame) -> Result<bool, Error> {
        let Frame::Object { owes, gone, order, .. } = object else { return Ok(false) };
        let naming = self.naming(owes, gone, order)?;
        let start = self.names_of(naming).start;
        Ok(self.some_class(naming, start, Vec::new)?
            || self.some_known(naming, (start.from, start.to))?)
    }

    /// The frame after the quote that opens a name.
    pub(crate) fn open_name(&mut self, object: Frame) -> Result<Option<Frame>, Error> {
        let Frame::Object { owes, gone, order, .. } = object else { return Ok(None) };
        if !self.some_name(object)? {
            return Ok(None);
        }
        let naming = self.naming(owes, gone, order)?;
        let reach = self.names_of(naming).start;
        let object = self.frame(object);
        let (text, escape) = (EMPTY_RECORD, Escape::None);
        Ok(Some(Frame::Name { object, naming, text, reach, escape }))
    }

    /// The frame after a byte of a name.
    pub(crate) fn read_name(&mut self, frame: Frame, byte: u8) -> Result<Option<Frame>, Error> {
        let Frame::Name { object, naming, mut text, mut reach, escape } = frame else {
            return Ok(None);
        };
        let read = match read(escape, byte, self.core.options.escapes) {
            Read::Wrong => return Ok(None),
            Read::End => return self.close_name(frame),
            Read::Inside(escape) => {
                let after = Frame::Name { object, naming, text, reach, escape };
                return Ok(self.escape_viable(after)?.then_some(after));
            }
            Read::Text(read) => read,
        };
        for &byte in &*read {
            let depth = self.records.get(text).2 as usize;
            let before = text;
            let so_far = |grown: &Grown| grown.recorded(before, 0);
            let Some(after) = self.narrowed(naming, reach, depth, byte, so_far)? else {
                return Ok(None);
            };
            reach = after;
            if text != UNRECORDED {
                text = self.record(text, byte);
            }
        }
        Ok(Some(Frame::Name { object, naming, text, reach, escape: Escape::None }))
    }

    /// The name that was read; no text is any name that is not known.
    pub(crate) fn read_text_of_name(&mut self, text: Recorded) -> NameId {
        if text == UNRECORDED {
            return PLACEHOLDER;
        }
        // The machines of classes read characters only.
        let read = String::from_utf8_lossy(&self.recorded(text, 0)).into_owned();
        self.core.schema.names.intern(&read)
    }

    /// Whether some character that the escape may become leads to a name.
    fn escape_viable(&mut self, frame: Frame) -> Result<bool, Error> {
        let Frame::Name { naming, text, reach, escape, .. } = frame else { return Ok(false) };
        let policy = self.core.options.escapes;
        let Reach { from, to, classes } = reach;
        let asked = self.parts.asked.get(classes.0);
        let classes: Vec<_> = asked.going_on().iter().flatten().copied().collect();
        for (class, state) in classes {
            let machine = self.core.text(class);
            let reader = |bytes: &[u8]| Ok(machine.walk(state, bytes)?.map(|_| ()));
            if !some_completion(escape, policy, &reader)? {
                continue;
            }
            if from == to
                || self.core.class_formula(class) == TRUE
                || self.fresh_escape(frame, class)?
            {
                return Ok(true);
            }
        }
        let length = self.recorded(text, 0).len();
        for at in from..to {
            let rest = self.known_name(naming, at).get(length..);
            let next = rest.and_then(|rest| rest.chars().next());
            let could = next.is_some_and(|next| may_become(escape, policy, next));
            if could && self.known_viable(naming, at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same for names of a class that are not known.
    fn fresh_escape(&mut self, frame: Frame, class: crate::core::TextId) -> Result<bool, Error> {
        let Frame::Name { naming, text, reach, escape, .. } = frame else { return Ok(false) };
        let known = (reach.from..reach.to).map(|at| self.known_name(naming, at).to_owned());
        let listed = self.core.schema.texts(known.collect());
        let listed = self.core.formulas.atom(Atom::In(listed));
        let others = self.core.formulas.not(listed);
        let rest = self.core.formulas.both(self.core.class_formula(class), others);
        let Some(language) = self.core.language(rest)? else { return Ok(false) };
        let machine = std::sync::Arc::clone(self.core.text(language));
        let read = self.recorded(text, 0);
        let Ok(state) = machine.walk(machine.start(), &read)? else { return Ok(false) };
        let reader = |bytes: &[u8]| Ok(machine.walk(state, bytes)?.map(|_| ()));
        some_completion(escape, self.core.options.escapes, &reader)
    }
}
