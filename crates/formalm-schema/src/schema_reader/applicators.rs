//! Keywords that apply subschemas: to properties and items, in place, and conditionally.

use referencing::Draft;

use super::keyword_table::Keyword;
use super::keyword_values::{KeywordValues, SchemaFault, fault_at, property_names};
use super::{SchemaReader, SubschemaContext};
use crate::formula::NameSelector;
use crate::json::json_view::{JsonShape, JsonView};
use crate::schema_nodes::{KeywordPart, KeywordRule, NodeId, RegexId, SchemaNode};

impl<'r, J: JsonView<'r>> SchemaReader<'r, J> {
    /// Reads `properties`, `patternProperties`, `additionalProperties` and `propertyNames`.
    pub(super) fn property_rules(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        let mut properties: Vec<(NameSelector, NodeId)> = Vec::new();
        let mut declared = Vec::new();
        for (name, json) in fields.object(Keyword::Properties)?.into_iter().flat_map(J::children) {
            let id = self.schema.names.intern(name);
            declared.push(id);
            let which = NameSelector {
                names: Some([id].into()),
                excluded_names: [].into(),
                matched_patterns: [].into(),
                unmatched_patterns: [].into(),
            };
            properties.push((
                which,
                self.subschema_node(json, at, Keyword::Properties, KeywordPart::Name(id))?,
            ));
        }
        declared.sort_unstable();
        let mut patterns = Vec::new();
        for (source, json) in
            fields.object(Keyword::PatternProperties)?.into_iter().flat_map(J::children)
        {
            let id = self.ecma_pattern(source, at, &["patternProperties", source])?;
            patterns.push(id);
            let found: &[RegexId] = if self.schema.is_any_string(id) { &[] } else { &[id] };
            let found = found.into();
            let which = NameSelector {
                names: None,
                excluded_names: [].into(),
                matched_patterns: found,
                unmatched_patterns: [].into(),
            };
            let part = KeywordPart::Text(source.into());
            properties
                .push((which, self.subschema_node(json, at, Keyword::PatternProperties, part)?));
        }
        patterns.sort_unstable();
        patterns.dedup();
        if let Some(json) = fields.get(Keyword::AdditionalProperties) {
            let which = NameSelector {
                names: None,
                excluded_names: declared.into(),
                matched_patterns: [].into(),
                unmatched_patterns: patterns.into(),
            };
            let node =
                self.subschema_node(json, at, Keyword::AdditionalProperties, KeywordPart::Whole)?;
            if !which.unmatched_patterns.iter().any(|&id| self.schema.is_any_string(id)) {
                properties.push((which, node));
            }
        } else if !self.options.allow_additional
            && !fields.has(Keyword::UnevaluatedProperties)
            && (fields.has(Keyword::Properties) || fields.has(Keyword::PatternProperties))
        {
            let (others, missing) = (declared.into(), patterns.into());
            let which = NameSelector {
                names: None,
                excluded_names: others,
                matched_patterns: [].into(),
                unmatched_patterns: missing,
            };
            let never = self.schema.add_node(SchemaNode::synthetic(vec![KeywordRule::Never]));
            properties.push((which, never));
            self.schema.note(at.node, &[], "properties that are not declared are excluded");
        }
        if !properties.is_empty() {
            rules.push(KeywordRule::Properties(properties.into()));
        }
        if let Some(json) = fields.get(Keyword::PropertyNames).filter(|_| at.draft != Draft::Draft4)
        {
            rules.push(KeywordRule::PropertyNames(self.subschema_node(
                json,
                at,
                Keyword::PropertyNames,
                KeywordPart::Whole,
            )?));
        }
        Ok(())
    }

    /// Reads `prefixItems`, `items` and `additionalItems`, by the rules of the draft.
    pub(super) fn item_rules(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        let old_form = fields.get(Keyword::Items).is_some_and(|items| items.shape().is_array());
        let (prefix, rest) = match (at.is_before_2020(), old_form) {
            (false, false) => (Some(Keyword::PrefixItems), Keyword::Items),
            (true, false) => (None, Keyword::Items),
            (_, true) => (Some(Keyword::Items), Keyword::AdditionalItems),
        };
        if old_form && !at.is_before_2020() {
            self.schema.note(
                at.node,
                &["items"],
                "an array value of items is read as in drafts before 2020-12",
            );
        }
        let mut ranges = Vec::new();
        let mut first = 0;
        if let Some(prefix) = prefix
            && let Some(all) = fields.list(prefix)?
        {
            for node in self.subschema_nodes(all, prefix, at)? {
                ranges.push((first, first + 1, node));
                first += 1;
            }
        }
        if let Some(json) = fields.get(rest) {
            ranges.push((
                first,
                u32::MAX,
                self.subschema_node(json, at, rest, KeywordPart::Whole)?,
            ));
        }
        if !ranges.is_empty() {
            rules.push(KeywordRule::Items(ranges.into()));
        }
        Ok(())
    }

    /// Reads `contains`, `minContains` and `maxContains`.
    pub(super) fn contains_rule(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        let Some(json) = fields.get(Keyword::Contains).filter(|_| at.draft != Draft::Draft4) else {
            return Ok(());
        };
        let node = self.subschema_node(json, at, Keyword::Contains, KeywordPart::Whole)?;
        let (mut min, mut max) = (1, None);
        if !at.is_legacy() {
            min = fields.count(Keyword::MinContains)?.unwrap_or(1);
            max = fields.count(Keyword::MaxContains)?;
        }
        rules.push(KeywordRule::Contains { node, min, max, marks_evaluated: !at.is_before_2020() });
        Ok(())
    }

    /// Reads `allOf`, `anyOf`, `oneOf`, `not` and `if`.
    pub(super) fn in_place_rules(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        if let Some(all) = fields.list(Keyword::AllOf)? {
            rules.push(KeywordRule::AllOf(self.subschema_nodes(all, Keyword::AllOf, at)?));
        }
        if let Some(all) = fields.list(Keyword::AnyOf)? {
            rules.push(KeywordRule::AnyOf(self.subschema_nodes(all, Keyword::AnyOf, at)?));
        }
        if let Some(all) = fields.list(Keyword::OneOf)? {
            rules.push(KeywordRule::OneOf(self.subschema_nodes(all, Keyword::OneOf, at)?));
        }
        if let Some(json) = fields.get(Keyword::Not) {
            rules.push(KeywordRule::Not(self.subschema_node(
                json,
                at,
                Keyword::Not,
                KeywordPart::Whole,
            )?));
        }
        let conditions = !matches!(at.draft, Draft::Draft4 | Draft::Draft6);
        if let Some(json) = fields.get(Keyword::If).filter(|_| conditions) {
            let condition = self.subschema_node(json, at, Keyword::If, KeywordPart::Whole)?;
            let mut branch = |keyword: Keyword| {
                let json = fields.get(keyword);
                json.map(|json| self.subschema_node(json, at, keyword, KeywordPart::Whole))
                    .transpose()
            };
            let (then, other) = (branch(Keyword::Then)?, branch(Keyword::Else)?);
            rules.push(KeywordRule::If { condition, then, otherwise: other });
        }
        Ok(())
    }

    /// Reads `dependencies`, `dependentRequired` and `dependentSchemas`.
    pub(super) fn dependency_rules(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<KeywordRule>,
    ) -> Result<(), SchemaFault> {
        for keyword in
            [Keyword::Dependencies, Keyword::DependentRequired, Keyword::DependentSchemas]
        {
            if keyword != Keyword::Dependencies && at.is_legacy() {
                continue;
            }
            for (name, json) in fields.object(keyword)?.into_iter().flat_map(J::children) {
                let parts = [keyword.name(), name];
                let id = self.schema.names.intern(name);
                match json.shape() {
                    JsonShape::Array if keyword != Keyword::DependentSchemas => {
                        let names = property_names(
                            &mut self.schema.names,
                            json.children().map(|part| part.1),
                            &parts,
                        )?;
                        rules.push(KeywordRule::DependentRequired(id, names));
                    }
                    JsonShape::String(_) if keyword == Keyword::Dependencies => {
                        let names =
                            property_names(&mut self.schema.names, [json].into_iter(), &parts)?;
                        rules.push(KeywordRule::DependentRequired(id, names));
                    }
                    _ if keyword == Keyword::DependentRequired => {
                        return Err(fault_at(&parts, "the names must be a list"));
                    }
                    _ => {
                        let node = self.subschema_node(json, at, keyword, KeywordPart::Name(id))?;
                        rules.push(KeywordRule::DependentSchema(id, node));
                    }
                }
            }
        }
        Ok(())
    }
}
