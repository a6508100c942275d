//! Prunes the bytes that the completion search branches on.
//!
//! A byte is left out if the completions through it are longer, or equally long and
//! lexicographically no smaller, than others. Without pruning, each free string and each unknown
//! name would branch over all bytes.

use formalm_core::{ByteSet, CompactMap, Error, LazyDfa, StateId};
use formalm_json::escapes::{EscapePolicy, EscapeState};
use rustc_hash::FxHashSet;

use crate::formula::{Formula, FormulaArena, FormulaAtom, FormulaId, TRUE};
use crate::machine::frame::{
    ContainerState, DONE, Frame, NameCandidates, NextNamesId, ReaderPosition,
};
use crate::machine::min_bytes::SearchBudget;
use crate::machine::min_bytes::escaped_strings::{StringBounds, StringSuffix, escaped_len};
use crate::machine::reader::Reader;
use crate::machine::reader::whitespace::WhitespaceGap;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::{NO_RECORD, RecordId};
use crate::options::PropertyOrder;
use crate::solver::context::LanguageId;

/// Asks for the bytes that the lexicographically least of the shortest completions may begin with.
pub(crate) struct UsefulBytes<'a> {
    pub(crate) reader: &'a mut Reader,
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
                let escapes = self.reader.core.options.escapes;
                self.shortest_suffix(language, state)?.next(escape, escapes)
            }
            Frame::Object {
                obligation,
                mode: mode @ (ContainerState::AfterOpen | ContainerState::AfterValue),
                whitespace,
                parent,
                ..
            } => {
                let ends = free
                    && self.reader.residuals.has_independent_names(&self.reader.core, obligation)
                    && self.reader.end_verdicts(obligation).is_some();
                match mode {
                    ContainerState::AfterOpen if self.reader.gaps.is_committed(whitespace) => None,
                    ContainerState::AfterOpen => ends.then_some(b'}'),
                    _ => {
                        let after_whitespace = self.reader.gaps.byte(
                            WhitespaceGap::Close,
                            self.reader.frames.depth(parent) + 1,
                            whitespace,
                        );
                        ends.then(|| after_whitespace.unwrap_or(b'}'))
                    }
                }
            }
            Frame::Value { whitespace, parent, .. } if parent != DONE => {
                let (gap, depth) = WhitespaceGap::before_value(&self.reader.frames, parent);
                self.reader.gaps.byte(gap, depth, whitespace)
            }
            Frame::Name { next_names, text, candidates, escape: EscapeState::None, .. } if free => {
                let read = self.reader.records.length(text) as usize;
                let required = self.required_name_byte(next_names, candidates, read)?;
                if required.is_none() || !self.reader.name_tables.get(next_names).independent {
                    let last = required.unwrap_or(u8::MAX);
                    // Inside a character, the bytes of other characters lead nowhere.
                    let others_are_alike =
                        self.reader.strings.allows_only_known_names(candidates.classes)
                            || self
                                .reader
                                .strings
                                .any_name_may_end(&self.reader.core, candidates.classes);
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
        if let Frame::String { language, state, escape: EscapeState::None, .. } = frame {
            return self.string_bytes(language, state);
        }
        let laid_out = self.reader.core.options.layout.is_some();
        match may_begin(frame) {
            None => return Ok(any_byte()),
            Some(bytes) => {
                let whitespace: &[u8] = if laid_out { b" \t\n\r" } else { b"" };
                bytes.iter().chain(whitespace).for_each(|&byte| set.insert(byte));
            }
        }
        Ok(set)
    }

    fn shortest_suffix(
        &mut self,
        language: LanguageId,
        state: StateId,
    ) -> Result<StringSuffix, Error> {
        self.strings.shortest_suffix(&self.reader.core, language, state, self.budget)
    }

    /// Returns the quote and the bytes with which a string continues. Characters that need no
    /// escape are not escaped.
    fn string_bytes(&self, language: LanguageId, state: StateId) -> Result<ByteSet, Error> {
        let mut set = ByteSet::default();
        set.insert(b'"');
        for byte in self.reader.core.languages.automaton(language).live_bytes(state)?.iter() {
            let is_unescaped = escaped_len(byte, self.reader.core.options.escapes) == 1;
            set.insert(if is_unescaped { byte } else { b'\\' });
        }
        Ok(set)
    }

    /// Returns the quote and the bytes with which known names continue.
    fn known_name_bytes(
        &self,
        next_names: NextNamesId,
        candidates: NameCandidates,
        read: usize,
    ) -> ByteSet {
        let ascii = self.reader.core.options.escapes == EscapePolicy::Ascii;
        let mut set = ByteSet::default();
        set.insert(b'"');
        for at in candidates.from..candidates.to {
            let Some(&byte) = self
                .reader
                .name_tables
                .known_name(&self.reader.core, next_names, at)
                .as_bytes()
                .get(read)
            else {
                continue;
            };
            let escaped = byte < 0x20 || matches!(byte, b'"' | b'\\') || (byte >= 0x80 && ascii);
            set.insert(if escaped { b'\\' } else { byte });
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
        let required =
            self.reader.residuals.get(self.reader.name_tables.get(next_names).obligation);
        if required.goal != TRUE
            || !required
                .formulas
                .iter()
                .all(|&id| UnnamedNeeds::new(&self.reader.core.base.formulas).needs_none(id))
        {
            return Ok(None);
        }
        let mut set = self.known_name_bytes(next_names, candidates, read);
        let classes = self.reader.strings.get(candidates.classes);
        if classes.has_guard {
            // Names that satisfy other tests may have longer or shorter values.
            return Ok(None);
        }
        let classes = classes.machines.clone();
        let so_far = self.reader.records.bytes_from(text, 0);
        for &(class, state) in classes.iter().flatten() {
            let rest = self.shortest_suffix(class, state)?;
            let whole = [&so_far, rest.remaining()].concat();
            if (candidates.from..candidates.to).any(|at| {
                self.reader.name_tables.known_name(&self.reader.core, next_names, at).as_bytes()
                    == whole
            }) {
                return Ok(None);
            }
            if let Some(byte) = rest.next(EscapeState::None, self.reader.core.options.escapes) {
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
        let plain = (b' '..0x7F).find(|&byte| byte != b'\\' && !set.contains(byte));
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
        if !self.reader.name_tables.get(next_names).independent
            && self.reader.core.options.property_order != PropertyOrder::Any
        {
            return Ok(None);
        }
        let must =
            self.reader.residuals.get(self.reader.name_tables.get(next_names).obligation).formulas
                [0];
        let mut required = FxHashSet::default();
        for part in self.reader.core.base.formulas.conjuncts(must) {
            if let Formula::Atom(FormulaAtom::Required(names)) =
                self.reader.core.base.formulas.get(part)
            {
                required.extend(names.iter().copied());
            }
        }
        let mut least: Option<u8> = None;
        for at in candidates.from..candidates.to {
            let name = self.reader.name_tables.get(next_names).known[at as usize];
            if !required.contains(&name) {
                continue;
            }
            let text =
                self.reader.name_tables.known_name(&self.reader.core, next_names, at).as_bytes();
            let byte = text.get(read).copied().unwrap_or(b'"');
            let ascii = self.reader.core.options.escapes == EscapePolicy::Ascii;
            let escaped = byte < 0x20
                || byte == b'\\'
                || (byte == b'"' && read < text.len())
                || (byte >= 0x80 && ascii);
            // Comparing bytes is cheaper than deciding whether a name is viable.
            if (!escaped && least.is_some_and(|least| least <= byte))
                || !self.reader.names().known_name_viable(next_names, at)?
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

/// Returns the bytes, except whitespace, that may be needed in a frame; `None` if any may be.
fn may_begin(frame: Frame) -> Option<&'static [u8]> {
    Some(match frame {
        Frame::String { escape, .. } | Frame::Name { escape, .. } => match escape {
            EscapeState::None => return None,
            EscapeState::Backslash { .. } => b"\"/\\bfnrtu",
            EscapeState::Hex { .. } => b"0123456789ABCDEFabcdef",
            EscapeState::HighSurrogate { .. } => b"\\",
        },
        Frame::Object { mode, .. } => match mode {
            ContainerState::AfterOpen => b"\"}",
            ContainerState::AfterComma => b"\"",
            ContainerState::AfterName => b":",
            ContainerState::InValue | ContainerState::AfterValue => b",}",
        },
        Frame::Array { mode: ContainerState::AfterValue, .. } => b",]",
        Frame::Array { .. } => b"\"-0123456789[]fnt{",
        Frame::Value { .. } => b"\"-0123456789[fnt{",
        Frame::Number { .. } => b"+,-.0123456789E]e}",
        Frame::Literal { rest, .. } => &rest[..1],
        Frame::Done => b"",
    })
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
