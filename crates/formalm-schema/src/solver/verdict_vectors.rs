//! Verdict vectors: the combinations of truth values of some nodes that a single value can have.

use std::collections::BTreeSet;

use formalm_core::Error;

use crate::formula::{FALSE, FormulaArena, FormulaAtom, FormulaId, TRUE};
use crate::json::decimal::Decimal;
use crate::schema_nodes::{JsonType, NodeId};
use crate::solver::child_goals::RemainingContainer;
use crate::solver::context::SolverContext;
use crate::solver::formula_base::FormulaBase;
use crate::solver::numbers::number_cells::NumberCells;

/// Maximum number of truth values that are computed; more are left to the search. Chosen, not
/// measured.
const MAX_VERDICTS: usize = 1 << 20;

/// All vectors of verdicts that values can have, in the order of the queried nodes.
type VectorSet = BTreeSet<Box<[bool]>>;

/// The verdict vectors of the values that satisfy a formula.
struct VerdictVectors(VectorSet);

impl VerdictVectors {
    /// Returns the verdict vectors of the values that satisfy a formula over the child; `None` if
    /// finding them takes a search.
    fn of_values(
        solver: &mut SolverContext,
        nodes: &[NodeId],
        known: FormulaId,
    ) -> Result<Option<VerdictVectors>, Error> {
        let mut vectors = VectorSet::new();
        for ty in JsonType::ALL {
            let known = solver.formula_for_type(known, ty)?;
            if known == FALSE {
                continue;
            }
            let mut queries = Vec::with_capacity(nodes.len());
            for &node in nodes {
                queries.push(solver.expand(node, ty)?);
            }
            let is_constant = queries.iter().all(|&one| one == TRUE || one == FALSE);
            let found = match ty {
                _ if is_constant => solver
                    .has_value_of_type(known, ty)?
                    .then(|| queries.iter().map(|&one| one == TRUE).collect())
                    .into_iter()
                    .collect::<VectorSet>(),
                JsonType::Null => [queries.iter().map(|&one| one == TRUE).collect()].into(),
                JsonType::Bool => {
                    let verdicts = [true, false].into_iter();
                    let verdicts = verdicts
                        .filter(|&verdict| solver.base.formulas.holds_for_boolean(known, verdict));
                    verdicts
                        .map(|verdict| {
                            queries
                                .iter()
                                .map(|&one| solver.base.formulas.holds_for_boolean(one, verdict))
                                .collect()
                        })
                        .collect()
                }
                JsonType::Number => {
                    match VerdictVectors::of_numbers(&solver.base.formulas, &queries, known) {
                        Some(vectors) => vectors,
                        None => return Ok(None),
                    }
                }
                JsonType::String => match VerdictVectors::of_strings(&solver.base, &queries, known)
                {
                    Some(vectors) => vectors,
                    None => return Ok(None),
                },
                JsonType::Array | JsonType::Object => return Ok(None),
            };
            vectors.extend(found);
        }
        Ok(Some(VerdictVectors(vectors)))
    }

    /// Returns the verdict vectors of numbers; `None` if multiples other than of 1 occur, or there
    /// are too many.
    fn of_numbers(
        formulas: &FormulaArena,
        queries: &[FormulaId],
        known: FormulaId,
    ) -> Option<VectorSet> {
        let mut ends = Vec::new();
        let one = Decimal::from_integer(1);
        for atom in formulas.atoms_of(&[queries, &[known]].concat()) {
            match atom {
                FormulaAtom::AtLeast(at)
                | FormulaAtom::GreaterThan(at)
                | FormulaAtom::EqualTo(at) => ends.push(at.clone()),
                FormulaAtom::MultipleOf(unit) if *unit == one => {}
                _ => return None,
            }
        }
        ends.sort_unstable();
        ends.dedup();
        if ends.len().saturating_mul(4 * queries.len()) > MAX_VERDICTS {
            return None;
        }
        let mut vectors = VectorSet::new();
        for integers in [false, true] {
            let cells = NumberCells::for_integers_or_others(ends.clone(), integers);
            let known = cells.satisfying(formulas, &[known], false);
            let columns: Vec<Vec<bool>> =
                queries.iter().map(|&one| cells.satisfying(formulas, &[one], false)).collect();
            for at in (0..known.len()).filter(|&at| known[at]) {
                let has_any = match at % 2 {
                    0 => {
                        !integers
                            || has_integer(
                                at.checked_sub(2).map(|_| &ends[at / 2 - 1]),
                                ends.get(at / 2),
                            )
                    }
                    _ => ends[at / 2].is_integer() == integers,
                };
                if has_any {
                    vectors.insert(columns.iter().map(|column| column[at]).collect());
                }
            }
        }
        Some(vectors)
    }

