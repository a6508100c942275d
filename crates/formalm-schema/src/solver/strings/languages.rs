//! The regular languages of strings that a schema mentions: their automata, and the properties of
//! names that they select.
//!
//! ```text
//! formula over strings ── to_expression ──► Expression ──► Automaton      one for each formula
//!                              │
//!                              └─ fingerprint: automata without enumerations are shared by all
//!                                 schemas of a process
//! ```

use std::sync::Arc;

use formalm_automata::{Automaton, AutomatonLimits as TextLimits, Expression};
use formalm_core::{CompactMap, Error, LazyDfa, StateId, process_fork::PerProcess};
use formalm_regex::{Pattern, PatternDialect};
use rustc_hash::FxHashMap;

use crate::formula::{Formula, FormulaAtom, FormulaId, TRUE};
use crate::json::property_names::NameId;
use crate::schema_nodes::RegexId;
use crate::schema_reader::pattern_search;
use crate::shared_automata;
use crate::shared_automata::LanguageDescription;
use crate::solver::LIST_BYTES;
use crate::solver::formula_base::FormulaBase;
use crate::solver::objects::property_rule_index::PropertyRuleIndex;

/// Maximum number of alternatives for which "exactly one" of languages is written as each without
/// all others. Chosen, not measured.
const PAIRWISE_MAX: usize = 4;

/// A regular language of strings, with its automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LanguageId(pub(crate) u32);

/// Languages whose automata have too many states to keep them all.
#[derive(Debug, Default)]
struct UnboundedLanguages {
    languages: Vec<LanguageId>,
    /// A lookahead is running, so copies of the automata are in use.
    in_lookahead: bool,
    /// The automata themselves, while copies are in use.
    originals: Vec<(LanguageId, Arc<Automaton>)>,
    /// Copies to which no state was added, for the next lookahead.
    spare_copies: Vec<(LanguageId, Arc<Automaton>)>,
}

/// All languages with their automata, and the facts decided about them.
#[derive(Debug, Default)]
pub(crate) struct Languages {
    automata: Vec<Arc<Automaton>>,
    language_formulas: Vec<FormulaId>,
    language_ids: CompactMap<FormulaId, Option<LanguageId>>,
    unbounded: UnboundedLanguages,
    /// States from which no string is rejected.
    pub(super) always_viable: CompactMap<(LanguageId, StateId), bool>,
    /// Whether all strings are members from a state on that most characters return to.
    pub(super) everything: CompactMap<(LanguageId, StateId), bool>,
    /// The number of states of a language from which too many are reachable to tell.
    pub(super) overflows: CompactMap<LanguageId, u32>,
    /// Languages that are known to have many strings, or not.
    pub(super) has_many: CompactMap<LanguageId, bool>,
    /// Classes of strings that some tests distinguish.
    pub(super) classes: CompactMap<Vec<FormulaId>, Vec<LanguageId>>,
    /// Lists of tests that make too many classes.
    pub(super) many_classes: CompactMap<Vec<FormulaId>, ()>,
    /// Patterns that match a name, or not.
    pub(super) name_matches: CompactMap<(RegexId, NameId), bool>,
    pub(super) rule_index: PropertyRuleIndex,
    /// Names of a class that differ from some others.
    pub(in crate::solver) fresh_names: FxHashMap<(LanguageId, Vec<NameId>), Option<NameId>>,
}

impl Languages {
    /// Returns all automata, including originals and copies of unbounded ones.
    pub(crate) fn automata(&self) -> impl Iterator<Item = &Arc<Automaton>> {
        let UnboundedLanguages { originals: aside, spare_copies: spare, .. } = &self.unbounded;
        self.automata.iter().chain(aside.iter().chain(spare).map(|(_, machine)| machine))
    }

    pub(crate) fn automaton(&self, id: LanguageId) -> &Arc<Automaton> {
        &self.automata[id.0 as usize]
    }

    /// Returns the formula of a language.
    pub(crate) fn language_formula(&self, id: LanguageId) -> FormulaId {
        self.language_formulas[id.0 as usize]
    }

