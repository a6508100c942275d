//! The solver's tables (formulas, string automata, memoized answers) and its step budget.
//!
//! Everything here only grows while a schema automaton is in use, except for states of unbounded
//! automata that a lookahead visits: these are rolled back.

use std::sync::Arc;

use formalm_automata::{Automaton, AutomatonLimits as TextLimits, Expression};
use formalm_core::{Error, LazyDfa, Resource, StateId, deadline::DeadlineTicks, fork::PerProcess};
use formalm_regex::{Pattern, PatternDialect};

use crate::formula::{FALSE, Formula, FormulaArena, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::interner::CompactMap;
use crate::json::property_names::NameId;
use crate::options::{JsonSchemaLimits, JsonSchemaOptions};
use crate::schema_nodes::{JsonType, KeywordRule, NodeId, RegexId, ResolvedSchema};
use crate::schema_reader::pattern_search;
use crate::shared_automata;
use crate::shared_automata::LanguageDescription;
use crate::solver::{AnswerCache, Enumeration, LIST_BYTES, PropertyRuleIndex};

/// Steps between two checks of the deadline; about 0.1 ms.
const DEADLINE_INTERVAL: u32 = 64;

/// Number of operands above which [`SolverContext::formula_for_type`] memoizes its results. Chosen,
/// not measured.
const MEMOIZED_PARTS: usize = 16;

/// Operands of formulas processed that count as one step. Chosen, not measured.
const FORMULA_PARTS_PER_STEP: u64 = 512;

/// Maximum depth of formulas. Walks are recursive: a level takes at most 0.5 KiB of stack, threads
/// have 2 MiB.
const MAX_FORMULA_DEPTH: u64 = 1_000;

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

/// The solver with its tables and limits.
#[derive(Debug)]
pub(crate) struct SolverContext {
    pub(crate) schema: ResolvedSchema,
    pub(crate) formulas: FormulaArena,
    pub(crate) options: JsonSchemaOptions,
    pub(crate) limits: JsonSchemaLimits,
    pub(crate) answers: AnswerCache,
    /// Memoized expansions of nodes. The last part of the key is `comparing_alternatives`.
    pub(crate) expanded: CompactMap<(NodeId, JsonType, bool), FormulaId>,
    /// Memoized expansions of formulas with many operands over the child.
    typed: CompactMap<(FormulaId, JsonType, bool), FormulaId>,
    /// Alternatives are being compared, so nodes are expanded without rewriting `oneOf` and `if`.
    pub(crate) comparing_alternatives: bool,
    /// Enumerated objects and arrays of formulas, with the number that was requested.
    pub(crate) enumerated: CompactMap<FormulaId, (usize, Enumeration)>,
    automata: Vec<Arc<Automaton>>,
    language_formulas: Vec<FormulaId>,
    language_ids: CompactMap<FormulaId, Option<LanguageId>>,
    unbounded: UnboundedLanguages,
    name_matches: CompactMap<(RegexId, NameId), bool>,
    pub(crate) rule_index: PropertyRuleIndex,
    /// States from which no string is rejected.
    pub(crate) always_viable: CompactMap<(LanguageId, StateId), bool>,
    /// Solver steps for the current state.
    pub(crate) steps: u64,
    /// Formula work that was already counted as steps.
    counted_work: u64,
    /// Current depth of nested expansions.
    pub(crate) expansion_depth: u64,
    ticks: DeadlineTicks,
}

impl SolverContext {
    pub(crate) fn new(
        schema: ResolvedSchema,
        options: JsonSchemaOptions,
        limits: JsonSchemaLimits,
    ) -> SolverContext {
        SolverContext {
            schema,
            formulas: FormulaArena::default(),
            options,
            limits,
            answers: AnswerCache::default(),
            expanded: CompactMap::default(),
            typed: CompactMap::default(),
            comparing_alternatives: false,
            enumerated: CompactMap::default(),
            automata: Vec::new(),
            language_formulas: Vec::new(),
            language_ids: CompactMap::default(),
            unbounded: UnboundedLanguages::default(),
            name_matches: CompactMap::default(),
            rule_index: PropertyRuleIndex::default(),
            always_viable: CompactMap::default(),
            steps: 0,
            counted_work: 0,
            expansion_depth: 0,
            ticks: DeadlineTicks::default(),
        }
    }

    /// Counts one step. Fails if a limit is exceeded or the deadline has passed.
    pub(crate) fn count_step(&mut self) -> Result<(), Error> {
        self.count_steps(1)
    }

    /// Counts `count` steps plus the formula work since the last call. Fails if a limit is exceeded
    /// or the deadline has passed.
    pub(crate) fn count_steps(&mut self, count: usize) -> Result<(), Error> {
        let worked = self.formulas.work_done() / FORMULA_PARTS_PER_STEP;
        self.steps += count as u64 + (worked - self.counted_work);
        self.counted_work = worked;
        self.ticks.tick(1, DEADLINE_INTERVAL)?;
        self.check_formula_limits()?;
        if self.steps > self.limits.steps {
            return Err(Error::Limit {
                resource: Resource::Steps,
                needed: self.steps,
                allowed: self.limits.steps,
            });
        }
        Ok(())
    }

    /// Fails if formulas exceed their memory or depth limit.
    pub(crate) fn check_formula_limits(&self) -> Result<(), Error> {
        let deepest = self.formulas.max_depth();
        let bytes = (self.formulas.memory_bytes() + self.schema.value_bytes) as u64;
        for (resource, needed, allowed) in [
            (Resource::Nesting, u64::from(deepest), MAX_FORMULA_DEPTH),
            (Resource::Bytes, bytes, self.limits.bytes),
        ] {
            if needed > allowed {
                return Err(Error::Limit { resource, needed, allowed });
            }
        }
        Ok(())
    }

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
    pub(crate) fn language(&mut self, id: FormulaId) -> Result<Option<LanguageId>, Error> {
        if let Some(&known) = self.language_ids.get(&id) {
            return Ok(known);
        }
        self.check_formula_limits()?;
        let make = || {
            let expression = self.to_expression(id, &mut CompactMap::default())?;
            Automaton::of(&expression, TextLimits::default())
        };
        let machine = match (id, self.language_fingerprint(id, &mut CompactMap::default())) {
            (TRUE, _) => Some(any_string_automaton()?),
            (_, Some(description)) => shared_automata::shared_automaton(description, make)?.0,
            (_, None) => make()?.map(Arc::new),
        };
        let text = machine.map(|machine| self.add_language(machine, id));
        self.language_ids.insert(id, text);
        Ok(text)
    }

    /// Returns the language of a regex, if its automaton was built and it is not empty.
    pub(crate) fn existing_language(&self, regex: RegexId) -> Option<LanguageId> {
        let atom = self.formulas.find_atom(&FormulaAtom::InLanguage(regex))?;
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

    /// Starts a lookahead: until [`SolverContext::end_lookahead`], copies of the unbounded automata
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

    /// Returns `true` if a string satisfies a formula over strings.
    pub(crate) fn contains_string(&mut self, id: FormulaId, text: &str) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        let Some(language) = self.language(id)? else { return Ok(false) };
        let machine = self.automaton(language);
        let read = machine.walk(machine.start(), text.as_bytes())?;
        Ok(read.is_ok_and(|state| machine.is_accepting(state)))
    }

    /// Returns `true` if a name satisfies a formula over strings.
    pub(crate) fn contains_name(&mut self, id: FormulaId, name: NameId) -> Result<bool, Error> {
        if let Some(tests) = self.schema.names.tests_of_class(name) {
            return Ok(tests.contains(&id));
        }
        let text = self.schema.names.get(name).to_owned();
        self.contains_string(id, &text)
    }

    /// Returns `true` if a pattern matches a name.
    pub(crate) fn pattern_matches_name(
        &mut self,
        regex: RegexId,
        name: NameId,
    ) -> Result<bool, Error> {
        if let Some(tests) = self.schema.names.tests_of_class(name) {
            let atom = self.formulas.find_atom(&FormulaAtom::InLanguage(regex));
            return Ok(atom.is_some_and(|atom| tests.contains(&atom)));
        }
        if let Some(&known) = self.name_matches.get(&(regex, name)) {
            return Ok(known);
        }
        let formula = self.formulas.atom(FormulaAtom::InLanguage(regex));
        let text = self.schema.names.get(name).to_owned();
        let found = self.contains_string(formula, &text)?;
        self.name_matches.insert((regex, name), found);
        Ok(found)
    }

    /// Returns `true` if a selector includes a name.
    pub(crate) fn selects_name(
        &mut self,
        which: &NameSelector,
        name: NameId,
    ) -> Result<bool, Error> {
        let listed = match &which.names {
            Some(names) => names.binary_search(&name).is_ok(),
            None => which.excluded_names.binary_search(&name).is_err(),
        };
        if !listed {
            return Ok(false);
        }
        for &regex in &which.matched_patterns {
            if !self.pattern_matches_name(regex, name)? {
                return Ok(false);
            }
        }
        for &regex in &which.unmatched_patterns {
            if self.pattern_matches_name(regex, name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the formula that the child being read satisfies a node.
    pub(crate) fn child(&mut self, node: NodeId) -> FormulaId {
        match &self.schema.node(node).rules[..] {
            [] => return TRUE,
            [KeywordRule::Never] => return FALSE,
            _ => {}
        }
        self.formulas.child(self.schema.representative(node))
    }

    /// Returns a formula over the child as a formula over the atoms of one type.
    pub(crate) fn formula_for_type(
        &mut self,
        id: FormulaId,
        ty: JsonType,
    ) -> Result<FormulaId, Error> {
        match *self.formulas.get(id) {
            Formula::True | Formula::False => return Ok(id),
            Formula::Child(node) => return self.expand(node, ty),
            _ => {}
        }
        let key = (id, ty, self.comparing_alternatives);
        if let Some(&known) = self.typed.get(&key) {
            return Ok(known);
        }
        let nodes = self.formulas.queried_nodes(&[id]);
        let mut answers = Vec::with_capacity(nodes.len());
        for &node in &nodes {
            answers.push(self.expand(node, ty)?);
        }
        let typed = self.formulas.substitute_verdicts(id, &nodes, &answers);
        if self.formulas.part_count(typed) > MEMOIZED_PARTS {
            self.typed.insert(key, typed);
        }
        Ok(typed)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        // The memory of shared automata is divided among their owners.
        let own = |text: &Arc<Automaton>| text.memory_bytes() / Arc::strong_count(text);
        let texts: usize = self.automata.iter().map(own).sum();
        texts
            + self.formulas.memory_bytes()
            + self.answers.memory_bytes()
            + self.expanded.memory_bytes()
            + self.typed.memory_bytes()
            + self.enumerated.memory_bytes()
            + self.enumerated.len() * LIST_BYTES
            + self.automata.capacity() * size_of::<Arc<Automaton>>()
            + self.language_formulas.capacity() * size_of::<FormulaId>()
            + self.language_ids.memory_bytes()
            + self.name_matches.memory_bytes()
            + self.always_viable.memory_bytes()
            + self.schema.value_bytes
            + self.schema.nodes.len() * 200
            + self.schema.names.len() * 64
            + self.schema.values.len() * 100
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
