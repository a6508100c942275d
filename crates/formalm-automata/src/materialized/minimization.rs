//! Minimization of DFAs in O(n log n), with canonical numbering.
//!
//! After Valmari and Lehtinen, "Efficient minimization of DFAs with partial transition functions"
//! (2008). Blocks of states and bundles of transitions refine each other, each time by the smaller
//! half. Missing transitions need no sink state.

use formalm_core::Error;
use rustc_hash::FxHashMap;

use super::{DfaEdge, InterruptCheck, MaterializedDfa};

const NONE: u32 = u32::MAX;

impl MaterializedDfa {
    /// Returns the minimal DFA of the same language: trimmed, with equivalent states merged,
    /// numbered breadth first by ascending label. Equal languages give equal DFAs.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`].
    pub fn minimized(&self, poll: &mut InterruptCheck<'_>) -> Result<MaterializedDfa, Error> {
        let live = self.live();
        if !live[0] {
            return Ok(MaterializedDfa::empty());
        }
        let steps = self.steps(&live, poll)?;
        let blocks = self.blocks(&steps, poll)?;
        poll.tick(self.range_count())?;
        Ok(self.renumbered(&live, &blocks))
    }

    /// Returns which states reach an accepting one.
    fn live(&self) -> Vec<bool> {
        let incoming =
            IncomingEdges::new(self.state_count(), self.edges.iter().map(|edge| edge.target));
        let sources: Vec<u32> = self.all_edges().map(|(source, _)| source).collect();
        let mut live = self.accepting.clone();
        let states = 0..self.state_count() as u32;
        let mut stack: Vec<u32> = states.filter(|&state| self.is_accepting(state)).collect();
        while let Some(state) = stack.pop() {
            for &edge in incoming.of(state) {
                let source = sources[edge as usize];
                if !std::mem::replace(&mut live[source as usize], true) {
                    stack.push(source);
                }
            }
        }
        live
    }

    /// Returns one transition per state and class of labels, sorted by class.
    fn steps(
        &self,
        live: &[bool],
        poll: &mut InterruptCheck<'_>,
    ) -> Result<Vec<ClassTransition>, Error> {
        let cuts = self.cuts();
        let classes = self.label_classes(&cuts, poll)?;
        let count = classes.iter().max().map_or(0, |&most| most as usize + 1);
        let mut seen = vec![NONE; count];
        let mut steps = Vec::new();
        for (tail, edge) in self.all_edges() {
            let pieces = pieces(&cuts, &edge);
            poll.tick(pieces.len())?;
            for piece in pieces {
                let class = classes[piece];
                let first = std::mem::replace(&mut seen[class as usize], tail) != tail;
                if first && live[edge.target as usize] {
                    steps.push(ClassTransition { class, tail, head: edge.target });
                }
            }
        }
        steps.sort_unstable_by_key(|step| (step.class, step.tail));
        Ok(steps)
    }

