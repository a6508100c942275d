//! The terminals that can be spelled from a control, by breadth-first search over lexemes and
//! ignored input.

use std::sync::Arc;

use formalm_automata::Automaton;
use formalm_core::{Error, LazyDfa, StateId};
use formalm_machines::Precision;
use rustc_hash::{FxHashMap, FxHashSet};

use super::lexeme_exits::{BetweenLexemes, LexemeExit, LexemeExits, LexemePosition, LinePosition};
use crate::NOTHING;
use crate::configuration_reader::ConfigurationReader;
use crate::grammar::Lexing;
use crate::gss::stack_shortest_path::NEVER;
use crate::indentation::parser_state::{is_closed, is_joined};
use crate::lexer::terminal_rules::TerminalRules;
use crate::parser::Parser;

/// The start of a search between lexemes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpellingStart {
    pub(super) context: u32,
    pub(super) between: BetweenLexemes,
    /// The terminal of interest, if lexemes do not compete.
    pub(super) terminal: Option<u32>,
    pub(super) precision: Precision,
}

/// The terminals that can be spelled from a position between lexemes.
#[derive(Debug)]
pub(super) struct SpellableTerminals {
    /// Terminals that the stacks can shift, ascending, including the ignored input before them.
    exits: Box<[LexemeExit]>,
    /// Minimum bytes to a possible end of input, all of them ignored.
    pub(super) end: u32,
}

impl SpellableTerminals {
    /// Returns the ways to spell a terminal.
    pub(super) fn of(&self, terminal: u32) -> &[LexemeExit] {
        let first = self.exits.partition_point(|one| one.terminal < terminal);
        let count = self.exits[first..].partition_point(|one| one.terminal == terminal);
        &self.exits[first..first + count]
    }
}

/// Cached searches between lexemes.
#[derive(Debug)]
pub(super) struct TerminalReachability {
    pub(super) lexeme_exits: LexemeExits,
    spellable_terminals: FxHashMap<(u32, BetweenLexemes), Arc<SpellableTerminals>>,
    /// Results for terminals without lexemes, by terminal and control.
    without_lexeme: FxHashMap<(u32, BetweenLexemes), Arc<SpellableTerminals>>,
    size: usize,
}

/// The frontier of a search, fewest bytes first.
struct SpellingFrontier {
    open: Vec<LexemePosition>,
    seen: FxHashSet<LexemePosition>,
    nearest: FxHashMap<(u32, BetweenLexemes), u32>,
    end: u32,
}

impl TerminalReachability {
    pub(super) fn new(
        regular: Option<Arc<Automaton>>,
        reader: &ConfigurationReader,
    ) -> TerminalReachability {
        TerminalReachability {
            lexeme_exits: LexemeExits::new(regular, reader),
            spellable_terminals: FxHashMap::default(),
            without_lexeme: FxHashMap::default(),
            size: 0,
        }
    }

    /// Returns the start state of the regular language.
    pub(super) fn start(&self) -> StateId {
        self.lexeme_exits.regular.as_ref().map_or(StateId::from_number(0), |one| one.start())
    }

    /// Returns `true` if the input may end between lexemes, apart from the stacks.
    fn may_end(&self, between: BetweenLexemes, reader: &ConfigurationReader) -> bool {
        let regular = self.lexeme_exits.regular.as_ref();
        reader.lexer.threads.may_end(between.negative_threads)
            && regular.is_none_or(|one| one.is_accepting(between.at))
    }

