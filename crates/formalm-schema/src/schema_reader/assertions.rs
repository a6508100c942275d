//! Keyword by keyword: what a schema object asserts.

use formalm_automata::syntax::{Dialect, Flags, Pattern};
use formalm_automata::{Error, Expression, Resource};
use referencing::Draft;

use super::ignored_keywords::wrapped;
use super::keyword_table::Keyword;
use super::keyword_values::{Fault, Fields, bits, wrong};
use super::{Place, Reader};
use crate::formula::Which;
use crate::json::json_view::Source;
use crate::schema_nodes::{Effect, Node, NodeId, Part, RegexId, Rule, Type};
use crate::schema_reader::pattern_search::{self, Method};

/// Keywords that are read together.
const NUMBERS: u64 = bits(&[
    Keyword::Minimum,
    Keyword::Maximum,
    Keyword::ExclusiveMinimum,
    Keyword::ExclusiveMaximum,
    Keyword::MultipleOf,
]);
const TEXTS: u64 =
    bits(&[Keyword::MinLength, Keyword::MaxLength, Keyword::Pattern, Keyword::OtherPattern]);
const COUNTS: u64 = bits(&[
    Keyword::Required,
    Keyword::MinProperties,
    Keyword::MaxProperties,
    Keyword::MinItems,
    Keyword::MaxItems,
    Keyword::UniqueItems,
]);
const ITEMS: u64 = bits(&[
    Keyword::Items,
    Keyword::PrefixItems,
    Keyword::AdditionalItems,
    Keyword::Contains,
    Keyword::MinContains,
    Keyword::MaxContains,
]);
const APPLICATORS: u64 = bits(&[
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

/// Characters counted in a text.
const MAX_LENGTH: u64 = u32::MAX as u64 - 2;

impl<'r, J: Source<'r>> Reader<'r, J> {
    pub(super) fn keywords(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        validates: bool,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Fault> {
        if validates {
            self.types(fields, at, rules)?;
            self.values(fields, at, rules)?;
            if fields.has_any(NUMBERS) {
                self.numbers(fields, rules)?;
            }
            if fields.has_any(TEXTS) {
                self.texts(fields, at, rules)?;
            }
            if fields.has_any(COUNTS) {
                self.counts(fields, rules)?;
            }
        }
        self.format(fields, at, rules)?;
        self.text_parts(fields, at, rules)?;
        self.members(fields, at, rules)?;
        if fields.has_any(ITEMS) {
            self.items(fields, at, rules)?;
            self.contains(fields, at, rules)?;
        }
        if fields.has_any(APPLICATORS) {
            self.applicators(fields, at, rules)?;
            self.dependencies(fields, at, rules)?;
        }
        if !at.is_legacy() {
            if let Some(json) = fields.get(Keyword::UnevaluatedProperties) {
                let node = self.enter(json, at, Keyword::UnevaluatedProperties, Part::Whole)?;
                rules.push(Rule::RestOfMembers(node));
            }
            if let Some(json) = fields.get(Keyword::UnevaluatedItems) {
                let node = self.enter(json, at, Keyword::UnevaluatedItems, Part::Whole)?;
                rules.push(Rule::RestOfItems(node));
            }
        }
        Ok(())
    }

    fn types(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Fault> {
        let Some(json) = fields.get(Keyword::Type) else { return Ok(()) };
        let list = json.parts().filter(|_| json.is_array()).map(|part| part.1);
        let named = list.chain((!json.is_array()).then_some(json));
        let (mut types, mut integer) = (Vec::new(), false);
        for one in named {
            types.push(match one.text() {
                Some("null") => Type::Null,
                Some("boolean") => Type::Bool,
                Some("string") => Type::String,
                Some("number") => Type::Number,
                Some("array") => Type::Array,
                Some("object") => Type::Object,
                Some("integer") => {
                    integer = true;
                    continue;
                }
                _ => {
                    let shown = one.value().map(ToString::to_string).unwrap_or_default();
                    let message = format!("there is no type {shown}");
                    return Err(Fault::Part {
                        parts: vec!["type".to_owned()],
                        message,
                        hint: self.carried(fields, at),
                    });
                }
            });
        }
        let integer = integer && !types.contains(&Type::Number);
        if integer && at.draft == Draft::Draft4 {
            rules.push(Rule::WholeText);
        }
        rules.push(Rule::Types { types, integer });
        Ok(())
    }

    /// What to pass instead of something that carries a schema, such as the definition of a tool.
    fn carried(&self, fields: &Fields<J>, at: &Place<'r, J>) -> Option<String> {
        fields.schema.parts().find_map(|(name, json)| {
            let is_unknown = Keyword::of(name).is_none() && (json.is_object() || json.is_array());
            let steps = wrapped(json).filter(|_| is_unknown)?;
            let parts: Vec<&str> =
                std::iter::once(name).chain(steps.iter().map(String::as_str)).collect();
            Some(format!("if the schema at {} is meant, pass it alone", self.pointer(at, &parts)))
        })
    }

    fn values(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Fault> {
        let constant = fields.get(Keyword::Const).filter(|_| at.draft != Draft::Draft4);
        let lists = [
            fields.list(Keyword::Enum)?.map(|all| (all, true, "enum")),
            constant.map(|one| (one, false, "const")),
        ];
        for (json, is_list, keyword) in lists.into_iter().flatten() {
            let mut ids = Vec::new();
            let all = json.parts().filter(|_| is_list).map(|part| part.1);
            for json in all.chain((!is_list).then_some(json)) {
                let schema = &mut self.schema;
                let id = schema
                    .values
                    .read(json, &mut schema.names)
                    .ok_or_else(|| wrong(&[keyword], "a number has too many digits"))?;
                ids.push(id);
            }
            ids.sort_unstable();
            ids.dedup();
            rules.push(Rule::Values(ids));
        }
        Ok(())
    }

    fn numbers(&mut self, fields: &Fields<J>, rules: &mut Vec<Rule>) -> Result<(), Fault> {
        for (bound, exclusive, lower) in [
            (Keyword::Minimum, Keyword::ExclusiveMinimum, true),
            (Keyword::Maximum, Keyword::ExclusiveMaximum, false),
        ] {
            // Draft 4 says by a truth value whether the bound itself is left out.
            let strict = fields.get(exclusive).and_then(J::truth) == Some(true);
            if let Some(number) = fields.number(bound)? {
                rules.push(match (lower, strict) {
                    (true, false) => Rule::Least(number),
                    (true, true) => Rule::Above(number),
                    (false, false) => Rule::Most(number),
                    (false, true) => Rule::Below(number),
                });
            }
            if fields.get(exclusive).and_then(J::truth).is_none()
                && let Some(number) = fields.number(exclusive)?
            {
                rules.push(if lower { Rule::Above(number) } else { Rule::Below(number) });
            }
        }
        if let Some(unit) = fields.number(Keyword::MultipleOf)? {
            if unit.is_zero() || unit.is_negative() {
                return Err(wrong(&["multipleOf"], "multipleOf is more than zero"));
            }
            rules.push(Rule::Multiple(unit));
        }
        Ok(())
    }

    fn texts(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Fault> {
        let min = fields.count(Keyword::MinLength)?.unwrap_or(0);
        let max = fields.count(Keyword::MaxLength)?;
        if min > 0 || max.is_some() {
            if min > MAX_LENGTH {
                let (needed, allowed) = (min, MAX_LENGTH);
                return Err(Error::Limit { resource: Resource::Repetition, needed, allowed }.into());
            }
            if max.is_some_and(|max| max > MAX_LENGTH) {
                let message = format!("texts longer than {MAX_LENGTH} characters are left out");
                self.tell(at, &["maxLength"], message, Effect::Fewer);
            }
            let cut = |length: u64| length.min(MAX_LENGTH) as u32;
            if max.is_some_and(|max| max < min) {
                rules.push(Rule::Text(self.schema.texts(Vec::new())));
            } else {
                let root = pattern_search::repeated(cut(min), max.map(cut));
                let dialect = Dialect::Ecma;
                let length = Pattern { root, groups: Vec::new(), dialect };
                let key = format!("l{min},{max:?}");
                let id = self.schema.regex(key, || Expression::pattern(length));
                if max.is_none() {
                    self.schema.open_regexes.insert(id);
                }
                rules.push(Rule::Text(id));
            }
        }
        if let Some(source) = fields.text(Keyword::Pattern)? {
            rules.push(Rule::Text(self.pattern(source, at, &["pattern"])?));
        }
        if let Some(json) = fields.object(Keyword::OtherPattern)? {
            rules.push(Rule::Text(self.other_pattern(json)?));
        }
        Ok(())
    }

    /// A pattern of another dialect: an object of `pattern`, `dialect`, and perhaps `flags` and
    /// `method`.
    fn other_pattern(&mut self, json: J) -> Result<RegexId, Fault> {
        let name = Keyword::OtherPattern.name();
        let (mut source, mut dialect, mut letters, mut method) = (None, None, "", "search");
        for (part, value) in json.parts() {
            let Some(text) = value.text() else {
                return Err(wrong(&[name, part], format!("{part} must be a string")));
            };
            match part {
                "pattern" => source = Some(text),
                "dialect" => dialect = Some(text),
                "flags" => letters = text,
                "method" => method = text,
                _ => return Err(wrong(&[name, part], format!("{name} has no part {part}"))),
            }
        }
        let (Some(source), Some(dialect)) = (source, dialect) else {
            return Err(wrong(&[name], format!("{name} must have a pattern and a dialect")));
        };
        let Some(known) = Dialect::named(dialect) else {
            return Err(wrong(&[name, "dialect"], format!("there is no dialect {dialect:?}")));
        };
        let Some(how) = Method::named(method) else {
            let message = format!("method must be search, match or fullmatch, got {method:?}");
            return Err(wrong(&[name, "method"], message));
        };
        let mut flags = Flags::default();
        for letter in letters.chars() {
            *match letter {
                'i' => &mut flags.ignore_case,
                'm' => &mut flags.multi_line,
                's' => &mut flags.dot_all,
                'a' => &mut flags.ascii,
                'x' => &mut flags.verbose,
                _ => {
                    let message = format!("flags must be letters of imsax, got {letters:?}");
                    return Err(wrong(&[name, "flags"], message));
                }
            } = true;
        }
        let key = format!("o{dialect},{flags:?},{method},{source}");
        self.found_pattern(key, source, &[name, "pattern"], || {
            pattern_search::matched(source, known, flags, how)
        })
        .map(|found| found.0)
    }

    fn pattern(
        &mut self,
        source: &str,
        at: &Place<'r, J>,
        parts: &[&str],
    ) -> Result<RegexId, Fault> {
        let make = || pattern_search::search(source);
        let (id, foreign) = self.found_pattern(format!("p{source}"), source, parts, make)?;
        if foreign {
            self.note(at, parts, "the pattern is no ECMA-262 and is read as Python's");
        }
        Ok(id)
    }

    /// The texts of a pattern, and whether it is of an unexpected dialect when met first.
    fn found_pattern(
        &mut self,
        key: String,
        source: &str,
        parts: &[&str],
        make: impl FnOnce() -> Result<pattern_search::Search, Error>,
    ) -> Result<(RegexId, bool), Fault> {
        if let Some(&id) = self.schema.regex_ids.get(&key) {
            return Ok((id, false));
        }
        let found = make().map_err(|error| match error {
            Error::Language { message, hint, .. } => {
                let parts = parts.iter().map(|&part| part.to_owned()).collect();
                let message = format!("{message} in the pattern {source:?}");
                Fault::Part { parts, message, hint }
            }
            other => Fault::Other(other),
        })?;
        let id = match found.texts {
            Some(texts) => {
                let id = self.schema.regex(key, || texts);
                if found.open {
                    self.schema.open_regexes.insert(id);
                }
                id
            }
            None => {
                let all = self.schema.all_texts();
                self.schema.regex_ids.insert(key, all);
                all
            }
        };
        Ok((id, found.foreign))
    }

    fn counts(&mut self, fields: &Fields<J>, rules: &mut Vec<Rule>) -> Result<(), Fault> {
        if let Some(list) = fields.list(Keyword::Required)? {
            let names = self.names(list.parts().map(|part| part.1), &["required"])?;
            rules.push(Rule::Required(names));
        }
        if let Some(min) = fields.count(Keyword::MinProperties)? {
            rules.push(Rule::MinMembers(min));
        }
        if let Some(max) = fields.count(Keyword::MaxProperties)? {
            rules.push(Rule::MaxMembers(max));
        }
        if let Some(min) = fields.count(Keyword::MinItems)? {
            rules.push(Rule::MinItems(min));
        }
        if let Some(max) = fields.count(Keyword::MaxItems)? {
            rules.push(Rule::MaxItems(max));
        }
        if fields.truth(Keyword::UniqueItems)? {
            rules.push(Rule::Unique);
        }
        Ok(())
    }

    fn members(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Fault> {
        let mut members: Vec<(Which, NodeId)> = Vec::new();
        let mut declared = Vec::new();
        for (name, json) in fields.object(Keyword::Properties)?.into_iter().flat_map(J::parts) {
            let id = self.schema.names.intern(name);
            declared.push(id);
            let which = Which {
                names: Some([id].into()),
                others: [].into(),
                found: [].into(),
                missing: [].into(),
            };
            members.push((which, self.enter(json, at, Keyword::Properties, Part::Name(id))?));
        }
        declared.sort_unstable();
        let mut patterns = Vec::new();
        for (source, json) in
            fields.object(Keyword::PatternProperties)?.into_iter().flat_map(J::parts)
        {
            let id = self.pattern(source, at, &["patternProperties", source])?;
            patterns.push(id);
            let found: &[RegexId] = if self.schema.takes_all(id) { &[] } else { &[id] };
            let found = found.into();
            let which = Which { names: None, others: [].into(), found, missing: [].into() };
            let part = Part::Text(source.into());
            members.push((which, self.enter(json, at, Keyword::PatternProperties, part)?));
        }
        patterns.sort_unstable();
        patterns.dedup();
        if let Some(json) = fields.get(Keyword::AdditionalProperties) {
            let which = Which {
                names: None,
                others: declared.into(),
                found: [].into(),
                missing: patterns.into(),
            };
            let node = self.enter(json, at, Keyword::AdditionalProperties, Part::Whole)?;
            if !which.missing.iter().any(|&id| self.schema.takes_all(id)) {
                members.push((which, node));
            }
        } else if !self.options.takes_more
            && !fields.has(Keyword::UnevaluatedProperties)
            && (fields.has(Keyword::Properties) || fields.has(Keyword::PatternProperties))
        {
            let (others, missing) = (declared.into(), patterns.into());
            let which = Which { names: None, others, found: [].into(), missing };
            let never = self.schema.add(Node::made(vec![Rule::Never]));
            members.push((which, never));
            self.note(at, &[], "members that are not declared are left out");
        }
        if !members.is_empty() {
            rules.push(Rule::Members(members.into()));
        }
        if let Some(json) = fields.get(Keyword::PropertyNames).filter(|_| at.draft != Draft::Draft4)
        {
            rules.push(Rule::Names(self.enter(json, at, Keyword::PropertyNames, Part::Whole)?));
        }
        Ok(())
    }

    fn items(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Fault> {
        let old_form = fields.get(Keyword::Items).is_some_and(J::is_array);
        let (prefix, rest) = match (at.before_2020(), old_form) {
            (false, false) => (Some(Keyword::PrefixItems), Keyword::Items),
            (true, false) => (None, Keyword::Items),
            (_, true) => (Some(Keyword::Items), Keyword::AdditionalItems),
        };
        if old_form && !at.before_2020() {
            self.note(at, &["items"], "a list of items is read as in drafts before 2020-12");
        }
        let mut ranges = Vec::new();
        let mut first = 0;
        if let Some(prefix) = prefix
            && let Some(all) = fields.list(prefix)?
        {
            for node in self.enter_all(all, prefix, at)? {
                ranges.push((first, first + 1, node));
                first += 1;
            }
        }
        if let Some(json) = fields.get(rest) {
            ranges.push((first, u32::MAX, self.enter(json, at, rest, Part::Whole)?));
        }
        if !ranges.is_empty() {
            rules.push(Rule::Items(ranges.into()));
        }
        Ok(())
    }
}
