//! What a schema's machine grows as it is used: formulas, languages of texts, answers.

use std::sync::Arc;

use formalm_automata::deadline::DeadlineTicks;
use formalm_automata::fork::PerProcess;
use formalm_automata::syntax::{Dialect, Pattern};
use formalm_automata::{
    Automaton, Error, Expression, Limits as TextLimits, Machine, Resource, StateId,
};

use crate::formula::{Atom, F, FALSE, Form, Formulas, TRUE, Which};
use crate::interner::Map;
use crate::json::property_names::NameId;
use crate::options::{Limits, Options};
use crate::schema_nodes::{NodeId, RegexId, Rule, Schema, Type};
use crate::schema_reader::pattern_search;
use crate::shared_automata::{self, LanguageDescription};
use crate::solver::{AnswerCache, LIST_BYTES, Listed, PropertyRuleIndex};

/// Steps of a search between two looks at the deadline: about 0.1 ms.
const DEADLINE_INTERVAL: u32 = 64;

/// Formulas of more parts are remembered by what they were made from.
const MEMOIZED_PARTS: usize = 16;

/// Parts of formulas that are gone through in the time of a step.
const FORMULA_PARTS_PER_STEP: u64 = 512;

/// Formulas within each other. Walks over formulas are recursive; one level takes at most half a
/// kilobyte of stack, threads have two megabytes.
const MAX_FORMULA_DEPTH: u64 = 1_000;

/// Alternatives up to which "exactly one" is written with each and the negation of all others.
const PAIRWISE_MAX: usize = 4;

/// A machine that reads texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TextId(pub(crate) u32);

/// Texts whose machines have more states than are worth keeping.
#[derive(Debug, Default)]
struct UnboundedLanguages {
    languages: Vec<TextId>,
    /// Whether the text is looked ahead of, so that copies of the machines are in use.
    in_lookahead: bool,
    /// The machines themselves while copies are in use.
    originals: Vec<(TextId, Arc<Automaton>)>,
    /// Copies that have met nothing new, for the next look ahead.
    spare_copies: Vec<(TextId, Arc<Automaton>)>,
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) schema: Schema,
    pub(crate) formulas: Formulas,
    pub(crate) options: Options,
    pub(crate) limits: Limits,
    pub(crate) answers: AnswerCache,
    /// Nodes as formulas; the last key is whether alternatives were left as they are.
    pub(crate) expanded: Map<(NodeId, Type, bool), F>,
    /// The same of formulas over children, where they have many parts.
    typed: Map<(F, Type, bool), F>,
    /// Whether alternatives are being told apart, for which parts are expanded as they are.
    pub(crate) comparing_alternatives: bool,
    /// Objects and arrays listed by formula, with how many were asked for.
    pub(crate) enumerated: Map<F, (usize, Listed)>,
    automata: Vec<Arc<Automaton>>,
    language_formulas: Vec<F>,
    language_ids: Map<F, Option<TextId>>,
    unbounded: UnboundedLanguages,
    name_matches: Map<(RegexId, NameId), bool>,
    pub(crate) rule_index: PropertyRuleIndex,
    /// States from which every text can go on.
    pub(crate) always_viable: Map<(TextId, StateId), bool>,
    /// Steps of the search for whether one state is viable.
    pub(crate) steps: u64,
    /// Work on formulas that was counted as steps.
    counted_work: u64,
    /// Nodes that are being expanded, each within the one before.
    pub(crate) expansion_depth: u64,
    ticks: DeadlineTicks,
}

impl Core {
    pub(crate) fn new(schema: Schema, options: Options, limits: Limits) -> Core {
        Core {
            schema,
            formulas: Formulas::default(),
            options,
            limits,
            answers: AnswerCache::default(),
            expanded: Map::default(),
            typed: Map::default(),
            comparing_alternatives: false,
            enumerated: Map::default(),
            automata: Vec::new(),
            language_formulas: Vec::new(),
            language_ids: Map::default(),
            unbounded: UnboundedLanguages::default(),
            name_matches: Map::default(),
            rule_index: PropertyRuleIndex::default(),
            always_viable: Map::default(),
            steps: 0,
            counted_work: 0,
            expansion_depth: 0,
            ticks: DeadlineTicks::default(),
        }
    }

    /// Counts a step of a search.
    pub(crate) fn step(&mut self) -> Result<(), Error> {
        self.steps_of(1)
    }

