//! Parts of JSON: strings and numbers, of which what may follow inside does not depend on
//! what surrounds them.

use formalm_core::{Error, digest, keyed_hash};

use crate::machine::NO_RECORD;
use crate::machine::frame::{CharState, Frame, NumberPrefixId, ObligationId, ReaderPosition};
use crate::machine::reader::Reader;
use crate::machine::residuals::NO_VERDICTS;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::spelling::json::mask_class::isolated_value::plain_number_id;
use crate::solver::scalar_fingerprints::scalar_fingerprint;

/// Returns the digest of a position inside a part, and the position after the part. Returns `None`
/// elsewhere, and where anything around the part matters.
///
/// The automaton that reads a string is shared by schemas, so its serial number and the state
/// identify what may follow. Numbers are identified by what is required of them.
pub(super) fn part_at(
    reader: &mut Reader,
    ReaderPosition { frame, record }: ReaderPosition,
) -> Result<Option<(u128, ReaderPosition)>, Error> {
    if record != NO_RECORD {
        return Ok(None);
    }
    let escapes = reader.values.core.options.escapes;
    let (digest, parent) = match frame {
        Frame::String { language, state, queries: NO_QUERIES, escape, parent }
            if !reader.values.core.languages.is_unbounded(language) =>
        {
            let serial = reader.values.core.languages.automaton(language).serial();
            (keyed_hash(&("string", serial, state, escape, escapes)), parent)
        }
        Frame::Number { obligation, digits, parent } => {
            let Some(digest) = number_digest(reader, obligation, digits) else { return Ok(None) };
            (digest, parent)
        }
        _ => return Ok(None),
    };
    let after = reader.values.close_value(parent, NO_VERDICTS, record)?;
    Ok(after.map(|after| (digest, after)))
}

/// Returns the name of a position inside a string: the structure of what is read on, and how it is
/// spelled. Returns `None` elsewhere, and where anything around the string matters.
pub(super) fn part_name_at(
    reader: &Reader,
    ReaderPosition { frame, record }: ReaderPosition,
) -> Option<u128> {
    let Frame::String { language, state, queries: NO_QUERIES, escape: CharState(escape), .. } =
        frame
    else {
        return None;
    };
    let languages = &reader.values.core.languages;
    if record != NO_RECORD || languages.is_unbounded(language) {
        return None;
    }
    let structure = languages.automaton(language).structure(state)?;
    let escapes = reader.values.core.options.escapes;
    Some(digest(format!("JSON string {structure} {escape:?} {escapes:?}").as_bytes()))
}

/// Returns the digest of a position inside a number. Returns `None` if its verdict is needed beyond
/// it.
pub(super) fn number_digest(
    reader: &mut Reader,
    obligation: ObligationId,
    digits: NumberPrefixId,
) -> Option<u128> {
    let allow_exponents = reader.values.core.options.allow_exponents;
    if let Some(id) = plain_number_id(reader, obligation, digits) {
        return Some(keyed_hash(&("number", id, allow_exponents)));
    }
    let formula = reader.values.residuals.only_formula(obligation)?;
    let required = scalar_fingerprint(&reader.values.core.base, formula)?;
    let prefix = reader.values.numbers.get(digits);
    Some(keyed_hash(&("bounded number", required, prefix, allow_exponents)))
}
