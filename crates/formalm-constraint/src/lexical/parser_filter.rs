//! Filtering of tokens by the parser: which terminal sequences may follow the current lexeme?
//!
//! Parser states are queried from the top of their stacks: first with a very short prefix, which
//! many states share, then with longer prefixes for what is still undecided. Results at each depth
//! are cached for all states with equal prefixes.

use std::sync::Arc;

use formalm_core::Error;
use formalm_machines::{LexicalMachine, NEEDS_DEEPER_STACK, ParserStateId};
use rustc_hash::FxHashSet;

use super::sublanguages::Origin;
use super::{LexicalTables, TokenSource};

/// Prefix depths that are tried before the whole stacks. Chosen, not measured.
const PREFIX_DEPTHS: [u32; 5] = [1, 2, 4, 8, 14];

/// A sequence of terminals, and the node list at which the last one's lexemes end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TerminalPath {
    terminals: Box<[u32]>,
    group: u32,
}

/// The result of filtering terminal paths for all parser states with one stack prefix.
#[derive(Debug)]
pub(super) struct FilterResult {
    /// Joins, as numbers of [`LexicalTables::joins`].
    parts: Box<[u32]>,
    /// Paths that need a deeper prefix.
    undecided: Arc<[TerminalPath]>,
}

impl FilterResult {
    /// Excludes undecided paths, which are shared.
    fn memory_bytes(&self) -> usize {
        140 + 4 * self.parts.len()
    }
}

/// Terminal paths being followed.
#[derive(Default)]
struct PathWalk {
    parts: Vec<u32>,
    /// Undecided paths.
    undecided: Vec<TerminalPath>,
    seen: FxHashSet<(ParserStateId, u32)>,
    /// Terminals, each with the number of its predecessor.
    links: Vec<(u32, u32)>,
}

/// The predecessor of the first terminal.
const NO_TERMINAL: u32 = u32::MAX;

impl PathWalk {
    fn link(&mut self, before: u32, terminal: u32) -> u32 {
        self.links.push((before, terminal));
        self.links.len() as u32 - 1
    }

    fn leave_undecided(&mut self, before: u32, terminal: u32, group: u32) {
        let (mut terminals, mut at) = (vec![terminal], before);
        while at != NO_TERMINAL {
            let (before, terminal) = self.links[at as usize];
            terminals.push(terminal);
            at = before;
        }
        terminals.reverse();
        self.undecided.push(TerminalPath { terminals: terminals.into(), group });
    }
}

