//! The parser loop that all dialects share: sequences, alternatives and parentheses.
//!
//! Open parentheses are kept on an explicit stack, so that no pattern overflows the thread's. The
//! nesting limit protects later recursive passes over the tree.

use std::sync::Arc;

use formalm_core::{CharSet, Error, Resource, SourceSpan, check_limit};
use rustc_hash::FxHashMap;

use super::alternation_merging::{MergedAlternatives, flatten, merge};
use super::ast::{CaptureGroup, Pattern, PatternNode};
use super::dialects::{
    ecma_escapes, ecma_groups, oniguruma, python_escapes, python_groups, rust_regex,
};
use super::item_lowering::ItemLowering;
use super::match_width::width;
use super::pattern_cursor::{PatternCursor, PatternToken};
use super::quantifiers::counts;
use super::unresolved_items::{AnchorKind, CharAtom, UnresolvedItem};
use super::{PatternDialect, PatternFlags};

/// Maximum number of open parentheses. Chosen, not measured.
pub const MAX_NESTING: usize = 250;

/// The maximum distance of Python's lookbehind (`MAXCODE` in CPython).
const MAX_LOOK_BEHIND: u64 = u32::MAX as u64;

/// Parses a pattern that must match a whole string.
///
/// Takes time linear in the length of the pattern, apart from the classes it names.
///
/// # Errors
///
/// [`Error::Language`] with the place, in characters of `pattern`, and a hint; [`Error::Limit`]
/// when parentheses are nested deeper than [`MAX_NESTING`] or a count is greater than
/// [`MAX_REPETITION`](super::MAX_REPETITION).
///
/// ```
/// use formalm_regex::{PatternDialect, PatternFlags, parse};
///
/// let source = "(?P<year>[0-9]{4})-Q[1-4]";
/// let pattern = parse(source, PatternDialect::Python, PatternFlags::default())?;
/// assert_eq!(pattern.groups[0].name.as_deref(), Some("year"));
/// # Ok::<(), formalm_core::Error>(())
/// ```
pub fn parse(
    pattern: &str,
    dialect: PatternDialect,
    flags: PatternFlags,
) -> Result<Pattern, Error> {
    if dialect == PatternDialect::Rust {
        return rust_regex::parse(pattern, flags);
    }
    if !dialect.is_python() && (flags.ascii || flags.verbose) {
        return Err(Error::language(
            "only the python dialect supports the ascii and verbose flags",
            Some(
                "character classes of this dialect are ASCII already; for verbose, use the python \
                 dialect",
            ),
        ));
    }
    let mut parser = PatternParser::new(pattern, dialect, flags);
    let result = parser.run();
    if parser.cursor.is_dangling() {
        // Python reads one unit ahead, so this hides errors directly before it.
        return Err(Error::at(
            "a trailing backslash escapes nothing",
            SourceSpan { start: parser.cursor.position(), end: parser.cursor.len() },
            Some("write \\\\ for a backslash"),
        ));
    }
    result.map(|root| Pattern { root, groups: parser.groups, dialect })
}

/// The kind of an open parenthesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupKind {
    /// The whole pattern.
    Root,
    /// `(?:…)`
    Plain,
    /// `(?i:…)`
    Scoped,
    /// A capturing group with this number.
    Capture(u32),
    /// `(?>…)`
    Atomic,
    /// Lookaround.
    Look { ahead: bool, negative: bool },
}

/// The contents of an open parenthesis so far.
pub(super) struct OpenGroup {
    kind: GroupKind,
    start: usize,
    pub(super) flags: PatternFlags,
    alternatives: Vec<Vec<UnresolvedItem>>,
    pub(super) items: Vec<UnresolvedItem>,
}

impl OpenGroup {
    fn new(kind: GroupKind, start: usize, flags: PatternFlags) -> OpenGroup {
        OpenGroup { kind, start, flags, alternatives: Vec::new(), items: Vec::new() }
    }

    /// Returns `true` if nothing has been read that stays in the pattern.
    fn is_untouched(&self) -> bool {
        self.alternatives.is_empty() && self.items.is_empty()
    }

    fn end_alternative(&mut self) {
        self.alternatives.push(flatten(std::mem::take(&mut self.items)));
    }
}

