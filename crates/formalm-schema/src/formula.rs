//! Hash-consed Boolean formulas over statements about one JSON value.
//!
//! A [`Formula`] is the residual of a schema at one position of a value: what the rest of the value
//! must still satisfy. Its leaves are atoms (statements about the rest of this container or scalar)
//! and children (the value being read satisfies a node).
//!
//! Negation normal form: negations occur only on leaves and on [`Formula::ExactlyOne`]. "Exactly
//! one" is a connective of its own, so that `oneOf` takes linear space; written out it is
//! quadratic.

use std::sync::Arc;

use formalm_core::{CompactMap, Interner, memory_bytes};

use crate::json::decimal::Decimal;
use crate::json::interned_values::ValueId;
use crate::json::property_names::NameId;
use crate::schema_nodes::{NodeId, RegexId};

/// An interned formula: equal ids are equal formulas up to the order of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FormulaId(pub(crate) u32);

memory_bytes!(none: FormulaId);

/// The formula that never holds.
pub(crate) const FALSE: FormulaId = FormulaId(0);
/// The formula that always holds.
pub(crate) const TRUE: FormulaId = FormulaId(1);

/// The set of property names that a property rule applies to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameSelector {
    /// One of these, sorted; `None`: any name not in `excluded_names`.
    pub(crate) names: Option<Box<[NameId]>>,
    /// Names of no interest here, sorted. Only used if `names` is `None`.
    pub(crate) excluded_names: Box<[NameId]>,
    /// Patterns that must all match the name.
    pub(crate) matched_patterns: Box<[RegexId]>,
    /// Patterns none of which may match the name.
    pub(crate) unmatched_patterns: Box<[RegexId]>,
}

/// A statement about the rest of a value of one type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FormulaAtom {
    /// Every further property selected by a selector satisfies the node next to it.
    Properties(Arc<[(NameSelector, NodeId)]>),
    /// These properties are still required; sorted.
    Required(Arc<[NameId]>),
    /// At least this many further properties.
    MinProperties(u64),
    /// Every further property name satisfies a formula over strings.
    PropertyNames(FormulaId),
    /// The items at `[from, to)` satisfy a node. The last number counts the items already read.
    Items(Arc<[(u32, u32, NodeId)]>, u32),
    /// At least this many further items satisfy the node.
    Contains(u64, NodeId),
    /// At least this many further items.
    MinItems(u64),
    /// All further items are distinct, from each other and from these items already read; sorted.
    UniqueItems(Arc<[ValueId]>),
    /// [`FormulaAtom::UniqueItems`] while an item is being read: that item counts as already read.
    UniqueWithCurrent(Arc<[ValueId]>),
    /// The string is in a regular language.
    InLanguage(RegexId),
    /// The number is at least this one.
    AtLeast(Decimal),
    /// The number is greater than this one.
    GreaterThan(Decimal),
    /// The number equals this one.
    EqualTo(Decimal),
    /// The number is an integer multiple of this one.
    MultipleOf(Decimal),
    /// The number is spelled without a fraction (draft 4 integers).
    IntegerSpelling,
    /// The Boolean is `true`.
    IsTrue,
}

impl FormulaAtom {
    /// Returns the heap bytes of lists that only this atom owns.
    fn list_bytes(&self) -> usize {
        match self {
            // Most of these lists are shared with the rule that they come from.
            FormulaAtom::Properties(_) | FormulaAtom::Items(..) => 16,
            FormulaAtom::Required(names) => size_of_val(&names[..]),
            FormulaAtom::UniqueItems(values) | FormulaAtom::UniqueWithCurrent(values) => {
                size_of_val(&values[..])
            }
            _ => 0,
        }
    }
}

/// A formula: a constant, a leaf, or a connective over interned formulas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Formula {
    False,
    True,
    /// The child being read satisfies a node.
    Child(NodeId),
    Atom(FormulaAtom),
    Not(FormulaId),
    And(Arc<[FormulaId]>),
    Or(Arc<[FormulaId]>),
    ExactlyOne(Arc<[FormulaId]>),
}

