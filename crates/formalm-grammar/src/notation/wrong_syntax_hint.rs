//! Hints for texts in another notation: if a text is refused, the error names the notation it seems
//! to be written in.

use formalm_core::Error;

use crate::notation::parse_options::Syntax;
use crate::notation::scanner::Scanner;

/// Adds a hint to an error if the text is written in another notation.
pub(super) fn with_syntax_hint(error: Error, text: &str, syntax: Syntax) -> Error {
    match error {
        Error::Language { message, span, hint } => {
            let hint = syntax_hint(text, syntax).or(hint);
            Error::Language { message, span, hint }
        }
        limit => limit,
    }
}

fn syntax_hint(text: &str, syntax: Syntax) -> Option<String> {
    if is_file_name(text) {
        return Some(
            "this is a file name; pass the file's contents: Path(name).read_text()".to_owned(),
        );
    }
    if let Some(other) = readable_in(text, syntax) {
        return Some(format!("the grammar is in another syntax: pass syntax={:?}", name(other)));
    }
    // It has mistakes in every notation, so its first definition decides.
    let (sign, is_bracketed) = definition_sign(text)?;
    match (sign, syntax) {
        ("::=", _) if is_bracketed => Some(
            "write names without angle brackets, as in expr ::= term, and pass syntax=\"gbnf\" or \
             syntax=\"ebnf\""
                .to_owned(),
        ),
        ("::=", Syntax::Lark) => {
            Some("::= belongs to syntax=\"gbnf\" (llama.cpp) or syntax=\"ebnf\" (W3C)".to_owned())
        }
        ("=", Syntax::Lark | Syntax::Gbnf) => {
            Some("= belongs to syntax=\"ebnf\" (ISO/IEC 14977)".to_owned())
        }
        (":", Syntax::Gbnf | Syntax::Ebnf) => {
            Some("a name followed by a colon belongs to syntax=\"lark\"".to_owned())
        }
        _ => None,
    }
}

fn name(syntax: Syntax) -> &'static str {
    match syntax {
        Syntax::Lark => "lark",
        Syntax::Gbnf => "gbnf",
        Syntax::Ebnf => "ebnf",
    }
}

/// Returns another notation that reads the whole text. GBNF is preferred if the text defines its
/// start rule.
fn readable_in(text: &str, syntax: Syntax) -> Option<Syntax> {
    let start = |syntax: Syntax| {
        let rules = super::read_source(text, syntax).ok()?.rules;
        (!rules.is_empty()).then(|| rules.iter().any(|one| one.name == "root"))
    };
    let others = [Syntax::Gbnf, Syntax::Ebnf, Syntax::Lark];
    let read = others.into_iter().filter(|&one| one != syntax).filter_map(|one| {
        let has_root = start(one)?;
        Some((one, one == Syntax::Gbnf && !has_root))
    });
    read.min_by_key(|one| one.1).map(|one| one.0)
}

/// Returns the sign between the name and the body of the first definition, and whether the name has
/// angle brackets.
fn definition_sign(text: &str) -> Option<(&'static str, bool)> {
    let mut scanner = Scanner::new(text);
    loop {
        scanner.take_while(char::is_whitespace);
        if scanner.eat("#") || scanner.eat("//") {
            scanner.skip_line();
        } else if scanner.eat("/*") {
            while !scanner.eat("*/") {
                scanner.next()?;
            }
        } else if scanner.eat("(*") {
            while !scanner.eat("*)") {
                scanner.next()?;
            }
        } else {
            break;
        }
    }
    let is_bracketed = scanner.eat("<");
    let is_name = |one: char| one.is_alphanumeric() || matches!(one, '_' | '-' | ' ');
    if scanner.take_while(is_name).is_empty() {
        return None;
    }
    scanner.eat(">");
    scanner.take_while(char::is_whitespace);
    let sign = ["::=", "=", ":"].into_iter().find(|sign| scanner.eat(sign))?;
    Some((sign, is_bracketed))
}

fn is_file_name(text: &str) -> bool {
    let endings = [".lark", ".gbnf", ".ebnf", ".bnf", ".g4", ".txt"];
    let text = text.trim();
    endings.iter().any(|one| text.ends_with(one)) && !text.contains(char::is_whitespace)
}
