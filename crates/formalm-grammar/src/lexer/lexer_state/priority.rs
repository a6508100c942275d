//! Which terminal a lexeme ends as, and which may still go on.

use formalm_automata::Ending;

use crate::grammar::Lexing;
use crate::indentation::PLAIN;
use crate::lexer::{Kind, Lexer};
use crate::state::Core;

/// A terminal that matches, in some cases only if what follows is read from a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Match {
    pub(super) terminal: u32,
    asks: Option<u32>,
}

impl Match {
    /// The thread that reads what follows, if something is asked of that.
    pub(super) fn condition(self, lexer: &mut Lexer, kind: Kind) -> Option<u32> {
        self.asks.map(|state| lexer.asking(self.terminal, state, kind))
    }
}

impl Core {
    /// Everything that matches, in order of preference.
    pub(super) fn matches(&self, read: crate::lexer::Outcome) -> Vec<Match> {
        let plain = self.lexer.lists.get(read.matches).iter();
        let mut all: Vec<Match> = plain.map(|&terminal| Match { terminal, asks: None }).collect();
        let asking = self.lexer.lists.get(read.conditions).chunks_exact(2);
        all.extend(asking.map(|one| Match { terminal: one[0], asks: Some(one[1]) }));
        // Those behind a match that was in question are beaten, but for what only watches.
        all.retain(|one| one.terminal <= read.settled || one.terminal >= self.terminals);
        all.sort_unstable();
        all
    }

    /// How a lexeme may end, where lexemes are ordered, and the threads that may go on.
    pub(super) fn preferred(
        &mut self,
        read: crate::lexer::Outcome,
        matches: &[Match],
        forbidden: u32,
    ) -> (Vec<Ending>, u32) {
        let first = self.lexing == Lexing::First;
        let mut next = read.next;
        if first {
            next = self.cut(next, read.settled.min(self.terminals));
        }
        let mut endings = Vec::new();
        // What matched before this one, and is no match because of what follows.
        let mut unless = forbidden;
        let terminals = self.terminals;
        for one in matches.iter().filter(|one| one.terminal < terminals) {
            if self.is_whole(one.terminal) {
                break;
            }
            let ahead = if first { self.cut(next, one.terminal) } else { next };
            // The lexeme ends here only if nothing that could go on matches later.
            let rest = self.read_ones(ahead);
            let rest = self.lexer.plain(rest);
            let mut left = self.union_of(unless, rest);
            for guard in self.guards(read.next, one.terminal) {
                let no = self.lexer.turned(guard, Kind::MustNot);
                left = self.with_thread(left, Some(no));
            }
            let asked = one.condition(&mut self.lexer, Kind::Must);
            left = self.with_thread(left, asked);
            let terminal = self.becomes(one.terminal, read);
            endings.extend(terminal.map(|terminal| Ending { terminal, left }));
            if one.asks.is_none() {
                next = ahead;
                break;
            }
            let not = one.condition(&mut self.lexer, Kind::MustNot);
            unless = self.with_thread(unless, not);
            if first {
                let guard = one.condition(&mut self.lexer, Kind::Guard);
                next = self.with_thread(next, guard);
            }
        }
        if first {
            next = self.cut(next, self.terminals);
        }
        (endings, next)
    }

    /// Threads of a lexeme that ask whether a terminal before this one matched.
    fn guards(&self, lexeme: u32, terminal: u32) -> Vec<u32> {
        let threads = self.lexer.lists.get(lexeme).iter().copied();
        let asks = |one: &u32| {
            self.lexer.kind(*one) == Kind::Guard && self.lexer.terminal(*one) < terminal
        };
        threads.filter(asks).collect()
    }

    /// The threads of a lexeme that are not behind the terminal that matched, those that watch
    /// what they may become, and those that ask whether they are beaten.
    pub(super) fn cut(&mut self, lexeme: u32, matched: u32) -> u32 {
        let (lexer, replaced) = (&self.lexer, &self.replaced);
        let threads = lexer.lists.copy(lexeme);
        let read = |at: u32| at < self.terminals && at <= matched;
        let is_read = |at: usize| {
            let mut lexemes = threads.iter().filter(|&&one| lexer.kind(one) == Kind::Lexeme);
            lexemes.any(|&one| lexer.terminal(one) == at as u32)
        };
        let is_kept = |&one: &u32| match lexer.terminal(one) {
            at if at < self.terminals => read(at),
            at => replaced.iter().any(|one| {
                let text = one.text as u32 == at - self.terminals;
                text && read(one.pattern as u32) && is_read(one.pattern)
            }),
        };
        let lexemes = threads.iter().filter(|&&one| lexer.kind(one) == Kind::Lexeme);
        let last = lexemes.map(|&one| lexer.terminal(one)).filter(|&at| read(at)).max();
        let asks = |one: &u32| {
            let guard = lexer.kind(*one) == Kind::Guard;
            !guard || last.is_some_and(|last| lexer.terminal(*one) < last)
        };
        let kept: Vec<u32> = threads.iter().copied().filter(is_kept).filter(asks).collect();
        self.lexer.lists.intern(&kept)
    }

    /// The threads of a lexeme that do not only watch or ask.
    fn read_ones(&mut self, lexeme: u32) -> u32 {
        if self.lexing != Lexing::First {
            return lexeme;
        }
        let threads = self.lexer.lists.copy(lexeme);
        let read = |&one: &u32| {
            self.lexer.terminal(one) < self.terminals && self.lexer.kind(one) == Kind::Lexeme
        };
        let kept: Vec<u32> = threads.iter().copied().filter(read).collect();
        self.lexer.lists.intern(&kept)
    }

    /// What a lexeme becomes, given everything that matches it; `None` for the end of a line that
    /// leads to none.
    fn becomes(&self, winner: u32, read: crate::lexer::Outcome) -> Option<u32> {
        if let Some(layout) = &self.layout
            && winner == layout.newline
            && read.column != PLAIN
        {
            return layout.line(read.column);
        }
        if self.lexing != Lexing::First || self.is_ignored(winner) {
            return Some(winner);
        }
        let pairs = self.replaced.iter().filter(|one| one.pattern as u32 == winner);
        let matches = self.lexer.lists.get(read.matches);
        let mut texts = pairs.map(|one| self.became(one.text as u32));
        Some(texts.find(|one| matches.binary_search(one).is_ok()).unwrap_or(winner))
    }
}
