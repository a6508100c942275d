//! Names that occur more than once in one object of a JSON text.
//!
//! RFC 8259 leaves their meaning open; here the last value counts, and the reader of schemas says so
//! in a note.

use rustc_hash::FxHashMap;

use crate::json::deep_parser::{byte_at, property_name, scalar, skip_whitespace};

/// Maximum number of places that are listed. Chosen, not measured.
const MAX_PLACES: usize = 20;

/// An array or object that has not ended.
enum OpenContainer {
    /// The index of the item that comes next.
    Array(usize),
    /// How often each name has occurred, and the name of the value that comes next.
    Object(FxHashMap<String, usize>, String),
}

impl OpenContainer {
    fn part(&self) -> String {
        match self {
            OpenContainer::Array(index) => index.to_string(),
            OpenContainer::Object(_, name) => name.replace('~', "~0").replace('/', "~1"),
        }
    }
}

/// Returns the JSON pointers of the repeated names of a valid JSON text, in order of their second
/// occurrence; at most [`MAX_PLACES`], and none of what follows an error.
pub(crate) fn duplicate_names(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // The text was parsed before, so that an error cannot occur.
    let _ = collect_duplicates(text, &mut found);
    found
}

fn collect_duplicates(text: &str, found: &mut Vec<String>) -> Result<(), usize> {
    let mut open: Vec<OpenContainer> = Vec::new();
    let mut at = 0;
    while found.len() < MAX_PLACES {
        at = skip_whitespace(text, at);
        let first = byte_at(text, at);
        if let Some(b'[' | b'{') = first {
            let is_object = first == Some(b'{');
            at = skip_whitespace(text, at + 1);
            let end = if is_object { b'}' } else { b']' };
            if byte_at(text, at) != Some(end) {
                open.push(match is_object {
                    true => OpenContainer::Object(FxHashMap::default(), String::new()),
                    false => OpenContainer::Array(0),
                });
                if is_object {
                    next_name(text, &mut at, &mut open, found)?;
                }
                continue;
            }
            at += 1;
        } else {
            scalar(text, &mut at)?;
        }
        // After a value: close what ends here, up to the next comma.
        loop {
            at = skip_whitespace(text, at);
            let Some(last) = open.last_mut() else { return Ok(()) };
            let byte = byte_at(text, at).ok_or(at)?;
            at += 1;
            match (last, byte) {
                (OpenContainer::Array(index), b',') => {
                    *index += 1;
                    break;
                }
                (OpenContainer::Object(..), b',') => {
                    next_name(text, &mut at, &mut open, found)?;
                    break;
                }
                (OpenContainer::Array(_), b']') | (OpenContainer::Object(..), b'}') => {
                    open.pop();
                }
                _ => return Err(at - 1),
            }
        }
    }
    Ok(())
}

/// Reads the next name of the innermost object, and adds its pointer if it occurs the second time.
fn next_name(
    text: &str,
    at: &mut usize,
    open: &mut [OpenContainer],
    found: &mut Vec<String>,
) -> Result<(), usize> {
    let name = property_name(text, at)?;
    let Some(OpenContainer::Object(counts, current)) = open.last_mut() else { return Ok(()) };
    current.clone_from(&name);
    let count = counts.entry(name).or_insert(0);
    *count += 1;
    if *count == 2 {
        let parts: Vec<String> = open.iter().map(OpenContainer::part).collect();
        found.push(format!("#/{}", parts.join("/")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::duplicate_names;

    #[test]
    fn repeated_names_are_listed_by_their_pointers() {
        let text = r#" {"a": [1, {"b/c": [], "b\/c": {"x": 0}, "x": 1, "b/c": 2}], "~": {}, "~" :{"a":0, "a":""}} "#;
        assert_eq!(duplicate_names(text), ["#/a/1/b~1c", "#/~0", "#/~0/a"]);
        assert_eq!(duplicate_names(r#"{"a": {"a": [{"a": 1}, {"a": 2}]}}"#), [""; 0]);
        assert_eq!(duplicate_names("3"), [""; 0]);
    }
}
