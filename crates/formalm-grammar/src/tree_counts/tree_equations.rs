//! Numbers of trees as the least solution of the equations given by the productions.
//!
//! A symbol has the trees of its productions. A prefix of a production has the trees of the shorter
//! prefix times those of its last symbol, with lengths added. Lengths are solved in ascending
//! order. For one length, products of shorter strings are known; the rest are sums in which one
//! factor has the full length and the others are empty. A component of these sums that depends on
//! itself has no trees or infinitely many.

use formalm_core::Error;
use num_bigint::BigUint;
use num_traits::{One, Zero};

use super::TreeCount;
use crate::normal_form::lowering::LoweredRules;
use crate::normal_form::unit_cycles::components;
use crate::trees::StepBudget;

/// A prefix of a production: its last symbol, and the shorter prefix.
#[derive(Clone, Copy, Debug)]
struct ProductionPrefix {
    symbol: u32,
    before: Option<u32>,
}

/// The equation of a symbol.
#[derive(Clone, Debug, Default)]
struct SymbolEquation {
    /// Whole productions, as prefixes.
    whole_productions: Vec<u32>,
    /// Number of empty productions.
    empty: u32,
}

#[derive(Debug)]
pub(super) struct TreeEquations {
    /// Terminals come first.
    symbols: Vec<SymbolEquation>,
    prefixes: Vec<ProductionPrefix>,
    terminals: usize,
    most: usize,
    /// Counts by vertex (symbols, then prefixes) and length.
    counts: Vec<Vec<TreeCount>>,
}

/// Adds a product to a sum.
fn add(sum: &mut TreeCount, left: &TreeCount, right: &TreeCount) {
    let is_zero = |one: &TreeCount| one.as_ref().is_some_and(Zero::is_zero);
    match (left, right) {
        _ if is_zero(left) || is_zero(right) => {}
        (Some(left), Some(right)) => {
            if let Some(sum) = sum {
                *sum += left * right;
            }
        }
        _ => *sum = None,
    }
}

/// Returns the number of pairs whose lengths add up to `length`.
pub(super) fn product(left: &[TreeCount], right: &[TreeCount], length: usize) -> TreeCount {
    let mut sum = Some(BigUint::zero());
    for at in 0..=length {
        add(&mut sum, &left[at], &right[length - at]);
    }
    sum
}

fn is_nonzero(count: &TreeCount) -> bool {
    count.as_ref().is_none_or(|count| !count.is_zero())
}

impl TreeEquations {
    /// Builds the equations of `start`; `lexemes` are the counts of the terminals by length, up to
    /// `most`.
    pub(super) fn new(
        lowering: &LoweredRules,
        lexemes: Vec<Vec<TreeCount>>,
        start: u32,
        most: usize,
    ) -> TreeEquations {
        let terminals = lexemes.len();
        let mut made = TreeEquations {
            symbols: vec![SymbolEquation::default(); lowering.symbols as usize],
            prefixes: Vec::new(),
            terminals,
            most,
            counts: lexemes,
        };
        let mut rows: Vec<Vec<&[u32]>> = vec![Vec::new(); made.symbols.len()];
        for one in &lowering.productions {
            rows[one.left as usize].push(&one.right);
        }
        let mut seen = vec![false; made.symbols.len()];
        let mut open = vec![start];
        while let Some(symbol) = open.pop() {
            if std::mem::replace(&mut seen[symbol as usize], true) {
                continue;
            }
            for right in &rows[symbol as usize] {
                open.extend_from_slice(right);
                let mut before = None;
                for &symbol in *right {
                    made.prefixes.push(ProductionPrefix { symbol, before });
                    before = Some(made.prefixes.len() as u32 - 1);
                }
                match before {
                    Some(whole) => made.symbols[symbol as usize].whole_productions.push(whole),
                    None => made.symbols[symbol as usize].empty += 1,
                }
            }
        }
        made
    }

    fn prefix_vertex(&self, prefix_vertex: u32) -> usize {
        self.symbols.len() + prefix_vertex as usize
    }

