//! A Pike VM for pre-tokenizer patterns: threads in order of preference, run over character
//! classes.
//!
//! It follows Perl-like leftmost-first semantics, which pre-tokenizers use. A thread list says
//! which match is preferred, so the list alone decides a match one character at a time.

use formalm_core::CharSet;
use formalm_regex::PatternNode;

use crate::Error;

/// Maximum number of instructions of one program; a pattern that needs more is rejected. Chosen,
/// not measured.
const MAX_INSTRUCTIONS: usize = 4096;

#[derive(Clone, Debug)]
enum PikeInstruction {
    /// Reads a character of a set.
    Class(usize, u16),
    /// Forks into several threads, the preferred one first.
    Split(Vec<u16>),
    /// Lookahead: continues if the next character is in a set or, with `true`, if it is not or
    /// there is none.
    Ahead(usize, bool, u16),
    Match,
}

/// A compiled pattern. Character sets are numbered in the order of [`PikeProgram::sets`].
#[derive(Clone, Debug)]
pub(crate) struct PikeProgram {
    instructions: Vec<PikeInstruction>,
    sets: Vec<CharSet>,
    /// Per set and character class, whether the class is in the set.
    within: Vec<Vec<bool>>,
    start: u16,
}

/// The epsilon closure of a thread list: the threads that read a character, in order of preference,
/// and the number of threads preferred to a match that ends here.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadClosure {
    /// Program counters.
    pub(crate) threads: Vec<u16>,
    /// The number of threads that are preferred to the match, if there is a match.
    pub(crate) matched: Option<usize>,
}

impl PikeProgram {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// The pattern matches the empty string, or has an assertion other than a lookahead of one
    /// character.
    pub(crate) fn new(node: &PatternNode) -> Result<PikeProgram, Error> {
        let mut program = PikeProgram {
            instructions: Vec::new(),
            sets: Vec::new(),
            within: Vec::new(),
            start: 0,
        };
        if is_nullable(node) {
            return Err(refused("it matches the empty string"));
        }
        let end = program.push(PikeInstruction::Match)?;
        program.start = program.compile(node, end)?;
        Ok(program)
    }

    /// Returns the character sets that the program distinguishes.
    pub(crate) fn sets(&self) -> &[CharSet] {
        &self.sets
    }

    /// Sets the character classes, given one representative of each.
    pub(crate) fn use_classes(&mut self, representatives: &[char]) {
        let within = |set: &CharSet| representatives.iter().map(|&c| set.contains(c)).collect();
        self.within = self.sets.iter().map(within).collect();
    }

    fn push(&mut self, instruction: PikeInstruction) -> Result<u16, Error> {
        if self.instructions.len() == MAX_INSTRUCTIONS {
            return Err(refused(&format!("it needs more than {MAX_INSTRUCTIONS} instructions")));
        }
        self.instructions.push(instruction);
        Ok((self.instructions.len() - 1) as u16)
    }

    fn intern_set(&mut self, set: &CharSet) -> usize {
        let known = self.sets.iter().position(|known| known == set);
        known.unwrap_or_else(|| {
            self.sets.push(set.clone());
            self.sets.len() - 1
        })
    }

    /// Compiles `node` so that it continues at `next`. Returns its entry.
    fn compile(&mut self, node: &PatternNode, next: u16) -> Result<u16, Error> {
        match node {
            PatternNode::Empty => Ok(next),
            PatternNode::Class(set) => {
                let set = self.intern_set(set);
                self.push(PikeInstruction::Class(set, next))
            }
            PatternNode::Concat(nodes) => {
                nodes.iter().rev().try_fold(next, |next, node| self.compile(node, next))
            }
            PatternNode::Alternation(nodes) => {
                let branches: Result<Vec<u16>, Error> =
                    nodes.iter().map(|node| self.compile(node, next)).collect();
                let branches = branches?;
                self.push(PikeInstruction::Split(branches))
            }
            PatternNode::Group { node, .. } => self.compile(node, next),
            PatternNode::Repeat { node, min, max, lazy } => {
                self.repeat(node, (*min, *max), *lazy, (next, next))
            }
            PatternNode::Atomic(inner) => self.atomic(inner, next),
            PatternNode::Look { ahead: true, negative, node } => match plain(node) {
                PatternNode::Class(set) => {
                    let set = self.intern_set(set);
                    self.push(PikeInstruction::Ahead(set, *negative, next))
                }
                _ => Err(refused("it looks ahead more than one character")),
            },
            PatternNode::Look { ahead: false, .. } => Err(refused("it has a lookbehind")),
            PatternNode::TextStart | PatternNode::TextEnd | PatternNode::WordBoundary { .. } => {
                Err(refused("it has an anchor"))
            }
        }
    }

