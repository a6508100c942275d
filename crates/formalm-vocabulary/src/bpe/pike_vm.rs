//! Patterns as programs of threads in order of preference, run over classes of characters.

use formalm_automata::CharSet;
use formalm_automata::syntax::Node;

use crate::Error;

/// Instructions of one program; a pattern that needs more is refused.
const MOST_INSTRUCTIONS: usize = 4096;

#[derive(Clone, Debug)]
enum Instruction {
    /// Reads a character of a set.
    Class(usize, u16),
    /// Goes on in several ways, the preferred one first.
    Split(Vec<u16>),
    /// Goes on if the next character is in a set, or, `true`, if it is not or there is none.
    Ahead(usize, bool, u16),
    Match,
}

/// A pattern's program. Sets of characters are numbered in the order of [`Program::sets`].
#[derive(Clone, Debug)]
pub(crate) struct Program {
    instructions: Vec<Instruction>,
    sets: Vec<CharSet>,
    /// Per set and class of characters whether the class is in the set.
    within: Vec<Vec<bool>>,
    start: u16,
}

/// Threads that read a character, in order of preference, and how many of them are preferred to a
/// match that ends before it, if there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closure {
    /// Places of the program.
    pub(crate) threads: Vec<u16>,
    /// How many threads a match is worse than.
    pub(crate) matched: Option<usize>,
}

impl Program {
    /// The program of a pattern.
    ///
    /// # Errors
    ///
    /// The pattern matches the empty text, or looks at its surroundings in other ways than at the
    /// next character.
    pub(crate) fn new(node: &Node) -> Result<Program, Error> {
        let mut program =
            Program { instructions: Vec::new(), sets: Vec::new(), within: Vec::new(), start: 0 };
        if is_nullable(node) {
            return Err(refused("it matches the empty text"));
        }
        let end = program.push(Instruction::Match)?;
        program.start = program.compile(node, end)?;
        Ok(program)
    }

    /// The sets of characters it tells apart.
    pub(crate) fn sets(&self) -> &[CharSet] {
        &self.sets
    }

    /// Takes note of classes of characters, given one character of each.
    pub(crate) fn use_classes(&mut self, representatives: &[char]) {
        let within = |set: &CharSet| representatives.iter().map(|&c| set.contains(c)).collect();
        self.within = self.sets.iter().map(within).collect();
    }

    fn push(&mut self, instruction: Instruction) -> Result<u16, Error> {
        if self.instructions.len() == MOST_INSTRUCTIONS {
            return Err(refused(&format!("it needs more than {MOST_INSTRUCTIONS} instructions")));
        }
        self.instructions.push(instruction);
        Ok((self.instructions.len() - 1) as u16)
    }

    fn set(&mut self, set: &CharSet) -> usize {
        let known = self.sets.iter().position(|known| known == set);
        known.unwrap_or_else(|| {
            self.sets.push(set.clone());
            self.sets.len() - 1
        })
    }

    /// Where to begin in order to match `node` and go on at `next`.
    fn compile(&mut self, node: &Node, next: u16) -> Result<u16, Error> {
        match node {
            Node::Empty => Ok(next),
            Node::Class(set) => {
                let set = self.set(set);
                self.push(Instruction::Class(set, next))
            }
            Node::Concat(nodes) => {
                nodes.iter().rev().try_fold(next, |next, node| self.compile(node, next))
            }
            Node::Alternation(nodes) => {
                let ways: Result<Vec<u16>, Error> =
                    nodes.iter().map(|node| self.compile(node, next)).collect();
                let ways = ways?;
                self.push(Instruction::Split(ways))
            }
            Node::Group { node, .. } => self.compile(node, next),
            Node::Repeat { node, min, max, lazy } => {
                self.repeat(node, (*min, *max), *lazy, (next, next))
            }
            Node::Atomic(inner) => self.atomic(inner, next),
            Node::Look { ahead: true, negative, node } => match plain(node) {
                Node::Class(set) => {
                    let set = self.set(set);
                    self.push(Instruction::Ahead(set, *negative, next))
                }
                _ => Err(refused("it looks ahead further than one character")),
            },
            Node::Look { ahead: false, .. } => Err(refused("it looks behind")),
            Node::TextStart | Node::TextEnd | Node::WordBoundary { .. } => {
                Err(refused("it has an anchor"))
            }
        }
    }