    /// Returns the terminals that can be spelled from a position between lexemes.
    pub(super) fn spellable_terminals(
        &mut self,
        from: SpellingStart,
        reader: &mut ConfigurationReader,
    ) -> Result<Arc<SpellableTerminals>, Error> {
        if let Some(terminal) = from.terminal
            && (reader.sublanguages.has(terminal) || reader.lexer.rules.is_level(terminal))
        {
            return self.exits_without_lexeme(terminal, from.between, reader);
        }
        let key = (from.context, from.between);
        if let Some(known) = self.spellable_terminals.get(&key) {
            return Ok(Arc::clone(known));
        }
        let SpellingFrontier { mut nearest, end, .. } = self.explore(from, reader)?;
        if let Some(lines) = reader.lexer.rules.lines.as_ref().filter(|lines| lines.is_python())
            && from.between.line == LinePosition::InsideLine
        {
            // The end of the input ends a line.
            let over = BetweenLexemes { line: LinePosition::AfterInput, ..from.between };
            nearest.insert((lines.newline, over), 0);
        }
        let spellable_terminals = self.interned_exits(nearest, end);
        self.spellable_terminals.insert(key, Arc::clone(&spellable_terminals));
        Ok(spellable_terminals)
    }

    /// Explores up to the end of the first lexeme that is not ignored.
    fn explore(
        &mut self,
        from: SpellingStart,
        reader: &mut ConfigurationReader,
    ) -> Result<SpellingFrontier, Error> {
        let mut frontier = SpellingFrontier {
            open: Vec::new(),
            seen: FxHashSet::default(),
            nearest: FxHashMap::default(),
            end: NEVER,
        };
        self.add_start((from.context, from.between), 0, &mut frontier, reader);
        if from.between.line == LinePosition::AfterInput {
            return Ok(frontier);
        }
        for bytes in 1.. {
            for position in std::mem::take(&mut frontier.open) {
                let next = self.lexeme_exits.successors_of(position, reader)?;
                reader.meter().spend(next.on.len() + next.ends.len())?;
                for &on in &next.on {
                    if frontier.seen.insert(on) {
                        frontier.open.push(on);
                    }
                }
                for &(terminal, mut after) in &next.ends {
                    if from.precision == Precision::Coarse
                        && !reader.lexer.rules.ends_line(terminal)
                    {
                        after.negative_threads = NOTHING;
                    }
                    let (skipped, read) =
                        reader.lexer.rules.skip_or_shift(terminal, from.between.line);
                    if skipped {
                        let line = match from.between.line {
                            LinePosition::JoinedLineStart => LinePosition::LineStart,
                            line => line,
                        };
                        let after = BetweenLexemes { line, ..after };
                        self.add_start((from.context, after), bytes, &mut frontier, reader);
                    }
                    if read {
                        after.line = reader.lexer.rules.line_after(terminal);
                        frontier
                            .nearest
                            .entry((reader.lexer.rules.shifted_terminal(terminal), after))
                            .or_insert(bytes);
                    }
                }
            }
            if frontier.open.is_empty() {
                break;
            }
        }
        Ok(frontier)
    }

    /// Adds a position between lexemes, reached after some bytes.
    fn add_start(
        &self,
        (context, between): (u32, BetweenLexemes),
        bytes: u32,
        frontier: &mut SpellingFrontier,
        reader: &mut ConfigurationReader,
    ) {
        if between.line != LinePosition::JoinedLineStart && self.may_end(between, reader) {
            frontier.end = frontier.end.min(bytes);
        }
        let position = (reader.lexer.states.intern(context, between.negative_threads), between.at);
        if frontier.seen.insert(position) {
            frontier.open.push(position);
        }
    }

    fn interned_exits(
        &mut self,
        nearest: FxHashMap<(u32, BetweenLexemes), u32>,
        end: u32,
    ) -> Arc<SpellableTerminals> {
        let mut exits: Vec<LexemeExit> = nearest
            .into_iter()
            .map(|((terminal, after), bytes)| LexemeExit { terminal, after, bytes })
            .collect();
        exits.sort_unstable();
        self.size += 64 + 20 * exits.len();
        Arc::new(SpellableTerminals { exits: exits.into(), end })
    }

