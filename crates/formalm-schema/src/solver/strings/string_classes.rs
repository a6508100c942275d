//! Partitions strings into the classes that some languages distinguish.
//!
//! Either by refinement (each class is split by each language) or, with three languages or more, by
//! a walk of the product of their automata, which finds the nonempty classes directly.

use std::collections::BTreeSet;
use std::sync::Arc;

use formalm_automata::Automaton;
use formalm_core::{Error, LazyDfa, Resource, StateId};
use rustc_hash::FxHashSet;

use crate::formula::{FormulaArena, FormulaId, TRUE};
use crate::solver::SolverTimer;
use crate::solver::formula_base::FormulaBase;
use crate::solver::strings::languages::{LanguageId, Languages, any_string_automaton};

/// Maximum number of classes: in total, and a base plus an amount for each test. Overlapping tests
/// double the classes each time, and each class has an automaton. Chosen, not measured.
const MAX_CLASSES: [usize; 3] = [4_096, 256, 16];

/// Number of tests from which the product is walked. Chosen, not measured.
const MIN_PRODUCT_TESTS: usize = 3;

/// Number of classes in excess of the tests that still counts as few. Three disjoint tests have
/// four classes, three overlapping ones eight. Chosen, not measured.
const EXTRA_CLASSES: usize = 4;

/// Maximum number of automaton steps of a product walk: a base, and an amount for each test.
/// Chosen, not measured.
const MAX_STEPS: [usize; 2] = [8_000, 4_000];

/// The tests that the strings of a class satisfy.
type TestSet = BTreeSet<usize>;

/// The live automata with their states, by test.
type LiveStates = Vec<(usize, StateId)>;

impl Languages {
    /// Returns the nonempty classes of names that some formulas distinguish. Fails if there are too
    /// many.
    pub(crate) fn name_classes(
        &mut self,
        base: &mut FormulaBase,
        tests: &[FormulaId],
    ) -> Result<Vec<LanguageId>, Error> {
        let _solving = SolverTimer::begin();
        if let Some(known) = self.classes.get(tests) {
            return Ok(known.clone());
        }
        let most = most_classes(tests);
        let classes = match self.product_classes(base, tests, most)? {
            ProductResult::Classes(classes) => {
                Some(class_formulas(&mut base.formulas, tests, &classes))
            }
            ProductResult::TooMany => None,
            ProductResult::Unknown => self.refine_classes(base, tests, most)?,
        };
        let Some(classes) = classes else {
            let (needed, allowed) = (most as u64 + 1, most as u64);
            return Err(Error::Limit { resource: Resource::Terms, needed, allowed });
        };
        self.record_classes(base, tests, classes)
    }

    /// Returns the classes, or `None` if there are many. There are few if most tests are disjoint.
    pub(crate) fn name_classes_if_few(
        &mut self,
        base: &mut FormulaBase,
        tests: &[FormulaId],
    ) -> Result<Option<Vec<LanguageId>>, Error> {
        if tests.len() < MIN_PRODUCT_TESTS || self.classes.get(tests).is_some() {
            return self.name_classes(base, tests).map(Some);
        }
        if self.many_classes.get(tests).is_some() {
            return Ok(None);
        }
        let most = tests.len() + EXTRA_CLASSES;
        let classes = match self.product_classes(base, tests, most)? {
            ProductResult::Classes(classes) => {
                Some(class_formulas(&mut base.formulas, tests, &classes))
            }
            ProductResult::TooMany => None,
            ProductResult::Unknown => self.refine_classes(base, tests, most)?,
        };
        match classes {
            Some(classes) => self.record_classes(base, tests, classes).map(Some),
            None => {
                self.many_classes.insert(tests.to_vec(), ());
                Ok(None)
            }
        }
    }

    /// Interns the languages of the classes and caches the result.
    fn record_classes(
        &mut self,
        base: &FormulaBase,
        tests: &[FormulaId],
        classes: Vec<FormulaId>,
    ) -> Result<Vec<LanguageId>, Error> {
        let mut list = Vec::with_capacity(classes.len());
        for class in classes {
            list.extend(self.language(base, class)?);
        }
        self.classes.insert(tests.to_vec(), list.clone());
        Ok(list)
    }

