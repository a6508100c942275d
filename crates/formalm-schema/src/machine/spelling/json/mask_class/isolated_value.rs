//! Values read in isolation: while a token stays inside a value, its effect does not depend on the
//! surroundings.
//!
//! The value becomes an item of an unconstrained array. It has ended when that array is in the
//! state after an item. Masks of isolated values are thus shared by all their occurrences. Before
//! the whitespace that a layout prescribes after a colon, it becomes a property value instead.

use formalm_core::{ByteSet, CompactMap, Error, MaskClassId, SetOnce, keyed_hash, memory_bytes};
use formalm_machines::ValueEnd;

use crate::formula::{FALSE, FormulaArena, FormulaAtom, FormulaId, TRUE};
use crate::json::decimal::Decimal;
use crate::machine::frame::{
    ContainerState, DONE, FRESH, Frame, FrameId, NumberPrefix, NumberPrefixId, Obligation,
    ObligationId, ReaderPosition,
};
use crate::machine::names::{ANY_ORDER, NO_USED_NAMES};
use crate::machine::numbers::is_number_byte;
use crate::machine::reader::Reader;
use crate::machine::residuals::NO_VERDICTS;
use crate::machine::spelling::json::mask_class::continuation::SeenParts;
use crate::machine::spelling::json::mask_class::lookahead::LookaheadState;
use crate::machine::spelling::json::whitespace::{GapRules, WhitespaceGap};
use crate::machine::{LazyTables, NO_RECORD};
use crate::schema_nodes::JsonType;
use crate::solver::scalar_fingerprints::scalar_fingerprint;

/// Marks that numbers must be integers; the other bits are types.
const INTEGER_BIT: u8 = 1 << 7;

impl LookaheadState<'_> {
    /// Returns the innermost value of a class inside an unconstrained array, `None` if its
    /// surroundings matter.
    pub(crate) fn isolated(&mut self, class: MaskClassId) -> Result<Option<MaskClassId>, Error> {
        let ReaderPosition { mut frame, record } = self.position(class);
        let tables = &mut *self.tables;
        let Some((obligation, parent)) = innermost_value(&mut frame) else { return Ok(None) };
        // The value must behave alike everywhere: its parent has no queries, and neither its depth
        // nor that of anything a token opens in it matters.
        if record != NO_RECORD
            || *parent == DONE
            || tables.reader.depth_matters(*parent, tables.abstraction.max_token_len)
            || !tables.reader.values.residuals.has_no_queries(obligation)
        {
            return Ok(None);
        }
        let isolated = &mut tables.masks.isolated;
        let [array, object] =
            [isolated.array(&mut tables.reader), isolated.object(&mut tables.reader)];
        if *parent == array || *parent == object {
            return Ok(None);
        }
        let gaps = tables.reader.spelling.gaps;
        let mut around = array;
        if let Frame::Value { mark, parent, .. } = &mut frame
            && gaps.has_layout()
        {
            let (gap, depth) = WhitespaceGap::before_value(&tables.reader.values.frames, *parent);
            if gaps.ends(gap, depth, *mark) {
                *mark = gaps.over();
            } else if gap == WhitespaceGap::AfterColon {
                around = object;
            }
        }
        let Some((_, parent)) = innermost_value(&mut frame) else { return Ok(None) };
        *parent = around;
        self.class_of(ReaderPosition { frame, record }).map(Some)
    }

    /// Returns a number that identifies an isolated value which is constrained by its type only (or
    /// to integers), across all schemas with the same options.
    pub(crate) fn plain_value_id(&mut self, class: MaskClassId) -> Option<u128> {
        let frame = self.position(class).frame;
        let tables = &mut *self.tables;
        let (types, place, digits) = match frame {
            Frame::Value { obligation, mark, parent } => {
                let types = tables.masks.isolated.plain_types(&mut tables.reader, obligation)?;
                let (gap, _) = WhitespaceGap::before_value(&tables.reader.values.frames, parent);
                (types, Some((gap == WhitespaceGap::AfterColon, mark)), 0)
            }
            Frame::Number { obligation, digits, .. } => (
                plain_number(&mut tables.reader, obligation)?,
                None,
                packed_prefix(tables.reader.values.numbers.get(digits))?,
            ),
            _ => return None,
        };
        Some(keyed_hash(&(types, place, digits, tables.spelling_key())))
    }

    /// Returns whether an isolated value has ended.
    pub(crate) fn value_end(&mut self, class: MaskClassId) -> Result<ValueEnd, Error> {
        let frame = self.position(class).frame;
        let tables = &mut *self.tables;
        let isolated = &mut tables.masks.isolated;
        let [array, object] =
            [isolated.array(&mut tables.reader), isolated.object(&mut tables.reader)];
        Ok(match frame {
            Frame::Array { mode: ContainerState::AfterValue, parent: DONE, .. }
            | Frame::Object { mode: ContainerState::AfterValue, parent: DONE, .. } => {
                let around = if matches!(frame, Frame::Array { .. }) { array } else { object };
                let ended = tables.reader.values.close_value(around, NO_VERDICTS, NO_RECORD)?;
                if ended.is_some_and(|ended| ended.frame == frame) {
                    ValueEnd::Ended
                } else {
                    ValueEnd::Open
                }
            }
            Frame::Number { obligation, digits, parent } if parent == array || parent == object => {
                match tables.reader.values.number_end(obligation, digits) {
                    Some(_) => ValueEnd::MayEnd(number_bytes()),
                    None => ValueEnd::Open,
                }
            }
            _ => ValueEnd::Open,
        })
    }

    /// Returns the class after the innermost value.
    pub(crate) fn after_value(&mut self, class: MaskClassId) -> Result<Option<MaskClassId>, Error> {
        let ReaderPosition { mut frame, record } = self.position(class);
        let Some((_, &mut parent)) = innermost_value(&mut frame) else { return Ok(None) };
        let Some(after) = self.tables.reader.values.close_value(parent, NO_VERDICTS, record)?
        else {
            return Ok(None);
        };
        let after = self.tables.mask_abstraction(after)?;
        self.class_of(after).map(Some)
    }
}

