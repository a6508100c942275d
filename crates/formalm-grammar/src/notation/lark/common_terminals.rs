//! `%import common.X`: the terminals of Lark's `common` library.
//!
//! The patterns describe the lexemes that result, not the library's source: a quoted string ends at
//! its first unescaped quote, a comment at the first end of comment.

use formalm_core::{Error, SourceSpan};
use formalm_regex::PatternFlags;

use crate::notation::atoms::Atom;
use crate::notation::lark::definition_attributes::DefinitionAttributes;
use crate::notation::lark::directives::USE_LARK_HINT;
use crate::notation::lark::{LarkReader, is_name};
use crate::notation::{SyntaxTree, TerminalSource};

/// `(name, length, pattern)`. The length is that of Lark's own pattern, because its lexers try
/// longer patterns first.
const COMMON_TERMINALS: [(&str, u64, &str); 27] = [
    ("DIGIT", 5, "[0-9]"),
    ("HEXDIGIT", 21, "[0-9A-Fa-f]"),
    ("INT", 10, "[0-9]+"),
    ("SIGNED_INT", 24, "[+-]?[0-9]+"),
    ("DECIMAL", 44, r"[0-9]+\.[0-9]*|\.[0-9]+"),
    ("_EXP", 31, "[eE][+-]?[0-9]+"),
    ("FLOAT", 126, r"[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    (
        "SIGNED_FLOAT",
        140,
        r"[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
    ),
    ("NUMBER", 141, r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("SIGNED_NUMBER", 155, r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("ESCAPED_STRING", 20, r#""(?:[^"\\\n]|\\[^\n])*""#),
    ("_STRING_INNER", 3, r"[^\n]*?"),
    ("_STRING_ESC_INNER", 18, r"(?:[^\\\n]|\\[^\n])*?"),
    ("LCASE_LETTER", 5, "[a-z]"),
    ("UCASE_LETTER", 5, "[A-Z]"),
    ("LETTER", 15, "[A-Za-z]"),
    ("WORD", 20, "[A-Za-z]+"),
    ("CNAME", 53, "[A-Za-z_][A-Za-z_0-9]*"),
    ("WS_INLINE", 13, r"[ \t]+"),
    ("WS", 12, r"[ \t\f\r\n]+"),
    ("CR", 1, r"\r"),
    ("LF", 1, r"\n"),
    ("NEWLINE", 12, r"(?:\r?\n)+"),
    ("SH_COMMENT", 6, r"#[^\n]*"),
    ("CPP_COMMENT", 9, r"//[^\n]*"),
    ("SQL_COMMENT", 7, r"--[^\n]*"),
    ("C_COMMENT", 13, r"/\*(?:[^*]|\*+[^*/])*\*+/"),
];

/// Returns `true` for the name of a terminal of the library.
pub(in crate::notation) fn is_common_terminal(name: &str) -> bool {
    COMMON_TERMINALS.iter().any(|one| one.0 == name)
}

impl LarkReader {
    /// Reads what follows `%import`.
    pub(in crate::notation) fn import(&mut self, start: usize) -> Result<(), Error> {
        let module = self.path();
        self.skip_blanks();
        if self.scanner.eat("(") {
            if module != "common" {
                return Err(self.unknown_module(start, &module));
            }
            loop {
                self.skip_lines();
                let place = self.scanner.at;
                let name = self.name()?;
                self.add_import(place, &name, &name)?;
                self.skip_lines();
                if self.scanner.eat(")") {
                    return Ok(());
                }
                self.scanner.expect(",", "between imported names")?;
            }
        }
        let name = module.strip_prefix("common.").filter(|name| !name.is_empty());
        let Some(name) = name else {
            return Err(self.unknown_module(start, &module));
        };
        let mut alias = name.to_owned();
        if self.scanner.eat("->") {
            self.skip_blanks();
            alias = self.name()?;
        }
        self.add_import(start, name, &alias)
    }

    /// Reads a dotted name, perhaps with spaces around the dots.
    fn path(&mut self) -> String {
        let mut path = String::new();
        loop {
            let before = self.scanner.at;
            self.skip_blanks();
            let part = self.scanner.take_while(|one| is_name(one) || one == '.');
            let goes_on = path.is_empty() || path.ends_with('.') || part.starts_with('.');
            if part.is_empty() || !goes_on {
                self.scanner.at = before;
                return path;
            }
            path += &part;
        }
    }

    fn unknown_module(&self, start: usize, module: &str) -> Error {
        let message =
            format!("{module} cannot be imported: only terminals of common can be imported");
        let hint = format!("copy the definitions into this grammar, or {USE_LARK_HINT}");
        self.scanner.refuse(start, &message, Some(&hint))
    }

    fn add_import(&mut self, start: usize, name: &str, alias: &str) -> Result<(), Error> {
        let Some(&(name, length, pattern)) = COMMON_TERMINALS.iter().find(|one| one.0 == name)
        else {
            return Err(self.scanner.refuse(
                start,
                &format!("common has no terminal {name}"),
                None,
            ));
        };
        let span: SourceSpan = self.scanner.span(start);
        let mut atom = Atom::pattern(&self.scanner, pattern, start, PatternFlags::default(), "")?;
        if atom.len != length {
            // Lark's own pattern differs, so no pattern written here is identical to it.
            (atom.len, atom.escaped_len) = (length, length);
            atom.identity = format!("common.{name}");
        }
        self.source.terminals.push(TerminalSource {
            name: alias.to_owned(),
            priority: 0,
            body: SyntaxTree::Atom(atom),
            span,
            attributes: DefinitionAttributes::NONE,
            imported: Some(name),
        });
        Ok(())
    }
}