    /// Solves the equations and returns the counts of a symbol by length.
    pub(super) fn solve(
        mut self,
        start: u32,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<Vec<TreeCount>, Error> {
        let vertices = self.symbols.len() + self.prefixes.len();
        // Most counts are zero: absent numbers take no memory.
        steps.spend(vertices)?;
        self.counts.resize_with(vertices, Vec::new);
        self.solve_empty_string(steps)?;
        let edges = self.edges();
        let parts = components(&edges);
        for length in 1..=self.most {
            for part in &parts {
                self.solve_component(part, &edges, length, steps)?;
            }
        }
        Ok(std::mem::take(&mut self.counts[start as usize]))
    }

    /// Counts the trees of the empty string.
    fn solve_empty_string(&mut self, steps: &mut StepBudget<'_, '_>) -> Result<(), Error> {
        let vertices = self.counts.len();
        let mut nullable = vec![false; vertices];
        let mut changed = true;
        while changed {
            changed = false;
            steps.spend(vertices)?;
            for vertex in self.terminals..vertices {
                let holds = match vertex.checked_sub(self.symbols.len()) {
                    None => {
                        let symbol = &self.symbols[vertex];
                        let mut whole_productions = symbol.whole_productions.iter();
                        symbol.empty > 0
                            || whole_productions.any(|&whole| nullable[self.prefix_vertex(whole)])
                    }
                    Some(at) => {
                        let ProductionPrefix { symbol, before } = self.prefixes[at];
                        nullable[symbol as usize]
                            && before.is_none_or(|one| nullable[self.prefix_vertex(one)])
                    }
                };
                changed |= holds && !std::mem::replace(&mut nullable[vertex], holds);
            }
        }
        let parts: Vec<Vec<u32>> = (0..vertices)
            .map(|vertex| {
                let all = self.operands(vertex);
                let may = nullable[vertex];
                all.into_iter().filter(|&one| may && nullable[one as usize]).collect()
            })
            .collect();
        for part in components(&parts) {
            let first = part[0] as usize;
            let cyclic = part.len() > 1 || parts[first].contains(&part[0]);
            for &one in &part {
                let vertex = one as usize;
                if vertex < self.terminals {
                    continue;
                }
                let count = match cyclic {
                    true => None,
                    false => self.empty_count(vertex),
                };
                steps.spend(1)?;
                self.counts[vertex].push(count);
            }
        }
        Ok(())
    }

    /// Returns the operands of a vertex.
    fn operands(&self, vertex: usize) -> Vec<u32> {
        match vertex.checked_sub(self.symbols.len()) {
            None => {
                let whole_productions = self.symbols[vertex].whole_productions.iter();
                whole_productions.map(|&whole| self.prefix_vertex(whole) as u32).collect()
            }
            Some(at) => {
                let ProductionPrefix { symbol, before } = self.prefixes[at];
                let before = before.map(|one| self.prefix_vertex(one) as u32);
                before.into_iter().chain([symbol]).collect()
            }
        }
    }

    /// Returns the number of trees of the empty string, if those of all operands are known; unknown
    /// operands count as zero.
    fn empty_count(&self, vertex: usize) -> TreeCount {
        let none = Some(BigUint::zero());
        let of = |vertex: usize| self.counts[vertex].first().unwrap_or(&none);
        match vertex.checked_sub(self.symbols.len()) {
            None => {
                let symbol = &self.symbols[vertex];
                let mut sum = Some(BigUint::from(symbol.empty));
                for &whole in &symbol.whole_productions {
                    add(&mut sum, of(self.prefix_vertex(whole)), &Some(BigUint::one()));
                }
                sum
            }
            Some(at) => {
                let ProductionPrefix { symbol, before } = self.prefixes[at];
                let Some(before) = before else { return of(symbol as usize).clone() };
                let mut sum = Some(BigUint::zero());
                add(&mut sum, of(self.prefix_vertex(before)), of(symbol as usize));
                sum
            }
        }
    }

    /// Returns, per vertex, the operands that can have its full length while all others are empty.
    fn edges(&self) -> Vec<Vec<u32>> {
        let edges_of = |vertex: usize| {
            let Some(at) = vertex.checked_sub(self.symbols.len()) else {
                return self.operands(vertex);
            };
            let ProductionPrefix { symbol, before } = self.prefixes[at];
            let mut edges = Vec::new();
            if symbol as usize >= self.terminals
                && before.is_none_or(|one| is_nonzero(&self.counts[self.prefix_vertex(one)][0]))
            {
                edges.push(symbol);
            }
            if let Some(before) = before
                && is_nonzero(&self.counts[symbol as usize][0])
            {
                edges.push(self.prefix_vertex(before) as u32);
            }
            edges
        };
        (0..self.counts.len()).map(edges_of).collect()
    }

    /// Computes the counts of one length for a component.
    fn solve_component(
        &mut self,
        part: &[u32],
        edges: &[Vec<u32>],
        length: usize,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<(), Error> {
        if (part[0] as usize) < self.terminals {
            return Ok(());
        }
        let cyclic = part.len() > 1 || edges[part[0] as usize].contains(&part[0]);
        let mut found = Vec::with_capacity(part.len());
        for &vertex in part {
            found.push(self.count(vertex as usize, length, steps)?);
        }
        if cyclic {
            // A nonzero count from outside repeats without bound.
            let some = found.iter().any(is_nonzero);
            found.iter_mut().for_each(|one| *one = if some { None } else { one.take() });
        }
        for (&vertex, count) in part.iter().zip(found) {
            self.counts[vertex as usize].push(count);
        }
        Ok(())
    }

    /// Returns the trees of a vertex with a given length; uncomputed operands count as zero.
    fn count(
        &self,
        vertex: usize,
        length: usize,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<TreeCount, Error> {
        let none = Some(BigUint::zero());
        let of = |vertex: usize, length: usize| self.counts[vertex].get(length).unwrap_or(&none);
        let mut sum = Some(BigUint::zero());
        let Some(at) = vertex.checked_sub(self.symbols.len()) else {
            for &whole in &self.symbols[vertex].whole_productions {
                steps.spend(1)?;
                add(&mut sum, of(self.prefix_vertex(whole), length), &Some(BigUint::one()));
            }
            return Ok(sum);
        };
        let ProductionPrefix { symbol, before } = self.prefixes[at];
        let Some(before) = before else { return Ok(of(symbol as usize, length).clone()) };
        let before = self.prefix_vertex(before);
        for front in 0..=length {
            let (left, right) = (of(before, front), of(symbol as usize, length - front));
            let bits = left.as_ref().map_or(0, BigUint::bits) as usize;
            steps.spend(1 + (bits >> 9))?;
            add(&mut sum, left, right);
        }
        Ok(sum)
    }
}
