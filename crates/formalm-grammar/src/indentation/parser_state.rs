//! Places of a text: stacks, and where lines matter the levels of indentation.
//!
//! The end of a line is a lexeme that ends at a column, and has a number of its own for each. At
//! its end the levels tell which terminals without a text follow it; they are shifted at once, so
//! that the stacks see an ordinary sequence of terminals.

use formalm_automata::{BEYOND, Error};

use crate::grammar::Grammar;
use crate::indentation::parser_state_interner::{Places, Spot};
use crate::indentation::{Columns, FIRST, NONE, PLAIN, Rules, is_column, may_end_at, widths};
use crate::interner::NOTHING;
use crate::lr0::members;
use crate::state::{Core, Reading};

/// In place of the depth: no line is under way, as before the first one, and as Python has it behind
/// the end of each. Another end of a line is none then.
const CLOSED: u32 = u32::MAX;

/// The same where a backslash joined the line before with this one: the text cannot end.
const JOINED: u32 = u32::MAX - 1;

/// In place of the column of a level that is out of sight.
pub(crate) const OUT_OF_SIGHT: u32 = u32::MAX;

/// Levels that are in sight where lines matter.
const IN_SIGHT: usize = 2;

/// What is known of lines.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) newline: u32,
    pub(crate) indent: u32,
    pub(crate) dedent: u32,
    opening: Vec<u32>,
    closing: Vec<u32>,
    pub(crate) columns: Columns,
    pub(crate) levels: u32,
    /// Number of a line that begins at the first column; other columns follow.
    first: u32,
    /// Stacks, depth of brackets, columns of all levels.
    pub(crate) places: Places,
    /// Levels that completing any stack takes at most; `None` if it is not known that levels,
    /// lines and brackets fit together in whatever the rules derive.
    pub(crate) need: Option<u32>,
    /// Threads of the end of a line that may go on although it has ended.
    pub(crate) left: u32,
    /// What is ignored and ends where lines do, as comments: read where a line may end.
    pub(crate) comments: Vec<u32>,
    /// The terminal of line breaks and the lexer in front of all terminals, once it is known that
    /// levels, lines and brackets fit together.
    pub(crate) in_brackets: Option<(u32, u32)>,
    /// Symbols that end lines wherever they are not empty.
    pub(crate) ends_lines: Vec<bool>,
}

/// A place taken apart.
pub(crate) struct Parts {
    pub(crate) stacks: u32,
    pub(crate) depth: u32,
    pub(crate) levels: Vec<u32>,
}

/// How columns are counted in a grammar.
pub(crate) fn columns(grammar: &Grammar) -> Option<Columns> {
    let one = grammar.indentation.as_ref()?;
    Some(Columns { rules: one.rules, tab: one.tab, widest: one.widest })
}

impl Layout {
    pub(crate) fn new(grammar: &Grammar) -> Option<Layout> {
        let one = grammar.indentation.as_ref()?;
        let numbers = |list: &[usize]| list.iter().map(|&at| at as u32).collect();
        Some(Layout {
            newline: one.newline as u32,
            indent: one.indent as u32,
            dedent: one.dedent as u32,
            opening: numbers(&one.opening),
            closing: numbers(&one.closing),
            columns: columns(grammar)?,
            levels: one.levels,
            first: 2 * grammar.terminals.len() as u32,
            places: Places::default(),
            need: None,
            left: NOTHING,
            comments: Vec::new(),
            in_brackets: None,
            ends_lines: Vec::new(),
        })
    }

    /// Whether a terminal has no text and is told by columns.
    pub(crate) fn is_level(&self, terminal: u32) -> bool {
        terminal == self.indent || terminal == self.dedent
    }

    /// Whether there are brackets.
    pub(crate) fn has_brackets(&self) -> bool {
        !self.opening.is_empty()
    }

    /// Whether a terminal opens or closes brackets: one more or one less.
    pub(crate) fn bracket(&self, terminal: u32) -> i64 {
        i64::from(self.opening.contains(&terminal)) - i64::from(self.closing.contains(&terminal))
    }

    /// In place of the depth where a line begins.
    fn depth_of_lines(&self) -> u32 {
        if self.is_python() { CLOSED } else { 0 }
    }

    pub(crate) fn is_python(&self) -> bool {
        self.columns.rules == Rules::Python
    }

