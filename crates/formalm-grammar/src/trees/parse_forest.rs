//! Counting the trees of a chart, and choosing one of them.
//!
//! Nodes and items form a graph: a node has its completed items, an item has its predecessors and
//! the symbols between. A cyclic component has infinitely many trees. In such a component each
//! vertex gets a *rank* that is greater for a node than for its children, and following decreasing
//! ranks leads out of the cycle.

use formalm_core::Error;
use num_bigint::BigUint;
use num_traits::{One, Zero};

use super::earley_chart::{ChartChild, EarleyChart, NO_LINK};
use super::earley_productions::StepBudget;

/// A vertex of the forest: nodes first, then items.
type Vertex = u32;

/// The part of a chart below one node.
#[derive(Debug)]
pub(super) struct ParseForest<'a> {
    pub(super) chart: &'a EarleyChart<'a>,
    pub(super) root: u32,
    /// Number of trees by vertex; `None` if infinite.
    tree_counts: Vec<Option<BigUint>>,
    /// Rank by vertex within a cyclic component; zero elsewhere.
    ranks: Vec<u32>,
    /// Component by vertex.
    components: Vec<u32>,
}

const UNSEEN: u32 = u32::MAX;

impl<'a> ParseForest<'a> {
    pub(super) fn new(
        chart: &'a EarleyChart<'a>,
        root: u32,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<ParseForest<'a>, Error> {
        let size = chart.nodes.len() + chart.items.len();
        let mut forest = ParseForest {
            chart,
            root,
            tree_counts: vec![Some(BigUint::zero()); size],
            ranks: vec![0; size],
            components: vec![UNSEEN; size],
        };
        forest.find_components(root, steps)?;
        Ok(forest)
    }

    /// Returns the number of trees below a node.
    pub(super) fn tree_counts(&self, node: u32) -> Option<&BigUint> {
        self.tree_counts[node as usize].as_ref()
    }

    fn item(&self, item: u32) -> Vertex {
        self.chart.nodes.len() as u32 + item
    }

    /// Returns the alternatives of a vertex, each a product of up to two vertices. The start of a
    /// production has one empty product.
    fn alternatives(&self, vertex: Vertex) -> Vec<[Option<Vertex>; 2]> {
        let nodes = self.chart.nodes.len() as u32;
        if vertex < nodes {
            let items = self.chart.nodes[vertex as usize].items.iter();
            return items.map(|&item| [Some(self.item(item)), None]).collect();
        }
        if self.chart.items[(vertex - nodes) as usize].back_pointer == NO_LINK {
            return vec![[None, None]];
        }
        let back_pointers = self.chart.back_pointers(vertex - nodes);
        let child = |child| match child {
            ChartChild::Node(node) => Some(node),
            ChartChild::Lexeme(_) => None,
        };
        back_pointers.map(|one| [Some(self.item(one.before)), child(one.child)]).collect()
    }

    /// Visits everything below the root, and solves each strongly connected component after those
    /// below it (Tarjan's algorithm).
    fn find_components(
        &mut self,
        root: Vertex,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<(), Error> {
        struct Visit {
            vertex: Vertex,
            to: Vec<Vertex>,
            next: usize,
        }
        let size = self.components.len();
        let (mut order, mut low) = (vec![0u32; size], vec![0u32; size]);
        let (mut count, mut parts) = (0, 0);
        let mut open: Vec<Vertex> = Vec::new();
        let visit = |forest: &ParseForest<'_>, vertex| Visit {
            vertex,
            to: forest.alternatives(vertex).into_iter().flatten().flatten().collect(),
            next: 0,
        };
        let mut path = vec![visit(self, root)];
        while let Some(top) = path.last_mut() {
            let here = top.vertex as usize;
            if top.next == 0 && order[here] == 0 {
                count += 1;
                (order[here], low[here]) = (count, count);
                open.push(top.vertex);
                steps.spend(1 + top.to.len())?;
            }
            if let Some(&to) = top.to.get(top.next) {
                top.next += 1;
                if order[to as usize] == 0 {
                    let next = visit(self, to);
                    path.push(next);
                } else if self.components[to as usize] == UNSEEN {
                    low[here] = low[here].min(order[to as usize]);
                }
                continue;
            }
            path.pop();
            if let Some(above) = path.last() {
                let above = above.vertex as usize;
                low[above] = low[above].min(low[here]);
            }
            if low[here] == order[here] {
                let from = open.iter().rposition(|&one| one as usize == here).unwrap_or(0);
                let members = open.split_off(from);
                for &one in &members {
                    self.components[one as usize] = parts;
                }
                parts += 1;
                self.count_component(&members, steps)?;
            }
        }
        Ok(())
    }

