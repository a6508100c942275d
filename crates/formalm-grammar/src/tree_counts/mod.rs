//! Exact numbers of parse trees by the length of their strings.
//!
//! The unit counted is a pair of a string and one of its trees. Lexemes are counted by their
//! automata and right-hand sides by convolution ([`tree_equations`]), without listing any string.
//! With [`Lexing::Any`] that is the whole computation. With ordered lexing, some sequences of
//! lexemes form strings that are split differently. [`lexeme_separation`] checks that this cannot
//! happen; otherwise the grammar is refused.

mod lexeme_separation;
mod tree_equations;

use formalm_automata::{
    Automaton, AutomatonLimits as TerminalLimits, Expression,
    materialized::{LengthCounts, LengthUnit, MaterializedDfa, UnitTransitions},
};
use formalm_core::{Error, InterruptCheck, require_exact};
use num_bigint::BigUint;
use num_traits::Zero;

use crate::grammar::{Grammar, Lexing};
use crate::lexer::terminal_automata::build_terminal_automata;
use crate::limits::GrammarLimits;
use crate::normal_form::lowering::LoweredRules;
use crate::trees::StepBudget;
use crate::trees::tree_shape::ShapedGrammar;
use lexeme_separation::LexemeSeparation;
use tree_equations::TreeEquations;

/// Maximum states of one terminal's graph. Chosen, not measured.
const MAX_GRAPH_STATES: u64 = 200_000;
/// Maximum bytes of one terminal's counts. Chosen, not measured.
const MAX_COUNT_BYTES: u64 = 1 << 28;

/// A number of trees; `None` is infinite.
pub(crate) type TreeCount = Option<BigUint>;

/// The parameters of a count.
#[derive(Clone, Copy, Debug)]
pub struct CountOptions {
    /// The maximum length.
    pub max_length: usize,
    /// The unit of a length.
    pub unit: LengthUnit,
    /// Maximum steps of work: products of two numbers.
    pub max_steps: u64,
}

/// Returns the number of pairs of a string and one of its trees, by the length of the string from 0
/// on; `None` where some string has infinitely many trees.
///
/// # Errors
///
/// [`Error::Language`] if lexemes are ordered and may be split differently in sequence, for
/// terminals with lookahead, and for lengths in characters of strings that are not UTF-8;
/// [`Error::Limit`], [`Error::Interrupted`].
pub fn tree_counts(
    shaped: &ShapedGrammar,
    lengths: CountOptions,
    poll: &mut InterruptCheck<'_>,
) -> Result<Vec<Option<BigUint>>, Error> {
    let grammar = &shaped.grammar;
    grammar.check()?;
    refuse_context_dependence(grammar)?;
    let (automata, nullable) = build_terminal_automata(grammar)?;
    let lowering =
        LoweredRules::for_trees(grammar, &nullable, GrammarLimits::default().productions)?;
    if grammar.lexing != Lexing::Any {
        let same =
            LoweredRules::for_trees(grammar, &nullable, GrammarLimits::default().productions)?;
        LexemeSeparation::new(grammar, &automata, same).check(poll)?;
    }
    let ignored = match grammar.ignored.is_empty() {
        true => None,
        false => Some(ignored_counts(grammar, lengths, poll)?),
    };
    let mut lexemes = Vec::with_capacity(automata.len());
    for (at, automaton) in automata.iter().enumerate() {
        let own = match (automaton, &grammar.terminals[at].sublanguage) {
            (_, Some(embedded)) => {
                let hint = "matches(text) checks a single string";
                require_exact(&*embedded.machine, "numbers of parse trees", hint)?;
                let bytes = match lengths.unit {
                    LengthUnit::Labels => lengths.max_length,
                    LengthUnit::Characters => lengths.max_length.saturating_mul(4),
                };
                let graph = MaterializedDfa::with_max_len(
                    &*embedded.machine,
                    bytes,
                    MAX_GRAPH_STATES,
                    poll,
                )?;
                count_by_length(&graph, lengths, poll)?
            }
            (Some(automaton), None) => count_by_length(
                &MaterializedDfa::of(&**automaton, MAX_GRAPH_STATES, poll)?,
                lengths,
                poll,
            )?,
            (None, None) => vec![BigUint::zero(); lengths.max_length + 1],
        };
        lexemes.push(with_ignored_prefix(own, ignored.as_deref()));
    }
    let start = (grammar.terminals.len() + grammar.start) as u32;
    let mut steps = StepBudget::new(lengths.max_steps, poll);
    let trees = TreeEquations::new(&lowering, lexemes, start, lengths.max_length)
        .solve(start, &mut steps)?;
    Ok(match ignored {
        None => trees,
        Some(ignored) => {
            let ignored: Vec<TreeCount> = ignored.into_iter().map(Some).collect();
            (0..=lengths.max_length)
                .map(|length| tree_equations::product(&trees, &ignored, length))
                .collect()
        }
    })
}