    /// The number of a line that begins at a column, if it is one.
    pub(crate) fn line(&self, column: u32) -> Option<u32> {
        let (wide, narrow) = widths(column);
        let (widest, joined) = (self.columns.widest, u32::from(!may_end_at(column)));
        is_column(column).then(|| self.first + 2 * (wide * (widest + 1) + narrow) + joined)
    }

    /// The column of the number of a line, and whether it is joined to the one before.
    fn column(&self, number: u32) -> Option<((u32, u32), bool)> {
        let at = number.checked_sub(self.first)?;
        let (wide, narrow) =
            (at / 2 / (self.columns.widest + 1), at / 2 % (self.columns.widest + 1));
        Some(((wide, narrow), at % 2 == 1))
    }

    pub(crate) fn parts(&self, place: u32) -> Parts {
        let Spot { stacks, depth, .. } = self.places.get(place);
        Parts { stacks, depth, levels: self.places.levels(place).to_vec() }
    }

    fn place(&mut self, parts: &Parts) -> u32 {
        let levels = self.places.levels_number(&parts.levels);
        self.places.number(Spot { stacks: parts.stacks, depth: parts.depth, levels })
    }

    /// What the end of a line stands for, by the places before it and behind it; `None` for other
    /// lexemes.
    pub(crate) fn told(&self, terminal: u32, before: u32, behind: u32) -> Option<Vec<u32>> {
        if self.column(terminal).is_none() {
            return (terminal == self.newline).then(Vec::new);
        }
        let (before, behind) = (self.parts(before), self.parts(behind));
        let (old, new) = (before.levels.len(), behind.levels.len());
        let mut told = if is_closed(before.depth) { Vec::new() } else { vec![self.newline] };
        told.extend(std::iter::repeat_n(self.indent, new.saturating_sub(old)));
        told.extend(std::iter::repeat_n(self.dedent, old.saturating_sub(new)));
        Some(told)
    }

    /// Appends the depth of brackets and the levels of a place, as far as they can matter to a
    /// depth of its stacks. `false` if limits are near.
    pub(crate) fn outline(&self, place: u32, depth: u32, list: &mut Vec<u32>) -> bool {
        let (brackets, levels) = (self.places.get(place).depth, self.places.levels(place));
        if !self.has_room(place) {
            return false;
        }
        if self.is_in_brackets(place) {
            // Each of the brackets has a state of its own, and lines matter behind the last.
            list.extend([1, brackets.min(depth + 1), OUT_OF_SIGHT]);
            return true;
        }
        list.extend([levels.len() as u32, brackets]);
        let unseen = levels.len().saturating_sub(IN_SIGHT);
        list.extend(std::iter::repeat_n(OUT_OF_SIGHT, unseen));
        list.extend_from_slice(&levels[unseen..]);
        true
    }

    /// What [`Layout::outline`] appended, and the rest.
    pub(crate) fn taken_apart<'a>(&self, outline: &'a [u32]) -> (&'a [u32], &'a [u32]) {
        outline.split_at(outline[0] as usize + 2)
    }

    /// The place with these stacks and what [`Layout::outline`] appended.
    pub(crate) fn drawn(&mut self, stacks: u32, front: &[u32]) -> u32 {
        self.place(&Parts { stacks, depth: front[1], levels: front[2..].to_vec() })
    }

    fn is_in_brackets(&self, place: u32) -> bool {
        !matches!(self.places.get(place).depth, 0 | CLOSED | JOINED)
    }

    /// Whether there is room for all levels that completing a place may take.
    fn has_room(&self, place: u32) -> bool {
        let Some(need) = self.need else { return false };
        let levels = self.places.levels(place);
        let top = match levels.last() {
            // There was room before, and no level begins unseen.
            None | Some(&OUT_OF_SIGHT) => 0,
            Some(&top) => widths(top).0,
        };
        levels.len() as u32 + need <= self.levels && top + need <= self.columns.widest
    }
}

impl Core {
    /// The readings before anything was read.
    pub(crate) fn start_readings(&mut self) -> Result<Vec<Reading>, Error> {
        let stacks = self.stacks.start();
        let Some(layout) = &mut self.layout else {
            return Ok(vec![Reading::between(stacks, NOTHING)]);
        };
        let depth = layout.depth_of_lines();
        let place = layout.place(&Parts { stacks, depth, levels: vec![FIRST] });
        if !layout.is_python() {
            return Ok(vec![Reading::between(place, NOTHING)]);
        }
        // As if a line had just ended.
        let newline = layout.newline;
        let start = self.lexer.start_of_lines(std::iter::once(newline), Some(newline));
        let lexeme = self.lexer.step(start, b'\n', &mut self.stacks.meter)?.next;
        let forbidden = self.lexer.plain(lexeme);
        let first = Reading { lexeme, place, forbidden: NOTHING };
        Ok(vec![Reading::between(place, forbidden), first])
    }

