//! Compilation of a pattern to the instructions of the backtracking matcher.

use std::ops::Range;
use std::sync::Arc;

use formalm_core::CharSet;

use crate::PatternDialect;
use crate::ast::{Pattern, PatternNode};
use crate::match_width::width;

/// An instruction; the next one follows it unless stated otherwise.
#[derive(Debug)]
pub(super) enum MatchOp {
    /// Read one character of the class; the previous one if `back`.
    Read { class: CharSet, back: bool },
    /// Go back this many characters.
    Back(u64),
    /// Assert the start of the string.
    Start,
    /// Assert the end of the string.
    End,
    /// Assert a word boundary, or its absence.
    Boundary { negative: bool, word: CharSet, empty_fails: bool },
    /// Continue elsewhere.
    Jump(usize),
    /// Continue with the next instruction, or elsewhere if that fails.
    Choose { other: usize, loops: Arc<[usize]> },
    /// Save the position as one edge of a group.
    Save(usize),
    /// Begin a loop; its head follows.
    Enter(usize),
    /// Decide whether to iterate (the next instruction) or to leave.
    Head(usize),
    /// Begin an iteration.
    Iterate(usize),
    /// End an iteration and return to the head.
    Again(usize),
    /// Match the instructions up to the `Close` before `after` as a submatch.
    Open { kind: SubmatchKind, after: usize },
    /// End the submatch.
    Close,
    /// End the pattern.
    Match,
}

/// A submatch, whose first success is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubmatchKind {
    /// Continues from where it ended.
    Atomic,
    /// Continues from where it began.
    Look,
    /// Continues from where it began, if it failed.
    NegativeLook,
}

/// A repetition.
#[derive(Debug)]
pub(super) struct LoopInfo {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    pub(super) lazy: bool,
    /// The index of its `Head`.
    pub(super) head: usize,
    /// The index of the instruction after the loop.
    pub(super) exit: usize,
    /// `true` if an iteration may read nothing, so that its start must be recorded.
    pub(super) watched: bool,
    /// `true` if all iterations from the last required one on are the same states, as in an
    /// unbounded repetition of the regex crate.
    pub(super) shared: bool,
    /// `true` if the first decision to iterate is the same state as the later ones, too.
    pub(super) merged: bool,
    /// Groups (from 0) that an iteration clears when it begins.
    pub(super) forgotten: Range<usize>,
    /// The loops that are active at its head, itself included, up to the nearest `Open`.
    pub(super) loops: Arc<[usize]>,
}

impl LoopInfo {
    /// Returns the highest count that is distinguished from all higher ones.
    pub(super) fn max_distinct_count(&self) -> u32 {
        self.max.unwrap_or(if self.shared { self.min.max(1) } else { self.min })
    }
}

/// The instructions of a pattern.
#[derive(Debug)]
pub struct MatchProgram {
    pub(super) ops: Vec<MatchOp>,
    pub(super) loops: Vec<LoopInfo>,
    pub(super) groups: usize,
    pub(super) dialect: PatternDialect,
}

impl MatchProgram {
    /// Compiles a pattern; the program is about as long as the pattern.
    pub fn new(pattern: &Pattern) -> MatchProgram {
        let mut program = MatchProgram {
            ops: Vec::new(),
            loops: Vec::new(),
            groups: pattern.groups.len(),
            dialect: pattern.dialect,
        };
        program.add(&pattern.root, false, &Arc::default());
        program.ops.push(MatchOp::Match);
        program
    }

    /// Appends `node`, which reads from right to left if `back`, inside the active `loops`.
    fn add(&mut self, node: &PatternNode, back: bool, loops: &Arc<[usize]>) {
        match node {
            PatternNode::Empty => {}
            PatternNode::Class(class) => {
                self.ops.push(MatchOp::Read { class: class.clone(), back })
            }
            PatternNode::Concat(parts) if back => {
                parts.iter().rev().for_each(|part| self.add(part, back, loops));
            }
            PatternNode::Concat(parts) => parts.iter().for_each(|part| self.add(part, back, loops)),
            PatternNode::Alternation(parts) => self.add_alternation(parts, back, loops),
            PatternNode::Repeat { node, min, max, lazy } => {
                if *max != Some(0) {
                    self.add_loop(node, (*min, *max, *lazy), back, loops);
                }
            }
            PatternNode::Group { index, node } => {
                let slot = 2 * (*index as usize - 1);
                self.ops.push(MatchOp::Save(slot + usize::from(back)));
                self.add(node, back, loops);
                self.ops.push(MatchOp::Save(slot + usize::from(!back)));
            }
            PatternNode::Atomic(node) => self.add_submatch(SubmatchKind::Atomic, node, back, 0),
            PatternNode::Look { ahead, negative, node } => {
                let kind = if *negative { SubmatchKind::NegativeLook } else { SubmatchKind::Look };
                match self.dialect {
                    // Fixed width: Python goes back and reads forward.
                    PatternDialect::Python | PatternDialect::Python314 if !*ahead => {
                        self.add_submatch(kind, node, false, width(node).0)
                    }
                    _ => self.add_submatch(kind, node, !*ahead, 0),
                }
            }
            PatternNode::TextStart => self.ops.push(MatchOp::Start),
            PatternNode::TextEnd => self.ops.push(MatchOp::End),
            PatternNode::WordBoundary { negative, word, empty_fails } => {
                let (negative, empty_fails) = (*negative, *empty_fails);
                self.ops.push(MatchOp::Boundary { negative, word: word.clone(), empty_fails });
            }
        }
    }

