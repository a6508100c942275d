//! Derivatives of obligations by a property name, an item, or the end of a child.
//!
//! ```text
//! ∂ₙ properties(rules)   =  properties(rules without n)  ∧  child ⊨ rules(n)
//! ∂ₙ required(N)         =  required(N \ {n})
//! ∂  contains(k, S)      =  (child ⊨ S ∧ contains(k−1, S)) ∨ (child ⊭ S ∧ contains(k, S))
//! ```
//!
//! The child appears as the statement that it satisfies a node. What only the child can fulfill
//! becomes its own obligation, see [`super::child_start`].

use formalm_core::{CompactMap, Error};

use crate::formula::{FALSE, Formula, FormulaArena, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::json::interned_values::ValueId;
use crate::json::property_names::NameId;
use crate::machine::frame::Obligation;
use crate::schema_nodes::NodeId;
use crate::solver::context::SolverContext;

impl Obligation {
    /// Returns the whole obligation as one formula, including the goal over the queries.
    pub(crate) fn total(&self, core: &mut SolverContext) -> FormulaId {
        let goal =
            core.base.formulas.substitute_verdicts(self.goal, &self.queries, &self.formulas[1..]);
        core.base.formulas.both(goal, self.formulas[0])
    }

    /// Returns the obligation after a property of this name has begun.
    pub(crate) fn after_name(
        &self,
        core: &mut SolverContext,
        name: NameId,
    ) -> Result<Obligation, Error> {
        let mut derivative = Derivative::new(core, ContainerPart::Name(name));
        self.map_formulas(|id| {
            // Conjuncts are kept unchanged: they hold anyway, and many states share them.
            derivative.certain = derivative.core.base.formulas.conjuncts(id);
            derivative.of(id)
        })
    }

    /// Returns the obligation after an item has begun.
    pub(crate) fn after_item(&self, core: &mut SolverContext) -> Result<Obligation, Error> {
        let mut derivative = Derivative::new(core, ContainerPart::Item);
        self.map_formulas(|id| derivative.of(id))
    }

    /// Returns the obligation of a container once its child has closed with these verdicts on
    /// `queries`. `value` is the value of the child, if items must be unique.
    pub(crate) fn after_child(
        &self,
        core: &mut SolverContext,
        (queries, verdicts): (&[NodeId], &[bool]),
        value: Option<ValueId>,
    ) -> Result<Obligation, Error> {
        let verdicts: Vec<FormulaId> =
            verdicts.iter().map(|&verdict| FormulaArena::constant(verdict)).collect();
        let mut derivative = Derivative::new(core, ContainerPart::ChildEnd(value));
        self.map_formulas(|id| {
            let id = derivative.core.base.formulas.substitute_verdicts(id, queries, &verdicts);
            derivative.of(id)
        })
    }

    /// Replaces each formula.
    fn map_formulas(
        &self,
        new: impl FnMut(FormulaId) -> Result<FormulaId, Error>,
    ) -> Result<Obligation, Error> {
        let formulas: Result<Vec<FormulaId>, Error> =
            self.formulas.iter().copied().map(new).collect();
        Ok(Obligation { formulas: formulas?.into(), ..self.clone() })
    }

    /// Returns `true` if items have to be remembered.
    pub(crate) fn requires_unique_items(&self, formulas: &FormulaArena) -> bool {
        self.formulas.iter().any(|&id| {
            let is_unique = |atom: &FormulaAtom| {
                matches!(atom, FormulaAtom::UniqueItems(_) | FormulaAtom::UniqueWithCurrent(_))
            };
            formulas.any_atom(&[id], is_unique)
        })
    }
}

/// Number of operands from which on it is looked up which of them a name changes. Chosen, not
/// measured.
const MIN_OPERANDS: usize = 8;

/// The part of a container that a derivative is taken by.
#[derive(Clone, Copy)]
enum ContainerPart {
    Name(NameId),
    Item,
    /// The end of a child, with its value if items must be unique.
    ChildEnd(Option<ValueId>),
}

/// The derivative of formulas by one part of a container.
struct Derivative<'a> {
    core: &'a mut SolverContext,
    part: ContainerPart,
    /// The conjuncts of the formula at hand, if the part is a name.
    certain: Vec<FormulaId>,
    known: CompactMap<FormulaId, FormulaId>,
}

