//! Trees of members: which rules and lexemes a text is made of, in how many ways.
//!
//! The machine of a grammar forgets what it read. A tree takes a second pass: the lexemes are
//! recorded, a chart over them (Earley's, with one lexeme of lookahead, so that it is linear for
//! ordinary grammars) packs all derivations, and one of them is taken out.

mod earley_chart;
mod earley_productions;
mod lexeme_graph;
mod parse_forest;
mod tokenize;
mod tree_builder;
pub(crate) mod tree_shape;

use formalm_automata::explicit::Poll;
use formalm_automata::{Error, Machine};
use num_bigint::BigUint;
use std::sync::Arc;

use crate::automaton::GrammarAutomaton;
use crate::grammar::{Grammar, Lexing, Terminal};
use crate::lexer::Lexer;
use crate::lexer::terminal_automata::{
    TerminalAutomata, build_terminal_automata, unproductive_terminals,
};
use crate::limits::Limits;
use crate::normal_form::lowering::{LoweredRules, Production};
use crate::normal_form::productive;
use crate::state::ignored;
use crate::trees::tree_shape::Shaped;
use earley_chart::EarleyChart;
pub(crate) use earley_productions::EarleyProductions;
pub(crate) use earley_productions::StepBudget;
use lexeme_graph::LexemeGraph;
use parse_forest::ParseForest;
use tokenize::{AllLexemes, OrderedLexemes};
pub use tree_builder::{Branch, Part};

/// Terminals that the texts of a rule begin with, and whether it may be empty.
pub type Beginnings = (Vec<usize>, bool);

/// Trees of the members of one grammar.
#[derive(Debug)]
pub struct Trees {
    shaped: Shaped,
    productions: EarleyProductions,
    /// The machines of the terminals, where lexemes are read in any way.
    automata: TerminalAutomata,
    /// The machines of embedded languages.
    embedded: Vec<Option<Arc<dyn Machine>>>,
    /// Whether each of them looks ahead.
    ahead: Vec<bool>,
    ignored: Vec<u32>,
}

/// What was asked of a text.
#[derive(Debug)]
pub struct Parse {
    /// Number of trees; `None` if there is no end of them.
    pub count: Option<BigUint>,
    /// One tree, children before what they are children of.
    pub branches: Vec<Branch>,
}

impl Trees {
    /// Trees of a grammar.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if its rules become too many productions.
    pub fn new(shaped: Shaped, limits: Limits) -> Result<Trees, Error> {
        let grammar = &shaped.grammar;
        grammar.check()?;
        let (automata, nullable) = build_terminal_automata(grammar)?;
        let embedded: Vec<_> = grammar.terminals.iter().map(sublanguage_machine).collect();
        let lowering = LoweredRules::for_trees(grammar, &nullable, limits.productions)?;
        let ignored = ignored(grammar);
        // Where lexemes are not one after the other, bytes say what may come next.
        let by_bytes = grammar.lexing == Lexing::Any || has_sublanguages(grammar);
        let firsts =
            if by_bytes { tokenize::first_bytes(&automata, &embedded)? } else { Vec::new() };
        let start = (grammar.terminals.len() + grammar.start) as u32;
        let productions = EarleyProductions::new(
            lowering,
            grammar.terminals.len() as u32,
            start,
            by_bytes.then_some((&firsts, &ignored)),
        );
        let automata = if by_bytes { automata } else { Vec::new() };
        let ahead = grammar.terminals.iter().map(|one| one.language.is_lexeme()).collect();
        Ok(Trees { shaped, productions, automata, embedded, ahead, ignored })
    }

    /// A shortest text of each terminal that is not empty; none for those without a text.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn terminal_texts(&self) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let (automata, _) = build_terminal_automata(&self.shaped.grammar)?;
        let all = &self.shaped.grammar.terminals;
        let ahead = all.iter().map(|one| one.language.is_lexeme()).collect();
        let mut lexer = Lexer::new(automata, ahead, None);
        let all = 0..self.shaped.grammar.terminals.len() as u32;
        all.map(|terminal| {
            if let Some(machine) = &self.embedded[terminal as usize] {
                return machine.shortest(machine.start()).map(Some);
            }
            let start = lexer.start(std::iter::once(terminal));
            let thread = lexer.lists.get(start).first().copied();
            thread.map(|thread| Ok(lexer.shortest_completion(thread)?.to_vec())).transpose()
        })
        .collect()
    }

    /// For each rule the terminals that its texts begin with, and whether it may be empty; `None`
    /// if there are too many terminals to tell.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn beginnings(&self, limits: Limits) -> Result<Vec<Option<Beginnings>>, Error> {
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
        // By terminals, where a chart may go by bytes.
        let productions =
            EarleyProductions::new(lowering, count, count + grammar.start as u32, None);
        let rules = 0..grammar.rules.len() as u32;
        Ok(rules.map(|rule| productions.beginnings(count + rule)).collect())
    }

    /// The grammar.
    pub fn shaped(&self) -> &Shaped {
        &self.shaped
    }

    /// The trees of a text; `None` if it is not a member. `whole` trees show everything. Takes at
    /// most so many `steps`, each a step of a derivation, a byte of a lexeme or a node of a tree.
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
        poll: &mut Poll<'_>,
    ) -> Result<Option<Parse>, Error> {
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
        Ok(Some(Parse { count: forest.tree_counts(root).cloned(), branches }))
    }
}

fn sublanguage_machine(terminal: &Terminal) -> Option<Arc<dyn Machine>> {
    terminal.embedded.as_ref().map(|one| Arc::clone(&one.machine))
}

fn has_sublanguages(grammar: &Grammar) -> bool {
    grammar.terminals.iter().any(|one| one.embedded.is_some())
}
