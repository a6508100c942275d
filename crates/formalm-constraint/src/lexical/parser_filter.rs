//! Filtering of tokens by the parser: which terminal sequences may follow the current lexeme?
//!
//! ```text
//!  parser state + terminals ──stack prefixes──► joins + terminals that need more of the stack
//!                                                                     │
//!      next parser state + terminals that tokens spell there ◄──shift each
//! ```
//!
//! A parser state is queried from the top of its stacks: first with a short prefix, which many
//! states share, then with a longer one for what is still undecided. Results are cached for all
//! states with equal prefixes. What no prefix decides is shifted on the whole stacks, and the state
//! after it is queried in the same way: what may follow a closing bracket depends on the top of the
//! stacks again, and not on what lay above. These results are cached by what the parser answered
//! ([`super::parser_traces`]).

use std::sync::Arc;

use formalm_core::Error;
use formalm_machines::{
    LexerContextId, LexicalMachine, NEEDS_DEEPER_STACK, ParserStateId, StackPrefixId,
};
use rustc_hash::FxHashMap;

use super::parser_traces::{Dialogue, TraceStep};
use super::sublanguages::Origin;
use super::{LexicalTables, TokenSource};

/// Prefix depths that are tried before terminals are shifted on the whole stacks. With one more or
/// less, or with longer ones, masks of SQL or of Python take a tenth to a half longer.
const PREFIX_DEPTHS: [u32; 2] = [2, 4];
/// The same after a terminal that was shifted on a prefix, where the state on top mostly decides.
/// With longer ones, the slowest hundredth of SQL's masks takes a sixth longer, and Python's as long.
const NEXT_PREFIX_DEPTHS: [u32; 1] = [1];
/// The same in a dialogue, where each prefix is a question too.
const DIALOGUE_DEPTHS: [u32; 1] = [2];
/// Number of terminals up to which a dialogue tries no prefix: shifting them takes less time.
const MAX_SHIFTED_TERMINALS: usize = 1;
/// Length of a sequence of terminals up to which tokens are filtered by the parser, which bounds the
/// recursion; if there are longer ones, bytes are read one by one. Chosen, not measured.
const MAX_SEQUENCE: u32 = 256;

/// What follows a terminal in a list of terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Branch {
    /// Its lexemes end at the nodes of a group.
    Ends(u32),
    /// A list of terminals after it was left undecided.
    Undecided(u32),
}

/// Terminals, each with what follows it.
pub(super) type TerminalList = Arc<[(u32, Branch)]>;

/// The result of filtering a list of terminals for all parser states with one stack prefix, or with
/// the same answers.
#[derive(Debug)]
pub(super) struct FilterResult {
    /// Joins, as numbers of [`LexicalTables::joins`].
    parts: Box<[u32]>,
    /// What needs more of the stack, as a number of [`LexicalTables::lists`].
    undecided: u32,
}

impl FilterResult {
    pub(super) fn new(mut parts: Vec<u32>, undecided: u32) -> Arc<FilterResult> {
        parts.sort_unstable();
        parts.dedup();
        Arc::new(FilterResult { parts: parts.into(), undecided })
    }

    fn memory_bytes(&self) -> usize {
        100 + 4 * self.parts.len()
    }
}

/// Terminals being followed on one set of stacks.
#[derive(Debug, Default)]
struct PathWalk {
    parts: Vec<u32>,
    /// What was left undecided, by the parser states and lists of several terminals visited.
    visited: FxHashMap<(ParserStateId, u32), u32>,
    /// Number of terminals before these.
    depth: u32,
    /// What the parser is asked, if the result is cached by it.
    dialogue: Option<Dialogue>,
}

