//! The theory of arrays: is a conjunction of array atoms satisfiable?
//!
//! A search over paths through the positions of the array. At each position an item takes over some
//! of the demands (`contains` counts, a rule to be violated, a duplicate); paths with equal
//! remaining demands are visited once. After the last position with a constraint of its own, one
//! item stands for all.

mod infinitely_many_arrays;
mod unique_matching;

use std::sync::Arc;

use formalm_core::{Error, Resource, check_limit, keyed_hash};
use rustc_hash::FxHashSet;

pub(crate) use infinitely_many_arrays::ArrayCardinality;

use crate::formula::{FALSE, FormulaArena, FormulaAtom, FormulaId, TRUE};
use crate::json::interned_values::ValueId;
use crate::schema_nodes::NodeId;
use crate::solver::context::SolverContext;

/// Copied paths that count as one step. Chosen, not measured.
const FORKS_PER_STEP: usize = 8;

/// Copied entries of item counts that count as one step. Chosen, not measured.
const KINDS_PER_STEP: usize = 512;

/// Position ranges visited that count as one step. Chosen, not measured.
const RANGES_PER_STEP: usize = 1_024;

/// Maximum memory of the paths of one search, in bytes. Chosen, not measured.
const MAX_BYTES: u64 = 64 << 20;

type ItemRanges = Arc<[(u32, u32, NodeId)]>;

/// A conjunction of atoms about the rest of an array.
#[derive(Default)]
pub(in crate::solver) struct ArrayPlan {
    /// Item rules, each with the number of items read before it was taken over.
    items: Vec<(ItemRanges, u32)>,
    /// Rules that at least one item must violate.
    rules_to_break: Vec<(ItemRanges, u32)>,
    /// Minimum number of further items.
    min: u64,
    /// Maximum number of further items.
    max: Option<u64>,
    /// Minimum counts of items that satisfy a node.
    contains_needed: Vec<(u64, NodeId)>,
    /// Maximum counts of items that satisfy a node.
    contains_allowed: Vec<(u64, NodeId)>,
    /// Items must be distinct, and none of these.
    pub(in crate::solver) distinct: Option<Vec<ValueId>>,
    /// An item must equal one of these, or two must be equal.
    duplicate_of: Option<Vec<ValueId>>,
    /// The item being read counts for distinctness or duplication.
    has_current: bool,
    /// Position from which all items have the same constraints.
    uniform_from: u64,
}

/// The state of a demanded duplicate: two equal items, or one equal to an item read before.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum DuplicateState {
    Done,
    Missing,
    /// One of the two items has come, with this constraint.
    OneSeen(FormulaId),
}

/// A partial assignment of demands to the items up to a position.
#[derive(Clone)]
struct ArrayPath {
    /// The next position.
    at: u64,
    contains_needed: Vec<u64>,
    contains_allowed: Vec<u64>,
    /// For each rule to break whether an item does so.
    broken: Vec<bool>,
    duplicate: DuplicateState,
    items: ItemCounts,
    /// The additional constraint on the item being read, because one of these items equals it.
    current: FormulaId,
}

/// The constraints of the items so far with their counts, sorted. Only kept if items must be
/// distinct.
#[derive(Clone, Default)]
struct ItemCounts {
    kinds: Vec<(FormulaId, u64)>,
    /// Sum of the entries' hashes, so that it does not depend on the order.
    hash: u128,
}

impl ItemCounts {
    fn add(&mut self, item: FormulaId, count: u64) {
        match self.kinds.binary_search_by_key(&item, |kind| kind.0) {
            Ok(at) => self.kinds[at].1 += count,
            Err(at) => self.kinds.insert(at, (item, count)),
        }
        let hash = keyed_hash(&item).wrapping_mul(u128::from(count));
        self.hash = self.hash.wrapping_add(hash);
    }
}

