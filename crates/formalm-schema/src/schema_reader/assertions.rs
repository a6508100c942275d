//! The rules of one schema object, keyword by keyword, and the assertion keywords (`type`, `enum`,
//! bounds, lengths, `pattern`, counts, `format`).

use formalm_automata::Expression;
use formalm_core::{Error, Resource};
use formalm_regex::{Pattern, PatternDialect, PatternFlags};
use referencing::Draft;

use super::ineffective_keyword_notes::find_wrapped_schema;
use super::keyword_table::Keyword;
use super::keyword_values::{KeywordValues, SchemaFault, fault_at, keyword_set, property_names};
use super::string_parts::string_parts_language;
use super::{SchemaReader, SubschemaContext};
use crate::formats;
use crate::json::json_view::JsonView;
use crate::options::FormatSet;
use crate::schema_nodes::{JsonType, KeywordPart, KeywordRule, NoteEffect, RegexId};
use crate::schema_reader::pattern_search;
use crate::schema_reader::pattern_search::MatchMethod;

/// Groups of keywords that are read together, as bit sets: a group that does not occur costs one
/// test.
const NUMBER_KEYWORDS: u64 = keyword_set(&[
    Keyword::Minimum,
    Keyword::Maximum,
    Keyword::ExclusiveMinimum,
    Keyword::ExclusiveMaximum,
    Keyword::MultipleOf,
]);
const STRING_KEYWORDS: u64 = keyword_set(&[
    Keyword::MinLength,
    Keyword::MaxLength,
    Keyword::Pattern,
    Keyword::DialectPattern,
]);
const COUNT_KEYWORDS: u64 = keyword_set(&[
    Keyword::Required,
    Keyword::MinProperties,
    Keyword::MaxProperties,
    Keyword::MinItems,
    Keyword::MaxItems,
    Keyword::UniqueItems,
]);
const ITEM_KEYWORDS: u64 = keyword_set(&[
    Keyword::Items,
    Keyword::PrefixItems,
    Keyword::AdditionalItems,
    Keyword::Contains,
    Keyword::MinContains,
    Keyword::MaxContains,
]);
const APPLICATOR_KEYWORDS: u64 = keyword_set(&[
    Keyword::AllOf,
    Keyword::AnyOf,
    Keyword::OneOf,
    Keyword::Not,
    Keyword::If,
    Keyword::Then,
    Keyword::Else,
    Keyword::Dependencies,
    Keyword::DependentRequired,
    Keyword::DependentSchemas,
]);

/// Maximum string length that is counted, in characters. A larger `maxLength` is reported as an
/// approximation; a larger `minLength` is a limit error.
const MAX_LENGTH: u64 = u32::MAX as u64 - 2;

/// What to do about a type that does not exist.
const TYPES_HINT: &str = "the types are null, boolean, integer, number, string, array and object";

