//! Property names and the start of their values.

use formalm_core::{Error, LazyDfa};

use crate::formula::{FormulaAtom, TRUE};
use crate::json::property_names::{NameId, UNMENTIONED_NAME};
use crate::machine::frame::{
    CharState, ContainerState, FRESH, Frame, Mark, NameCandidates, ReaderPosition,
};
use crate::machine::names::NextNames;
use crate::machine::names::name_query::NameQuery;
use crate::machine::values::scalars::PartialChar;
use crate::machine::values::{AfterEvent, Values};
use crate::machine::{EMPTY_RECORD, NO_RECORD, RecordId};
use crate::solver::context::LanguageId;

impl Values {
    /// Returns `true` if some name may come next in an object.
    pub(crate) fn any_name_viable(&mut self, object: Frame) -> Result<bool, Error> {
        let Frame::Object { obligation, used_names, order, .. } = object else { return Ok(false) };
        if self.residuals.requires_name(&self.core, obligation) {
            return Ok(true);
        }
        let mut names = self.names();
        let next_names = names.next_names(obligation, used_names, order)?;
        names.any_viable(next_names)
    }

    /// Begins another property, if a name may come. The object has `mark` until its value begins.
    pub(crate) fn next_property(&mut self, at: ReaderPosition, mark: Mark) -> AfterEvent {
        if !self.any_name_viable(at.frame)? {
            return Ok(None);
        }
        Ok(self.in_next_property(at, mark))
    }

    /// Returns the position before a name.
    fn in_next_property(&mut self, at: ReaderPosition, mark: Mark) -> Option<ReaderPosition> {
        let Frame::Object { obligation, used_names, order, mode, parent, .. } = at.frame else {
            return None;
        };
        let separator: &[u8] = if mode == ContainerState::AfterValue { b"," } else { b"" };
        let mode = ContainerState::AfterComma;
        let frame = Frame::Object { obligation, used_names, order, mode, mark, parent };
        Some(ReaderPosition { frame, record: self.records.write(at.record, separator) })
    }

    /// Begins a name, and another property if none has begun. The object has `mark` after it.
    pub(crate) fn start_name(&mut self, at: ReaderPosition, mark: Mark) -> AfterEvent {
        let Frame::Object { obligation, used_names, order, .. } = at.frame else {
            return Ok(None);
        };
        if !self.any_name_viable(at.frame)? {
            return Ok(None);
        }
        let next_names = self.names().next_names(obligation, used_names, order)?;
        let candidates = self.name_tables.get(next_names).start;
        let Some(ReaderPosition { frame, record }) = self.in_next_property(at, mark) else {
            return Ok(None);
        };
        let object = self.frames.intern(frame);
        let (text, escape) = (EMPTY_RECORD, CharState::NONE);
        let record = self.records.write(record, b"\"");
        let frame = Frame::Name { object, next_names, text, candidates, escape };
        Ok(Some(ReaderPosition { frame, record }))
    }

    /// Reads bytes of a name, decoded: a character or a part of one.
    pub(crate) fn name_bytes(&mut self, at: ReaderPosition, read: &[u8]) -> AfterEvent {
        let Frame::Name { object, next_names, mut text, mut candidates, .. } = at.frame else {
            return Ok(None);
        };
        for &byte in read {
            let depth = self.records.length(text) as usize;
            let before = text;
            let so_far = || self.records.bytes_from(before, 0);
            let mut names = NameQuery {
                core: &mut self.core,
                residuals: &mut self.residuals,
                strings: &mut self.strings,
                tables: &mut self.name_tables,
            };
            let Some(after) = names.narrow(next_names, candidates, depth, byte, so_far)? else {
                return Ok(None);
            };
            candidates = after;
            text = self.records.write(text, &[byte]);
        }
        let frame = Frame::Name { object, next_names, text, candidates, escape: CharState::NONE };
        let record = self.records.write_string_bytes(at.record, read);
        Ok(Some(ReaderPosition { frame, record }))
    }

    /// Reads a part of a character's spelling. `escape` is the state after it.
    pub(crate) fn name_char(
        &mut self,
        at: ReaderPosition,
        escape: CharState,
        partial: &dyn PartialChar,
    ) -> AfterEvent {
        let Frame::Name { object, next_names, text, candidates, .. } = at.frame else {
            return Ok(None);
        };
        let frame = Frame::Name { object, next_names, text, candidates, escape };
        Ok(self.char_viable(frame, partial)?.then_some(ReaderPosition { frame, ..at }))
    }

    /// Ends a name.
    pub(crate) fn end_name(&mut self, at: ReaderPosition) -> AfterEvent {
        let Some(frame) = self.object_after(at.frame)? else { return Ok(None) };
        Ok(Some(ReaderPosition { frame, record: self.records.write(at.record, b"\"") }))
    }

