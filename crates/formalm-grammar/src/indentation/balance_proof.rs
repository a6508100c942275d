//! A proof that lines, levels and brackets are balanced in everything a grammar derives.
//!
//! The stacks know which terminals complete them. With indentation that does not suffice: each
//! level must end as often as it starts, and only at a line end. It suffices if every derivation
//! satisfies the following, which is checked here once per grammar:
//!
//! - levels and brackets are balanced,
//! - levels change directly after a line end only,
//! - no line end directly follows another, and none occurs inside brackets,
//! - the newline terminal can be extended over blank lines to any column.
//!
//! If a condition fails, completions are found by search instead.

use formalm_core::{Error, Interner};
use rustc_hash::FxHashSet;

use crate::NOTHING;
use crate::indentation::line_terminals::LineTerminals;
use crate::indentation::{BEFORE_LINE_BREAK, ColumnCounter, FIRST_COLUMN, is_column, joins_next};
use crate::lexer::terminal_rules::TerminalRules;
use crate::lexer::thread_sets::{DEAD, ThreadSets};
use crate::lexer::{Lexer, LineEnds};
use crate::limits::StepMeter;
use crate::normal_form::NormalizedGrammar;
use crate::normal_form::lowering::Production;

/// Lexer states of the newline terminal explored. Chosen, not measured.
const MAX_LEXER_STATES: usize = 1_000;

/// Whitespace bytes of an indentation.
const INDENT_BYTES: [u8; 3] = *b" \t\x0c";

/// The kinds of terminals that the conditions distinguish, as bits.
const NEWLINE: u8 = 1;
const INDENT: u8 = 2;
const DEDENT: u8 = 4;
const OTHER: u8 = 8;

/// The balance of a counter along derivations.
struct SymbolBalance {
    /// Net change per symbol, equal for all its derivations; `None` if unknown.
    net: Vec<Option<i64>>,
    /// Lowest value reached per symbol, relative to its start.
    low: Vec<i64>,
}

impl SymbolBalance {
    /// Computes the balance of a counter. Returns `None` if derivations of a symbol differ, or if
    /// the start symbol does not return to zero without going below it.
    fn new(normalized: &NormalizedGrammar, change: impl Fn(u32) -> i64) -> Option<SymbolBalance> {
        let size = normalized.symbols as usize;
        // An empty derivation changes nothing.
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

    /// Computes the lowest values; `None` if they decrease without bound.
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

/// Returns the maximum number of levels that completing anything takes; `None` if a condition
/// fails.
fn needed_levels(normalized: &NormalizedGrammar, lines: &LineTerminals) -> Option<u32> {
    let level = |one: u32| i64::from(one == lines.indent) - i64::from(one == lines.dedent);
    let levels = SymbolBalance::new(normalized, level)?;
    let brackets = SymbolBalance::new(normalized, |one| lines.bracket(one))?;
    let ends_or_indents = |one: u32| one == lines.newline || lines.is_level(one);
    (no_line_ends_in_brackets(normalized, &brackets, ends_or_indents)
        && adjacent_terminals_fit(normalized, lines))
    .then(|| max_needed_levels(normalized, &levels))
}

/// Returns `true` if no line ends inside brackets.
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

/// Returns `true` if all adjacent terminals satisfy the conditions.
fn adjacent_terminals_fit(normalized: &NormalizedGrammar, lines: &LineTerminals) -> bool {
    let kind = |one: u32| match one {
        one if one == lines.newline => NEWLINE,
        one if one == lines.indent => INDENT,
        one if one == lines.dedent => DEDENT,
        _ => OTHER,
    };
    let first = kinds_at_edge(normalized, kind, false);
    let last = kinds_at_edge(normalized, kind, true);
    // With Python's rules, an input starts like a line.
    let begins = first[normalized.start as usize];
    let may_begin = if lines.is_python() { OTHER } else { OTHER | NEWLINE };
    begins & !may_begin == 0
        && normalized.productions.iter().all(|one| {
            let pairs = (0..one.right.len()).flat_map(|at| {
                let after = &one.right[at + 1..];
                let near = after.iter().position(|&next| !normalized.nullable[next as usize]);
                let near = near.map_or(after.len(), |near| near + 1);
                after[..near].iter().map(move |&next| (one.right[at], next))
            });
            pairs
                .into_iter()
                .all(|(left, right)| may_follow(last[left as usize], first[right as usize]))
        })
}

/// Returns `true` if terminals of these kinds may be adjacent.
fn may_follow(before: u8, after: u8) -> bool {
    let indented = after & INDENT == 0 || before & !NEWLINE == 0;
    let dedented = after & DEDENT == 0 || before & !(NEWLINE | DEDENT) == 0;
    let ended = after & NEWLINE == 0 || before & !OTHER == 0;
    indented && dedented && ended
}

/// Returns the kinds of terminals that symbols can start or end with.
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

/// Returns the maximum number of levels that completing the rest of any production takes, each
/// along its flattest derivation.
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

/// Visits all productions until nothing changes, alternately forward and backward because
/// dependencies point both ways.
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

/// The proof for one grammar: what derivations say about lines, and what the lexer does.
pub(crate) struct LineBalanceProof<'a> {
    rules: &'a TerminalRules,
    lines: &'a LineTerminals,
    threads: &'a mut ThreadSets,
    meter: &'a mut StepMeter,
}

impl LineBalanceProof<'_> {
    /// Returns the maximum number of levels that completing anything takes, and what line ends
    /// leave. Returns `None` if a condition fails or if the grammar has no lines.
    pub(crate) fn prove(
        normalized: &NormalizedGrammar,
        lexer: &mut Lexer,
        meter: &mut StepMeter,
    ) -> Result<Option<(u32, LineEnds)>, Error> {
        let Some(lines) = &lexer.rules.lines else { return Ok(None) };
        let Some(needed_levels) = needed_levels(normalized, lines) else { return Ok(None) };
        let mut proof =
            LineBalanceProof { rules: &lexer.rules, lines, threads: &mut lexer.threads, meter };
        let line_end_threads = proof.threads_after_line_end()?;
        let all = proof.threads.start(0..proof.rules.terminals);
        let Some(threads) = line_end_threads else { return Ok(None) };
        let mut comments = Vec::new();
        for &terminal in &proof.rules.ignored {
            if proof.is_line_comment(terminal, threads)? {
                comments.push(terminal);
            }
        }
        Ok(Some((needed_levels, LineEnds { threads, comments, in_brackets: Some(all) })))
    }