    /// The stacks of a place.
    pub(crate) fn stacks_of(&self, place: u32) -> u32 {
        let Some(layout) = &self.layout else { return place };
        layout.places.get(place).stacks
    }

    /// Columns of the levels of a place, the innermost one last.
    pub(crate) fn levels_of(&self, place: u32) -> Vec<u32> {
        self.layout.as_ref().map_or_else(Vec::new, |layout| layout.parts(place).levels)
    }

    /// Whether a terminal is the one that ends lines.
    pub(crate) fn ends_line(&self, terminal: u32) -> bool {
        self.layout.as_ref().is_some_and(|layout| layout.newline == terminal)
    }

    /// Whether lines matter at a place.
    pub(crate) fn has_lines(&self, place: u32) -> bool {
        self.layout.as_ref().is_some_and(|layout| !layout.is_in_brackets(place))
    }

    /// Whether limits of indentation do not matter to what completes a place.
    pub(crate) fn has_room(&self, place: u32) -> bool {
        self.layout.as_ref().is_none_or(|layout| layout.has_room(place))
    }

    /// The place after a terminal, where there are levels of indentation.
    pub(crate) fn after_in_layout(&mut self, place: u32, terminal: u32) -> Result<u32, Error> {
        let Some(layout) = &self.layout else { return Ok(NOTHING) };
        if let Some((column, joined)) = layout.column(terminal) {
            return self.new_line(place, column, joined);
        }
        let mut spot = layout.places.get(place);
        let (newline, bracket) = (layout.newline, layout.bracket(terminal));
        if terminal == newline || (terminal < self.terminals && self.is_ignored(terminal)) {
            return Ok(place);
        }
        spot.stacks = self.stacks.shift(spot.stacks, self.shifted(terminal))?;
        let depth = if is_closed(spot.depth) { 0 } else { i64::from(spot.depth) };
        match u32::try_from(depth + bracket) {
            Ok(depth) => spot.depth = depth,
            Err(_) => return Ok(NOTHING),
        }
        Ok(self.layout.as_mut().map_or(NOTHING, |layout| layout.places.number(spot)))
    }

    /// The place where a line begins at a column.
    fn new_line(
        &mut self,
        place: u32,
        (wide, narrow): (u32, u32),
        joined: bool,
    ) -> Result<u32, Error> {
        let Some(layout) = &self.layout else { return Ok(NOTHING) };
        let Parts { mut stacks, depth, mut levels } = layout.parts(place);
        let (newline, indent, dedent) = (layout.newline, layout.indent, layout.dedent);
        let most = layout.levels as usize;
        if !is_closed(depth) {
            stacks = self.stacks.shift(stacks, newline)?;
        }
        let top = |levels: &[u32]| match levels.last() {
            Some(&OUT_OF_SIGHT) => Err(BEYOND),
            top => Ok(top.map_or((0, 0), |&top| widths(top))),
        };
        let (first_wide, first_narrow) = top(&levels)?;
        if wide > first_wide {
            if narrow <= first_narrow || levels.len() >= most {
                return Ok(NOTHING);
            }
            stacks = self.stacks.shift(stacks, indent)?;
            levels.push(wide << 16 | narrow);
        }
        while stacks != NOTHING && wide < top(&levels)?.0 {
            stacks = self.stacks.shift(stacks, dedent)?;
            levels.pop();
        }
        if stacks == NOTHING || top(&levels)? != (wide, narrow) {
            return Ok(NOTHING);
        }
        let Some(layout) = &mut self.layout else { return Ok(NOTHING) };
        let depth = if joined { JOINED } else { layout.depth_of_lines() };
        let next = layout.place(&Parts { stacks, depth, levels });
        // A level that begins or ends here is told by another column.
        let allowed = self.stacks.allowed(stacks)?;
        let set = self.stacks.tables.sets.get(allowed);
        let is_level = |one: u32| self.layout.as_ref().is_some_and(|layout| layout.is_level(one));
        let goes_on = members(set).filter_map(|one| one.checked_sub(1)).any(|one| !is_level(one));
        Ok(if goes_on || self.may_end(next)? { next } else { NOTHING })
    }

