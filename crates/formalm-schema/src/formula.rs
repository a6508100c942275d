//! Boolean formulas over atoms, hash-consed.
//!
//! A formula says what is still owed at one place of a value. Negations stand before leaves and
//! before [`Form::One`] only; "exactly one" is a connective, so that `oneOf` stays linear.

use std::sync::Arc;

use crate::interner::{Map, Table};
use crate::json::decimal::Decimal;
use crate::json::interned_values::ValueId;
use crate::json::property_names::NameId;
use crate::schema_nodes::{NodeId, RegexId};

/// An interned formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct F(pub(crate) u32);

pub(crate) const FALSE: F = F(0);
pub(crate) const TRUE: F = F(1);

/// Which names a rule speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Which {
    /// One of these, sorted; `None`: any name not in `others`.
    pub(crate) names: Option<Box<[NameId]>>,
    /// Sorted.
    pub(crate) others: Box<[NameId]>,
    /// Every one of these patterns is found in it,
    pub(crate) found: Box<[RegexId]>,
    /// and none of these.
    pub(crate) missing: Box<[RegexId]>,
}

/// A statement about the rest of a value of one type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Atom {
    /// Members with such names satisfy such nodes.
    Members(Arc<[(Which, NodeId)]>),
    /// These names are owed; sorted.
    Owed(Arc<[NameId]>),
    /// At least so many more members.
    MoreMembers(u64),
    /// Every name is in a language of texts.
    NamesIn(F),
    /// Items at `[from, to)` satisfy a node; so many items were read.
    Items(Arc<[(u32, u32, NodeId)]>, u32),
    /// At least so many more items satisfy the node.
    Contains(u64, NodeId),
    /// At least so many more items.
    MoreItems(u64),
    /// No two items are equal, and none equals those seen; sorted.
    Unique(Arc<[ValueId]>),
    /// The same while an item is being read that counts as seen.
    UniqueWith(Arc<[ValueId]>),
    /// The text is in a language.
    In(RegexId),
    /// At least this number.
    Least(Decimal),
    /// More than this number.
    Above(Decimal),
    /// This number.
    Equal(Decimal),
    /// A whole multiple.
    Multiple(Decimal),
    /// Spelled without a point.
    Whole,
    /// `true`.
    IsTrue,
}

