//! Languages written inside a rule: `%json {...}`.

use formalm_core::{Error, SourceSpan};

use crate::notation::lark::LarkReader;
use crate::notation::{SyntaxTree, lark};

/// A language written inside a rule, in a notation of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineLanguage {
    /// The name under which `ParseOptions::sublanguages` provides it.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The position of that text.
    pub span: SourceSpan,
}

/// Returns the languages written inside the rules of a Lark text.
///
/// # Errors
///
/// As [`crate::parse`], for mistakes in the text up to that point.
pub fn inline_languages(text: &str) -> Result<Vec<InlineLanguage>, Error> {
    Ok(lark::read(text)?.inlined)
}

impl LarkReader {
    /// Reads `%json` and a JSON value inside a rule.
    pub(in crate::notation) fn inline(&mut self) -> Result<SyntaxTree, Error> {
        let start = self.scanner.at;
        if !self.scanner.eat("%json") {
            let hint = Some("write other directives on a line of their own");
            return Err(self.scanner.refuse(start, "only %json is allowed within rules", hint));
        }
        let name = format!("%json@{start}");
        self.skip_blanks();
        let begins = self.scanner.at;
        let text = self.value()?;
        let span = self.scanner.span(begins);
        self.source.inlined.push(InlineLanguage { name: name.clone(), text, span });
        Ok(SyntaxTree::Name(name, Vec::new(), self.scanner.span(start)))
    }

    /// Reads a JSON object, `true` or `false`, verbatim.
    fn value(&mut self) -> Result<String, Error> {
        let start = self.scanner.at;
        for word in ["true", "false"] {
            if self.scanner.eat(word) {
                return Ok(word.to_owned());
            }
        }
        if self.scanner.peek() != Some('{') {
            return Err(self.scanner.unexpected("a schema (an object, true or false)"));
        }
        let (mut text, mut depth, mut quoted) = (String::new(), 0usize, false);
        while let Some(one) = self.scanner.next() {
            text.push(one);
            match one {
                '"' => quoted = !quoted,
                '\\' if quoted => text.extend(self.scanner.next()),
                '{' if !quoted => depth += 1,
                '}' if !quoted => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(text);
            }
        }
        Err(self.scanner.refuse(start, "the schema has no closing brace", None))
    }
}
