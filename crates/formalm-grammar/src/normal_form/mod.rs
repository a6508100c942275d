//! The normal form of a grammar: no useless symbols, no ε-productions, no unit cycles.
//!
//! Each step is linear and iterative. Afterwards every symbol derives a nonempty string, no
//! production is empty, and no symbol derives itself alone. The graph-structured stack is therefore
//! acyclic: each symbol pushed spans at least one terminal.
//!
//! Reference: J. Hopcroft, J. Ullman, "Introduction to Automata Theory" (1979), section 4.4.

use crate::normal_form::lowering::{LoweredRules, Production};
pub(crate) mod lowering;
pub(crate) mod unit_cycles;

/// Productions in normal form.
#[derive(Debug)]
pub(crate) struct NormalizedGrammar {
    /// Symbols below this number are terminals.
    pub(crate) terminals: u32,
    pub(crate) symbols: u32,
    pub(crate) productions: Vec<Production>,
    /// Per symbol: `true` if it also derives the empty string.
    pub(crate) nullable: Vec<bool>,
    pub(crate) start: u32,
    /// Symbols that surely derive something in two ways: through themselves, or by equal
    /// productions.
    pub(crate) ambiguous_symbols: Vec<u32>,
    /// Per symbol before merging: `true` if it derives no string.
    pub(crate) unproductive: Vec<bool>,
    /// Per symbol before merging: `true` if the start symbol does not reach it.
    pub(crate) unreachable: Vec<bool>,
}

impl NormalizedGrammar {
    /// Normalizes productions, given the terminals without lexemes. Returns `None` if the start
    /// symbol derives no string.
    pub(crate) fn new(
        lowered: LoweredRules,
        unproductive_terminals: &[bool],
        start: u32,
    ) -> Option<NormalizedGrammar> {
        let terminals = unproductive_terminals.len() as u32;
        let symbols = lowered.symbols;
        let mut productions = lowered.productions;
        let productive = productive(&productions, symbols, unproductive_terminals);
        if !productive[start as usize] {
            return None;
        }
        productions.retain(|one| one.right.iter().all(|&symbol| productive[symbol as usize]));
        let reachable = reachable(&productions, symbols, start);
        productions.retain(|one| reachable[one.left as usize]);
        let mut nullable = derives(&productions, symbols, |_| false, HoldsIf::All);
        let derives_nonempty =
            derives(&productions, symbols, |symbol| symbol < terminals, HoldsIf::Any);
        for one in &mut productions {
            one.right.retain(|&symbol| derives_nonempty[symbol as usize]);
        }
        productions.retain(|one| !one.right.is_empty());
        let merged = unit_cycles::merge_unit_cycles(&productions, &nullable, terminals, symbols);
        for one in &mut productions {
            one.left = merged[one.left as usize];
            one.right.iter_mut().for_each(|symbol| *symbol = merged[*symbol as usize]);
        }
        let mut ambiguous_symbols = Vec::new();
        productions.retain(|one| {
            let is_loop = one.right == [one.left];
            ambiguous_symbols.extend(is_loop.then_some(one.left));
            !is_loop
        });
        productions.sort_unstable();
        productions.dedup_by(|one, before| {
            ambiguous_symbols.extend((one == before).then_some(one.left));
            one == before
        });
        let start = merged[start as usize];
        nullable = merged.iter().map(|&symbol| nullable[symbol as usize]).collect();
        Some(NormalizedGrammar {
            terminals,
            symbols,
            productions,
            nullable,
            start,
            ambiguous_symbols,
            unproductive: productive.iter().map(|productive| !productive).collect(),
            unreachable: reachable.iter().map(|reachable| !reachable).collect(),
        })
    }
}

/// Returns the symbols that derive a string.
pub(crate) fn productive(
    productions: &[Production],
    symbols: u32,
    unproductive_terminals: &[bool],
) -> Vec<bool> {
    let full = |symbol: u32| {
        unproductive_terminals.get(symbol as usize).is_some_and(|unproductive| !unproductive)
    };
    derives(productions, symbols, full, HoldsIf::All)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HoldsIf {
    /// A production holds if all its symbols do.
    All,
    /// A production holds if any of its symbols does.
    Any,
}

/// Returns the symbols for which a property holds: the `given` ones, and the left-hand sides of
/// productions that hold.
fn derives(
    productions: &[Production],
    symbols: u32,
    given: impl Fn(u32) -> bool,
    holds_if: HoldsIf,
) -> Vec<bool> {
    let mut holds = vec![false; symbols as usize];
    let mut uses: Vec<Vec<u32>> = vec![Vec::new(); symbols as usize];
    let mut missing: Vec<usize> = Vec::with_capacity(productions.len());
    let mut work: Vec<u32> = (0..symbols).filter(|&symbol| given(symbol)).collect();
    for (at, one) in productions.iter().enumerate() {
        for &symbol in &one.right {
            uses[symbol as usize].push(at as u32);
        }
        missing.push(if holds_if == HoldsIf::All { one.right.len() } else { 1 });
        if one.right.is_empty() && holds_if == HoldsIf::All {
            work.push(one.left);
        }
    }
    while let Some(symbol) = work.pop() {
        if std::mem::replace(&mut holds[symbol as usize], true) {
            continue;
        }
        for &at in &uses[symbol as usize] {
            let missing = &mut missing[at as usize];
            *missing = missing.saturating_sub(1);
            if *missing == 0 {
                work.push(productions[at as usize].left);
            }
        }
    }
    holds
}

fn reachable(productions: &[Production], symbols: u32, start: u32) -> Vec<bool> {
    let mut of: Vec<Vec<u32>> = vec![Vec::new(); symbols as usize];
    for (at, one) in productions.iter().enumerate() {
        of[one.left as usize].push(at as u32);
    }
    let mut reached = vec![false; symbols as usize];
    let mut work = vec![start];
    while let Some(symbol) = work.pop() {
        if !std::mem::replace(&mut reached[symbol as usize], true) {
            let productions = of[symbol as usize].iter().map(|&at| &productions[at as usize]);
            work.extend(productions.flat_map(|one| one.right.iter().copied()));
        }
    }
    reached
}
