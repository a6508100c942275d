//! What tokens see of a container that a value may open: its first bytes, before any name, and its
//! first item.
//!
//! ```text
//!  ` {"`   may a name come?     ` {}`  may it end?     ` [{"`, ` ["`   the first item
//!                                                      ` []`  may it end?   `[1,`  after an item
//! ```

use formalm_core::{Error, keyed_hash};

use crate::machine::frame::{ContainerState, DONE, FRESH, Frame, ObligationId};
use crate::machine::names::NO_USED_NAMES;
use crate::machine::reader::Reader;
use crate::machine::residuals::NO_VERDICTS;
use crate::machine::spelling::json::mask_class::continuation::SeenParts;
use crate::machine::spelling::json::mask_class::isolated_value::IsolatedValues;
use crate::machine::values::value_start::{OpenedValue, ValueStart};
use crate::schema_nodes::JsonType;

/// Maximum number of arrays around an item that is looked at. Chosen, not measured.
const MAX_NESTING: u32 = 3;

impl IsolatedValues {
    /// Returns a hash of what tokens see of a value that opens a container of a type; `None` if that
    /// is more than its beginning.
    pub(super) fn container_signature(
        &mut self,
        reader: &mut Reader,
        (seen, nesting): (SeenParts, u32),
        (obligation, of): (ObligationId, JsonType),
    ) -> Result<Option<u128>, Error> {
        let start = match of {
            JsonType::Array => ValueStart::Array,
            JsonType::Object => ValueStart::Object,
            _ => return Ok(None),
        };
        match reader.values.opened_value(obligation, start)? {
            None => Ok(Some(0)),
            Some(OpenedValue::Object(obligation, order)) => {
                // Where a token contains more than the quote, names matter.
                let Some(may_end) = may_end(reader, obligation).filter(|_| !seen.first_names)
                else {
                    return Ok(None);
                };
                let (used_names, mode) = (NO_USED_NAMES, ContainerState::AfterOpen);
                let (mark, parent) = (FRESH, DONE);
                let object = Frame::Object { obligation, used_names, order, mode, mark, parent };
                let may_continue = reader.values.any_name_viable(object)?;
                Ok(Some(keyed_hash(&("object", may_end, may_continue))))
            }
            Some(OpenedValue::Array(obligation)) => {
                let Some(may_end) = may_end(reader, obligation) else { return Ok(None) };
                let first = self.first_item(reader, (seen, nesting), obligation)?;
                Ok(first.map(|first| keyed_hash(&("array", may_end, first))))
            }
            Some(_) => Ok(None),
        }
    }

    /// Returns a hash of the first item of an array and of what comes after it.
    pub(super) fn first_item(
        &mut self,
        reader: &mut Reader,
        (seen, nesting): (SeenParts, u32),
        array: ObligationId,
    ) -> Result<Option<u128>, Error> {
        let values = &mut reader.values;
        if nesting == MAX_NESTING
            || !values.residuals.has_no_queries(array)
            || values.has_unique_items(array)
        {
            return Ok(None);
        }
        let Some((around, item)) = values.residuals.start_item(&mut values.core, array)? else {
            return Ok(Some(keyed_hash("no item")));
        };
        // Such an item reports nothing to its array.
        let Some(item) = self.value_signature(reader, (seen, nesting + 1), item) else {
            return Ok(None);
        };
        let values = &mut reader.values;
        let after = values.residuals.after_plain_child(&mut values.core, around, NO_VERDICTS)?;
        if seen.items {
            return Ok((after == array).then(|| keyed_hash(&("items", item))));
        }
        let may_continue = values.may_start_item(after)?;
        let may_end = may_end(reader, after);
        Ok(may_end.map(|may_end| keyed_hash(&("item", item, may_continue, may_end))))
    }
}

/// Returns whether a container may end; `None` if it reports a verdict then.
fn may_end(reader: &mut Reader, obligation: ObligationId) -> Option<bool> {
    match reader.values.end_verdicts(obligation) {
        None => Some(false),
        Some(NO_VERDICTS) => Some(true),
        Some(_) => None,
    }
}
