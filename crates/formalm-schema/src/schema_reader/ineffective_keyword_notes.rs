//! Notes on keywords that have no effect: those of other drafts, misspelled ones, and those that
//! lack a companion.
//!
//! By the standard an unknown keyword is an annotation, and most get no note. A note is made where
//! the author probably meant an assertion: keywords of other schema languages, names close to those
//! of keywords (edit distance), and values that are schemas themselves, as in `{"name": …,
//! "parameters": {…}}`.

use referencing::Draft;

use super::SubschemaContext;
use super::keyword_table::{Keyword, KeywordRole};
use super::keyword_value_types::missing_properties_hint;
use super::keyword_values::KeywordValues;
use crate::json::json_view::{JsonShape, JsonView};
use crate::schema_nodes::{NodeLocation, ResolvedSchema};

/// Returns `true` for well-known annotation keywords.
fn is_known_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title"
            | "description"
            | "default"
            | "examples"
            | "example"
            | "$comment"
            | "readOnly"
            | "writeOnly"
            | "deprecated"
            | "contentEncoding"
            | "contentMediaType"
            | "contentSchema"
            | "media"
            | "links"
    )
}

/// Returns the required type of an annotation's value, if the value has another one.
fn annotation_type_error<'r>(keyword: &str, json: impl JsonView<'r>) -> Option<&'static str> {
    let (fits, wanted) = match keyword {
        "id" | "title" | "description" | "$comment" | "contentEncoding" | "contentMediaType" => {
            (json.as_str().is_some(), "a string")
        }
        "readOnly" | "writeOnly" | "deprecated" => (json.as_bool().is_some(), "true or false"),
        "examples" => (json.shape().is_array(), "a list"),
        "contentSchema" => (json.shape().is_object() || json.as_bool().is_some(), "a schema"),
        _ => return None,
    };
    (!fits).then_some(wanted)
}

/// Returns the advice for keywords that assert something elsewhere (other drafts, OpenAPI, JSON
/// Type Definition, Ajv, guidance).
fn replacement_advice(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "divisibleBy" => "use multipleOf",
        "disallow" => "use not",
        "extends" | "$merge" => "use allOf",
        "nullable" | "x-nullable" => "add null to the types",
        "optional" => "remove the name from required",
        "propertyDependencies" => "use if and then, or dependentSchemas",
        "discriminator" => "it asserts nothing; add a const to each alternative",
        "x-guidance" => "its options are ignored; pass max_whitespace or separators to JsonSchema",
        "x-kubernetes-validations" => "its rules are not enforced",
        "x-kubernetes-int-or-string" => "use the types integer and string",
        "x-enum" => "use enum",
        "x-pattern" | "regexp" => "use pattern",
        "optionalProperties" => "use properties",
        "elements" => "use items",
        "instanceof"
        | "typeof"
        | "formatMinimum"
        | "formatMaximum"
        | "formatExclusiveMinimum"
        | "formatExclusiveMaximum"
        | "uniqueItemProperties"
        | "patternRequired"
        | "transform" => "it is not enforced",
        "allRequired" => "use required",
        "anyRequired" => "use anyOf with required",
        "oneRequired" => "use oneOf with required",
        "prohibited" => "use not with required",
        "range" => "use minimum and maximum",
        "exclusiveRange" => "use exclusiveMinimum and exclusiveMaximum",
        "select" | "switch" => "use if and then",
        _ => return None,
    })
}

/// Property names under which model APIs carry a schema.
const WRAPPERS: [&str; 16] = [
    "schema",
    "json_schema",
    "jsonSchema",
    "parameters",
    "inputSchema",
    "input_schema",
    "outputSchema",
    "output_schema",
    "responseSchema",
    "response_schema",
    "response_format",
    "responseFormat",
    "guided_json",
    "function",
    "functions",
    "tools",
];

/// Maximum depth, and maximum number of values, of the search for a schema below an unknown
/// keyword. Chosen, not measured.
const MAX_WRAPPER_DEPTH: usize = 4;
const MAX_WRAPPER_VALUES: usize = 200;

/// The notes on keywords without effect that may still be dropped.
#[derive(Default)]
pub(super) struct IgnoredKeywords {
    /// Indices of notes on unknown keywords, to be dropped if a reference leads into them.
    wrapper_notes: Vec<usize>,
}