impl<'r, J: JsonView<'r>> SchemaReader<'r, J> {
    /// Reads all keywords of a schema object except references. Fails if a value is invalid.
    pub(super) fn keyword_rules(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        validates: bool,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        if validates {
            self.type_rules(fields, at, rules)?;
            self.enum_rules(fields, at, rules)?;
            if fields.has_any(NUMBER_KEYWORDS) {
                self.number_rules(fields, rules)?;
            }
            if fields.has_any(STRING_KEYWORDS) {
                self.string_rules(fields, at, rules)?;
            }
            if fields.has_any(COUNT_KEYWORDS) {
                self.count_rules(fields, rules)?;
            }
        }
        self.format_rule(fields, at, rules)?;
        let parts = string_parts_language(&mut self.schema, self.options, fields, at.node)?;
        rules.extend(parts.map(KeywordRule::StringLanguage));
        self.property_rules(fields, at, rules)?;
        if fields.has_any(ITEM_KEYWORDS) {
            self.item_rules(fields, at, rules)?;
            self.contains_rule(fields, at, rules)?;
        }
        if fields.has_any(APPLICATOR_KEYWORDS) {
            self.in_place_rules(fields, at, rules)?;
            self.dependency_rules(fields, at, rules)?;
        }
        if !at.is_legacy() {
            if let Some(json) = fields.get(Keyword::UnevaluatedProperties) {
                let node = self.subschema_node(
                    json,
                    at,
                    Keyword::UnevaluatedProperties,
                    KeywordPart::Whole,
                )?;
                rules.push(KeywordRule::UnevaluatedProperties(node));
            }
            if let Some(json) = fields.get(Keyword::UnevaluatedItems) {
                let node =
                    self.subschema_node(json, at, Keyword::UnevaluatedItems, KeywordPart::Whole)?;
                rules.push(KeywordRule::UnevaluatedItems(node));
            }
        }
        Ok(())
    }

    /// Reads `type`.
    fn type_rules(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        let Some(json) = fields.get(Keyword::Type) else { return Ok(()) };
        let list = json.children().filter(|_| json.shape().is_array()).map(|part| part.1);
        let named = list.chain((!json.shape().is_array()).then_some(json));
        let (mut types, mut integer) = (Vec::new(), false);
        for one in named {
            types.push(match one.as_str() {
                Some("null") => JsonType::Null,
                Some("boolean") => JsonType::Bool,
                Some("string") => JsonType::String,
                Some("number") => JsonType::Number,
                Some("array") => JsonType::Array,
                Some("object") => JsonType::Object,
                Some("integer") => {
                    integer = true;
                    continue;
                }
                _ => {
                    let shown = one.as_serde().map(ToString::to_string).unwrap_or_default();
                    let message = format!("unknown type {shown}");
                    return Err(SchemaFault::Part {
                        parts: vec!["type".to_owned()],
                        message,
                        hint: self
                            .wrapped_schema_hint(fields, at)
                            .or_else(|| Some(TYPES_HINT.to_owned())),
                    });
                }
            });
        }
        let integer = integer && !types.contains(&JsonType::Number);
        if integer && at.draft == Draft::Draft4 {
            rules.push(KeywordRule::IntegerSpelling);
        }
        rules.push(KeywordRule::Types { types, integer });
        Ok(())
    }

    /// Returns a hint for objects that wrap a schema, such as the definition of a tool.
    fn wrapped_schema_hint(
        &self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
    ) -> Option<String> {
        fields.schema.children().find_map(|(name, json)| {
            let is_unknown = Keyword::from_name(name).is_none()
                && (json.shape().is_object() || json.shape().is_array());
            let steps = find_wrapped_schema(json).filter(|_| is_unknown)?;
            let parts: Vec<&str> =
                std::iter::once(name).chain(steps.iter().map(String::as_str)).collect();
            Some(format!(
                "to use the schema at {}, pass that schema alone",
                self.schema.pointer_into(at.node, &parts)
            ))
        })
    }

    /// Reads `enum` and `const`.
    fn enum_rules(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        let constant = fields.get(Keyword::Const).filter(|_| at.draft != Draft::Draft4);
        let lists = [
            fields.list(Keyword::Enum)?.map(|all| (all, true, "enum")),
            constant.map(|one| (one, false, "const")),
        ];
        for (json, is_list, keyword) in lists.into_iter().flatten() {
            let mut ids = Vec::new();
            let all = json.children().filter(|_| is_list).map(|part| part.1);
            for json in all.chain((!is_list).then_some(json)) {
                let schema = &mut self.schema;
                let id = schema
                    .values
                    .intern_json(json, &mut schema.names)
                    .ok_or_else(|| fault_at(&[keyword], "a number has too many digits"))?;
                ids.push(id);
            }
            ids.sort_unstable();
            ids.dedup();
            rules.push(KeywordRule::Enum(ids));
        }
        Ok(())
    }

    /// Reads the bounds of numbers and `multipleOf`, with draft 4's Boolean `exclusive…`.
    fn number_rules(
        &mut self,
        fields: &KeywordValues<J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        for (bound, exclusive, lower) in [
            (Keyword::Minimum, Keyword::ExclusiveMinimum, true),
            (Keyword::Maximum, Keyword::ExclusiveMaximum, false),
        ] {
            // Draft 4 excludes the bound by a Boolean next to it.
            let strict = fields.get(exclusive).and_then(J::as_bool) == Some(true);
            if let Some(number) = fields.number(bound)? {
                rules.push(match (lower, strict) {
                    (true, false) => KeywordRule::Minimum(number),
                    (true, true) => KeywordRule::ExclusiveMinimum(number),
                    (false, false) => KeywordRule::Maximum(number),
                    (false, true) => KeywordRule::ExclusiveMaximum(number),
                });
            }
            if fields.get(exclusive).and_then(J::as_bool).is_none()
                && let Some(number) = fields.number(exclusive)?
            {
                rules.push(if lower {
                    KeywordRule::ExclusiveMinimum(number)
                } else {
                    KeywordRule::ExclusiveMaximum(number)
                });
            }
        }
        if let Some(unit) = fields.number(Keyword::MultipleOf)? {
            if unit.is_zero() || unit.is_negative() {
                return Err(fault_at(&["multipleOf"], "multipleOf must be greater than zero"));
            }
            rules.push(KeywordRule::MultipleOf(unit));
        }
        Ok(())
    }

    /// Reads string lengths and patterns.
    fn string_rules(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        let min = fields.count(Keyword::MinLength)?.unwrap_or(0);
        let max = fields.count(Keyword::MaxLength)?;
        if min > 0 || max.is_some() {
            if min > MAX_LENGTH {
                let (needed, allowed) = (min, MAX_LENGTH);
                return Err(Error::Limit { resource: Resource::Repetition, needed, allowed }.into());
            }
            if max.is_some_and(|max| max > MAX_LENGTH) {
                let message = format!("strings longer than {MAX_LENGTH} characters are excluded");
                self.schema.note_with_effect(at.node, &["maxLength"], message, NoteEffect::Fewer);
            }
            let cut = |length: u64| length.min(MAX_LENGTH) as u32;
            if max.is_some_and(|max| max < min) {
                rules.push(KeywordRule::StringLanguage(self.schema.enum_regex(Vec::new())));
            } else {
                let root = pattern_search::any_chars(cut(min), max.map(cut));
                let dialect = PatternDialect::Ecma;
                let length = Pattern { root, groups: Vec::new(), dialect };
                let key = format!("l{min},{max:?}");
                let id = self.schema.intern_regex(key, || Expression::pattern(length));
                if max.is_none() {
                    self.schema.extensible_regexes.insert(id);
                }
                rules.push(KeywordRule::StringLanguage(id));
            }
        }
        if let Some(source) = fields.string(Keyword::Pattern)? {
            rules.push(KeywordRule::StringLanguage(self.ecma_pattern(source, at, &["pattern"])?));
        }
        if let Some(json) = fields.object(Keyword::DialectPattern)? {
            rules.push(KeywordRule::StringLanguage(self.dialect_pattern(json)?));
        }
        Ok(())
    }

    /// Reads `x-formalm-pattern`, a pattern in another dialect: an object with `pattern`, `dialect`
    /// and optionally `flags` and `method`.
    fn dialect_pattern(&mut self, json: J) -> Result<RegexId, SchemaFault> {
        let name = Keyword::DialectPattern.name();
        let (mut source, mut dialect, mut letters, mut method) = (None, None, "", "search");
        for (part, value) in json.children() {
            let Some(text) = value.as_str() else {
                return Err(fault_at(&[name, part], format!("{part} must be a string")));
            };
            match part {
                "pattern" => source = Some(text),
                "dialect" => dialect = Some(text),
                "flags" => letters = text,
                "method" => method = text,
                _ => {
                    return Err(fault_at(
                        &[name, part],
                        format!("{name} does not support the property {part}"),
                    ));
                }
            }
        }
        let (Some(source), Some(dialect)) = (source, dialect) else {
            return Err(fault_at(
                &[name],
                format!("{name} must have the properties pattern and dialect"),
            ));
        };
        let Some(known) = PatternDialect::from_name(dialect) else {
            return Err(fault_at(&[name, "dialect"], format!("unknown dialect {dialect:?}")));
        };
        let Some(how) = MatchMethod::from_name(method) else {
            let message = format!("method must be search, match or fullmatch, got {method:?}");
            return Err(fault_at(&[name, "method"], message));
        };
        let mut flags = PatternFlags::default();
        for letter in letters.chars() {
            *match letter {
                'i' => &mut flags.ignore_case,
                'm' => &mut flags.multi_line,
                's' => &mut flags.dot_all,
                'a' => &mut flags.ascii,
                'x' => &mut flags.verbose,
                _ => {
                    let message = format!("flags must be letters of imsax, got {letters:?}");
                    return Err(fault_at(&[name, "flags"], message));
                }
            } = true;
        }
        let key = format!("o{dialect},{flags:?},{method},{source}");
        self.intern_pattern(key, source, &[name, "pattern"], || {
            pattern_search::match_language(source, known, flags, how)
        })
        .map(|found| found.0)
    }

    /// Interns a JSON Schema pattern, with a note if it had to be read as Python's.
    pub(super) fn ecma_pattern(
        &mut self,
        source: &str,
        at: &SubschemaContext<'r, J>,
        parts: &[&str],
    ) -> Result<RegexId, SchemaFault> {
        let make = || pattern_search::search_language(source);
        let (id, foreign) = self.intern_pattern(format!("p{source}"), source, parts, make)?;
        if foreign {
            self.schema.note(
                at.node,
                parts,
                "the pattern is not valid ECMA-262 and is read as a Python pattern",
            );
        }
        Ok(id)
    }

    /// Interns the language of a pattern. The flag tells whether it fell back to another dialect;
    /// it is only set on first use.
    fn intern_pattern(
        &mut self,
        key: String,
        source: &str,
        parts: &[&str],
        make: impl FnOnce() -> Result<pattern_search::PatternLanguage, Error>,
    ) -> Result<(RegexId, bool), SchemaFault> {
        if let Some(&id) = self.schema.regex_ids.get(&key) {
            return Ok((id, false));
        }
        let found = make().map_err(|error| match error {
            Error::Language { message, hint, .. } => {
                let parts = parts.iter().map(|&part| part.to_owned()).collect();
                let message = format!("{message} in the pattern {source:?}");
                SchemaFault::Part { parts, message, hint }
            }
            other => SchemaFault::Other(other),
        })?;
        let id = match found.language {
            Some(texts) => {
                let id = self.schema.intern_regex(key, || texts);
                if found.is_extensible {
                    self.schema.extensible_regexes.insert(id);
                }
                id
            }
            None => {
                let all = self.schema.any_string_regex();
                self.schema.regex_ids.insert(key, all);
                all
            }
        };
        Ok((id, found.is_other_dialect))
    }

    /// Reads `required`, and the counts of properties and items.
    fn count_rules(
        &mut self,
        fields: &KeywordValues<J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        if let Some(list) = fields.list(Keyword::Required)? {
            let names = property_names(
                &mut self.schema.names,
                list.children().map(|part| part.1),
                &["required"],
            )?;
            rules.push(KeywordRule::Required(names));
        }
        if let Some(min) = fields.count(Keyword::MinProperties)? {
            rules.push(KeywordRule::MinProperties(min));
        }
        if let Some(max) = fields.count(Keyword::MaxProperties)? {
            rules.push(KeywordRule::MaxProperties(max));
        }
        if let Some(min) = fields.count(Keyword::MinItems)? {
            rules.push(KeywordRule::MinItems(min));
        }
        if let Some(max) = fields.count(Keyword::MaxItems)? {
            rules.push(KeywordRule::MaxItems(max));
        }
        if fields.boolean(Keyword::UniqueItems)? {
            rules.push(KeywordRule::UniqueItems);
        }
        Ok(())
    }

    /// Reads `format`, with a note if it is not enforced.
    fn format_rule(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        let Some(name) = fields.get(Keyword::Format).and_then(J::as_str) else { return Ok(()) };
        let key = format!("f{name}");
        let is_known = formats::NAMES.contains(&name);
        if self.options.formats == FormatSet::NONE
            || is_known && !self.options.formats.enforces(name)
        {
            let message = match self.options.formats {
                FormatSet::NONE => "formats are annotations and are not enforced".to_owned(),
                _ => format!("the format {name:?} is an annotation and is not enforced"),
            };
            self.schema.note(at.node, &["format"], message);
            return Ok(());
        }
        if name == "idn-hostname" {
            let message = "host names use the letters of Unicode 14; later letters are rejected";
            self.schema.note(at.node, &["format"], message);
        }
        if let Some(&id) = self.schema.regex_ids.get(&key) {
            rules.push(KeywordRule::StringLanguage(id));
            return Ok(());
        }
        match formats::format(name) {
            Some(expression) => {
                let expression = expression?;
                rules.push(KeywordRule::StringLanguage(
                    self.schema.intern_regex(key, || expression),
                ));
            }
            None => {
                let message = format!("the format {name:?} is unknown and is not enforced");
                self.schema.note(at.node, &["format"], message);
            }
        }
        Ok(())
    }
}
