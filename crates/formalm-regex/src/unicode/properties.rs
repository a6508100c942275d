//! Unicode character properties, by the names of ECMA-262.

use formalm_core::{CharSet, SetOnce};
use regex_syntax::hir::{Class, HirKind};

use crate::unicode::script_and_compatibility_tables::{compatibility, is_script};

/// General categories by their short name, then their aliases. ECMA-262 is strict about spelling;
/// the tables of `regex-syntax` are not.
const CATEGORIES: &[&[&str]] = &[
    &["Cc", "Control", "cntrl"],
    &["Cf", "Format"],
    &["Cn", "Unassigned"],
    &["Co", "Private_Use"],
    &["Cs", "Surrogate"],
    &["C", "Other"],
    &["LC", "Cased_Letter"],
    &["L", "Letter"],
    &["Ll", "Lowercase_Letter"],
    &["Lm", "Modifier_Letter"],
    &["Lo", "Other_Letter"],
    &["Lt", "Titlecase_Letter"],
    &["Lu", "Uppercase_Letter"],
    &["M", "Mark", "Combining_Mark"],
    &["Mc", "Spacing_Mark"],
    &["Me", "Enclosing_Mark"],
    &["Mn", "Nonspacing_Mark"],
    &["N", "Number"],
    &["Nd", "Decimal_Number", "digit"],
    &["Nl", "Letter_Number"],
    &["No", "Other_Number"],
    &["P", "Punctuation", "punct"],
    &["Pc", "Connector_Punctuation"],
    &["Pd", "Dash_Punctuation"],
    &["Pe", "Close_Punctuation"],
    &["Pf", "Final_Punctuation"],
    &["Pi", "Initial_Punctuation"],
    &["Po", "Other_Punctuation"],
    &["Ps", "Open_Punctuation"],
    &["S", "Symbol"],
    &["Sc", "Currency_Symbol"],
    &["Sk", "Modifier_Symbol"],
    &["Sm", "Math_Symbol"],
    &["So", "Other_Symbol"],
    &["Z", "Separator"],
    &["Zl", "Line_Separator"],
    &["Zp", "Paragraph_Separator"],
    &["Zs", "Space_Separator"],
];

/// The property that the tables of `regex-syntax` lack.
const NFKC: &str = "Changes_When_NFKC_Casefolded";

/// Binary properties by their name in `regex-syntax`, then their aliases.
const BINARY: &[&[&str]] = &[
    &["Any"],
    &["Assigned"],
    &["ASCII"],
    &["ASCII_Hex_Digit", "AHex"],
    &["Alphabetic", "Alpha"],
    &["Bidi_Control", "Bidi_C"],
    &["Bidi_Mirrored", "Bidi_M"],
    &["Case_Ignorable", "CI"],
    &["Cased"],
    &["Changes_When_Casefolded", "CWCF"],
    &["Changes_When_Casemapped", "CWCM"],
    &["Changes_When_Lowercased", "CWL"],
    &[NFKC, "CWKCF"],
    &["Changes_When_Titlecased", "CWT"],
    &["Changes_When_Uppercased", "CWU"],
    &["Dash"],
    &["Default_Ignorable_Code_Point", "DI"],
    &["Deprecated", "Dep"],
    &["Diacritic", "Dia"],
    &["Emoji"],
    &["Emoji_Component", "EComp"],
    &["Emoji_Modifier", "EMod"],
    &["Emoji_Modifier_Base", "EBase"],
    &["Emoji_Presentation", "EPres"],
    &["Extended_Pictographic", "ExtPict"],
    &["Extender", "Ext"],
    &["Grapheme_Base", "Gr_Base"],
    &["Grapheme_Extend", "Gr_Ext"],
    &["Hex_Digit", "Hex"],
    &["IDS_Binary_Operator", "IDSB"],
    &["IDS_Trinary_Operator", "IDST"],
    &["ID_Continue", "IDC"],
    &["ID_Start", "IDS"],
    &["Ideographic", "Ideo"],
    &["Join_Control", "Join_C"],
    &["Logical_Order_Exception", "LOE"],
    &["Lowercase", "Lower"],
    &["Math"],
    &["Noncharacter_Code_Point", "NChar"],
    &["Pattern_Syntax", "Pat_Syn"],
    &["Pattern_White_Space", "Pat_WS"],
    &["Quotation_Mark", "QMark"],
    &["Radical"],
    &["Regional_Indicator", "RI"],
    &["Sentence_Terminal", "STerm"],
    &["Soft_Dotted", "SD"],
    &["Terminal_Punctuation", "Term"],
    &["Unified_Ideograph", "UIdeo"],
    &["Uppercase", "Upper"],
    &["Variation_Selector", "VS"],
    &["White_Space", "space"],
    &["XID_Continue", "XIDC"],
    &["XID_Start", "XIDS"],
];