/// The state of one parse. The dialect is never [`PatternDialect::Rust`], which has its own parser.
pub(super) struct PatternParser {
    pub(super) cursor: PatternCursor,
    pub(super) dialect: PatternDialect,
    pub(super) lowering: ItemLowering,
    /// The innermost open sequence.
    pub(super) open: OpenGroup,
    outer: Vec<OpenGroup>,
    pub(super) groups: Vec<CaptureGroup>,
    pub(super) names: FxHashMap<String, u32>,
    /// The pattern itself contains `(?u)`.
    pub(super) says_unicode: bool,
    /// Character properties by name, each looked up once.
    pub(super) properties: FxHashMap<String, Arc<CharSet>>,
}

impl PatternParser {
    fn new(pattern: &str, dialect: PatternDialect, flags: PatternFlags) -> PatternParser {
        PatternParser {
            cursor: PatternCursor::new(pattern),
            dialect,
            lowering: ItemLowering::new(dialect),
            open: OpenGroup::new(GroupKind::Root, 0, flags),
            outer: Vec::new(),
            groups: Vec::new(),
            names: FxHashMap::default(),
            says_unicode: false,
            properties: FxHashMap::default(),
        }
    }

    fn run(&mut self) -> Result<PatternNode, Error> {
        loop {
            let start = self.cursor.position();
            let Some(symbol) = self.cursor.next() else { break };
            match symbol {
                PatternToken::Escape(letter) => {
                    let item = match self.dialect {
                        PatternDialect::Python | PatternDialect::Python314 => {
                            python_escapes::escape(self, letter, start)?
                        }
                        PatternDialect::Ecma => ecma_escapes::escape(self, letter, start)?,
                        PatternDialect::Oniguruma
                        | PatternDialect::Fancy
                        | PatternDialect::Rust => oniguruma::escape(self, letter, start)?,
                    };
                    self.open.items.push(item);
                }
                PatternToken::Char(character) => self.read(character, start)?,
            }
        }
        if self.open.kind != GroupKind::Root {
            return Err(self.cursor.refuse(
                self.open.start,
                "an opening parenthesis is not closed",
                "add the missing ), or escape the ( with a backslash",
            ));
        }
        let items = self.finish();
        Ok(self.lowering.node(items, self.open.flags))
    }

    fn read(&mut self, character: char, start: usize) -> Result<(), Error> {
        let item = match character {
            _ if self.open.flags.verbose && self.skip_verbose(character) => return Ok(()),
            '|' => {
                self.open.end_alternative();
                return Ok(());
            }
            '(' => return self.open_parenthesis(start),
            ')' => return self.close_parenthesis(start),
            '*' | '+' | '?' | '{' => match counts(&mut self.cursor, self.dialect, character)? {
                Some(counts) => return self.repeat(start, counts, character == '{'),
                None => UnresolvedItem::Atom(CharAtom::Literal(character.into())),
            },
            '[' => UnresolvedItem::Atom(match self.dialect {
                PatternDialect::Python | PatternDialect::Python314 => {
                    python_escapes::class(&mut self.cursor, start)?
                }
                _ => ecma_escapes::class(self, start)?,
            }),
            '.' => UnresolvedItem::Atom(CharAtom::Any),
            '$' if self.dialect == PatternDialect::Fancy => {
                UnresolvedItem::Look(oniguruma::text_end())
            }
            '^' | '$' if self.dialect.is_pre_tokenizer_dialect() => {
                return Err(oniguruma::unread(&self.cursor, start));
            }
            '^' => UnresolvedItem::Anchor(AnchorKind::Caret),
            '$' => UnresolvedItem::Anchor(AnchorKind::Dollar),
            _ => UnresolvedItem::Atom(CharAtom::Literal(character.into())),
        };
        self.open.items.push(item);
        Ok(())
    }

