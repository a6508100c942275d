//! Whether lines, levels and brackets fit together in all that a grammar derives.
//!
//! Stacks know which terminals complete them. With levels that is not enough: a level must end as
//! often as it begins, and only where a line ends. It is enough if that holds of whatever the rules
//! derive, which is looked at here, once: levels and brackets are balanced, levels change behind
//! line breaks only, no line ends directly behind another, and none in brackets. The end of a line
//! must be able to go on over blank lines to any column. Where something is not so, a search looks
//! for members.

use formalm_automata::Error;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::indentation::parser_state::IndentationState;
use crate::indentation::{BEFORE_LINE_BREAK, ColumnCounter, FIRST_COLUMN, is_column, joins_next};
use crate::interner::NOTHING;
use crate::lexer::DEAD;
use crate::normal_form::NormalizedGrammar;
use crate::normal_form::lowering::Production;
use crate::state::GrammarState;

/// Lexer states of the end of a line that are looked at.
const MAX_LEXER_STATES: usize = 1_000;

/// Bytes that an indentation is made of.
const INDENT_BYTES: [u8; 3] = *b" \t\x0c";

/// Kinds of terminals as levels see them.
const NEWLINE: u8 = 1;
const INDENT: u8 = 2;
const DEDENT: u8 = 4;
const OTHER: u8 = 8;

/// A count that rises and falls along what symbols derive.
struct SymbolBalance {
    /// Per symbol: by how much it changes; every derivation by as much.
    net: Vec<Option<i64>>,
    /// Per symbol: how low it comes.
    low: Vec<i64>,
}

impl SymbolBalance {
    /// The balance of a count; `None` if derivations differ, or if the start does not come back to
    /// nothing without going below it.
    fn new(normalized: &NormalizedGrammar, change: impl Fn(u32) -> i64) -> Option<SymbolBalance> {
        let size = normalized.symbols as usize;
        // What may be empty changes nothing.
        let empty = |&empty: &bool| empty.then_some(0);
        let net = normalized.nullable.iter().map(empty).collect();
        let mut balance = SymbolBalance { net, low: vec![0; size] };
        for terminal in 0..normalized.terminals {
            balance.net[terminal as usize] = Some(change(terminal));
            balance.low[terminal as usize] = change(terminal).min(0);
        }
        let (net, mut differs) = (&mut balance.net, false);
        until_fixpoint(normalized, |one| {
            let all = one.right.iter().map(|&symbol| net[symbol as usize]).sum::<Option<i64>>();
            let known = &mut net[one.left as usize];
            differs |= known.is_some() && all.is_some() && *known != all;
            let is_new = known.is_none() && all.is_some();
            *known = known.or(all);
            is_new
        });
        if differs {
            return None;
        }
        balance.compute_lows(normalized)?;
        let start = normalized.start as usize;
        (balance.net[start] == Some(0) && balance.low[start] == 0).then_some(balance)
    }

    /// Finds how low symbols come; `None` if there is no end of it.
    fn compute_lows(&mut self, normalized: &NormalizedGrammar) -> Option<()> {
        for _ in 0..=self.low.len() {
            let mut changed = false;
            for one in &normalized.productions {
                let (mut level, mut low) = (0, 0);
                for &symbol in &one.right {
                    low = low.min(level + self.low[symbol as usize]);
                    level += self.net[symbol as usize].unwrap_or(0);
                }
                changed |= low < self.low[one.left as usize];
                self.low[one.left as usize] = low.min(self.low[one.left as usize]);
            }
            if !changed {
                return Some(());
            }
        }
        None
    }

    fn of(&self, symbol: u32) -> i64 {
        self.net[symbol as usize].unwrap_or(0)
    }
}

/// Levels that completing anything takes at most; `None` if levels, lines and brackets need not
/// fit together.
fn needed_levels(normalized: &NormalizedGrammar, indentation: &IndentationState) -> Option<u32> {
    let level =
        |one: u32| i64::from(one == indentation.indent) - i64::from(one == indentation.dedent);
    let levels = SymbolBalance::new(normalized, level)?;
    let brackets = SymbolBalance::new(normalized, |one| indentation.bracket(one))?;
    let ends_or_indents = |one: u32| one == indentation.newline || indentation.is_level(one);
    (no_line_ends_in_brackets(normalized, &brackets, ends_or_indents)
        && adjacent_terminals_fit(normalized, indentation))
    .then(|| max_needed_levels(normalized, &levels))
}