impl Atom {
    /// Bytes of the lists that only this atom has.
    fn list_bytes(&self) -> usize {
        match self {
            // Most of these are shared with the rule that they come from.
            Atom::Members(_) | Atom::Items(..) => 16,
            Atom::Owed(names) => size_of_val(&names[..]),
            Atom::Unique(values) | Atom::UniqueWith(values) => size_of_val(&values[..]),
            _ => 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    False,
    True,
    /// The child at hand satisfies a node.
    Child(NodeId),
    Atom(Atom),
    Not(F),
    And(Arc<[F]>),
    Or(Arc<[F]>),
    One(Arc<[F]>),
}

/// Which leaves of a formula are replaced.
#[derive(Clone, Copy)]
pub(crate) enum ReplacedLeaves {
    All,
    Children,
}

/// Facts about a formula that follow from those of its parts.
#[derive(Clone, Copy, Debug)]
struct FormulaFacts {
    /// A child is mentioned.
    has_child: bool,
    /// An atom is.
    has_atom: bool,
    /// Nodes of the formula written out as a tree; saturates. Far fewer may be distinct.
    size: u32,
    /// Nodes on the longest path.
    depth: u32,
}

/// Formulas are walked as the graph they are: results are kept by formula, so that each is visited
/// once. Those whose trees have at most so many nodes are walked without looking anything up.
const SMALL_TREE_NODES: u32 = 32;

#[derive(Debug)]
pub(crate) struct Formulas {
    table: Table<Form>,
    facts: Vec<FormulaFacts>,
    /// Negations of conjunctions and disjunctions, where they were made.
    negated: Map<F, F>,
    /// Bytes of lists.
    list_bytes: usize,
    /// Nodes on the longest path through any formula.
    max_depth: u32,
    /// Parts of formulas that were gone through.
    work_done: u64,
}

impl Default for Formulas {
    fn default() -> Formulas {
        let mut all = Formulas {
            table: Table::default(),
            facts: Vec::new(),
            negated: Map::default(),
            list_bytes: 0,
            max_depth: 0,
            work_done: 0,
        };
        all.intern(Form::False);
        all.intern(Form::True);
        all
    }
}

impl Formulas {
    pub(crate) fn get(&self, id: F) -> &Form {
        self.table.get(id.0)
    }

    /// Whether the formula speaks of the child at hand.
    pub(crate) fn has_child(&self, id: F) -> bool {
        self.facts[id.0 as usize].has_child
    }

    /// Whether the formula speaks of what comes after the child.
    pub(crate) fn has_atom(&self, id: F) -> bool {
        self.facts[id.0 as usize].has_atom
    }

    /// Returns `true` if a formula is so small that its parts are not worth remembering.
    pub(crate) fn is_small(&self, id: F) -> bool {
        self.facts[id.0 as usize].size <= SMALL_TREE_NODES
    }

    /// Nodes of a formula written out as a tree; saturates.
    pub(crate) fn size(&self, id: F) -> u32 {
        self.facts[id.0 as usize].size
    }

    /// Nodes on the longest path through any formula.
    pub(crate) fn max_depth(&self) -> u32 {
        self.max_depth
    }

    /// Parts of formulas that were gone through so far.
    pub(crate) fn work_done(&self) -> u64 {
        self.work_done
    }

    /// Memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
            + self.facts.capacity() * size_of::<FormulaFacts>()
            + self.negated.memory_bytes()
            + self.list_bytes
    }

    fn intern(&mut self, form: Form) -> F {
        let id = self.table.intern(form);
        if (id as usize) < self.facts.len() {
            return F(id);
        }
        let leaf = FormulaFacts { has_child: false, has_atom: false, size: 1, depth: 1 };
        let of = |inner: &F| self.facts[inner.0 as usize];
        let above = |one: FormulaFacts, other: FormulaFacts| FormulaFacts {
            has_child: one.has_child | other.has_child,
            has_atom: one.has_atom | other.has_atom,
            size: one.size.saturating_add(other.size),
            depth: one.depth.max(other.depth + 1),
        };
        let (facts, bytes) = match self.table.get(id) {
            Form::False | Form::True => (leaf, 0),
            Form::Child(_) => (FormulaFacts { has_child: true, ..leaf }, 0),
            Form::Atom(atom) => (FormulaFacts { has_atom: true, ..leaf }, atom.list_bytes()),
            Form::Not(inner) => (above(leaf, of(inner)), 0),
            Form::And(list) | Form::Or(list) | Form::One(list) => {
                let facts = list.iter().fold(leaf, |so_far, inner| above(so_far, of(inner)));
                (facts, list.len() * size_of::<F>())
            }
        };
        self.max_depth = self.max_depth.max(facts.depth);
        self.list_bytes += bytes;
        self.facts.push(facts);
        F(id)
    }

    pub(crate) fn constant(truth: bool) -> F {
        if truth { TRUE } else { FALSE }
    }

    pub(crate) fn atom(&mut self, atom: Atom) -> F {
        self.intern(Form::Atom(atom))
    }

    /// The formula of an atom that was mentioned before.
    pub(crate) fn find_atom(&self, atom: &Atom) -> Option<F> {
        self.table.find(&Form::Atom(atom.clone())).map(F)
    }

    pub(crate) fn child(&mut self, node: NodeId) -> F {
        self.intern(Form::Child(node))
    }

    pub(crate) fn not(&mut self, id: F) -> F {
        let (list, is_and) = match self.get(id) {
            Form::False => return TRUE,
            Form::True => return FALSE,
            Form::Not(inner) => return *inner,
            Form::Child(_) | Form::Atom(_) | Form::One(_) => return self.intern(Form::Not(id)),
            Form::And(list) => (list, true),
            Form::Or(list) => (list, false),
        };
        if let Some(&known) = self.negated.get(&id) {
            return known;
        }
        let list = Arc::clone(list);
        let parts = list.iter().map(|&one| self.not(one)).collect();
        let negated = if is_and { self.or(parts) } else { self.and(parts) };
        self.negated.insert(id, negated);
        negated
    }

    pub(crate) fn and(&mut self, list: Vec<F>) -> F {
        self.flatten_connective(list, TRUE)
    }

    pub(crate) fn or(&mut self, list: Vec<F>) -> F {
        self.flatten_connective(list, FALSE)
    }

    pub(crate) fn both(&mut self, left: F, right: F) -> F {
        self.and(vec![left, right])
    }

    /// A conjunction (`unit` is [`TRUE`]) or a disjunction (`unit` is [`FALSE`]).
    fn flatten_connective(&mut self, list: Vec<F>, unit: F) -> F {
        let zero = if unit == TRUE { FALSE } else { TRUE };
        let mut flat: Vec<F> = Vec::with_capacity(list.len());
        for one in list {
            match self.get(one) {
                Form::And(inner) if unit == TRUE => flat.extend_from_slice(inner),
                Form::Or(inner) if unit == FALSE => flat.extend_from_slice(inner),
                _ if one == zero => return zero,
                _ if one == unit => {}
                _ => flat.push(one),
            }
        }
        self.work_done += flat.len() as u64;
        flat.sort_unstable();
        flat.dedup();
        for &one in &flat {
            if let Form::Not(inner) = self.get(one)
                && flat.binary_search(inner).is_ok()
            {
                return zero;
            }
        }
        match flat.len() {
            0 => unit,
            1 => flat[0],
            _ if unit == TRUE => self.intern(Form::And(flat.into())),
            _ => self.intern(Form::Or(flat.into())),
        }
    }

    /// Exactly one holds.
    pub(crate) fn one(&mut self, mut list: Vec<F>) -> F {
        list.retain(|&one| one != FALSE);
        list.sort_unstable();
        // What occurs twice holds twice or not at all.
        let mut once = Vec::with_capacity(list.len());
        let mut never = Vec::new();
        for group in list.chunk_by(|left, right| left == right) {
            if group.len() == 1 {
                once.push(group[0]);
            } else {
                never.push(group[0]);
            }
        }
        if once.contains(&TRUE) {
            once.retain(|&one| one != TRUE);
            never.extend(once);
            let never = never.into_iter().map(|one| self.not(one)).collect();
            return self.and(never);
        }
        let mut all: Vec<F> = never.into_iter().map(|one| self.not(one)).collect();
        if let [one, other] = once[..] {
            // What holds with another one only does not hold alone.
            let (one, other) = (self.conjuncts(one), self.conjuncts(other));
            let (less, more) = if one.len() < other.len() { (one, other) } else { (other, one) };
            let is_left = |part: &F| less.binary_search(part).is_err();
            let rest: Vec<F> = more.iter().copied().filter(is_left).collect();
            if less.len() + rest.len() == more.len() {
                let rest = self.and(rest);
                all.push(self.not(rest));
                all.extend(less);
                return self.and(all);
            }
        }
        all.push(match once.len() {
            0 => FALSE,
            1 => once[0],
            _ => self.intern(Form::One(once.into())),
        });
        self.and(all)
    }

    /// The formula with every leaf replaced. Parts without children are kept as they are if
    /// only these are replaced.
    pub(crate) fn replace_leaves<X>(
        &mut self,
        id: F,
        which: ReplacedLeaves,
        seen: &mut Map<F, F>,
        leaf: &mut impl FnMut(&mut Formulas, F) -> Result<F, X>,
    ) -> Result<F, X> {
        let has_any = match which {
            ReplacedLeaves::All => id != FALSE && id != TRUE,
            ReplacedLeaves::Children => self.has_child(id),
        };
        if !has_any {
            return Ok(id);
        }
        if let Some(&known) = seen.get(&id) {
            return Ok(known);
        }
        let (list, decides) = match self.get(id) {
            Form::False | Form::True => return Ok(id),
            Form::Child(_) | Form::Atom(_) => return leaf(self, id),
            &Form::Not(inner) => {
                let inner = self.replace_leaves(inner, which, seen, leaf)?;
                return Ok(self.not(inner));
            }
            Form::And(list) => (Arc::clone(list), Some(FALSE)),
            Form::Or(list) => (Arc::clone(list), Some(TRUE)),
            Form::One(list) => (Arc::clone(list), None),
        };
        self.work_done += list.len() as u64;
        let mut new = Vec::with_capacity(list.len());
        for &one in list.iter() {
            let one = self.replace_leaves(one, which, seen, leaf)?;
            if Some(one) == decides {
                seen.insert(id, one);
                return Ok(one);
            }
            new.push(one);
        }
        let new = match decides {
            Some(FALSE) => self.and(new),
            Some(_) => self.or(new),
            None => self.one(new),
        };
        seen.insert(id, new);
        Ok(new)
    }

    /// The formula with nodes that the child was asked about replaced by formulas. The nodes are
    /// sorted.
    pub(crate) fn answer(&mut self, id: F, asked: &[NodeId], answers: &[F]) -> F {
        if asked.is_empty() || !self.has_child(id) {
            return id;
        }
        let replaced: Result<F, std::convert::Infallible> = self.replace_leaves(
            id,
            ReplacedLeaves::Children,
            &mut Map::default(),
            &mut |all, leaf| {
                Ok(match all.get(leaf) {
                    Form::Child(node) => asked.binary_search(node).map_or(leaf, |at| answers[at]),
                    _ => leaf,
                })
            },
        );
        match replaced {
            Ok(new) => new,
        }
    }

    /// Nodes that the formulas ask the child about, in order.
    pub(crate) fn asked(&self, list: &[F]) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut stack: Vec<F> = list.to_vec();
        while let Some(id) = stack.pop() {
            if !self.has_child(id) || !seen.insert(id) {
                continue;
            }
            match self.get(id) {
                Form::Child(node) => nodes.push(*node),
                Form::Not(inner) => stack.push(*inner),
                Form::And(list) | Form::Or(list) | Form::One(list) => {
                    stack.extend_from_slice(list);
                }
                Form::False | Form::True | Form::Atom(_) => {}
            }
        }
        nodes.sort_unstable();
        nodes
    }