impl ArrayPath {
    /// Hashes the path; 128-bit hashes stand for equality, so that the long lists of visited paths
    /// need not be kept.
    fn hash(&self) -> u128 {
        let ArrayPath { at, contains_needed, contains_allowed, broken, duplicate, items, current } =
            self;
        keyed_hash(&(at, contains_needed, contains_allowed, broken, duplicate, items.hash, current))
    }
}

/// The search for items that satisfy a conjunction of atoms.
pub(super) struct ArraySearch<'a> {
    solver: &'a mut SolverContext,
    plan: &'a ArrayPlan,
    /// The formula that the item being read satisfies.
    known: FormulaId,
}

impl ArraySearch<'_> {
    /// Returns what the item being read, which satisfies `known`, must satisfy in addition so that
    /// further items can satisfy a conjunction of literals.
    pub(super) fn items_fit(
        solver: &mut SolverContext,
        literals: &[FormulaId],
        known: FormulaId,
    ) -> Result<FormulaId, Error> {
        let plan = ArrayPlan::new(&solver.base.formulas, literals);
        if plan.max.is_some_and(|most| plan.min > most) {
            return Ok(FALSE);
        }
        ArraySearch { solver, plan: &plan, known }.run()
    }

    /// Searches the paths depth first. Returns the disjunction of goals of the item being read.
    fn run(&mut self) -> Result<FormulaId, Error> {
        let (plan, known) = (self.plan, self.known);
        let mut goals = Vec::new();
        let mut open = vec![ArrayPath {
            at: 0,
            contains_needed: plan.contains_needed.iter().map(|need| need.0).collect(),
            contains_allowed: plan.contains_allowed.iter().map(|budget| budget.0).collect(),
            broken: vec![false; plan.rules_to_break.len()],
            duplicate: if plan.duplicate_of.is_some() {
                DuplicateState::Missing
            } else {
                DuplicateState::Done
            },
            items: ItemCounts::default(),
            current: TRUE,
        }];
        let mut seen: FxHashSet<u128> = FxHashSet::default();
        // Entries of the item counts of all open paths.
        let mut kinds = 0;
        while let Some(path) = open.pop() {
            kinds -= path.items.kinds.len();
            self.solver.base.count_steps(1 + path.items.kinds.len() / KINDS_PER_STEP)?;
            if !seen.insert(path.hash()) {
                continue;
            }
            let done = path.contains_needed.iter().all(|&need| need == 0)
                && path.broken.iter().all(|&done| done)
                && path.duplicate == DuplicateState::Done;
            if done && path.at >= plan.min {
                let current = plan.has_current.then_some(known);
                match &plan.distinct {
                    Some(taken) if !self.can_be_distinct(&path.items.kinds, current, taken)? => {}
                    _ if path.current == TRUE => return Ok(TRUE),
                    _ => goals.push(path.current),
                }
                continue;
            }
            if plan.max.is_some_and(|most| path.at >= most) {
                continue;
            }
            if done && plan.distinct.is_none() && path.at >= plan.uniform_from {
                // All remaining items have the same constraints, so one stands for them.
                let mut item = vec![self.item_formula(path.at)?];
                for (_, node) in &plan.contains_allowed {
                    let counted = self.solver.base.child(*node);
                    item.push(self.solver.base.formulas.not(counted));
                }
                let item = self.solver.base.formulas.and(item);
                if self.solver.has_value(item)? {
                    if path.current == TRUE {
                        return Ok(TRUE);
                    }
                    goals.push(path.current);
                    continue;
                }
            }
            if done
                && plan.distinct.is_some()
                && plan.contains_allowed.is_empty()
                && path.at >= plan.uniform_from
            {
                // Nothing is left to choose: the items up to the minimum are uniform.
                let item = self.item_formula(path.at)?;
                if self.solver.has_value(item)? {
                    let mut next = path;
                    next.items.add(item, plan.min - next.at);
                    next.at = plan.min;
                    kinds += next.items.kinds.len();
                    open.push(next);
                }
                continue;
            }
            let next = self.next_paths(&path)?;
            kinds += next.iter().map(|path| path.items.kinds.len()).sum::<usize>();
            let bytes = (kinds * size_of::<(FormulaId, u64)>() + seen.capacity() * 17) as u64;
            check_limit(Resource::Bytes, bytes, MAX_BYTES)?;
            open.extend(next);
        }
        Ok(self.solver.base.formulas.or(goals))
    }

    /// Returns the formula of an item at a position, from all item atoms.
    fn item_formula(&mut self, at: u64) -> Result<FormulaId, Error> {
        let mut all = Vec::new();
        for (ranges, read) in &self.plan.items {
            self.solver.base.count_steps(ranges.len() / RANGES_PER_STEP)?;
            all.push(self.solver.base.item_formula_at(ranges, u64::from(*read) + at));
        }
        Ok(self.solver.base.formulas.and(all))
    }

    /// Returns the paths after one more item, for each choice of demands that it takes over. The
    /// choice with the most demands comes last, so it is tried first.
    fn next_paths(&mut self, path: &ArrayPath) -> Result<Vec<ArrayPath>, Error> {
        let plan = self.plan;
        let start = ArrayPath { at: path.at + 1, ..path.clone() };
        let mut paths = vec![(self.item_formula(path.at)?, start)];
        for (at, (_, node)) in plan.contains_needed.iter().enumerate() {
            let counted = self.solver.base.child(*node);
            paths = self.fork(
                paths,
                |path| path.contains_needed[at] > 0,
                counted,
                TRUE,
                |path| {
                    path.contains_needed[at] -= 1;
                },
            )?;
        }
        for (at, (_, node)) in plan.contains_allowed.iter().enumerate() {
            let counted = self.solver.base.child(*node);
            let other = self.solver.base.formulas.not(counted);
            paths = self.fork(
                paths,
                |path| path.contains_allowed[at] > 0,
                TRUE,
                other,
                |path| {
                    path.contains_allowed[at] -= 1;
                },
            )?;
            // Once the budget is spent, no further item may count.
            for (item, _) in paths.iter_mut().filter(|_| path.contains_allowed[at] == 0) {
                *item = self.solver.base.formulas.both(*item, other);
            }
        }
        for (at, (ranges, read)) in plan.rules_to_break.iter().enumerate() {
            let kept = self.solver.base.item_formula_at(ranges, u64::from(*read) + path.at);
            let broken = self.solver.base.formulas.not(kept);
            paths = self.fork(
                paths,
                |path| !path.broken[at],
                broken,
                TRUE,
                |path| {
                    path.broken[at] = true;
                },
            )?;
        }
        let mut list = Vec::new();
        for (item, next) in paths {
            if item == FALSE || !self.solver.has_value(item)? {
                continue;
            }
            if plan.has_current && path.duplicate == DuplicateState::Missing {
                let both = self.solver.base.formulas.both(item, self.known);
                if self.solver.has_value(both)? {
                    list.push(ArrayPath {
                        duplicate: DuplicateState::Done,
                        current: item,
                        ..next.clone()
                    });
                }
            }
            self.add_duplicate_choices(path, item, next, &mut list)?;
        }
        // After the minimum, an item that takes over no demand leads nowhere.
        list.retain(|next| {
            next.at <= plan.min.max(plan.uniform_from)
                || (&next.contains_needed, &next.broken, next.duplicate)
                    != (&path.contains_needed, &path.broken, path.duplicate)
        });
        Ok(list)
    }

    /// Adds the path after an item, and the paths in which it is one of the demanded duplicates.
    fn add_duplicate_choices(
        &mut self,
        before: &ArrayPath,
        item: FormulaId,
        mut next: ArrayPath,
        list: &mut Vec<ArrayPath>,
    ) -> Result<(), Error> {
        if self.plan.distinct.is_some() {
            next.items.add(item, 1);
        }
        list.push(next.clone());
        let again = match (before.duplicate, &self.plan.duplicate_of) {
            (DuplicateState::Missing, Some(values)) => {
                list.push(ArrayPath { duplicate: DuplicateState::OneSeen(item), ..next.clone() });
                let node = self.solver.base.schema.node_for_values(values);
                self.solver.base.child(node)
            }
            (DuplicateState::OneSeen(other), _) => other,
            _ => return Ok(()),
        };
        let both = self.solver.base.formulas.both(item, again);
        if self.solver.has_value(both)? {
            list.push(ArrayPath { duplicate: DuplicateState::Done, ..next });
        }
        Ok(())
    }

    /// Splits each path that `can` take over a demand: into one that does not (with the formula
    /// `left`) and one that does (with `taken`).
    fn fork(
        &mut self,
        paths: Vec<(FormulaId, ArrayPath)>,
        can: impl Fn(&ArrayPath) -> bool,
        taken: FormulaId,
        left: FormulaId,
        take: impl Fn(&mut ArrayPath),
    ) -> Result<Vec<(FormulaId, ArrayPath)>, Error> {
        // Each demand may double the number of paths.
        self.solver.base.count_steps(paths.len() / FORKS_PER_STEP)?;
        let mut more = Vec::with_capacity(paths.len() * 2);
        for (item, path) in paths {
            if !can(&path) {
                more.push((item, path));
                continue;
            }
            more.push((self.solver.base.formulas.both(item, left), path.clone()));
            let mut path = path;
            take(&mut path);
            more.push((self.solver.base.formulas.both(item, taken), path));
        }
        Ok(more)
    }
}

