//! How many bytes a reading needs at least to become a member: what guides searches for members.
//!
//! Stacks know how few bytes complete them, lexemes being read in any way and lines and levels
//! having none. Where there are levels, behind one that ends a line begins, with the blanks up to
//! its column: without these every line within some levels would seem a way to the end.

use formalm_automata::{Completion, Error, Look};
use rustc_hash::FxHashMap;

use crate::completion::Completions;
use crate::completion::stack_shortest_path::{self, Group, NEVER, Rests, Way};
use crate::indentation::parser_state::{Layout, OUT_OF_SIGHT, Parts, is_closed};
use crate::indentation::{Columns, FIRST, Rules, nearest_column, widths};
use crate::interner::NOTHING;
use crate::lexer::Kind;
use crate::lr0::Tables;
use crate::state::{Core, Reading};

/// In place of the column of a level that is still to begin.
const DEEPER: u32 = u32::MAX - 1;

/// What is left to be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rest {
    edge: u32,
    /// Columns of the open levels, as a number of the places.
    levels: u32,
    /// Whether what comes next, if it is no level, begins a line.
    begins: bool,
}

/// Bytes by what is left.
pub(crate) type Known = FxHashMap<Rest, u32>;

/// Symbols that end lines wherever they are not empty.
pub(crate) fn ending_lines(tables: &Tables, layout: &Layout) -> Vec<bool> {
    let mut ends = vec![true; tables.firsts.len()];
    for terminal in 0..tables.terminals {
        ends[terminal as usize] = terminal == layout.newline || terminal == layout.dedent;
    }
    let mut changed = true;
    while changed {
        changed = false;
        for symbol in tables.terminals as usize..ends.len() {
            let is_ending = tables.firsts[symbol].iter().all(|&first| {
                let symbols = tables.rest(first as usize).iter().rev().map(|&one| one as usize);
                let mut symbols = symbols.skip_while(|&one| ends[one] && tables.nullable[one]);
                symbols.next().is_none_or(|one| ends[one])
            });
            changed |= ends[symbol] && !is_ending;
            ends[symbol] &= is_ending;
        }
    }
    ends
}

impl Core {
    /// What completes a reading, as closely as it is looked.
    pub(crate) fn completion(&mut self, reading: Reading) -> Result<Completion, Error> {
        let Some(closely) = self.look else { return Ok(Completion::Unknown) };
        let look = if self.layout.is_some() { Look::Loose } else { Look::Close };
        if closely == Look::Closest {
            match self.told(reading, Look::Closest)? {
                // It may be too much work.
                Completion::Unknown => {}
                told => return Ok(told),
            }
        }
        self.told(reading, look)
    }

    fn told(&mut self, reading: Reading, look: Look) -> Result<Completion, Error> {
        let alone = self.alone[look as usize].take();
        let made = || Completions::new(None, look, self).map(Box::new);
        let Some(mut alone) = alone.or_else(made) else { return Ok(Completion::Unknown) };
        let completion = alone.completion(reading, None, self);
        self.alone[look as usize] = Some(alone);
        completion
    }

    /// Bytes that a reading needs at least to become a member, [`NEVER`] if it never does; exact
    /// where lexemes are free.
    pub(crate) fn least_bytes(&mut self, reading: Reading) -> Result<u32, Error> {
        match self.completion(reading)? {
            Completion::Never => return Ok(NEVER),
            // Blanks of lines that must come are known below.
            Completion::AtLeast(_) if self.layout.is_some() => {}
            Completion::AtLeast(bytes) | Completion::Exactly(bytes) => return Ok(bytes as u32),
            Completion::Unknown => {}
        }
        if reading.is_between() {
            return self.place_bytes(reading.place);
        }
        if reading.is_embedded() {
            return self.embedded_bytes(reading);
        }
        if self.may_end_within(reading)? {
            return Ok(0);
        }
        let in_lines = self.has_lines(reading.place);
        let mut least = None;
        for &thread in &*self.lexer.lists.copy(reading.lexeme) {
            if self.lexer.kind(thread) != Kind::Lexeme {
                continue;
            }
            let (terminal, own) = (self.lexer.terminal(thread), self.lexer.distance(thread)?);
            let bytes = match self.ends_line(terminal) {
                true if in_lines => {
                    self.line_bytes(reading.place, self.lexer.column(thread))?.max(own)
                }
                true => self.place_bytes(reading.place)?.saturating_add(own),
                false => {
                    let behind = self.after(reading.place, terminal)?;
                    self.place_bytes(behind)?.saturating_add(own)
                }
            };
            least = Some(least.unwrap_or(NEVER).min(bytes));
        }
        Ok(least.unwrap_or(NEVER - 1))
    }

