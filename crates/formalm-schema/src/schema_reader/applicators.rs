//! Keywords that apply schemas to the value itself, or to some of its items.

use referencing::Draft;

use super::keyword_table::Keyword;
use super::keyword_values::{KeywordValues, SchemaFault, fault_at};
use super::{SchemaReader, SubschemaContext};
use crate::json::json_view::{JsonShape, JsonView};
use crate::schema_nodes::{KeywordPart, Rule};

impl<'r, J: JsonView<'r>> SchemaReader<'r, J> {
    pub(super) fn contains_rule(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<Rule>,
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
        rules.push(Rule::Contains { node, min, max, marks_evaluated: !at.is_before_2020() });
        Ok(())
    }

    pub(super) fn in_place_rules(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), SchemaFault> {
        if let Some(all) = fields.list(Keyword::AllOf)? {
            rules.push(Rule::All(self.subschema_nodes(all, Keyword::AllOf, at)?));
        }
        if let Some(all) = fields.list(Keyword::AnyOf)? {
            rules.push(Rule::Any(self.subschema_nodes(all, Keyword::AnyOf, at)?));
        }
        if let Some(all) = fields.list(Keyword::OneOf)? {
            rules.push(Rule::One(self.subschema_nodes(all, Keyword::OneOf, at)?));
        }
        if let Some(json) = fields.get(Keyword::Not) {
            rules.push(Rule::Not(self.subschema_node(
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
            rules.push(Rule::If { condition, then, other });
        }
        Ok(())
    }

    pub(super) fn dependency_rules(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<Rule>,
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
                        let names =
                            self.property_names(json.children().map(|part| part.1), &parts)?;
                        rules.push(Rule::DependentRequired(id, names));
                    }
                    JsonShape::String(_) if keyword == Keyword::Dependencies => {
                        let names = self.property_names([json].into_iter(), &parts)?;
                        rules.push(Rule::DependentRequired(id, names));
                    }
                    _ if keyword == Keyword::DependentRequired => {
                        return Err(fault_at(&parts, "names are a list"));
                    }
                    _ => {
                        let node = self.subschema_node(json, at, keyword, KeywordPart::Name(id))?;
                        rules.push(Rule::SchemaWith(id, node));
                    }
                }
            }
        }
        Ok(())
    }
}