    /// Returns the labels at which an edge begins, or that follow its end.
    fn cuts(&self) -> Vec<u32> {
        let ends = self.edges.iter().flat_map(|edge| [edge.low, edge.high + 1]);
        let mut cuts: Vec<u32> = ends.collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// Returns the class of each interval between two cuts. Intervals of one class have the same
    /// successor in every state, which leaves few labels of a large alphabet.
    fn label_classes(
        &self,
        cuts: &[u32],
        poll: &mut InterruptCheck<'_>,
    ) -> Result<Vec<u32>, Error> {
        let mut classes = vec![0u32; cuts.len()];
        let mut count = 1;
        let mut split: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for state in 0..self.state_count() as u32 {
            split.clear();
            for edge in self.edges(state) {
                let pieces = pieces(cuts, edge);
                poll.tick(pieces.len())?;
                for class in &mut classes[pieces] {
                    let entry = split.entry((*class, edge.target));
                    *class = *entry.or_insert_with(|| {
                        count += 1;
                        count - 1
                    });
                }
            }
            if count as usize > 4 * cuts.len() + 1024 {
                count = compacted(&mut classes);
            }
        }
        compacted(&mut classes);
        Ok(classes)
    }

    /// Computes the blocks of equivalent states.
    fn blocks(
        &self,
        steps: &[ClassTransition],
        poll: &mut InterruptCheck<'_>,
    ) -> Result<RefinablePartition, Error> {
        let mut blocks = RefinablePartition::whole(self.state_count());
        for state in 0..self.state_count() as u32 {
            if self.is_accepting(state) {
                blocks.mark(state);
            }
        }
        blocks.split();
        let mut bundles = RefinablePartition::runs(steps);
        let incoming = IncomingEdges::new(self.state_count(), steps.iter().map(|step| step.head));
        let (mut block, mut bundle) = (1, 0);
        while bundle < bundles.len() {
            for &step in bundles.members(bundle) {
                blocks.mark(steps[step as usize].tail);
            }
            poll.tick(bundles.members(bundle).len())?;
            blocks.split();
            bundle += 1;
            while block < blocks.len() {
                for &state in blocks.members(block) {
                    incoming.of(state).iter().for_each(|&step| bundles.mark(step));
                    poll.tick(incoming.of(state).len())?;
                }
                bundles.split();
                block += 1;
            }
        }
        Ok(blocks)
    }

    /// Builds the DFA of the blocks, breadth first.
    fn renumbered(&self, live: &[bool], blocks: &RefinablePartition) -> MaterializedDfa {
        let mut graph =
            MaterializedDfa { accepting: Vec::new(), offsets: vec![0], edges: Vec::new() };
        let mut numbers = vec![NONE; blocks.len()];
        numbers[blocks.set[0] as usize] = 0;
        let mut order = vec![0];
        while let Some(&state) = order.get(graph.accepting.len()) {
            for edge in self.edges(state).iter().filter(|edge| live[edge.target as usize]) {
                let number = &mut numbers[blocks.set[edge.target as usize] as usize];
                if *number == NONE {
                    *number = order.len() as u32;
                    order.push(edge.target);
                }
                graph.push(DfaEdge { target: *number, ..*edge });
            }
            graph.close(self.is_accepting(state));
        }
        graph
    }
}

/// A transition by all labels of `class` from `tail` to `head`.
#[derive(Clone, Copy)]
struct ClassTransition {
    class: u32,
    tail: u32,
    head: u32,
}

/// Returns the indices of the cuts inside an edge.
fn pieces(cuts: &[u32], edge: &DfaEdge) -> std::ops::Range<usize> {
    let from = cuts.partition_point(|&cut| cut < edge.low);
    from..from + cuts[from..].partition_point(|&cut| cut <= edge.high)
}

/// Renumbers classes from 0 without gaps and returns their number.
fn compacted(classes: &mut [u32]) -> u32 {
    let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
    for class in classes {
        let next = numbers.len() as u32;
        *class = *numbers.entry(*class).or_insert(next);
    }
    numbers.len() as u32
}

/// Edges by their target.
struct IncomingEdges {
    offsets: Vec<u32>,
    edges: Vec<u32>,
}

impl IncomingEdges {
    fn new(states: usize, targets: impl Iterator<Item = u32> + Clone) -> IncomingEdges {
        let mut offsets = vec![0u32; states + 1];
        for target in targets.clone() {
            offsets[target as usize + 1] += 1;
        }
        for state in 0..states {
            offsets[state + 1] += offsets[state];
        }
        let mut edges = vec![0; offsets[states] as usize];
        let mut free = offsets.clone();
        for (edge, target) in targets.enumerate() {
            edges[free[target as usize] as usize] = edge as u32;
            free[target as usize] += 1;
        }
        IncomingEdges { offsets, edges }
    }

    fn of(&self, state: u32) -> &[u32] {
        let at = state as usize;
        &self.edges[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }
}

/// A partition of numbers that is refined by marking members.
struct RefinablePartition {
    members: Vec<u32>,
    place: Vec<u32>,
    set: Vec<u32>,
    /// The start and end of each set in `members`; its marked members come first.
    bounds: Vec<(u32, u32)>,
    marked: Vec<u32>,
    touched: Vec<u32>,
}

impl RefinablePartition {
    fn whole(count: usize) -> RefinablePartition {
        RefinablePartition {
            members: (0..count as u32).collect(),
            place: (0..count as u32).collect(),
            set: vec![0; count],
            bounds: vec![(0, count as u32)],
            marked: vec![0],
            touched: Vec::new(),
        }
    }

    /// Creates a partition of sorted transitions with one set per class.
    fn runs(steps: &[ClassTransition]) -> RefinablePartition {
        let mut partition = RefinablePartition::whole(steps.len());
        partition.bounds.clear();
        for run in steps.chunk_by(|one, other| one.class == other.class) {
            let start = partition.bounds.last().map_or(0, |&(_, end)| end);
            let end = start + run.len() as u32;
            partition.set[start as usize..end as usize].fill(partition.bounds.len() as u32);
            partition.bounds.push((start, end));
        }
        partition.marked = vec![0; partition.bounds.len()];
        partition
    }

    fn len(&self) -> usize {
        self.bounds.len()
    }

    fn members(&self, set: usize) -> &[u32] {
        let (start, end) = self.bounds[set];
        &self.members[start as usize..end as usize]
    }

    /// Marks a member that is not marked yet.
    fn mark(&mut self, member: u32) {
        let set = self.set[member as usize] as usize;
        let from = self.place[member as usize];
        let to = self.bounds[set].0 + self.marked[set];
        let other = self.members[to as usize];
        self.members.swap(from as usize, to as usize);
        self.place[member as usize] = to;
        self.place[other as usize] = from;
        if self.marked[set] == 0 {
            self.touched.push(set as u32);
        }
        self.marked[set] += 1;
    }

    /// Separates marked members from the others; the smaller part becomes a new set.
    fn split(&mut self) {
        while let Some(set) = self.touched.pop() {
            let at = set as usize;
            let (start, end) = self.bounds[at];
            let middle = start + std::mem::take(&mut self.marked[at]);
            if middle == end {
                continue;
            }
            let small =
                if middle - start <= end - middle { (start, middle) } else { (middle, end) };
            self.bounds[at] = if small.0 == start { (middle, end) } else { (start, middle) };
            let new = self.bounds.len() as u32;
            for &member in &self.members[small.0 as usize..small.1 as usize] {
                self.set[member as usize] = new;
            }
            self.bounds.push(small);
            self.marked.push(0);
        }
    }
}