    /// The truth of a formula by the truths of its atoms; what is said of children counts as false.
    pub(crate) fn holds(&self, id: F, atom: &mut impl FnMut(&Atom) -> bool) -> bool {
        self.evaluate_memoized(id, atom, &mut Map::default())
    }

    fn evaluate_memoized(
        &self,
        id: F,
        atom: &mut impl FnMut(&Atom) -> bool,
        known: &mut Map<F, bool>,
    ) -> bool {
        let is_small = self.is_small(id);
        if !is_small && let Some(&known) = known.get(&id) {
            return known;
        }
        let mut holds = |one: F| self.evaluate_memoized(one, atom, known);
        let truth = match self.get(id) {
            Form::False | Form::Child(_) => false,
            Form::True => true,
            Form::Atom(one) => atom(one),
            Form::Not(inner) => !holds(*inner),
            Form::And(list) => list.iter().all(|&one| holds(one)),
            Form::Or(list) => list.iter().any(|&one| holds(one)),
            Form::One(list) => list.iter().filter(|&&one| holds(one)).take(2).count() == 1,
        };
        if !is_small {
            known.insert(id, truth);
        }
        truth
    }

    /// Atoms in some formulas, each once, until one is found; whether one was.
    pub(crate) fn some_atom(&self, all: &[F], mut found: impl FnMut(&Atom) -> bool) -> bool {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut stack = all.to_vec();
        while let Some(id) = stack.pop() {
            if !self.has_atom(id) || !seen.insert(id) {
                continue;
            }
            match self.get(id) {
                Form::Atom(atom) if found(atom) => return true,
                Form::Not(inner) => stack.push(*inner),
                Form::And(list) | Form::Or(list) | Form::One(list) => {
                    stack.extend_from_slice(list);
                }
                Form::Atom(_) | Form::False | Form::True | Form::Child(_) => {}
            }
        }
        false
    }