impl IgnoredKeywords {
    /// Adds a note for each keyword of a schema object that has no effect.
    pub(super) fn note_all<'r, J: JsonView<'r>>(
        &mut self,
        schema: &mut ResolvedSchema,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
    ) {
        let has_reference = fields.get(Keyword::Ref).and_then(J::as_str).is_some();
        let ignores_siblings = at.is_legacy() && has_reference;
        for (keyword, json) in fields.schema.children() {
            let known = Keyword::from_name(keyword);
            let message = match known.map(|known| (known, known.role())) {
                Some((Keyword::Ref, _) | (_, KeywordRole::Identifies)) => None,
                // Schemas meant for readers of all drafts have both identifiers.
                Some((Keyword::DollarId, _))
                    if is_same_identifier(fields.get(Keyword::Id), json) =>
                {
                    None
                }
                Some(_) if ignores_siblings => Some(format!(
                    "{} ignores keywords next to $ref, such as {keyword}",
                    draft_name(at.draft)
                )),
                Some((known, KeywordRole::Asserts(first, last))) => {
                    if at.draft == Draft::Unknown || first <= at.draft && at.draft <= last {
                        match (
                            missing_companion(fields, known),
                            read_by_other_drafts(known, json.shape(), at.draft),
                        ) {
                            (Some(other), _) => {
                                Some(format!("{keyword} has no effect without {other}"))
                            }
                            (_, Some(drafts)) => Some(format!("{keyword} is read as in {drafts}")),
                            (None, None) => None,
                        }
                    } else {
                        Some(format!("{keyword} has no effect in {}", draft_name(at.draft)))
                    }
                }
                None => misspelling_note(keyword, json.shape()),
            };
            if let Some(message) = message {
                schema.note(at.node, &[keyword], message);
            } else if known.is_some_and(|known| known != Keyword::Id) {
                // The keyword has an effect.
            } else if let Some(wanted) = annotation_type_error(keyword, json) {
                let hint = missing_properties_hint(json, fields.schema);
                let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
                let message = format!("{keyword} must be {wanted} and is ignored{hint}");
                schema.note(at.node, &[keyword], message);
            } else if known.is_none() && !is_known_annotation(keyword) {
                self.note_wrapped_schema(schema, keyword, json, fields, at);
            }
        }
    }

    /// Adds a note if the value of an unknown keyword contains a schema.
    fn note_wrapped_schema<'r, J: JsonView<'r>>(
        &mut self,
        schema: &mut ResolvedSchema,
        keyword: &str,
        json: J,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
    ) {
        if !json.shape().is_object() && !json.shape().is_array() {
            return;
        }
        let found = find_wrapped_schema(json);
        let is_wrapper = WRAPPERS.contains(&keyword) && json.shape().is_object();
        let Some(steps) = found.or_else(|| is_wrapper.then(Vec::new)) else { return };
        let hint = missing_properties_hint(json, fields.schema).filter(|_| !is_wrapper);
        let parts: Vec<&str> =
            std::iter::once(keyword).chain(steps.iter().map(String::as_str)).collect();
        let meant = match hint {
            Some(hint) => hint.to_owned(),
            None => {
                format!(
                    "to use the schema at {}, pass that schema alone",
                    schema.pointer_into(at.node, &parts)
                )
            }
        };
        self.wrapper_notes.push(schema.notes.len());
        schema.note(
            at.node,
            &[keyword],
            format!("{keyword} is not a keyword and is ignored: {meant}"),
        );
    }

    /// Removes notes on unknown keywords that references lead into, such as the `components` of
    /// OpenAPI.
    pub(super) fn drop_referenced_wrappers(&mut self, schema: &mut ResolvedSchema) {
        if self.wrapper_notes.is_empty() {
            return;
        }
        let mut targets: Vec<&str> = Vec::new();
        for node in &schema.nodes {
            if let NodeLocation::Pointer(pointer) = &node.location {
                targets.push(pointer);
            }
        }
        targets.sort_unstable();
        let leads_into = |place: &str| {
            let at = targets.partition_point(|&one| one < place);
            targets[at..]
                .iter()
                .take_while(|one| one.starts_with(place))
                .any(|one| one.len() == place.len() || one.as_bytes()[place.len()] == b'/')
        };
        let notes = &schema.notes;
        let dropped: Vec<usize> =
            self.wrapper_notes.iter().copied().filter(|&at| leads_into(&notes[at].place)).collect();
        for at in dropped.into_iter().rev() {
            schema.notes.remove(at);
        }
        self.wrapper_notes.clear();
    }
}

/// Returns the path to the first schema in a value (breadth first), which may be the value itself.
pub(super) fn find_wrapped_schema<'r, J: JsonView<'r>>(json: J) -> Option<Vec<String>> {
    let mut level: Vec<(Vec<String>, J)> = vec![(Vec::new(), json)];
    let mut left = MAX_WRAPPER_VALUES;
    for _ in 0..MAX_WRAPPER_DEPTH {
        let mut below = Vec::new();
        for (steps, json) in level {
            left = left.checked_sub(1)?;
            if is_evidently_schema(json) {
                return Some(steps);
            }
            let is_list = json.shape().is_array();
            for (index, (name, value)) in json.children().enumerate().take(left) {
                if value.shape().is_object() || value.shape().is_array() {
                    let step = if is_list { index.to_string() } else { name.to_owned() };
                    below.push(([&steps[..], &[step]].concat(), value));
                }
            }
        }
        level = below;
    }
    None
}

