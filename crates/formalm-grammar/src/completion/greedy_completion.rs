//! Some member that continues a state, spelled terminal by terminal.
//!
//! The stacks know how few bytes complete them, lexemes and lines being read in any way. Going down
//! from there yields terminals; each is spelled by its shortest text, with a separator behind it,
//! lines up to the column of the level that they lead to. What comes of it is read: it is a member,
//! or nothing was found.

use formalm_automata::Error;

use crate::completion::stack_shortest_path::NEVER;
use crate::indentation::parser_state::Layout;
use crate::indentation::{NONE, PLAIN, is_column, is_free, joins_next, widths};
use crate::interner::NOTHING;
use crate::lexer::Kind;
use crate::lr0::members;
use crate::state::{Core, Reading};

/// Terminals of one spelling.
const MOST: usize = 2_000;

/// A text in the making.
struct Spelling {
    stacks: u32,
    /// Columns of the levels, the innermost one last.
    levels: Vec<u32>,
    text: Vec<u8>,
    /// Where the line stands whose column is still to be spelled, if one has ended.
    line: Option<u32>,
    separator: Vec<u8>,
}

impl Core {
    /// A text that makes a state a member, found without a search; `None` proves nothing.
    pub(crate) fn spelled(&mut self, state: u32) -> Result<Option<Vec<u8>>, Error> {
        if self.is_accepting(state)? {
            return Ok(Some(Vec::new()));
        }
        for reading in self.readings(state) {
            self.stacks.meter.reset();
            let Some((mut text, first)) = self.spelled_from(reading)? else { continue };
            for _ in 0..2 {
                if let Some(length) = self.member_within(state, &text)? {
                    text.truncate(length);
                    return Ok(Some(text));
                }
                // A comment, within brackets or just ended, goes on over other separators.
                text.insert(first, b'\n');
            }
        }
        Ok(None)
    }

