//! The terminals that Lark text imports from `common`, by the texts they stand for.
//!
//! Written here as the lexemes they are read as, not as the patterns of that library: a quoted
//! string ends at its first quote that is not escaped, a comment at the first end of one.

/// `(name, pattern)`.
const TERMINALS: [(&str, &str); 24] = [
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
pub(super) fn pattern(name: &str) -> Option<&'static str> {
    if name == "C_COMMENT" {
        return Some(C_COMMENT);
    }
    TERMINALS.iter().find(|(known, _)| *known == name).map(|&(_, pattern)| pattern)
}