/// Returns the position from which all items are in the same ranges.
fn last_edge(ranges: &[(u32, u32, NodeId)]) -> u32 {
    let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
    edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0)
}

impl ArrayPlan {
    /// Collects the literals of a conjunction.
    fn new(formulas: &FormulaArena, literals: &[FormulaId]) -> ArrayPlan {
        let mut plan = ArrayPlan::default();
        for &literal in literals {
            if let Some((atom, positive)) = formulas.literal(literal) {
                plan.add(atom.clone(), positive);
            }
        }
        plan
    }

    fn add(&mut self, atom: FormulaAtom, positive: bool) {
        match (atom, positive) {
            (FormulaAtom::Items(ranges, read), positive) => {
                let last = last_edge(&ranges);
                self.uniform_from = self.uniform_from.max(u64::from(last.saturating_sub(read)));
                if positive { &mut self.items } else { &mut self.rules_to_break }
                    .push((ranges, read));
            }
            (FormulaAtom::MinItems(count), true) => self.min = self.min.max(count),
            (FormulaAtom::MinItems(count), false) => {
                let most = count.saturating_sub(1);
                self.max = Some(self.max.map_or(most, |so_far| so_far.min(most)));
            }
            (FormulaAtom::Contains(count, node), true) => self.contains_needed.push((count, node)),
            (FormulaAtom::Contains(count, node), false) => {
                self.contains_allowed.push((count.saturating_sub(1), node));
            }
            (FormulaAtom::UniqueItems(taken), true) => self.require_distinct(&taken),
            (FormulaAtom::UniqueItems(taken), false) => self.require_duplicate(&taken),
            (FormulaAtom::UniqueWithCurrent(taken), positive) => {
                self.has_current = true;
                if positive {
                    self.require_distinct(&taken)
                } else {
                    self.require_duplicate(&taken)
                }
            }
            _ => {}
        }
    }

    /// Demands distinct items, different from `taken`.
    fn require_distinct(&mut self, taken: &[ValueId]) {
        self.distinct.get_or_insert_default().extend(taken);
    }

    /// Demands a duplicate, or an item equal to one of `taken`.
    fn require_duplicate(&mut self, taken: &[ValueId]) {
        self.duplicate_of.get_or_insert_default().extend(taken);
    }
}