/// Returns the obligation of a frame's value, and the parent.
fn innermost_value(frame: &mut Frame) -> Option<(ObligationId, &mut FrameId)> {
    match frame {
        Frame::Value { obligation, parent, .. }
        | Frame::Number { obligation, parent, .. }
        | Frame::Object { obligation, parent, .. }
        | Frame::Array { obligation, from: 0, parent, .. } => Some((*obligation, parent)),
        _ => None,
    }
}

/// Packs a number prefix into bits; `None` if its digits do not fit. A leading one makes the result
/// unambiguous.
pub(crate) fn packed_prefix(digits: &NumberPrefix) -> Option<u64> {
    let &NumberPrefix { negative, part, ref digits, places, sticky, exponent, negative_exponent } =
        digits;
    let whole = u8::try_from(digits).ok()?;
    let (places, exponent) = (u8::try_from(places).ok()?, u8::try_from(exponent).ok()?);
    let small = [whole, places, exponent].into_iter().fold(1, |all, one| all << 8 | u64::from(one));
    let flags = [negative, sticky, negative_exponent]
        .into_iter()
        .fold(0, |all, one| all << 1 | u64::from(one));
    Some((small << 3 | flags) << 4 | part as u64)
}

/// Returns the bytes that occur in numbers.
fn number_bytes() -> ByteSet {
    static BYTES: SetOnce<ByteSet> = SetOnce::new();
    *BYTES.get_or_init(|| {
        let mut set = ByteSet::default();
        (0..=0x7F).filter(|&byte| is_number_byte(byte)).for_each(|byte| set.insert(byte));
        set
    })
}

/// What is required of a value, in terms that all schemas share: of each type in the order of
/// [`JsonType::ALL`] the fingerprint of a formula, of containers what tokens see of it.
pub(crate) type ValueSignature = [u128; JsonType::ALL.len()];

