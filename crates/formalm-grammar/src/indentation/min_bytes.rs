//! Lower bounds on the bytes that complete stacks inside indentation levels.
//!
//! The graph-structured stack knows the minimum bytes of its stacks if every split into lexemes
//! counts and if lines and indentation cost nothing. With indentation, closing a level starts a new
//! line, which must be indented to the enclosing column. The bound counts that whitespace;
//! otherwise any line inside nested blocks would look one step from the end.

use formalm_core::{Error, memory_bytes};
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::gss::stack_shortest_path::{NEVER, NodeGroup, PathEdge, ShortestPathGraph};
use crate::gss::{Gss, stack_shortest_path};
use crate::indentation::line_terminals::LineTerminals;
use crate::indentation::parser_state::{
    IndentationState, OUT_OF_SIGHT, ParserStateParts, is_closed,
};
use crate::indentation::{ColumnCounter, ColumnRules, FIRST_COLUMN, nearest_column, widths};
use crate::lr0::Lr0Automaton;

/// The column of a level that has not started yet.
const DEEPER_LEVEL: u32 = u32::MAX - 1;

/// The suffix of a stack from one edge on, with its indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StackSuffix {
    edge: u32,
    /// Interned columns of the open levels.
    levels: u32,
    /// `true` if the next terminal starts a line, unless it is an indentation terminal.
    begins_line: bool,
}

memory_bytes!(none: StackSuffix);

/// Minimum completion bytes of stack suffixes.
pub(crate) type SuffixBounds = FxHashMap<StackSuffix, u32>;

/// Returns the symbols whose nonempty strings all end with a line end.
pub(crate) fn line_ending_symbols(lr0: &Lr0Automaton, lines: &LineTerminals) -> Vec<bool> {
    let mut ends = vec![true; lr0.firsts.len()];
    for terminal in 0..lr0.terminals {
        ends[terminal as usize] = terminal == lines.newline || terminal == lines.dedent;
    }
    let mut changed = true;
    while changed {
        changed = false;
        for symbol in lr0.terminals as usize..ends.len() {
            let is_ending = lr0.firsts[symbol].iter().all(|&first| {
                let symbols = lr0.rest(first as usize).iter().rev().map(|&one| one as usize);
                let mut symbols = symbols.skip_while(|&one| ends[one] && lr0.nullable[one]);
                symbols.next().is_none_or(|one| ends[one])
            });
            changed |= ends[symbol] && !is_ending;
            ends[symbol] &= is_ending;
        }
    }
    ends
}

/// The graph of stack suffixes inside indentation levels.
pub(crate) struct IndentedSuffixes<'a> {
    gss: &'a mut Gss,
    indentation: &'a mut IndentationState,
}

impl<'a> IndentedSuffixes<'a> {
    pub(crate) fn new(gss: &'a mut Gss, indentation: &'a mut IndentationState) -> Self {
        IndentedSuffixes { gss, indentation }
    }

    /// Returns the minimum bytes that complete a parser state between lexemes.
    pub(crate) fn min_bytes(&mut self, parser_state: u32) -> Result<u32, Error> {
        let key = self.indentation.parser_states.get(parser_state);
        self.stacks_min_bytes(key.stacks, key.levels)
    }

    /// Returns the minimum bytes after the end of a line that has reached `column`.
    pub(crate) fn line_min_bytes(&mut self, parser_state: u32, column: u32) -> Result<u32, Error> {
        let ParserStateParts { mut stacks, depth, levels } = self.indentation.parts(parser_state);
        let LineTerminals { newline, indent, dedent, max_levels, .. } = self.indentation.lines;
        let read = nearest_column(column);
        if !is_closed(depth) {
            stacks = self.gss.shift(stacks, newline)?;
        }
        let mut min_bytes = NEVER;
        if stacks != NOTHING && levels.len() < max_levels as usize {
            let inner = self.gss.shift(stacks, indent)?;
            if inner != NOTHING {
                let inner_levels = [&levels[..], &[DEEPER_LEVEL]].concat();
                min_bytes = self.level_min_bytes(inner, &inner_levels, read)?;
            }
        }
        for open in (1..=levels.len()).rev() {
            if stacks == NOTHING {
                return Ok(min_bytes);
            }
            min_bytes = min_bytes.min(self.level_min_bytes(stacks, &levels[..open], read)?);
            if open > 1 {
                stacks = self.gss.shift(stacks, dedent)?;
            }
        }
        Ok(min_bytes)
    }