/// Whether no line ends within brackets.
fn no_line_ends_in_brackets(
    normalized: &NormalizedGrammar,
    brackets: &SymbolBalance,
    ends_or_indents: impl Fn(u32) -> bool,
) -> bool {
    let mut inside = vec![false; normalized.symbols as usize];
    until_fixpoint(normalized, |one| {
        let mut changed = false;
        let mut depth = i64::from(inside[one.left as usize]);
        for &symbol in &one.right {
            changed |= depth > 0 && !std::mem::replace(&mut inside[symbol as usize], true);
            depth += brackets.of(symbol);
        }
        changed
    });
    (0..normalized.terminals).all(|one| !ends_or_indents(one) || !inside[one as usize])
}

/// Whether kinds of terminals follow each other as the ends of lines tell them.
fn adjacent_terminals_fit(normalized: &NormalizedGrammar, indentation: &IndentationState) -> bool {
    let kind = |one: u32| match one {
        one if one == indentation.newline => NEWLINE,
        one if one == indentation.indent => INDENT,
        one if one == indentation.dedent => DEDENT,
        _ => OTHER,
    };
    let first = kinds_at_edge(normalized, kind, false);
    let last = kinds_at_edge(normalized, kind, true);
    // A text begins as a line does, with Python's rules.
    let begins = first[normalized.start as usize];
    let may_begin = if indentation.is_python() { OTHER } else { OTHER | NEWLINE };
    begins & !may_begin == 0
        && normalized.productions.iter().all(|one| {
            let pairs = (0..one.right.len()).flat_map(|at| {
                let after = &one.right[at + 1..];
                let near = after.iter().position(|&next| !normalized.nullable[next as usize]);
                let near = near.map_or(after.len(), |near| near + 1);
                after[..near].iter().map(move |&next| (one.right[at], next))
            });
            pairs.into_iter().all(|(line_end_threads, right)| {
                may_follow(last[line_end_threads as usize], first[right as usize])
            })
        })
}

/// Whether terminals of these kinds may follow each other.
fn may_follow(before: u8, after: u8) -> bool {
    let indented = after & INDENT == 0 || before & !NEWLINE == 0;
    let dedented = after & DEDENT == 0 || before & !(NEWLINE | DEDENT) == 0;
    let ended = after & NEWLINE == 0 || before & !OTHER == 0;
    indented && dedented && ended
}

/// Kinds of terminals at one end of what symbols derive.
fn kinds_at_edge(
    normalized: &NormalizedGrammar,
    kind: impl Fn(u32) -> u8,
    is_last: bool,
) -> Vec<u8> {
    let mut kinds: Vec<u8> = (0..normalized.symbols)
        .map(|one| if one < normalized.terminals { kind(one) } else { 0 })
        .collect();
    until_fixpoint(normalized, |one| {
        let mut all = kinds[one.left as usize];
        let count = one.right.len();
        for at in 0..count {
            let symbol = one.right[if is_last { count - 1 - at } else { at }];
            all |= kinds[symbol as usize];
            if !normalized.nullable[symbol as usize] {
                break;
            }
        }
        std::mem::replace(&mut kinds[one.left as usize], all) != all
    });
    kinds
}