    /// Compiles a repetition that continues at `stop` if it could have repeated once more, and at
    /// `full` if it could not.
    fn repeat(
        &mut self,
        node: &PatternNode,
        (min, max): (u32, Option<u32>),
        lazy: bool,
        (stop, full): (u16, u16),
    ) -> Result<u16, Error> {
        if is_nullable(node) && max != Some(0) {
            return Err(refused("it repeats a pattern that matches the empty string"));
        }
        let order = |body: u16, stop: u16| if lazy { vec![stop, body] } else { vec![body, stop] };
        let mut at = full;
        match max {
            None => {
                at = self.push(PikeInstruction::Split(Vec::new()))?;
                let body = self.compile(node, at)?;
                self.instructions[usize::from(at)] = PikeInstruction::Split(order(body, stop));
            }
            Some(max) => {
                for _ in min..max {
                    let body = self.compile(node, at)?;
                    at = self.push(PikeInstruction::Split(order(body, stop)))?;
                }
            }
        }
        (0..min).try_fold(at, |next, _| self.compile(node, next))
    }

    /// Compiles an atomic or possessive group. A possessive repetition of single characters stops
    /// only before a character that it does not match, or at the end; anything longer would need
    /// more lookahead than one character and is rejected.
    fn atomic(&mut self, node: &PatternNode, next: u16) -> Result<u16, Error> {
        match plain(node) {
            PatternNode::Class(_) => self.compile(node, next),
            PatternNode::Repeat { node, min, max, lazy: false } => match plain(node) {
                PatternNode::Class(set) => {
                    let index = self.intern_set(set);
                    let stop = self.push(PikeInstruction::Ahead(index, true, next))?;
                    self.repeat(&PatternNode::Class(set.clone()), (*min, *max), false, (stop, next))
                }
                _ => Err(refused("it has a possessive quantifier on more than single characters")),
            },
            _ => Err(refused("it has a possessive quantifier on more than single characters")),
        }
    }

    /// Returns the number of instructions.
    pub(crate) fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Returns the entry of a match.
    pub(crate) fn start(&self) -> u16 {
        self.start
    }

    /// Follows threads to the instructions that read a character, where the next character has
    /// class `next` or the text ends.
    pub(crate) fn epsilon_closure(&self, threads: &[u16], next: Option<u16>) -> ThreadClosure {
        let mut closure = ThreadClosure::default();
        let mut seen = vec![false; self.instructions.len()];
        let mut stack: Vec<u16> = threads.iter().rev().copied().collect();
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut seen[usize::from(at)], true) {
                continue;
            }
            match &self.instructions[usize::from(at)] {
                PikeInstruction::Class(..) => closure.threads.push(at),
                PikeInstruction::Split(branches) => stack.extend(branches.iter().rev()),
                PikeInstruction::Ahead(set, negative, after) => {
                    if next.is_some_and(|class| self.has(*set, class)) != *negative {
                        stack.push(*after);
                    }
                }
                PikeInstruction::Match => {
                    closure.matched.get_or_insert(closure.threads.len());
                }
            }
        }
        closure
    }

    /// Returns the threads after a character, in order, each once.
    pub(crate) fn step(&self, threads: &[u16], class: u16) -> Vec<u16> {
        let mut after = Vec::with_capacity(threads.len());
        for &at in threads {
            if let PikeInstruction::Class(set, next) = self.instructions[usize::from(at)]
                && self.has(set, class)
                && !after.contains(&next)
            {
                after.push(next);
            }
        }
        after
    }

    fn has(&self, set: usize, class: u16) -> bool {
        self.within[set][usize::from(class)]
    }
}

/// Strips groups from a node.
fn plain(node: &PatternNode) -> &PatternNode {
    match node {
        PatternNode::Group { node, .. } => plain(node),
        _ => node,
    }
}

fn is_nullable(node: &PatternNode) -> bool {
    match node {
        PatternNode::Class(_) => false,
        PatternNode::Concat(nodes) => nodes.iter().all(is_nullable),
        PatternNode::Alternation(nodes) => nodes.iter().any(is_nullable),
        PatternNode::Repeat { node, min, .. } => *min == 0 || is_nullable(node),
        PatternNode::Group { node, .. } | PatternNode::Atomic(node) => is_nullable(node),
        _ => true,
    }
}

fn refused(reason: &str) -> Error {
    Error::new(format!("unsupported pre-tokenizer pattern: {reason}"))
}
