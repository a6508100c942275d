//! Context-free reachability on demand: the controls that each symbol leads to.
//!
//! A query asks which controls a symbol, or the rest of a production, leads to from a control in an
//! LR(1) state. Productions are read symbol by symbol, as in Earley's algorithm: a production that
//! waits for a symbol continues with every control the symbol leads to. Byte counts only decrease,
//! and at the fixpoint all of them are minimal.
//!
//! Reference: T. Reps, "Program analysis via graph reachability" (1998).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use formalm_core::{CompactMap, Error, StateId};
use rustc_hash::FxHashMap;

use super::CompletionBounds;
use super::lexeme_exits::BetweenLexemes;
use crate::NOTHING;
use crate::configuration_reader::ConfigurationReader;
use crate::gss::stack_shortest_path::NEVER;
use crate::lr0::END;

/// The control: everything besides the stack that a continuation depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ControlState {
    /// The lexer start state for the next lexeme, if lexemes compete. It is fixed before the
    /// reductions that the lexeme triggers.
    pub(super) context: u32,
    /// The set of competing stacks, for the closest precision.
    pub(super) competing: u32,
    pub(super) between: BetweenLexemes,
}

/// The control after the end of the input.
pub(super) fn end_of_input() -> ControlState {
    let between = BetweenLexemes::new(NOTHING, StateId::from_number(u32::MAX));
    ControlState { context: NOTHING, competing: NOTHING, between }
}

/// The target of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReachabilityGoal {
    /// A nonterminal.
    Symbol(u32),
    /// The rest of a production from a dot position, and whether part of it was read.
    Rest(u32, bool),
}

/// A query: LR(1) state, target, and initial control.
pub(super) type ReachabilityQuery = (u32, ReachabilityGoal, ControlState);

/// A production that is read for a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PartialProduction {
    query: u32,
    lr1_state: u32,
    position: u32,
    /// `true` if a nonempty part of the production was read. Empty derivations are excluded.
    is_begun: bool,
    control: ControlState,
}

/// What is known of a partial production that was reached.
#[derive(Clone, Copy, Debug)]
struct PartialCost {
    /// Minimum bytes to reach it.
    bytes: u32,
    /// `true` if it is registered as waiting for its next symbol.
    is_waiting: bool,
}

/// The answers of a query.
#[derive(Debug, Default)]
struct QueryAnswers {
    /// The controls reached, with the minimum bytes.
    reached: CompactMap<ControlState, u32>,
    /// Partial productions that wait for this query.
    waiting: Vec<u32>,
}

/// All queries so far, and the agenda.
#[derive(Debug, Default)]
pub(super) struct CflReachability {
    queries: FxHashMap<ReachabilityQuery, u32>,
    answers: Vec<QueryAnswers>,
    partials: CompactMap<PartialProduction, PartialCost>,
    open: BinaryHeap<(Reverse<u32>, u32)>,
    /// Bytes used by the answers.
    answer_bytes: usize,
}

impl CflReachability {
    /// Adds a partial production, or lowers its byte count, and schedules it.
    fn partial(&mut self, partial: PartialProduction, bytes: u32) {
        let fresh = || PartialCost { bytes: NEVER, is_waiting: false };
        let number = self.partials.position_or_insert_with(partial, fresh);
        let known = &mut self.partials.value_mut(number).bytes;
        let bytes = bytes.min(NEVER - 1);
        if bytes < *known {
            *known = bytes;
            self.open.push((Reverse(bytes), number));
        }
    }

    /// Returns the number of a query, and whether it is new.
    fn query(&mut self, query: ReachabilityQuery) -> (u32, bool) {
        let answers = &mut self.answers;
        let before = answers.len();
        let number = *self.queries.entry(query).or_insert_with(|| {
            answers.push(QueryAnswers::default());
            before as u32
        });
        (number, number as usize == before)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.queries.len() * 120
            + self.partials.table_bytes()
            + self.open.len() * 8
            + self.answer_bytes
    }
}

impl CompletionBounds {
    /// Returns the controls that a query leads to, with the minimum bytes.
    pub(super) fn answers_of(
        &mut self,
        query: ReachabilityQuery,
        reader: &mut ConfigurationReader,
    ) -> Result<Vec<(ControlState, u32)>, Error> {
        let number = self.add_query(query, reader)?;
        while let Some((Reverse(bytes), partial)) = self.reachability.open.pop() {
            if self.reachability.partials.value(partial).bytes == bytes {
                reader.meter().spend(1)?;
                self.advance(partial, reader)?;
            }
        }
        Ok(self.reachability.answers[number as usize].reached.as_slice().to_vec())
    }

