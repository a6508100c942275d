//! Ambiguity of a grammar: whether a sequence of lexemes can have several parse trees.
//!
//! Ambiguity of context-free grammars is undecidable. A grammar without LALR(1) conflicts is
//! unambiguous; every other grammar is reported as possibly ambiguous, with the conflicts. The
//! tables are those of the automaton, which skips nullable symbols, so a rule counts as all its
//! variants without them.

mod example_prefixes;
mod lalr_lookaheads;

use formalm_core::{Error, Resource};
use rustc_hash::FxHashMap;

use crate::grammar::Grammar;
use crate::lexer::terminal_automata::{build_terminal_automata, unproductive_terminals};
use crate::limits::{GrammarLimits, StepMeter, check};
use crate::lr0::{END_OF_INPUT, Lr0Automaton, contains, elements};
use crate::normal_form::NormalizedGrammar;
use crate::normal_form::lowering::{LoweredRules, Production};
use example_prefixes::ExamplePrefixes;
use lalr_lookaheads::LalrLookaheads;

/// Maximum number of LR states, and of conflicts reported. Chosen, not measured.
const MAX_STATES: u64 = 50_000;
const MAX_CONFLICTS: usize = 100;

/// An LALR(1) conflict: a position where the next lexeme does not determine the action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LalrConflict {
    /// The rules that may end there.
    pub rules: Vec<usize>,
    /// `true` if some rule may also continue there.
    pub can_shift: bool,
    /// The terminals that may come next in either case; `None` is the end of input.
    pub lookaheads: Vec<Option<usize>>,
    /// A shortest known sequence of terminals that leads there; empty if it is too long.
    pub example_prefix: Vec<usize>,
}

/// The result of the analysis.
#[derive(Clone, Debug, Default)]
pub struct AmbiguityReport {
    /// The conflicts; a sample if there are very many.
    pub conflicts: Vec<LalrConflict>,
    /// Rules that certainly derive something in two ways.
    pub ambiguous_rules: Vec<usize>,
}

/// Looks for positions at which a sequence of lexemes may have several trees.
///
/// # Errors
///
/// [`Error::Limit`] if the tables are too large.
pub fn ambiguity(grammar: &Grammar, limits: GrammarLimits) -> Result<AmbiguityReport, Error> {
    grammar.check()?;
    let (terminal_automata, nullable) = build_terminal_automata(grammar)?;
    let lowering = LoweredRules::for_trees(grammar, &nullable, limits.productions)?;
    let (all, owners) = (lowering.productions.clone(), lowering.owners.clone());
    let start = (grammar.terminals.len() + grammar.start) as u32;
    let Some(normalized) = NormalizedGrammar::new(
        lowering,
        &unproductive_terminals(grammar, &terminal_automata)?,
        start,
    ) else {
        return Ok(AmbiguityReport::default());
    };
    let first = grammar.terminals.len() as u32;
    let owner = |symbol: u32| owners[(symbol - first) as usize] as usize;
    let mut doubled: Vec<u32> = normalized.ambiguous_symbols.clone();
    doubled.extend(derive_empty_twice(&all, &normalized));
    doubled.extend(
        normalized.productions.iter().filter(|one| is_loop(one, &normalized)).map(|one| one.left),
    );
    let mut meter = StepMeter::new(limits.steps.saturating_mul(16));
    let ones = vec![1; normalized.symbols as usize];
    let mut lr0 = Lr0Automaton::new(&normalized, &ones, &mut meter)?;
    let lookaheads = LalrLookaheads::new(&mut lr0, &mut meter)?;
    let examples = ExamplePrefixes::new(&normalized, &lookaheads);
    let mut conflicts: Vec<LalrConflict> = Vec::new();
    let mut known: FxHashMap<(Vec<usize>, bool), usize> = FxHashMap::default();
    for state in 0..lookaheads.len() {
        doubled.extend(ambiguous_in_state(&lr0, state));
        for (lefts, goes_on, next) in conflicts_in_state(&lr0, &lookaheads, state) {
            let mut rules: Vec<usize> = lefts.iter().map(|&left| owner(left)).collect();
            rules.sort_unstable();
            rules.dedup();
            let next = next.into_iter().map(|number| number.checked_sub(1).map(|at| at as usize));
            match known.get(&(rules.clone(), goes_on)) {
                Some(&at) => conflicts[at].lookaheads.extend(next),
                None if conflicts.len() < MAX_CONFLICTS => {
                    known.insert((rules.clone(), goes_on), conflicts.len());
                    let before = examples.before(state);
                    conflicts.push(LalrConflict {
                        rules,
                        can_shift: goes_on,
                        lookaheads: next.collect(),
                        example_prefix: before,
                    });
                }
                None => {}
            }
        }
    }
    for one in &mut conflicts {
        one.lookaheads.sort_unstable();
        one.lookaheads.dedup();
    }
    let mut doubled: Vec<usize> = doubled.into_iter().map(owner).collect();
    doubled.sort_unstable();
    doubled.dedup();
    Ok(AmbiguityReport { conflicts, ambiguous_rules: doubled })
}

