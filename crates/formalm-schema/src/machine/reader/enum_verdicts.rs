//! Truths of a text that are told by a few machines: which of many listed texts it is.

use std::ops::Deref;

use formalm_automata::{Error, Machine};

use crate::core::Core;
use crate::formula::{Atom, F};
use crate::machine::LazyTables;
use crate::machine::reader::cache::QueryState;

/// With so many truths that listed texts decide, the text is told rather than each truth.
const MIN_ENUM_QUERIES: usize = 16;

/// Machines of a text, and how the truths that are asked follow from what they say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct QueriedStrings {
    /// A [`Telling`]; without one each machine is a truth.
    pub(crate) enum_index: Option<u32>,
    /// Whether the first machine alone says if the text can go on; the others only tell names
    /// apart, and stop with it.
    pub(crate) has_guard: bool,
    pub(crate) machines: Box<[QueryState]>,
}

impl QueriedStrings {
    /// Returns the machines of which one has to go on.
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

/// Listed texts are numbered from one on; the first machines say the digits of the number in
/// base two, and all others are truths of their own.
#[derive(Debug)]
pub(crate) struct EnumIndex {
    digits: usize,
    verdicts: Box<[VerdictSource]>,
}

/// How a truth is told.
#[derive(Debug)]
pub(crate) enum VerdictSource {
    Machine(usize),
    /// By the number of the text, which is none if it is not listed.
    Number(Box<[bool]>),
}

impl EnumIndex {
    pub(crate) fn verdicts(&self) -> &[VerdictSource] {
        &self.verdicts
    }

    /// The truths, by what the machines say.
    pub(crate) fn verdicts_for(&self, accepted: &[bool]) -> Vec<bool> {
        let digits = accepted[..self.digits].iter().enumerate();
        let number = digits.fold(0, |number, (at, &digit)| number | usize::from(digit) << at);
        let told = |told: &VerdictSource| match told {
            VerdictSource::Machine(at) => accepted[*at],
            VerdictSource::Number(verdicts) => verdicts.get(number).is_some_and(|&verdict| verdict),
        };
        self.verdicts.iter().map(told).collect()
    }
}

impl LazyTables {
    /// The machines that tell the truths of formulas over texts.
    pub(crate) fn string_queries(&mut self, formulas: &[F]) -> Result<QueriedStrings, Error> {
        let listed: Vec<bool> = formulas.iter().map(|&id| self.core.is_listed(id)).collect();
        if listed.iter().filter(|&&listed| listed).count() < MIN_ENUM_QUERIES {
            let machines: Result<Box<[QueryState]>, Error> =
                formulas.iter().map(|&id| self.string_query(id)).collect();
            return Ok(QueriedStrings { machines: machines?, ..QueriedStrings::default() });
        }
        let mut texts: Vec<String> = Vec::new();
        for (&id, _) in formulas.iter().zip(&listed).filter(|(_, listed)| **listed) {
            for atom in self.core.atoms(id) {
                let Atom::In(regex) = atom else { continue };
                texts.extend(
                    self.core
                        .schema
                        .listed
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
            let regex = self.core.schema.texts(with);
            let formula = self.core.formulas.atom(Atom::In(regex));
            machines.push(self.string_query(formula)?);
        }
        let mut verdicts = Vec::with_capacity(formulas.len());
        for (&id, &listed) in formulas.iter().zip(&listed) {
            verdicts.push(if listed {
                VerdictSource::Number(self.core.listed_truths(id, &texts))
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

    fn string_query(&mut self, id: F) -> Result<QueryState, Error> {
        let language = self.core.language(id)?;
        Ok(language.map(|one| (one, self.core.text(one).start())))
    }
}

impl Core {
    /// Whether listed texts alone decide a formula over texts.
    fn is_listed(&self, id: F) -> bool {
        self.atoms(id)
            .iter()
            .all(|atom| matches!(atom, Atom::In(regex) if self.schema.listed.contains_key(regex)))
    }
}