impl LexicalTables {
    /// Adds the joins that a list of groups leads to from a parser state. Returns `false` if some
    /// of them are not certain to be completable.
    pub(super) fn filter_by_parser<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        (parser_state, list): (ParserStateId, u32),
        parts: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        let mut undecided: Option<Arc<[TerminalPath]>> = None;
        for depth in PREFIX_DEPTHS {
            if undecided.as_ref().is_some_and(|undecided| undecided.is_empty()) {
                return Ok(true);
            }
            let Some(stack_prefix) = lexemes.stack_prefix(parser_state, depth) else { break };
            let filter_result = match self.filter_results.get(&(list, stack_prefix)) {
                Some(known) => Arc::clone(known),
                None => {
                    let paths = undecided.unwrap_or_else(|| self.paths(list));
                    let from = lexemes.prefix_representative(stack_prefix);
                    let filter_result = Arc::new(self.follow_paths(lexemes, tokens, from, &paths)?);
                    self.bytes += filter_result.memory_bytes();
                    self.filter_results.insert((list, stack_prefix), Arc::clone(&filter_result));
                    filter_result
                }
            };
            parts.extend_from_slice(&filter_result.parts);
            undecided = Some(Arc::clone(&filter_result.undecided));
        }
        let paths = undecided.unwrap_or_else(|| self.paths(list));
        let filter_result = self.follow_paths(lexemes, tokens, parser_state, &paths)?;
        parts.extend_from_slice(&filter_result.parts);
        Ok(filter_result.undecided.is_empty())
    }

    fn paths(&self, list: u32) -> Arc<[TerminalPath]> {
        let groups = self.lists[list].iter();
        groups
            .map(|&(terminal, group)| TerminalPath { terminals: [terminal].into(), group })
            .collect()
    }

    /// Follows terminal paths from a parser state.
    fn follow_paths<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        parser_state: ParserStateId,
        paths: &[TerminalPath],
    ) -> Result<FilterResult, Error> {
        let mut all = PathWalk::default();
        let mut stack: Vec<(ParserStateId, u32, u32, u32)> = Vec::new();
        for path in paths {
            let Some((&last, front)) = path.terminals.split_last() else { continue };
            let (mut at, mut link) = (parser_state, NO_TERMINAL);
            for &terminal in front {
                // The deeper prefix shows more than when the path was followed before.
                let Some(next) = lexemes.after_terminal(at, terminal)? else { break };
                (at, link) = (next, all.link(link, terminal));
            }
            stack.push((at, link, last, path.group));
            while let Some((parser_state, link, terminal, group)) = stack.pop() {
                self.spend(1)?;
                match self.next(lexemes, tokens, (parser_state, terminal, group), &mut all) {
                    Ok(Some((next, join, sublanguages))) => {
                        let mut link = (link, false);
                        for join in std::iter::once(join).chain(sublanguages) {
                            let joined = &self.joins[join];
                            all.parts.extend((!joined.is_empty()).then_some(join));
                            let groups = &self.lists[joined.groups];
                            if groups.is_empty() {
                                continue;
                            }
                            if !link.1 {
                                link = (all.link(link.0, terminal), true);
                            }
                            let groups = groups.iter();
                            stack.extend(
                                groups.map(|&(terminal, group)| (next, link.0, terminal, group)),
                            );
                        }
                    }
                    Ok(None) => {}
                    Err(error) if error == NEEDS_DEEPER_STACK => {
                        all.leave_undecided(link, terminal, group)
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        all.parts.sort_unstable();
        all.parts.dedup();
        Ok(FilterResult {
            parts: all.parts.into(),
            undecided: self.intern_undecided(all.undecided),
        })
    }

    fn intern_undecided(&mut self, paths: Vec<TerminalPath>) -> Arc<[TerminalPath]> {
        if let Some(known) = self.undecided_paths.get(&paths[..]) {
            return Arc::clone(known);
        }
        let terminals: usize = paths.iter().map(|path| path.terminals.len()).sum();
        self.bytes += 60 + 40 * paths.len() + 4 * terminals;
        let paths: Arc<[TerminalPath]> = paths.into();
        self.undecided_paths.insert(Arc::clone(&paths));
        paths
    }

    /// Returns the parser state after a terminal, the join of a group there, and those of
    /// sublanguages; `None` if there is none or if it was visited before. Fails with the marker error of a too shallow prefix if the
    /// result is not certain.
    fn next<L: LexicalMachine>(
        &mut self,
        lexemes: &L,
        tokens: &TokenSource<'_>,
        (parser_state, terminal, group): (ParserStateId, u32, u32),
        all: &mut PathWalk,
    ) -> Result<Option<(ParserStateId, u32, Vec<u32>)>, Error> {
        let Some(next) = lexemes.after_terminal(parser_state, terminal)? else { return Ok(None) };
        if all.seen.contains(&(next, group)) {
            return Ok(None);
        }
        let context = lexemes.lexer_context(next)?;
        let number = self.joined(lexemes, tokens.vocabulary, group, context)?;
        let joined = &self.joins[number];
        if joined.doubtful || (!joined.is_empty() && !lexemes.is_completable(next)?) {
            return Err(NEEDS_DEEPER_STACK);
        }
        let starts = match tokens.sublanguages {
            Some(_) => self.sublanguages_from(lexemes, tokens, (next, Origin::Group(group)))?,
            None => Vec::new(),
        };
        all.seen.insert((next, group));
        Ok(Some((next, number, starts)))
    }
}
