//! A pattern as instructions.

use std::ops::Range;
use std::sync::Arc;

use crate::charset::CharSet;
use crate::syntax::Dialect;
use crate::syntax::ast::{Node, Pattern};
use crate::syntax::match_width::width;

/// An instruction; the next one follows it unless it says otherwise.
#[derive(Debug)]
pub(super) enum MatchOp {
    /// Read one character of the class, the one before if `back`.
    Read { class: CharSet, back: bool },
    /// Go back so many characters.
    Back(u64),
    /// The start of the text.
    Start,
    /// The end of the text.
    End,
    /// A word boundary or the absence of one.
    Boundary { negative: bool, word: CharSet, empty_fails: bool },
    /// Go elsewhere.
    Jump(usize),
    /// Go on, or go elsewhere if that fails.
    Choose { other: usize, loops: Arc<[usize]> },
    /// One edge of a group is here.
    Save(usize),
    /// Begin a loop; its head follows.
    Enter(usize),
    /// Decide whether to iterate (the next instruction) or to leave.
    Head(usize),
    /// An iteration begins.
    Iterate(usize),
    /// An iteration ended; back to the head.
    Again(usize),
    /// What follows up to the `Close` before `after` is tried by itself.
    Open { kind: SubmatchKind, after: usize },
    /// The end of it.
    Close,
    /// The pattern ends.
    Match,
}

/// What is tried by itself, its first success being final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubmatchKind {
    /// Goes on from where it ended.
    Atomic,
    /// Goes on from where it began.
    Look,
    /// Goes on from where it began, if it failed.
    NegativeLook,
}

/// A repetition.
#[derive(Debug)]
pub(super) struct LoopInfo {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    pub(super) lazy: bool,
    /// Where its `Head` is.
    pub(super) head: usize,
    /// Where it goes on afterwards.
    pub(super) exit: usize,
    /// Whether an iteration may read nothing, so that it must be known where it began.
    pub(super) watched: bool,
    /// Whether all iterations from the last one that is required on are the same states: those of
    /// an unbounded repetition of the regex crate.
    pub(super) shared: bool,
    /// Whether the first decision to iterate is the same state as the later ones, too.
    pub(super) merged: bool,
    /// Groups (from 0) that an iteration forgets when it begins.
    pub(super) forgotten: Range<usize>,
    /// The loops that are running at its head, itself included, up to the nearest `Open`.
    pub(super) loops: Arc<[usize]>,
}

impl LoopInfo {
    /// The highest count that is told from all higher ones.
    pub(super) fn most(&self) -> u32 {
        self.max.unwrap_or(if self.shared { self.min.max(1) } else { self.min })
    }
}

/// The instructions of a pattern.
#[derive(Debug)]
pub(crate) struct MatchProgram {
    pub(super) ops: Vec<MatchOp>,
    pub(super) loops: Vec<LoopInfo>,
    pub(super) groups: usize,
    pub(super) dialect: Dialect,
}

impl MatchProgram {
    /// The program of a pattern; it is about as long as the pattern.
    pub(crate) fn new(pattern: &Pattern) -> MatchProgram {
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

    /// Appends `node`, which reads from right to left if `back`; `loops` are running around it.
    fn add(&mut self, node: &Node, back: bool, loops: &Arc<[usize]>) {
        match node {
            Node::Empty => {}
            Node::Class(class) => self.ops.push(MatchOp::Read { class: class.clone(), back }),
            Node::Concat(parts) if back => {
                parts.iter().rev().for_each(|part| self.add(part, back, loops));
            }
            Node::Concat(parts) => parts.iter().for_each(|part| self.add(part, back, loops)),
            Node::Alternation(parts) => self.add_alternation(parts, back, loops),
            Node::Repeat { node, min, max, lazy } => {
                if *max != Some(0) {
                    self.add_loop(node, (*min, *max, *lazy), back, loops);
                }
            }
            Node::Group { index, node } => {
                let slot = 2 * (*index as usize - 1);
                self.ops.push(MatchOp::Save(slot + usize::from(back)));
                self.add(node, back, loops);
                self.ops.push(MatchOp::Save(slot + usize::from(!back)));
            }
            Node::Atomic(node) => self.add_submatch(SubmatchKind::Atomic, node, back, 0),
            Node::Look { ahead, negative, node } => {
                let kind = if *negative { SubmatchKind::NegativeLook } else { SubmatchKind::Look };
                match self.dialect {
                    // Fixed width: Python goes back and reads forwards.
                    Dialect::Python | Dialect::Python314 if !*ahead => {
                        self.add_submatch(kind, node, false, width(node).0)
                    }
                    _ => self.add_submatch(kind, node, !*ahead, 0),
                }
            }
            Node::TextStart => self.ops.push(MatchOp::Start),
            Node::TextEnd => self.ops.push(MatchOp::End),
            Node::WordBoundary { negative, word, empty_fails } => {
                let (negative, empty_fails) = (*negative, *empty_fails);
                self.ops.push(MatchOp::Boundary { negative, word: word.clone(), empty_fails });
            }
        }
    }

    fn add_alternation(&mut self, parts: &[Node], back: bool, loops: &Arc<[usize]>) {
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
        node: &Node,
        (min, max, lazy): (u32, Option<u32>, bool),
        back: bool,
        loops: &Arc<[usize]>,
    ) {
        let number = self.loops.len();
        let inside: Arc<[usize]> = loops.iter().copied().chain([number]).collect();
        let forgotten = match self.dialect {
            Dialect::Python
            | Dialect::Python314
            | Dialect::Oniguruma
            | Dialect::Fancy
            | Dialect::Rust => 0..0,
            Dialect::Ecma => groups_of(node),
        };
        // The regex crate tells states apart, not iterations, see `Search::choose`.
        let watched = self.dialect != Dialect::Rust && width(node).0 == 0;
        let loops = Arc::clone(&inside);
        let head = self.ops.len() + 1;
        let shared = self.dialect == Dialect::Rust && max.is_none();
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

    /// Appends something that is tried by itself, after going back `width` characters.
    fn add_submatch(&mut self, kind: SubmatchKind, node: &Node, back: bool, width: u64) {
        let open = self.ops.len();
        self.ops.push(MatchOp::Jump(0));
        if width > 0 {
            self.ops.push(MatchOp::Back(width));
        }
        // Loops outside do not matter to it.
        self.add(node, back, &Arc::default());
        self.ops.push(MatchOp::Close);
        self.ops[open] = MatchOp::Open { kind, after: self.ops.len() };
    }
}

/// The groups inside a node, counted from 0; they are numbered without a gap.
fn groups_of(node: &Node) -> Range<usize> {
    let join = |a: Range<usize>, b: Range<usize>| match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.start.min(b.start)..a.end.max(b.end),
    };
    match node {
        Node::Group { index, node } => {
            let index = *index as usize;
            join(index - 1..index, groups_of(node))
        }
        Node::Concat(parts) | Node::Alternation(parts) => {
            parts.iter().map(groups_of).fold(0..0, join)
        }
        Node::Repeat { node, .. } | Node::Atomic(node) | Node::Look { node, .. } => groups_of(node),
        Node::Empty
        | Node::Class(_)
        | Node::TextStart
        | Node::TextEnd
        | Node::WordBoundary { .. } => 0..0,
    }
}
