//! The theory of arrays: which conjunctions of statements some items satisfy.

pub(in crate::solver) mod unique_matching;

use std::sync::Arc;

use formalm_automata::{Error, Resource};
use rustc_hash::FxHashSet;

use crate::formula::{Atom, F, FALSE, Form, Formulas, TRUE};
use crate::json::interned_values::ValueId;
use crate::schema_nodes::NodeId;
use crate::shared_automata::keyed_hash;
use crate::solver::Solving;
use crate::solver::context::Core;

/// Ways that are copied in the time of a step.
const FORKS_IN_A_STEP: usize = 8;

/// Kinds of items that are copied in the time of a step.
const KINDS_IN_A_STEP: usize = 512;

/// Ranges of places that are gone through in the time of a step.
const RANGES_IN_A_STEP: usize = 1_024;

/// Bytes of the ways of one search.
const MAX_BYTES: u64 = 64 << 20;

type Ranges = Arc<[(u32, u32, NodeId)]>;

/// A conjunction of statements about the rest of an array.
#[derive(Default)]
pub(in crate::solver) struct Plan {
    items: Vec<(Ranges, u32)>,
    /// Some item breaks these.
    duties: Vec<(Ranges, u32)>,
    least: u64,
    most: Option<u64>,
    needs: Vec<(u64, NodeId)>,
    budgets: Vec<(u64, NodeId)>,
    /// Items are distinct, and none of these.
    pub(in crate::solver) distinct: Option<Vec<ValueId>>,
    /// Some item is one of these, or two are equal.
    repeats: Option<Vec<ValueId>>,
    /// The item being read is among those that are distinct, or that some item repeats.
    has_current: bool,
    /// Items from here on are all alike.
    alike: u64,
}

/// Two equal items, or one that equals an item read before.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Twin {
    Done,
    Missing,
    /// An item so constrained has come.
    Half(F),
}

/// How far a way through the items has come.
#[derive(Clone)]
struct Way {
    at: u64,
    needs: Vec<u64>,
    budgets: Vec<u64>,
    duties: Vec<bool>,
    twin: Twin,
    items: Items,
    /// What the item being read has to satisfy too, since one of these is equal to it.
    current: F,
}

/// What items satisfy, and how many satisfy each, sorted; kept only where they have to be distinct.
#[derive(Clone, Default)]
struct Items {
    kinds: Vec<(F, u64)>,
    /// The sum of their hashes: in which order they come makes no difference.
    hash: u128,
}

impl Items {
    fn add(&mut self, item: F, count: u64) {
        match self.kinds.binary_search_by_key(&item, |kind| kind.0) {
            Ok(at) => self.kinds[at].1 += count,
            Err(at) => self.kinds.insert(at, (item, count)),
        }
        let hash = keyed_hash(&item).wrapping_mul(u128::from(count));
        self.hash = self.hash.wrapping_add(hash);
    }
}

impl Way {
    /// Ways of one hash are alike. The lists themselves, which may be long, are not kept.
    fn hash(&self) -> u128 {
        let Way { at, needs, budgets, duties, twin, items, current } = self;
        keyed_hash(&(at, needs, budgets, duties, twin, items.hash, current))
    }
}

impl Core {
    /// Whether items that can still come satisfy a formula over atoms of arrays.
    pub(crate) fn some_array(&mut self, id: F) -> Result<bool, Error> {
        Ok(self.some_items(id, TRUE)? != FALSE)
    }

    /// What the item being read, which satisfies `known`, has to satisfy so that items that can
    /// still come satisfy a formula.
    pub(in crate::solver) fn some_items(&mut self, id: F, known: F) -> Result<F, Error> {
        let _solving = Solving::begin();
        if id == FALSE || self.holds_at_end(id) {
            return Ok(Formulas::constant(id != FALSE));
        }
        let mut goals = Vec::new();
        self.implicants(id, &mut |_, _| Ok(true), &mut |core, literals| {
            goals.push(core.items_fit(literals, known)?);
            Ok(goals.last() == Some(&TRUE))
        })?;
        Ok(self.formulas.or(goals))
    }

    /// Whether items satisfy a conjunction of atoms and negated atoms.
    pub(crate) fn array_fits(&mut self, literals: &[F]) -> Result<bool, Error> {
        Ok(self.items_fit(literals, TRUE)? != FALSE)
    }

