//! Fingerprints of formulas over strings, numbers and Booleans that are valid across schemas.
//!
//! Schemas number their formulas, patterns and enumerations differently. A fingerprint is a keyed
//! hash of what a formula says: of two formulas with equal fingerprints the same scalars, spelled in
//! the same ways, satisfy both.

use formalm_core::{CompactMap, keyed_hash};

use crate::formula::{Formula, FormulaAtom, FormulaId};
use crate::schema_nodes::ResolvedSchema;
use crate::solver::formula_base::FormulaBase;

/// Returns a fingerprint of a formula; `None` if it says anything about containers or children.
pub(crate) fn scalar_fingerprint(base: &FormulaBase, id: FormulaId) -> Option<u128> {
    ScalarFingerprints { base, known: CompactMap::default() }.of(id)
}

struct ScalarFingerprints<'a> {
    base: &'a FormulaBase,
    /// The fingerprints found so far.
    known: CompactMap<FormulaId, Option<u128>>,
}

impl ScalarFingerprints<'_> {
    fn of(&mut self, id: FormulaId) -> Option<u128> {
        if let Some(&known) = self.known.get(&id) {
            return known;
        }
        let base = self.base;
        let mut all = |mark: &str, list: &[FormulaId]| {
            let parts = list.iter().map(|&one| self.of(one));
            let mut parts = parts.collect::<Option<Vec<u128>>>()?;
            parts.sort_unstable();
            Some(keyed_hash(&(mark, parts)))
        };
        let fingerprint = match base.formulas.get(id) {
            Formula::False => Some(0),
            Formula::True => Some(1),
            Formula::Atom(atom) => atom_fingerprint(&base.schema, atom),
            Formula::Not(inner) => all("not", &[*inner]),
            Formula::And(list) => all("and", list),
            Formula::Or(list) => all("or", list),
            Formula::ExactlyOne(list) => all("one", list),
            Formula::Child(_) => None,
        };
        self.known.insert(id, fingerprint);
        fingerprint
    }
}

fn atom_fingerprint(schema: &ResolvedSchema, atom: &FormulaAtom) -> Option<u128> {
    Some(match atom {
        FormulaAtom::InLanguage(regex) => match schema.enum_strings.get(regex) {
            Some(strings) => keyed_hash(&("strings", &strings[..])),
            None => {
                let text = schema.regex_descriptions[regex.0 as usize].as_deref()?;
                keyed_hash(&("language", text))
            }
        },
        FormulaAtom::AtLeast(bound) => keyed_hash(&("at least", bound)),
        FormulaAtom::GreaterThan(bound) => keyed_hash(&("greater than", bound)),
        FormulaAtom::EqualTo(value) => keyed_hash(&("equal to", value)),
        FormulaAtom::MultipleOf(unit) => keyed_hash(&("multiple of", unit)),
        FormulaAtom::IntegerSpelling => keyed_hash("integer"),
        FormulaAtom::IsTrue => keyed_hash("true"),
        FormulaAtom::Properties(_)
        | FormulaAtom::Required(_)
        | FormulaAtom::MinProperties(_)
        | FormulaAtom::PropertyNames(_)
        | FormulaAtom::Items(..)
        | FormulaAtom::Contains(..)
        | FormulaAtom::MinItems(_)
        | FormulaAtom::UniqueItems(_)
        | FormulaAtom::UniqueWithCurrent(_) => return None,
    })
}
