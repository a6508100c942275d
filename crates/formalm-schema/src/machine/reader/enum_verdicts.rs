//! Verdicts on strings of large enumerations, from logarithmically many automata.
//!
//! With n enumerated strings, `⌈log₂(n + 1)⌉` automata read the binary digits of the string's
//! index, as in a bit-sliced index. The verdicts of all queries follow from the index by table
//! look-up. One automaton a query would cost as many steps a byte as there are queries.

use std::ops::Deref;

use formalm_automata::{Error, Machine};

use crate::formula::{FormulaAtom, FormulaId};
use crate::machine::LazyTables;
use crate::machine::reader::cache::QueryState;
use crate::solver::context::SolverContext;

/// Number of enumeration queries from which on the index is used. Chosen, not measured.
const MIN_ENUM_QUERIES: usize = 16;

/// The automata that read a string, and how the verdicts follow from their acceptance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct QueriedStrings {
    /// An [`EnumIndex`]; without one each automaton is a verdict.
    pub(crate) enum_index: Option<u32>,
    /// Set if the first automaton alone decides whether the string can continue. The others only
    /// classify names, and stop with it.
    pub(crate) has_guard: bool,
    pub(crate) machines: Box<[QueryState]>,
}

impl QueriedStrings {
    /// Returns the automata of which one has to stay alive.
    pub(crate) fn required_machines(&self) -> &[QueryState] {
        if self.has_guard { &self.machines[..1] } else { &self.machines }
    }
}

impl Deref for QueriedStrings {
    type Target = [QueryState];

    fn deref(&self) -> &[QueryState] {
        &self.machines
    }
}

/// The index of enumerated strings, counted from 1. The first automata accept the strings whose
/// index has the respective binary digit; each other automaton is a verdict.
#[derive(Debug)]
pub(crate) struct EnumIndex {
    digits: usize,
    verdicts: Box<[VerdictSource]>,
}

/// The source of a verdict.
#[derive(Debug)]
pub(crate) enum VerdictSource {
    Machine(usize),
    /// A table by the index of the string; index 0 is a string outside the enumeration.
    Number(Box<[bool]>),
}

impl EnumIndex {
    pub(crate) fn verdicts(&self) -> &[VerdictSource] {
        &self.verdicts
    }

    /// Returns the verdicts, given which automata accept.
    pub(crate) fn verdicts_for(&self, accepted: &[bool]) -> Vec<bool> {
        let digits = accepted[..self.digits].iter().enumerate();
        let number = digits.fold(0, |number, (at, &digit)| number | usize::from(digit) << at);
        let verdict_of = |source: &VerdictSource| match source {
            VerdictSource::Machine(at) => accepted[*at],
            VerdictSource::Number(verdicts) => verdicts.get(number).is_some_and(|&verdict| verdict),
        };
        self.verdicts.iter().map(verdict_of).collect()
    }
}

impl LazyTables {
    /// Returns the automata that answer queries about a string.
    pub(crate) fn string_queries(
        &mut self,
        formulas: &[FormulaId],
    ) -> Result<QueriedStrings, Error> {
        let listed: Vec<bool> = formulas.iter().map(|&id| is_listed(&self.core, id)).collect();
        if listed.iter().filter(|&&listed| listed).count() < MIN_ENUM_QUERIES {
            let machines: Result<Box<[QueryState]>, Error> =
                formulas.iter().map(|&id| self.string_query(id)).collect();
            return Ok(QueriedStrings { machines: machines?, ..QueriedStrings::default() });
        }
        let mut texts: Vec<String> = Vec::new();
        for (&id, _) in formulas.iter().zip(&listed).filter(|(_, listed)| **listed) {
            for atom in self.core.atoms(id) {
                let FormulaAtom::InLanguage(regex) = atom else { continue };
                texts.extend(
                    self.core
                        .schema
                        .enum_strings
                        .get(&regex)
                        .into_iter()
                        .flat_map(|all| all.iter().cloned()),
                );
            }
        }
        texts.sort_unstable();
        texts.dedup();
        let digits = (usize::BITS - texts.len().leading_zeros()) as usize;
        let mut machines = Vec::with_capacity(digits);
        for digit in 0..digits {
            let with = texts.iter().enumerate().filter(|(at, _)| (at + 1) >> digit & 1 == 1);
            let with = with.map(|(_, text)| text.clone()).collect();
            let regex = self.core.schema.enum_regex(with);
            let formula = self.core.formulas.atom(FormulaAtom::InLanguage(regex));
            machines.push(self.string_query(formula)?);
        }
        let mut verdicts = Vec::with_capacity(formulas.len());
        for (&id, &listed) in formulas.iter().zip(&listed) {
            verdicts.push(if listed {
                VerdictSource::Number(self.core.enum_verdicts(id, &texts))
            } else {
                machines.push(self.string_query(id)?);
                VerdictSource::Machine(machines.len() - 1)
            });
        }
        let enum_index = self.parts.enum_indexes.len() as u32;
        self.parts.enum_indexes.push(EnumIndex { digits, verdicts: verdicts.into() });
        Ok(QueriedStrings {
            enum_index: Some(enum_index),
            has_guard: false,
            machines: machines.into(),
        })
    }

    /// Returns the automaton of one query in its start state.
    fn string_query(&mut self, id: FormulaId) -> Result<QueryState, Error> {
        let language = self.core.language(id)?;
        Ok(language.map(|one| (one, self.core.automaton(one).start())))
    }
}

/// Returns `true` if enumerated strings alone decide a formula.
fn is_listed(core: &SolverContext, id: FormulaId) -> bool {
    core.atoms(id).iter().all(|atom| {
        matches!(atom, FormulaAtom::InLanguage(regex) if core.schema.enum_strings.contains_key(regex))
    })
}
