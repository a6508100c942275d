//! The backtracking search: depth first in order of preference, on an explicit stack, with memoized
//! failures.

use formalm_core::{BudgetExhausted, Error, Resource, StepMeter, check_limit};
use rustc_hash::FxHashSet;

use super::program::{LoopInfo, MatchOp, MatchProgram, SubmatchKind};
use crate::PatternDialect;

/// Maximum memory of one search, in bytes. Chosen, not measured.
const MEMORY_BYTES: usize = 256 << 20;

/// Steps between two memory checks.
const MEMORY_CHECK: u64 = 1024;

/// The value of a position that is not set.
const UNSET: u32 = u32::MAX;

/// The span of a group, if it participated.
pub(crate) type GroupSpan = Option<(usize, usize)>;

/// Returns the spans of the groups, in bytes, if the program matches the whole string, else `None`.
///
/// # Errors
///
/// [`Error::Limit`] when `work` is exhausted, or when the search needs too much memory.
pub fn group_spans(
    program: &MatchProgram,
    text: &str,
    work: &mut StepMeter,
) -> Result<Option<Vec<GroupSpan>>, Error> {
    check_memory(text.len() * size_of::<usize>())?;
    let mut search = BacktrackSearch::new(program, text.chars().collect());
    if !search.run(work)? {
        return Ok(None);
    }
    let mut offsets: Vec<usize> = text.char_indices().map(|(offset, _)| offset).collect();
    offsets.push(text.len());
    let groups = search.registers[..2 * program.groups].chunks_exact(2);
    Ok(Some(groups.map(|span| group_span(span, &offsets)).collect()))
}

fn group_span(span: &[u32], offsets: &[usize]) -> GroupSpan {
    match *span {
        [start, end] if start != UNSET && end != UNSET => {
            Some((offsets[start as usize], offsets[end as usize]))
        }
        _ => None,
    }
}

/// A search state known to fail: an instruction, a position, and the state of the active loops.
type FailureKey = (u32, u32, u64);

/// A backtracking frame; the last one is resumed first.
enum BacktrackFrame {
    /// Try the other path; `key` fails if that one fails too.
    Choice { other: usize, at: u32, trail: usize, key: Option<FailureKey> },
    /// Both paths have failed.
    Failed(FailureKey),
    /// All paths through a submatch have failed.
    Opened { open: usize, at: u32, trail: usize },
}

struct BacktrackSearch<'a> {
    program: &'a MatchProgram,
    text: Vec<char>,
    at: u32,
    /// Two registers per group: its edges. Then two per loop: the number of iterations, and where
    /// the current iteration began if its emptiness matters.
    registers: Vec<u32>,
    /// Registers and their previous values, for undoing.
    trail: Vec<(u32, u32)>,
    frames: Vec<BacktrackFrame>,
    /// The indices of `Opened` frames.
    opened: Vec<usize>,
    failed: FxHashSet<FailureKey>,
}

