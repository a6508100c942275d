//! Shortest strings that complete a thread's lexeme.

use std::sync::Arc;

use formalm_automata::LEXEME_END;
use formalm_core::{Error, LazyDfa, Resource, StateId};
use rustc_hash::FxHashSet;

use super::thread_sets::{LexerThread, ThreadKind, ThreadSets};
use crate::lexer::terminal_automata::TerminalAutomaton;
use crate::limits::check;

/// States visited to find the shortest lexeme of a terminal with lookahead. Chosen, not measured.
const MAX_SEARCH_STATES: u64 = 20_000;

impl ThreadSets {
    /// Returns the terminals of a thread set's lexemes, each with the minimum bytes it still needs.
    pub(crate) fn distances(&mut self, set: u32) -> Result<Vec<(u32, u32)>, Error> {
        let threads = self.lists.copy(set);
        let lexemes = threads.iter().filter(|&&one| self.kind(one) == ThreadKind::Lexeme);
        let lexemes: Vec<u32> = lexemes.copied().collect();
        lexemes.into_iter().map(|one| Ok((self.terminal(one), self.distance(one)?))).collect()
    }

    /// Returns the minimum bytes that a thread needs; one if it already matches, because it
    /// continues.
    pub(crate) fn distance(&mut self, thread: u32) -> Result<u32, Error> {
        self.distances.resize(self.threads.len(), 0);
        if self.distances[thread as usize] == 0 {
            let rest = self.shortest_completion(thread)?;
            self.distances[thread as usize] = (rest.len() as u32).max(1);
        }
        Ok(self.distances[thread as usize])
    }

    /// Returns a shortest nonempty string that completes a thread.
    pub(crate) fn shortest_completion(&mut self, thread: u32) -> Result<Arc<[u8]>, Error> {
        // Columns affect the meaning of a line end, not where it can end.
        let thread = self.thread_without_column(thread);
        if let Some(known) = self.completions.get(&thread) {
            return Ok(Arc::clone(known));
        }
        let text: Arc<[u8]> = self.shortest_text(thread)?.into();
        self.completions.insert(thread, Arc::clone(&text));
        Ok(text)
    }

    fn shortest_text(&self, thread: u32) -> Result<Vec<u8>, Error> {
        let LexerThread { terminal, state, .. } = self.threads[thread];
        let Some(automaton) = &self.automata[terminal as usize] else { return Ok(Vec::new()) };
        if self.has_lookahead[terminal as usize] {
            return self.shortest_text_with_lookahead(automaton, state);
        }
        if !automaton.is_accepting(state) {
            return automaton.shortest_completion(state);
        }
        let mut successors: Vec<(u8, StateId)> = Vec::new();
        for &byte in automaton.class_starts() {
            let Some(next) = automaton.step(state, byte)? else { continue };
            if automaton.is_accepting(next) {
                return Ok(vec![byte]);
            }
            if successors.iter().all(|one| one.1 != next) {
                successors.push((byte, next));
            }
        }
        let mut best: Option<Vec<u8>> = None;
        for (byte, next) in successors {
            let rest = automaton.shortest_completion(next)?;
            if best.as_ref().is_none_or(|best| rest.len() + 1 < best.len()) {
                best = Some([&[byte][..], &rest].concat());
            }
        }
        Ok(best.unwrap_or_default())
    }

    /// Returns the shortest nonempty lexeme of a terminal with lookahead, assuming that a suitable
    /// continuation exists.
    fn shortest_text_with_lookahead(
        &self,
        automaton: &TerminalAutomaton,
        from: StateId,
    ) -> Result<Vec<u8>, Error> {
        let mut visited: Vec<(StateId, Vec<u8>)> = vec![(from, Vec::new())];
        let mut seen = FxHashSet::default();
        let mut at = 0;
        while at < visited.len() {
            let (here, text) = visited[at].clone();
            for &byte in self.representatives.iter().filter(|&&byte| byte != LEXEME_END) {
                let Some(next) = automaton.step(here, byte)? else { continue };
                if !seen.insert(next.number()) {
                    continue;
                }
                let longer = [&text[..], &[byte]].concat();
                if automaton.step(next, LEXEME_END)?.is_some() {
                    return Ok(longer);
                }
                check(Resource::States, visited.len() as u64, MAX_SEARCH_STATES)?;
                visited.push((next, longer));
            }
            at += 1;
        }
        Ok(Vec::new())
    }
}