/// Levels that completing any part of a rule takes at most, each in the flattest way.
fn max_needed_levels(normalized: &NormalizedGrammar, levels: &SymbolBalance) -> u32 {
    const UNKNOWN: i64 = i64::MAX;
    let flat = |symbol: u32| {
        if symbol < normalized.terminals { levels.of(symbol).max(0) } else { UNKNOWN }
    };
    let mut peaks: Vec<i64> = (0..normalized.symbols).map(flat).collect();
    let peak = |right: &[u32], peaks: &[i64]| {
        let (mut level, mut peak) = (0i64, 0);
        for &symbol in right {
            if !normalized.nullable[symbol as usize] {
                peak = peak.max(peaks[symbol as usize].saturating_add(level.max(0)));
            }
            level += levels.of(symbol);
        }
        peak
    };
    until_fixpoint(normalized, |one| {
        let (found, known) = (peak(&one.right, &peaks), peaks[one.left as usize]);
        peaks[one.left as usize] = found.min(known);
        found < known
    });
    let rests = normalized
        .productions
        .iter()
        .flat_map(|one| (0..one.right.len()).map(|at| peak(&one.right[at..], &peaks)));
    rests.max().unwrap_or(0).clamp(0, i64::from(u32::MAX)) as u32
}

/// Looks at all productions again and again until that changes nothing: from the first to the last
/// and back, since what one is made of may be on either side.
fn until_fixpoint(normalized: &NormalizedGrammar, mut look: impl FnMut(&Production) -> bool) {
    let all = &normalized.productions;
    loop {
        if !all.iter().fold(false, |changed, one| look(one) | changed)
            || !all.iter().rev().fold(false, |changed, one| look(one) | changed)
        {
            return;
        }
    }
}

impl GrammarState {
    /// Notes what the certificate needs to know of lines.
    pub(crate) fn prove_line_balance(
        &mut self,
        normalized: &NormalizedGrammar,
    ) -> Result<(), Error> {
        let Some(needed_levels) = self
            .indentation
            .as_ref()
            .and_then(|indentation| needed_levels(normalized, indentation))
        else {
            return Ok(());
        };
        let line_end_threads = self.threads_after_line_end()?;
        let all = self.lexer.start(0..self.terminals);
        if let Some(indentation) = &mut self.indentation {
            (indentation.needed_levels, indentation.line_end_threads) =
                (line_end_threads.map(|_| needed_levels), line_end_threads.unwrap_or(NOTHING));
            indentation.in_brackets = indentation.needed_levels.map(|_| (indentation.newline, all));
        }
        for terminal in self.ignored.clone() {
            if self.is_line_comment(terminal)?
                && let Some(indentation) = &mut self.indentation
            {
                indentation.line_comments.push(terminal);
            }
        }
        Ok(())
    }

    /// Whether an ignored terminal reads to the end of the line: nothing else can follow it than
    /// line breaks, which begin no other terminal, and the end of a line reads it too.
    fn is_line_comment(&mut self, terminal: u32) -> Result<bool, Error> {
        let Some(IndentationState { newline, line_end_threads, needed_levels: Some(_), .. }) =
            self.indentation
        else {
            return Ok(false);
        };
        let others = (0..self.terminals).filter(|&one| one != newline);
        let others = self.lexer.start(others);
        let start = self.lexer.start(std::iter::once(terminal));
        let (mut visited, mut at) = (vec![start], 0);
        // Threads that were found to read to the end; those of most bytes are the same.
        let mut found: FxHashSet<u32> = FxHashSet::default();
        while at < visited.len() && at < MAX_LEXER_STATES {
            for byte in self.lexer.representatives().to_vec() {
                let read = self.lexer.step(visited[at], byte, &mut self.gss.meter)?;
                if at == 0 && read != DEAD {
                    let line = self.lexer.step(line_end_threads, byte, &mut self.gss.meter)?;
                    if line.matches == NOTHING {
                        return Ok(false);
                    }
                }
                if read.matches != NOTHING
                    && found.insert(read.next)
                    && !self.reads_to_line_end(read.next, others)?
                {
                    return Ok(false);
                }
                if read.next != NOTHING && !visited.contains(&read.next) {
                    visited.push(read.next);
                }
            }
            at += 1;
        }
        Ok(at == visited.len())
    }