    /// Returns the minimum bytes to reach the innermost of some levels from a column, and to
    /// complete the stacks there.
    fn level_min_bytes(
        &mut self,
        stacks: u32,
        levels: &[u32],
        read: Option<u32>,
    ) -> Result<u32, Error> {
        let indentation = &mut *self.indentation;
        let min_whitespace = indentation.lines.columns.min_whitespace(levels, read);
        let levels = indentation.parser_states.intern_levels(levels);
        Ok(match self.stacks_min_bytes(stacks, levels)? {
            NEVER => NEVER,
            bytes => bytes.saturating_add(min_whitespace).min(NEVER - 1),
        })
    }

    /// Returns the minimum bytes that complete stacks inside indentation levels.
    fn stacks_min_bytes(&mut self, stacks: u32, levels: u32) -> Result<u32, Error> {
        if self.indentation.needed_levels.is_none() {
            return self.gss.min_completion_bytes(stacks);
        }
        let mut min_bytes = NEVER;
        for edge in self.gss.graph.tops(stacks) {
            min_bytes = min_bytes.min(stack_shortest_path::shortest_path(
                self,
                StackSuffix { edge, levels, begins_line: false },
            )?);
        }
        Ok(min_bytes)
    }

    /// Returns the bytes of the rest of a production, the levels after it, and whether it ends with
    /// a line end. Returns `None` if it would exceed the maximum number of levels.
    fn rest_of_production(
        &mut self,
        position: usize,
        suffix: StackSuffix,
    ) -> Option<(u32, u32, bool)> {
        let mut bytes = self.gss.lr0.rest_bytes(position);
        let indentation = &mut *self.indentation;
        let LineTerminals { newline, indent, dedent, max_levels, .. } = indentation.lines;
        let (mut begins_line, mut columns) = (suffix.begins_line, None);
        for &symbol in self.gss.lr0.rest(position) {
            let open = || indentation.parser_states.levels_by_id(suffix.levels).to_vec();
            if symbol == indent {
                let columns = columns.get_or_insert_with(open);
                columns.push(DEEPER_LEVEL);
                if columns.len() > max_levels as usize {
                    return None;
                }
            } else if symbol == dedent {
                let columns = columns.get_or_insert_with(open);
                if columns.len() > 1 {
                    columns.pop();
                }
                begins_line = true;
            } else if symbol == newline {
                begins_line = true;
            } else if !self.gss.lr0.nullable[symbol as usize] {
                if begins_line {
                    let levels = columns.as_deref();
                    let levels = levels
                        .unwrap_or_else(|| indentation.parser_states.levels_by_id(suffix.levels));
                    bytes += indentation.lines.columns.min_whitespace(levels, None);
                }
                begins_line = indentation.ends_lines[symbol as usize];
            }
        }
        let levels = columns
            .map_or(suffix.levels, |columns| indentation.parser_states.intern_levels(&columns));
        Some((bytes, levels, begins_line))
    }
}

impl ShortestPathGraph for IndentedSuffixes<'_> {
    type Node = StackSuffix;

    fn known(&self, suffix: &StackSuffix) -> Option<u32> {
        self.indentation.suffix_bounds.get(suffix).copied()
    }

    fn store(&mut self, suffix: StackSuffix, bytes: u32) {
        self.indentation.suffix_bounds.insert(suffix, bytes);
    }

    fn out_edges(
        &mut self,
        suffix: StackSuffix,
        from: usize,
        group: &mut NodeGroup<StackSuffix>,
        out_edges: &mut Vec<PathEdge<StackSuffix>>,
    ) -> Result<(), Error> {
        for (position, pushed, becomes) in self.gss.items(suffix.edge)? {
            let Some((bytes, levels, begins_line)) = self.rest_of_production(position, suffix)
            else {
                continue;
            };
            let bytes = bytes.min(NEVER - 1);
            if self.gss.lr0.is_goal_at(position) {
                out_edges.push(PathEdge { from, bytes, to: None });
            }
            for edge in becomes {
                let to = StackSuffix { edge, levels, begins_line };
                out_edges.push(PathEdge { from, bytes, to: Some(to) });
                if pushed == 1 && self.known(&to).is_none() {
                    group.intern(to);
                }
            }
        }
        Ok(())
    }

    fn spend(&mut self, steps: usize) -> Result<(), Error> {
        self.gss.meter.spend(steps)
    }
}