/// Returns the characters of `\p{expression}` in ECMA-262, or `None` if the property does not exist
/// or is not in the tables.
pub fn ecma_property(expression: &str) -> Option<CharSet> {
    let Some((name, value)) = expression.split_once('=') else {
        return category(expression).or_else(|| match first_name(BINARY, expression)? {
            NFKC => Some(changes_when_nfkc_casefolded()),
            name => property(name),
        });
    };
    match name {
        "General_Category" | "gc" => category(value),
        "Script" | "sc" => script("sc", value),
        "Script_Extensions" | "scx" => script("scx", value),
        _ => None,
    }
}

fn category(name: &str) -> Option<CharSet> {
    match first_name(CATEGORIES, name)? {
        // No string contains a surrogate.
        "Cs" => Some(CharSet::empty()),
        short => property(&format!("gc={short}")),
    }
}

fn script(kind: &str, name: &str) -> Option<CharSet> {
    match name {
        // Characters without a script: unassigned and private-use ones; no string contains a
        // surrogate.
        "Unknown" | "Zzzz" => Some(property("gc=Cn")?.union(&property("gc=Co")?)),
        name if is_script(name) => property(&format!("{kind}={name}")),
        _ => None,
    }
}

/// Returns the characters that are not their own NFKC_Casefold.
fn changes_when_nfkc_casefolded() -> CharSet {
    let known = |name| property(name).unwrap_or_default();
    let mapped = CharSet::from_ranges(compatibility()).intersection(&known("Assigned"));
    known("CWCF").union(&known("DI")).union(&mapped)
}

/// Returns all names of general categories.
pub fn categories() -> impl Iterator<Item = &'static str> {
    CATEGORIES.iter().flat_map(|names| names.iter().copied())
}

/// Returns all names of binary properties.
pub fn binary() -> impl Iterator<Item = &'static str> {
    BINARY.iter().flat_map(|names| names.iter().copied())
}

fn first_name<'a>(names: &[&[&'a str]], name: &str) -> Option<&'a str> {
    names
        .iter()
        .find(|aliases| aliases.contains(&name))
        .and_then(|aliases| aliases.first())
        .copied()
}

/// Returns the characters of `\p{name}` in the notation of the `regex-syntax` crate, whose tables
/// are used.
pub fn property(name: &str) -> Option<CharSet> {
    let hir = regex_syntax::parse(&format!("\\p{{{name}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class.into()),
        HirKind::Class(Class::Bytes(class)) => class.to_unicode_class().map(CharSet::from),
        // A class of one character is returned as that character.
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            Some(CharSet::from_ranges(text.chars().map(|character| (character, character))))
        }
        _ => None,
    }
}

/// Returns `true` for names that satisfy Python's `str.isidentifier`.
pub fn is_identifier(name: &str) -> bool {
    let (start, then) = identifier_classes();
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first == '_' || start.contains(first))
        && characters.all(|character| then.contains(character))
}

/// Returns `true` for names that are ECMA-262's IdentifierName without escapes. `ID_Start` and
/// `XID_Start` differ in a few compatibility forms that nobody uses in group names.
pub fn is_ecma_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| identifier_start().contains(first))
        && characters.all(|character| identifier_part().contains(character))
}

/// Returns the characters that may begin an IdentifierName.
pub fn identifier_start() -> &'static CharSet {
    static CLASS: SetOnce<CharSet> = SetOnce::new();
    let more = [('$', '$'), ('_', '_')];
    CLASS.get_or_init(|| identifier_classes().0.union(&CharSet::from_ranges(more)))
}

/// Returns the characters that may continue an IdentifierName.
pub fn identifier_part() -> &'static CharSet {
    static CLASS: SetOnce<CharSet> = SetOnce::new();
    let more = [('$', '$'), ('\u{200c}', '\u{200d}')];
    CLASS.get_or_init(|| identifier_classes().1.union(&CharSet::from_ranges(more)))
}

fn identifier_classes() -> &'static (CharSet, CharSet) {
    static CLASSES: SetOnce<(CharSet, CharSet)> = SetOnce::new();
    CLASSES.get_or_init(|| {
        let class = |name| property(name).unwrap_or_default();
        (class("XID_Start"), class("XID_Continue"))
    })
}
