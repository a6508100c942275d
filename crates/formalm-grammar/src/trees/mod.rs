//! Parse trees of members, and the number of trees of each.
//!
//! The automaton forgets what it read, so a tree takes a second pass. The input is split into
//! lexemes, an Earley chart with one lexeme of lookahead packs all derivations (in linear time for
//! ordinary grammars), and one tree is extracted.
//!
//! ```text
//!  bytes ─► lexeme_sources ─┐
//!           lexeme_graph ───┴─► earley_chart ─► parse_forest ─► tree_builder ─► Parse
//! ```

mod earley_chart;
mod earley_productions;
mod lexeme_graph;
mod lexeme_sources;
mod parse_forest;
mod tree_builder;
pub(crate) mod tree_shape;

use std::sync::Arc;

use formalm_core::{Error, InterruptCheck, Machine};
use num_bigint::BigUint;

use crate::automaton::GrammarAutomaton;
use crate::grammar::{Grammar, Lexing, Terminal};
use crate::grammar_state::ignored;
use crate::lexer::Lexer;
use crate::lexer::terminal_automata::{
    TerminalAutomata, build_terminal_automata, unproductive_terminals,
};
use crate::limits::GrammarLimits;
use crate::normal_form::lowering::{LoweredRules, Production};
use crate::normal_form::productive;
use crate::trees::tree_shape::ShapedGrammar;
use earley_chart::EarleyChart;
pub(crate) use earley_productions::EarleyProductions;
pub(crate) use earley_productions::StepBudget;
use lexeme_graph::LexemeGraph;
use lexeme_sources::{AllLexemes, OrderedLexemes};
use parse_forest::ParseForest;
pub use tree_builder::{TreeNode, TreeNodeKind};

/// The terminals that a rule's strings start with, and whether the rule is nullable.
pub type FirstTerminals = (Vec<usize>, bool);

/// A parser for the members of one grammar.
#[derive(Debug)]
pub struct TreeParser {
    shaped: ShapedGrammar,
    productions: EarleyProductions,
    /// Automata of the terminals, if the chart reads bytes.
    automata: TerminalAutomata,
    /// Machines of sublanguages.
    embedded: Vec<Option<Arc<dyn Machine>>>,
    /// `true` for terminals with lookahead.
    ahead: Vec<bool>,
    ignored: Vec<u32>,
}

/// The result of a parse.
#[derive(Debug)]
pub struct ParseResult {
    /// Number of trees; `None` if infinite.
    pub tree_count: Option<BigUint>,
    /// One tree in postorder: children before their parent.
    pub nodes: Vec<TreeNode>,
}

impl TreeParser {
    /// Builds the parser of a grammar.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the rules are lowered to too many productions.
    pub fn new(shaped: ShapedGrammar, limits: GrammarLimits) -> Result<TreeParser, Error> {
        let grammar = &shaped.grammar;
        grammar.check()?;
        let (automata, nullable) = build_terminal_automata(grammar)?;
        let embedded: Vec<_> = grammar.terminals.iter().map(sublanguage_machine).collect();
        let lowering = LoweredRules::for_trees(grammar, &nullable, limits.productions)?;
        let ignored = ignored(grammar);
        // If the lexemes do not form a single sequence, bytes serve as lookahead.
        let by_bytes = grammar.lexing == Lexing::Any || has_sublanguages(grammar);
        let firsts =
            if by_bytes { lexeme_sources::first_bytes(&automata, &embedded)? } else { Vec::new() };
        let start = (grammar.terminals.len() + grammar.start) as u32;
        let productions = EarleyProductions::new(
            lowering,
            grammar.terminals.len() as u32,
            start,
            by_bytes.then_some((&firsts, &ignored)),
        );
        let automata = if by_bytes { automata } else { Vec::new() };
        let ahead = grammar.terminals.iter().map(|one| one.language.is_lexeme()).collect();
        Ok(TreeParser { shaped, productions, automata, embedded, ahead, ignored })
    }

