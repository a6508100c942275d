//! Prunes the bytes that the completion search branches on.
//!
//! A byte is left out if the completions through it are longer, or equally long and
//! lexicographically no smaller, than others. Without pruning, each free string and each unknown
//! name would branch over all bytes.

use formalm_core::{ByteSet, CompactMap, Error, LazyDfa, StateId};
use rustc_hash::FxHashSet;

use crate::formula::{Formula, FormulaArena, FormulaAtom, FormulaId, TRUE};
use crate::machine::frame::{
    CharState, ContainerState, Frame, NameCandidates, NextNamesId, ReaderPosition,
};
use crate::machine::min_bytes::SearchBudget;
use crate::machine::min_bytes::escaped_strings::{StringBounds, StringSuffix};
use crate::machine::reader::AnyReader;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::{NO_RECORD, RecordId};
use crate::options::PropertyOrder;
use crate::solver::context::LanguageId;

/// Asks for the bytes that the lexicographically least of the shortest completions may begin with.
pub(crate) struct UsefulBytes<'a> {
    pub(crate) reader: &'a mut AnyReader,
    pub(crate) strings: &'a mut StringBounds,
    pub(crate) budget: &'a mut SearchBudget,
}

impl UsefulBytes<'_> {
    /// Returns the bytes that the lexicographically least of the shortest completions may begin
    /// with.
    pub(crate) fn of(&mut self, position: ReaderPosition) -> Result<ByteSet, Error> {
        let ReaderPosition { frame, record } = position;
        // Under `uniqueItems` the content of an item matters.
        let free = record == NO_RECORD;
        let only = match frame {
            Frame::String { language, state, queries: NO_QUERIES, escape, .. } if free => {
                self.shortest_suffix(language, state)?.next(escape, &self.reader.spelling)
            }
            Frame::Object {
                obligation,
                mode: ContainerState::AfterOpen | ContainerState::AfterValue,
                ..
            } => {
                let ends = free
                    && self
                        .reader
                        .values
                        .residuals
                        .has_independent_names(&self.reader.values.core, obligation)
                    && self.reader.values.end_verdicts(obligation).is_some();
                match ends {
                    true => self.reader.spelling.closing_byte(&self.reader.values, &frame),
                    false => None,
                }
            }
            Frame::Value { mark, parent, .. } => {
                self.reader.spelling.gap_byte(&self.reader.values, parent, mark)
            }
            Frame::Name { next_names, text, candidates, escape: CharState::NONE, .. } if free => {
                let read = self.reader.values.records.length(text) as usize;
                let required = self.required_name_byte(next_names, candidates, read)?;
                if required.is_none() || !self.reader.values.name_tables.get(next_names).independent
                {
                    let last = required.unwrap_or(u8::MAX);
                    // Inside a character, the bytes of other characters lead nowhere.
                    let others_are_alike =
                        self.reader.values.strings.allows_only_known_names(candidates.classes)
                            || self
                                .reader
                                .values
                                .strings
                                .any_name_may_end(&self.reader.values.core, candidates.classes);
                    let mut all = match others_are_alike {
                        true => self.known_and_other_bytes(next_names, candidates, read),
                        false => {
                            let along = self.class_bytes((next_names, text), candidates, read)?;
                            along.unwrap_or_else(any_byte)
                        }
                    };
                    (last..=u8::MAX).skip(1).for_each(|byte| all.remove(byte));
                    return Ok(all);
                }
                required
            }
            _ => None,
        };
        let mut set = ByteSet::default();
        if let Some(byte) = only {
            set.insert(byte);
            return Ok(set);
        }
        if let Frame::String { language, state, escape: CharState::NONE, .. } = frame {
            return self.string_bytes(language, state);
        }
        Ok(self.reader.spelling.useful_bytes(&frame).unwrap_or_else(any_byte))
    }

    fn shortest_suffix(
        &mut self,
        language: LanguageId,
        state: StateId,
    ) -> Result<StringSuffix, Error> {
        let reader = &*self.reader;
        let (core, spelling) = (&reader.values.core, &reader.spelling);
        self.strings.shortest_suffix(core, spelling, language, state, self.budget)
    }

    /// Returns the first byte after a string or name, as a set.
    fn string_end(&self) -> ByteSet {
        let mut set = ByteSet::default();
        self.reader.spelling.string_end().first().iter().for_each(|&&byte| set.insert(byte));
        set
    }

    /// Returns the first byte that spells a byte of a string or name.
    fn first_byte(&self, byte: u8) -> u8 {
        (self.reader.spelling.byte_order(byte) >> 16) as u8
    }

    /// Returns the bytes with which a string ends or continues. Characters that need no escape are
    /// not escaped.
    fn string_bytes(&self, language: LanguageId, state: StateId) -> Result<ByteSet, Error> {
        let mut set = self.string_end();
        for byte in self.reader.values.core.languages.automaton(language).live_bytes(state)?.iter()
        {
            set.insert(self.first_byte(byte));
        }
        Ok(set)
    }

    /// Returns the bytes with which known names end or continue.
    fn known_name_bytes(
        &self,
        next_names: NextNamesId,
        candidates: NameCandidates,
        read: usize,
    ) -> ByteSet {
        let mut set = self.string_end();
        for at in candidates.from..candidates.to {
            let Some(&byte) = self
                .reader
                .values
                .name_tables
                .known_name(&self.reader.values.core, next_names, at)
                .as_bytes()
                .get(read)
            else {
                continue;
            };
            set.insert(self.first_byte(byte));
        }
        set
    }

    /// Returns the bytes of known names and, for each class of other names, that of its
    /// lexicographically least shortest name: names of a class are equivalent.
    ///
    /// Returns `None` if several names of a class may be needed, because then their order matters,
    /// and if one of these names is a known one, which belongs to no class.
    fn class_bytes(
        &mut self,
        (next_names, text): (NextNamesId, RecordId),
        candidates: NameCandidates,
        read: usize,
    ) -> Result<Option<ByteSet>, Error> {
        let required = self
            .reader
            .values
            .residuals
            .get(self.reader.values.name_tables.get(next_names).obligation);
        if required.goal != TRUE
            || !required
                .formulas
                .iter()
                .all(|&id| UnnamedNeeds::new(&self.reader.values.core.base.formulas).needs_none(id))
        {
            return Ok(None);
        }
        let mut set = self.known_name_bytes(next_names, candidates, read);
        let classes = self.reader.values.strings.get(candidates.classes);
        if classes.has_guard {
            // Names that satisfy other tests may have longer or shorter values.
            return Ok(None);
        }
        let classes = classes.machines.clone();
        let so_far = self.reader.values.records.bytes_from(text, 0);
        for &(class, state) in classes.iter().flatten() {
            let rest = self.shortest_suffix(class, state)?;
            let whole = [&so_far, rest.remaining()].concat();
            if (candidates.from..candidates.to).any(|at| {
                self.reader
                    .values
                    .name_tables
                    .known_name(&self.reader.values.core, next_names, at)
                    .as_bytes()
                    == whole
            }) {
                return Ok(None);
            }
            if let Some(byte) = rest.next(CharState::NONE, &self.reader.spelling) {
                set.insert(byte);
            }
        }
        Ok(Some(set))
    }

    /// Returns the bytes of known names, and the least byte that begins none of them: after it all
    /// names are equivalent and allowed.
    fn known_and_other_bytes(
        &self,
        next_names: NextNamesId,
        candidates: NameCandidates,
        read: usize,
    ) -> ByteSet {
        let mut set = self.known_name_bytes(next_names, candidates, read);
        let spelling = &self.reader.spelling;
        let plain = (b' '..0x7F).find(|&byte| spelling.byte_len(byte) == 1 && !set.contains(byte));
        match plain {
            Some(byte) => set.insert(byte),
            None => return any_byte(),
        }
        set
    }

    /// Returns the next byte of the least required name that extends the input. Required properties
    /// in ascending order are lexicographically least; only a declared order forbids that.
    fn required_name_byte(
        &mut self,
        next_names: NextNamesId,
        candidates: NameCandidates,
        read: usize,
    ) -> Result<Option<u8>, Error> {
        if !self.reader.values.name_tables.get(next_names).independent
            && self.reader.values.core.options.property_order != PropertyOrder::Any
        {
            return Ok(None);
        }
        let must = self
            .reader
            .values
            .residuals
            .get(self.reader.values.name_tables.get(next_names).obligation)
            .formulas[0];
        let mut required = FxHashSet::default();
        for part in self.reader.values.core.base.formulas.conjuncts(must) {
            if let Formula::Atom(FormulaAtom::Required(names)) =
                self.reader.values.core.base.formulas.get(part)
            {
                required.extend(names.iter().copied());
            }
        }
        let mut least: Option<u8> = None;
        for at in candidates.from..candidates.to {
            let name = self.reader.values.name_tables.get(next_names).known[at as usize];
            if !required.contains(&name) {
                continue;
            }
            let text = self
                .reader
                .values
                .name_tables
                .known_name(&self.reader.values.core, next_names, at)
                .as_bytes();
            let spelling = &self.reader.spelling;
            let (byte, escaped) = match text.get(read) {
                Some(&byte) => (byte, spelling.byte_len(byte) != 1),
                None => match spelling.string_end().first() {
                    Some(&byte) => (byte, false),
                    None => return Ok(None),
                },
            };
            // Comparing bytes is cheaper than deciding whether a name is viable.
            if (!escaped && least.is_some_and(|least| least <= byte))
                || !self.reader.values.names().known_name_viable(next_names, at)?
            {
                continue;
            }
            if escaped {
                return Ok(None);
            }
            least = Some(byte);
        }
        Ok(least)
    }
}