/// Selects the leaves that [`FormulaArena::replace_leaves`] replaces.
#[derive(Clone, Copy)]
pub(crate) enum ReplacedLeaves {
    All,
    Children,
}

/// Properties of a formula that are computed from those of its operands.
#[derive(Clone, Copy, Debug)]
struct FormulaFacts {
    /// The formula mentions a child.
    has_child: bool,
    /// The formula mentions an atom.
    has_atom: bool,
    /// The formula compares items with the one being read.
    compares_items: bool,
    /// Number of nodes of the formula written out as a tree; saturates. The shared graph may be far
    /// smaller.
    size: u32,
    /// Number of nodes on the longest path.
    depth: u32,
}

/// Size in tree nodes up to which a formula is walked without a memo table. Larger formulas are
/// walked as graphs: results are kept by id, so that each shared node is visited once. Chosen, not
/// measured.
const SMALL_TREE_NODES: u32 = 32;

/// The arena of interned formulas, with smart constructors that simplify.
#[derive(Debug)]
pub(crate) struct FormulaArena {
    table: Interner<Formula>,
    facts: Vec<FormulaFacts>,
    /// Memoized negations of conjunctions and disjunctions.
    negated: CompactMap<FormulaId, FormulaId>,
    /// Heap bytes of all lists.
    list_bytes: usize,
    /// Number of nodes on the longest path through any formula.
    max_depth: u32,
    /// Number of operands processed so far.
    work_done: u64,
}

impl Default for FormulaArena {
    fn default() -> FormulaArena {
        let mut all = FormulaArena {
            table: Interner::default(),
            facts: Vec::new(),
            negated: CompactMap::default(),
            list_bytes: 0,
            max_depth: 0,
            work_done: 0,
        };
        all.intern(Formula::False);
        all.intern(Formula::True);
        all
    }
}

impl FormulaArena {
    pub(crate) fn get(&self, id: FormulaId) -> &Formula {
        self.table.get(id.0)
    }

    /// Returns `true` if the formula mentions the child being read.
    pub(crate) fn has_child(&self, id: FormulaId) -> bool {
        self.facts[id.0 as usize].has_child
    }

    /// Returns `true` if the formula mentions the rest of the container after the child.
    pub(crate) fn has_atom(&self, id: FormulaId) -> bool {
        self.facts[id.0 as usize].has_atom
    }

    /// Returns `true` if the end of a child changes the formula once the verdicts are substituted:
    /// if it compares items with the one being read.
    pub(crate) fn compares_items(&self, id: FormulaId) -> bool {
        self.facts[id.0 as usize].compares_items
    }

    /// Returns `true` if walking the formula is cheaper without a memo table.
    pub(crate) fn is_small(&self, id: FormulaId) -> bool {
        self.facts[id.0 as usize].size <= SMALL_TREE_NODES
    }

    /// Returns the number of nodes of the formula written out as a tree; saturates.
    pub(crate) fn size(&self, id: FormulaId) -> u32 {
        self.facts[id.0 as usize].size
    }

    /// Returns the number of nodes on the longest path through any formula.
    pub(crate) fn max_depth(&self) -> u32 {
        self.max_depth
    }

    /// Returns the number of operands processed so far; the step budget counts them.
    pub(crate) fn work_done(&self) -> u64 {
        self.work_done
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.table_bytes()
            + self.facts.capacity() * size_of::<FormulaFacts>()
            + self.negated.table_bytes()
            + self.list_bytes
    }