    /// Begins the value of a property whose name has ended. The object has `mark` after it.
    pub(crate) fn start_value(&mut self, at: ReaderPosition, mark: Mark) -> AfterEvent {
        let Frame::Object { obligation, used_names, order, parent, .. } = at.frame else {
            return Ok(None);
        };
        let Some((obligation, child)) = self.names().start_property(obligation, used_names)? else {
            return Ok(None);
        };
        let mode = ContainerState::InValue;
        let object = Frame::Object { obligation, used_names, order, mode, mark, parent };
        let parent = self.frames.intern(object);
        let record = self.records.write(at.record, b":");
        Ok(Some(ReaderPosition {
            frame: Frame::Value { obligation: child, mark: FRESH, parent },
            record,
        }))
    }

    /// Returns the object after a name, before its value.
    fn object_after(&mut self, frame: Frame) -> Result<Option<Frame>, Error> {
        let Frame::Name { next_names, text, candidates, .. } = frame else { return Ok(None) };
        let length = self.records.length(text) as usize;
        let exact = candidates.from < candidates.to
            && self.name_tables.known_name(&self.core, next_names, candidates.from).len() == length;
        let (name, like) = if exact {
            if !self.names().known_name_viable(next_names, candidates.from)? {
                return Ok(None);
            }
            let name = self.name_tables.get(next_names).known[candidates.from as usize];
            (name, name)
        } else {
            let Some(like) = self.names().class_example(next_names, candidates) else {
                return Ok(None);
            };
            (self.recorded_name(text), like)
        };
        self.object_after_name(frame, (name, like))
    }

    /// Returns the object after `name`, which has the same rules as `like`.
    pub(crate) fn object_after_name(
        &mut self,
        frame: Frame,
        (name, like): (NameId, NameId),
    ) -> Result<Option<Frame>, Error> {
        let Frame::Name { object, next_names, .. } = frame else { return Ok(None) };
        let &NextNames { obligation, used_names, order, .. } = self.name_tables.get(next_names);
        let obligation = self.residuals.after_name(&mut self.core, obligation, like)?;
        let used_names = self.name_tables.used_names_after(&self.core, used_names, order, name);
        let Frame::Object { mark, parent, .. } = self.frames.get(object) else { return Ok(None) };
        let mode = ContainerState::AfterName;
        Ok(Some(Frame::Object { obligation, used_names, order, mode, mark, parent }))
    }

    /// Returns the name that was read, the placeholder of unknown names if it was not recorded.
    pub(crate) fn recorded_name(&mut self, text: RecordId) -> NameId {
        if text == NO_RECORD {
            return UNMENTIONED_NAME;
        }
        // The automata of name classes read whole characters only.
        let read = String::from_utf8_lossy(&self.records.bytes_from(text, 0)).into_owned();
        self.core.base.schema.names.intern(&read)
    }

    /// Returns `true` if some character that `partial` may become leads to an allowed name.
    fn char_viable(&mut self, frame: Frame, partial: &dyn PartialChar) -> Result<bool, Error> {
        let Frame::Name { next_names, text, candidates, .. } = frame else {
            return Ok(false);
        };
        let NameCandidates { from, to, classes } = candidates;
        let queries = self.strings.get(classes);
        let classes: Vec<_> = queries.required_machines().iter().flatten().copied().collect();
        for (class, state) in classes {
            let machine = self.core.languages.automaton(class);
            let reader = |bytes: &[u8]| Ok(machine.walk(state, bytes)?.map(|_| ()));
            if !partial.some_accepted(&reader)? {
                continue;
            }
            if from == to
                || self.core.languages.language_formula(class) == TRUE
                || self.char_viable_for_unknown(frame, class, partial)?
            {
                return Ok(true);
            }
        }
        let length = self.records.bytes_from(text, 0).len();
        for at in from..to {
            let rest = self.name_tables.known_name(&self.core, next_names, at).get(length..);
            let next = rest.and_then(|rest| rest.chars().next());
            let could = next.is_some_and(|next| partial.can_become(next));
            if could && self.names().known_name_viable(next_names, at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if the character leads to a name of `class` that is not known.
    fn char_viable_for_unknown(
        &mut self,
        frame: Frame,
        class: LanguageId,
        partial: &dyn PartialChar,
    ) -> Result<bool, Error> {
        let Frame::Name { next_names, text, candidates, .. } = frame else {
            return Ok(false);
        };
        let known = (candidates.from..candidates.to)
            .map(|at| self.name_tables.known_name(&self.core, next_names, at).to_owned());
        let listed = self.core.base.schema.enum_regex(known.collect());
        let listed = self.core.base.formulas.atom(FormulaAtom::InLanguage(listed));
        let others = self.core.base.formulas.not(listed);
        let rest =
            self.core.base.formulas.both(self.core.languages.language_formula(class), others);
        let Some(language) = self.core.languages.language(&self.core.base, rest)? else {
            return Ok(false);
        };
        let machine = std::sync::Arc::clone(self.core.languages.automaton(language));
        let read = self.records.bytes_from(text, 0);
        let Ok(state) = machine.walk(machine.start(), &read)? else { return Ok(false) };
        let reader = |bytes: &[u8]| Ok(machine.walk(state, bytes)?.map(|_| ()));
        partial.some_accepted(&reader)
    }
}