/// The types of a value, as bits.
#[derive(Clone, Copy, Debug)]
struct ValueTypes {
    /// Those that are not ruled out.
    possible: u8,
    /// The allowed ones if nothing else is required of the value but that numbers are integers,
    /// with [`INTEGER_BIT`].
    plain: Option<u8>,
}

memory_bytes!(none: ValueTypes);

/// What values in isolation depend on.
#[derive(Debug, Default)]
pub(crate) struct IsolatedValues {
    signatures: CompactMap<ObligationId, Option<ValueSignature>>,
    value_types: CompactMap<ObligationId, ValueTypes>,
    /// An unconstrained array, the parent of values that are read in isolation.
    array: Option<FrameId>,
    /// An unconstrained object, likewise.
    object: Option<FrameId>,
}

memory_bytes!(IsolatedValues { value_types, signatures; array, object });

impl IsolatedValues {
    /// Returns the allowed types as bits, with [`INTEGER_BIT`] if numbers must be integers; `None`
    /// if anything else is required of the value.
    pub(crate) fn plain_types(
        &mut self,
        reader: &mut Reader,
        obligation: ObligationId,
    ) -> Option<u8> {
        self.types(reader, obligation).plain
    }

    /// Returns a superset of the bytes with which a value may begin, whitespace included.
    pub(crate) fn first_bytes(&mut self, reader: &mut Reader, obligation: ObligationId) -> ByteSet {
        let possible = self.types(reader, obligation).possible;
        let mut set = ByteSet::default();
        b" \n\r\t".iter().for_each(|&byte| set.insert(byte));
        for of in JsonType::ALL.into_iter().filter(|&of| possible >> of as u8 & 1 != 0) {
            let first: &[u8] = match of {
                JsonType::Null => b"n",
                JsonType::Bool => b"tf",
                // Objects are the sign that a value begins here and no name.
                JsonType::String => b"\"{",
                JsonType::Number => b"-0123456789",
                JsonType::Array => b"[",
                JsonType::Object => b"{",
            };
            first.iter().for_each(|&byte| set.insert(byte));
        }
        set
    }

    /// Returns the types of a value.
    fn types(&mut self, reader: &mut Reader, obligation: ObligationId) -> ValueTypes {
        if let Some(&known) = self.value_types.get(&obligation) {
            return known;
        }
        let unknown = ValueTypes { possible: u8::MAX, plain: None };
        let mut types = ValueTypes { possible: 0, plain: Some(0) };
        let Some(required) = reader.values.residuals.only_formula(obligation) else {
            self.value_types.insert(obligation, unknown);
            return unknown;
        };
        for of in JsonType::ALL {
            reader.values.core.base.reset_steps();
            let formula = match reader.values.core.formula_for_type(required, of) {
                Ok(formula) => formula,
                Err(error) => {
                    // Whoever needs this answer gets the error.
                    reader.values.core.answers.abandon();
                    if !matches!(error, Error::Deadline { .. }) {
                        self.value_types.insert(obligation, unknown);
                    }
                    return unknown;
                }
            };
            if formula == FALSE {
                continue;
            }
            let is_integer = of == JsonType::Number
                && formula == integer_formula(&mut reader.values.core.base.formulas);
            types.possible |= 1 << of as u8;
            types.plain = types.plain.filter(|_| formula == TRUE || is_integer);
            if let Some(plain) = &mut types.plain {
                *plain |= 1 << of as u8 | if is_integer { INTEGER_BIT } else { 0 };
            }
        }
        self.value_types.insert(obligation, types);
        types
    }

    /// Drops the signatures of values, which depend on the vocabularies.
    pub(crate) fn forget_signatures(&mut self) {
        self.signatures = CompactMap::default();
    }