    /// What [`Core::some_items`] finds, for a conjunction of atoms and negated atoms.
    pub(in crate::solver) fn items_fit(&mut self, literals: &[F], known: F) -> Result<F, Error> {
        let mut plan = Plan::default();
        for &literal in literals {
            match self.formulas.get(literal) {
                Form::Atom(atom) => plan.add(atom.clone(), true),
                Form::Not(inner) => {
                    if let Form::Atom(atom) = self.formulas.get(*inner) {
                        plan.add(atom.clone(), false);
                    }
                }
                _ => {}
            }
        }
        if plan.most.is_some_and(|most| plan.least > most) {
            return Ok(FALSE);
        }
        self.search_ways(&plan, known)
    }

    fn search_ways(&mut self, plan: &Plan, known: F) -> Result<F, Error> {
        let mut goals = Vec::new();
        let mut open = vec![Way {
            at: 0,
            needs: plan.needs.iter().map(|need| need.0).collect(),
            budgets: plan.budgets.iter().map(|budget| budget.0).collect(),
            duties: vec![false; plan.duties.len()],
            twin: if plan.repeats.is_some() { Twin::Missing } else { Twin::Done },
            items: Items::default(),
            current: TRUE,
        }];
        let mut seen: FxHashSet<u128> = FxHashSet::default();
        // Kinds of items in the lists of all ways that are open.
        let mut kinds = 0;
        while let Some(way) = open.pop() {
            kinds -= way.items.kinds.len();
            self.steps_of(1 + way.items.kinds.len() / KINDS_IN_A_STEP)?;
            if !seen.insert(way.hash()) {
                continue;
            }
            let done = way.needs.iter().all(|&need| need == 0)
                && way.duties.iter().all(|&done| done)
                && way.twin == Twin::Done;
            if done && way.at >= plan.least {
                let current = plan.has_current.then_some(known);
                match &plan.distinct {
                    Some(taken) if !self.can_be_distinct(&way.items.kinds, current, taken)? => {}
                    _ if way.current == TRUE => return Ok(TRUE),
                    _ => goals.push(way.current),
                }
                continue;
            }
            if plan.most.is_some_and(|most| way.at >= most) {
                continue;
            }
            if done && plan.distinct.is_none() && way.at >= plan.alike {
                // The items that are left are all alike; one stands for them.
                let mut item = vec![self.item_at(&plan.items, way.at)?];
                for (_, node) in &plan.budgets {
                    let counted = self.child(*node);
                    item.push(self.formulas.not(counted));
                }
                let item = self.formulas.and(item);
                if self.some_value(item)? {
                    if way.current == TRUE {
                        return Ok(TRUE);
                    }
                    goals.push(way.current);
                    continue;
                }
            }
            if done && plan.distinct.is_some() && plan.budgets.is_empty() && way.at >= plan.alike {
                // Nothing is left to choose: all items up to the least number are alike.
                let item = self.item_at(&plan.items, way.at)?;
                if self.some_value(item)? {
                    let mut next = way;
                    next.items.add(item, plan.least - next.at);
                    next.at = plan.least;
                    kinds += next.items.kinds.len();
                    open.push(next);
                }
                continue;
            }
            let next = self.next_ways(plan, &way, known)?;
            kinds += next.iter().map(|way| way.items.kinds.len()).sum::<usize>();
            let bytes = (kinds * size_of::<(F, u64)>() + seen.capacity() * 17) as u64;
            if bytes > MAX_BYTES {
                let (needed, allowed) = (bytes, MAX_BYTES);
                return Err(Error::Limit { resource: Resource::Bytes, needed, allowed });
            }
            open.extend(next);
        }
        Ok(self.formulas.or(goals))
    }

    fn item_at(&mut self, items: &[(Ranges, u32)], at: u64) -> Result<F, Error> {
        let mut all = Vec::new();
        for (ranges, read) in items {
            self.steps_of(ranges.len() / RANGES_IN_A_STEP)?;
            all.push(self.ranges_at(ranges, u64::from(*read) + at));
        }
        Ok(self.formulas.and(all))
    }

    /// What an item at a place has to satisfy.
    pub(crate) fn ranges_at(&mut self, ranges: &[(u32, u32, NodeId)], at: u64) -> F {
        let mut all = Vec::new();
        for &(from, to, node) in ranges {
            if u64::from(from) <= at && (at < u64::from(to) || to == u32::MAX) {
                all.push(self.child(node));
            }
        }
        self.formulas.and(all)
    }