    /// Counts what takes the time of several steps, or of none, and the work on formulas since the
    /// last count.
    pub(crate) fn steps_of(&mut self, count: usize) -> Result<(), Error> {
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

    /// Fails where formulas take too much memory, or are too deep to be walked.
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

    /// The machines of all texts, those that copies are in use of included.
    pub(crate) fn all_texts(&self) -> impl Iterator<Item = &Arc<Automaton>> {
        let UnboundedLanguages { originals: aside, spare_copies: spare, .. } = &self.unbounded;
        self.automata.iter().chain(aside.iter().chain(spare).map(|(_, machine)| machine))
    }

    pub(crate) fn text(&self, id: TextId) -> &Arc<Automaton> {
        &self.automata[id.0 as usize]
    }

    /// The formula of a machine of texts.
    pub(crate) fn class_formula(&self, id: TextId) -> F {
        self.language_formulas[id.0 as usize]
    }

    /// The machine of the texts that satisfy a formula; `None` if there are none.
    pub(crate) fn language(&mut self, id: F) -> Result<Option<TextId>, Error> {
        if let Some(&known) = self.language_ids.get(&id) {
            return Ok(known);
        }
        self.check_formula_limits()?;
        let make = || {
            let expression = self.expression(id, &mut Map::default())?;
            Automaton::of(&expression, TextLimits::default())
        };
        let machine = match (id, self.description(id, &mut Map::default())) {
            (TRUE, _) => Some(any_string_automaton()?),
            (_, Some(description)) => shared_automata::shared_automaton(description, make)?.0,
            (_, None) => make()?.map(Arc::new),
        };
        let text = machine.map(|machine| self.add_language(machine, id));
        self.language_ids.insert(id, text);
        Ok(text)
    }

    /// The machine of a regex that was made before, if it has members.
    pub(crate) fn known_language(&self, regex: RegexId) -> Option<TextId> {
        let atom = self.formulas.find_atom(&Atom::In(regex))?;
        self.language_ids.get(&atom).copied().flatten()
    }

    fn add_language(&mut self, machine: Arc<Automaton>, id: F) -> TextId {
        let text = TextId(self.automata.len() as u32);
        let is_unbounded = machine.is_unbounded();
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

    /// Whether a text has more states than are worth keeping: those met ahead of the text are
    /// dropped, and mean nothing afterwards.
    pub(crate) fn is_unbounded(&self, text: TextId) -> bool {
        self.unbounded.languages.contains(&text)
    }

    /// From here on until [`Core::behind`], texts without end are read by copies of their machines.
    pub(crate) fn ahead(&mut self) {
        self.unbounded.in_lookahead = true;
        for at in 0..self.unbounded.languages.len() {
            self.swap_in_copy(self.unbounded.languages[at]);
        }
    }

    fn swap_in_copy(&mut self, text: TextId) {
        let machine = &mut self.automata[text.0 as usize];
        let spare = self.unbounded.spare_copies.iter().position(|one| one.0 == text);
        let spare = spare.map(|at| self.unbounded.spare_copies.swap_remove(at).1);
        // With as many states they are the same ones.
        let copy = match spare.filter(|copy| copy.state_count() == machine.state_count()) {
            Some(copy) => Some(copy),
            None => machine.copy().map(Arc::new),
        };
        if let Some(copy) = copy {
            let kept = std::mem::replace(machine, copy);
            self.unbounded.originals.push((text, kept));
        }
    }

    /// Drops the copies; whether there were any.
    pub(crate) fn behind(&mut self) -> bool {
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

    /// The texts that satisfy a formula. Formulas are a graph: each part is made once.
    fn expression(&self, id: F, known: &mut Map<F, Expression>) -> Result<Expression, Error> {
        if let Some(known) = known.get(&id) {
            return Ok(known.clone());
        }
        let mut all = |list: &[F]| -> Result<Vec<Expression>, Error> {
            list.iter().map(|&one| self.expression(one, known)).collect()
        };
        let expression = match self.formulas.get(id) {
            Form::True => any_string(),
            Form::Atom(Atom::In(regex)) => self.schema.regexes[regex.0 as usize].clone(),
            Form::Not(inner) => self.expression(*inner, known)?.complement()?,
            Form::And(list) => Expression::intersection(all(list)?)?,
            Form::Or(list) => Expression::union(all(list)?)?,
            Form::One(list) => exactly_one(&all(list)?)?,
            _ => Expression::texts(Vec::new()),
        };
        known.insert(id, expression.clone());
        Ok(expression)
    }

    /// What tells a formula over texts from others in whatever schema; `None` where it names texts
    /// of its own.
    fn description(
        &self,
        id: F,
        known: &mut Map<F, Option<LanguageDescription>>,
    ) -> Option<LanguageDescription> {
        if let Some(&known) = known.get(&id) {
            return known;
        }
        let mut all = |mark: &str, list: &[F]| {
            let parts = list.iter().map(|&one| self.description(one, known));
            let parts: Option<Vec<LanguageDescription>> = parts.collect();
            parts.map(|parts| LanguageDescription::from_parts(mark, parts))
        };
        let description = match self.formulas.get(id) {
            Form::Atom(Atom::In(regex)) => {
                let key = self.schema.regex_descriptions[regex.0 as usize].as_deref();
                key.map(LanguageDescription::from_text)
            }
            Form::Not(inner) => all("not", &[*inner]),
            Form::And(list) => all("and", list),
            Form::Or(list) => all("or", list),
            Form::One(list) => all("one", list),
            _ => None,
        };
        known.insert(id, description);
        description
    }

    /// Whether a text is in the language of a formula over texts.
    pub(crate) fn holds_for_text(&mut self, id: F, text: &str) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        let Some(language) = self.language(id)? else { return Ok(false) };
        let machine = self.text(language);
        let read = machine.walk(machine.start(), text.as_bytes())?;
        Ok(read.is_ok_and(|state| machine.is_accepting(state)))
    }

    /// Returns `true` if a name is in the language of a formula over texts.
    pub(crate) fn is_name_in(&mut self, id: F, name: NameId) -> Result<bool, Error> {
        if let Some(tests) = self.schema.names.tests_of_class(name) {
            return Ok(tests.contains(&id));
        }
        let text = self.schema.names.get(name).to_owned();
        self.holds_for_text(id, &text)
    }

    /// Whether a pattern is found in a name.
    pub(crate) fn pattern_matches_name(
        &mut self,
        regex: RegexId,
        name: NameId,
    ) -> Result<bool, Error> {
        if let Some(tests) = self.schema.names.tests_of_class(name) {
            let atom = self.formulas.find_atom(&Atom::In(regex));
            return Ok(atom.is_some_and(|atom| tests.contains(&atom)));
        }
        if let Some(&known) = self.name_matches.get(&(regex, name)) {
            return Ok(known);
        }
        let formula = self.formulas.atom(Atom::In(regex));
        let text = self.schema.names.get(name).to_owned();
        let found = self.holds_for_text(formula, &text)?;
        self.name_matches.insert((regex, name), found);
        Ok(found)
    }

    /// Whether a rule speaks of a name.
    pub(crate) fn selects_name(&mut self, which: &Which, name: NameId) -> Result<bool, Error> {
        let listed = match &which.names {
            Some(names) => names.binary_search(&name).is_ok(),
            None => which.others.binary_search(&name).is_err(),
        };
        if !listed {
            return Ok(false);
        }
        for &regex in &which.found {
            if !self.pattern_matches_name(regex, name)? {
                return Ok(false);
            }
        }
        for &regex in &which.missing {
            if self.pattern_matches_name(regex, name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The statement that the child at hand satisfies a node.
    pub(crate) fn child(&mut self, node: NodeId) -> F {
        match &self.schema.node(node).rules[..] {
            [] => return TRUE,
            [Rule::Never] => return FALSE,
            _ => {}
        }
        self.formulas.child(self.schema.representative(node))
    }

    /// A formula over children as a formula over atoms of one type.
    pub(crate) fn of_type(&mut self, id: F, of: Type) -> Result<F, Error> {
        match *self.formulas.get(id) {
            Form::True | Form::False => return Ok(id),
            Form::Child(node) => return self.expand(node, of),
            _ => {}
        }
        let key = (id, of, self.comparing_alternatives);
        if let Some(&known) = self.typed.get(&key) {
            return Ok(known);
        }
        let nodes = self.formulas.asked(&[id]);
        let mut answers = Vec::with_capacity(nodes.len());
        for &node in &nodes {
            answers.push(self.expand(node, of)?);
        }
        let typed = self.formulas.answer(id, &nodes, &answers);
        if self.formulas.part_count(typed) > MEMOIZED_PARTS {
            self.typed.insert(key, typed);
        }
        Ok(typed)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        // What schemas share is divided among those that have it.
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
            + self.language_formulas.capacity() * size_of::<F>()
            + self.language_ids.memory_bytes()
            + self.name_matches.memory_bytes()
            + self.always_viable.memory_bytes()
            + self.schema.value_bytes
            + self.schema.nodes.len() * 200
            + self.schema.names.len() * 64
            + self.schema.values.len() * 100
    }
}

/// The machine of all texts; one for all schemas of a process.
pub(crate) fn any_string_automaton() -> Result<Arc<Automaton>, Error> {
    static MACHINE: PerProcess<Arc<Automaton>> = PerProcess::new();
    if let Some(machine) = MACHINE.get() {
        return Ok(Arc::clone(machine));
    }
    let machine = Arc::new(Automaton::new(&any_string(), TextLimits::default())?);
    Ok(Arc::clone(MACHINE.get_or_init(|| machine)))
}

pub(crate) fn any_string() -> Expression {
    let root = pattern_search::any_string();
    Expression::pattern(Pattern { root, groups: Vec::new(), dialect: Dialect::Ecma })
}

/// Texts that are members of exactly one of some languages.
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

/// Texts that are members of one at least and of two at least, by halves: writing each with the
/// negation of all others would take the square of the length.
fn at_least_one_and_two(list: &[Expression]) -> Result<(Expression, Expression), Error> {
    let [one] = list else {
        let (left, right) = list.split_at(list.len() / 2);
        let (left, right) = (at_least_one_and_two(left)?, at_least_one_and_two(right)?);
        let both = Expression::intersection(vec![left.0.clone(), right.0.clone()])?;
        let some = Expression::union(vec![left.0, right.0])?;
        return Ok((some, Expression::union(vec![left.1, right.1, both])?));
    };
    Ok((one.clone(), Expression::texts(Vec::new())))
}