    /// Returns what is required of a value in `nesting` others; `None` if tokens see more of it than
    /// types, what scalars must be, and the beginnings of containers.
    pub(crate) fn value_signature(
        &mut self,
        reader: &mut Reader,
        (seen, nesting): (SeenParts, u32),
        obligation: ObligationId,
    ) -> Option<ValueSignature> {
        if let Some(&known) = self.signatures.get(&obligation) {
            return known;
        }
        let formula = reader.values.residuals.only_formula(obligation)?;
        let mut signature = [0; JsonType::ALL.len()];
        let mut found = Some(());
        for (at, of) in JsonType::ALL.into_iter().enumerate() {
            reader.values.core.base.reset_steps();
            let typed = reader.values.core.formula_for_type(formula, of);
            let fingerprint =
                typed.and_then(|typed| match scalar_fingerprint(&reader.values.core.base, typed) {
                    None => self.container_signature(reader, (seen, nesting), (obligation, of)),
                    known => Ok(known),
                });
            match fingerprint {
                Ok(Some(fingerprint)) => signature[at] = fingerprint,
                Ok(None) => found = None,
                Err(_) => {
                    // Whoever needs this answer gets the error.
                    reader.values.core.answers.abandon();
                    return None;
                }
            }
            if found.is_none() {
                break;
            }
        }
        let signature = found.map(|()| signature);
        self.signatures.insert(obligation, signature);
        signature
    }

    /// Returns an unconstrained array in which an item is being read.
    fn array(&mut self, reader: &mut Reader) -> FrameId {
        if let Some(known) = self.array {
            return known;
        }
        let obligation = unconstrained(reader);
        let (mark, mode) = (FRESH, ContainerState::InValue);
        let around = reader.values.frames.intern(Frame::Array {
            obligation,
            mode,
            mark,
            from: 0,
            parent: DONE,
        });
        self.array = Some(around);
        around
    }

    /// Returns an unconstrained object in which a property value is being read.
    fn object(&mut self, reader: &mut Reader) -> FrameId {
        if let Some(known) = self.object {
            return known;
        }
        let obligation = unconstrained(reader);
        let (mark, mode) = (FRESH, ContainerState::InValue);
        let around = reader.values.frames.intern(Frame::Object {
            obligation,
            used_names: NO_USED_NAMES,
            order: ANY_ORDER,
            mode,
            mark,
            parent: DONE,
        });
        self.object = Some(around);
        around
    }
}

impl LazyTables {
    /// Returns the options on which the strings of a plain value depend.
    pub(crate) fn spelling_key(&self) -> (GapRules, u8, bool) {
        let options = &self.reader.values.core.options;
        (self.reader.spelling.gaps, options.escapes as u8, options.allow_exponents)
    }
}

/// Returns the obligation of an arbitrary value.
fn unconstrained(reader: &mut Reader) -> ObligationId {
    let obligation = Obligation { formulas: [TRUE].into(), queries: [].into(), goal: TRUE };
    reader.values.residuals.intern(obligation)
}

/// Returns the bits of a number that has begun, as for [`IsolatedValues::plain_types`].
pub(crate) fn plain_number(reader: &mut Reader, obligation: ObligationId) -> Option<u8> {
    match reader.values.residuals.only_formula(obligation)? {
        TRUE => Some(0),
        formula if formula == integer_formula(&mut reader.values.core.base.formulas) => {
            Some(INTEGER_BIT)
        }
        _ => None,
    }
}

/// Returns a number that identifies what may follow inside a number of which at most the type is
/// constrained, across all schemas that treat exponents alike.
pub(super) fn plain_number_id(
    reader: &mut Reader,
    obligation: ObligationId,
    digits: NumberPrefixId,
) -> Option<(u8, u64)> {
    let bits = plain_number(reader, obligation)?;
    Some((bits, packed_prefix(reader.values.numbers.get(digits))?))
}

/// Returns the formula of integers.
fn integer_formula(formulas: &mut FormulaArena) -> FormulaId {
    formulas.atom(FormulaAtom::MultipleOf(Decimal::from_integer(1)))
}