    /// Skips whitespace, or a comment that begins with `character`, in verbose mode.
    fn skip_verbose(&mut self, character: char) -> bool {
        if character == '#' {
            while !matches!(self.cursor.next(), None | Some(PatternToken::Char('\n'))) {}
        }
        matches!(character, '#' | ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
    }

    fn open_parenthesis(&mut self, start: usize) -> Result<(), Error> {
        let opened = match self.dialect {
            PatternDialect::Python | PatternDialect::Python314 => python_groups::open(self, start)?,
            PatternDialect::Ecma => ecma_groups::open(self, start)?,
            PatternDialect::Oniguruma | PatternDialect::Fancy | PatternDialect::Rust => {
                oniguruma::open(self, start)?
            }
        };
        let Some((kind, flags)) = opened else { return Ok(()) };
        check_limit(Resource::Nesting, self.outer.len() as u64 + 1, MAX_NESTING as u64)?;
        let frame = OpenGroup::new(kind, start, flags);
        self.outer.push(std::mem::replace(&mut self.open, frame));
        Ok(())
    }

    fn close_parenthesis(&mut self, start: usize) -> Result<(), Error> {
        let items = self.finish();
        let Some(outer) = self.outer.pop() else {
            let error = self.cursor.refuse(
                start,
                "a closing parenthesis has no opening one",
                "remove it, or escape it with a backslash",
            );
            // The parenthesis counts as unread, so that what follows is not examined.
            self.cursor.seek(start);
            return Err(error);
        };
        let inner = std::mem::replace(&mut self.open, outer);
        let item = match inner.kind {
            GroupKind::Plain => UnresolvedItem::Plain(items),
            _ => self.complete(&inner, items)?,
        };
        self.open.items.push(item);
        Ok(())
    }

    /// Returns the item of a group that is more than its content.
    fn complete(
        &mut self,
        inner: &OpenGroup,
        items: Vec<UnresolvedItem>,
    ) -> Result<UnresolvedItem, Error> {
        let node = self.lowering.node(items, inner.flags);
        Ok(match inner.kind {
            GroupKind::Root | GroupKind::Plain | GroupKind::Scoped => {
                UnresolvedItem::Complete(node)
            }
            GroupKind::Atomic => UnresolvedItem::Complete(PatternNode::Atomic(Box::new(node))),
            GroupKind::Capture(index) => {
                self.groups[index as usize - 1].span = self.cursor.span(inner.start);
                UnresolvedItem::Complete(PatternNode::Group { index, node: Box::new(node) })
            }
            GroupKind::Look { ahead, negative } => {
                if !ahead && self.dialect != PatternDialect::Ecma {
                    self.check_fixed_width(inner.start, &node)?;
                }
                UnresolvedItem::Look(PatternNode::Look { ahead, negative, node: Box::new(node) })
            }
        })
    }

    fn check_fixed_width(&self, start: usize, node: &PatternNode) -> Result<(), Error> {
        let (least, most) = width(node);
        if least > MAX_LOOK_BEHIND {
            let hint = "look back over fewer characters";
            return Err(self.cursor.refuse(start, "the lookbehind is too long", hint));
        }
        if least != most {
            return Err(self.cursor.refuse(
                start,
                "lookbehind requires a fixed-width pattern",
                "Python's re has this rule; the ecma dialect allows any width",
            ));
        }
        Ok(())
    }

    /// Ends the open sequence and merges its alternatives into one sequence.
    fn finish(&mut self) -> Vec<UnresolvedItem> {
        self.open.end_alternative();
        let mut alternatives = std::mem::take(&mut self.open.alternatives);
        if alternatives.len() == 1 {
            return alternatives.pop().unwrap_or_default();
        }
        let MergedAlternatives { front: mut items, rest } = match self.dialect {
            PatternDialect::Python | PatternDialect::Python314 => merge(alternatives),
            PatternDialect::Ecma
            | PatternDialect::Oniguruma
            | PatternDialect::Fancy
            | PatternDialect::Rust => {
                MergedAlternatives { front: Vec::new(), rest: Some(alternatives) }
            }
        };
        if let Some(rest) = rest {
            let flags = self.open.flags;
            let nodes = rest.into_iter().map(|items| self.lowering.node(items, flags));
            items.push(UnresolvedItem::Complete(PatternNode::Alternation(nodes.collect())));
        }
        items
    }

    /// Begins a capturing group at `start`, whose name was read up to here.
    pub(super) fn capture(
        &mut self,
        start: usize,
        name: Option<String>,
    ) -> Result<GroupKind, Error> {
        let index = self.groups.len() as u32 + 1;
        if let Some(name) = &name
            && self.names.insert(name.clone(), index).is_some()
        {
            let message = format!("the group name '{name}' is used twice");
            return Err(self.cursor.refuse(start, message, "give each group a unique name"));
        }
        // The end is set when the group is closed.
        self.groups.push(CaptureGroup { name, span: SourceSpan { start, end: start } });
        Ok(GroupKind::Capture(index))
    }

    /// Returns `true` if inline flags for the whole pattern are allowed here.
    pub(super) fn is_at_start(&self) -> bool {
        self.outer.is_empty() && self.open.is_untouched()
    }
}
