//! Reads a property name character by character.

use formalm_core::{Error, LazyDfa};
use formalm_json::escapes::{
    EscapeState, EscapeStep, can_complete_to, read_string_byte, some_completion,
};

use crate::formula::{FormulaAtom, TRUE};
use crate::json::property_names::{NameId, UNMENTIONED_NAME};
use crate::machine::frame::{ContainerState, Frame, NameCandidates};
use crate::machine::names::NextNames;
use crate::machine::names::name_query::NameQuery;
use crate::machine::reader::Reader;
use crate::machine::{EMPTY_RECORD, NO_RECORD, RecordId};

impl Reader {
    /// Returns `true` if some name may come next in an object.
    pub(crate) fn any_name_viable(&mut self, object: Frame) -> Result<bool, Error> {
        let Frame::Object { obligation, used_names, order, .. } = object else { return Ok(false) };
        let mut names = self.names();
        let next_names = names.next_names(obligation, used_names, order)?;
        names.any_viable(next_names)
    }

    /// Returns the frame after the quote that opens a name.
    pub(crate) fn open_name(&mut self, object: Frame) -> Result<Option<Frame>, Error> {
        let Frame::Object { obligation, used_names, order, .. } = object else { return Ok(None) };
        if !self.any_name_viable(object)? {
            return Ok(None);
        }
        let next_names = self.names().next_names(obligation, used_names, order)?;
        let candidates = self.name_tables.get(next_names).start;
        let object = self.frames.intern(object);
        let (text, escape) = (EMPTY_RECORD, EscapeState::None);
        Ok(Some(Frame::Name { object, next_names, text, candidates, escape }))
    }

    /// Returns the frame after a byte of a name.
    pub(crate) fn read_name(&mut self, frame: Frame, byte: u8) -> Result<Option<Frame>, Error> {
        let Frame::Name { object, next_names, mut text, mut candidates, escape } = frame else {
            return Ok(None);
        };
        let read = match read_string_byte(escape, byte, self.core.options.escapes) {
            EscapeStep::Invalid => return Ok(None),
            EscapeStep::End => return self.close_name(frame),
            EscapeStep::Partial(escape) => {
                let after = Frame::Name { object, next_names, text, candidates, escape };
                return Ok(self.escape_viable(after)?.then_some(after));
            }
            EscapeStep::Char(read) => read,
        };
        for &byte in &*read {
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
            if text != NO_RECORD {
                text = self.records.extend(text, byte);
            }
        }
        Ok(Some(Frame::Name { object, next_names, text, candidates, escape: EscapeState::None }))
    }

    /// Returns the object after a name, before its colon.
    pub(crate) fn close_name(&mut self, frame: Frame) -> Result<Option<Frame>, Error> {
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
        let Frame::Object { parent, .. } = self.frames.get(object) else { return Ok(None) };
        let (mode, whitespace) = (ContainerState::AfterName, self.gaps.start());
        Ok(Some(Frame::Object { obligation, used_names, order, mode, whitespace, parent }))
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

    /// Returns `true` if some character that the escape may become leads to an allowed name.
    fn escape_viable(&mut self, frame: Frame) -> Result<bool, Error> {
        let Frame::Name { next_names, text, candidates, escape, .. } = frame else {
            return Ok(false);
        };
        let policy = self.core.options.escapes;
        let NameCandidates { from, to, classes } = candidates;
        let queries = self.strings.get(classes);
        let classes: Vec<_> = queries.required_machines().iter().flatten().copied().collect();
        for (class, state) in classes {
            let machine = self.core.languages.automaton(class);
            let reader = |bytes: &[u8]| Ok(machine.walk(state, bytes)?.map(|_| ()));
            if !some_completion(escape, policy, &reader)? {
                continue;
            }
            if from == to
                || self.core.languages.language_formula(class) == TRUE
                || self.escape_viable_for_unknown(frame, class)?
            {
                return Ok(true);
            }
        }
        let length = self.records.bytes_from(text, 0).len();
        for at in from..to {
            let rest = self.name_tables.known_name(&self.core, next_names, at).get(length..);
            let next = rest.and_then(|rest| rest.chars().next());
            let could = next.is_some_and(|next| can_complete_to(escape, policy, next));
            if could && self.names().known_name_viable(next_names, at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if the escape leads to a name of `class` that is not known.
    fn escape_viable_for_unknown(
        &mut self,
        frame: Frame,
        class: crate::solver::context::LanguageId,
    ) -> Result<bool, Error> {
        let Frame::Name { next_names, text, candidates, escape, .. } = frame else {
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
        some_completion(escape, self.core.options.escapes, &reader)
    }
}
