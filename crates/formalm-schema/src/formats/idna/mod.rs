//! Host names: labels of ASCII, and those of other characters as RFC 5890 to 5893 have them.
//!
//! Labels of other characters are read by a recognizer (`letters.rs`), encoded ones are decoded and
//! read by the same (`encoded.rs`). Encoded labels in the hosts of URLs follow UTS #46 (`uts46.rs`).

mod encoded;
mod letters;
mod names;
mod places;
mod punycode;
mod tables;
mod uts46;

use std::sync::Arc;

use formalm_automata::{Error, Expression, SetOnce};

use self::letters::{Beside, Letters, Standard};
use self::names::{MARK, Names};
pub(super) use self::places::Places;
use self::tables::Tables;
pub(super) use self::uts46::{Domain, Domains};

/// Rules of labels: in names without labels from right to left, and in names with such.
fn letters(standard: Standard) -> Result<&'static [Arc<Letters>; 2], Error> {
    static LETTERS: [SetOnce<[Arc<Letters>; 2]>; 2] = [const { SetOnce::new() }; 2];
    let kept = &LETTERS[standard as usize];
    if let Some(letters) = kept.get() {
        return Ok(letters);
    }
    let tables = Tables::read();
    let of = |beside| Letters::new(&tables, standard, beside).map(Arc::new);
    let letters = [of(Beside::Left)?, of(Beside::Right)?];
    Ok(kept.get_or_init(|| letters))
}

/// The formats `hostname` and `idn-hostname`.
pub(super) fn names(is_wide: bool) -> Result<Expression, Error> {
    let letters = letters(Standard::Idna2008)?;
    Ok(Expression::custom(Arc::new(Names::new(letters, is_wide))))
}
