//! Attributes of a definition, in brackets after its name: `name[capture, max_bytes=20]: …`.

use std::sync::Arc;

use formalm_automata::{CharRecognizer, Expression, RecognizerAlphabet};
use formalm_core::{Error, SourceSpan};

use crate::grammar::{Capture, GrammarNote};
use crate::notation::grammar_builder::Definitions;
use crate::notation::lark::LarkReader;
use crate::notation::{SyntaxTree, TerminalSource};

/// Maximum value of `max_bytes`.
const MAX_MAX_BYTES: u32 = 100_000;

/// The attributes of a definition.
#[derive(Clone, Debug, Default)]
pub(in crate::notation) struct DefinitionAttributes {
    /// The name under which its strings are captured.
    pub(in crate::notation) capture: Option<String>,
    /// Maximum bytes, including those of `stop`.
    pub(in crate::notation) max_bytes: Option<u32>,
    /// The string that ends them and does not occur earlier.
    pub(in crate::notation) stop: Option<String>,
}

impl DefinitionAttributes {
    /// No attributes.
    pub(in crate::notation) const NONE: DefinitionAttributes =
        DefinitionAttributes { capture: None, max_bytes: None, stop: None };

    /// Returns `true` if they restrict the language.
    pub(in crate::notation) fn are_bounds(&self) -> bool {
        self.max_bytes.is_some() || self.stop.is_some()
    }

    /// Restricts a language to the strings that they allow.
    fn apply_bounds(&self, language: Expression) -> Result<Expression, Error> {
        let mut language = language;
        if let Some(stop) = &self.stop {
            let anything = Expression::literals(Vec::new()).complement()?;
            let stop = || Expression::literals(vec![stop.as_bytes().to_vec()]);
            let something = Expression::literals(vec![Vec::new()]).complement()?;
            // Whatever continues after a stop contains one before its end.
            let early = Expression::concat(vec![anything, stop(), something])?;
            language = Expression::concat(vec![language, stop()])?.difference(early)?;
        }
        if let Some(most) = self.max_bytes {
            let short = Expression::custom(Arc::new(MaxBytes(most)));
            language = Expression::intersection(vec![language, short])?;
        }
        Ok(language)
    }
}

/// The language of strings with a maximum number of bytes.
#[derive(Debug)]
struct MaxBytes(u32);

impl CharRecognizer for MaxBytes {
    fn start(&self) -> u32 {
        self.0
    }

    fn step(&self, left: u32, character: char) -> Option<u32> {
        left.checked_sub(character.len_utf8() as u32)
    }

    fn accepts_some_in_range(&self, left: u32, first: char, _: char) -> bool {
        // The characters of a queried range all have the same number of bytes.
        first.len_utf8() as u32 <= left
    }

    fn is_accepting(&self, _: u32) -> bool {
        true
    }

    fn alphabet(&self) -> Option<&dyn RecognizerAlphabet> {
        Some(self)
    }
}

impl RecognizerAlphabet for MaxBytes {
    fn depends_on_length_only(&self) -> bool {
        true
    }
}

impl LarkReader {
    /// Reads the attributes of a definition, if there are any.
    pub(in crate::notation) fn attributes(
        &mut self,
        name: &str,
    ) -> Result<DefinitionAttributes, Error> {
        let mut all = DefinitionAttributes::default();
        if !self.scanner.eat("[") {
            return Ok(all);
        }
        loop {
            self.skip_blanks();
            let start = self.scanner.at;
            let key = self.name()?;
            self.skip_blanks();
            let has_value = self.scanner.eat("=");
            self.skip_blanks();
            let twice = match (&*key, has_value) {
                ("capture", false) => all.capture.replace(name.to_owned()).is_some(),
                ("capture", true) => {
                    let name = self.nonempty_string(start)?;
                    all.capture.replace(name).is_some()
                }
                ("stop", true) => {
                    let text = self.nonempty_string(start)?;
                    all.stop.replace(text).is_some()
                }
                ("max_bytes", true) => {
                    let most = self.scanner.integer("max_bytes")?;
                    if most == 0 || most > MAX_MAX_BYTES {
                        let message = format!("max_bytes must be 1 to {MAX_MAX_BYTES}");
                        return Err(self.scanner.refuse(start, &message, None));
                    }
                    all.max_bytes.replace(most).is_some()
                }
                _ => {
                    let hint = "the attributes are capture, capture=\"name\", max_bytes=20 and \
                                stop=\"string\"";
                    let message = match &*key {
                        "max_tokens" | "temperature" => {
                            format!(
                                "{key} is not supported: it does not restrict which strings are \
                                 members"
                            )
                        }
                        "lazy" | "suffix" => format!("{key} is not supported; use stop=\"string\""),
                        _ => format!("unknown attribute {key}"),
                    };
                    return Err(self.scanner.refuse(start, &message, Some(hint)));
                }
            };
            if twice {
                let message = format!("{key} is given twice");
                return Err(self.scanner.refuse(start, &message, None));
            }
            self.skip_blanks();
            if self.scanner.eat("]") {
                return Ok(all);
            }
            self.scanner.expect(",", "between attributes")?;
        }
    }