    /// Returns a shortest nonempty string of each terminal; `None` for terminals without strings.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn shortest_lexemes(&self) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let (automata, _) = build_terminal_automata(&self.shaped.grammar)?;
        let all = &self.shaped.grammar.terminals;
        let ahead = all.iter().map(|one| one.language.is_lexeme()).collect();
        let mut lexer = Lexer::new(automata, ahead, None);
        let all = 0..self.shaped.grammar.terminals.len() as u32;
        all.map(|terminal| {
            if let Some(machine) = &self.embedded[terminal as usize] {
                return machine.shortest_completion(machine.start()).map(Some);
            }
            let start = lexer.start(std::iter::once(terminal));
            let thread = lexer.lists.get(start).first().copied();
            thread.map(|thread| Ok(lexer.shortest_completion(thread)?.to_vec())).transpose()
        })
        .collect()
    }

    /// Returns, per rule, the terminals its strings start with and whether it is nullable; `None`
    /// if there are too many terminals.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn first_terminals(
        &self,
        limits: GrammarLimits,
    ) -> Result<Vec<Option<FirstTerminals>>, Error> {
        let grammar = &self.shaped.grammar;
        let (automata, nullable) = build_terminal_automata(grammar)?;
        let mut lowering = LoweredRules::for_trees(grammar, &nullable, limits.productions)?;
        let unproductive = unproductive_terminals(grammar, &automata)?;
        let productive = productive(&lowering.productions, lowering.symbols, &unproductive);
        let has_text = |one: &Production| one.right.iter().all(|&one| productive[one as usize]);
        let rows = lowering.productions.into_iter().zip(lowering.alternatives);
        (lowering.productions, lowering.alternatives) =
            rows.filter(|(one, _)| has_text(one)).unzip();
        let count = grammar.terminals.len() as u32;
        // By terminals, even if the chart reads bytes.
        let productions =
            EarleyProductions::new(lowering, count, count + grammar.start as u32, None);
        let rules = 0..grammar.rules.len() as u32;
        Ok(rules.map(|rule| productions.beginnings(count + rule)).collect())
    }

    /// Returns the grammar with its tree shapes.
    pub fn shaped_grammar(&self) -> &ShapedGrammar {
        &self.shaped
    }

    /// Parses `text`; `None` if it is not a member. With `whole`, the tree shows everything. Takes
    /// at most `steps` steps: a step of a derivation, a byte of a lexeme, or a node of a tree.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if it takes more; [`Error::Interrupted`].
    pub fn parse(
        &self,
        automaton: &GrammarAutomaton,
        text: &[u8],
        whole: bool,
        steps: u64,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<Option<ParseResult>, Error> {
        let mut steps = StepBudget::new(steps, poll);
        let chart = if self.shaped.grammar.lexing == Lexing::Any {
            let machines = (&self.automata[..], &self.embedded[..]);
            let mut input = AllLexemes::new(machines, &self.ahead, &self.ignored, text);
            EarleyChart::new(&self.productions, &mut input, &mut steps)?
        } else if has_sublanguages(&self.shaped.grammar) {
            let mut input = LexemeGraph::new(automaton, text, &mut steps)?;
            EarleyChart::new(&self.productions, &mut input, &mut steps)?
        } else {
            let Some(lexemes) = automaton.lexemes(text)? else { return Ok(None) };
            EarleyChart::new(&self.productions, &mut OrderedLexemes::new(&lexemes), &mut steps)?
        };
        let Some(root) = chart.root() else { return Ok(None) };
        let forest = ParseForest::new(&chart, root, &mut steps)?;
        let branches = tree_builder::build_tree(self, &forest, whole, &mut steps)?;
        Ok(Some(ParseResult { tree_count: forest.tree_counts(root).cloned(), nodes: branches }))
    }
}

fn sublanguage_machine(terminal: &Terminal) -> Option<Arc<dyn Machine>> {
    terminal.sublanguage.as_ref().map(|one| Arc::clone(&one.machine))
}

fn has_sublanguages(grammar: &Grammar) -> bool {
    grammar.terminals.iter().any(|one| one.sublanguage.is_some())
}
