//! Lower bounds on the total length of *k* distinct values or strings.
//!
//! With at most cₙ values of length n, the k shortest have a total length of at least Σ n·min(cₙ,
//! what is left of k). Counting is exact for small integers and for strings with few states, and
//! over-approximates otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;

use formalm_automata::json_escapes::EscapePolicy;
use formalm_automata::{Error, Machine, StateId};

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::json::decimal::Decimal;
use crate::json::interned_values::{JsonValue, ValueId};
use crate::machine::LazyTables;
use crate::machine::min_bytes::SearchBudget;
use crate::machine::min_bytes::escaped_strings::escaped_len;
use crate::schema_nodes::JsonType;
use crate::solver::context::LanguageId;
use crate::solver::number_satisfies;

/// Values of at least this many bytes are not distinguished by length. Chosen, not measured.
const MAX_LENGTH: usize = 12;

/// A count that stands for enough values of a length.
const UNBOUNDED: u64 = 1 << 40;

/// Maximum number of automaton states per length while strings are counted. Chosen, not measured.
const MAX_LAYER_STATES: usize = 500;

/// Number of ASCII characters that need no escape.
const PRINTABLE_ASCII: u64 = 94;

/// Upper bounds on the number of values, by length.
pub(crate) type LengthCounts = Arc<[u64; MAX_LENGTH]>;

/// Upper bounds on the number of values by length, and the strings and numbers that were counted
/// exactly.
#[derive(Debug)]
pub(crate) struct ValueLengths {
    counts: [u64; MAX_LENGTH],
    texts: FormulaId,
    numbers: FormulaId,
}

impl LazyTables {
    /// Returns a bound on the total bytes of `count` values that differ from each other and from
    /// `taken`.
    pub(crate) fn min_distinct_bytes(
        &mut self,
        value: FormulaId,
        taken: &[ValueId],
        count: u64,
        least: usize,
    ) -> Result<usize, Error> {
        let lengths = match self.bound_cache.value_lengths.get(&value) {
            Some(known) => Arc::clone(known),
            None => {
                let lengths = Arc::new(self.value_lengths(value)?);
                self.bound_cache.value_lengths.insert(value, Arc::clone(&lengths));
                lengths
            }
        };
        let mut counts = lengths.counts;
        for &one in taken {
            let length = match self.bound_cache.counted_lengths.get(&(value, one)) {
                Some(&known) => known,
                None => {
                    let length = self.length_counted_for(&lengths, one)?;
                    self.bound_cache.counted_lengths.insert((value, one), length);
                    length
                }
            };
            if let Some(count) = counts.get_mut(length) {
                *count = count.saturating_sub(1);
            }
        }
        Ok(sum_of_shortest(&counts, count, least))
    }

    /// Counts the values of a formula by length.
    fn value_lengths(&mut self, value: FormulaId) -> Result<ValueLengths, Error> {
        let (mut counts, mut texts, mut numbers) = ([0u64; MAX_LENGTH], FALSE, FALSE);
        for of in JsonType::ALL {
            let formula =
                if value == TRUE { TRUE } else { self.reader.core.formula_for_type(value, of)? };
            let some: &[(usize, u64)] = match of {
                _ if formula == FALSE => &[],
                JsonType::Null => &[(4, 1)],
                JsonType::Bool => &[(4, 1), (5, 1)],
                // Ten digits have one byte; two digits, or a minus and a digit, have two.
                JsonType::Number => {
                    numbers = formula;
                    let few = (-9..100).filter(|&one| self.holds_for_integer(formula, one));
                    few.for_each(|one| counts[if (0..10).contains(&one) { 1 } else { 2 }] += 1);
                    &[(3, UNBOUNDED)]
                }
                JsonType::String => {
                    texts = formula;
                    let escaped = self.strings_by_length(formula, true)?;
                    for (all, more) in counts.iter_mut().skip(2).zip(escaped.iter()) {
                        *all = all.saturating_add(*more);
                    }
                    &[]
                }
                // The empty array, arrays of one digit, and arrays of anything with two bytes.
                JsonType::Array => &[(2, 1), (3, 10), (4, 102), (5, UNBOUNDED)],
                JsonType::Object => &[(2, 1), (6, 10), (7, UNBOUNDED)],
            };
            for &(length, more) in some {
                counts[length] = counts[length].saturating_add(more);
            }
            if let Some(&(length, UNBOUNDED)) = some.last() {
                counts[length..].fill(UNBOUNDED);
            }
        }
        Ok(ValueLengths { counts, texts, numbers })
    }

    /// Returns the length that a value was counted for, or [`MAX_LENGTH`] if it was not counted.
    fn length_counted_for(
        &mut self,
        lengths: &ValueLengths,
        value: ValueId,
    ) -> Result<usize, Error> {
        let &ValueLengths { texts, numbers, .. } = lengths;
        Ok(match self.reader.core.schema.values.get(value).clone() {
            JsonValue::String(text)
                if texts != FALSE && self.reader.core.contains_string(texts, &text)? =>
            {
                let escapes = self.reader.core.options.escapes;
                2 + text.bytes().map(|byte| escaped_len(byte, escapes)).sum::<usize>()
            }
            JsonValue::Number(number) => {
                let few = (-9..100).find(|&one| number == Decimal::from_integer(one));
                match few.filter(|&one| self.holds_for_integer(numbers, one)) {
                    Some(0..10) => 1,
                    Some(_) => 2,
                    None => MAX_LENGTH,
                }
            }
            _ => MAX_LENGTH,
        })
    }

