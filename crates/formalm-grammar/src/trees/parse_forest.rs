//! How many trees a chart holds, and which one is taken.
//!
//! Nodes and items make a graph: a node has the items at the ends of its productions, an item the
//! items before it and what was read between. A part that comes back to itself has no end of
//! trees; there a *rank* says which ways lead out: that of a node is above those of its children.

use formalm_automata::Error;
use num_bigint::BigUint;
use num_traits::{One, Zero};

use super::earley_chart::{Chart, Child, NONE};
use super::earley_productions::Steps;

/// Something of a chart: nodes come first, then items.
type Vertex = u32;

/// The part of a chart below one node.
#[derive(Debug)]
pub(super) struct Forest<'a> {
    pub(super) chart: &'a Chart<'a>,
    pub(super) root: u32,
    /// By vertex: number of ways, `None` without end.
    ways: Vec<Option<BigUint>>,
    /// By vertex: steps to the leaves within a part that comes back to itself; otherwise zero.
    rank: Vec<u32>,
    /// By vertex: which part it is of.
    part: Vec<u32>,
}

const UNSEEN: u32 = u32::MAX;

impl<'a> Forest<'a> {
    pub(super) fn new(
        chart: &'a Chart<'a>,
        root: u32,
        steps: &mut Steps<'_, '_>,
    ) -> Result<Forest<'a>, Error> {
        let size = chart.nodes.len() + chart.items.len();
        let mut forest = Forest {
            chart,
            root,
            ways: vec![Some(BigUint::zero()); size],
            rank: vec![0; size],
            part: vec![UNSEEN; size],
        };
        forest.explore(root, steps)?;
        Ok(forest)
    }

    /// Number of trees below a node.
    pub(super) fn ways(&self, node: u32) -> Option<&BigUint> {
        self.ways[node as usize].as_ref()
    }

    fn item(&self, item: u32) -> Vertex {
        self.chart.nodes.len() as u32 + item
    }

    /// What a vertex is made of: sums of products of others. A beginning of a production has one
    /// product of nothing.
    fn sums(&self, vertex: Vertex) -> Vec<[Option<Vertex>; 2]> {
        let nodes = self.chart.nodes.len() as u32;
        if vertex < nodes {
            let items = self.chart.nodes[vertex as usize].items.iter();
            return items.map(|&item| [Some(self.item(item)), None]).collect();
        }
        if self.chart.items[(vertex - nodes) as usize].link == NONE {
            return vec![[None, None]];
        }
        let links = self.chart.links(vertex - nodes);
        let child = |child| match child {
            Child::Node(node) => Some(node),
            Child::Lexeme(_) => None,
        };
        links.map(|one| [Some(self.item(one.before)), child(one.child)]).collect()
    }

    /// Goes through all below the root, and settles each part that comes back to itself when all
    /// below it is settled (Tarjan's algorithm).
    fn explore(&mut self, root: Vertex, steps: &mut Steps<'_, '_>) -> Result<(), Error> {
        struct Visit {
            vertex: Vertex,
            to: Vec<Vertex>,
            next: usize,
        }
        let size = self.part.len();
        let (mut order, mut low) = (vec![0u32; size], vec![0u32; size]);
        let (mut count, mut parts) = (0, 0);
        let mut open: Vec<Vertex> = Vec::new();
        let visit = |forest: &Forest<'_>, vertex| Visit {
            vertex,
            to: forest.sums(vertex).into_iter().flatten().flatten().collect(),
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
                } else if self.part[to as usize] == UNSEEN {
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
                    self.part[one as usize] = parts;
                }
                parts += 1;
                self.settle(&members, steps)?;
            }
        }
        Ok(())
    }

    fn settle(&mut self, members: &[Vertex], steps: &mut Steps<'_, '_>) -> Result<(), Error> {
        let part = self.part[members[0] as usize];
        let within = |forest: &Forest<'_>, one: Vertex| forest.part[one as usize] == part;
        let all = |forest: &Forest<'_>, vertex| forest.sums(vertex).into_iter().flatten().flatten();
        let is_cycle = members.len() > 1 || all(self, members[0]).any(|one| within(self, one));
        if !is_cycle {
            let vertex = members[0];
            self.ways[vertex as usize] = self.sum(vertex);
            return Ok(());
        }
        for &one in members {
            self.ways[one as usize] = None;
            self.rank[one as usize] = UNSEEN;
        }
        // The least ranks: a node is above its best item, an item as high as the highest of a way.
        let mut changed = true;
        while changed {
            changed = false;
            for &vertex in members {
                let rank =
                    |one: Vertex| if within(self, one) { self.rank[one as usize] } else { 0 };
                let sums = self.sums(vertex);
                steps.spend(1 + sums.len())?;
                let best = sums.iter().map(|sum| sum.iter().flatten().map(|&one| rank(one)).max());
                let best = best.map(|one| one.unwrap_or(0)).min().unwrap_or(UNSEEN);
                let is_node = (vertex as usize) < self.chart.nodes.len();
                let best = best.saturating_add(u32::from(is_node));
                if best < self.rank[vertex as usize] {
                    self.rank[vertex as usize] = best;
                    changed = true;
                }
            }
        }
        Ok(())
    }

    fn sum(&self, vertex: Vertex) -> Option<BigUint> {
        let mut total = BigUint::zero();
        for sum in self.sums(vertex) {
            let mut product = BigUint::one();
            for &one in sum.iter().flatten() {
                product *= self.ways[one as usize].as_ref()?;
            }
            total += product;
        }
        Some(total)
    }

    /// The production that is taken for a node, by its last place, and its children: of the
    /// alternatives the one written first, of its ways the one whose last child begins last, then
    /// the one before. Ways that come back to the node are left out.
    pub(super) fn taken(&self, node: u32) -> (u32, Vec<Child>) {
        let bound = self.rank[node as usize];
        let part = self.part[node as usize];
        let is_cycle = self.ways[node as usize].is_none() && bound > 0;
        let leads_out = |vertex: Vertex| {
            !is_cycle || self.part[vertex as usize] != part || self.rank[vertex as usize] < bound
        };
        let items = self.chart.nodes[node as usize].items.iter().copied();
        let items = items.filter(|&item| leads_out(self.item(item)));
        let place = |item: u32| self.chart.items[item as usize].place;
        let at = |item: u32| self.chart.items[item as usize].at;
        // Several items of one place are of the whole text only: the longest is taken.
        let Some(mut item) = items.min_by_key(|&item| (place(item), std::cmp::Reverse(at(item))))
        else {
            return (0, Vec::new());
        };
        let last = place(item);
        let mut children = Vec::new();
        while self.chart.items[item as usize].link != NONE {
            let links = self.chart.links(item);
            let links = links.filter(|link| {
                let child = match link.child {
                    Child::Node(node) => leads_out(node),
                    Child::Lexeme(_) => true,
                };
                child && leads_out(self.item(link.before))
            });
            let Some(link) = links.max_by_key(|link| (at(link.before), self.begin(link.child)))
            else {
                break;
            };
            children.push(link.child);
            item = link.before;
        }
        children.reverse();
        (last, children)
    }

    /// Where a lexeme begins; those of one terminal may begin behind what is ignored.
    fn begin(&self, child: Child) -> usize {
        match child {
            Child::Lexeme(lexeme) => self.chart.lexemes[lexeme as usize].start,
            Child::Node(_) => 0,
        }
    }
}
