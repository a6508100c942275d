//! Abstract states for the completion search: they drop the property names and unique items already
//! read, which can only forbid repetition.
//!
//! If every completion of a state *q* completes its abstract state α(*q*), then a shortest
//! completion *w* of α(*q*) is a shortest completion of *q* too, unless *w* repeats a dropped name
//! or item. All tokens inside a name thus share one completion. [`super::repetition_check`] finds
//! the few tokens for which *w* would repeat something.

use formalm_core::RecheckPredicate;
use formalm_json::escapes::{EscapePolicy, EscapeState, EscapeStep, read_string_byte};

use crate::formula::{Formula, FormulaAtom};
use crate::json::decimal::Decimal;
use crate::json::interned_values::JsonValue;
use crate::machine::NO_RECORD;
use crate::machine::frame::{DONE, Frame, NameCandidates, ObligationId, ReaderPosition};
use crate::machine::spelling::json::repetition_check::{
    RepetitionCheck, SeenStrings, add_strings, strings_of_completion,
};
use crate::machine::values::Values;

/// Returns the abstract position, which every completion of `position` completes.
pub(crate) fn abstract_position(values: &mut Values, position: ReaderPosition) -> ReaderPosition {
    let ReaderPosition { mut frame, mut record } = position;
    if record != NO_RECORD && records_only_forbid(values, frame) {
        record = NO_RECORD;
        values.frames.clear_item_starts(&mut frame);
    }
    if let Frame::Name { object, next_names, candidates, escape, .. } = frame
        && candidates.from == candidates.to
    {
        let candidates = NameCandidates { from: 0, to: 0, ..candidates };
        frame = Frame::Name { object, next_names, text: NO_RECORD, candidates, escape };
    }
    ReaderPosition { frame, record }
}

/// Returns `true` if inputs are recorded for unique items only, and no obligation holds
/// *because* two items are equal.
fn records_only_forbid(values: &mut Values, frame: Frame) -> bool {
    let mut parent = frame.parent().unwrap_or(DONE);
    loop {
        match values.frames.get(parent) {
            Frame::Array { obligation, parent: next, .. } => {
                if values.has_unique_items(obligation) && !is_plain_uniqueness(values, obligation) {
                    return false;
                }
                parent = next;
            }
            Frame::Object { parent: next, .. } => parent = next,
            _ => return true,
        }
    }
}

/// Returns `true` if the array requires distinct items and nothing else depends on which are
/// equal.
fn is_plain_uniqueness(values: &Values, obligation: ObligationId) -> bool {
    let required = values.residuals.get(obligation);
    required.formulas.len() == 1
        && values.core.base.formulas.conjuncts(required.formulas[0]).into_iter().all(|part| {
            let is_one = |atom: &FormulaAtom| {
                matches!(atom, FormulaAtom::UniqueItems(_) | FormulaAtom::UniqueWithCurrent(_))
            };
            match values.core.base.formulas.get(part) {
                Formula::Atom(_) => true,
                _ => !values.core.base.formulas.atoms(part).iter().any(is_one),
            }
        })
}

/// Returns `true` if `completion` ends a number and the array around it, whose items must be
/// distinct, and the number differs from all earlier items. Items of arrays further outside may
/// then not be unique, or the array would be compared with them.
///
/// Tokens of digits lead to a thousand numbers each time. To end each of them would intern a value,
/// formulas and obligations that no input needs.
pub(crate) fn number_repeats_nothing(
    values: &mut Values,
    ReaderPosition { frame, record }: ReaderPosition,
    completion: &[u8],
) -> bool {
    let Frame::Number { parent, .. } = frame else { return false };
    let Frame::Array { obligation, from, parent: mut around, .. } = values.frames.get(parent)
    else {
        return false;
    };
    if record == NO_RECORD
        || completion.first() != Some(&b']')
        || !values.has_unique_items(obligation)
        || !is_plain_uniqueness(values, obligation)
    {
        return false;
    }
    loop {
        around = match values.frames.get(around) {
            Frame::Array { obligation, .. } if values.has_unique_items(obligation) => return false,
            Frame::Array { parent, .. } | Frame::Object { parent, .. } => parent,
            _ => break,
        };
    }
    let number = values.records.bytes_from(record, from);
    let Some(number) = str::from_utf8(&number).ok().and_then(Decimal::parse) else { return false };
    let base = &values.core.base;
    // A number that was never read is not among the items.
    let Some(number) = base.schema.values.find(&JsonValue::Number(number)) else { return true };
    let formula = values.residuals.get(obligation).formulas[0];
    base.formulas.conjuncts(formula).into_iter().all(|part| match base.formulas.get(part) {
        Formula::Atom(FormulaAtom::UniqueItems(seen) | FormulaAtom::UniqueWithCurrent(seen)) => {
            !seen.contains(&number)
        }
        _ => true,
    })
}

/// Asks after which tokens a completion of an abstract state may be invalid in the concrete one.
pub(crate) struct CompletionRecheck<'a> {
    pub(crate) values: &'a mut Values,
    /// The frame of the abstract state.
    pub(crate) frame: Frame,
}

