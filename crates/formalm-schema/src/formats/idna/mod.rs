//! Internationalized host names: RFC 5890 to 5893 (IDNA 2008), and UTS #46 in URLs.
//!
//! ```text
//!  host_names, label by label ─┬─► ASCII
//!                              ├─► u_labels   "bücher": which characters, in which context
//!                              └─► a_labels   "xn--bcher-kva" ──punycode──► u_labels
//!  uts46, hosts of URLs ─────────────────────► "xn--bcher-kva" ──punycode──► u_labels
//! ```
//!
//! A name with a right-to-left label has stricter rules for all its labels. So every label is read
//! under both sets of rules, index 0 for names without such a label and 1 for names with one.

mod a_labels;
mod host_name_bounds;
mod host_names;
mod punycode;
mod state_interner;
mod u_labels;
mod unicode_tables;
mod uts46;

use std::sync::Arc;

use formalm_automata::Expression;
use formalm_core::{Error, SetOnce};

use self::host_names::{ACE_PREFIX, HostNames};
pub(super) use self::state_interner::StateInterner;
use self::u_labels::{NameDirection, Standard, ULabels};
use self::unicode_tables::UnicodeTables;
pub(super) use self::uts46::{Domain, Domains};

/// Returns the rules of labels in names without and with a right-to-left label, built once per
/// process.
fn label_rules(standard: Standard) -> Result<&'static [Arc<ULabels>; 2], Error> {
    static LABEL_RULES: [SetOnce<[Arc<ULabels>; 2]>; 2] = [const { SetOnce::new() }; 2];
    let cached = &LABEL_RULES[standard as usize];
    if let Some(label_rules) = cached.get() {
        return Ok(label_rules);
    }
    let tables = UnicodeTables::read();
    let of = |direction| ULabels::new(&tables, standard, direction).map(Arc::new);
    let label_rules = [of(NameDirection::LeftToRight)?, of(NameDirection::RightToLeft)?];
    Ok(cached.get_or_init(|| label_rules))
}

/// Returns the strings of `hostname`, or of `idn-hostname`.
pub(super) fn host_name_format(is_internationalized: bool) -> Result<Expression, Error> {
    let label_rules = label_rules(Standard::Idna2008)?;
    Ok(Expression::custom(Arc::new(HostNames::new(label_rules, is_internationalized))))
}
