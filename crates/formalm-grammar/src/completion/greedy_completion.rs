//! Greedy completion: some member that extends a state, spelled terminal by terminal without a
//! search.
//!
//! The parser alone yields a shortest sequence of terminals that empties the stacks. Each terminal
//! is spelled by a shortest lexeme with a separator before it; lines are indented to the column of
//! their level. The result is then parsed: either it is a member, or the method finds nothing.

use formalm_core::Error;

use crate::NOTHING;
use crate::configuration_reader::ConfigurationReader;
use crate::configurations::Configuration;
use crate::grammar_state::GrammarState;
use crate::gss::stack_shortest_path::NEVER;
use crate::indentation::{
    BEFORE_LINE_BREAK, NO_COLUMN, is_column, is_extendable, joins_next, widths,
};
use crate::lexer::thread_sets::ThreadKind;
use crate::lr0::elements;

/// Maximum terminals per attempt. Chosen, not measured.
const MAX_TERMINALS: usize = 2_000;

/// A completion under construction.
struct GreedyCompletion<'a> {
    reader: &'a mut ConfigurationReader,
    stacks: u32,
    /// Columns of the levels, innermost last.
    levels: Vec<u32>,
    text: Vec<u8>,
    /// The column reached on a new line that is not indented yet; `None` inside a line.
    line_column: Option<u32>,
    separator: Vec<u8>,
}

impl GreedyCompletion<'_> {
    /// Returns a candidate completion of a configuration, and how many of its bytes end the current
    /// lexeme.
    fn spell(
        configuration: Configuration,
        reader: &mut ConfigurationReader,
    ) -> Result<Option<(Vec<u8>, usize)>, Error> {
        let mut spelling = GreedyCompletion {
            stacks: reader.parser.stacks_of(configuration.parser_state),
            levels: reader.parser.indent_levels(configuration.parser_state),
            text: Vec::new(),
            line_column: None,
            separator: reader.lexer.proof.separator_bytes(),
            reader,
        };
        if configuration.is_in_sublanguage() {
            let (terminal, state) = spelling.reader.sublanguages.at(configuration.lexeme);
            let Some(text) = spelling.reader.sublanguages.some_member(terminal, state)? else {
                return Ok(None);
            };
            spelling.text = text;
            spelling.stacks = spelling
                .reader
                .parser
                .stacks_after_terminal(configuration.parser_state, terminal)?;
        } else if !configuration.is_between() {
            let Some((thread, stacks)) = spelling.cheapest_lexeme(configuration)? else {
                return Ok(None);
            };
            spelling.stacks = stacks;
            match spelling.reader.lexer.threads.column(thread) {
                NO_COLUMN => {
                    let rest = spelling.reader.lexer.threads.shortest_completion(thread)?;
                    spelling.text.extend_from_slice(&rest)
                }
                column => spelling.line_column = Some(column),
            }
        }
        let first = spelling.text.len();
        for _ in 0..MAX_TERMINALS {
            if spelling.reader.parser.gss.is_accepting(spelling.stacks)? {
                if spelling.line_column.is_some() {
                    spelling.spell_line_start();
                }
                return Ok(Some((spelling.text, first)));
            }
            let Some((terminal, stacks)) = spelling.cheapest_terminal()? else { break };
            spelling.spell_terminal(terminal)?;
            spelling.stacks = stacks;
        }
        Ok(None)
    }

    /// Returns the thread of the current lexeme with the cheapest completion, and the stacks after
    /// it.
    fn cheapest_lexeme(
        &mut self,
        configuration: Configuration,
    ) -> Result<Option<(u32, u32)>, Error> {
        let mut best = None;
        let mut best_bytes = NEVER - 1;
        for &thread in &*self.reader.lexer.threads.lists.copy(configuration.lexeme) {
            let terminal = self.reader.lexer.threads.terminal(thread);
            if self.reader.lexer.threads.kind(thread) != ThreadKind::Lexeme
                || terminal >= self.reader.lexer.rules.terminals
            {
                continue;
            }
            let stacks =
                self.reader.parser.stacks_after_terminal(configuration.parser_state, terminal)?;
            if stacks == NOTHING {
                continue;
            }
            let own = self.reader.lexer.threads.shortest_completion(thread)?.len() as u32;
            let bytes = self.reader.parser.gss.min_completion_bytes(stacks)?.saturating_add(own);
            if bytes < best_bytes {
                (best_bytes, best) = (bytes, Some((thread, stacks)));
            }
        }
        Ok(best)
    }

    /// Returns the terminal with the cheapest completion, and the stacks after it.
    fn cheapest_terminal(&mut self) -> Result<Option<(u32, u32)>, Error> {
        let allowed = self.reader.parser.gss.allowed(self.stacks)?;
        let allowed = self.reader.parser.gss.lr0.sets.copy(allowed);
        let mut best = None;
        let mut best_bytes = NEVER - 1;
        for terminal in elements(&allowed).filter_map(|number| number.checked_sub(1)) {
            let next = self.reader.parser.gss.shift(self.stacks, terminal)?;
            let own = self.shortest_text(terminal)?.len() as u32;
            let bytes = self.reader.parser.gss.min_completion_bytes(next)?.saturating_add(own);
            if bytes < best_bytes {
                (best_bytes, best) = (bytes, Some((terminal, next)));
            }
        }
        Ok(best)
    }

    /// Returns a shortest string of a terminal; empty for line ends and indentation terminals.
    fn shortest_text(&mut self, terminal: u32) -> Result<Vec<u8>, Error> {
        let rules = &self.reader.lexer.rules;
        if rules.is_level(terminal) || rules.ends_line(terminal) {
            return Ok(Vec::new());
        }
        if let Some(machine) = self.reader.sublanguages.machine(terminal) {
            return machine.any_completion(machine.start());
        }
        let start = self.reader.lexer.threads.start(std::iter::once(terminal));
        match *self.reader.lexer.threads.lists.copy(start) {
            [thread] => Ok(self.reader.lexer.threads.shortest_completion(thread)?.to_vec()),
            _ => Ok(Vec::new()),
        }
    }

    fn spell_terminal(&mut self, terminal: u32) -> Result<(), Error> {
        if let Some(lines) = &self.reader.lexer.rules.lines {
            if terminal == lines.newline {
                self.line_column = Some(BEFORE_LINE_BREAK);
                return Ok(());
            }
            if terminal == lines.indent {
                let wide = self.levels.last().map_or(0, |&top| widths(top).0) + 1;
                self.levels.push(wide << 16 | wide);
                return Ok(());
            }
            if terminal == lines.dedent {
                self.levels.pop();
                return Ok(());
            }
        }
        match self.line_column {
            Some(_) => self.spell_line_start(),
            None => self.text.extend_from_slice(&self.separator),
        }
        let text = self.shortest_text(terminal)?;
        self.text.extend_from_slice(&text);
        Ok(())
    }

    /// Appends whitespace up to the column of the innermost level, on a new line if that column has
    /// been passed.
    fn spell_line_start(&mut self) {
        let goal = widths(self.levels.last().copied().unwrap_or(0));
        match self.line_column.take() {
            Some(column)
                if is_column(column) && !is_extendable(column) && widths(column) == goal => {}
            Some(column)
                if is_column(column)
                    && is_extendable(column)
                    && can_reach(widths(column), goal) =>
            {
                let more = (goal.0 - widths(column).0) as usize;
                self.text.extend(std::iter::repeat_n(b' ', more));
            }
            column => {
                if column.is_some_and(joins_next) {
                    self.text.push(b'\n');
                }
                let tab = self.reader.lexer.threads.columns.map_or(1, |columns| columns.tab);
                self.text.push(b'\n');
                self.text.extend(whitespace_to(goal, tab));
            }
        }
    }
}