    /// Whether the text may end at a place between lexemes.
    pub(crate) fn may_end(&mut self, place: u32) -> Result<bool, Error> {
        let Some(layout) = &self.layout else { return self.stacks.is_accepting(place) };
        let Parts { stacks, depth, levels } = layout.parts(place);
        let (newline, open_line) = (layout.newline, layout.is_python() && depth == 0);
        if depth == JOINED {
            return Ok(false);
        }
        if self.ends_behind(stacks, levels.len())? {
            return Ok(true);
        }
        let stacks = if open_line { self.stacks.shift(stacks, newline)? } else { NOTHING };
        self.ends_behind(stacks, levels.len())
    }

    /// What the end of a text stands for, where it may end.
    pub(crate) fn told_at_end(&mut self, reading: Reading) -> Result<Vec<u32>, Error> {
        let Some(layout) = &self.layout else { return Ok(Vec::new()) };
        let Parts { stacks, depth, levels } = layout.parts(reading.place);
        let (newline, dedent) = (layout.newline, layout.dedent);
        let mut told = vec![dedent; levels.len() - 1];
        let is_closed = reading.is_between() && self.ends_behind(stacks, levels.len())?;
        if !is_closed && !crate::indentation::parser_state::is_closed(depth) {
            told.insert(0, newline);
        }
        Ok(told)
    }

    /// Whether the text may end within a lexeme: in blank lines, whose last one may be open.
    pub(crate) fn may_end_within(&mut self, reading: Reading) -> Result<bool, Error> {
        let Some(layout) = self.layout.as_ref().filter(|layout| layout.is_python()) else {
            return Ok(false);
        };
        if !self.lexer.may_end(reading.forbidden) {
            return Ok(false);
        }
        let threads = self.lexer.lists.get(reading.lexeme);
        let is_line = |one: u32| is_line(self.lexer.column(one)) && self.lexer.has_matched(one);
        if !threads.iter().any(|&one| is_line(one)) {
            return Ok(false);
        }
        let Parts { stacks, depth, levels } = layout.parts(reading.place);
        let newline = layout.newline;
        let stacks = if is_closed(depth) { stacks } else { self.stacks.shift(stacks, newline)? };
        self.ends_behind(stacks, levels.len())
    }

    /// Whether stacks with so many levels are complete once these end.
    fn ends_behind(&mut self, mut stacks: u32, levels: usize) -> Result<bool, Error> {
        let dedent = self.layout.as_ref().map_or(NOTHING, |layout| layout.dedent);
        for _ in 1..levels {
            if stacks == NOTHING {
                return Ok(false);
            }
            stacks = self.stacks.shift(stacks, dedent)?;
        }
        Ok(stacks != NOTHING && self.stacks.is_accepting(stacks)?)
    }

    /// Stacks behind a terminal, for a bound of what is still needed: without levels.
    pub(crate) fn stacks_after(&mut self, place: u32, terminal: u32) -> Result<u32, Error> {
        let newline = self.layout.as_ref().map(|layout| (layout.newline, layout.parts(place)));
        match newline {
            Some((newline, parts)) if terminal == newline => match parts.depth {
                0 => self.stacks.shift(parts.stacks, newline),
                _ => Ok(parts.stacks),
            },
            _ => {
                let next = self.after(place, terminal)?;
                Ok(self.stacks_of(next))
            }
        }
    }

    /// Forgets places from number `len` on.
    pub(crate) fn forget_places(&mut self, len: usize) {
        if let Some(layout) = &mut self.layout {
            layout.places.truncate(len);
        }
    }

    pub(crate) fn place_count(&self) -> usize {
        self.layout.as_ref().map_or(0, |layout| layout.places.len())
    }
}

/// Returns `true` if no line is under way at a depth of brackets.
pub(crate) fn is_closed(depth: u32) -> bool {
    depth == CLOSED || depth == JOINED
}

/// Returns `true` if the line at a depth of brackets is joined to the one before.
pub(crate) fn is_joined(depth: u32) -> bool {
    depth == JOINED
}

/// Returns `true` if a thread with this column has read the end of a line, and the text may end.
fn is_line(column: u32) -> bool {
    column != PLAIN && column != NONE && may_end_at(column)
}