/// Refuses grammars in which lexemes depend on their context.
fn refuse_context_dependence(grammar: &Grammar) -> Result<(), Error> {
    let refusal = |message: String, span| {
        let hint =
            "count members instead, which works with every lexing: to_automaton(max_bytes=…)";
        Err(Error::Language { message, span, hint: Some(hint.to_owned()) })
    };
    if let Some(one) = grammar.terminals.iter().find(|one| one.language.is_lexeme()) {
        let message = format!(
            "parse trees cannot be counted by length: the terminal {} looks ahead beyond its \
             lexeme",
            one.name
        );
        return refusal(message, one.span);
    }
    let what = match () {
        () if grammar.indentation.is_some() => "the grammar uses indentation",
        () if !grammar.whole.is_empty() => "%whole excludes lexemes",
        () if grammar.lexing != Lexing::Any
            && grammar.terminals.iter().any(|one| one.sublanguage.is_some()) =>
        {
            "embedded languages occur and lexing is not \"any\""
        }
        () => return Ok(()),
    };
    refusal(format!("parse trees cannot be counted by length if {what}"), None)
}

/// Returns the numbers of ignored strings, by length.
fn ignored_counts(
    grammar: &Grammar,
    lengths: CountOptions,
    poll: &mut InterruptCheck<'_>,
) -> Result<Vec<BigUint>, Error> {
    let all = grammar.ignored.iter().map(|&at| grammar.terminals[at].language.clone());
    let ignored = Expression::union(all.collect())?.repeat(0, None)?;
    let automaton = Automaton::new(&ignored, TerminalLimits::default())?;
    count_by_length(&MaterializedDfa::of(&automaton, MAX_GRAPH_STATES, poll)?, lengths, poll)
}

/// Returns the numbers of members of a graph, by length.
fn count_by_length(
    graph: &MaterializedDfa,
    lengths: CountOptions,
    poll: &mut InterruptCheck<'_>,
) -> Result<Vec<BigUint>, Error> {
    let measured = UnitTransitions::new(graph, lengths.unit, poll)?;
    let mut tally = LengthCounts::default();
    while tally.counts().len() <= lengths.max_length && !tally.is_complete() {
        tally.extend(graph, &measured, MAX_COUNT_BYTES, poll)?;
    }
    let mut counts = tally.counts().to_vec();
    counts.resize(lengths.max_length + 1, BigUint::zero());
    Ok(counts)
}

/// Returns the numbers of nonempty lexemes of a terminal, including the ignored input before them.
fn with_ignored_prefix(mut own: Vec<BigUint>, ignored: Option<&[BigUint]>) -> Vec<TreeCount> {
    own[0] = BigUint::zero();
    let Some(ignored) = ignored else { return own.into_iter().map(Some).collect() };
    let sum = |length: usize| (0..=length).map(|at| &ignored[at] * &own[length - at]).sum();
    (0..own.len()).map(|length| Some(sum(length))).collect()
}