    fn holds_for_integer(&self, numbers: FormulaId, one: i64) -> bool {
        let value = Decimal::from_integer(one);
        self.reader
            .core
            .formulas
            .evaluate(numbers, &mut |atom| number_satisfies(atom, &value, true))
    }

    /// Returns a bound on the total length of `count` distinct strings, before escaping.
    pub(crate) fn min_strings_len(
        &mut self,
        texts: FormulaId,
        count: u64,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        let (counts, least) =
            (self.strings_by_length(texts, false)?, self.min_string_len(texts, budget)?);
        Ok(sum_of_shortest(&counts[..], count, least))
    }

    /// Returns a formula satisfied by every name whose value may exist.
    pub(crate) fn allowed_names(&mut self, parts: &[FormulaId]) -> Result<FormulaId, Error> {
        let mut all = Vec::new();
        for &part in parts {
            match self.reader.core.formulas.get(part).clone() {
                Formula::Atom(FormulaAtom::PropertyNames(names)) => all.push(names),
                Formula::Atom(FormulaAtom::Properties(rules)) => {
                    for (which, node) in rules.iter().filter(|rule| rule.0.names.is_none()) {
                        if self.reader.core.child(*node) == FALSE {
                            all.push(self.names_outside(which));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(self.reader.core.formulas.and(all))
    }

    /// Returns the names that do not match a pattern rule.
    fn names_outside(&mut self, which: &NameSelector) -> FormulaId {
        let (schema, formulas) = (&mut self.reader.core.schema, &mut self.reader.core.formulas);
        let names =
            which.excluded_names.iter().map(|&name| schema.names.get(name).to_owned()).collect();
        let listed = schema.enum_regex(names);
        let mut any = vec![formulas.atom(FormulaAtom::InLanguage(listed))];
        any.extend(
            which
                .unmatched_patterns
                .iter()
                .map(|&regex| formulas.atom(FormulaAtom::InLanguage(regex))),
        );
        for &regex in &which.matched_patterns {
            let found = formulas.atom(FormulaAtom::InLanguage(regex));
            any.push(formulas.not(found));
        }
        formulas.or(any)
    }

    /// Returns upper bounds on the number of strings by length, escaped or not, without quotes.
    fn strings_by_length(
        &mut self,
        texts: FormulaId,
        escaped: bool,
    ) -> Result<LengthCounts, Error> {
        if texts == TRUE {
            let mut counts = [UNBOUNDED; MAX_LENGTH];
            (counts[0], counts[1]) = (1, PRINTABLE_ASCII);
            return Ok(Arc::new(counts));
        }
        let Some(language) = self.reader.core.language(texts)? else {
            return Ok(Arc::new([0; MAX_LENGTH]));
        };
        if let Some(known) = self.bound_cache.string_counts.get(&(language, escaped)) {
            return Ok(Arc::clone(known));
        }
        let counts = Arc::new(self.count_strings(language, escaped)?);
        self.bound_cache.string_counts.insert((language, escaped), Arc::clone(&counts));
        Ok(counts)
    }

    /// Counts the strings of an automaton by length, layer by layer.
    fn count_strings(
        &self,
        language: LanguageId,
        escaped: bool,
    ) -> Result<[u64; MAX_LENGTH], Error> {
        let (machine, escapes) =
            (self.reader.core.automaton(language), self.reader.core.options.escapes);
        let byte_len = |byte: u8| if escaped { escaped_byte_len(byte, escapes) } else { 1 };
        let mut layers: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); MAX_LENGTH];
        layers[0].insert(machine.start().number(), 1);
        let mut counts = [UNBOUNDED; MAX_LENGTH];
        for at in 0..MAX_LENGTH {
            let layer = std::mem::take(&mut layers[at]);
            if layer.len() > MAX_LAYER_STATES {
                // Beyond this length the counts stay unbounded.
                break;
            }
            counts[at] = 0;
            for (state, count) in layer {
                let state = StateId::from_number(state);
                if machine.is_accepting(state) {
                    counts[at] = counts[at].saturating_add(count).min(UNBOUNDED);
                }
                for byte in machine.live_bytes(state)?.iter() {
                    let Some(later) = layers.get_mut(at + byte_len(byte)) else {
                        continue;
                    };
                    if let Some(next) = machine.step(state, byte)? {
                        let all = later.entry(next.number()).or_insert(0);
                        *all = all.saturating_add(count).min(UNBOUNDED);
                    }
                }
            }
        }
        Ok(counts)
    }
}

/// Returns the bytes that one byte of a string takes when escaped. The bytes of a character share
/// the length of its escape.
fn escaped_byte_len(byte: u8, escapes: EscapePolicy) -> usize {
    match byte {
        _ if byte < 0x80 || escapes != EscapePolicy::Ascii => escaped_len(byte, escapes),
        0x80..0xC0 => 1,
        0xC0..0xE0 => 5,
        0xE0..0xF0 => 4,
        _ => 9,
    }
}

/// Returns the total length of the `count` shortest values; those beyond the counted lengths have
/// the next one.
fn sum_of_shortest(counts: &[u64], count: u64, least: usize) -> usize {
    let (mut left, mut sum) = (count, 0usize);
    for (length, &some) in counts.iter().enumerate().skip(least) {
        let now = some.min(left);
        left -= now;
        sum = sum.saturating_add(usize::try_from(now).unwrap_or(usize::MAX).saturating_mul(length));
        if left == 0 {
            return sum;
        }
    }
    let length = counts.len().max(least);
    sum.saturating_add(usize::try_from(left).unwrap_or(usize::MAX).saturating_mul(length))
}