    /// Whether a formula is an atom or a negated one.
    pub(crate) fn is_literal(&self, id: F) -> bool {
        match self.get(id) {
            Form::Atom(_) => true,
            Form::Not(inner) => matches!(self.get(*inner), Form::Atom(_)),
            _ => false,
        }
    }

    /// The name that must not come, where a formula says no more than that.
    pub(crate) fn excluded_name(&self, id: F) -> Option<NameId> {
        let Form::Not(inner) = self.get(id) else { return None };
        match self.get(*inner) {
            Form::Atom(Atom::Owed(names)) if names.len() == 1 => Some(names[0]),
            _ => None,
        }
    }

    /// How many more members may come, where a formula says no more than that.
    pub(crate) fn most_members(&self, id: F) -> Option<u64> {
        let Form::Not(inner) = self.get(id) else { return None };
        match self.get(*inner) {
            Form::Atom(Atom::MoreMembers(count)) => Some(count.saturating_sub(1)),
            _ => None,
        }
    }

    /// How many formulas one is made of.
    pub(crate) fn part_count(&self, id: F) -> usize {
        match self.get(id) {
            Form::And(list) | Form::Or(list) | Form::One(list) => list.len(),
            _ => 1,
        }
    }

    /// Members of a conjunction.
    pub(crate) fn conjuncts(&self, id: F) -> Vec<F> {
        match self.get(id) {
            Form::And(list) => list.to_vec(),
            _ if id == TRUE => Vec::new(),
            _ => vec![id],
        }
    }
}
