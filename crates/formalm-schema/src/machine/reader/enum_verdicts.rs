//! Truths of a text that are told by a few machines: which of many listed texts it is.

use std::ops::Deref;

use formalm_automata::{Error, Machine};

use crate::core::Core;
use crate::formula::{Atom, F};
use crate::machine::Grown;
use crate::machine::reader::cache::Asked;

/// With so many truths that listed texts decide, the text is told rather than each truth.
const MANY: usize = 16;

/// Machines of a text, and how the truths that are asked follow from what they say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AskedTexts {
    /// A [`Telling`]; without one each machine is a truth.
    pub(crate) telling: Option<u32>,
    /// Whether the first machine alone says if the text can go on; the others only tell names
    /// apart, and stop with it.
    pub(crate) is_guarded: bool,
    pub(crate) machines: Box<[Asked]>,
}

impl AskedTexts {
    /// Returns the machines of which one has to go on.
    pub(crate) fn going_on(&self) -> &[Asked] {
        if self.is_guarded { &self.machines[..1] } else { &self.machines }
    }
}

impl Deref for AskedTexts {
    type Target = [Asked];

    fn deref(&self) -> &[Asked] {
        &self.machines
    }
}

/// Listed texts are numbered from one on; the first machines say the digits of the number in
/// base two, and all others are truths of their own.
#[derive(Debug)]
pub(crate) struct Telling {
    digits: usize,
    truths: Box<[Told]>,
}

/// How a truth is told.
#[derive(Debug)]
pub(crate) enum Told {
    Machine(usize),
    /// By the number of the text, which is none if it is not listed.
    Number(Box<[bool]>),
}

impl Telling {
    pub(crate) fn truths(&self) -> &[Told] {
        &self.truths
    }

    /// The truths, by what the machines say.
    pub(crate) fn tell(&self, said: &[bool]) -> Vec<bool> {
        let digits = said[..self.digits].iter().enumerate();
        let number = digits.fold(0, |number, (at, &digit)| number | usize::from(digit) << at);
        let told = |told: &Told| match told {
            Told::Machine(at) => said[*at],
            Told::Number(truths) => truths.get(number).is_some_and(|&truth| truth),
        };
        self.truths.iter().map(told).collect()
    }
}

impl Grown {
    /// The machines that tell the truths of formulas over texts.
    pub(crate) fn asked_texts(&mut self, formulas: &[F]) -> Result<AskedTexts, Error> {
        let listed: Vec<bool> = formulas.iter().map(|&id| self.core.is_listed(id)).collect();
        if listed.iter().filter(|&&listed| listed).count() < MANY {
            let machines: Result<Box<[Asked]>, Error> =
                formulas.iter().map(|&id| self.asked_text(id)).collect();
            return Ok(AskedTexts { machines: machines?, ..AskedTexts::default() });
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
            machines.push(self.asked_text(formula)?);
        }
        let mut truths = Vec::with_capacity(formulas.len());
        for (&id, &listed) in formulas.iter().zip(&listed) {
            truths.push(if listed {
                Told::Number(self.core.listed_truths(id, &texts))
            } else {
                machines.push(self.asked_text(id)?);
                Told::Machine(machines.len() - 1)
            });
        }
        let telling = self.parts.tellings.len() as u32;
        self.parts.tellings.push(Telling { digits, truths: truths.into() });
        Ok(AskedTexts { telling: Some(telling), is_guarded: false, machines: machines.into() })
    }

    fn asked_text(&mut self, id: F) -> Result<Asked, Error> {
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
