//! Keywords that say nothing: those of other drafts, misspelled ones, and those that need another.

use referencing::Draft;
use serde_json::Value as Json;

use super::{Fields, Place, Reader};

/// Keywords that assert or apply something, and the drafts that have them.
const KEYWORDS: [(&str, Draft, Draft); 47] = {
    use Draft::{Draft4 as D4, Draft6 as D6, Draft7 as D7, Draft201909 as D19, Draft202012 as D20};
    [
        ("type", D4, D20),
        ("enum", D4, D20),
        ("const", D6, D20),
        ("multipleOf", D4, D20),
        ("maximum", D4, D20),
        ("exclusiveMaximum", D4, D20),
        ("minimum", D4, D20),
        ("exclusiveMinimum", D4, D20),
        ("maxLength", D4, D20),
        ("minLength", D4, D20),
        ("pattern", D4, D20),
        ("format", D4, D20),
        ("maxItems", D4, D20),
        ("minItems", D4, D20),
        ("uniqueItems", D4, D20),
        ("maxContains", D19, D20),
        ("minContains", D19, D20),
        ("maxProperties", D4, D20),
        ("minProperties", D4, D20),
        ("required", D4, D20),
        ("dependentRequired", D19, D20),
        ("dependentSchemas", D19, D20),
        // Later drafts dropped it; it is read in all of them.
        ("dependencies", D4, D20),
        ("properties", D4, D20),
        ("patternProperties", D4, D20),
        ("additionalProperties", D4, D20),
        ("propertyNames", D6, D20),
        ("unevaluatedProperties", D19, D20),
        ("items", D4, D20),
        ("prefixItems", D20, D20),
        ("additionalItems", D4, D20),
        ("contains", D6, D20),
        ("unevaluatedItems", D19, D20),
        ("allOf", D4, D20),
        ("anyOf", D4, D20),
        ("oneOf", D4, D20),
        ("not", D4, D20),
        ("if", D7, D20),
        ("then", D7, D20),
        ("else", D7, D20),
        ("$ref", D4, D20),
        ("$dynamicRef", D20, D20),
        ("$recursiveRef", D19, D19),
        ("$id", D6, D20),
        ("$anchor", D19, D20),
        ("$dynamicAnchor", D20, D20),
        ("$recursiveAnchor", D19, D19),
    ]
};

/// Keywords that are of use to readers of a schema or name its parts.
const SILENT: [&str; 19] = [
    "title",
    "description",
    "default",
    "examples",
    "example",
    "$comment",
    "readOnly",
    "writeOnly",
    "deprecated",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "$schema",
    "id",
    "$defs",
    "definitions",
    "$vocabulary",
    "media",
    "links",
];

/// Keywords of draft 3 and of OpenAPI that assert something there, and what to write.
const FOREIGN: [(&str, &str); 5] = [
    ("divisibleBy", "write multipleOf"),
    ("disallow", "write not"),
    ("extends", "write allOf"),
    ("nullable", "write null among the types"),
    ("optional", "leave the name out of required"),
];

/// Keywords that only add to another.
const COMPANIONS: [(&str, &str); 4] =
    [("then", "if"), ("else", "if"), ("minContains", "contains"), ("maxContains", "contains")];

/// Keywords that only add to another where they are a truth value.
const EXCLUSIVE: [(&str, &str); 2] =
    [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")];

impl Reader<'_> {
    /// Tells of the keywords of a schema that say nothing.
    pub(super) fn tell_of_unread(&mut self, map: &Fields, at: &Place<'_>) {
        let ignores_siblings = at.is_legacy() && map.get("$ref").is_some_and(Json::is_string);
        for (keyword, json) in map {
            let known = KEYWORDS.iter().find(|one| one.0 == keyword);
            if keyword == "$ref" && known.is_some() || SILENT.contains(&keyword.as_str()) {
                continue;
            }
            // Schemas for readers of all drafts have both.
            if keyword == "$id" && map.get("id") == Some(json) {
                continue;
            }
            let message = match known {
                Some(_) if ignores_siblings => {
                    format!("beside $ref {} reads no {keyword}", name(at.draft))
                }
                Some(&(_, first, last)) => {
                    if at.draft == Draft::Unknown || first <= at.draft && at.draft <= last {
                        match (lacks(map, keyword), as_elsewhere(keyword, json, at.draft)) {
                            (Some(other), _) => format!("{keyword} says nothing without {other}"),
                            (_, Some(drafts)) => format!("{keyword} is read as in {drafts}"),
                            (None, None) => continue,
                        }
                    } else {
                        format!("{keyword} says nothing in {}", name(at.draft))
                    }
                }
                None => match unknown(keyword, json) {
                    Some(message) => message,
                    None => continue,
                },
            };
            self.note(&at.below(&[keyword]).pointer, message);
        }
    }
}