/// Returns `true` if some symbol of a production is its own left-hand side and all others are
/// nullable.
fn is_loop(one: &Production, normalized: &NormalizedGrammar) -> bool {
    let is_empty = |&symbol: &u32| normalized.nullable[symbol as usize];
    let itself = |at: &usize| one.right[*at] == one.left;
    let others = |at: usize| {
        one.right.iter().enumerate().all(|(position, one)| position == at || is_empty(one))
    };
    (0..one.right.len()).filter(itself).any(others)
}

/// Returns the symbols that derive the empty string in two or infinitely many ways.
fn derive_empty_twice(productions: &[Production], normalized: &NormalizedGrammar) -> Vec<u32> {
    let symbols = normalized.unreachable.len();
    let is_used = |one: &&Production| !normalized.unreachable[one.left as usize];
    let is_empty =
        |one: &&Production| one.right.iter().all(|&symbol| symbol >= normalized.terminals);
    let all: Vec<&Production> = productions.iter().filter(is_used).filter(is_empty).collect();
    let mut uses: Vec<Vec<u32>> = vec![Vec::new(); symbols];
    let mut of: Vec<Vec<usize>> = vec![Vec::new(); symbols];
    for (at, one) in all.iter().enumerate() {
        of[one.left as usize].push(at);
        one.right.iter().for_each(|&symbol| uses[symbol as usize].push(one.left));
    }
    // Number of derivations, at most two. It only grows, so each symbol changes at most twice.
    let mut derivation_counts = vec![0u8; symbols];
    let mut queue: Vec<u32> = all.iter().map(|one| one.left).collect();
    while let Some(symbol) = queue.pop() {
        let product = |&at: &usize| {
            all[at]
                .right
                .iter()
                .fold(1u8, |product, &one| (product * derivation_counts[one as usize]).min(2))
        };
        let sum = of[symbol as usize].iter().map(product).fold(0u8, |sum, one| (sum + one).min(2));
        if sum > derivation_counts[symbol as usize] {
            derivation_counts[symbol as usize] = sum;
            queue.extend(&uses[symbol as usize]);
        }
    }
    (0..symbols as u32).filter(|&one| derivation_counts[one as usize] > 1).collect()
}

/// Returns the left-hand sides of productions that reach one dot position, or their end, in two
/// ways.
fn ambiguous_in_state(lr0: &Lr0Automaton, state: u32) -> Vec<u32> {
    let kernel: Vec<(u32, u32)> = lr0.kernel(state).collect();
    let mut found = Vec::new();
    let mut ends: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for &(position, pushed) in &kernel {
        let left = lr0.left[position as usize];
        let reached = lalr_lookaheads::skip_nullable(lr0, position);
        if lr0.symbol_at[reached as usize] == crate::lr0::END && !lr0.is_goal(left) {
            let end = *ends.entry((left, pushed)).or_insert(reached);
            if end != reached {
                found.push(left);
            }
        }
        let again = |&&(other, count): &&(u32, u32)| {
            count == pushed && position < other && other <= reached
        };
        if kernel.iter().any(|one| again(&one)) {
            found.push(left);
        }
    }
    found
}

/// Returns the conflicts in a state: the left-hand sides that may end, whether a shift is possible,
/// and the lookaheads.
fn conflicts_in_state(
    lr0: &Lr0Automaton,
    lookaheads: &LalrLookaheads,
    state: u32,
) -> Vec<(Vec<u32>, bool, Vec<u32>)> {
    let shifts = lr0.sets.get(lr0.shifts(state));
    let reductions = lr0.reductions(state);
    let mut found = Vec::new();
    for (at, &one) in reductions.iter().enumerate() {
        let ahead = lookaheads.of(state, one);
        let next: Vec<u32> = elements(ahead).filter(|&number| contains(shifts, number)).collect();
        if !next.is_empty() {
            found.push((vec![one.0], true, next));
        }
        for &other in &reductions[at + 1..] {
            let also = lookaheads.of(state, other);
            let next: Vec<u32> = elements(ahead).filter(|&number| contains(also, number)).collect();
            if !next.is_empty() {
                found.push((vec![one.0, other.0], false, next));
            }
        }
    }
    debug_assert_eq!(END_OF_INPUT, 0, "the end of the text comes first");
    found
}

fn check_state_count(states: usize) -> Result<(), Error> {
    check(Resource::States, states as u64, MAX_STATES)
}
