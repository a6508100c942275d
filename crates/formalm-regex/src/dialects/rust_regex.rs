//! The dialect of the `regex` crate, parsed by its own parser.
//!
//! `regex-syntax` reads the source, so that crate decides which patterns are valid and what they
//! mean. Its syntax tree becomes ours leaf by leaf: a class, literal or anchor is translated by its
//! translator under the flags in force. Rejected: translating whole patterns, which would copy the
//! table of every `\w`, some 6 kB each; here equal leaves are translated once. Captures are read
//! off the syntax tree, since the translated form drops groups that cannot matter.

use formalm_core::{CharSet, Error, Resource, SourceSpan, check_limit};
use regex_syntax::ast;
use regex_syntax::ast::{
    AssertionKind, Ast, Flag, FlagsItemKind, GroupKind, RepetitionKind, RepetitionRange,
};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};
use rustc_hash::FxHashMap;

use crate::ast::{CaptureGroup, Pattern, PatternNode};
use crate::{MAX_NESTING, MAX_REPETITION, PatternDialect, PatternFlags};

/// Maximum work for the classes of a pattern, in characters and ranges visited. `\w` has 770 ranges
/// of 142,000 characters; folding its case takes about 2 ms and visits all of them.
const MAX_CLASS_WORK: u64 = 100_000_000;

/// The flags in force at a position of the pattern.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FlagsInForce {
    ignore_case: bool,
    multi_line: bool,
    dot_all: bool,
    lazy: bool,
    unicode: bool,
    crlf: bool,
    /// Verbose mode, which changes the meaning of a class's source.
    verbose: bool,
}

impl FlagsInForce {
    fn apply(&mut self, flags: &ast::Flags) {
        let mut value = true;
        for item in &flags.items {
            let flag = match item.kind {
                FlagsItemKind::Negation => {
                    value = false;
                    continue;
                }
                FlagsItemKind::Flag(flag) => flag,
            };
            *match flag {
                Flag::CaseInsensitive => &mut self.ignore_case,
                Flag::MultiLine => &mut self.multi_line,
                Flag::DotMatchesNewLine => &mut self.dot_all,
                Flag::SwapGreed => &mut self.lazy,
                Flag::Unicode => &mut self.unicode,
                Flag::CRLF => &mut self.crlf,
                Flag::IgnoreWhitespace => &mut self.verbose,
            } = value;
        }
    }
}

/// Parses a pattern of the `regex` crate that must match a whole string.
pub(crate) fn parse(source: &str, flags: PatternFlags) -> Result<Pattern, Error> {
    if flags.ascii {
        return Err(Error::language(
            "the rust dialect does not support the ascii flag",
            Some("write (?-u:…) around the ASCII-only part"),
        ));
    }
    let mut parser = ast::parse::ParserBuilder::new();
    parser.nest_limit(MAX_NESTING as u32).ignore_whitespace(flags.verbose);
    let mut reader = AstReader {
        source,
        places: CharOffsets::of(source),
        flags: FlagsInForce {
            ignore_case: flags.ignore_case,
            multi_line: flags.multi_line,
            dot_all: flags.dot_all,
            lazy: false,
            unicode: true,
            crlf: false,
            verbose: flags.verbose,
        },
        groups: Vec::new(),
        leaves: FxHashMap::default(),
        word: None,
        work: 0,
    };
    let tree = parser.build().parse(source).map_err(|error| reader.unparsed(&error))?;
    let root = reader.node(&tree)?;
    Ok(Pattern { root, groups: reader.groups, dialect: PatternDialect::Rust })
}

/// The number of characters before each byte of the source.
enum CharOffsets {
    Ascii,
    Wide(Vec<u32>),
}

impl CharOffsets {
    fn of(source: &str) -> CharOffsets {
        if source.is_ascii() {
            return CharOffsets::Ascii;
        }
        let mut before = 0u32;
        let mut places = Vec::with_capacity(source.len() + 1);
        for character in source.chars() {
            places.extend(std::iter::repeat_n(before, character.len_utf8()));
            before += 1;
        }
        places.push(before);
        CharOffsets::Wide(places)
    }

    fn span(&self, span: &ast::Span) -> SourceSpan {
        let at = |offset: usize| match self {
            CharOffsets::Ascii => offset,
            CharOffsets::Wide(places) => places[offset] as usize,
        };
        SourceSpan { start: at(span.start.offset), end: at(span.end.offset) }
    }
}

struct AstReader<'a> {
    source: &'a str,
    places: CharOffsets,
    flags: FlagsInForce,
    groups: Vec<CaptureGroup>,
    /// Leaves by their source and the flags in force.
    leaves: FxHashMap<(&'a str, FlagsInForce), PatternNode>,
    /// The word characters of Unicode.
    word: Option<CharSet>,
    /// Work spent on classes, see [`MAX_CLASS_WORK`].
    work: u64,
}

