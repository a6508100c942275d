//! The keyword `format`.

use super::keyword_table::Keyword;
use super::keyword_values::{KeywordValues, SchemaFault};
use super::{SchemaReader, SubschemaContext};
use crate::formats;
use crate::json::json_view::JsonView;
use crate::options::Formats;
use crate::schema_nodes::Rule;

impl<'r, J: JsonView<'r>> SchemaReader<'r, J> {
    pub(super) fn format_rule(
        &mut self,
        fields: &KeywordValues<J>,
        at: &SubschemaContext<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), SchemaFault> {
        let Some(name) = fields.get(Keyword::Format).and_then(J::as_str) else { return Ok(()) };
        let key = format!("f{name}");
        let is_known = formats::NAMES.contains(&name);
        if self.options.formats == Formats::NONE || is_known && !self.options.formats.enforces(name)
        {
            let message = match self.options.formats {
                Formats::NONE => "formats are annotations".to_owned(),
                _ => format!("the format {name:?} is an annotation"),
            };
            self.note(at, &["format"], message);
            return Ok(());
        }
        if name == "idn-hostname" {
            let message = "letters of host names are those of Unicode 14: later ones are refused";
            self.note(at, &["format"], message);
        }
        if let Some(&id) = self.schema.regex_ids.get(&key) {
            rules.push(Rule::StringLanguage(id));
            return Ok(());
        }
        match formats::format(name) {
            Some(expression) => {
                let expression = expression?;
                rules.push(Rule::StringLanguage(self.schema.intern_regex(key, || expression)));
            }
            None => {
                let message = format!("the format {name:?} is not enforced");
                self.note(at, &["format"], message);
            }
        }
        Ok(())
    }
}
