//! Documents whose references are pointers into themselves: all that most schemas have.
//!
//! There is no need of a registry of identifiers for these. Everything else, and whatever is
//! wrong with a document, is left to the crate `referencing`.

use std::borrow::Cow;

use referencing::Draft;

use crate::json::json_view::{Shape, Source};

/// Where the keywords of all drafts are described.
const HOME: &str = "json-schema.org/draft";

/// Keywords that make a reference lead elsewhere, or from elsewhere.
const NAMING: [&str; 6] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "$vocabulary",
];

/// The draft of a plain document: its references are pointers from its root, nothing but its root
/// says another draft or has an identifier, and these are nothing special.
pub(super) fn draft<'r>(document: impl Source<'r>) -> Option<Draft> {
    let draft = match document.get("$schema") {
        None => Draft::default(),
        Some(uri) => known(uri.text()?)?,
    };
    let identifier = draft.id_keyword();
    if let Some(uri) = document.get(identifier).and_then(Source::text)
        && !is_usual(uri)
    {
        return None;
    }
    let mut rest = vec![document];
    let mut is_root = true;
    while let Some(json) = rest.pop() {
        for (name, value) in json.parts() {
            let plain = match (name, value.shape()) {
                ("$ref", Shape::Text(text)) => is_pointer(text),
                ("$schema", Shape::Text(text)) => is_root || known(text) == Some(draft),
                ("$id", Shape::Text(_)) => is_root,
                ("id", Shape::Text(_)) => is_root || identifier != "id",
                _ => !(name.starts_with('$') && NAMING.contains(&name)),
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
fn known(uri: &str) -> Option<Draft> {
    let rest = uri.strip_prefix("http")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest).strip_prefix("://")?;
    let draft = Draft::from_schema_uri(uri);
    (rest.starts_with(HOME) && draft != Draft::Unknown).then_some(draft)
}

/// Whether an identifier is surely a URI, and that of nothing that is known.
fn is_usual(uri: &str) -> bool {
    let rest = uri.strip_prefix("http").map(|rest| rest.strip_prefix('s').unwrap_or(rest));
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix("://")) else { return false };
    let rest = rest.strip_suffix('#').unwrap_or(rest);
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
    !uri.contains(HOME) && !rest.starts_with('/') && !rest.is_empty() && rest.bytes().all(is_safe)
}

/// Whether a reference is a pointer from the root without spellings of other characters.
fn is_pointer(reference: &str) -> bool {
    reference == "#" || reference.starts_with("#/") && !reference.contains('%')
}

/// What a pointer from the root leads to.
pub(super) fn pointed<'r, J: Source<'r>>(document: J, reference: &str) -> Option<J> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(document);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(document, |json, part| match json.shape() {
        Shape::Array => json.parts().nth(part.parse::<usize>().ok()?).map(|part| part.1),
        Shape::Object => json.get(&unescaped(part)),
        _ => None,
    })
}

fn unescaped(part: &str) -> Cow<'_, str> {
    if part.contains('~') {
        Cow::Owned(part.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(part)
    }
}
