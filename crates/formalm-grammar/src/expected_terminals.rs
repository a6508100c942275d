//! The terminals that may continue the input in a state, for error messages.

use formalm_core::{Error, StateId};
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::automaton::GrammarAutomaton;
use crate::grammar::{Grammar, RuleBody};
use crate::lr0::elements;

impl GrammarAutomaton {
    /// Returns the terminals of which a lexeme may begin in a state or is being read, ascending,
    /// each with whether it is being read.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn expected(&self, state: StateId) -> Result<Vec<(usize, bool)>, Error> {
        let core = &mut self.lock().core;
        let mut found: FxHashMap<u32, bool> = FxHashMap::default();
        for configuration in core.states.get(state.number() - 1) {
            core.meter().reset();
            if configuration.is_between() {
                let allowed = core.reader.parser.allowed(configuration.parser_state)?;
                let set = core.reader.parser.gss.lr0.sets.copy(allowed);
                for terminal in elements(&set).filter_map(|number| number.checked_sub(1)) {
                    // Indentation terminals have no text: the end of a line produces them.
                    if !core.reader.lexer.rules.is_level(terminal) {
                        found.entry(terminal).or_insert(false);
                    }
                }
                continue;
            }
            if configuration.is_in_sublanguage() {
                found.insert(core.reader.sublanguages.at(configuration.lexeme).0, true);
                continue;
            }
            for (terminal, _) in core.reader.lexer.threads.distances(configuration.lexeme)? {
                if core.reader.parser.shift_lexeme(configuration.parser_state, terminal)? != NOTHING
                {
                    // A thread that tracks a replacement stands for the terminal that the lexeme
                    // becomes.
                    found.insert(terminal % core.reader.lexer.rules.terminals, true);
                }
            }
        }
        let mut found: Vec<(usize, bool)> =
            found.into_iter().map(|(terminal, begun)| (terminal as usize, begun)).collect();
        found.sort_unstable();
        Ok(found)
    }
}

impl Grammar {
    /// Returns the rules whose right-hand sides contain a terminal.
    pub fn rules_of(&self, terminal: usize) -> Vec<usize> {
        let has = |body: &RuleBody| {
            let mut nodes = vec![body];
            while let Some(node) = nodes.pop() {
                match node {
                    RuleBody::Terminal(at) if *at == terminal => return true,
                    RuleBody::Empty | RuleBody::Terminal(_) | RuleBody::Rule(_) => {}
                    RuleBody::Sequence(list) | RuleBody::Choice(list) => nodes.extend(list),
                    RuleBody::Repeat(one, ..) => nodes.push(one),
                }
            }
            false
        };
        (0..self.rules.len()).filter(|&at| has(&self.rules[at].body)).collect()
    }
}
