//! Host names: labels of ASCII, and those of other characters as RFC 5890 to 5893 have them.
//!
//! Labels of other characters are read by a recognizer (`letters.rs`), encoded ones are decoded and
//! read by the same (`encoded.rs`).

mod encoded;
mod letters;
mod names;
mod places;
mod punycode;
mod tables;

use std::sync::Arc;

use formalm_automata::{Error, Expression, SetOnce};

use self::letters::{Beside, Letters};
use self::names::Names;
pub(super) use self::places::Places;
use self::tables::Tables;

/// Rules of labels: in names without labels from right to left, and in names with such.
fn letters() -> Result<&'static [Arc<Letters>; 2], Error> {
    static LETTERS: SetOnce<[Arc<Letters>; 2]> = SetOnce::new();
    if let Some(letters) = LETTERS.get() {
        return Ok(letters);
    }
    let tables = Tables::read();
    let of = |beside| Letters::new(&tables, beside).map(Arc::new);
    let letters = [of(Beside::Left)?, of(Beside::Right)?];
    Ok(LETTERS.get_or_init(|| letters))
}

/// The formats `hostname` and `idn-hostname`.
pub(super) fn names(is_wide: bool) -> Result<Expression, Error> {
    Ok(Expression::recognized(Arc::new(Names::new(letters()?, is_wide))))
}
