//! Documents whose references are pointers into themselves: all that most schemas have.
//!
//! There is no need of a registry of identifiers for these. Everything else, and whatever is
//! wrong with a document, is left to the crate `referencing`.

use std::borrow::Cow;

use referencing::Draft;

use crate::json::json_view::{JsonShape, JsonView};

/// Where the keywords of all drafts are described.
const SPECIFICATION_HOST: &str = "json-schema.org/draft";

/// Keywords that make a reference lead elsewhere, or from elsewhere.
const IDENTIFIER_KEYWORDS: [&str; 6] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "$vocabulary",
];

/// The draft of a plain document: its references are pointers from its root, nothing but its root
/// says another draft or has an identifier, and these are nothing special.
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
            if value.is_array() || value.is_object() {
                rest.push(value);
            }
        }
        is_root = false;
    }
    Some(draft)
}

/// The draft of a meta-schema's URI that is written as usual.
fn draft_of_uri(uri: &str) -> Option<Draft> {
    let rest = uri.strip_prefix("http")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest).strip_prefix("://")?;
    let draft = Draft::from_schema_uri(uri);
    (rest.starts_with(SPECIFICATION_HOST) && draft != Draft::Unknown).then_some(draft)
}

/// Whether an identifier is surely a URI, and that of nothing that is known.
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

/// Whether a reference is a pointer from the root without spellings of other characters.
fn is_root_pointer(reference: &str) -> bool {
    reference == "#" || reference.starts_with("#/") && !reference.contains('%')
}

/// What a pointer from the root leads to.
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

fn unescape(part: &str) -> Cow<'_, str> {
    if part.contains('~') {
        Cow::Owned(part.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(part)
    }
}