/// Returns `true` if a value can hardly be anything but a schema.
fn is_evidently_schema<'r>(json: impl JsonView<'r>) -> bool {
    let types = ["null", "boolean", "string", "number", "integer", "array", "object"];
    json.children().any(|(name, value)| match name {
        "type" => value.as_str().is_some_and(|text| types.contains(&text)),
        "properties" | "patternProperties" | "$defs" => value.shape().is_object(),
        "anyOf" | "allOf" | "oneOf" => value.shape().is_array(),
        "$ref" => value.as_str().is_some(),
        _ => false,
    }) && json.shape().is_object()
}

/// Returns `true` if the identifiers of two drafts agree.
fn is_same_identifier<'r, J: JsonView<'r>>(one: Option<J>, other: J) -> bool {
    one.is_some_and(|one| match (one.as_serde(), other.as_serde()) {
        (Some(one), Some(other)) => one == other,
        _ => one.as_str().is_some() && one.as_str() == other.as_str(),
    })
}

/// Returns the companion without which the keyword has no effect, if it is missing.
pub(super) fn missing_companion<'r, J: JsonView<'r>>(
    fields: &KeywordValues<J>,
    keyword: Keyword,
) -> Option<&'static str> {
    let other = match keyword {
        Keyword::AdditionalItems
            if !fields.get(Keyword::Items).is_some_and(|items| items.shape().is_array()) =>
        {
            return Some("an array value of items");
        }
        Keyword::Then | Keyword::Else => Keyword::If,
        Keyword::MinContains | Keyword::MaxContains => Keyword::Contains,
        // In draft 4 a Boolean modifies the bound next to it.
        Keyword::ExclusiveMinimum if fields.get(keyword).and_then(J::as_bool).is_some() => {
            Keyword::Minimum
        }
        Keyword::ExclusiveMaximum if fields.get(keyword).and_then(J::as_bool).is_some() => {
            Keyword::Maximum
        }
        _ => return None,
    };
    (!fields.has(other)).then_some(other.name())
}

/// Returns the drafts whose rule is applied to a value that has the type of other drafts.
fn read_by_other_drafts(
    keyword: Keyword,
    shape: JsonShape<'_>,
    draft: Draft,
) -> Option<&'static str> {
    if !matches!(keyword, Keyword::ExclusiveMinimum | Keyword::ExclusiveMaximum) {
        return None;
    }
    match shape {
        JsonShape::Bool(_) if draft != Draft::Draft4 => Some("draft 4"),
        JsonShape::Number(_) if draft == Draft::Draft4 => Some("draft 6 and later"),
        _ => None,
    }
}

/// Returns a note on what an unknown keyword may have meant. Returns `None` for plain annotations.
fn misspelling_note(keyword: &str, shape: JsonShape<'_>) -> Option<String> {
    if keyword.len() < 4 || is_known_annotation(keyword) {
        return None;
    }
    if let Some(instead) = replacement_advice(keyword) {
        let asserts = shape != JsonShape::Bool(false);
        return asserts.then(|| format!("{keyword} is not a keyword of JSON Schema: {instead}"));
    }
    let sorts = letter_set(keyword);
    let length = keyword.chars().count();
    let near = MEANT_KEYWORDS.iter().filter(|(word, others)| {
        may_be_similar(sorts, *others) && word.len().abs_diff(length) <= MAX_EDITS
    });
    let near = near.map(|word| word.0);
    let lower = keyword.to_ascii_lowercase();
    let near = near.filter_map(|known| Some((edit_distance(&lower, known)?, known)));
    let (far, meant) = near.min()?;
    let most = if meant.len() < 6 { 1 } else { MAX_EDITS };
    if far > most {
        return None;
    }
    Some(format!("{keyword} is not a keyword: did you mean {meant}?"))
}

/// Maximum edit distance between a keyword and what was written. Chosen, not measured.
const MAX_EDITS: usize = 2;

/// Keywords that a misspelling may mean, with their letter sets.
const MEANT_KEYWORDS: [(&str, u32); MEANT_COUNT] = {
    let mut words = [("$defs", letter_set("$defs")); MEANT_COUNT];
    let (mut at, mut to) = (0, 1);
    while at < Keyword::ALL.len() {
        if matches!(Keyword::ALL[at].role(), KeywordRole::Asserts(..)) {
            let name = Keyword::ALL[at].name();
            words[to] = (name, letter_set(name));
            to += 1;
        }
        at += 1;
    }
    words
};