impl<'a> Derivative<'a> {
    fn new(core: &'a mut SolverContext, part: ContainerPart) -> Derivative<'a> {
        Derivative { core, part, certain: Vec::new(), known: CompactMap::default() }
    }

    /// Returns the derivative of a formula.
    fn of(&mut self, id: FormulaId) -> Result<FormulaId, Error> {
        if let ContainerPart::ChildEnd(_) = self.part
            && !self.core.base.formulas.compares_items(id)
        {
            return Ok(id);
        }
        if let Some(&new) = self.known.get(&id) {
            return Ok(new);
        }
        let new = match self.core.base.formulas.get(id).clone() {
            Formula::Atom(atom) => self.of_atom(atom, id)?,
            Formula::Not(inner) => {
                let inner = self.of(inner)?;
                self.core.base.formulas.not(inner)
            }
            Formula::And(list) => match self.of_all_unless(&list, FALSE)? {
                Some(list) => self.core.base.formulas.and(list),
                None => FALSE,
            },
            Formula::Or(list) => match self.of_all_unless(&list, TRUE)? {
                Some(list) => self.core.base.formulas.or(list),
                None => TRUE,
            },
            Formula::ExactlyOne(list) => {
                let list: Result<Vec<FormulaId>, Error> =
                    list.iter().map(|&one| self.of(one)).collect();
                self.core.base.formulas.exactly_one(list?)
            }
            Formula::False | Formula::True | Formula::Child(_) => id,
        };
        self.known.insert(id, new);
        Ok(new)
    }

    /// Returns the derivatives of formulas; `None` as soon as one becomes `decides`, which
    /// determines the result.
    fn of_all_unless(
        &mut self,
        list: &[FormulaId],
        decides: FormulaId,
    ) -> Result<Option<Vec<FormulaId>>, Error> {
        let mut new = Vec::with_capacity(list.len());
        let name = match self.part {
            ContainerPart::Name(name) if list.len() >= MIN_OPERANDS => Some(name),
            _ => None,
        };
        for &one in list {
            let known =
                name.and_then(|name| self.core.base.name_mentions(one).after_other_name(one, name));
            debug_assert!(
                known.is_none_or(|known| self.of(one).is_ok_and(|after| after == known)),
                "a name changes {one:?}"
            );
            let one = match known {
                Some(known) => known,
                None => self.of(one)?,
            };
            if one == decides {
                return Ok(None);
            }
            new.push(one);
        }
        Ok(Some(new))
    }

    /// Returns the derivative of an atom, whose formula is `leaf`.
    fn of_atom(&mut self, atom: FormulaAtom, leaf: FormulaId) -> Result<FormulaId, Error> {
        match (self.part, atom) {
            (ContainerPart::Name(name), atom) => {
                let is_certain = self.certain.binary_search(&leaf).is_ok();
                self.atom_after_name(atom, leaf, name, is_certain)
            }
            (ContainerPart::Item, atom) => Ok(self.atom_after_item(atom)),
            (ContainerPart::ChildEnd(value), FormulaAtom::UniqueWithCurrent(taken)) => {
                let mut taken = taken.to_vec();
                taken.extend(value);
                taken.sort_unstable();
                taken.dedup();
                Ok(self.core.base.formulas.atom(FormulaAtom::UniqueItems(taken.into())))
            }
            (ContainerPart::ChildEnd(_), _) => Ok(leaf),
        }
    }

    /// Returns the derivative of an atom by a property name.
    fn atom_after_name(
        &mut self,
        atom: FormulaAtom,
        leaf: FormulaId,
        name: NameId,
        is_certain: bool,
    ) -> Result<FormulaId, Error> {
        Ok(match atom {
            FormulaAtom::Properties(rules) => {
                let value =
                    self.core.languages.rules_for_name(&mut self.core.base, &rules, name)?;
                let rest = if is_certain { leaf } else { self.rules_except(&rules, leaf, name) };
                self.core.base.formulas.both(rest, value)
            }
            FormulaAtom::Required(names) => self
                .core
                .base
                .formulas
                .required(names.iter().copied().filter(|&one| one != name).collect()),
            FormulaAtom::MinProperties(count) if count > 1 => {
                self.core.base.formulas.atom(FormulaAtom::MinProperties(count - 1))
            }
            FormulaAtom::MinProperties(_) => TRUE,
            FormulaAtom::PropertyNames(names) => {
                if self.core.languages.contains_name(&self.core.base, names, name)? {
                    leaf
                } else {
                    FALSE
                }
            }
            _ => leaf,
        })
    }

    /// Returns the rules about all properties except one that was read.
    fn rules_except(
        &mut self,
        rules: &[(NameSelector, NodeId)],
        leaf: FormulaId,
        name: NameId,
    ) -> FormulaId {
        let mentions = |which: &NameSelector| {
            which.names.as_ref().is_some_and(|names| names.binary_search(&name).is_ok())
        };
        if !rules.iter().any(|(which, _)| mentions(which)) {
            return leaf;
        }
        let mut left = Vec::with_capacity(rules.len());
        for (which, node) in rules {
            if !mentions(which) {
                left.push((which.clone(), *node));
            } else if which.names.as_ref().is_some_and(|names| names.len() > 1) {
                left.push((which.without(name), *node));
            }
        }
        if left.is_empty() {
            TRUE
        } else {
            self.core.base.formulas.atom(FormulaAtom::Properties(left.into()))
        }
    }

    /// Returns the derivative of an atom by an item.
    fn atom_after_item(&mut self, atom: FormulaAtom) -> FormulaId {
        match atom {
            FormulaAtom::Items(ranges, read) => {
                let item = self.core.base.item_formula_at(&ranges, u64::from(read));
                let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                let last = edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0);
                let endless = ranges.iter().any(|range| range.1 == u32::MAX);
                let read = (read + 1).min(last);
                if read == last && !endless {
                    return item;
                }
                let rest = self.core.base.formulas.atom(FormulaAtom::Items(ranges, read));
                self.core.base.formulas.both(rest, item)
            }
            FormulaAtom::MinItems(count) if count > 1 => {
                self.core.base.formulas.atom(FormulaAtom::MinItems(count - 1))
            }
            FormulaAtom::MinItems(_) => TRUE,
            FormulaAtom::Contains(count, node) => {
                let counted = self.core.base.child(node);
                let other = self.core.base.formulas.not(counted);
                let same = self.core.base.formulas.atom(FormulaAtom::Contains(count, node));
                let fewer = match count {
                    1 => TRUE,
                    _ => self.core.base.formulas.atom(FormulaAtom::Contains(count - 1, node)),
                };
                let (yes, no) = (
                    self.core.base.formulas.both(counted, fewer),
                    self.core.base.formulas.both(other, same),
                );
                self.core.base.formulas.or(vec![yes, no])
            }
            FormulaAtom::UniqueItems(taken) => {
                let rest =
                    self.core.base.formulas.atom(FormulaAtom::UniqueWithCurrent(taken.clone()));
                if taken.is_empty() {
                    return rest;
                }
                let node = self.core.base.schema.node_for_values(&taken);
                let repeated = self.core.base.child(node);
                let other = self.core.base.formulas.not(repeated);
                self.core.base.formulas.both(other, rest)
            }
            other => self.core.base.formulas.atom(other),
        }
    }
}