    /// Reads a nonempty string.
    fn nonempty_string(&mut self, start: usize) -> Result<String, Error> {
        match self.literals().text()? {
            (text, false) if !text.is_empty() => Ok(text),
            _ => {
                let message = "an attribute string must be non-empty and case-sensitive";
                Err(self.scanner.refuse(start, message, None))
            }
        }
    }
}

impl Definitions<'_> {
    /// Returns the language of a terminal that is combined from languages.
    pub(in crate::notation) fn terminal_language(
        &self,
        source: &TerminalSource,
        depth: usize,
    ) -> Result<Expression, Error> {
        self.apply_bounds(&source.body, &source.attributes, depth, source.span)
    }

    pub(in crate::notation) fn apply_bounds(
        &self,
        body: &SyntaxTree,
        attributes: &DefinitionAttributes,
        depth: usize,
        span: SourceSpan,
    ) -> Result<Expression, Error> {
        let language = self.regular(body, depth, span)?;
        if attributes.are_bounds() && !language.is_utf8() {
            let message = "max_bytes and stop require UTF-8, but this part may match invalid UTF-8";
            return Err(self.refuse(span, message, None));
        }
        attributes.apply_bounds(language)
    }

    /// Returns notes on captures that can never match, because the parts of a lexeme are not recorded.
    pub(in crate::notation) fn unreachable_capture_notes(&self) -> Vec<GrammarNote> {
        let terminals = self.source.terminals.iter().map(|one| (&one.name, &one.body));
        let bounded = self.source.rules.iter().filter(|one| one.attributes.are_bounds());
        let bounded = bounded.map(|one| (&one.name, &one.body));
        let mut notes = Vec::new();
        for (whole, body) in terminals.chain(bounded) {
            let mut open = vec![body];
            while let Some(tree) = open.pop() {
                match tree {
                    SyntaxTree::Atom(_) => {}
                    SyntaxTree::Name(name, arguments, span) => {
                        if self.is_captured(name) {
                            let message = format!(
                                "{name} in {whole} captures nothing: {whole} is read as one \
                                 lexeme, whose parts are not recorded"
                            );
                            notes.push(GrammarNote { message, span: Some(*span) });
                        }
                        open.extend(arguments);
                    }
                    SyntaxTree::Sequence(list)
                    | SyntaxTree::Choice(list)
                    | SyntaxTree::Intersection(list, _) => {
                        open.extend(list);
                    }
                    SyntaxTree::Repeat(one, ..)
                    | SyntaxTree::Optional(one)
                    | SyntaxTree::Complement(one, _) => {
                        open.push(one);
                    }
                    SyntaxTree::Difference(first, second, _) => open.extend([&**first, &**second]),
                }
            }
        }
        notes
    }

    fn is_captured(&self, name: &str) -> bool {
        let terminal = self.defined.get(name).map(|one| &one.attributes);
        let rule = || self.templates.get(name).map(|one| &one.attributes);
        terminal.or_else(rule).is_some_and(|one| one.capture.is_some())
    }

    /// Returns the captures in source order.
    pub(in crate::notation) fn captures(&self) -> Vec<Capture> {
        let rules = self.source.rules.iter().map(|one| (&one.name, &one.attributes, one.span));
        let terminals = self.source.terminals.iter();
        let terminals = terminals.map(|one| (&one.name, &one.attributes, one.span));
        let mut all: Vec<Capture> = rules
            .chain(terminals)
            .filter_map(|(of, attributes, span)| {
                let name = attributes.capture.clone()?;
                let stop = attributes.stop.as_ref().map_or(0, String::len);
                Some(Capture { name, symbol: of.clone(), stop_bytes: stop, span })
            })
            .collect();
        all.sort_by_key(|one| one.span.start);
        all
    }
}