/// Number of those: all asserting keywords, and `$defs`, which is often misspelled.
const MEANT_COUNT: usize = {
    let (mut count, mut at) = (1, 0);
    while at < Keyword::ALL.len() {
        count += matches!(Keyword::ALL[at].role(), KeywordRole::Asserts(..)) as usize;
        at += 1;
    }
    count
};

/// Returns the set of letters of a word, as bits.
const fn letter_set(word: &str) -> u32 {
    let (word, mut set, mut at) = (word.as_bytes(), 0, 0);
    while at < word.len() {
        set |= 1 << (word[at].to_ascii_lowercase() & 31);
        at += 1;
    }
    set
}

/// Returns `false` if two words certainly exceed [`MAX_EDITS`]: each edit adds at most one letter
/// to the set and removes at most one.
fn may_be_similar(one: u32, other: u32) -> bool {
    (one ^ other).count_ones() <= 4
}

/// Length of the longest keyword plus one.
const MAX_KEYWORD_LETTERS: usize = 24;

/// Returns the Damerau-Levenshtein (restricted) distance of two words, ignoring case; `None` above
/// [`MAX_EDITS`]. `other` must be a keyword.
fn edit_distance(one: &str, other: &str) -> Option<usize> {
    let other = other.as_bytes();
    // Rows of bytes fit in registers. Longer words are never similar enough.
    let [mut first, mut above, mut row] = [[0_u8; MAX_KEYWORD_LETTERS]; 3];
    for (to, least) in (0..).zip(above.iter_mut()) {
        *least = to;
    }
    let mut before = None;
    for (at, c) in (0..).zip(one.chars()) {
        row[0] = at + 1;
        let mut nearest = at + 1;
        for (to, d) in other.iter().enumerate() {
            let d = char::from(d.to_ascii_lowercase());
            let mut least = (above[to + 1] + 1).min(row[to] + 1).min(above[to] + u8::from(c != d));
            if to > 0 && before == Some(d) && char::from(other[to - 1].to_ascii_lowercase()) == c {
                least = least.min(first[to - 1] + 1);
            }
            row[to + 1] = least;
            nearest = nearest.min(least);
        }
        // If a whole row and the one above exceed the limit, so does the result.
        if usize::from(nearest.min(above.iter().take(other.len() + 1).copied().min()?)) > MAX_EDITS
        {
            return None;
        }
        before = Some(c);
        (first, above, row) = (above, row, first);
    }
    Some(usize::from(above[other.len()])).filter(|&far| far <= MAX_EDITS)
}

/// Returns the name of a draft, for notes.
pub(super) fn draft_name(draft: Draft) -> &'static str {
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
    use super::{MAX_KEYWORD_LETTERS, MEANT_KEYWORDS, edit_distance, misspelling_note};
    use crate::json::json_view::JsonShape;

    #[test]
    fn similar_keywords_are_suggested() {
        let meant = |keyword: &str| misspelling_note(keyword, JsonShape::Null).is_some();
        for keyword in ["minlength", "propertes", "aditionalProperties", "requried", "oneof"] {
            assert!(meant(keyword), "{keyword}");
        }
        for keyword in ["x-order", "name", "url", "enumNames", "tags", "version", "items2go"] {
            assert!(!meant(keyword), "{keyword}");
        }
        assert_eq!(
            (edit_distance("abcd", "acbd"), edit_distance("abc", "abd")),
            (Some(1), Some(1))
        );
        let longest = MEANT_KEYWORDS.iter().map(|word| word.0.len()).max();
        assert!(
            longest < Some(MAX_KEYWORD_LETTERS)
                && MEANT_KEYWORDS.iter().all(|word| word.0.is_ascii())
        );
    }

    /// The distance by its recursive definition.
    fn recursive_distance(one: &[u8], other: &[u8]) -> usize {
        let ([.., a], [.., b]) = (one, other) else { return one.len() + other.len() };
        let (less, fewer) = (&one[..one.len() - 1], &other[..other.len() - 1]);
        let mut least = recursive_distance(less, fewer) + usize::from(a != b);
        least =
            least.min(recursive_distance(less, other) + 1).min(recursive_distance(one, fewer) + 1);
        if let ([left @ .., c, _], [right @ .., d, _]) = (one, other)
            && a == d
            && b == c
        {
            least = least.min(recursive_distance(left, right) + 1);
        }
        least
    }

    proptest::proptest! {
        #[test]
        fn edit_distance_matches_its_recursive_definition(one in "[abc]{0,6}", other in "[abc]{0,6}") {
            let least = recursive_distance(one.as_bytes(), other.as_bytes());
            proptest::prop_assert_eq!(edit_distance(&one, &other), Some(least).filter(|&far| far <= 2));
        }
    }
}