    /// A repetition that goes on at the first of `next` when it could have gone on, and at the
    /// second when it could not.
    fn repeat(
        &mut self,
        node: &Node,
        (min, max): (u32, Option<u32>),
        lazy: bool,
        (stop, full): (u16, u16),
    ) -> Result<u16, Error> {
        if is_nullable(node) && max != Some(0) {
            return Err(refused("it repeats what matches the empty text"));
        }
        let order = |body: u16, stop: u16| if lazy { vec![stop, body] } else { vec![body, stop] };
        let mut at = full;
        match max {
            None => {
                at = self.push(Instruction::Split(Vec::new()))?;
                let body = self.compile(node, at)?;
                self.instructions[usize::from(at)] = Instruction::Split(order(body, stop));
            }
            Some(max) => {
                for _ in min..max {
                    let body = self.compile(node, at)?;
                    at = self.push(Instruction::Split(order(body, stop)))?;
                }
            }
        }
        (0..min).try_fold(at, |next, _| self.compile(node, next))
    }

    /// A repetition of single characters that never gives one back stops only in front of another
    /// one or of none; of anything else we would have to know more than the next character.
    fn atomic(&mut self, node: &Node, next: u16) -> Result<u16, Error> {
        match plain(node) {
            Node::Class(_) => self.compile(node, next),
            Node::Repeat { node, min, max, lazy: false } => match plain(node) {
                Node::Class(set) => {
                    let index = self.set(set);
                    let stop = self.push(Instruction::Ahead(index, true, next))?;
                    self.repeat(&Node::Class(set.clone()), (*min, *max), false, (stop, next))
                }
                _ => Err(refused("it is possessive about more than single characters")),
            },
            _ => Err(refused("it is possessive about more than single characters")),
        }
    }

    /// The number of instructions.
    pub(crate) fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Where a match begins.
    pub(crate) fn start(&self) -> u16 {
        self.start
    }

    /// Follows threads to where they read a character, in front of a character of class `next` or
    /// the end of the text.
    pub(crate) fn close(&self, threads: &[u16], next: Option<u16>) -> Closure {
        let mut closure = Closure::default();
        let mut seen = vec![false; self.instructions.len()];
        let mut stack: Vec<u16> = threads.iter().rev().copied().collect();
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut seen[usize::from(at)], true) {
                continue;
            }
            match &self.instructions[usize::from(at)] {
                Instruction::Class(..) => closure.threads.push(at),
                Instruction::Split(ways) => stack.extend(ways.iter().rev()),
                Instruction::Ahead(set, negative, after) => {
                    if next.is_some_and(|class| self.has(*set, class)) != *negative {
                        stack.push(*after);
                    }
                }
                Instruction::Match => {
                    closure.matched.get_or_insert(closure.threads.len());
                }
            }
        }
        closure
    }

    /// Where threads are after a character; in order, each once.
    pub(crate) fn step(&self, threads: &[u16], class: u16) -> Vec<u16> {
        let mut after = Vec::with_capacity(threads.len());
        for &at in threads {
            if let Instruction::Class(set, next) = self.instructions[usize::from(at)]
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

/// The content of groups.
fn plain(node: &Node) -> &Node {
    match node {
        Node::Group { node, .. } => plain(node),
        _ => node,
    }
}

fn is_nullable(node: &Node) -> bool {
    match node {
        Node::Class(_) => false,
        Node::Concat(nodes) => nodes.iter().all(is_nullable),
        Node::Alternation(nodes) => nodes.iter().any(is_nullable),
        Node::Repeat { node, min, .. } => *min == 0 || is_nullable(node),
        Node::Group { node, .. } | Node::Atomic(node) => is_nullable(node),
        _ => true,
    }
}

fn refused(reason: &str) -> Error {
    Error::new(format!("the pattern of the pre-tokenizer is not one we can follow: {reason}"))
}