    /// Everything that the next item may do for the needs; what does most comes last.
    fn next_ways(&mut self, plan: &Plan, way: &Way, known: F) -> Result<Vec<Way>, Error> {
        let start = Way { at: way.at + 1, ..way.clone() };
        let mut ways = vec![(self.item_at(&plan.items, way.at)?, start)];
        for (at, (_, node)) in plan.needs.iter().enumerate() {
            let counted = self.child(*node);
            ways = self.fork(
                ways,
                |way| way.needs[at] > 0,
                counted,
                TRUE,
                |way| {
                    way.needs[at] -= 1;
                },
            )?;
        }
        for (at, (_, node)) in plan.budgets.iter().enumerate() {
            let counted = self.child(*node);
            let other = self.formulas.not(counted);
            ways = self.fork(
                ways,
                |way| way.budgets[at] > 0,
                TRUE,
                other,
                |way| {
                    way.budgets[at] -= 1;
                },
            )?;
            // Where nothing is left of a budget, only the others may come.
            for (item, _) in ways.iter_mut().filter(|_| way.budgets[at] == 0) {
                *item = self.formulas.both(*item, other);
            }
        }
        for (at, (ranges, read)) in plan.duties.iter().enumerate() {
            let kept = self.ranges_at(ranges, u64::from(*read) + way.at);
            let broken = self.formulas.not(kept);
            ways = self.fork(
                ways,
                |way| !way.duties[at],
                broken,
                TRUE,
                |way| {
                    way.duties[at] = true;
                },
            )?;
        }
        let mut list = Vec::new();
        for (item, next) in ways {
            if item == FALSE || !self.some_value(item)? {
                continue;
            }
            if plan.has_current && way.twin == Twin::Missing {
                let both = self.formulas.both(item, known);
                if self.some_value(both)? {
                    list.push(Way { twin: Twin::Done, current: item, ..next.clone() });
                }
            }
            self.with_twins(plan, way, item, next, &mut list)?;
        }
        // Beyond the least number an item that does nothing for the needs leads nowhere.
        list.retain(|next| {
            next.at <= plan.least.max(plan.alike)
                || (&next.needs, &next.duties, next.twin) != (&way.needs, &way.duties, way.twin)
        });
        Ok(list)
    }

    fn with_twins(
        &mut self,
        plan: &Plan,
        before: &Way,
        item: F,
        mut next: Way,
        list: &mut Vec<Way>,
    ) -> Result<(), Error> {
        if plan.distinct.is_some() {
            next.items.add(item, 1);
        }
        list.push(next.clone());
        let again = match (before.twin, &plan.repeats) {
            (Twin::Missing, Some(values)) => {
                list.push(Way { twin: Twin::Half(item), ..next.clone() });
                let node = self.schema.node_of_values(values);
                self.child(node)
            }
            (Twin::Half(other), _) => other,
            _ => return Ok(()),
        };
        let both = self.formulas.both(item, again);
        if self.some_value(both)? {
            list.push(Way { twin: Twin::Done, ..next });
        }
        Ok(())
    }

    fn fork(
        &mut self,
        ways: Vec<(F, Way)>,
        can: impl Fn(&Way) -> bool,
        taken: F,
        left: F,
        take: impl Fn(&mut Way),
    ) -> Result<Vec<(F, Way)>, Error> {
        // Each need may double them.
        self.steps_of(ways.len() / FORKS_IN_A_STEP)?;
        let mut more = Vec::with_capacity(ways.len() * 2);
        for (item, way) in ways {
            if !can(&way) {
                more.push((item, way));
                continue;
            }
            more.push((self.formulas.both(item, left), way.clone()));
            let mut way = way;
            take(&mut way);
            more.push((self.formulas.both(item, taken), way));
        }
        Ok(more)
    }
}

impl Plan {
    fn add(&mut self, atom: Atom, positive: bool) {
        match (atom, positive) {
            (Atom::Items(ranges, read), positive) => {
                let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                let last = edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0);
                self.alike = self.alike.max(u64::from(last.saturating_sub(read)));
                if positive { &mut self.items } else { &mut self.duties }.push((ranges, read));
            }
            (Atom::MoreItems(count), true) => self.least = self.least.max(count),
            (Atom::MoreItems(count), false) => {
                let most = count.saturating_sub(1);
                self.most = Some(self.most.map_or(most, |so_far| so_far.min(most)));
            }
            (Atom::Contains(count, node), true) => self.needs.push((count, node)),
            (Atom::Contains(count, node), false) => {
                self.budgets.push((count.saturating_sub(1), node));
            }
            (Atom::Unique(taken), true) => self.differ_from(&taken),
            (Atom::Unique(taken), false) => self.repeat(&taken),
            (Atom::UniqueWith(taken), positive) => {
                self.has_current = true;
                if positive { self.differ_from(&taken) } else { self.repeat(&taken) }
            }
            _ => {}
        }
    }

    fn differ_from(&mut self, taken: &[ValueId]) {
        self.distinct.get_or_insert_default().extend(taken);
    }

    fn repeat(&mut self, taken: &[ValueId]) {
        self.repeats.get_or_insert_default().extend(taken);
    }
}