    fn intern(&mut self, form: Formula) -> FormulaId {
        let id = self.table.intern(form);
        if (id as usize) < self.facts.len() {
            return FormulaId(id);
        }
        let leaf = FormulaFacts {
            has_child: false,
            has_atom: false,
            compares_items: false,
            size: 1,
            depth: 1,
        };
        let of = |inner: &FormulaId| self.facts[inner.0 as usize];
        let above = |one: FormulaFacts, other: FormulaFacts| FormulaFacts {
            has_child: one.has_child | other.has_child,
            has_atom: one.has_atom | other.has_atom,
            compares_items: one.compares_items | other.compares_items,
            size: one.size.saturating_add(other.size),
            depth: one.depth.max(other.depth + 1),
        };
        let (facts, bytes) = match self.table.get(id) {
            Formula::False | Formula::True => (leaf, 0),
            Formula::Child(_) => (FormulaFacts { has_child: true, ..leaf }, 0),
            Formula::Atom(atom) => {
                let compares_items = matches!(atom, FormulaAtom::UniqueWithCurrent(_));
                let facts = FormulaFacts { has_atom: true, compares_items, ..leaf };
                (facts, atom.list_bytes())
            }
            Formula::Not(inner) => (above(leaf, of(inner)), 0),
            Formula::And(list) | Formula::Or(list) | Formula::ExactlyOne(list) => {
                let facts = list.iter().fold(leaf, |so_far, inner| above(so_far, of(inner)));
                (facts, list.len() * size_of::<FormulaId>())
            }
        };
        self.max_depth = self.max_depth.max(facts.depth);
        self.list_bytes += bytes;
        self.facts.push(facts);
        FormulaId(id)
    }

    pub(crate) fn constant(truth: bool) -> FormulaId {
        if truth { TRUE } else { FALSE }
    }

    pub(crate) fn atom(&mut self, atom: FormulaAtom) -> FormulaId {
        self.intern(Formula::Atom(atom))
    }

    /// Returns the formula of an atom if it was interned before.
    pub(crate) fn find_atom(&self, atom: &FormulaAtom) -> Option<FormulaId> {
        self.table.find(&Formula::Atom(atom.clone())).map(FormulaId)
    }

    pub(crate) fn child(&mut self, node: NodeId) -> FormulaId {
        self.intern(Formula::Child(node))
    }

    /// Returns the negation, pushed down to the leaves.
    pub(crate) fn not(&mut self, id: FormulaId) -> FormulaId {
        let (list, is_and) = match self.get(id) {
            Formula::False => return TRUE,
            Formula::True => return FALSE,
            Formula::Not(inner) => return *inner,
            Formula::Child(_) | Formula::Atom(_) | Formula::ExactlyOne(_) => {
                return self.intern(Formula::Not(id));
            }
            Formula::And(list) => (list, true),
            Formula::Or(list) => (list, false),
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

    pub(crate) fn and(&mut self, list: Vec<FormulaId>) -> FormulaId {
        self.flatten_connective(list, TRUE)
    }

    pub(crate) fn or(&mut self, list: Vec<FormulaId>) -> FormulaId {
        self.flatten_connective(list, FALSE)
    }

    pub(crate) fn both(&mut self, left: FormulaId, right: FormulaId) -> FormulaId {
        self.and(vec![left, right])
    }

    /// Builds a conjunction (`unit` is [`TRUE`]) or a disjunction (`unit` is [`FALSE`]): flattens,
    /// sorts, removes duplicates, and detects complementary operands.
    fn flatten_connective(&mut self, list: Vec<FormulaId>, unit: FormulaId) -> FormulaId {
        let zero = if unit == TRUE { FALSE } else { TRUE };
        let mut flat: Vec<FormulaId> = Vec::with_capacity(list.len());
        for one in list {
            match self.get(one) {
                Formula::And(inner) if unit == TRUE => flat.extend_from_slice(inner),
                Formula::Or(inner) if unit == FALSE => flat.extend_from_slice(inner),
                _ if one == zero => return zero,
                _ if one == unit => {}
                _ => flat.push(one),
            }
        }
        self.work_done += flat.len() as u64;
        flat.sort_unstable();
        flat.dedup();
        for &one in &flat {
            if let Formula::Not(inner) = self.get(one)
                && flat.binary_search(inner).is_ok()
            {
                return zero;
            }
        }
        match flat.len() {
            0 => unit,
            1 => flat[0],
            _ if unit == TRUE => self.intern(Formula::And(flat.into())),
            _ => self.intern(Formula::Or(flat.into())),
        }
    }

    /// Returns the formula that exactly one of `list` holds.
    pub(crate) fn exactly_one(&mut self, mut list: Vec<FormulaId>) -> FormulaId {
        list.retain(|&one| one != FALSE);
        list.sort_unstable();
        // An operand that occurs twice cannot be the only one that holds, so it must be false.
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
        let mut all: Vec<FormulaId> = never.into_iter().map(|one| self.not(one)).collect();
        if let [one, other] = once[..] {
            // If the conjuncts of one operand include those of the other, the weaker must hold and
            // the rest of the stronger must fail.
            let (one, other) = (self.conjuncts(one), self.conjuncts(other));
            let (less, more) = if one.len() < other.len() { (one, other) } else { (other, one) };
            let is_left = |part: &FormulaId| less.binary_search(part).is_err();
            let rest: Vec<FormulaId> = more.iter().copied().filter(is_left).collect();
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
            _ => self.intern(Formula::ExactlyOne(once.into())),
        });
        self.and(all)
    }

    /// Returns the formula with leaves replaced by `leaf`. With [`ReplacedLeaves::Children`],
    /// subformulas without children are kept as they are. Fails if `leaf` does.
    pub(crate) fn replace_leaves<X>(
        &mut self,
        id: FormulaId,
        which: ReplacedLeaves,
        seen: &mut CompactMap<FormulaId, FormulaId>,
        leaf: &mut impl FnMut(&mut FormulaArena, FormulaId) -> Result<FormulaId, X>,
    ) -> Result<FormulaId, X> {
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
            Formula::False | Formula::True => return Ok(id),
            Formula::Child(_) | Formula::Atom(_) => return leaf(self, id),
            &Formula::Not(inner) => {
                let inner = self.replace_leaves(inner, which, seen, leaf)?;
                return Ok(self.not(inner));
            }
            Formula::And(list) => (Arc::clone(list), Some(FALSE)),
            Formula::Or(list) => (Arc::clone(list), Some(TRUE)),
            Formula::ExactlyOne(list) => (Arc::clone(list), None),
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
            None => self.exactly_one(new),
        };
        seen.insert(id, new);
        Ok(new)
    }

