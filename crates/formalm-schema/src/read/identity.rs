//! Keywords that name a schema, its draft and its parts: what they have to be.

use formalm_automata::Error;
use referencing::Draft;

use super::fields::{object, text, truth};
use super::resources::draft_of;
use super::unread::name;
use super::{Fields, Place, Reader};

/// Keywords that are texts, and the drafts that have them.
const TEXTS: [(&str, Draft, Draft); 5] = {
    use Draft::{Draft4 as D4, Draft6 as D6, Draft201909 as D19, Draft202012 as D20, Unknown};
    [
        ("$schema", D4, Unknown),
        ("id", D4, D4),
        ("$id", D6, Unknown),
        ("$anchor", D19, Unknown),
        ("$dynamicAnchor", D20, Unknown),
    ]
};

impl Reader<'_> {
    /// Refuses what names nothing, and tells of a draft that is read as another.
    pub(super) fn identity(&mut self, map: &Fields, at: &Place<'_>) -> Result<(), Error> {
        for (keyword, first, last) in TEXTS {
            if first <= at.draft && at.draft <= last {
                text(map, keyword, at)?;
            }
        }
        object(map, "definitions", at)?;
        if !at.is_legacy() {
            object(map, "$defs", at)?;
            object(map, "$vocabulary", at)?;
        }
        if at.draft == Draft::Draft201909 {
            truth(map, "$recursiveAnchor", at)?;
        }
        let Some(uri) = text(map, "$schema", at)? else { return Ok(()) };
        // Of a meta-schema that was passed, the vocabularies are known.
        if Draft::from_schema_uri(uri) == Draft::Unknown && at.draft != Draft::Unknown {
            let unknown = draft_of(uri) == Draft::Unknown;
            let what = if unknown { "names no draft that is known, and " } else { "" };
            let message = format!("{uri:?} {what}is read as {}", name(at.draft));
            self.note(&at.below(&["$schema"]).pointer, message);
        }
        Ok(())
    }
}