    /// Whether a line break ends what some threads can go on with, and nothing that others begin
    /// with does.
    fn reads_to_line_end(&mut self, threads: u32, others: u32) -> Result<bool, Error> {
        if threads == NOTHING || self.lexer.step(threads, b'\n', &mut self.gss.meter)? != DEAD {
            return Ok(false);
        }
        for byte in self.lexer.representatives().to_vec() {
            let ended = self.lexer.step(threads, byte, &mut self.gss.meter)? == DEAD;
            if ended && self.lexer.step(others, byte, &mut self.gss.meter)? != DEAD {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Threads of the end of a line where one may begin; `None` if it does not go on over blank
    /// lines to any column, wherever it is.
    fn threads_after_line_end(&mut self) -> Result<Option<u32>, Error> {
        let Some(newline) = self.indentation.as_ref().map(|indentation| indentation.newline) else {
            return Ok(None);
        };
        let Some(columns) = self.lexer.columns else { return Ok(None) };
        // Only whether there is a column counts.
        let columns = ColumnCounter { widest: 0, ..columns };
        let step = |column: u32, byte: u8| match columns.step(column, byte) {
            column if is_column(column) || column == columns.step(FIRST_COLUMN, b' ') => {
                FIRST_COLUMN
            }
            other => other,
        };
        let start = (self.lexer.start(std::iter::once(newline)), BEFORE_LINE_BREAK);
        let mut nodes = vec![start];
        let mut numbers: FxHashMap<(u32, u32), usize> = FxHashMap::from_iter([(start, 0)]);
        let mut steps: Vec<LexerEdge> = Vec::new();
        let mut at = 0;
        while at < nodes.len() && nodes.len() < MAX_LEXER_STATES {
            let (set, column) = nodes[at];
            for byte in self.lexer.representatives().to_vec() {
                let read = self.lexer.step(set, byte, &mut self.gss.meter)?;
                if read.next == NOTHING && read.matches == NOTHING {
                    continue;
                }
                let node = (read.next, step(column, byte));
                let to = *numbers.entry(node).or_insert_with(|| {
                    nodes.push(node);
                    nodes.len() - 1
                });
                steps.push((at, byte, to, read.matches != NOTHING));
            }
            at += 1;
        }
        // A line break behind a backslash begins no line.
        let begins = |step: &LexerEdge| step.1 == b'\n' && !joins_next(nodes[step.0].1);
        if at < nodes.len() || !continues_everywhere(&steps, nodes.len(), begins) {
            return Ok(None);
        }
        let mut line_end_threads = NOTHING;
        for &(from, _, to, matches) in &steps {
            if (matches || joins_next(nodes[from].1)) && is_column(nodes[to].1) {
                line_end_threads = self.union_threads(line_end_threads, nodes[to].0);
            }
        }
        Ok(Some(line_end_threads))
    }
}

/// A step from a state by a byte to a state, with whether it matches.
type LexerEdge = (usize, u8, usize, bool);

/// Whether line breaks can be read from everywhere, and behind each the same blanks in any number,
/// all of which match. `is_break` tells which steps begin a line.
fn continues_everywhere(
    steps: &[LexerEdge],
    states: usize,
    is_break: impl Fn(&LexerEdge) -> bool,
) -> bool {
    let mut begins = vec![false; states];
    let mut stack: Vec<usize> =
        steps.iter().filter(|step| is_break(step)).map(|step| step.2).collect();
    if steps.iter().any(|step| is_break(step) && !step.3) {
        return false;
    }
    let mut whitespace: Option<Vec<u8>> = None;
    while let Some(at) = stack.pop() {
        if std::mem::replace(&mut begins[at], true) {
            continue;
        }
        let here = steps.iter().filter(|step| step.0 == at && INDENT_BYTES.contains(&step.1));
        let mut read: Vec<u8> = here.clone().map(|step| step.1).collect();
        read.sort_unstable();
        if here.clone().any(|step| !step.3) || !read.contains(&b' ') {
            return false;
        }
        if whitespace.get_or_insert_with(|| read.clone()) != &read {
            return false;
        }
        stack.extend(here.map(|step| step.2));
    }
    // Every state comes to a line break.
    let mut reaches_break = vec![false; states];
    let mut changed = true;
    while changed {
        changed = false;
        for step @ &(from, _, to, _) in steps {
            if !reaches_break[from] && (is_break(step) || reaches_break[to]) {
                (reaches_break[from], changed) = (true, true);
            }
        }
    }
    reaches_break.into_iter().all(|reaches_break| reaches_break)
}
