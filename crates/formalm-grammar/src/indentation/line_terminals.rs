//! The terminals of lines and indentation levels, and the terminal ids of lines by column.

use crate::grammar::Grammar;
use crate::indentation::{ColumnCounter, ColumnRules, is_column, may_end_at, widths};

/// The terminals of lines and levels of a grammar, and the rules for columns.
#[derive(Clone, Debug)]
pub(crate) struct LineTerminals {
    pub(crate) newline: u32,
    pub(crate) indent: u32,
    pub(crate) dedent: u32,
    opening: Vec<u32>,
    closing: Vec<u32>,
    pub(crate) columns: ColumnCounter,
    /// Maximum number of open levels.
    pub(crate) max_levels: u32,
    /// Terminal id of a line start at the first column; other columns follow.
    first_line_id: u32,
}

impl LineTerminals {
    /// Returns `None` for a grammar in which indentation does not matter.
    pub(crate) fn new(grammar: &Grammar) -> Option<LineTerminals> {
        let one = grammar.indentation.as_ref()?;
        let numbers = |list: &[usize]| list.iter().map(|&at| at as u32).collect();
        Some(LineTerminals {
            newline: one.newline as u32,
            indent: one.indent as u32,
            dedent: one.dedent as u32,
            opening: numbers(&one.opening),
            closing: numbers(&one.closing),
            columns: ColumnCounter { rules: one.rules, tab: one.tab, widest: one.widest },
            max_levels: one.levels,
            first_line_id: 2 * grammar.terminals.len() as u32,
        })
    }

    /// Returns `true` for the indent and dedent terminals.
    pub(crate) fn is_level(&self, terminal: u32) -> bool {
        terminal == self.indent || terminal == self.dedent
    }

    /// Returns `true` if the grammar has brackets.
    pub(crate) fn has_brackets(&self) -> bool {
        !self.opening.is_empty()
    }

    /// Returns the change of the bracket depth by a terminal.
    pub(crate) fn bracket(&self, terminal: u32) -> i64 {
        i64::from(self.opening.contains(&terminal)) - i64::from(self.closing.contains(&terminal))
    }

    pub(crate) fn is_python(&self) -> bool {
        self.columns.rules == ColumnRules::Python
    }

    /// Returns the terminal id of a line that starts at a column, if it is one.
    pub(crate) fn line_id(&self, column: u32) -> Option<u32> {
        let (wide, narrow) = widths(column);
        let (widest, joined) = (self.columns.widest, u32::from(!may_end_at(column)));
        is_column(column).then(|| self.first_line_id + 2 * (wide * (widest + 1) + narrow) + joined)
    }

    /// Returns the widths of a line's terminal id, and whether the line is joined to the previous
    /// one.
    pub(crate) fn column(&self, number: u32) -> Option<((u32, u32), bool)> {
        let at = number.checked_sub(self.first_line_id)?;
        let (wide, narrow) =
            (at / 2 / (self.columns.widest + 1), at / 2 % (self.columns.widest + 1));
        Some(((wide, narrow), at % 2 == 1))
    }
}
