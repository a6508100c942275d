//! Resolution of one-character items (literals, `.`, classes) to sets of characters.

use formalm_core::{CharSet, SetOnce};

use super::unicode::case_folding::{close_over_case, python_ignoring_case};
use super::unicode::properties::property;
use super::unresolved_items::{CharAtom, ClassMember, PerlClass};
use super::{PatternDialect, PatternFlags};

/// Returns the characters that match `atom`.
pub(super) fn resolve(atom: &CharAtom, dialect: PatternDialect, flags: PatternFlags) -> CharSet {
    let (negated, members) = match atom {
        CharAtom::Any if flags.dot_all => return CharSet::all(),
        CharAtom::Any => return line_terminators(dialect).complement(),
        CharAtom::Literal(code) => (false, &[ClassMember::Literal(*code)][..]),
        CharAtom::NotLiteral(code) => (true, &[ClassMember::Literal(*code)][..]),
        CharAtom::Set { negated, members } => (*negated, members.as_slice()),
    };
    let class = match dialect {
        _ if !flags.ignore_case => listed(members, dialect, flags),
        PatternDialect::Ecma
        | PatternDialect::Oniguruma
        | PatternDialect::Fancy
        | PatternDialect::Rust => close_over_case(&listed(members, dialect, flags)),
        PatternDialect::Python | PatternDialect::Python314 => {
            let others = listed(&non_literals(members), dialect, flags);
            // A class of several members treats astral letters differently, see there.
            let alone = !matches!(atom, CharAtom::Set { .. });
            python_ignoring_case(members, others, alone, flags.ascii)
        }
    };
    let class = joined(class);
    if negated { class.complement() } else { class }
}

/// Merges two ranges that only the surrogates separate. Otherwise the complement would treat the
/// characters on both sides of the gap as its own.
fn joined(class: CharSet) -> CharSet {
    if !class.contains('\u{d7ff}') || !class.contains('\u{e000}') {
        return class;
    }
    let gap = |&(low, high): &(char, char)| low <= '\u{e000}' && high >= '\u{d7ff}';
    let beside = class.ranges().iter().filter(|range| gap(range));
    let start = beside.clone().map(|&(low, _)| low).min();
    let end = beside.map(|&(_, high)| high).max();
    let whole = start.zip(end);
    let apart = class.ranges().iter().copied().filter(|range| !gap(range));
    CharSet::from_ranges(apart.chain(whole))
}

fn non_literals(members: &[ClassMember]) -> Vec<ClassMember> {
    let is_class =
        |member: &&ClassMember| matches!(member, ClassMember::Perl(..) | ClassMember::Property(..));
    members.iter().filter(is_class).cloned().collect()
}

/// Returns the union of the members, before case folding.
fn listed(members: &[ClassMember], dialect: PatternDialect, flags: PatternFlags) -> CharSet {
    if let [ClassMember::Perl(perl, negated)] = members {
        return perl_class(*perl, *negated, dialect, flags);
    }
    let mut ranges = Vec::with_capacity(members.len());
    for member in members {
        match member {
            ClassMember::Literal(code) => ranges.extend(scalars(*code, *code)),
            ClassMember::Range(low, high) => ranges.extend(scalars(*low, *high)),
            ClassMember::Perl(perl, negated) => {
                ranges.extend_from_slice(perl_class(*perl, *negated, dialect, flags).ranges());
            }
            ClassMember::Property(class, false) => ranges.extend_from_slice(class.ranges()),
            ClassMember::Property(class, true) => {
                ranges.extend_from_slice(class.complement().ranges());
            }
        }
    }
    CharSet::from_ranges(ranges)
}

/// Returns the characters between two code points, without surrogates.
pub(super) fn scalars(low: u32, high: u32) -> impl Iterator<Item = (char, char)> {
    let parts = [(low, high.min(0xd7ff)), (low.max(0xe000), high)];
    parts.into_iter().filter_map(|(low, high)| {
        let (low, high) = (char::from_u32(low)?, char::from_u32(high)?);
        (low <= high).then_some((low, high))
    })
}

