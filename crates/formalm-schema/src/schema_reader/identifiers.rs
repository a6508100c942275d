//! Keywords that name a schema, its draft and its parts: what they have to be.

use referencing::Draft;

use super::ignored_keywords::draft_name;
use super::keyword_table::Keyword;
use super::keyword_values::{KeywordValues, SchemaFault};
use super::resource_registry::draft_from_uri;
use super::{SchemaReader, SubschemaContext};
use crate::json::json_view::JsonView;

/// Keywords that are texts, and the drafts that have them.
const STRING_IDENTIFIERS: [(Keyword, Draft, Draft); 4] = {
    use Draft::{Draft4 as D4, Draft6 as D6, Draft201909 as D19, Draft202012 as D20, Unknown};
    [
        (Keyword::Schema, D4, Unknown),
        (Keyword::DollarId, D6, Unknown),
        (Keyword::Anchor, D19, Unknown),
        (Keyword::DynamicAnchor, D20, Unknown),
    ]
};

impl<'r, J: JsonView<'r>> SchemaReader<'r, J> {
    /// Refuses what names nothing, and tells of a draft that is read as another.
    pub(super) fn check_identifiers(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
    ) -> Result<(), SchemaFault> {
        for (keyword, first, last) in STRING_IDENTIFIERS {
            if first <= at.draft && at.draft <= last {
                fields.string(keyword)?;
            }
        }
        fields.object(Keyword::Definitions)?;
        if !at.is_legacy() {
            fields.object(Keyword::Defs)?;
            fields.object(Keyword::Vocabulary)?;
        }
        if at.draft == Draft::Draft201909 {
            fields.boolean(Keyword::RecursiveAnchor)?;
        }
        let Some(uri) = fields.string(Keyword::Schema)? else { return Ok(()) };
        // Of a meta-schema that was passed, the vocabularies are known.
        if Draft::from_schema_uri(uri) == Draft::Unknown && at.draft != Draft::Unknown {
            let unknown = draft_from_uri(uri) == Draft::Unknown;
            let what = if unknown { "names no draft that is known, and " } else { "" };
            let message = format!("{uri:?} {what}is read as {}", draft_name(at.draft));
            self.note(at, &["$schema"], message);
        }
        Ok(())
    }
}
