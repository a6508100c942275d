//! The declared order of an object's property names.

use rustc_hash::FxHashSet;

use crate::json::property_names::NameId;
use crate::machine::frame::Obligation;
use crate::schema_nodes::{KeywordRule, NodeId};
use crate::solver::context::SolverContext;

/// Collects the names that nodes declare.
struct DeclaredNames<'a> {
    core: &'a SolverContext,
    names: Vec<NameId>,
    required: Vec<NameId>,
    visited: FxHashSet<NodeId>,
}

impl Obligation {
    /// Returns the names in the order in which the nodes of the formulas declare them, then the
    /// required ones.
    pub(crate) fn declared_names(&self, core: &SolverContext) -> Vec<NameId> {
        let (names, required, visited) = (Vec::new(), Vec::new(), FxHashSet::default());
        let mut declared = DeclaredNames { core, names, required, visited };
        for node in core.base.formulas.queried_nodes(&self.formulas) {
            declared.visit(node);
        }
        let DeclaredNames { mut names, required, .. } = declared;
        names.extend(required);
        let mut seen = FxHashSet::default();
        names.retain(|&name| seen.insert(name));
        names
    }
}

impl DeclaredNames<'_> {
    fn visit(&mut self, node: NodeId) {
        if !self.visited.insert(node) {
            return;
        }
        let rules = &self.core.base.schema.node(node).rules;
        for rule in rules.iter() {
            match rule {
                KeywordRule::Properties(list) => {
                    self.names.extend(
                        list.iter().filter_map(|(which, _)| which.names.as_ref()).flatten(),
                    );
                }
                KeywordRule::Required(list) => self.required.extend(list),
                _ => {}
            }
        }
        for rule in rules.iter() {
            match rule {
                KeywordRule::AllOf(nodes)
                | KeywordRule::AnyOf(nodes)
                | KeywordRule::OneOf(nodes) => nodes.iter().for_each(|&node| self.visit(node)),
                KeywordRule::If { condition, then, otherwise: other } => {
                    let nodes = [Some(*condition), *then, *other];
                    nodes.into_iter().flatten().for_each(|node| self.visit(node));
                }
                KeywordRule::DependentSchema(_, node) => self.visit(*node),
                _ => {}
            }
        }
    }
}