impl AstReader<'_> {
    fn node(&mut self, tree: &Ast) -> Result<PatternNode, Error> {
        Ok(match tree {
            Ast::Empty(_) => PatternNode::Empty,
            Ast::Flags(set) => {
                self.flags.apply(&set.flags);
                PatternNode::Empty
            }
            Ast::Assertion(assertion) => self.assertion(&assertion.kind),
            Ast::Literal(literal)
                if !self.flags.ignore_case && (self.flags.unicode || literal.c.is_ascii()) =>
            {
                PatternNode::Class(CharSet::single(literal.c))
            }
            Ast::Literal(_)
            | Ast::Dot(_)
            | Ast::ClassUnicode(_)
            | Ast::ClassPerl(_)
            | Ast::ClassBracketed(_) => self.leaf(tree)?,
            Ast::Repetition(repetition) => {
                let node = Box::new(self.node(&repetition.ast)?);
                let (min, max) = counts(&repetition.op.kind)?;
                let lazy = repetition.greedy == self.flags.lazy;
                PatternNode::Repeat { node, min, max, lazy }
            }
            Ast::Group(group) => self.group(group)?,
            Ast::Alternation(alternation) => {
                let parts = alternation.asts.iter().map(|one| self.node(one));
                PatternNode::Alternation(parts.collect::<Result<_, _>>()?)
            }
            Ast::Concat(concat) => {
                let mut nodes = Vec::with_capacity(concat.asts.len());
                for one in &concat.asts {
                    match self.node(one)? {
                        PatternNode::Empty => {}
                        node => nodes.push(node),
                    }
                }
                match nodes.len() {
                    0 => PatternNode::Empty,
                    1 => nodes.swap_remove(0),
                    _ => PatternNode::Concat(nodes),
                }
            }
        })
    }

    /// Lowers a group; flags set inside it end with it.
    fn group(&mut self, group: &ast::Group) -> Result<PatternNode, Error> {
        let before = self.flags;
        let name = match &group.kind {
            GroupKind::NonCapturing(flags) => {
                self.flags.apply(flags);
                let node = self.node(&group.ast);
                self.flags = before;
                return node;
            }
            GroupKind::CaptureIndex(_) => None,
            GroupKind::CaptureName { name, .. } => Some(name.name.clone()),
        };
        self.groups.push(CaptureGroup { name, span: self.places.span(&group.span) });
        let index = self.groups.len() as u32;
        let node = self.node(&group.ast);
        self.flags = before;
        Ok(PatternNode::Group { index, node: Box::new(node?) })
    }

    fn leaf(&mut self, tree: &Ast) -> Result<PatternNode, Error> {
        let span = tree.span();
        let key = (&self.source[span.start.offset..span.end.offset], self.flags);
        if let Some(node) = self.leaves.get(&key) {
            return Ok(node.clone());
        }
        let mut translator = TranslatorBuilder::new()
            .case_insensitive(self.flags.ignore_case)
            .dot_matches_new_line(self.flags.dot_all)
            .unicode(self.flags.unicode)
            .crlf(self.flags.crlf)
            .build();
        let hir =
            translator.translate(self.source, tree).map_err(|error| self.untranslated(&error))?;
        let class = characters(hir);
        let characters: u64 = class.ranges().iter().map(|&(a, b)| b as u64 - a as u64 + 1).sum();
        let ranges = class.ranges().len() as u64 * key.0.len() as u64;
        self.work += ranges + if self.flags.ignore_case { characters } else { 0 };
        check_limit(Resource::Steps, self.work, MAX_CLASS_WORK)?;
        let node = PatternNode::Class(class);
        self.leaves.insert(key, node.clone());
        Ok(node)
    }

    fn assertion(&mut self, kind: &AssertionKind) -> PatternNode {
        let line_end = || CharSet::single('\n');
        match kind {
            AssertionKind::StartText => PatternNode::TextStart,
            AssertionKind::EndText => PatternNode::TextEnd,
            AssertionKind::StartLine if !self.flags.multi_line => PatternNode::TextStart,
            AssertionKind::EndLine if !self.flags.multi_line => PatternNode::TextEnd,
            AssertionKind::StartLine if self.flags.crlf => {
                let inside = vec![behind(CharSet::single('\r'), false), ahead(line_end(), true)];
                let starts = [
                    PatternNode::TextStart,
                    behind(line_end(), false),
                    PatternNode::Concat(inside),
                ];
                PatternNode::Alternation(starts.into())
            }
            AssertionKind::EndLine if self.flags.crlf => {
                let inside = vec![ahead(line_end(), false), behind(CharSet::single('\r'), true)];
                let ends = [
                    PatternNode::TextEnd,
                    ahead(CharSet::single('\r'), false),
                    PatternNode::Concat(inside),
                ];
                PatternNode::Alternation(ends.into())
            }
            AssertionKind::StartLine => {
                PatternNode::Alternation(vec![PatternNode::TextStart, behind(line_end(), false)])
            }
            AssertionKind::EndLine => {
                PatternNode::Alternation(vec![PatternNode::TextEnd, ahead(line_end(), false)])
            }
            AssertionKind::WordBoundary | AssertionKind::NotWordBoundary => {
                PatternNode::WordBoundary {
                    negative: matches!(kind, AssertionKind::NotWordBoundary),
                    word: self.word(),
                    empty_fails: false,
                }
            }
            AssertionKind::WordBoundaryStart | AssertionKind::WordBoundaryStartAngle => {
                PatternNode::Concat(vec![behind(self.word(), true), ahead(self.word(), false)])
            }
            AssertionKind::WordBoundaryEnd | AssertionKind::WordBoundaryEndAngle => {
                PatternNode::Concat(vec![behind(self.word(), false), ahead(self.word(), true)])
            }
            AssertionKind::WordBoundaryStartHalf => behind(self.word(), true),
            AssertionKind::WordBoundaryEndHalf => ahead(self.word(), true),
        }
    }

    fn word(&mut self) -> CharSet {
        if !self.flags.unicode {
            return CharSet::from_ranges([('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]);
        }
        self.word.get_or_insert_with(unicode_word).clone()
    }

    fn unparsed(&self, error: &ast::Error) -> Error {
        use ast::ErrorKind::{
            ClassUnclosed, NestLimitExceeded, RepetitionMissing, UnsupportedBackreference,
            UnsupportedLookAround,
        };
        let hint = match error.kind() {
            NestLimitExceeded(_) => {
                return Error::Limit {
                    resource: Resource::Nesting,
                    needed: MAX_NESTING as u64 + 1,
                    allowed: MAX_NESTING as u64,
                };
            }
            UnsupportedBackreference => {
                "repeat the group's pattern, or list the possible strings as alternatives"
            }
            UnsupportedLookAround => {
                "the regex crate does not support lookaround; use the python or ecma dialect"
            }
            ClassUnclosed => "add the missing ], or escape the [ with a backslash",
            RepetitionMissing => {
                "put something before the quantifier, or escape it with a backslash"
            }
            _ => "the rust dialect follows the syntax of the regex crate",
        };
        let span = self.places.span(error.span());
        Error::at(error.kind().to_string(), span, Some(hint))
    }

    fn untranslated(&self, error: &regex_syntax::hir::Error) -> Error {
        use regex_syntax::hir::ErrorKind::{
            InvalidUtf8, UnicodeNotAllowed, UnicodePropertyNotFound, UnicodePropertyValueNotFound,
        };
        let hint = match error.kind() {
            InvalidUtf8 => "strings are UTF-8; without (?-u) the escape denotes the character",
            UnicodeNotAllowed => "remove (?-u)",
            UnicodePropertyNotFound | UnicodePropertyValueNotFound => {
                "name a general category, a script or a property, as in \\p{Greek}"
            }
            _ => "the rust dialect follows the syntax of the regex crate",
        };
        Error::at(error.kind().to_string(), self.places.span(error.span()), Some(hint))
    }
}

fn counts(kind: &RepetitionKind) -> Result<(u32, Option<u32>), Error> {
    let (min, max) = match kind {
        RepetitionKind::ZeroOrOne => (0, Some(1)),
        RepetitionKind::ZeroOrMore => (0, None),
        RepetitionKind::OneOrMore => (1, None),
        RepetitionKind::Range(RepetitionRange::Exactly(count)) => (*count, Some(*count)),
        RepetitionKind::Range(RepetitionRange::AtLeast(min)) => (*min, None),
        RepetitionKind::Range(RepetitionRange::Bounded(min, max)) => (*min, Some(*max)),
    };
    let needed = u64::from(max.unwrap_or(min));
    check_limit(Resource::Repetition, needed, MAX_REPETITION)?;
    Ok((min, max))
}

/// Returns the characters of a translated leaf.
fn characters(hir: Hir) -> CharSet {
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => class.into(),
        // Bytes here are ASCII: the translator refuses others.
        HirKind::Class(Class::Bytes(class)) => {
            class.to_unicode_class().map(CharSet::from).unwrap_or_default()
        }
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => CharSet::from_ranges(text.chars().map(|one| (one, one))),
            Err(_) => CharSet::empty(),
        },
        _ => CharSet::empty(),
    }
}

/// Returns `\w` of UTS #18, a superset of the word characters of other dialects
/// ([`word`](crate::class_resolution::word)).
fn unicode_word() -> CharSet {
    regex_syntax::parse(r"\w").map(characters).unwrap_or_default()
}

fn behind(class: CharSet, negative: bool) -> PatternNode {
    PatternNode::Look { ahead: false, negative, node: Box::new(PatternNode::Class(class)) }
}

fn ahead(class: CharSet, negative: bool) -> PatternNode {
    PatternNode::Look { ahead: true, negative, node: Box::new(PatternNode::Class(class)) }
}