impl ColumnCounter {
    /// Returns the minimum whitespace bytes to the column of the innermost level, from column
    /// `read` or after a line break.
    fn min_whitespace(&self, levels: &[u32], read: Option<u32>) -> u32 {
        let known = levels.iter().rposition(|&level| level != DEEPER_LEVEL);
        let goal = known.map_or(0, |at| levels[at]);
        if goal == OUT_OF_SIGHT {
            return u32::from(read.is_none());
        }
        let deeper = (levels.len() - known.map_or(0, |at| at + 1)) as u32;
        let from_new_line = 1 + self.bytes_to_column(FIRST_COLUMN, goal, deeper).unwrap_or(0);
        let on = read.and_then(|read| self.bytes_to_column(read, goal, deeper));
        on.map_or(from_new_line, |on| on.min(from_new_line))
    }

    /// Returns the minimum bytes from one column to another, or to any column `deeper` levels
    /// further in. Returns `None` if only a new line reaches it.
    fn bytes_to_column(&self, read: u32, goal: u32, deeper: u32) -> Option<u32> {
        let ((wide, narrow), (to_wide, to_narrow)) = (widths(read), widths(goal));
        match self.rules {
            ColumnRules::Python if deeper > 0 => Some((to_narrow + deeper).saturating_sub(narrow)),
            ColumnRules::Python => {
                let bytes = to_narrow.checked_sub(narrow)?;
                let stop = to_wide / self.tab * self.tab;
                if stop <= wide {
                    return (to_wide.checked_sub(wide)? == bytes).then_some(bytes);
                }
                // A tab stop is reached with spaces alone, or with a tab after fewer spaces.
                let stops = stop / self.tab - wide / self.tab;
                let before = bytes.checked_sub(to_wide - stop)?;
                (stops..=stop - wide).contains(&before).then_some(bytes)
            }
            ColumnRules::Lark if deeper > 0 => {
                Some((to_wide + deeper).saturating_sub(wide).div_ceil(self.tab))
            }
            ColumnRules::Lark => {
                let more = to_wide.checked_sub(wide)?;
                Some(more / self.tab + more % self.tab)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_whitespace_matches_exhaustive_search() {
        for (rules, tab) in [
            (ColumnRules::Python, 8),
            (ColumnRules::Python, 3),
            (ColumnRules::Python, 1),
            (ColumnRules::Lark, 8),
            (ColumnRules::Lark, 3),
            (ColumnRules::Lark, 1),
        ] {
            let columns = ColumnCounter { rules, tab, widest: 200 };
            // The columns that each number of spaces and tabs leads to.
            let after = |from: u32| {
                let mut all = vec![vec![from]];
                for _ in 0..9 {
                    let last = all[all.len() - 1].iter();
                    let mut next: Vec<u32> = last
                        .flat_map(|&at| [b' ', b'\t'].map(|byte| columns.step(at, byte)))
                        .collect();
                    next.sort_unstable();
                    next.dedup();
                    all.push(next);
                }
                all
            };
            let begun = after(FIRST_COLUMN);
            let columns_reached: Vec<u32> = begun[..6].concat();
            for &read in &columns_reached {
                let on = after(read);
                let bytes = |goal: u32| on.iter().position(|found| found.contains(&goal));
                for &goal in &columns_reached {
                    let wanted = bytes(goal).map(|bytes| bytes as u32);
                    let from_new_line =
                        begun.iter().position(|found| found.contains(&goal)).unwrap() as u32 + 1;
                    let wanted = wanted.map_or(from_new_line, |wanted| wanted.min(from_new_line));
                    assert_eq!(
                        columns.min_whitespace(&[FIRST_COLUMN, goal], Some(read)),
                        wanted,
                        "{read} {goal}"
                    );
                    assert_eq!(columns.min_whitespace(&[FIRST_COLUMN, goal], None), from_new_line);
                    // A level counts as deeper only if it is deeper for every tab width.
                    let is_deeper = |one: u32| {
                        let (one, goal) = (widths(one), widths(goal));
                        one.0 > goal.0 && one.1 > goal.1
                    };
                    for (count, found) in on.iter().enumerate() {
                        if found.iter().any(|&one| is_deeper(one)) {
                            assert!(
                                columns.min_whitespace(&[goal, DEEPER_LEVEL], Some(read))
                                    <= count as u32
                            );
                            break;
                        }
                    }
                }
            }
        }
    }
}
