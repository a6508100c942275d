//! The lexeme graph of an input with several splits: ordered lexemes around members of
//! sublanguages, which may end anywhere.

use formalm_core::{Error, Interner, LazyDfa};
use rustc_hash::FxHashSet;

use super::earley_productions::StepBudget;
use super::lexeme_sources::{Lexeme, LexemeSource};
use crate::automaton::GrammarAutomaton;
use crate::configurations::Configuration;
use crate::grammar_state::GrammarState;

/// Positions between lexemes, distinguished by their configuration and by the number of bytes read,
/// in that order.
pub(super) struct LexemeGraph<'a> {
    text: &'a [u8],
    nodes: Interner<(usize, Configuration)>,
    /// Lexemes that start at each node, with their target nodes.
    lexemes: Vec<Vec<(Lexeme, usize)>>,
    /// Nodes after ignored input, per node.
    skip_targets: Vec<Vec<usize>>,
    /// `true` for nodes at which the input may end.
    ends: Vec<bool>,
}

impl<'a> LexemeGraph<'a> {
    pub(super) fn new(
        automaton: &GrammarAutomaton,
        text: &'a [u8],
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<LexemeGraph<'a>, Error> {
        if !automaton.has_external_parsers() {
            return LexemeGraph::build(&mut automaton.lock().core, text, steps);
        }
        // Answers of external parsers are collected along the input first, so that few are missing.
        let _ = automaton.walk(automaton.start(), text)?;
        automaton.with_answers(|core| LexemeGraph::build(core, text, steps))
    }

    fn build(
        core: &mut GrammarState,
        text: &'a [u8],
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<LexemeGraph<'a>, Error> {
        let mut graph = LexemeGraph {
            text,
            nodes: Interner::default(),
            lexemes: Vec::new(),
            skip_targets: Vec::new(),
            ends: Vec::new(),
        };
        let mut alive: Vec<(Configuration, usize)> = Vec::new();
        for configuration in core.reader.start_configurations()? {
            alive.push((configuration, graph.node_of(0, configuration)));
        }
        let mut next = Vec::new();
        for (at, &byte) in text.iter().enumerate() {
            let mut later: FxHashSet<(Configuration, usize)> = FxHashSet::default();
            for (configuration, from) in alive {
                steps.spend(1)?;
                core.meter().reset();
                next.clear();
                core.reader.push_successors_with_lexemes(configuration, byte, &mut next)?;
                for &(configuration, ended) in &next {
                    let Some(terminal) = ended else {
                        later.insert((configuration, from));
                        continue;
                    };
                    let to = graph.node_of(at + 1, configuration);
                    later.insert((configuration, to));
                    match core.reader.lexer.rules.terminal_for_parser(terminal) {
                        Some(terminal) => {
                            let start = graph.nodes.as_slice()[from].0;
                            graph.lexemes[from].push((Lexeme { terminal, start, end: at + 1 }, to));
                        }
                        None => graph.skip_targets[from].push(to),
                    }
                }
            }
            alive = later.into_iter().collect();
            alive.sort_unstable();
        }
        for at in 0..graph.nodes.len() {
            let (read, configuration) = graph.nodes.as_slice()[at];
            core.meter().reset();
            graph.ends.push(read == text.len() && core.reader.accepts(configuration)?);
        }
        Ok(graph)
    }

    fn node_of(&mut self, read: usize, configuration: Configuration) -> usize {
        let node = self.nodes.intern((read, configuration));
        self.lexemes.resize_with(self.nodes.len(), Vec::new);
        self.skip_targets.resize_with(self.nodes.len(), Vec::new);
        node as usize
    }

    /// Returns a node and those after ignored input.
    fn skip_closure(&self, at: usize, steps: &mut StepBudget<'_, '_>) -> Result<Vec<usize>, Error> {
        let mut all = vec![at];
        let mut visited = 0;
        while let Some(&at) = all.get(visited) {
            visited += 1;
            for &after in &self.skip_targets[at] {
                steps.spend(1)?;
                if !all.contains(&after) {
                    all.push(after);
                }
            }
        }
        Ok(all)
    }
}

impl LexemeSource for LexemeGraph<'_> {
    fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    fn next(&self, at: usize) -> Option<u32> {
        self.text.get(self.nodes.as_slice()[at].0).map(|&byte| byte.into())
    }

    fn is_free(&self) -> bool {
        true
    }

    fn lexemes(
        &mut self,
        terminal: u32,
        at: usize,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<Vec<(Lexeme, usize)>, Error> {
        let mut all = Vec::new();
        for node_of in self.skip_closure(at, steps)? {
            all.extend(self.lexemes[node_of].iter().filter(|one| one.0.terminal == terminal));
        }
        Ok(all)
    }

    fn ends(&mut self, at: usize, steps: &mut StepBudget<'_, '_>) -> Result<bool, Error> {
        Ok(self.skip_closure(at, steps)?.into_iter().any(|node| self.ends[node]))
    }
}