/// What a keyword needs beside it.
fn lacks(map: &Fields, keyword: &str) -> Option<&'static str> {
    if keyword == "additionalItems" && !matches!(map.get("items"), Some(Json::Array(_))) {
        return Some("a list of items");
    }
    let truth = map.get(keyword).is_some_and(Json::is_boolean);
    let companions = COMPANIONS.iter().chain(EXCLUSIVE.iter().filter(|_| truth));
    let (_, other) = companions.into_iter().find(|one| one.0 == keyword)?;
    (!map.contains_key(*other)).then_some(other)
}

/// The drafts by whose rule a keyword is read, if its value has a type of other drafts.
fn as_elsewhere(keyword: &str, json: &Json, draft: Draft) -> Option<&'static str> {
    let exclusive = EXCLUSIVE.iter().any(|one| one.0 == keyword);
    match json {
        Json::Bool(_) if exclusive && draft != Draft::Draft4 => Some("draft 4"),
        Json::Number(_) if exclusive && draft == Draft::Draft4 => Some("drafts from 6 on"),
        _ => None,
    }
}

/// What an unknown keyword may have meant; nothing is said of others, which are annotations.
fn unknown(keyword: &str, json: &Json) -> Option<String> {
    if let Some((_, instead)) = FOREIGN.iter().find(|one| one.0 == keyword) {
        let asserts = json != &Json::Bool(false);
        return asserts.then(|| format!("{keyword} is no keyword of JSON Schema: {instead}"));
    }
    if keyword.len() < 4 {
        return None;
    }
    let known = KEYWORDS.iter().map(|one| one.0).chain(["$defs"]);
    let near = known.filter(|known| may_be_near(keyword, known));
    let lower = keyword.to_ascii_lowercase();
    let far = |known: &str| distance(&lower, &known.to_ascii_lowercase());
    let (far, meant) = near.map(|known| (far(known), known)).min()?;
    let most = if meant.len() < 6 { 1 } else { 2 };
    if far > most {
        return None;
    }
    Some(format!("{keyword} is no keyword: {meant} may be meant"))
}

/// Whether two words may be as near as what is meant: a change adds one sort of letters at most,
/// and takes one away.
fn may_be_near(one: &str, other: &str) -> bool {
    let sorts = |word: &str| {
        word.bytes().fold(0u32, |set, byte| set | 1 << (byte.to_ascii_lowercase() & 31))
    };
    (sorts(one) ^ sorts(other)).count_ones() <= 4
}

/// Letters to insert, delete or replace, neighbours swapped counting once.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().abs_diff(other.len()) > 2 {
        return usize::MAX;
    }
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for (at, c) in one.iter().enumerate() {
        let mut row = vec![at + 1];
        for (to, d) in other.iter().enumerate() {
            let above = &rows[at];
            let mut least =
                (above[to + 1] + 1).min(row[to] + 1).min(above[to] + usize::from(c != d));
            if at > 0 && to > 0 && one[at - 1] == *d && other[to - 1] == *c {
                least = least.min(rows[at - 1][to - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

pub(super) fn name(draft: Draft) -> &'static str {
    match draft {
        Draft::Draft4 => "draft 4",
        Draft::Draft6 => "draft 6",
        Draft::Draft7 => "draft 7",
        Draft::Draft201909 => "draft 2019-09",
        Draft::Draft202012 => "draft 2020-12",
        _ => "this draft",
    }
}

#[cfg(test)]
mod tests {
    use super::{distance, unknown};
    use serde_json::Value as Json;

    #[test]
    fn near_keywords_are_meant() {
        let meant = |keyword: &str| unknown(keyword, &Json::Null).is_some();
        for keyword in ["minlength", "propertes", "aditionalProperties", "requried", "oneof"] {
            assert!(meant(keyword), "{keyword}");
        }
        for keyword in ["x-order", "name", "url", "enumNames", "tags", "version", "items2go"] {
            assert!(!meant(keyword), "{keyword}");
        }
        assert_eq!((distance("abcd", "acbd"), distance("abc", "abd")), (1, 1));
    }
}