impl GrammarState {
    /// Returns a completion of a state, found without a search. `None` proves nothing.
    pub(crate) fn greedy_completion(&mut self, state: u32) -> Result<Option<Vec<u8>>, Error> {
        if self.is_accepting(state)? {
            return Ok(Some(Vec::new()));
        }
        for configuration in self.states.get(state) {
            self.meter().reset();
            let Some((mut text, first)) = GreedyCompletion::spell(configuration, &mut self.reader)?
            else {
                continue;
            };
            for _ in 0..2 {
                if let Some(length) = self.first_completion_len(state, &text)? {
                    text.truncate(length);
                    return Ok(Some(text));
                }
                // A comment that is open or just ended absorbs other separators.
                text.insert(first, b'\n');
            }
        }
        Ok(None)
    }

    /// Returns the length of the first prefix of `text` that makes a state accepting.
    fn first_completion_len(
        &mut self,
        mut state: u32,
        text: &[u8],
    ) -> Result<Option<usize>, Error> {
        for (at, &byte) in text.iter().enumerate() {
            self.meter().reset();
            state = self.step(state, byte)?;
            if state == NOTHING {
                return Ok(None);
            }
            if self.is_accepting(state)? {
                return Ok(Some(at + 1));
            }
        }
        Ok(None)
    }
}

/// Returns `true` if spaces lead from one column to another.
fn can_reach(from: (u32, u32), to: (u32, u32)) -> bool {
    from.0 <= to.0 && from.1 <= to.1 && to.0 - from.0 == to.1 - from.1
}

/// Returns spaces and tabs that lead to a column, given as its width and as its width with
/// one-column tabs.
fn whitespace_to((wide, narrow): (u32, u32), tab: u32) -> Vec<u8> {
    for tabs in 0..=wide / tab.max(1) {
        let after_tabs = wide - tabs * tab;
        // Spaces before a tab are absorbed by it.
        let Some(mut uncounted) = narrow.checked_sub(tabs + after_tabs) else { continue };
        if uncounted > tabs * (tab - 1) {
            continue;
        }
        let mut text = Vec::new();
        for _ in 0..tabs {
            let here = uncounted.min(tab - 1);
            uncounted -= here;
            text.extend(std::iter::repeat_n(b' ', here as usize));
            text.push(b'\t');
        }
        text.extend(std::iter::repeat_n(b' ', after_tabs as usize));
        return text;
    }
    vec![b' '; wide as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indentation::{ColumnCounter, ColumnRules, FIRST_COLUMN};

    #[test]
    fn whitespace_reaches_its_column() {
        let columns = ColumnCounter { rules: ColumnRules::Python, tab: 8, widest: 200 };
        for text in ["", " ", "\t", " \t", "\t ", "  \t\t   ", "       \t \t", "         "] {
            let column = |text: &[u8]| {
                text.iter().fold(FIRST_COLUMN, |column, &byte| columns.step(column, byte))
            };
            let goal = column(text.as_bytes());
            assert_eq!(column(&whitespace_to(widths(goal), 8)), goal, "{text:?}");
        }
    }
}