    /// Returns `true` if an ignored terminal always extends to the line end. Then only a line break
    /// can follow it, no other terminal starts with one, and the newline terminal reads it too.
    fn is_line_comment(&mut self, terminal: u32, line_ends: u32) -> Result<bool, Error> {
        let newline = self.lines.newline;
        let others = (0..self.rules.terminals).filter(|&one| one != newline);
        let others = self.threads.start(others);
        let start = self.threads.start(std::iter::once(terminal));
        let (mut visited, mut at) = (vec![start], 0);
        // Threads already found to extend to the line end; most bytes lead to the same ones.
        let mut found: FxHashSet<u32> = FxHashSet::default();
        while at < visited.len() && at < MAX_LEXER_STATES {
            for byte in self.threads.representatives().to_vec() {
                let read = self.threads.step(visited[at], byte, self.meter)?;
                if at == 0 && read != DEAD {
                    let line = self.threads.step(line_ends, byte, self.meter)?;
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

    /// Returns `true` if only a line break ends what some threads read, and no other terminal
    /// starts with a byte that does.
    fn reads_to_line_end(&mut self, threads: u32, others: u32) -> Result<bool, Error> {
        if threads == NOTHING || self.threads.step(threads, b'\n', self.meter)? != DEAD {
            return Ok(false);
        }
        for byte in self.threads.representatives().to_vec() {
            let ended = self.threads.step(threads, byte, self.meter)? == DEAD;
            if ended && self.threads.step(others, byte, self.meter)? != DEAD {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the threads of the newline terminal at a possible line start. Returns `None` if it
    /// cannot be extended over blank lines to every column.
    fn threads_after_line_end(&mut self) -> Result<Option<u32>, Error> {
        let LineTerminals { newline, columns, .. } = *self.lines;
        // Only whether a column is counted matters here.
        let columns = ColumnCounter { widest: 0, ..columns };
        let step = |column: u32, byte: u8| match columns.step(column, byte) {
            column if is_column(column) || column == columns.step(FIRST_COLUMN, b' ') => {
                FIRST_COLUMN
            }
            other => other,
        };
        let start = (self.threads.start(std::iter::once(newline)), BEFORE_LINE_BREAK);
        let mut nodes = Interner::from_iter([start]);
        let mut steps: Vec<LexerEdge> = Vec::new();
        let mut at = 0;
        while at < nodes.len() && nodes.len() < MAX_LEXER_STATES {
            let (set, column) = nodes.as_slice()[at];
            for byte in self.threads.representatives().to_vec() {
                let read = self.threads.step(set, byte, self.meter)?;
                if read.next == NOTHING && read.matches == NOTHING {
                    continue;
                }
                let node = (read.next, step(column, byte));
                let to = nodes.intern(node) as usize;
                steps.push((at, byte, to, read.matches != NOTHING));
            }
            at += 1;
        }
        let nodes = nodes.into_entries();
        // A line break after a backslash starts no line.
        let begins = |step: &LexerEdge| step.1 == b'\n' && !joins_next(nodes[step.0].1);
        if at < nodes.len() || !continues_everywhere(&steps, nodes.len(), begins) {
            return Ok(None);
        }
        let mut line_end_threads = NOTHING;
        for &(from, _, to, matches) in &steps {
            if (matches || joins_next(nodes[from].1)) && is_column(nodes[to].1) {
                line_end_threads = self.threads.union(line_end_threads, nodes[to].0);
            }
        }
        Ok(Some(line_end_threads))
    }
}

/// An edge between lexer states: source, byte, target, and whether it matches.
type LexerEdge = (usize, u8, usize, bool);

/// Returns `true` if a line break can be reached from every state, and any amount of the same
/// whitespace after each, with every prefix matching. `is_break` selects the edges that start a
/// line.
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
    // Every state must reach a line break.
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
