//! Special tokens in Lark and GBNF texts: `<|name|>`.

use formalm_automata::Expression;
use formalm_core::{Error, SourceSpan};
use formalm_machines::special_token_bytes;

use crate::grammar::Terminal;
use crate::notation::grammar_builder::GrammarBuilder;
use crate::notation::lark::terminal_length::PatternLengths;
use crate::notation::scanner::Scanner;
use crate::notation::terminal_order::{RankedTerminal, TerminalRank};
use crate::notation::{GrammarSource, SyntaxTree};

impl GrammarSource {
    /// Reads a special token with its angle brackets.
    pub(in crate::notation) fn special(
        &mut self,
        scanner: &mut Scanner,
    ) -> Result<SyntaxTree, Error> {
        let start = scanner.at;
        scanner.at += 1;
        let inner = scanner.take_while(|one| !one.is_whitespace() && !"<>".contains(one));
        if inner.is_empty() || !scanner.eat(">") {
            let hint = "write its name in angle brackets, as in <|name|>";
            return Err(scanner.refuse(start, "invalid special token", Some(hint)));
        }
        if inner == "[*]" {
            let hint = Some("list the strings that may occur there");
            return Err(scanner.refuse(start, "<[*]> (any token) is not supported", hint));
        }
        if is_number(&inner) {
            let hint = Some("write its name instead: <|name|>");
            let message = "token ids are not supported, because they differ between vocabularies";
            return Err(scanner.refuse(start, message, hint));
        }
        let name = format!("<{inner}>");
        if !self.special.iter().any(|one| one.0 == name) {
            let language = Expression::literals(vec![special_token_bytes(&name)]);
            self.special.push((name.clone(), language));
        }
        Ok(SyntaxTree::Name(name, Vec::new(), scanner.span(start)))
    }
}

/// Returns `true` for token ids, as in `<[12]>`.
fn is_number(inner: &str) -> bool {
    let inner = inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    let is_part = |one: char| one.is_ascii_digit() || "^,-".contains(one);
    inner.is_some_and(|all| {
        all.contains(|one: char| one.is_ascii_digit()) && all.chars().all(is_part)
    })
}

impl GrammarBuilder<'_> {
    /// Adds the terminal of a special token. No other terminal shares a prefix with it, so its
    /// priority is irrelevant.
    pub(in crate::notation) fn special_terminal(
        &mut self,
        name: &str,
        language: Expression,
        span: SourceSpan,
    ) -> usize {
        let (pattern_lengths, sort_name) = (PatternLengths::default(), name.to_owned());
        let kind = TerminalRank { priority: 0, text: None, pattern_lengths, sort_name };
        let terminal =
            Terminal { name: name.to_owned(), language, sublanguage: None, span: Some(span) };
        self.terminals.push(RankedTerminal { terminal, kind });
        self.terminals.len() - 1
    }
}
