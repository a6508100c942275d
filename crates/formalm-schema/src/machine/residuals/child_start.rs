//! Splits the obligation of a container when a child begins.
//!
//! What only the child can fulfill becomes its own obligation. About the rest the container asks
//! queries, whose verdicts replace these statements when the child closes.

use formalm_core::{CompactMap, Error};

use crate::formula::{FALSE, Formula, FormulaArena, FormulaAtom, FormulaId, TRUE};
use crate::machine::frame::Obligation;
use crate::schema_nodes::{JsonType, NodeId};
use crate::solver::RemainingContainer;
use crate::solver::context::SolverContext;

impl Obligation {
    /// Moves the conjuncts that only concern the child out of the container. Returns the container,
    /// the child's part, and their total.
    pub(crate) fn split(self, core: &mut SolverContext) -> (Obligation, FormulaId, FormulaId) {
        let (mut must, mut kept) = (Vec::new(), Vec::new());
        for part in core.base.formulas.conjuncts(self.formulas[0]) {
            let moves = core.base.formulas.has_child(part) && !core.base.formulas.has_atom(part);
            if moves { must.push(part) } else { kept.push(part) }
        }
        let must = core.base.formulas.and(must);
        let mut container = self;
        container.formulas[0] = core.base.formulas.and(kept);
        let total = container.total(core);
        (container, must, total)
    }

    /// Returns `true` if a child can be read.
    pub(crate) fn child_viable(
        self,
        core: &mut SolverContext,
        rest: RemainingContainer<'_>,
    ) -> Result<bool, Error> {
        let (_, must, total) = self.split(core);
        let all = core.base.formulas.both(total, must);
        rest.fits_with_child(core, all)
    }
}

/// The obligations of a container and of its new child.
pub(crate) struct ChildStart {
    pub(crate) container: Obligation,
    pub(crate) child: Obligation,
}

impl ChildStart {
    /// Splits an obligation between container and child, `None` if no child can be read.
    pub(crate) fn new(
        obligation: Obligation,
        core: &mut SolverContext,
        rest: RemainingContainer<'_>,
    ) -> Result<Option<ChildStart>, Error> {
        let viable = obligation.clone().child_viable(core, rest)?;
        if viable { ChildStart::of_viable(obligation, core, rest).map(Some) } else { Ok(None) }
    }

    /// Splits an obligation between container and child, given that a child can be read.
    pub(crate) fn of_viable(
        obligation: Obligation,
        core: &mut SolverContext,
        rest: RemainingContainer<'_>,
    ) -> Result<ChildStart, Error> {
        let (mut container, must, _) = obligation.split(core);
        let implied = ImpliedVerdicts::new(&core.base.formulas, must);
        for one in &mut container.formulas {
            *one = implied.substitute(&mut core.base.formulas, *one);
        }
        let total = container.total(core);
        let is_repeated = rest.json_type == JsonType::Array
            && EqualItemSearch::new(&core.base.formulas).may_need(total);
        let asks = container.formulas.iter().any(|&one| core.base.formulas.has_child(one));
        let child = Obligation { formulas: [must].into(), queries: [].into(), goal: TRUE };
        let mut start = ChildStart { container, child };
        if asks || is_repeated {
            let goal = rest.project_to_child(core, total, must)?;
            start.move_queries_to_child(&mut core.base.formulas, goal);
        }
        Ok(start)
    }

    /// Makes implied verdicts obligations of the child, so that they need no query.
    fn move_queries_to_child(&mut self, formulas: &mut FormulaArena, mut goal: FormulaId) {
        let ChildStart { container, child } = self;
        let implied = ImpliedVerdicts::new(formulas, goal);
        for one in container.formulas.iter_mut().chain([&mut goal]) {
            *one = implied.substitute(formulas, *one);
        }
        let mut must = implied.literals;
        must.push(child.formulas[0]);
        let queries = formulas.queried_nodes(&container.formulas);
        // The goal may mention nodes that the container does not ask about.
        if formulas.queried_nodes(&[goal]).iter().any(|node| queries.binary_search(node).is_err()) {
            must.push(std::mem::replace(&mut goal, TRUE));
        }
        let mut all = vec![formulas.and(must)];
        all.extend(queries.iter().map(|&node| formulas.child(node)));
        *child = Obligation { formulas: all.into(), queries: queries.into(), goal };
    }
}

/// The verdicts that a conjunction of statements about a child implies.
struct ImpliedVerdicts {
    nodes: Vec<NodeId>,
    verdicts: Vec<FormulaId>,
    /// The literals that imply the verdicts.
    literals: Vec<FormulaId>,
}

impl ImpliedVerdicts {
    fn new(formulas: &FormulaArena, id: FormulaId) -> ImpliedVerdicts {
        let mut literals: Vec<(NodeId, FormulaId, FormulaId)> = Vec::new();
        for part in formulas.conjuncts(id) {
            match *formulas.get(part) {
                Formula::Child(node) => literals.push((node, TRUE, part)),
                Formula::Not(inner) => {
                    if let Formula::Child(node) = *formulas.get(inner) {
                        literals.push((node, FALSE, part));
                    }
                }
                _ => {}
            }
        }
        literals.sort_unstable();
        ImpliedVerdicts {
            nodes: literals.iter().map(|one| one.0).collect(),
            verdicts: literals.iter().map(|one| one.1).collect(),
            literals: literals.into_iter().map(|one| one.2).collect(),
        }
    }

    /// Substitutes the verdicts into a formula.
    fn substitute(&self, formulas: &mut FormulaArena, id: FormulaId) -> FormulaId {
        formulas.substitute_verdicts(id, &self.nodes, &self.verdicts)
    }
}

/// Looks for statements that require two items to be equal.
struct EqualItemSearch<'a> {
    formulas: &'a FormulaArena,
    known: CompactMap<FormulaId, bool>,
}

impl<'a> EqualItemSearch<'a> {
    fn new(formulas: &'a FormulaArena) -> EqualItemSearch<'a> {
        EqualItemSearch { formulas, known: CompactMap::default() }
    }

    /// Returns `true` if a later item may have to equal the one being read.
    fn may_need(&mut self, id: FormulaId) -> bool {
        let formulas = self.formulas;
        let is_small = formulas.is_small(id);
        if !is_small && let Some(&known) = self.known.get(&id) {
            return known;
        }
        let may_be = match formulas.get(id) {
            Formula::Not(inner) => {
                matches!(formulas.get(*inner), Formula::Atom(FormulaAtom::UniqueWithCurrent(_)))
                    || matches!(formulas.get(*inner), Formula::ExactlyOne(_))
                        && self.may_need(*inner)
            }
            Formula::And(list) | Formula::Or(list) => list.iter().any(|&one| self.may_need(one)),
            Formula::ExactlyOne(list) => {
                formulas.any_atom(list, |atom| matches!(atom, FormulaAtom::UniqueWithCurrent(_)))
            }
            _ => false,
        };
        if !is_small {
            self.known.insert(id, may_be);
        }
        may_be
    }
}
