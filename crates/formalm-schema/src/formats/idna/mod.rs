//! Host names: labels of ASCII, and those of other characters as RFC 5890 to 5893 have them.
//!
//! Labels of other characters are read by a recognizer (`letters.rs`), encoded ones are decoded and
//! read by the same (`encoded.rs`). Encoded labels in the hosts of URLs follow UTS #46 (`uts46.rs`).

mod a_labels;
mod host_names;
mod punycode;
mod state_interner;
mod u_labels;
mod unicode_tables;
mod uts46;

use std::sync::Arc;

use formalm_automata::{Error, Expression, SetOnce};

use self::host_names::{ACE_PREFIX, HostNames};
pub(super) use self::state_interner::StateInterner;
use self::u_labels::{ContextRules, Standard, ULabels};
use self::unicode_tables::UnicodeTables;
pub(super) use self::uts46::{Domain, Domains};

/// Rules of labels: in names without labels from right to left, and in names with such.
fn letters(standard: Standard) -> Result<&'static [Arc<ULabels>; 2], Error> {
    static LETTERS: [SetOnce<[Arc<ULabels>; 2]>; 2] = [const { SetOnce::new() }; 2];
    let kept = &LETTERS[standard as usize];
    if let Some(letters) = kept.get() {
        return Ok(letters);
    }
    let tables = UnicodeTables::read();
    let of = |beside| ULabels::new(&tables, standard, beside).map(Arc::new);
    let letters = [of(ContextRules::Left)?, of(ContextRules::Right)?];
    Ok(kept.get_or_init(|| letters))
}

/// The formats `hostname` and `idn-hostname`.
pub(super) fn names(is_wide: bool) -> Result<Expression, Error> {
    let letters = letters(Standard::Idna2008)?;
    Ok(Expression::custom(Arc::new(HostNames::new(letters, is_wide))))
}