/// Looks for statements that unnamed properties help to satisfy.
struct UnnamedNeeds<'a> {
    formulas: &'a FormulaArena,
    known: CompactMap<FormulaId, bool>,
}

impl<'a> UnnamedNeeds<'a> {
    fn new(formulas: &'a FormulaArena) -> UnnamedNeeds<'a> {
        UnnamedNeeds { formulas, known: CompactMap::default() }
    }

    /// Returns `true` if properties that a formula does not name never help to satisfy it.
    fn needs_none(&mut self, id: FormulaId) -> bool {
        let formulas = self.formulas;
        let is_small = formulas.is_small(id);
        if !is_small && let Some(&known) = self.known.get(&id) {
            return known;
        }
        let names_only = |id: FormulaId| {
            !formulas.any_atom(&[id], |one| !matches!(one, FormulaAtom::Required(_)))
        };
        let needs_none = match formulas.get(id) {
            Formula::Atom(FormulaAtom::MinProperties(_)) => false,
            Formula::Not(inner) => {
                let is_most =
                    matches!(formulas.get(*inner), Formula::Atom(FormulaAtom::MinProperties(_)));
                is_most || names_only(*inner)
            }
            Formula::ExactlyOne(_) => names_only(id),
            Formula::And(list) | Formula::Or(list) => list.iter().all(|&one| self.needs_none(one)),
            _ => true,
        };
        if !is_small {
            self.known.insert(id, needs_none);
        }
        needs_none
    }
}

fn any_byte() -> ByteSet {
    let mut set = ByteSet::default();
    (0..=255).for_each(|byte| set.insert(byte));
    set
}