impl PathWalk {
    fn after_terminal<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        parser_state: ParserStateId,
        terminal: u32,
    ) -> Result<Option<ParserStateId>, Error> {
        match &mut self.dialogue {
            None => lexemes.after_terminal(parser_state, terminal),
            Some(dialogue) => dialogue.after_terminal(lexemes, parser_state, terminal),
        }
    }

    fn lexer_context<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        parser_state: ParserStateId,
    ) -> Result<LexerContextId, Error> {
        match &mut self.dialogue {
            None => lexemes.lexer_context(parser_state),
            Some(dialogue) => dialogue.lexer_context(lexemes, parser_state),
        }
    }

    fn is_completable<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        parser_state: ParserStateId,
    ) -> Result<bool, Error> {
        match &mut self.dialogue {
            None => lexemes.is_completable(parser_state),
            Some(dialogue) => dialogue.is_completable(lexemes, parser_state),
        }
    }

    fn stack_prefix<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        parser_state: ParserStateId,
        depth: u32,
    ) -> Result<Option<StackPrefixId>, Error> {
        match &mut self.dialogue {
            None => Ok(lexemes.stack_prefix(parser_state, depth)),
            Some(dialogue) => dialogue.stack_prefix(lexemes, parser_state, depth),
        }
    }

    /// Returns the prefix depths that are tried for a number of terminals.
    fn prefix_depths(&self, terminals: usize) -> &'static [u32] {
        match self.dialogue {
            None if self.depth > 0 => &NEXT_PREFIX_DEPTHS,
            None => &PREFIX_DEPTHS,
            Some(_) if terminals <= MAX_SHIFTED_TERMINALS => &[],
            Some(_) => &DIALOGUE_DEPTHS,
        }
    }
}