    /// The same of a place between lexemes.
    pub(crate) fn place_bytes(&mut self, place: u32) -> Result<u32, Error> {
        match &self.layout {
            None => self.stacks.completion_bytes(place),
            Some(layout) => {
                let spot = layout.places.get(place);
                self.stacks_bytes(spot.stacks, spot.levels)
            }
        }
    }

    /// The same behind the end of a line that has come to a column.
    fn line_bytes(&mut self, place: u32, column: u32) -> Result<u32, Error> {
        let Some(layout) = &self.layout else { return Ok(0) };
        let Parts { mut stacks, depth, levels } = layout.parts(place);
        let (newline, indent, dedent) = (layout.newline, layout.indent, layout.dedent);
        let most = layout.levels as usize;
        let read = nearest_column(column);
        if !is_closed(depth) {
            stacks = self.stacks.shift(stacks, newline)?;
        }
        let mut least = NEVER;
        if stacks != NOTHING && levels.len() < most {
            let inner = self.stacks.shift(stacks, indent)?;
            if inner != NOTHING {
                let within = [&levels[..], &[DEEPER]].concat();
                least = self.level_bytes(inner, &within, read)?;
            }
        }
        for open in (1..=levels.len()).rev() {
            if stacks == NOTHING {
                return Ok(least);
            }
            least = least.min(self.level_bytes(stacks, &levels[..open], read)?);
            if open > 1 {
                stacks = self.stacks.shift(stacks, dedent)?;
            }
        }
        Ok(least)
    }

    /// Bytes up to the innermost of some levels, from a column that was read, and what follows.
    fn level_bytes(
        &mut self,
        stacks: u32,
        levels: &[u32],
        read: Option<u32>,
    ) -> Result<u32, Error> {
        let Some(layout) = &mut self.layout else { return Ok(0) };
        let blanks = layout.columns.blanks(levels, read);
        let levels = layout.places.levels_number(levels);
        Ok(match self.stacks_bytes(stacks, levels)? {
            NEVER => NEVER,
            bytes => bytes.saturating_add(blanks).min(NEVER - 1),
        })
    }

    /// Bytes that complete stacks within levels.
    fn stacks_bytes(&mut self, stacks: u32, levels: u32) -> Result<u32, Error> {
        if self.layout.as_ref().is_none_or(|layout| layout.need.is_none()) {
            return self.stacks.completion_bytes(stacks);
        }
        let mut least = NEVER;
        for edge in self.stacks.tops(stacks) {
            least =
                least.min(stack_shortest_path::least(self, Rest { edge, levels, begins: false })?);
        }
        Ok(least)
    }

    /// Bytes of what is left of a production, the levels behind it and whether a line begins there;
    /// `None` if there would be more levels than there may be.
    fn written(&mut self, place: usize, rest: Rest) -> Option<(u32, u32, bool)> {
        let mut bytes = self.stacks.tables.rest_bytes(place);
        let Some(layout) = &mut self.layout else { return Some((bytes, rest.levels, false)) };
        let (mut begins, mut columns) = (rest.begins, None);
        for &symbol in self.stacks.tables.rest(place) {
            let open = || layout.places.list(rest.levels).to_vec();
            if symbol == layout.indent {
                let columns = columns.get_or_insert_with(open);
                columns.push(DEEPER);
                if columns.len() > layout.levels as usize {
                    return None;
                }
            } else if symbol == layout.dedent {
                let columns = columns.get_or_insert_with(open);
                if columns.len() > 1 {
                    columns.pop();
                }
                begins = true;
            } else if symbol == layout.newline {
                begins = true;
            } else if !self.stacks.tables.nullable[symbol as usize] {
                if begins {
                    let levels = columns.as_deref();
                    let levels = levels.unwrap_or_else(|| layout.places.list(rest.levels));
                    bytes += layout.columns.blanks(levels, None);
                }
                begins = layout.ends_lines[symbol as usize];
            }
        }
        let levels = columns.map_or(rest.levels, |columns| layout.places.levels_number(&columns));
        Some((bytes, levels, begins))
    }
}

impl Rests for Core {
    type Rest = Rest;

    fn known(&self, rest: &Rest) -> Option<u32> {
        self.rests.get(rest).copied()
    }