    fn count_component(
        &mut self,
        members: &[Vertex],
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<(), Error> {
        let component = self.components[members[0] as usize];
        let in_component =
            |forest: &ParseForest<'_>, one: Vertex| forest.components[one as usize] == component;
        let all = |forest: &ParseForest<'_>, vertex| {
            forest.alternatives(vertex).into_iter().flatten().flatten()
        };
        let is_cycle =
            members.len() > 1 || all(self, members[0]).any(|one| in_component(self, one));
        if !is_cycle {
            let vertex = members[0];
            self.tree_counts[vertex as usize] = self.count_trees(vertex);
            return Ok(());
        }
        for &one in members {
            self.tree_counts[one as usize] = None;
            self.ranks[one as usize] = UNSEEN;
        }
        // Minimal ranks: a node ranks above its best item, an item as high as the highest vertex of
        // its best alternative.
        let mut changed = true;
        while changed {
            changed = false;
            for &vertex in members {
                let rank = |one: Vertex| {
                    if in_component(self, one) { self.ranks[one as usize] } else { 0 }
                };
                let alternatives = self.alternatives(vertex);
                steps.spend(1 + alternatives.len())?;
                let best = alternatives
                    .iter()
                    .map(|product| product.iter().flatten().map(|&one| rank(one)).max());
                let best = best.map(|one| one.unwrap_or(0)).min().unwrap_or(UNSEEN);
                let is_node = (vertex as usize) < self.chart.nodes.len();
                let best = best.saturating_add(u32::from(is_node));
                if best < self.ranks[vertex as usize] {
                    self.ranks[vertex as usize] = best;
                    changed = true;
                }
            }
        }
        Ok(())
    }

    fn count_trees(&self, vertex: Vertex) -> Option<BigUint> {
        let mut total = BigUint::zero();
        for alternative in self.alternatives(vertex) {
            let mut product = BigUint::one();
            for &one in alternative.iter().flatten() {
                product *= self.tree_counts[one as usize].as_ref()?;
            }
            total += product;
        }
        Some(total)
    }

    /// Chooses a derivation of a node: the last dot position of its production, and its children.
    /// The first alternative as written wins; among its derivations, the one whose last child
    /// starts last, then the second to last, and so on. Derivations through the node itself are
    /// excluded.
    pub(super) fn choose_derivation(&self, node: u32) -> (u32, Vec<ChartChild>) {
        let bound = self.ranks[node as usize];
        let component = self.components[node as usize];
        let is_cycle = self.tree_counts[node as usize].is_none() && bound > 0;
        let leads_out = |vertex: Vertex| {
            !is_cycle
                || self.components[vertex as usize] != component
                || self.ranks[vertex as usize] < bound
        };
        let items = self.chart.nodes[node as usize].items.iter().copied();
        let items = items.filter(|&item| leads_out(self.item(item)));
        let position = |item: u32| self.chart.items[item as usize].position;
        let at = |item: u32| self.chart.items[item as usize].at;
        // Only the whole input can have several items at one dot position: the longest wins.
        let Some(mut item) =
            items.min_by_key(|&item| (position(item), std::cmp::Reverse(at(item))))
        else {
            return (0, Vec::new());
        };
        let last = position(item);
        let mut children = Vec::new();
        while self.chart.items[item as usize].back_pointer != NO_LINK {
            let back_pointers = self.chart.back_pointers(item);
            let back_pointers = back_pointers.filter(|back_pointer| {
                let child = match back_pointer.child {
                    ChartChild::Node(node) => leads_out(node),
                    ChartChild::Lexeme(_) => true,
                };
                child && leads_out(self.item(back_pointer.before))
            });
            let Some(back_pointer) = back_pointers.max_by_key(|back_pointer| {
                (at(back_pointer.before), self.start_of(back_pointer.child))
            }) else {
                break;
            };
            children.push(back_pointer.child);
            item = back_pointer.before;
        }
        children.reverse();
        (last, children)
    }

    /// Returns the start of a lexeme; lexemes of one terminal may start after different ignored
    /// input.
    fn start_of(&self, child: ChartChild) -> usize {
        match child {
            ChartChild::Lexeme(lexeme) => self.chart.lexemes[lexeme as usize].start,
            ChartChild::Node(_) => 0,
        }
    }
}