    fn add_query(
        &mut self,
        query: ReachabilityQuery,
        reader: &mut ConfigurationReader,
    ) -> Result<u32, Error> {
        let (number, is_new) = self.reachability.query(query);
        if !is_new {
            return Ok(number);
        }
        let (lr1_state, goal, control) = query;
        let partial = |position, is_begun| PartialProduction {
            query: number,
            lr1_state,
            position,
            is_begun,
            control,
        };
        match goal {
            ReachabilityGoal::Rest(position, is_begun) => {
                self.reachability.partial(partial(position, is_begun), 0)
            }
            ReachabilityGoal::Symbol(symbol) => {
                for &first in &reader.parser.gss.lr0.firsts[symbol as usize] {
                    self.reachability.partial(partial(first, false), 0);
                }
            }
        }
        Ok(number)
    }

    /// Reads the next symbol of a partial production.
    fn advance(&mut self, number: u32, reader: &mut ConfigurationReader) -> Result<(), Error> {
        let (partial, PartialCost { bytes, .. }) =
            self.reachability.partials.as_slice()[number as usize];
        let PartialProduction { query, lr1_state, position, is_begun, control } = partial;
        let symbol = reader.parser.gss.lr0.symbol_at[position as usize];
        self.allowed(lr1_state, reader)?;
        if symbol == END {
            if reader.parser.gss.lr0.is_goal_at(position as usize) {
                let end = self.spellable_terminals(None, control, reader)?.end;
                if end != NEVER {
                    self.add_answer(query, (end_of_input(), bytes.saturating_add(end)), reader)?;
                }
            } else if is_begun {
                self.add_answer(query, (control, bytes), reader)?;
            }
            return Ok(());
        }
        if symbol < reader.parser.gss.lr0.terminals {
            let spellable_terminals = self.spellable_terminals(Some(symbol), control, reader)?;
            let exits = spellable_terminals.of(symbol);
            if !exits.is_empty() {
                let after = self.goto(lr1_state, symbol, reader)?;
                let competing = self.competing_stacks_after(
                    control.competing,
                    symbol,
                    [lr1_state, after],
                    reader,
                )?;
                let (context, lr1_state) = (self.context(after, competing, reader)?, after);
                for exit in exits {
                    let control = ControlState { context, competing, between: exit.after };
                    let partial = PartialProduction {
                        lr1_state,
                        position: position + 1,
                        is_begun: true,
                        control,
                        ..partial
                    };
                    self.reachability.partial(partial, bytes.saturating_add(exit.bytes));
                }
            }
            return Ok(());
        }
        if reader.parser.gss.lr0.nullable[symbol as usize] {
            self.reachability
                .partial(PartialProduction { position: position + 1, ..partial }, bytes);
        }
        let goal = self.add_query((lr1_state, ReachabilityGoal::Symbol(symbol), control), reader)?
            as usize;
        let reached = self.reachability.partials.value_mut(number);
        if !std::mem::replace(&mut reached.is_waiting, true) {
            self.reachability.answers[goal].waiting.push(number);
            self.reachability.answer_bytes += 4;
        }
        for at in 0..self.reachability.answers[goal].reached.len() {
            let (control, own) = self.reachability.answers[goal].reached.as_slice()[at];
            self.advance_after(
                PartialProduction { control, ..partial },
                symbol,
                bytes.saturating_add(own),
                reader,
            )?;
        }
        Ok(())
    }

    /// Moves a partial production over `symbol`; its control is the one after the symbol.
    fn advance_after(
        &mut self,
        partial: PartialProduction,
        symbol: u32,
        bytes: u32,
        reader: &mut ConfigurationReader,
    ) -> Result<(), Error> {
        reader.meter().spend(1)?;
        let lr1_state = self.goto(partial.lr1_state, symbol, reader)?;
        let partial = PartialProduction {
            lr1_state,
            position: partial.position + 1,
            is_begun: true,
            ..partial
        };
        self.reachability.partial(partial, bytes);
        Ok(())
    }

    fn add_answer(
        &mut self,
        query: u32,
        (control, bytes): (ControlState, u32),
        reader: &mut ConfigurationReader,
    ) -> Result<(), Error> {
        let CflReachability { answers, answer_bytes, .. } = &mut self.reachability;
        let answers = &mut answers[query as usize];
        let at = answers.reached.position_or_insert_with(control, || {
            *answer_bytes += 48;
            NEVER
        });
        let bytes = bytes.min(NEVER - 1);
        let known = answers.reached.value_mut(at);
        if bytes >= *known {
            return Ok(());
        }
        *known = bytes;
        for waiting in answers.waiting.clone() {
            let (partial, PartialCost { bytes: before, .. }) =
                self.reachability.partials.as_slice()[waiting as usize];
            let symbol = reader.parser.gss.lr0.symbol_at[partial.position as usize];
            self.advance_after(
                PartialProduction { control, ..partial },
                symbol,
                before.saturating_add(bytes),
                reader,
            )?;
        }
        Ok(())
    }
}