    /// Returns the language of a formula over strings; `None` if it is empty. Fails if the
    /// automaton cannot be built.
    pub(crate) fn language(
        &mut self,
        base: &FormulaBase,
        id: FormulaId,
    ) -> Result<Option<LanguageId>, Error> {
        if let Some(&known) = self.language_ids.get(&id) {
            return Ok(known);
        }
        base.check_formula_limits()?;
        let make = || {
            let expression = base.to_expression(id, &mut CompactMap::default())?;
            Automaton::of(&expression, TextLimits::default())
        };
        let machine = match (id, base.language_fingerprint(id, &mut CompactMap::default())) {
            (TRUE, _) => Some(any_string_automaton()?),
            (_, Some(description)) => shared_automata::shared_automaton(description, make)?.0,
            (_, None) => make()?.map(Arc::new),
        };
        let text = machine.map(|machine| self.add_language(machine, id));
        self.language_ids.insert(id, text);
        Ok(text)
    }

    /// Returns the language of a regex, if its automaton was built and it is not empty.
    pub(crate) fn existing_language(
        &self,
        base: &FormulaBase,
        regex: RegexId,
    ) -> Option<LanguageId> {
        let atom = base.formulas.find_atom(&FormulaAtom::InLanguage(regex))?;
        self.language_ids.get(&atom).copied().flatten()
    }

    /// Adds an automaton with its formula.
    fn add_language(&mut self, machine: Arc<Automaton>, id: FormulaId) -> LanguageId {
        let text = LanguageId(self.automata.len() as u32);
        let is_unbounded = machine.has_many_states();
        self.automata.push(machine);
        self.language_formulas.push(id);
        if is_unbounded {
            self.unbounded.languages.push(text);
            if self.unbounded.in_lookahead {
                self.swap_in_copy(text);
            }
        }
        text
    }

    /// Returns `true` if the automaton has too many states to keep them all. States that a
    /// lookahead adds are dropped and become invalid.
    pub(crate) fn is_unbounded(&self, text: LanguageId) -> bool {
        self.unbounded.languages.contains(&text)
    }

    /// Starts a lookahead: until [`Languages::end_lookahead`], copies of the unbounded automata
    /// are in use.
    pub(crate) fn begin_lookahead(&mut self) {
        self.unbounded.in_lookahead = true;
        for at in 0..self.unbounded.languages.len() {
            self.swap_in_copy(self.unbounded.languages[at]);
        }
    }

    /// Replaces an automaton by a copy for the lookahead.
    fn swap_in_copy(&mut self, text: LanguageId) {
        let machine = &mut self.automata[text.0 as usize];
        let spare = self.unbounded.spare_copies.iter().position(|one| one.0 == text);
        let spare = spare.map(|at| self.unbounded.spare_copies.swap_remove(at).1);
        // With the same number of states, the copy is up to date.
        let copy = match spare.filter(|copy| copy.state_count() == machine.state_count()) {
            Some(copy) => Some(copy),
            None => machine.independent_copy().map(Arc::new),
        };
        if let Some(copy) = copy {
            let kept = std::mem::replace(machine, copy);
            self.unbounded.originals.push((text, kept));
        }
    }

    /// Ends the lookahead and drops the copies. Returns whether there were any.
    pub(crate) fn end_lookahead(&mut self) -> bool {
        self.unbounded.in_lookahead = false;
        let any = !self.unbounded.originals.is_empty();
        for (text, kept) in self.unbounded.originals.drain(..) {
            let count = kept.state_count();
            let copy = std::mem::replace(&mut self.automata[text.0 as usize], kept);
            if copy.state_count() == count {
                self.unbounded.spare_copies.push((text, copy));
            }
        }
        any
    }

    /// Returns the approximate memory in use, in bytes. Lists count with a typical size.
    pub(crate) fn memory_bytes(&self) -> usize {
        // The memory of shared automata is divided among their owners.
        let own = |text: &Arc<Automaton>| text.memory_bytes() / Arc::strong_count(text);
        let texts: usize = self.automata.iter().map(own).sum();
        texts
            + self.automata.capacity() * size_of::<Arc<Automaton>>()
            + self.language_formulas.capacity() * size_of::<FormulaId>()
            + self.language_ids.table_bytes()
            + self.name_matches.table_bytes()
            + self.always_viable.table_bytes()
            + self.everything.table_bytes()
            + self.overflows.table_bytes()
            + self.classes.table_bytes()
            + self.classes.len() * 2 * LIST_BYTES
            + self.many_classes.table_bytes()
            + self.many_classes.len() * LIST_BYTES
            + self.fresh_names.capacity() * 48
            + self.fresh_names.len() * LIST_BYTES
            + self.has_many.table_bytes()
    }
}