    /// Bytes after which a text from a state is a member, if it ever is.
    fn member_within(&mut self, mut state: u32, text: &[u8]) -> Result<Option<usize>, Error> {
        for (at, &byte) in text.iter().enumerate() {
            self.stacks.meter.reset();
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

    /// A text that should lead from a reading to a member, and the bytes of it that end the lexeme
    /// under way.
    fn spelled_from(&mut self, reading: Reading) -> Result<Option<(Vec<u8>, usize)>, Error> {
        let separator = self.certificate.separator_text();
        let mut spelling = Spelling {
            stacks: self.stacks_of(reading.place),
            levels: self.levels_of(reading.place),
            text: Vec::new(),
            line: None,
            separator,
        };
        if reading.is_embedded() {
            let (terminal, state) = self.embedded.at(reading.lexeme);
            let Some(text) = self.embedded.some_member(terminal, state)? else { return Ok(None) };
            spelling.text = text;
            spelling.stacks = self.stacks_after(reading.place, terminal)?;
        } else if !reading.is_between() {
            let Some((thread, stacks)) = self.shortest_way(reading)? else { return Ok(None) };
            spelling.stacks = stacks;
            match self.lexer.column(thread) {
                PLAIN => spelling.text.extend_from_slice(&self.lexer.completion(thread)?),
                column => spelling.line = Some(column),
            }
        }
        let first = spelling.text.len();
        for _ in 0..MOST {
            if self.stacks.is_accepting(spelling.stacks)? {
                if spelling.line.is_some() {
                    self.spell_line(&mut spelling);
                }
                return Ok(Some((spelling.text, first)));
            }
            let Some((terminal, stacks)) = self.next_terminal(spelling.stacks)? else { break };
            self.spell(&mut spelling, terminal)?;
            spelling.stacks = stacks;
        }
        Ok(None)
    }

    /// The thread of a lexeme under way that ends it soonest, all that follows considered, and the
    /// stacks behind it.
    fn shortest_way(&mut self, reading: Reading) -> Result<Option<(u32, u32)>, Error> {
        let mut best = None;
        let mut least = NEVER - 1;
        for &thread in &*self.lexer.lists.copy(reading.lexeme) {
            let terminal = self.lexer.terminal(thread);
            if self.lexer.kind(thread) != Kind::Lexeme || terminal >= self.terminals {
                continue;
            }
            let stacks = self.stacks_after(reading.place, terminal)?;
            if stacks == NOTHING {
                continue;
            }
            let own = self.lexer.completion(thread)?.len() as u32;
            let bytes = self.stacks.completion_bytes(stacks)?.saturating_add(own);
            if bytes < least {
                (least, best) = (bytes, Some((thread, stacks)));
            }
        }
        Ok(best)
    }

    /// A terminal that leads down to the end, and the stacks behind it.
    fn next_terminal(&mut self, stacks: u32) -> Result<Option<(u32, u32)>, Error> {
        let allowed = self.stacks.allowed(stacks)?;
        let allowed = self.stacks.tables.sets.copy(allowed);
        let mut best = None;
        let mut least = NEVER - 1;
        for terminal in members(&allowed).filter_map(|number| number.checked_sub(1)) {
            let next = self.stacks.shift(stacks, terminal)?;
            let own = self.shortest_text(terminal)?.len() as u32;
            let bytes = self.stacks.completion_bytes(next)?.saturating_add(own);
            if bytes < least {
                (least, best) = (bytes, Some((terminal, next)));
            }
        }
        Ok(best)
    }

    /// A shortest text of a terminal; lines and levels have none.
    fn shortest_text(&mut self, terminal: u32) -> Result<Vec<u8>, Error> {
        let told = |one: &Layout| one.is_level(terminal) || one.newline == terminal;
        if self.layout.as_ref().is_some_and(told) {
            return Ok(Vec::new());
        }
        if let Some(machine) = self.embedded.machine(terminal) {
            return machine.some_member(machine.start());
        }
        let start = self.lexer.start(std::iter::once(terminal));
        match *self.lexer.lists.copy(start) {
            [thread] => Ok(self.lexer.completion(thread)?.to_vec()),
            _ => Ok(Vec::new()),
        }
    }

    fn spell(&mut self, spelling: &mut Spelling, terminal: u32) -> Result<(), Error> {
        if let Some(layout) = &self.layout {
            if terminal == layout.newline {
                spelling.line = Some(NONE);
                return Ok(());
            }
            if terminal == layout.indent {
                let wide = spelling.levels.last().map_or(0, |&top| widths(top).0) + 1;
                spelling.levels.push(wide << 16 | wide);
                return Ok(());
            }
            if terminal == layout.dedent {
                spelling.levels.pop();
                return Ok(());
            }
        }
        match spelling.line {
            Some(_) => self.spell_line(spelling),
            None => spelling.text.extend_from_slice(&spelling.separator),
        }
        let text = self.shortest_text(terminal)?;
        spelling.text.extend_from_slice(&text);
        Ok(())
    }

    /// Blanks up to the innermost level, on a line of their own if it is too late for that.
    fn spell_line(&self, spelling: &mut Spelling) {
        let goal = widths(spelling.levels.last().copied().unwrap_or(0));
        match spelling.line.take() {
            Some(column) if is_column(column) && !is_free(column) && widths(column) == goal => {}
            Some(column)
                if is_column(column) && is_free(column) && is_before(widths(column), goal) =>
            {
                let more = (goal.0 - widths(column).0) as usize;
                spelling.text.extend(std::iter::repeat_n(b' ', more));
            }
            column => {
                if column.is_some_and(joins_next) {
                    spelling.text.push(b'\n');
                }
                let tab = self.lexer.columns.map_or(1, |columns| columns.tab);
                spelling.text.push(b'\n');
                spelling.text.extend(blanks(goal, tab));
            }
        }
    }
}

/// Whether blanks lead from one column to another.
fn is_before(from: (u32, u32), to: (u32, u32)) -> bool {
    from.0 <= to.0 && from.1 <= to.1 && to.0 - from.0 == to.1 - from.1
}

/// Blanks and tabs that lead to a column: as counted, and with tabs of one blank.
fn blanks((wide, narrow): (u32, u32), tab: u32) -> Vec<u8> {
    for tabs in 0..=wide / tab.max(1) {
        let behind = wide - tabs * tab;
        // Blanks in front of a tab are counted with it.
        let Some(mut lost) = narrow.checked_sub(tabs + behind) else { continue };
        if lost > tabs * (tab - 1) {
            continue;
        }
        let mut text = Vec::new();
        for _ in 0..tabs {
            let here = lost.min(tab - 1);
            lost -= here;
            text.extend(std::iter::repeat_n(b' ', here as usize));
            text.push(b'\t');
        }
        text.extend(std::iter::repeat_n(b' ', behind as usize));
        return text;
    }
    vec![b' '; wide as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indentation::{Columns, FIRST, Rules};

    #[test]
    fn blanks_lead_where_they_should() {
        let columns = Columns { rules: Rules::Python, tab: 8, widest: 200 };
        for text in ["", " ", "\t", " \t", "\t ", "  \t\t   ", "       \t \t", "         "] {
            let column =
                |text: &[u8]| text.iter().fold(FIRST, |column, &byte| columns.step(column, byte));
            let goal = column(text.as_bytes());
            assert_eq!(column(&blanks(widths(goal), 8)), goal, "{text:?}");
        }
    }
}