    /// Returns the classes by refinement; `None` if there are more than `most`.
    fn refine_classes(
        &mut self,
        base: &mut FormulaBase,
        tests: &[FormulaId],
        most: usize,
    ) -> Result<Option<Vec<FormulaId>>, Error> {
        let mut classes = vec![TRUE];
        for &test in tests {
            let outside = base.formulas.not(test);
            let mut finer = Vec::with_capacity(classes.len());
            for class in classes {
                for side in [test, outside] {
                    let part = base.formulas.both(class, side);
                    if self.language(base, part)?.is_some() {
                        finer.push(part);
                    }
                }
            }
            classes = finer;
            if classes.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(classes))
    }

    /// Returns the classes by a walk of the product automaton.
    fn product_classes(
        &mut self,
        base: &FormulaBase,
        tests: &[FormulaId],
        most: usize,
    ) -> Result<ProductResult, Error> {
        if tests.len() < MIN_PRODUCT_TESTS {
            return Ok(ProductResult::Unknown);
        }
        let mut machines = Vec::with_capacity(tests.len() + 1);
        let mut start = LiveStates::new();
        for (at, &test) in tests.iter().enumerate() {
            let machine = match self.language(base, test)? {
                Some(language) if self.is_unbounded(language) => return Ok(ProductResult::Unknown),
                Some(language) => Arc::clone(self.automaton(language)),
                None => continue,
            };
            start.push((at, machine.start()));
            machines.push((at, machine));
        }
        let [all, each] = MAX_STEPS;
        let mut walk = ProductWalk {
            machines,
            strings: any_string_automaton()?,
            classes: FxHashSet::default(),
            seen: FxHashSet::default(),
            open: Vec::new(),
            steps: all + each * tests.len(),
        };
        let strings = walk.strings.start();
        walk.visit(start, strings);
        while let Some((states, strings)) = walk.open.pop() {
            if !walk.expand(&states, strings)? {
                return Ok(ProductResult::Unknown);
            }
            if walk.classes.len() > most {
                return Ok(ProductResult::TooMany);
            }
        }
        let mut classes: Vec<TestSet> = walk.classes.into_iter().collect();
        // Sort as refinement does: strings that satisfy the first test come first, and so on.
        classes.sort_unstable_by(|one, other| {
            let is_in = |class: &TestSet| (0..tests.len()).map(|at| !class.contains(&at)).collect();
            let keys: [Vec<bool>; 2] = [is_in(one), is_in(other)];
            keys[0].cmp(&keys[1])
        });
        Ok(ProductResult::Classes(classes))
    }
}

/// Returns formulas for the classes, using that there are no others.
fn class_formulas(
    formulas: &mut FormulaArena,
    tests: &[FormulaId],
    classes: &[TestSet],
) -> Vec<FormulaId> {
    let mut list = Vec::with_capacity(classes.len());
    for class in classes {
        // A class is the conjunction of its tests without those that larger classes satisfy in
        // addition.
        let larger = classes.iter().filter(|one| one.is_superset(class));
        let others: TestSet = larger.flatten().filter(|at| !class.contains(at)).copied().collect();
        let mut all: Vec<FormulaId> = class.iter().map(|&at| tests[at]).collect();
        for at in others {
            all.push(formulas.not(tests[at]));
        }
        list.push(formulas.and(all));
    }
    list
}

/// The result of a product walk.
enum ProductResult {
    Classes(Vec<TestSet>),
    /// More classes than allowed.
    TooMany,
    /// The step budget ran out.
    Unknown,
}

/// A walk of the product of automata.
struct ProductWalk {
    machines: Vec<(usize, Arc<Automaton>)>,
    /// The automaton of all strings: classes contain strings, not arbitrary bytes.
    strings: Arc<Automaton>,
    classes: FxHashSet<TestSet>,
    seen: FxHashSet<(LiveStates, StateId)>,
    open: Vec<(LiveStates, StateId)>,
    steps: usize,
}

impl ProductWalk {
    /// Records a state of the product.
    fn visit(&mut self, states: LiveStates, strings: StateId) {
        match states[..] {
            // Every live automaton has a string ahead; with none left, only the empty class
            // remains.
            [] => {
                self.classes.insert(TestSet::new());
                return;
            }
            [(at, _)] => {
                self.classes.insert(TestSet::from([at]));
                if self.classes.contains(&TestSet::new()) {
                    return;
                }
            }
            _ => {}
        }
        let place = (states, strings);
        if !self.seen.contains(&place) {
            self.seen.insert(place.clone());
            self.open.push(place);
        }
    }

