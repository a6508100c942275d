//! What the world outside asks of a child.

use formalm_automata::Error;
use rustc_hash::FxHashSet;

use crate::core::Core;
use crate::formula::{F, FALSE, Form, TRUE};
use crate::names::NameId;
use crate::node::Type;

/// The rest of the object or array that a child belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a> {
    pub(crate) of: Type,
    /// Names that cannot be used any more.
    pub(crate) gone: &'a [NameId],
}

impl Core {
    /// Whether a value of the rest satisfies a formula without children.
    pub(crate) fn some_rest(&mut self, id: F, rest: Rest<'_>) -> Result<bool, Error> {
        match rest.of {
            Type::Object => self.some_object(id, rest.gone),
            _ => self.some_array(id),
        }
    }

    fn literals_fit(&mut self, literals: &[F], rest: Rest<'_>) -> Result<bool, Error> {
        match rest.of {
            Type::Object => self.object_fits(literals, rest.gone),
            _ => self.array_fits(literals),
        }
    }

    /// The formula over children that says that the rest can be completed.
    pub(crate) fn project(&mut self, id: F, rest: Rest<'_>) -> Result<F, Error> {
        if !self.formulas.has_child(id) {
            return Ok(if self.some_rest(id, rest)? { TRUE } else { FALSE });
        }
        if !self.formulas.has_atom(id) {
            return Ok(id);
        }
        let (mut pure, mut mixed) = (Vec::new(), Vec::new());
        for part in self.formulas.conjuncts(id) {
            if self.formulas.has_atom(part) { mixed.push(part) } else { pure.push(part) }
        }
        let mixed = self.formulas.and(mixed);
        if !self.formulas.has_child(mixed) {
            if !self.some_rest(mixed, rest)? {
                return Ok(FALSE);
            }
            return Ok(self.formulas.and(pure));
        }
        if let Form::Or(list) = self.formulas.get(mixed).clone() {
            let mut ways = Vec::with_capacity(list.len());
            for &one in &list {
                ways.push(self.project(one, rest)?);
            }
            pure.push(self.formulas.or(ways));
            return Ok(self.formulas.and(pure));
        }
        let mut ways: Vec<F> = Vec::new();
        let mut seen: FxHashSet<Vec<F>> = FxHashSet::default();
        self.implicants(mixed, &mut |_, _| Ok(true), &mut |core, literals| {
            let (children, atoms): (Vec<F>, Vec<F>) =
                literals.iter().partition(|&&one| core.formulas.has_child(one));
            if !seen.contains(&children) && core.literals_fit(&atoms, rest)? {
                ways.push(core.formulas.and(children.clone()));
                seen.insert(children);
            }
            Ok(false)
        })?;
        pure.push(self.formulas.or(ways));
        Ok(self.formulas.and(pure))
    }

    /// Whether some child and some rest satisfy a formula together.
    pub(crate) fn some_child_and_rest(&mut self, id: F, rest: Rest<'_>) -> Result<bool, Error> {
        let (mut pure, mut apart, mut mixed) = (Vec::new(), Vec::new(), Vec::new());
        for part in self.formulas.conjuncts(id) {
            match (self.formulas.has_child(part), self.formulas.has_atom(part)) {
                (true, false) => pure.push(part),
                (true, true) => mixed.push(part),
                _ => apart.push(part),
            }
        }
        let pure = self.formulas.and(pure);
        if mixed.is_empty() {
            let apart = self.formulas.and(apart);
            return Ok(self.some_value(pure)? && self.some_rest(apart, rest)?);
        }
        let fits = |core: &mut Core, literals: &[F]| {
            let children = literals.iter().copied().filter(|&one| core.formulas.has_child(one));
            let mut children: Vec<F> = children.collect();
            children.push(pure);
            let children = core.formulas.and(children);
            core.some_value(children)
        };
        mixed.extend(apart);
        let mixed = self.formulas.and(mixed);
        self.implicants(mixed, &mut { fits }, &mut |core, literals| {
            if !fits(core, literals)? {
                return Ok(false);
            }
            let atoms = literals.iter().copied().filter(|&one| !core.formulas.has_child(one));
            let atoms: Vec<F> = atoms.collect();
            core.literals_fit(&atoms, rest)
        })
    }
}
