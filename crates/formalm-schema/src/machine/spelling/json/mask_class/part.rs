//! Parts of JSON: strings and plain numbers, of which what may follow inside does not depend on
//! what surrounds them.

use formalm_core::{Error, keyed_hash};

use crate::machine::NO_RECORD;
use crate::machine::frame::{Frame, ReaderPosition};
use crate::machine::reader::Reader;
use crate::machine::residuals::NO_VERDICTS;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::spelling::json::mask_class::isolated_value::plain_number_id;

/// Returns the digest of a position inside a part, and the position after the part. Returns `None`
/// elsewhere, and where anything around the part matters.
///
/// The automaton that reads a string is shared by schemas, so its serial number and the state
/// identify what may follow. Numbers are parts if at most their type is constrained.
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
            let Some(id) = plain_number_id(reader, obligation, digits) else { return Ok(None) };
            (keyed_hash(&("number", id, reader.values.core.options.allow_exponents)), parent)
        }
        _ => return Ok(None),
    };
    let after = reader.values.close_value(parent, NO_VERDICTS, record)?;
    Ok(after.map(|after| (digest, after)))
}
