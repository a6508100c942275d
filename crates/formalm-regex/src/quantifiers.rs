//! Quantifiers: `*`, `+`, `?` and `{m,n}` with their suffixes.

use formalm_core::{Error, Resource};

use super::PatternDialect;
use super::ast::PatternNode;
use super::dialects::oniguruma;
use super::parser::PatternParser;
use super::pattern_cursor::PatternCursor;
use super::unresolved_items::UnresolvedItem;

/// Maximum count in `{m,n}`. Machines unroll counts, so a count is a size. Chosen, not measured.
pub const MAX_REPETITION: u64 = 100_000;

/// Minimum and maximum number of iterations.
pub(super) type RepeatCounts = (u32, Option<u32>);

/// Reads the counts of a quantifier that begins with `first` (already read). Returns `None` if a
/// brace begins no quantifier and means itself; the cursor is then after that brace.
pub(super) fn counts(
    cursor: &mut PatternCursor,
    dialect: PatternDialect,
    first: char,
) -> Result<Option<RepeatCounts>, Error> {
    match first {
        '*' => Ok(Some((0, None))),
        '+' => Ok(Some((1, None))),
        '?' => Ok(Some((0, Some(1)))),
        _ => braces(cursor, dialect),
    }
}

fn braces(
    cursor: &mut PatternCursor,
    dialect: PatternDialect,
) -> Result<Option<RepeatCounts>, Error> {
    let after = cursor.position();
    let (low_digits, low) = cursor.digits(10, usize::MAX);
    let comma = cursor.eat(',');
    let (high_digits, high) = if comma { cursor.digits(10, usize::MAX) } else { (low_digits, low) };
    // Python and Oniguruma read `{,n}` as a quantifier, Python alone `{,}`.
    let complete = low_digits > 0
        || match dialect {
            PatternDialect::Python | PatternDialect::Python314 => comma,
            PatternDialect::Ecma => false,
            PatternDialect::Oniguruma => high_digits > 0,
            PatternDialect::Fancy | PatternDialect::Rust => false,
        };
    if !complete || !cursor.eat('}') {
        if dialect == PatternDialect::Fancy {
            // It reads such braces by rules of its own.
            return Err(oniguruma::unread(cursor, after - 1));
        }
        cursor.seek(after);
        return Ok(None);
    }
    let min = if low_digits > 0 { limited(low)? } else { 0 };
    let max = if high_digits > 0 { Some(limited(high)?) } else { None };
    if max.is_some_and(|max| max < min) {
        return Err(cursor.refuse(
            after - 1,
            "the minimum repeat count is greater than the maximum",
            "write the smaller count first, as in {2,5}",
        ));
    }
    Ok(Some((min, max)))
}

fn limited(count: u64) -> Result<u32, Error> {
    match u32::try_from(count) {
        Ok(small) if count <= MAX_REPETITION => Ok(small),
        _ => Err(Error::Limit {
            resource: Resource::Repetition,
            needed: count,
            allowed: MAX_REPETITION,
        }),
    }
}

impl PatternParser {
    /// Repeats the last item of the open sequence. The quantifier began at `start` and has been
    /// read except for its suffix.
    pub(super) fn repeat(
        &mut self,
        start: usize,
        (min, max): RepeatCounts,
        braces: bool,
    ) -> Result<(), Error> {
        let node = match self.open.items.pop() {
            None | Some(UnresolvedItem::Anchor(_)) => return Err(self.nothing_to_repeat(start)),
            Some(UnresolvedItem::Look(_)) if self.dialect == PatternDialect::Ecma => {
                return Err(self.nothing_to_repeat(start));
            }
            Some(UnresolvedItem::Repeated(_)) => return Err(self.multiple_repeat(start)),
            Some(item) => self.lowering.node(vec![item], self.open.flags),
        };
        let lazy = self.cursor.eat('?');
        // In Oniguruma a plus after braces is a second quantifier, which is not read here.
        let may_be_possessive = match self.dialect {
            PatternDialect::Python | PatternDialect::Python314 | PatternDialect::Fancy => true,
            PatternDialect::Ecma | PatternDialect::Rust => false,
            PatternDialect::Oniguruma => !braces,
        };
        let possessive = !lazy && may_be_possessive && self.cursor.eat('+');
        let repeat = PatternNode::Repeat { node: Box::new(node), min, max, lazy };
        let repeat = if possessive { PatternNode::Atomic(Box::new(repeat)) } else { repeat };
        self.open.items.push(UnresolvedItem::Repeated(repeat));
        Ok(())
    }

    fn nothing_to_repeat(&self, start: usize) -> Error {
        let hint = "put something before the quantifier, or escape it with a backslash";
        self.cursor.refuse(start, "nothing to repeat", hint)
    }

    fn multiple_repeat(&self, start: usize) -> Error {
        let hint = match self.dialect {
            PatternDialect::Python
            | PatternDialect::Python314
            | PatternDialect::Oniguruma
            | PatternDialect::Fancy => "group the inner repetition, as in (?:a+)*",
            PatternDialect::Ecma | PatternDialect::Rust => {
                "group the inner repetition, as in (?:a+)*; only the python dialect supports \
                 possessive quantifiers"
            }
        };
        self.cursor.refuse(start, "multiple repeat", hint)
    }
}