    fn keep(&mut self, rest: Rest, bytes: u32) {
        self.rests.insert(rest, bytes);
    }

    fn ways(
        &mut self,
        rest: Rest,
        from: usize,
        group: &mut Group<Rest>,
        ways: &mut Vec<Way<Rest>>,
    ) -> Result<(), Error> {
        for (place, pushed, becomes) in self.stacks.items(rest.edge)? {
            let Some((bytes, levels, begins)) = self.written(place, rest) else { continue };
            let bytes = bytes.min(NEVER - 1);
            if self.stacks.tables.is_goal_at(place) {
                ways.push(Way { from, bytes, to: None });
            }
            for edge in becomes {
                let to = Rest { edge, levels, begins };
                ways.push(Way { from, bytes, to: Some(to) });
                if pushed == 1 && self.known(&to).is_none() {
                    group.add(to);
                }
            }
        }
        Ok(())
    }

    fn spend(&mut self, steps: usize) -> Result<(), Error> {
        self.stacks.meter.spend(steps)
    }
}

impl Columns {
    /// Bytes at least to the column of the innermost of some levels, from a column that was read or
    /// behind the line that goes before.
    fn blanks(&self, levels: &[u32], read: Option<u32>) -> u32 {
        let known = levels.iter().rposition(|&level| level != DEEPER);
        let goal = known.map_or(0, |at| levels[at]);
        if goal == OUT_OF_SIGHT {
            return u32::from(read.is_none());
        }
        let deeper = (levels.len() - known.map_or(0, |at| at + 1)) as u32;
        let anew = 1 + self.on_from(FIRST, goal, deeper).unwrap_or(0);
        let on = read.and_then(|read| self.on_from(read, goal, deeper));
        on.map_or(anew, |on| on.min(anew))
    }

    /// Bytes at least from a column to another one, or to any that is so many levels deeper; `None`
    /// if it takes another line.
    fn on_from(&self, read: u32, goal: u32, deeper: u32) -> Option<u32> {
        let ((wide, narrow), (to_wide, to_narrow)) = (widths(read), widths(goal));
        match self.rules {
            Rules::Python if deeper > 0 => Some((to_narrow + deeper).saturating_sub(narrow)),
            Rules::Python => {
                let bytes = to_narrow.checked_sub(narrow)?;
                let stop = to_wide / self.tab * self.tab;
                if stop <= wide {
                    return (to_wide.checked_sub(wide)? == bytes).then_some(bytes);
                }
                // A tab stop is come to with blanks alone, or a tab behind fewer of them.
                let stops = stop / self.tab - wide / self.tab;
                let before = bytes.checked_sub(to_wide - stop)?;
                (stops..=stop - wide).contains(&before).then_some(bytes)
            }
            Rules::Lark if deeper > 0 => {
                Some((to_wide + deeper).saturating_sub(wide).div_ceil(self.tab))
            }
            Rules::Lark => {
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
    fn blanks_are_as_many_as_it_takes() {
        for (rules, tab) in [
            (Rules::Python, 8),
            (Rules::Python, 3),
            (Rules::Python, 1),
            (Rules::Lark, 8),
            (Rules::Lark, 3),
            (Rules::Lark, 1),
        ] {
            let columns = Columns { rules, tab, widest: 200 };
            // The columns that so many blanks and tabs lead to.
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
            let begun = after(FIRST);
            let met: Vec<u32> = begun[..6].concat();
            for &read in &met {
                let on = after(read);
                let bytes = |goal: u32| on.iter().position(|found| found.contains(&goal));
                for &goal in &met {
                    let wanted = bytes(goal).map(|bytes| bytes as u32);
                    let anew =
                        begun.iter().position(|found| found.contains(&goal)).unwrap() as u32 + 1;
                    let wanted = wanted.map_or(anew, |wanted| wanted.min(anew));
                    assert_eq!(columns.blanks(&[FIRST, goal], Some(read)), wanted, "{read} {goal}");
                    assert_eq!(columns.blanks(&[FIRST, goal], None), anew);
                    // Levels are deeper however a tab is counted.
                    let is_deeper = |one: u32| {
                        let (one, goal) = (widths(one), widths(goal));
                        one.0 > goal.0 && one.1 > goal.1
                    };
                    for (count, found) in on.iter().enumerate() {
                        if found.iter().any(|&one| is_deeper(one)) {
                            assert!(columns.blanks(&[goal, DEEPER], Some(read)) <= count as u32);
                            break;
                        }
                    }
                }
            }
        }
    }
}