    fn machine(&self, test: usize) -> &Automaton {
        let at = self.machines.partition_point(|&(at, _)| at < test);
        &self.machines[at].1
    }

    /// Records the class of strings that end in a product state, and its successors. Returns
    /// `false` if the step budget ran out.
    fn expand(&mut self, states: &LiveStates, strings: StateId) -> Result<bool, Error> {
        if self.strings.is_accepting(strings) {
            let accepts = |&(at, state): &(usize, StateId)| {
                self.machine(at).is_accepting(state).then_some(at)
            };
            let class = states.iter().filter_map(accepts).collect();
            self.classes.insert(class);
        }
        let mut starts = [false; 256];
        let machines = states.iter().map(|&(at, _)| self.machine(at));
        for machine in machines.chain([&*self.strings]) {
            machine.class_starts().iter().for_each(|&byte| starts[usize::from(byte)] = true);
        }
        for byte in (0..=255u8).filter(|&byte| starts[usize::from(byte)]) {
            let Some(next) = self.strings.step(strings, byte)? else { continue };
            let Some(left) = self.steps.checked_sub(states.len()) else { return Ok(false) };
            self.steps = left;
            let mut after = LiveStates::new();
            for &(at, state) in states {
                after.extend(self.machine(at).step(state, byte)?.map(|state| (at, state)));
            }
            self.visit(after, next);
        }
        Ok(true)
    }
}

/// Returns the maximum number of classes for some tests.
fn most_classes(tests: &[FormulaId]) -> usize {
    let [most, all, each] = MAX_CLASSES;
    most.min(all + each * tests.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::FormulaAtom;
    use crate::json::document::Document;
    use crate::options::{JsonSchemaLimits, JsonSchemaOptions};
    use crate::schema_reader;
    use crate::schema_reader::pattern_search::search_language;
    use crate::solver::context::{SolverContext, any_string};

    /// Refinement and product find the same classes in the same order.
    #[test]
    fn product_and_refinement_find_the_same_classes() {
        let document = Document::read("true").unwrap();
        let schema =
            schema_reader::read_schema(&document, &[], JsonSchemaOptions::default()).unwrap();
        let mut solver =
            SolverContext::new(schema, JsonSchemaOptions::default(), JsonSchemaLimits::default());
        let lists: [&[&str]; 6] = [
            &["^a", "^b", "^c", "^d$"],
            &["^x-", "a$", "^[0-9]+$", "é", "^x-.*é"],
            &["^(a|b)*$", "^(a|c)*$", "^a", "^$", "^[^a]*$"],
            &[".", "^aa*$", "^a{2,4}$", "^a{3,9}$", "^(aa)*$"],
            &["^ab$", "^abc$", "^abd$", "^b", "^ü$", "^日本$"],
            &["", "^", "a", "^.$", "\\S"],
        ];
        for list in lists {
            let tests = list.iter().map(|&source| {
                let make = || search_language(source).unwrap().language.unwrap_or_else(any_string);
                let regex = solver.base.schema.intern_regex(source.to_owned(), make);
                solver.base.formulas.atom(FormulaAtom::InLanguage(regex))
            });
            let tests: Vec<FormulaId> = tests.collect();
            let split = solver
                .languages
                .refine_classes(&mut solver.base, &tests, 400)
                .unwrap()
                .expect(list[0]);
            let ProductResult::Classes(read) =
                solver.languages.product_classes(&solver.base, &tests, 400).unwrap()
            else {
                panic!("{list:?}")
            };
            let read = class_formulas(&mut solver.base.formulas, &tests, &read);
            assert_eq!(split.len(), read.len(), "{list:?}");
            for (one, other) in split.into_iter().zip(read) {
                for (one, other) in [(one, other), (other, one)] {
                    let other = solver.base.formulas.not(other);
                    let rest = solver.base.formulas.both(one, other);
                    assert!(
                        solver.languages.language(&solver.base, rest).unwrap().is_none(),
                        "{list:?}"
                    );
                }
            }
        }
    }
}