impl<'a> BacktrackSearch<'a> {
    fn new(program: &'a MatchProgram, text: Vec<char>) -> BacktrackSearch<'a> {
        BacktrackSearch {
            program,
            text,
            at: 0,
            registers: vec![UNSET; 2 * (program.groups + program.loops.len())],
            trail: Vec::new(),
            frames: Vec::new(),
            opened: Vec::new(),
            failed: FxHashSet::default(),
        }
    }

    /// Returns `true` if the program matches the whole string.
    fn run(&mut self, work: &mut StepMeter) -> Result<bool, Error> {
        let mut next = Some(0);
        loop {
            let Some(op) = next.or_else(|| self.back()) else { return Ok(false) };
            work.step().map_err(|_| out_of_steps(work))?;
            if work.steps.is_multiple_of(MEMORY_CHECK) {
                self.check_memory()?;
            }
            if matches!(self.program.ops[op], MatchOp::Match) && self.at as usize == self.text.len()
            {
                return Ok(true);
            }
            next = self.step(op);
        }
    }

    /// Executes `op` and returns the next instruction, or `None` if it failed.
    fn step(&mut self, op: usize) -> Option<usize> {
        let program = self.program;
        match &program.ops[op] {
            MatchOp::Read { class, back: false } => {
                let read = self.text.get(self.at as usize).is_some_and(|&c| class.contains(c));
                self.at += u32::from(read);
                read.then_some(op + 1)
            }
            MatchOp::Read { class, back: true } => {
                let read = self.before().is_some_and(|c| class.contains(c));
                self.at -= u32::from(read);
                read.then_some(op + 1)
            }
            MatchOp::Back(width) => {
                let at = u64::from(self.at).checked_sub(*width)?;
                self.at = at as u32;
                Some(op + 1)
            }
            MatchOp::Start => (self.at == 0).then_some(op + 1),
            MatchOp::End => (self.at as usize == self.text.len()).then_some(op + 1),
            MatchOp::Boundary { negative, word, empty_fails } => {
                let is_word = |c: Option<char>| c.is_some_and(|c| word.contains(c));
                let after = self.text.get(self.at as usize).copied();
                let found = is_word(self.before()) != is_word(after);
                let fails = *negative && *empty_fails && self.text.is_empty();
                (found != *negative && !fails).then_some(op + 1)
            }
            MatchOp::Jump(to) => Some(*to),
            MatchOp::Choose { other, loops } => self.choose(op, op + 1, *other, loops),
            MatchOp::Save(slot) => {
                self.set(*slot, self.at);
                Some(op + 1)
            }
            MatchOp::Enter(number) => {
                self.set(self.count(*number), 0);
                self.set(self.began(*number), UNSET);
                Some(op + 1)
            }
            MatchOp::Head(number) => self.head(op, *number, &program.loops[*number]),
            MatchOp::Iterate(number) => self.iterate(op, *number, &program.loops[*number]),
            MatchOp::Again(number) => self.again(*number, &program.loops[*number]),
            MatchOp::Open { .. } => {
                self.opened.push(self.frames.len());
                self.frames.push(BacktrackFrame::Opened {
                    open: op,
                    at: self.at,
                    trail: self.trail.len(),
                });
                Some(op + 1)
            }
            MatchOp::Close => self.close(),
            MatchOp::Match => None,
        }
    }

    fn before(&self) -> Option<char> {
        Some(self.text[self.at.checked_sub(1)? as usize])
    }

    /// Tries `first`, and later `other`, unless both are known to fail.
    fn choose(&mut self, op: usize, first: usize, other: usize, loops: &[usize]) -> Option<usize> {
        let mut key = self.loops_state(op, loops).map(|state| (op as u32, self.at, state));
        if self.program.dialect == PatternDialect::Rust {
            // That engine simulates an automaton. Of two paths in one state at one position only
            // the first is followed. The second may be an iteration that read nothing, while the
            // first is still being tried.
            if key.take().is_some_and(|key| !self.failed.insert(key)) {
                return None;
            }
        } else if key.is_some_and(|key| self.failed.contains(&key)) {
            return None;
        }
        let (at, trail) = (self.at, self.trail.len());
        self.frames.push(BacktrackFrame::Choice { other, at, trail, key });
        Some(first)
    }

    /// Returns the state of the active loops that the continuation of `op` can depend on, as one
    /// number. Returns `None` if it does not fit; nothing is remembered then.
    fn loops_state(&self, op: usize, loops: &[usize]) -> Option<u64> {
        let mut state = 0u64;
        for &number in loops {
            let one = &self.program.loops[number];
            let (mut count, began) = (self.registers[self.count(number)], self.began(number));
            if one.shared && (one.head != op || one.merged) {
                count = count.min(one.max_distinct_count() - 1);
            }
            state = state
                .checked_mul(u64::from(one.max_distinct_count()) + 1)?
                .checked_add(count.into())?;
            if one.watched {
                let is_empty = self.registers[began] == self.at;
                state = state.checked_mul(2)?.checked_add(is_empty.into())?;
            }
        }
        Some(state)
    }

    fn head(&mut self, op: usize, number: usize, one: &LoopInfo) -> Option<usize> {
        let count = self.registers[self.count(number)];
        if count < one.min {
            return Some(op + 1);
        }
        // Python examines the previous iteration; ECMAScript has already refused it if it was
        // empty.
        let was_empty = one.watched && self.registers[self.began(number)] == self.at;
        if one.max.is_some_and(|max| count >= max) || was_empty {
            return Some(one.exit);
        }
        let (first, other) = if one.lazy { (one.exit, op + 1) } else { (op + 1, one.exit) };
        self.choose(op, first, other, &one.loops)
    }

    fn iterate(&mut self, op: usize, number: usize, one: &LoopInfo) -> Option<usize> {
        if one.watched && self.registers[self.count(number)] >= one.min {
            self.set(self.began(number), self.at);
        }
        for slot in 2 * one.forgotten.start..2 * one.forgotten.end {
            self.set(slot, UNSET);
        }
        Some(op + 1)
    }

    fn again(&mut self, number: usize, one: &LoopInfo) -> Option<usize> {
        let is_empty = one.watched && self.registers[self.began(number)] == self.at;
        if is_empty && self.program.dialect == PatternDialect::Ecma {
            return None;
        }
        let count = self.registers[self.count(number)];
        self.set(self.count(number), (count + 1).min(one.max_distinct_count()));
        Some(one.head)
    }

    /// Ends the innermost submatch at its first success: no other path will be tried.
    fn close(&mut self) -> Option<usize> {
        let index = self.opened.pop()?;
        let BacktrackFrame::Opened { open, at, trail } = self.frames[index] else { return None };
        self.frames.truncate(index);
        let MatchOp::Open { kind, after } = self.program.ops[open] else { return None };
        match kind {
            SubmatchKind::Atomic => {}
            SubmatchKind::Look => self.at = at,
            SubmatchKind::NegativeLook => {
                self.undo(trail);
                return None;
            }
        }
        Some(after)
    }

    /// Backtracks; returns where the next path continues, if there is one.
    fn back(&mut self) -> Option<usize> {
        loop {
            match self.frames.pop()? {
                BacktrackFrame::Choice { other, at, trail, key } => {
                    self.undo(trail);
                    self.at = at;
                    self.frames.extend(key.map(BacktrackFrame::Failed));
                    return Some(other);
                }
                BacktrackFrame::Failed(key) => {
                    self.failed.insert(key);
                }
                BacktrackFrame::Opened { open, at, trail } => {
                    self.opened.pop();
                    self.undo(trail);
                    if let MatchOp::Open { kind: SubmatchKind::NegativeLook, after } =
                        self.program.ops[open]
                    {
                        self.at = at;
                        return Some(after);
                    }
                }
            }
        }
    }

    fn count(&self, number: usize) -> usize {
        2 * (self.program.groups + number)
    }

    fn began(&self, number: usize) -> usize {
        self.count(number) + 1
    }

    fn set(&mut self, register: usize, value: u32) {
        let old = std::mem::replace(&mut self.registers[register], value);
        if old != value {
            self.trail.push((register as u32, old));
        }
    }

    fn undo(&mut self, length: usize) {
        while self.trail.len() > length {
            if let Some((register, old)) = self.trail.pop() {
                self.registers[register as usize] = old;
            }
        }
    }

    fn check_memory(&self) -> Result<(), Error> {
        let needed = self.frames.capacity() * size_of::<BacktrackFrame>()
            + self.trail.capacity() * size_of::<(u32, u32)>()
            // The hash table stores one byte per key in addition.
            + self.failed.capacity() * (size_of::<FailureKey>() + 1);
        check_memory(needed)
    }
}

/// Returns the error of an exhausted step limit.
pub fn out_of_steps(work: &StepMeter) -> Error {
    work.limit_error(BudgetExhausted)
}

/// Fails if a search needs more memory than allowed, in bytes.
pub fn check_memory(needed: usize) -> Result<(), Error> {
    check_limit(Resource::Bytes, needed as u64, MEMORY_BYTES as u64)
}
