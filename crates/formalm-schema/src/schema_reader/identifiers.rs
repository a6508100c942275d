//! Keywords that name a schema, its draft and its parts: what they have to be.

use referencing::Draft;

use super::ignored_keywords::name;
use super::keyword_table::Keyword;
use super::keyword_values::{Fault, Fields};
use super::resource_registry::draft_of;
use super::{Place, Reader};
use crate::json::json_view::Source;

/// Keywords that are texts, and the drafts that have them.
const TEXTS: [(Keyword, Draft, Draft); 4] = {
    use Draft::{Draft4 as D4, Draft6 as D6, Draft201909 as D19, Draft202012 as D20, Unknown};
    [
        (Keyword::Schema, D4, Unknown),
        (Keyword::DollarId, D6, Unknown),
        (Keyword::Anchor, D19, Unknown),
        (Keyword::DynamicAnchor, D20, Unknown),
    ]
};

impl<'r, J: Source<'r>> Reader<'r, J> {
    /// Refuses what names nothing, and tells of a draft that is read as another.
    pub(super) fn identity(&mut self, fields: &Fields<J>, at: &Place<'r, J>) -> Result<(), Fault> {
        for (keyword, first, last) in TEXTS {
            if first <= at.draft && at.draft <= last {
                fields.text(keyword)?;
            }
        }
        fields.object(Keyword::Definitions)?;
        if !at.is_legacy() {
            fields.object(Keyword::Defs)?;
            fields.object(Keyword::Vocabulary)?;
        }
        if at.draft == Draft::Draft201909 {
            fields.truth(Keyword::RecursiveAnchor)?;
        }
        let Some(uri) = fields.text(Keyword::Schema)? else { return Ok(()) };
        // Of a meta-schema that was passed, the vocabularies are known.
        if Draft::from_schema_uri(uri) == Draft::Unknown && at.draft != Draft::Unknown {
            let unknown = draft_of(uri) == Draft::Unknown;
            let what = if unknown { "names no draft that is known, and " } else { "" };
            let message = format!("{uri:?} {what}is read as {}", name(at.draft));
            self.note(at, &["$schema"], message);
        }
        Ok(())
    }
}
