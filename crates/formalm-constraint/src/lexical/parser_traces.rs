//! What a parser state was asked and what it answered: states that answer the same lead to the same
//! tokens.
//!
//! ```text
//!  terminals ──► state 0 after "*"? ──state 1──► context of state 1? ──c──► state 1 after "*"? ──► …
//!                                  └─none──► …                       └─d──► …              tokens
//! ```
//!
//! Which sequences of terminals may follow is found by asking the parser for the states after
//! terminals, for their contexts and for the tops of their stacks. It depends on the answers alone,
//! with states numbered in the order in which they occur. The next question depends on the answers
//! before it, so that a list of terminals has a tree of questions, whose leaves are what was found.
//! Each question is asked once: of a token of a hundred operators, only two states are asked about.
//! Stacks that no prefix of fixed depth shows to be alike mostly take the same path.

use std::sync::Arc;

use formalm_core::Error;
use formalm_machines::{LexerContextId, LexicalMachine, ParserStateId, StackPrefixId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::parser_filter::FilterResult;

/// A question about a parser state, which is given by its number in a [`Dialogue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Query {
    /// The state after a terminal.
    After(u32, u32),
    /// The lexer context.
    Context(u32),
    /// Whether every step that is not context-dependent can be completed.
    Completable(u32),
    /// The top of its stacks down to a depth.
    Prefix(u32, u32),
}

/// The answer that there is no such state or prefix.
const NOTHING: u32 = u32::MAX;
/// Memory of a question and its answer, with the room that tables leave, in bytes.
const NODE_BYTES: usize = 44;

/// Questions about one parser state and those after it, and the answers.
#[derive(Debug, Default)]
pub(super) struct Dialogue {
    /// The states in the order in which they occurred.
    states: Vec<ParserStateId>,
    /// Their numbers.
    numbers: FxHashMap<ParserStateId, u32>,
    asked: Vec<(Query, u32)>,
    seen: FxHashSet<Query>,
}

impl Dialogue {
    pub(super) fn new(parser_state: ParserStateId) -> Dialogue {
        let mut dialogue = Dialogue::default();
        dialogue.number(parser_state);
        dialogue
    }

    /// Returns the questions in order, each once, with their answers.
    pub(super) fn into_asked(self) -> Vec<(Query, u32)> {
        self.asked
    }

    /// Asks a question of a known tree.
    pub(super) fn ask<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        query: Query,
    ) -> Result<u32, Error> {
        match query {
            Query::After(state, terminal) => {
                let next = lexemes.after_terminal(self.states[state as usize], terminal)?;
                Ok(next.map_or(NOTHING, |next| self.number(next)))
            }
            Query::Context(state) => Ok(lexemes.lexer_context(self.states[state as usize])?.0),
            Query::Prefix(state, depth) => {
                let prefix = lexemes.stack_prefix(self.states[state as usize], depth);
                Ok(prefix.map_or(NOTHING, |prefix| prefix.0))
            }
            Query::Completable(state) => {
                Ok(u32::from(lexemes.is_completable(self.states[state as usize])?))
            }
        }
    }

    pub(super) fn after_terminal<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        parser_state: ParserStateId,
        terminal: u32,
    ) -> Result<Option<ParserStateId>, Error> {
        let query = Query::After(self.number(parser_state), terminal);
        let answer = self.ask_and_keep(lexemes, query)?;
        Ok((answer != NOTHING).then(|| self.states[answer as usize]))
    }

    pub(super) fn lexer_context<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        parser_state: ParserStateId,
    ) -> Result<LexerContextId, Error> {
        let query = Query::Context(self.number(parser_state));
        self.ask_and_keep(lexemes, query).map(LexerContextId)
    }

    pub(super) fn is_completable<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        parser_state: ParserStateId,
    ) -> Result<bool, Error> {
        let query = Query::Completable(self.number(parser_state));
        Ok(self.ask_and_keep(lexemes, query)? != 0)
    }

    pub(super) fn stack_prefix<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        parser_state: ParserStateId,
        depth: u32,
    ) -> Result<Option<StackPrefixId>, Error> {
        let query = Query::Prefix(self.number(parser_state), depth);
        let answer = self.ask_and_keep(lexemes, query)?;
        Ok((answer != NOTHING).then_some(StackPrefixId(answer)))
    }

    fn ask_and_keep<L: LexicalMachine>(&mut self, lexemes: &L, query: Query) -> Result<u32, Error> {
        let answer = self.ask(lexemes, query)?;
        if self.seen.insert(query) {
            self.asked.push((query, answer));
        }
        Ok(answer)
    }

    /// Returns the number of a state, a new one if it has not occurred.
    fn number(&mut self, parser_state: ParserStateId) -> u32 {
        let next = self.states.len() as u32;
        *self.numbers.entry(parser_state).or_insert_with(|| {
            self.states.push(parser_state);
            next
        })
    }
}

/// A node of a tree of questions.
#[derive(Clone, Debug)]
pub(super) enum TraceStep {
    Ask(Query),
    Done(Arc<FilterResult>),
}

/// Trees of questions, by lists of terminals.
#[derive(Debug, Default)]
pub(super) struct ParserTraces {
    roots: FxHashMap<u32, u32>,
    nodes: Vec<TraceStep>,
    /// The node after an answer.
    answers: FxHashMap<(u32, u32), u32>,
}

impl ParserTraces {
    /// Returns the first node of a list's tree.
    pub(super) fn root(&self, list: u32) -> Option<u32> {
        self.roots.get(&list).copied()
    }

    pub(super) fn step(&self, node: u32) -> TraceStep {
        self.nodes[node as usize].clone()
    }

    /// Returns the node after an answer, if it was given before.
    pub(super) fn after(&self, node: u32, answer: u32) -> Option<u32> {
        self.answers.get(&(node, answer)).copied()
    }

    /// Keeps what was found after some answers. Returns the bytes that it takes.
    pub(super) fn insert(
        &mut self,
        list: u32,
        asked: &[(Query, u32)],
        result: Arc<FilterResult>,
    ) -> usize {
        let before = self.nodes.len();
        let mut steps = asked.iter().map(|&(query, _)| TraceStep::Ask(query));
        let mut node = match self.roots.get(&list) {
            Some(&root) => {
                steps.next();
                root
            }
            None => {
                let root = self.push(steps.next().unwrap_or(TraceStep::Done(Arc::clone(&result))));
                self.roots.insert(list, root);
                root
            }
        };
        for &(query, answer) in asked {
            debug_assert!(matches!(self.nodes[node as usize], TraceStep::Ask(one) if one == query));
            let step = steps.next();
            node = match self.answers.get(&(node, answer)) {
                Some(&next) => next,
                None => {
                    let next = self.push(step.unwrap_or(TraceStep::Done(Arc::clone(&result))));
                    self.answers.insert((node, answer), next);
                    next
                }
            };
        }
        NODE_BYTES * (self.nodes.len() - before)
    }

    fn push(&mut self, step: TraceStep) -> u32 {
        self.nodes.push(step);
        self.nodes.len() as u32 - 1
    }
}