    /// Returns the formula with the child leaves of `queries` (sorted) replaced by the formulas of
    /// `verdicts`.
    pub(crate) fn substitute_verdicts(
        &mut self,
        id: FormulaId,
        queries: &[NodeId],
        verdicts: &[FormulaId],
    ) -> FormulaId {
        if queries.is_empty() || !self.has_child(id) {
            return id;
        }
        let replaced: Result<FormulaId, std::convert::Infallible> = self.replace_leaves(
            id,
            ReplacedLeaves::Children,
            &mut CompactMap::default(),
            &mut |all, leaf| {
                Ok(match all.get(leaf) {
                    Formula::Child(node) => {
                        queries.binary_search(node).map_or(leaf, |at| verdicts[at])
                    }
                    _ => leaf,
                })
            },
        );
        match replaced {
            Ok(new) => new,
        }
    }

    /// Returns the nodes that the child is queried for, sorted.
    pub(crate) fn queried_nodes(&self, list: &[FormulaId]) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut stack: Vec<FormulaId> = list.to_vec();
        while let Some(id) = stack.pop() {
            if !self.has_child(id) || !seen.insert(id) {
                continue;
            }
            match self.get(id) {
                Formula::Child(node) => nodes.push(*node),
                Formula::Not(inner) => stack.push(*inner),
                Formula::And(list) | Formula::Or(list) | Formula::ExactlyOne(list) => {
                    stack.extend_from_slice(list);
                }
                Formula::False | Formula::True | Formula::Atom(_) => {}
            }
        }
        nodes.sort_unstable();
        nodes
    }

    /// Returns the truth of a formula, given the truth of its atoms. Child leaves count as false.
    pub(crate) fn evaluate(
        &self,
        id: FormulaId,
        atom: &mut impl FnMut(&FormulaAtom) -> bool,
    ) -> bool {
        self.evaluate_memoized(id, atom, &mut CompactMap::default())
    }

    /// Evaluates a formula, with results memoized for large subformulas.
    fn evaluate_memoized(
        &self,
        id: FormulaId,
        atom: &mut impl FnMut(&FormulaAtom) -> bool,
        known: &mut CompactMap<FormulaId, bool>,
    ) -> bool {
        let is_small = self.is_small(id);
        if !is_small && let Some(&known) = known.get(&id) {
            return known;
        }
        let mut holds = |one: FormulaId| self.evaluate_memoized(one, atom, known);
        let truth = match self.get(id) {
            Formula::False | Formula::Child(_) => false,
            Formula::True => true,
            Formula::Atom(one) => atom(one),
            Formula::Not(inner) => !holds(*inner),
            Formula::And(list) => list.iter().all(|&one| holds(one)),
            Formula::Or(list) => list.iter().any(|&one| holds(one)),
            Formula::ExactlyOne(list) => {
                list.iter().filter(|&&one| holds(one)).take(2).count() == 1
            }
        };
        if !is_small {
            known.insert(id, truth);
        }
        truth
    }

    /// Calls `found` for each distinct atom until it returns `true`. Returns `true` if it did.
    pub(crate) fn any_atom(
        &self,
        all: &[FormulaId],
        mut found: impl FnMut(&FormulaAtom) -> bool,
    ) -> bool {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut stack = all.to_vec();
        while let Some(id) = stack.pop() {
            if !self.has_atom(id) || !seen.insert(id) {
                continue;
            }
            match self.get(id) {
                Formula::Atom(atom) if found(atom) => return true,
                Formula::Not(inner) => stack.push(*inner),
                Formula::And(list) | Formula::Or(list) | Formula::ExactlyOne(list) => {
                    stack.extend_from_slice(list);
                }
                Formula::Atom(_) | Formula::False | Formula::True | Formula::Child(_) => {}
            }
        }
        false
    }

    /// Returns the atom of a literal, and `false` if it is negated.
    pub(crate) fn literal(&self, id: FormulaId) -> Option<(&FormulaAtom, bool)> {
        match self.get(id) {
            Formula::Atom(atom) => Some((atom, true)),
            Formula::Not(inner) => match self.get(*inner) {
                Formula::Atom(atom) => Some((atom, false)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the name if the formula says no more than that this property is absent.
    pub(crate) fn excluded_property(&self, id: FormulaId) -> Option<NameId> {
        let Formula::Not(inner) = self.get(id) else { return None };
        match self.get(*inner) {
            Formula::Atom(FormulaAtom::Required(names)) if names.len() == 1 => Some(names[0]),
            _ => None,
        }
    }

    /// Returns *n* if the formula only says that at most *n* more properties follow.
    pub(crate) fn max_more_properties(&self, id: FormulaId) -> Option<u64> {
        let Formula::Not(inner) = self.get(id) else { return None };
        match self.get(*inner) {
            Formula::Atom(FormulaAtom::MinProperties(count)) => Some(count.saturating_sub(1)),
            _ => None,
        }
    }

    /// Returns the number of operands of the top connective, 1 for a leaf.
    pub(crate) fn part_count(&self, id: FormulaId) -> usize {
        match self.get(id) {
            Formula::And(list) | Formula::Or(list) | Formula::ExactlyOne(list) => list.len(),
            _ => 1,
        }
    }

    /// Returns the operands of a conjunction, or the formula itself.
    pub(crate) fn conjuncts(&self, id: FormulaId) -> Vec<FormulaId> {
        match self.get(id) {
            Formula::And(list) => list.to_vec(),
            _ if id == TRUE => Vec::new(),
            _ => vec![id],
        }
    }

    /// Calls `visit` for the atoms of a formula. Those of a small one may be visited several times.
    pub(crate) fn visit_atoms<'a>(
        &'a self,
        id: FormulaId,
        visit: &mut impl FnMut(&'a FormulaAtom),
    ) {
        if !self.is_small(id) {
            self.atoms_of(&[id]).into_iter().for_each(visit);
            return;
        }
        match self.get(id) {
            Formula::Atom(atom) => visit(atom),
            Formula::Not(inner) => self.visit_atoms(*inner, visit),
            Formula::And(list) | Formula::Or(list) | Formula::ExactlyOne(list) => {
                list.iter().for_each(|&one| self.visit_atoms(one, visit));
            }
            Formula::False | Formula::True | Formula::Child(_) => {}
        }
    }

    /// Returns the distinct atoms of a formula.
    pub(crate) fn atoms(&self, id: FormulaId) -> Vec<FormulaAtom> {
        self.atoms_of(&[id]).into_iter().cloned().collect()
    }

    /// Returns the distinct atoms of some formulas.
    pub(crate) fn atoms_of(&self, all: &[FormulaId]) -> Vec<&FormulaAtom> {
        let (mut atoms, mut stack) = (Vec::new(), all.to_vec());
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(id) = stack.pop() {
            if !self.has_atom(id) || !seen.insert(id) {
                continue;
            }
            match self.get(id) {
                Formula::Atom(atom) => atoms.push(atom),
                Formula::Not(inner) => stack.push(*inner),
                Formula::And(list) | Formula::Or(list) | Formula::ExactlyOne(list) => {
                    stack.extend_from_slice(list);
                }
                Formula::False | Formula::True | Formula::Child(_) => {}
            }
        }
        atoms
    }

    pub(crate) fn holds_for_boolean(&self, id: FormulaId, value: bool) -> bool {
        self.evaluate(id, &mut |atom| matches!(atom, FormulaAtom::IsTrue) && value)
    }

    /// Returns `true` if a formula holds should the object or array end here.
    pub(crate) fn holds_at_end(&self, id: FormulaId) -> bool {
        self.evaluate(id, &mut |atom| {
            matches!(
                atom,
                FormulaAtom::Properties(_)
                    | FormulaAtom::PropertyNames(_)
                    | FormulaAtom::Items(..)
                    | FormulaAtom::UniqueItems(_)
                    | FormulaAtom::UniqueWithCurrent(_)
            )
        })
    }

    /// Returns the atom "at least `count`", which is [`TRUE`] for zero.
    pub(crate) fn at_least(&mut self, atom: FormulaAtom, count: u64) -> FormulaId {
        if count == 0 { TRUE } else { self.atom(atom) }
    }

    /// Returns the formula that requires these names.
    pub(crate) fn required(&mut self, mut names: Vec<NameId>) -> FormulaId {
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { TRUE } else { self.atom(FormulaAtom::Required(names.into())) }
    }

    /// Returns the names that a conjunction requires.
    pub(crate) fn required_names(&self, context: FormulaId) -> Vec<NameId> {
        let mut names = Vec::new();
        for part in self.conjuncts(context) {
            if let Formula::Atom(FormulaAtom::Required(required)) = self.get(part) {
                names.extend(required.iter());
            }
        }
        names
    }

    /// Returns a formula without its conjuncts that only exclude single numbers.
    pub(crate) fn drop_exclusions(&mut self, id: FormulaId) -> FormulaId {
        let Formula::And(list) = self.get(id).clone() else { return id };
        let is_equal =
            |id: &FormulaId| matches!(self.get(*id), Formula::Atom(FormulaAtom::EqualTo(_)));
        let is_exception = |id: &FormulaId| match self.get(*id) {
            Formula::Not(inner) => match self.get(*inner) {
                Formula::Or(list) => list.iter().all(is_equal),
                _ => is_equal(inner),
            },
            _ => false,
        };
        let rest: Vec<FormulaId> = list.iter().copied().filter(|id| !is_exception(id)).collect();
        if rest.len() == list.len() { id } else { self.and(rest) }
    }

    /// Returns `true` for an "exactly one", which mostly rejects strings that satisfy two operands;
    /// exploring its states would find that out late.
    pub(crate) fn has_exactly_one(&self, id: FormulaId) -> bool {
        match self.get(id) {
            Formula::ExactlyOne(_) => true,
            Formula::And(list) => list.iter().any(|&one| self.has_exactly_one(one)),
            _ => false,
        }
    }
}