impl FormulaBase {
    /// Returns the strings that satisfy a formula. Shared operands are converted once.
    fn to_expression(
        &self,
        id: FormulaId,
        known: &mut CompactMap<FormulaId, Expression>,
    ) -> Result<Expression, Error> {
        if let Some(known) = known.get(&id) {
            return Ok(known.clone());
        }
        let mut all = |list: &[FormulaId]| -> Result<Vec<Expression>, Error> {
            list.iter().map(|&one| self.to_expression(one, known)).collect()
        };
        let expression = match self.formulas.get(id) {
            Formula::True => any_string(),
            Formula::Atom(FormulaAtom::InLanguage(regex)) => {
                self.schema.regexes[regex.0 as usize].clone()
            }
            Formula::Not(inner) => self.to_expression(*inner, known)?.complement()?,
            Formula::And(list) => Expression::intersection(all(list)?)?,
            Formula::Or(list) => Expression::union(all(list)?)?,
            Formula::ExactlyOne(list) => exactly_one(&all(list)?)?,
            _ => Expression::literals(Vec::new()),
        };
        known.insert(id, expression.clone());
        Ok(expression)
    }

    /// Returns a fingerprint of a formula over strings that is valid across schemas; `None` if it
    /// contains an enumeration.
    fn language_fingerprint(
        &self,
        id: FormulaId,
        known: &mut CompactMap<FormulaId, Option<LanguageDescription>>,
    ) -> Option<LanguageDescription> {
        if let Some(&known) = known.get(&id) {
            return known;
        }
        let mut all = |mark: &str, list: &[FormulaId]| {
            let parts = list.iter().map(|&one| self.language_fingerprint(one, known));
            let parts: Option<Vec<LanguageDescription>> = parts.collect();
            parts.map(|parts| LanguageDescription::from_parts(mark, parts))
        };
        let description = match self.formulas.get(id) {
            Formula::Atom(FormulaAtom::InLanguage(regex)) => {
                let key = self.schema.regex_descriptions[regex.0 as usize].as_deref();
                key.map(LanguageDescription::from_text)
            }
            Formula::Not(inner) => all("not", &[*inner]),
            Formula::And(list) => all("and", list),
            Formula::Or(list) => all("or", list),
            Formula::ExactlyOne(list) => all("one", list),
            _ => None,
        };
        known.insert(id, description);
        description
    }
}

/// Returns the automaton of all strings, which all schemas of a process share.
pub(crate) fn any_string_automaton() -> Result<Arc<Automaton>, Error> {
    static MACHINE: PerProcess<Arc<Automaton>> = PerProcess::new();
    if let Some(machine) = MACHINE.get() {
        return Ok(Arc::clone(machine));
    }
    let machine = Arc::new(Automaton::new(&any_string(), TextLimits::default())?);
    Ok(Arc::clone(MACHINE.get_or_init(|| machine)))
}

/// Returns the expression of all strings.
pub(crate) fn any_string() -> Expression {
    let root = pattern_search::any_string();
    Expression::pattern(Pattern { root, groups: Vec::new(), dialect: PatternDialect::Ecma })
}

/// Returns the strings in exactly one of some languages.
fn exactly_one(list: &[Expression]) -> Result<Expression, Error> {
    if list.len() > PAIRWISE_MAX {
        let (some, two) = at_least_one_and_two(list)?;
        return some.difference(two);
    }
    let mut alone = Vec::with_capacity(list.len());
    for at in 0..list.len() {
        let mut others = list.to_vec();
        let one = others.swap_remove(at);
        let others = Expression::union(others)?.complement()?;
        alone.push(Expression::intersection(vec![one, others])?);
    }
    Expression::union(alone)
}

/// Returns the strings in at least one, and in at least two, of some languages. Divides and
/// conquers: each without all others would take quadratic space.
fn at_least_one_and_two(list: &[Expression]) -> Result<(Expression, Expression), Error> {
    let [one] = list else {
        let (left, right) = list.split_at(list.len() / 2);
        let (left, right) = (at_least_one_and_two(left)?, at_least_one_and_two(right)?);
        let both = Expression::intersection(vec![left.0.clone(), right.0.clone()])?;
        let some = Expression::union(vec![left.0, right.0])?;
        return Ok((some, Expression::union(vec![left.1, right.1, both])?));
    };
    Ok((one.clone(), Expression::literals(Vec::new())))
}
