//! Keywords that apply schemas to the value itself, or to some of its items.

use referencing::Draft;

use super::keyword_table::Keyword;
use super::keyword_values::{Fault, Fields, wrong};
use super::{Place, Reader};
use crate::json::json_view::{Shape, Source};
use crate::schema_nodes::{Part, Rule};

impl<'r, J: Source<'r>> Reader<'r, J> {
    pub(super) fn contains(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Fault> {
        let Some(json) = fields.get(Keyword::Contains).filter(|_| at.draft != Draft::Draft4) else {
            return Ok(());
        };
        let node = self.enter(json, at, Keyword::Contains, Part::Whole)?;
        let (mut min, mut max) = (1, None);
        if !at.is_legacy() {
            min = fields.count(Keyword::MinContains)?.unwrap_or(1);
            max = fields.count(Keyword::MaxContains)?;
        }
        rules.push(Rule::Contains { node, min, max, marks: !at.before_2020() });
        Ok(())
    }

    pub(super) fn applicators(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Fault> {
        if let Some(all) = fields.list(Keyword::AllOf)? {
            rules.push(Rule::All(self.enter_all(all, Keyword::AllOf, at)?));
        }
        if let Some(all) = fields.list(Keyword::AnyOf)? {
            rules.push(Rule::Any(self.enter_all(all, Keyword::AnyOf, at)?));
        }
        if let Some(all) = fields.list(Keyword::OneOf)? {
            rules.push(Rule::One(self.enter_all(all, Keyword::OneOf, at)?));
        }
        if let Some(json) = fields.get(Keyword::Not) {
            rules.push(Rule::Not(self.enter(json, at, Keyword::Not, Part::Whole)?));
        }
        let conditions = !matches!(at.draft, Draft::Draft4 | Draft::Draft6);
        if let Some(json) = fields.get(Keyword::If).filter(|_| conditions) {
            let condition = self.enter(json, at, Keyword::If, Part::Whole)?;
            let mut branch = |keyword: Keyword| {
                let json = fields.get(keyword);
                json.map(|json| self.enter(json, at, keyword, Part::Whole)).transpose()
            };
            let (then, other) = (branch(Keyword::Then)?, branch(Keyword::Else)?);
            rules.push(Rule::If { condition, then, other });
        }
        Ok(())
    }

    pub(super) fn dependencies(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Fault> {
        for keyword in
            [Keyword::Dependencies, Keyword::DependentRequired, Keyword::DependentSchemas]
        {
            if keyword != Keyword::Dependencies && at.is_legacy() {
                continue;
            }
            for (name, json) in fields.object(keyword)?.into_iter().flat_map(J::parts) {
                let parts = [keyword.name(), name];
                let id = self.schema.names.intern(name);
                match json.shape() {
                    Shape::Array if keyword != Keyword::DependentSchemas => {
                        let names = self.names(json.parts().map(|part| part.1), &parts)?;
                        rules.push(Rule::NamesWith(id, names));
                    }
                    Shape::Text(_) if keyword == Keyword::Dependencies => {
                        let names = self.names([json].into_iter(), &parts)?;
                        rules.push(Rule::NamesWith(id, names));
                    }
                    _ if keyword == Keyword::DependentRequired => {
                        return Err(wrong(&parts, "names are a list"));
                    }
                    _ => {
                        let node = self.enter(json, at, keyword, Part::Name(id))?;
                        rules.push(Rule::SchemaWith(id, node));
                    }
                }
            }
        }
        Ok(())
    }
}
