//! Quantifiers after a part: `*`, `+`, `?` and counts in braces.

use formalm_core::{Error, Resource};

use crate::limits::check;
use crate::notation::SyntaxTree;
use crate::notation::scanner::{NESTING, Scanner};

/// The minimum and maximum of a repetition; `None` is unbounded.
pub(super) type RepeatBounds = (u32, Option<u32>);

/// Reads `{2}`, `{2,}`, `{,3}` or `{2,3}`, with `blanks` between its parts.
pub(super) fn braces(
    scanner: &mut Scanner,
    blanks: impl Fn(&mut Scanner),
) -> Result<Option<RepeatBounds>, Error> {
    if !scanner.eat("{") {
        return Ok(None);
    }
    blanks(scanner);
    let min = if scanner.peek() == Some(',') { 0 } else { scanner.count()? };
    blanks(scanner);
    let max = if scanner.eat(",") {
        blanks(scanner);
        let digit = scanner.peek().is_some_and(|one| one.is_ascii_digit());
        if digit { Some(scanner.count()?) } else { None }
    } else {
        Some(min)
    };
    blanks(scanner);
    scanner.expect("}", "at the end of a repetition count")?;
    Ok(Some((min, max)))
}

/// Reads any number of quantifiers after a part.
///
/// `counted` reads notation-specific ones. It is called where none of `*`, `+` and `?` comes next,
/// with the scanner before the whitespace.
pub(super) fn repeated(
    scanner: &mut Scanner,
    mut atom: SyntaxTree,
    blanks: impl Fn(&mut Scanner),
    counted: impl Fn(&mut Scanner) -> Result<Option<RepeatBounds>, Error>,
) -> Result<SyntaxTree, Error> {
    let mut signs = 0;
    loop {
        let before = scanner.at;
        blanks(scanner);
        let sign = match scanner.peek() {
            Some('*') => Some((0, None)),
            Some('+') => Some((1, None)),
            Some('?') => Some((0, Some(1))),
            _ => None,
        };
        scanner.at += usize::from(sign.is_some());
        let counts = if sign.is_some() { sign } else { counted(scanner)? };
        let Some((min, max)) = counts else {
            scanner.at = before;
            return Ok(atom);
        };
        if max.is_some_and(|max| max < min) {
            return Err(scanner.refuse(
                before,
                "the minimum repeat count is greater than the maximum",
                None,
            ));
        }
        signs += 1;
        check(Resource::Nesting, signs, NESTING)?;
        atom = SyntaxTree::Repeat(Box::new(atom), min, max);
    }
}
