//! Self-contained documents: all references are JSON pointers into the document itself, as in most
//! schemas.
//!
//! These need no registry of identifiers, so they are read without the crate `referencing`,
//! straight from the tape. Anything else, including every document with an error, takes the slow
//! path.

use std::borrow::Cow;

use referencing::Draft;

use crate::json::json_view::{JsonShape, JsonView};

/// Prefix of the meta-schemas' URIs.
const SPECIFICATION_HOST: &str = "json-schema.org/draft";

/// Keywords that change where references lead.
const IDENTIFIER_KEYWORDS: [&str; 6] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "$vocabulary",
];

/// Returns the draft of a self-contained document, or `None` for any other: references must be
/// pointers from the root, only the root may declare a draft or an identifier, and these must be
/// unremarkable.
pub(super) fn local_draft<'r>(document: impl JsonView<'r>) -> Option<Draft> {
    let draft = match document.get("$schema") {
        None => Draft::default(),
        Some(uri) => draft_of_uri(uri.as_str()?)?,
    };
    let identifier = draft.id_keyword();
    if let Some(uri) = document.get(identifier).and_then(JsonView::as_str)
        && !is_plain_identifier(uri)
    {
        return None;
    }
    let mut rest = vec![document];
    let mut is_root = true;
    while let Some(json) = rest.pop() {
        for (name, value) in json.children() {
            let plain = match (name, value.shape()) {
                ("$ref", JsonShape::String(text)) => is_root_pointer(text),
                ("$schema", JsonShape::String(text)) => {
                    is_root || draft_of_uri(text) == Some(draft)
                }
                ("$id", JsonShape::String(_)) => is_root,
                ("id", JsonShape::String(_)) => is_root || identifier != "id",
                _ => !(name.starts_with('$') && IDENTIFIER_KEYWORDS.contains(&name)),
            };
            if !plain {
                return None;
            }
            if value.shape().is_array() || value.shape().is_object() {
                rest.push(value);
            }
        }
        is_root = false;
    }
    Some(draft)
}

/// Returns the draft of a meta-schema URI in its usual spelling.
fn draft_of_uri(uri: &str) -> Option<Draft> {
    let rest = uri.strip_prefix("http")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest).strip_prefix("://")?;
    let draft = Draft::from_schema_uri(uri);
    (rest.starts_with(SPECIFICATION_HOST) && draft != Draft::Unknown).then_some(draft)
}

/// Returns `true` if an identifier is certainly a valid URI and not that of a meta-schema.
fn is_plain_identifier(uri: &str) -> bool {
    let rest = uri.strip_prefix("http").map(|rest| rest.strip_prefix('s').unwrap_or(rest));
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix("://")) else { return false };
    let rest = rest.strip_suffix('#').unwrap_or(rest);
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
    !uri.contains(SPECIFICATION_HOST)
        && !rest.starts_with('/')
        && !rest.is_empty()
        && rest.bytes().all(is_safe)
}

/// Returns `true` for a pointer from the root without percent-encoding.
fn is_root_pointer(reference: &str) -> bool {
    reference == "#" || reference.starts_with("#/") && !reference.contains('%')
}

/// Returns the value that a pointer from the root leads to.
pub(super) fn resolve_pointer<'r, J: JsonView<'r>>(document: J, reference: &str) -> Option<J> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(document);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(document, |json, part| match json.shape() {
        JsonShape::Array => json.children().nth(part.parse::<usize>().ok()?).map(|part| part.1),
        JsonShape::Object => json.get(&unescape(part)),
        _ => None,
    })
}

/// Decodes `~0` and `~1` in a reference token.
fn unescape(part: &str) -> Cow<'_, str> {
    if part.contains('~') {
        Cow::Owned(part.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(part)
    }
}