    /// Returns the exits of a terminal without lexemes, loosely: indentation terminals are empty,
    /// and a sublanguage matches any string.
    fn exits_without_lexeme(
        &mut self,
        terminal: u32,
        from: BetweenLexemes,
        reader: &ConfigurationReader,
    ) -> Result<Arc<SpellableTerminals>, Error> {
        if let Some(known) = self.without_lexeme.get(&(terminal, from)) {
            return Ok(Arc::clone(known));
        }
        let exits = match &reader.lexer.rules.lines {
            Some(lines) if lines.is_level(terminal) => {
                let positions = from.line.levels(terminal == lines.indent);
                let after = positions.iter().map(|&line| BetweenLexemes { line, ..from });
                after.map(|after| LexemeExit { terminal, after, bytes: 0 }).collect()
            }
            _ if from.line == LinePosition::AfterInput => Vec::new(),
            _ => self.any_string_exits(terminal, from.at)?,
        };
        self.size += 64 + 20 * exits.len();
        let spellable_terminals = Arc::new(SpellableTerminals { exits: exits.into(), end: NEVER });
        self.without_lexeme.insert((terminal, from), Arc::clone(&spellable_terminals));
        Ok(spellable_terminals)
    }

    /// Returns an exit for every state that a nonempty string leads to.
    pub(super) fn any_string_exits(
        &self,
        terminal: u32,
        at: StateId,
    ) -> Result<Vec<LexemeExit>, Error> {
        let mut exits: Vec<LexemeExit> = Vec::new();
        let mut seen: FxHashSet<StateId> = FxHashSet::default();
        let mut last = vec![at];
        for bytes in 1.. {
            let mut next = Vec::new();
            for &at in &last {
                for &byte in &self.lexeme_exits.bytes {
                    if let Some(at) = self.lexeme_exits.step(at, byte)?
                        && seen.insert(at)
                    {
                        let after = BetweenLexemes::new(NOTHING, at);
                        exits.push(LexemeExit { terminal, after, bytes });
                        next.push(at);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            last = next;
        }
        Ok(exits)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.size + self.lexeme_exits.memory_bytes()
    }
}

impl LinePosition {
    /// Returns the line positions after an indentation terminal. Levels start or end at a line
    /// start, and all end after the input.
    fn levels(self, begins: bool) -> &'static [LinePosition] {
        match (self, begins) {
            (LinePosition::LineEnded, true) => &[LinePosition::LineStart],
            (_, true) | (LinePosition::JoinedLineStart, false) => &[],
            (LinePosition::LineEnded | LinePosition::Dedenting, false) => {
                &[LinePosition::Dedenting, LinePosition::AfterInput]
            }
            (_, false) => &[LinePosition::AfterInput],
        }
    }
}

impl TerminalRules {
    /// Returns whether a lexeme may be skipped as ignored, and whether the stacks may shift it.
    fn skip_or_shift(&self, terminal: u32, line: LinePosition) -> (bool, bool) {
        if let Some(lines) = self.lines.as_ref().filter(|lines| lines.newline == terminal) {
            // Python ends a line once, and no line ends inside brackets.
            let outside_line = lines.is_python() && line != LinePosition::InsideLine;
            return (outside_line || lines.has_brackets(), !outside_line);
        }
        let ignored = terminal < self.terminals && self.is_ignored(terminal);
        (ignored, !ignored || self.lexing == Lexing::Any)
    }

    /// Returns the line position after a lexeme that the stacks shift.
    pub(super) fn line_after(&self, terminal: u32) -> LinePosition {
        if self.ends_line(terminal) { LinePosition::LineEnded } else { LinePosition::InsideLine }
    }
}

impl Parser {
    /// Returns the line position of a parser state.
    pub(super) fn line_of(&self, parser_state: u32) -> LinePosition {
        match &self.indentation {
            Some(indentation) if is_joined(indentation.parts(parser_state).depth) => {
                LinePosition::JoinedLineStart
            }
            Some(indentation) if is_closed(indentation.parts(parser_state).depth) => {
                LinePosition::LineStart
            }
            _ => LinePosition::InsideLine,
        }
    }
}