    fn add_alternation(&mut self, parts: &[PatternNode], back: bool, loops: &Arc<[usize]>) {
        let Some((last, others)) = parts.split_last() else {
            return self.ops.push(MatchOp::Read { class: CharSet::empty(), back });
        };
        let mut jumps = Vec::with_capacity(others.len());
        for part in others {
            let choice = self.ops.len();
            self.ops.push(MatchOp::Jump(0));
            self.add(part, back, loops);
            jumps.push(self.ops.len());
            self.ops.push(MatchOp::Jump(0));
            self.ops[choice] = MatchOp::Choose { other: self.ops.len(), loops: Arc::clone(loops) };
        }
        self.add(last, back, loops);
        let end = self.ops.len();
        jumps.into_iter().for_each(|jump| self.ops[jump] = MatchOp::Jump(end));
    }

    fn add_loop(
        &mut self,
        node: &PatternNode,
        (min, max, lazy): (u32, Option<u32>, bool),
        back: bool,
        loops: &Arc<[usize]>,
    ) {
        let number = self.loops.len();
        let inside: Arc<[usize]> = loops.iter().copied().chain([number]).collect();
        let forgotten = match self.dialect {
            PatternDialect::Python
            | PatternDialect::Python314
            | PatternDialect::Oniguruma
            | PatternDialect::Fancy
            | PatternDialect::Rust => 0..0,
            PatternDialect::Ecma => groups_of(node),
        };
        // The regex crate distinguishes states, not iterations, see `BacktrackSearch::choose`.
        let watched = self.dialect != PatternDialect::Rust && width(node).0 == 0;
        let loops = Arc::clone(&inside);
        let head = self.ops.len() + 1;
        let shared = self.dialect == PatternDialect::Rust && max.is_none();
        // The regex crate reads `x*` as `(x+)?` where `x` may be empty.
        let merged = shared && min == 0 && width(node).0 > 0;
        let exit = 0;
        self.loops.push(LoopInfo {
            min,
            max,
            lazy,
            head,
            exit,
            watched,
            shared,
            merged,
            forgotten,
            loops,
        });
        self.ops.extend([MatchOp::Enter(number), MatchOp::Head(number), MatchOp::Iterate(number)]);
        self.add(node, back, &inside);
        self.ops.push(MatchOp::Again(number));
        self.loops[number].exit = self.ops.len();
    }

    /// Appends a submatch, after going back `width` characters.
    fn add_submatch(&mut self, kind: SubmatchKind, node: &PatternNode, back: bool, width: u64) {
        let open = self.ops.len();
        self.ops.push(MatchOp::Jump(0));
        if width > 0 {
            self.ops.push(MatchOp::Back(width));
        }
        // Outer loops do not matter inside.
        self.add(node, back, &Arc::default());
        self.ops.push(MatchOp::Close);
        self.ops[open] = MatchOp::Open { kind, after: self.ops.len() };
    }
}

/// Returns the groups inside a node, counted from 0; they are numbered without a gap.
fn groups_of(node: &PatternNode) -> Range<usize> {
    let join = |a: Range<usize>, b: Range<usize>| match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.start.min(b.start)..a.end.max(b.end),
    };
    match node {
        PatternNode::Group { index, node } => {
            let index = *index as usize;
            join(index - 1..index, groups_of(node))
        }
        PatternNode::Concat(parts) | PatternNode::Alternation(parts) => {
            parts.iter().map(groups_of).fold(0..0, join)
        }
        PatternNode::Repeat { node, .. }
        | PatternNode::Atomic(node)
        | PatternNode::Look { node, .. } => groups_of(node),
        PatternNode::Empty
        | PatternNode::Class(_)
        | PatternNode::TextStart
        | PatternNode::TextEnd
        | PatternNode::WordBoundary { .. } => 0..0,
    }
}