impl LexicalTables {
    /// Adds the joins that a list of terminals leads to from a parser state. Returns `false` if
    /// some of them are not certain to be completable.
    pub(super) fn filter_by_parser<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        (parser_state, list): (ParserStateId, u32),
        parts: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        let mut walk = PathWalk::default();
        let rest = self.follow_by_prefixes(lexemes, tokens, (parser_state, list), &mut walk)?;
        let undecided = match tokens.sublanguages {
            _ if self.lists[rest].is_empty() => rest,
            None => self.follow_traced(lexemes, tokens, (parser_state, rest), &mut walk.parts)?,
            // These ask more than a dialogue knows.
            Some(_) => self.follow_each(lexemes, tokens, (parser_state, rest), &mut walk)?,
        };
        parts.append(&mut walk.parts);
        Ok(self.lists[undecided].is_empty())
    }

    /// Follows a list of terminals on whole stacks: what it leads to is known if another parser
    /// state gave the same answers. Returns the list of what is undecided.
    fn follow_traced<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        (parser_state, list): (ParserStateId, u32),
        parts: &mut Vec<u32>,
    ) -> Result<u32, Error> {
        let mut replay = Dialogue::new(parser_state);
        let mut at = self.traces.root(list);
        while let Some(known) = at {
            at = match self.traces.step(known) {
                TraceStep::Ask(query) => {
                    self.spend(1)?;
                    let answer = replay.ask(lexemes, query)?;
                    self.traces.after(known, answer)
                }
                TraceStep::Done(result) => {
                    parts.extend_from_slice(&result.parts);
                    return Ok(result.undecided);
                }
            };
        }
        let dialogue = Some(Dialogue::new(parser_state));
        let mut walk = PathWalk { dialogue, ..PathWalk::default() };
        let undecided = self.follow_each(lexemes, tokens, (parser_state, list), &mut walk)?;
        let result = FilterResult::new(walk.parts, undecided);
        parts.extend_from_slice(&result.parts);
        let asked = walk.dialogue.map(Dialogue::into_asked).unwrap_or_default();
        self.answer_bytes += result.memory_bytes() + self.traces.insert(list, &asked, result);
        Ok(undecided)
    }

    /// Follows a list of terminals by stack prefixes. Returns the list of what is undecided.
    fn follow_by_prefixes<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        (parser_state, list): (ParserStateId, u32),
        walk: &mut PathWalk,
    ) -> Result<u32, Error> {
        let (mut rest, mut before) = (list, None);
        for &depth in walk.prefix_depths(self.lists[list].len()) {
            if self.lists[rest].is_empty() {
                break;
            }
            let Some(prefix) = walk.stack_prefix(lexemes, parser_state, depth)? else { break };
            if before.replace(prefix) == Some(prefix) {
                // No more of the stacks is visible.
                break;
            }
            let result = match self.filter_results.get(&(rest, prefix)) {
                Some(known) => Arc::clone(known),
                None => self.filter_prefix(lexemes, tokens, (prefix, rest), walk.depth)?,
            };
            walk.parts.extend_from_slice(&result.parts);
            rest = result.undecided;
        }
        Ok(rest)
    }

    /// Filters a list of terminals for all parser states with a stack prefix.
    fn filter_prefix<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        (prefix, list): (StackPrefixId, u32),
        depth: u32,
    ) -> Result<Arc<FilterResult>, Error> {
        let from = lexemes.prefix_representative(prefix);
        let mut walk = PathWalk { depth, ..PathWalk::default() };
        let undecided = self.follow_each(lexemes, tokens, (from, list), &mut walk)?;
        let result = FilterResult::new(walk.parts, undecided);
        self.answer_bytes += result.memory_bytes();
        self.filter_results.insert((list, prefix), Arc::clone(&result));
        Ok(result)
    }

    /// Shifts each terminal of a list, and follows what tokens spell after it. Returns the list of
    /// what is undecided, which is empty if all of the stacks is visible and everything is certain.
    fn follow_each<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        (parser_state, list): (ParserStateId, u32),
        walk: &mut PathWalk,
    ) -> Result<u32, Error> {
        let terminals = Arc::clone(&self.lists[list]);
        if terminals.is_empty() || walk.depth >= MAX_SEQUENCE {
            return Ok(list);
        }
        // Most lists are of one terminal, and remembering them takes longer than following them.
        let is_remembered = terminals.len() > 1;
        if is_remembered && let Some(&undecided) = walk.visited.get(&(parser_state, list)) {
            return Ok(undecided);
        }
        let mut undecided = Vec::new();
        walk.depth += 1;
        for &(terminal, branch) in &*terminals {
            self.spend(1)?;
            let step = (parser_state, terminal, branch);
            match self.step(lexemes, tokens, step, (walk, &mut undecided)) {
                Err(error) if error == NEEDS_DEEPER_STACK => undecided.push((terminal, branch)),
                done => done?,
            }
        }
        walk.depth -= 1;
        let undecided = self.list_number(undecided);
        if is_remembered {
            walk.visited.insert((parser_state, list), undecided);
        }
        Ok(undecided)
    }

    /// Shifts a terminal and follows what tokens spell after it. Fails with the marker error of a
    /// too shallow prefix, without effect, if what follows the terminal is not certain.
    fn step<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        (parser_state, terminal, branch): (ParserStateId, u32, Branch),
        (walk, undecided): (&mut PathWalk, &mut Vec<(u32, Branch)>),
    ) -> Result<(), Error> {
        let Some(next) = walk.after_terminal(lexemes, parser_state, terminal)? else {
            return Ok(());
        };
        let mut leave = |tables: &LexicalTables, rest: u32| {
            if !tables.lists[rest].is_empty() {
                undecided.push((terminal, Branch::Undecided(rest)));
            }
        };
        let group = match branch {
            Branch::Ends(group) => group,
            Branch::Undecided(list) => {
                // Short prefixes were tried when it was left undecided.
                let rest = self.follow_each(lexemes, tokens, (next, list), walk)?;
                leave(self, rest);
                return Ok(());
            }
        };
        let context = walk.lexer_context(lexemes, next)?;
        let number = self.joined(lexemes, tokens.vocabulary, group, context)?;
        let joined = &self.joins[number];
        if joined.doubtful || (!joined.is_empty() && !walk.is_completable(lexemes, next)?) {
            return Err(NEEDS_DEEPER_STACK);
        }
        let starts = match tokens.sublanguages {
            Some(_) => self.sublanguages_from(lexemes, tokens, (next, Origin::Group(group)))?,
            None => Vec::new(),
        };
        for number in std::iter::once(number).chain(starts) {
            let joined = &self.joins[number];
            walk.parts.extend((!joined.is_empty()).then_some(number));
            let from = (next, joined.groups);
            let rest = self.follow_by_prefixes(lexemes, tokens, from, walk)?;
            let rest = self.follow_each(lexemes, tokens, (next, rest), walk)?;
            leave(self, rest);
        }
        Ok(())
    }
}