    /// Returns the verdict vectors of strings; `None` unless all languages are enumerations.
    fn of_strings(
        base: &FormulaBase,
        queries: &[FormulaId],
        known: FormulaId,
    ) -> Option<VectorSet> {
        let mut strings: BTreeSet<&str> = BTreeSet::new();
        for atom in base.formulas.atoms_of(&[queries, &[known]].concat()) {
            let FormulaAtom::InLanguage(regex) = atom else { return None };
            strings.extend(base.schema.enum_strings.get(regex)?.iter().map(String::as_str));
        }
        if strings.len().saturating_mul(queries.len()) > MAX_VERDICTS {
            return None;
        }
        let strings: Vec<&str> = strings.into_iter().collect();
        let columns: Vec<_> =
            queries.iter().map(|&one| base.enum_verdicts(one, &strings)).collect();
        let known = base.enum_verdicts(known, &strings);
        let all = (0..known.len()).filter(|&at| known[at]);
        Some(all.map(|at| columns.iter().map(|column| column[at]).collect()).collect())
    }
}

impl RemainingContainer<'_> {
    /// Returns the result of [`RemainingContainer::split_by_verdicts`] if the verdict vectors are known
    /// without a search: the formula over the child with which the rest can be completed. With
    /// `any` it is a constant.
    pub(super) fn split_by_vectors(
        self,
        solver: &mut SolverContext,
        id: FormulaId,
        known: FormulaId,
        any: bool,
    ) -> Result<Option<FormulaId>, Error> {
        let nodes = solver.base.formulas.queried_nodes(&[id]);
        let Some(vectors) = VerdictVectors::of_values(solver, &nodes, known)? else {
            return Ok(None);
        };
        let mut decisions: Vec<(Box<[bool]>, bool)> = Vec::with_capacity(vectors.0.len());
        for vector in vectors.0 {
            solver.base.count_step()?;
            let verdicts: Vec<FormulaId> =
                vector.iter().map(|&verdict| FormulaArena::constant(verdict)).collect();
            let left = solver.base.formulas.substitute_verdicts(id, &nodes, &verdicts);
            let known = match self.json_type {
                JsonType::Array => with_verdicts(&mut solver.base.formulas, known, &nodes, &vector),
                _ => known,
            };
            let is_completable = match self.goal(solver, left, known)? {
                TRUE => true,
                FALSE => false,
                // The verdicts do not say which children satisfy the goal.
                _ => return Ok(None),
            };
            if any && is_completable {
                return Ok(Some(TRUE));
            }
            decisions.push((vector, is_completable));
        }
        Ok(Some(if any {
            FALSE
        } else {
            verdict_formula(&mut solver.base.formulas, &nodes, 0, &decisions)
        }))
    }
}

/// Returns what a child is known to satisfy, and these verdicts.
fn with_verdicts(
    formulas: &mut FormulaArena,
    known: FormulaId,
    nodes: &[NodeId],
    verdicts: &[bool],
) -> FormulaId {
    let mut all = vec![known];
    for (&node, &verdict) in nodes.iter().zip(verdicts) {
        let child = formulas.child(node);
        all.push(if verdict { child } else { formulas.not(child) });
    }
    formulas.and(all)
}

/// Returns a formula that separates good vectors from bad ones. `decisions` is sorted, and its
/// vectors agree before index `from`.
fn verdict_formula(
    formulas: &mut FormulaArena,
    nodes: &[NodeId],
    from: usize,
    decisions: &[(Box<[bool]>, bool)],
) -> FormulaId {
    match decisions {
        [] => return FALSE,
        [(_, first), rest @ ..] if rest.iter().all(|(_, good)| good == first) => {
            return FormulaArena::constant(*first);
        }
        _ => {}
    }
    for at in from..nodes.len() {
        let split = decisions.partition_point(|(vector, _)| !vector[at]);
        if split == 0 || split == decisions.len() {
            // A verdict that is forced need not be stated.
            continue;
        }
        let without = verdict_formula(formulas, nodes, at + 1, &decisions[..split]);
        let with = verdict_formula(formulas, nodes, at + 1, &decisions[split..]);
        if without == with {
            return with;
        }
        let child = formulas.child(nodes[at]);
        let other = formulas.not(child);
        let (with, without) = (formulas.both(child, with), formulas.both(other, without));
        return formulas.or(vec![with, without]);
    }
    FALSE
}

/// Returns `true` if there is an integer strictly between two numbers.
fn has_integer(low: Option<&Decimal>, high: Option<&Decimal>) -> bool {
    let (Some(low), Some(high)) = (low, high) else { return true };
    let places = low.fraction_digits().max(high.fraction_digits());
    let unit = crate::json::decimal::pow10(places);
    let (low, high) = (low.scaled(places), high.scaled(places));
    let above: num_bigint::BigInt = num_integer::Integer::div_floor(&low, &unit) + 1u32;
    above * unit < high
}