impl CompletionRecheck<'_> {
    /// Returns a predicate for tokens after which `completion` may be invalid in the concrete
    /// state. Returns `None` if it is valid after every token.
    pub(crate) fn recheck_predicate(
        &mut self,
        position: Option<ReaderPosition>,
        completion: &[u8],
    ) -> Option<RecheckPredicate> {
        let frame = self.frame;
        let opening = match frame {
            Frame::String { escape, .. } | Frame::Name { escape, .. } => Some(escape.escape()),
            _ => None,
        };
        let escapes = self.values.core.options.escapes;
        let (named, mut strings) = strings_of_completion(completion, opening, escapes);
        let has_unique_items = self.add_item_strings(&mut strings);
        let names = self.dropped_names(named);
        if names.is_empty() && !has_unique_items {
            return None;
        }
        let open = match position {
            Some(position) => open_string(self.values, position),
            // The part of a token before the value cannot be separated from the part inside it.
            None => return Some(Box::new(|_| true)),
        };
        let completion = completion.to_vec();
        let items = has_unique_items.then_some(strings);
        let mut repeated =
            RepetitionCheck { escapes, open, completion, names, items, infixes: None };
        // Only plain tokens inside a string lead to a string state.
        if opening == Some(EscapeState::None) {
            repeated.find_infixes();
        }
        Some(Box::new(move |token| repeated.may_repeat(token)))
    }

    /// Returns the names that the completion uses in objects already open and that may repeat an
    /// earlier one. Names that the formulas mention are never dropped from a state.
    fn dropped_names(&mut self, named: Vec<(usize, Vec<u8>)>) -> SeenStrings {
        let frame = self.frame;
        let mut names = SeenStrings::default();
        let mut all = match frame {
            Frame::Object { .. } | Frame::Array { .. } => vec![frame],
            _ => Vec::new(),
        };
        let mut parent = frame.parent().unwrap_or(DONE);
        while all.len() <= named.iter().map(|one| one.0).max().unwrap_or(0) {
            let around = self.values.frames.get(parent);
            all.push(around);
            parent = match around {
                Frame::Object { parent, .. } | Frame::Array { parent, .. } => parent,
                _ => break,
            };
        }
        for (depth, name) in named {
            let is_mentioned = match all.get(depth) {
                Some(&Frame::Object { obligation, .. }) => {
                    let known = self
                        .values
                        .residuals
                        .mentioned_names(&mut self.values.core, obligation)
                        .names;
                    known
                        .iter()
                        .any(|&one| self.values.core.base.schema.names.get(one).as_bytes() == name)
                }
                _ => false,
            };
            if !is_mentioned {
                names.insert(name);
            }
        }
        names
    }

    /// Adds the strings in earlier unique items. Returns `true` if an array with unique items
    /// surrounds the frame, or is the frame.
    fn add_item_strings(&self, strings: &mut SeenStrings) -> bool {
        let frame = self.frame;
        let mut has_unique_items = false;
        let mut add = |obligation: ObligationId| {
            for &formula in &self.values.residuals.get(obligation).formulas {
                for atom in self.values.core.base.formulas.atoms(formula) {
                    if let FormulaAtom::UniqueItems(taken) | FormulaAtom::UniqueWithCurrent(taken) =
                        atom
                    {
                        has_unique_items = true;
                        let schema = &self.values.core.base.schema;
                        let mut left = taken.to_vec();
                        while let Some(value) = left.pop() {
                            add_strings(value, &schema.values, &schema.names, &mut left, strings);
                        }
                    }
                }
            }
        };
        if let Frame::Array { obligation, .. } = frame {
            add(obligation);
        }
        let mut parent = frame.parent().unwrap_or(DONE);
        loop {
            parent = match self.values.frames.get(parent) {
                Frame::Array { obligation, parent, .. } => {
                    add(obligation);
                    parent
                }
                Frame::Object { parent, .. } => parent,
                _ => break,
            };
        }
        has_unique_items
    }
}

/// Returns the string that a position is inside of, with its content where that is recorded.
fn open_string(
    values: &Values,
    ReaderPosition { frame, record }: ReaderPosition,
) -> Option<(Option<Vec<u8>>, EscapeState)> {
    match frame {
        Frame::Name { text, escape, .. } => {
            let read = (text != NO_RECORD).then(|| values.records.bytes_from(text, 0));
            Some((read, escape.escape()))
        }
        Frame::String { escape, .. } => {
            if record == NO_RECORD {
                return Some((None, escape.escape()));
            }
            let mut open: Option<(Vec<u8>, EscapeState)> = None;
            for byte in values.records.bytes_from(record, 0) {
                let Some((text, escape)) = &mut open else {
                    open = (byte == b'"').then_some((Vec::new(), EscapeState::None));
                    continue;
                };
                // A record has escapes of its own.
                match read_string_byte(*escape, byte, EscapePolicy::Any) {
                    EscapeStep::Char(read) => {
                        text.extend_from_slice(&read);
                        *escape = EscapeState::None;
                    }
                    EscapeStep::Partial(further) => *escape = further,
                    EscapeStep::End | EscapeStep::Invalid => open = None,
                }
            }
            Some((open.map(|(text, _)| text), escape.escape()))
        }
        _ => None,
    }
}
