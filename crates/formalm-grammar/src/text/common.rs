//! The terminals that Lark text imports from `common`, by the texts they stand for.
//!
//! Written here as the lexemes they are read as, not as the patterns of that library: a quoted
//! string ends at its first quote that is not escaped, a comment at the first end of one.

use formalm_automata::syntax::Flags;
use formalm_automata::{Error, Span};

use super::attributes::Attributes;
use super::lark::{Reader, is_name};
use super::leaves::Leaf;
use super::{TerminalSource, Tree};

/// `(name, pattern)`.
const TERMINALS: [(&str, &str); 26] = [
    ("DIGIT", "[0-9]"),
    ("HEXDIGIT", "[0-9A-Fa-f]"),
    ("INT", "[0-9]+"),
    ("SIGNED_INT", "[+-]?[0-9]+"),
    ("DECIMAL", r"[0-9]+\.[0-9]*|\.[0-9]+"),
    ("_EXP", "[eE][+-]?[0-9]+"),
    ("FLOAT", r"[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    (
        "SIGNED_FLOAT",
        r"[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
    ),
    ("NUMBER", r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("SIGNED_NUMBER", r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("ESCAPED_STRING", r#""(?:[^"\\\n]|\\[^\n])*""#),
    ("_STRING_INNER", r"[^\n]*?"),
    ("_STRING_ESC_INNER", r"(?:[^\\\n]|\\[^\n])*?"),
    ("LCASE_LETTER", "[a-z]"),
    ("UCASE_LETTER", "[A-Z]"),
    ("LETTER", "[A-Za-z]"),
    ("WORD", "[A-Za-z]+"),
    ("CNAME", "[A-Za-z_][A-Za-z_0-9]*"),
    ("WS_INLINE", r"[ \t]+"),
    ("WS", r"[ \t\f\r\n]+"),
    ("CR", r"\r"),
    ("LF", r"\n"),
    ("NEWLINE", r"(?:\r?\n)+"),
    ("SH_COMMENT", r"#[^\n]*"),
    ("CPP_COMMENT", r"//[^\n]*"),
    ("SQL_COMMENT", r"--[^\n]*"),
];

/// A comment of C, which is longer.
const C_COMMENT: &str = r"/\*(?:[^*]|\*+[^*/])*\*+/";

/// The pattern of a terminal of `common`.
fn pattern(name: &str) -> Option<&'static str> {
    if name == "C_COMMENT" {
        return Some(C_COMMENT);
    }
    TERMINALS.iter().find(|(known, _)| *known == name).map(|&(_, pattern)| pattern)
}

impl Reader {
    /// Reads what follows `%import`.
    pub(super) fn import(&mut self, start: usize) -> Result<(), Error> {
        let module = self.scanner.take_while(|one| is_name(one) || one == '.');
        self.blanks();
        if self.scanner.eat("(") {
            if module != "common" {
                return Err(self.no_module(start, &module));
            }
            loop {
                self.lines();
                let place = self.scanner.at;
                let name = self.name()?;
                self.imported(place, &name, &name)?;
                self.lines();
                if self.scanner.eat(")") {
                    return Ok(());
                }
                self.scanner.expect(",", "between imported names")?;
            }
        }
        let Some(name) = module.strip_prefix("common.").map(str::to_owned) else {
            return Err(self.no_module(start, &module));
        };
        let mut alias = name.clone();
        if self.scanner.eat("->") {
            self.blanks();
            alias = self.name()?;
        }
        self.imported(start, &name, &alias)
    }

    fn no_module(&self, start: usize, module: &str) -> Error {
        let message = format!("{module} cannot be imported: only terminals of common can");
        self.scanner.refuse(start, &message, Some("write the definitions into this grammar"))
    }

    fn imported(&mut self, start: usize, name: &str, alias: &str) -> Result<(), Error> {
        let Some(pattern) = pattern(name) else {
            return Err(self.scanner.refuse(start, &format!("common has no {name}"), None));
        };
        let span: Span = self.scanner.span(start);
        let leaf = Leaf::pattern(&self.scanner, pattern, start, Flags::default(), "")?;
        let (name, body) = (alias.to_owned(), Tree::Leaf(leaf));
        self.source.terminals.push(TerminalSource {
            name,
            priority: 0,
            body,
            span,
            attributes: Attributes::NONE,
        });
        Ok(())
    }
}
