//! The keyword `format`.

use super::keyword_table::Keyword;
use super::keyword_values::{Fault, Fields};
use super::{Place, Reader};
use crate::formats;
use crate::json::json_view::Source;
use crate::options::Formats;
use crate::schema_nodes::Rule;

impl<'r, J: Source<'r>> Reader<'r, J> {
    pub(super) fn format(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Fault> {
        let Some(name) = fields.get(Keyword::Format).and_then(J::text) else { return Ok(()) };
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
            rules.push(Rule::Text(id));
            return Ok(());
        }
        match formats::format(name) {
            Some(expression) => {
                let expression = expression?;
                rules.push(Rule::Text(self.schema.regex(key, || expression)));
            }
            None => {
                let message = format!("the format {name:?} is not enforced");
                self.note(at, &["format"], message);
            }
        }
        Ok(())
    }
}
