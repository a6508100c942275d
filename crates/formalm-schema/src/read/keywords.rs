//! Keyword by keyword: what a schema object asserts.

use formalm_automata::syntax::{Dialect, Pattern};
use formalm_automata::{Error, Expression, Resource};
use referencing::Draft;
use serde_json::Value as Json;

use super::fields::{count, list, number, object, text, truth};
use super::{Fields, Place, Reader, refuse};
use crate::formula::Which;
use crate::node::{Effect, Node, NodeId, RegexId, Rule, Type};
use crate::pattern;

/// Characters counted in a text.
const MAX_LENGTH: u64 = u32::MAX as u64 - 2;

impl<'r> Reader<'r> {
    pub(super) fn keywords(
        &mut self,
        map: &'r Fields,
        at: &Place<'r>,
        validates: bool,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Error> {
        if validates {
            self.types(map, at, rules)?;
            self.values(map, at, rules)?;
            self.numbers(map, at, rules)?;
            self.texts(map, at, rules)?;
            self.counts(map, at, rules)?;
        }
        self.format(map, at, rules)?;
        self.members(map, at, rules)?;
        self.items(map, at, rules)?;
        self.contains(map, at, rules)?;
        self.applicators(map, at, rules)?;
        self.dependencies(map, at, rules)?;
        if !at.is_legacy() {
            if let Some(json) = map.get("unevaluatedProperties") {
                let node = self.enter(json, at.below(&["unevaluatedProperties"]))?;
                rules.push(Rule::RestOfMembers(node));
            }
            if let Some(json) = map.get("unevaluatedItems") {
                let node = self.enter(json, at.below(&["unevaluatedItems"]))?;
                rules.push(Rule::RestOfItems(node));
            }
        }
        Ok(())
    }

    fn types(&mut self, map: &Fields, at: &Place<'r>, rules: &mut Vec<Rule>) -> Result<(), Error> {
        let Some(json) = map.get("type") else { return Ok(()) };
        let named = match json {
            Json::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        let (mut types, mut integer) = (Vec::new(), false);
        for one in named {
            types.push(match one.as_str() {
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
                    let message = format!("there is no type {one}");
                    return Err(refuse(&at.below(&["type"]).pointer, message, None));
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

    fn values(&mut self, map: &Fields, at: &Place<'r>, rules: &mut Vec<Rule>) -> Result<(), Error> {
        let constant = map.get("const").filter(|_| at.draft != Draft::Draft4);
        let lists = [
            list(map, "enum", at)?.map(|all| (all, "enum")),
            constant.map(|one| (std::slice::from_ref(one), "const")),
        ];
        for (all, keyword) in lists.into_iter().flatten() {
            let mut ids = Vec::with_capacity(all.len());
            for json in all {
                let schema = &mut self.schema;
                let id = schema.values.read(json, &mut schema.names).ok_or_else(|| {
                    refuse(&at.below(&[keyword]).pointer, "a number has too many digits", None)
                })?;
                ids.push(id);
            }
            ids.sort_unstable();
            ids.dedup();
            rules.push(Rule::Values(ids));
        }
        Ok(())
    }

    fn numbers(
        &mut self,
        map: &Fields,
        at: &Place<'r>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Error> {
        for (bound, exclusive, lower) in
            [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)]
        {
            // Draft 4 says by a truth value whether the bound itself is left out.
            let strict = matches!(map.get(exclusive), Some(Json::Bool(true)));
            if let Some(number) = number(map, bound, at)? {
                rules.push(match (lower, strict) {
                    (true, false) => Rule::Least(number),
                    (true, true) => Rule::Above(number),
                    (false, false) => Rule::Most(number),
                    (false, true) => Rule::Below(number),
                });
            }
            if !matches!(map.get(exclusive), Some(Json::Bool(_)))
                && let Some(number) = number(map, exclusive, at)?
            {
                rules.push(if lower { Rule::Above(number) } else { Rule::Below(number) });
            }
        }
        if let Some(unit) = number(map, "multipleOf", at)? {
            if unit.is_zero() || unit.is_negative() {
                let place = at.below(&["multipleOf"]).pointer;
                return Err(refuse(&place, "multipleOf is more than zero", None));
            }
            rules.push(Rule::Multiple(unit));
        }
        Ok(())
    }

    fn texts(&mut self, map: &Fields, at: &Place<'r>, rules: &mut Vec<Rule>) -> Result<(), Error> {
        let min = count(map, "minLength", at)?.unwrap_or(0);
        let max = count(map, "maxLength", at)?;
        if min > 0 || max.is_some() {
            if min > MAX_LENGTH {
                let (needed, allowed) = (min, MAX_LENGTH);
                return Err(Error::Limit { resource: Resource::Repetition, needed, allowed });
            }
            if max.is_some_and(|max| max > MAX_LENGTH) {
                let message = format!("texts longer than {MAX_LENGTH} characters are left out");
                self.tell(&at.below(&["maxLength"]).pointer, message, Effect::Fewer);
            }
            let cut = |length: u64| length.min(MAX_LENGTH) as u32;
            if max.is_some_and(|max| max < min) {
                rules.push(Rule::Text(self.schema.texts(Vec::new())));
            } else {
                let root = pattern::repeated(cut(min), max.map(cut));
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
        if let Some(source) = text(map, "pattern", at)? {
            rules.push(Rule::Text(self.pattern(source, &at.below(&["pattern"]).pointer)?));
        }
        Ok(())
    }

    fn pattern(&mut self, source: &str, place: &str) -> Result<RegexId, Error> {
        let key = format!("p{source}");
        if let Some(&id) = self.schema.regex_ids.get(&key) {
            return Ok(id);
        }
        let found = pattern::search(source).map_err(|error| match error {
            Error::Language { message, hint, .. } => {
                refuse(place, format!("{message} in the pattern {source:?}"), hint.as_deref())
            }
            other => other,
        })?;
        if found.foreign {
            self.note(place, "the pattern is no ECMA-262 and is read as Python's");
        }
        Ok(match found.texts {
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
        })
    }

    fn counts(&mut self, map: &Fields, at: &Place<'r>, rules: &mut Vec<Rule>) -> Result<(), Error> {
        if let Some(json) = list(map, "required", at)? {
            let names = self.names(json, &at.below(&["required"]).pointer)?;
            rules.push(Rule::Required(names));
        }
        if let Some(min) = count(map, "minProperties", at)? {
            rules.push(Rule::MinMembers(min));
        }
        if let Some(max) = count(map, "maxProperties", at)? {
            rules.push(Rule::MaxMembers(max));
        }
        if let Some(min) = count(map, "minItems", at)? {
            rules.push(Rule::MinItems(min));
        }
        if let Some(max) = count(map, "maxItems", at)? {
            rules.push(Rule::MaxItems(max));
        }
        if truth(map, "uniqueItems", at)? {
            rules.push(Rule::Unique);
        }
        Ok(())
    }

    fn members(
        &mut self,
        map: &'r Fields,
        at: &Place<'r>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Error> {
        let mut members: Vec<(Which, NodeId)> = Vec::new();
        let mut declared = Vec::new();
        for (name, json) in object(map, "properties", at)?.into_iter().flatten() {
            let id = self.schema.names.intern(name);
            declared.push(id);
            let which = Which {
                names: Some([id].into()),
                others: [].into(),
                found: [].into(),
                missing: [].into(),
            };
            members.push((which, self.enter(json, at.below(&["properties", name]))?));
        }
        declared.sort_unstable();
        let mut patterns = Vec::new();
        for (source, json) in object(map, "patternProperties", at)?.into_iter().flatten() {
            let here = at.below(&["patternProperties", source]);
            let id = self.pattern(source, &here.pointer)?;
            patterns.push(id);
            let found: &[RegexId] = if self.schema.takes_all(id) { &[] } else { &[id] };
            let found = found.into();
            let which = Which { names: None, others: [].into(), found, missing: [].into() };
            members.push((which, self.enter(json, here)?));
        }
        patterns.sort_unstable();
        patterns.dedup();
        if let Some(json) = map.get("additionalProperties") {
            let which = Which {
                names: None,
                others: declared.into(),
                found: [].into(),
                missing: patterns.into(),
            };
            let node = self.enter(json, at.below(&["additionalProperties"]))?;
            if !which.missing.iter().any(|&id| self.schema.takes_all(id)) {
                members.push((which, node));
            }
        } else if !self.options.takes_more
            && !map.contains_key("unevaluatedProperties")
            && (map.contains_key("properties") || map.contains_key("patternProperties"))
        {
            let (others, missing) = (declared.into(), patterns.into());
            let which = Which { names: None, others, found: [].into(), missing };
            let never = self.schema.add(Node { rules: vec![Rule::Never], place: String::new() });
            members.push((which, never));
            self.note(&at.pointer, "members that are not declared are left out");
        }
        if !members.is_empty() {
            rules.push(Rule::Members(members.into()));
        }
        if let Some(json) = map.get("propertyNames").filter(|_| at.draft != Draft::Draft4) {
            rules.push(Rule::Names(self.enter(json, at.below(&["propertyNames"]))?));
        }
        Ok(())
    }

    fn items(
        &mut self,
        map: &'r Fields,
        at: &Place<'r>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Error> {
        let old_form = matches!(map.get("items"), Some(Json::Array(_)));
        let (prefix, rest) = match (at.before_2020(), old_form) {
            (false, false) => ("prefixItems", "items"),
            (true, false) => ("", "items"),
            (_, true) => ("items", "additionalItems"),
        };
        if old_form && !at.before_2020() {
            let place = at.below(&["items"]).pointer;
            self.note(&place, "a list of items is read as in drafts before 2020-12");
        }
        let mut ranges = Vec::new();
        let mut first = 0;
        if let Some(all) = list(map, prefix, at)?.filter(|_| !prefix.is_empty()) {
            for (index, node) in self.enter_all(all, prefix, at)?.into_iter().enumerate() {
                ranges.push((index as u32, index as u32 + 1, node));
            }
            first = all.len() as u32;
        }
        if let Some(json) = map.get(rest) {
            ranges.push((first, u32::MAX, self.enter(json, at.below(&[rest]))?));
        }
        if !ranges.is_empty() {
            rules.push(Rule::Items(ranges.into()));
        }
        Ok(())
    }

    fn contains(
        &mut self,
        map: &'r Fields,
        at: &Place<'r>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Error> {
        let Some(json) = map.get("contains").filter(|_| at.draft != Draft::Draft4) else {
            return Ok(());
        };
        let node = self.enter(json, at.below(&["contains"]))?;
        let (mut min, mut max) = (1, None);
        if !at.is_legacy() {
            min = count(map, "minContains", at)?.unwrap_or(1);
            max = count(map, "maxContains", at)?;
        }
        rules.push(Rule::Contains { node, min, max, marks: !at.before_2020() });
        Ok(())
    }

    fn applicators(
        &mut self,
        map: &'r Fields,
        at: &Place<'r>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Error> {
        if let Some(all) = list(map, "allOf", at)? {
            rules.push(Rule::All(self.enter_all(all, "allOf", at)?));
        }
        if let Some(all) = list(map, "anyOf", at)? {
            rules.push(Rule::Any(self.enter_all(all, "anyOf", at)?));
        }
        if let Some(all) = list(map, "oneOf", at)? {
            rules.push(Rule::One(self.enter_all(all, "oneOf", at)?));
        }
        if let Some(json) = map.get("not") {
            rules.push(Rule::Not(self.enter(json, at.below(&["not"]))?));
        }
        let conditions = !matches!(at.draft, Draft::Draft4 | Draft::Draft6);
        if let Some(json) = map.get("if").filter(|_| conditions) {
            let condition = self.enter(json, at.below(&["if"]))?;
            let mut branch = |keyword: &str| {
                let json = map.get(keyword);
                json.map(|json| self.enter(json, at.below(&[keyword]))).transpose()
            };
            let (then, other) = (branch("then")?, branch("else")?);
            rules.push(Rule::If { condition, then, other });
        }
        Ok(())
    }

    fn dependencies(
        &mut self,
        map: &'r Fields,
        at: &Place<'r>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Error> {
        let mut keywords = vec!["dependencies"];
        if !at.is_legacy() {
            keywords.extend(["dependentRequired", "dependentSchemas"]);
        }
        for keyword in keywords {
            for (name, json) in object(map, keyword, at)?.into_iter().flatten() {
                let here = at.below(&[keyword, name]);
                let id = self.schema.names.intern(name);
                match json {
                    Json::Array(list) if keyword != "dependentSchemas" => {
                        let names = self.names(list, &here.pointer)?;
                        rules.push(Rule::NamesWith(id, names));
                    }
                    Json::String(_) if keyword == "dependencies" => {
                        let names = self.names(std::slice::from_ref(json), &here.pointer)?;
                        rules.push(Rule::NamesWith(id, names));
                    }
                    _ if keyword == "dependentRequired" => {
                        return Err(refuse(&here.pointer, "names are a list", None));
                    }
                    _ => rules.push(Rule::SchemaWith(id, self.enter(json, here)?)),
                }
            }
        }
        Ok(())
    }
}