fn perl_class(
    perl: PerlClass,
    negated: bool,
    dialect: PatternDialect,
    flags: PatternFlags,
) -> CharSet {
    let class = match (perl, dialect) {
        (PerlClass::Word, _) => word(dialect, flags),
        (PerlClass::Digit, PatternDialect::Python | PatternDialect::Python314) if !flags.ascii => {
            unicode_digit().clone()
        }
        (
            PerlClass::Digit,
            PatternDialect::Oniguruma | PatternDialect::Fancy | PatternDialect::Rust,
        ) => unicode_digit().clone(),
        (PerlClass::Digit, _) => CharSet::from_ranges([('0', '9')]),
        (PerlClass::Space, PatternDialect::Python | PatternDialect::Python314) if flags.ascii => {
            CharSet::from_ranges([('\t', '\r'), (' ', ' ')])
        }
        (PerlClass::Space, PatternDialect::Python | PatternDialect::Python314) => {
            python_space().clone()
        }
        (PerlClass::Space, PatternDialect::Ecma) => ecma_space().clone(),
        (
            PerlClass::Space,
            PatternDialect::Oniguruma | PatternDialect::Fancy | PatternDialect::Rust,
        ) => known("White_Space"),
    };
    if negated { class.complement() } else { class }
}

/// Returns the characters of `\w`.
pub(super) fn word(dialect: PatternDialect, flags: PatternFlags) -> CharSet {
    let ascii = || CharSet::from_ranges([('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]);
    match dialect {
        PatternDialect::Python | PatternDialect::Python314 if !flags.ascii => python_word().clone(),
        // ECMA-262 adds what folds to a word character: the long s and the Kelvin sign.
        PatternDialect::Ecma if flags.ignore_case => close_over_case(&ascii()),
        _ => ascii(),
    }
}

/// Returns the characters that end a line.
pub(super) fn line_terminators(dialect: PatternDialect) -> CharSet {
    match dialect {
        PatternDialect::Python
        | PatternDialect::Python314
        | PatternDialect::Oniguruma
        | PatternDialect::Fancy
        | PatternDialect::Rust => CharSet::single('\n'),
        PatternDialect::Ecma => {
            CharSet::from_ranges([('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')])
        }
    }
}

fn unicode_digit() -> &'static CharSet {
    static CLASS: SetOnce<CharSet> = SetOnce::new();
    CLASS.get_or_init(|| known("Nd"))
}

/// Returns the characters of `str.isalnum()` and the underscore. Characters with a numeric value
/// that are neither letters nor numbers by category do not exist.
fn python_word() -> &'static CharSet {
    static CLASS: SetOnce<CharSet> = SetOnce::new();
    CLASS.get_or_init(|| known("L").union(&known("N")).union(&CharSet::single('_')))
}

/// Returns the characters of `str.isspace()`: whitespace and the separators U+001C to U+001F.
fn python_space() -> &'static CharSet {
    static CLASS: SetOnce<CharSet> = SetOnce::new();
    CLASS.get_or_init(|| known("White_Space").union(&CharSet::from_ranges([('\u{1c}', '\u{1f}')])))
}

/// Returns WhiteSpace and LineTerminator of ECMA-262, with U+FEFF and without U+0085.
fn ecma_space() -> &'static CharSet {
    static CLASS: SetOnce<CharSet> = SetOnce::new();
    CLASS.get_or_init(|| {
        known("Zs").union(&line_terminators(PatternDialect::Ecma)).union(&CharSet::from_ranges([
            ('\t', '\t'),
            ('\u{b}', '\u{c}'),
            ('\u{feff}', '\u{feff}'),
        ]))
    })
}

/// Returns a property that the tables contain.
fn known(name: &str) -> CharSet {
    property(name).unwrap_or_default()
}
