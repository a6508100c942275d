//! What a machine knows and builds: terminals, tables, stacks, lexer states.

use std::collections::VecDeque;
use std::sync::Arc;

use formalm_automata::{Automaton, Error, Limits as TerminalLimits, Machine};
use rustc_hash::FxHashMap;

use crate::certificate::Certificate;
use crate::grammar::{Grammar, Lexing};
use crate::lexer::Lexer;
use crate::limits::{Limits, Meter};
use crate::lists::{Lists, NOTHING};
use crate::lower::Lowering;
use crate::prepare::Prepared;
use crate::stacks::Stacks;
use crate::tables::{Tables, members};

/// One reading of the text so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Reading {
    /// Threads of the lexeme under way; [`NOTHING`] between lexemes.
    pub(crate) lexeme: u32,
    /// The stacks before that lexeme.
    pub(crate) stacks: u32,
    /// Threads that must not match: a lexeme ended although they could have gone on.
    pub(crate) forbidden: u32,
}

impl Reading {
    /// A place between lexemes.
    pub(crate) fn between(stacks: u32, forbidden: u32) -> Reading {
        Reading { lexeme: NOTHING, stacks, forbidden }
    }

    pub(crate) fn is_between(self) -> bool {
        self.lexeme == NOTHING
    }
}

/// Rules that are of no use, and why.
pub(crate) type Useless = Vec<(usize, &'static str)>;

/// Everything that grows while texts are read.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) stacks: Stacks,
    pub(crate) lexer: Lexer,
    pub(crate) lexing: Lexing,
    pub(crate) limits: Limits,
    /// States of the machine: lists of readings, three numbers each.
    pub(crate) states: Lists,
    /// Terminals that may stand anywhere, ascending.
    ignored: Vec<u32>,
    /// Lexer state in front of a lexeme, per set of allowed terminals.
    contexts: FxHashMap<u32, u32>,
    pub(crate) certificate: Certificate,
    /// Whether a member continues a reading, where a search found out.
    pub(crate) viable: FxHashMap<Reading, bool>,
    /// Number of states and what was learnt since [`Core::remember`].
    mark: Option<(usize, Vec<Reading>)>,
}

impl Core {
    /// The core of a grammar, and its rules that are of no use.
    pub(crate) fn new(grammar: &Grammar, limits: Limits) -> Result<(Core, Useless), Error> {
        grammar.check()?;
        let mut meter = Meter::new(limits.steps.max(4 * limits.productions));
        let (automata, nullable) = terminals(grammar)?;
        let ignored = ignored(grammar);
        // Under longest lexemes what is ignored never comes to the parser.
        let unread = |at: u32| grammar.lexing == Lexing::Longest && ignored.contains(&at);
        let barren: Vec<bool> =
            (0..).zip(&automata).map(|(at, one)| one.is_none() || unread(at)).collect();
        let lowering = Lowering::new(grammar, &nullable, limits.productions)?;
        let start = grammar.terminals.len() + grammar.start;
        let prepared = Prepared::new(lowering, &barren, start as u32)?;
        let used = used(&prepared);
        let automata: Vec<Option<Arc<Automaton>>> = (0..)
            .zip(automata)
            .map(|(at, one)| one.filter(|_| used[at as usize] || ignored.contains(&at)))
            .collect();
        let mut lexer = Lexer::new(automata);
        let shortest = shortest(&mut lexer, &prepared)?;
        let tables = Tables::new(&prepared, &shortest, &mut meter)?;
        let mut core = Core {
            stacks: Stacks::new(tables, Meter::new(limits.steps), limits.bytes),
            lexer,
            lexing: grammar.lexing,
            limits,
            states: Lists::default(),
            ignored,
            contexts: FxHashMap::default(),
            certificate: Certificate::default(),
            viable: FxHashMap::default(),
            mark: None,
        };
        if core.lexing == Lexing::Longest {
            let all = (0..prepared.terminals).filter(|&at| used[at as usize]);
            core.certify(all.collect())?;
        }
        let useless = (0..grammar.rules.len()).filter_map(|rule| {
            let symbol = grammar.terminals.len() + rule;
            match (prepared.unproductive[symbol], prepared.unreachable[symbol]) {
                (true, _) => Some((rule, "derives no text")),
                (_, true) => Some((rule, "is not needed by the start rule")),
                _ => None,
            }
        });
        Ok((core, useless.collect()))
    }

    /// The lexer state in front of a lexeme that may follow on some stacks.
    pub(crate) fn context(&mut self, stacks: u32) -> Result<u32, Error> {
        let allowed = self.stacks.allowed(stacks)?;
        if let Some(&start) = self.contexts.get(&allowed) {
            return Ok(start);
        }
        let set = self.stacks.tables.sets.share(allowed);
        let allowed_terminals = members(&set).filter_map(|number| number.checked_sub(1));
        let start = self.start_of(allowed_terminals.collect());
        self.contexts.insert(allowed, start);
        Ok(start)
    }

    /// The lexer state in front of one of these terminals or an ignored one.
    pub(crate) fn start_of(&mut self, terminals: Vec<u32>) -> u32 {
        let all = crate::lists::union(&terminals, &self.ignored);
        self.lexer.start(all.into_iter())
    }

    pub(crate) fn is_ignored(&self, terminal: u32) -> bool {
        self.ignored.binary_search(&terminal).is_ok()
    }

    /// The stacks after a lexeme of a terminal that may stand here. What is ignored may be in a
    /// rule too, where lexemes are read in any way.
    pub(crate) fn after(&mut self, stacks: u32, terminal: u32) -> Result<u32, Error> {
        if !self.is_ignored(terminal) {
            return self.stacks.shift(stacks, terminal);
        }
        if self.lexing == Lexing::Longest {
            return Ok(stacks);
        }
        match self.stacks.shift(stacks, terminal)? {
            NOTHING => Ok(stacks),
            shifted => Ok(self.stacks.united(stacks, shifted)),
        }
    }

    /// The number of a list of readings.
    pub(crate) fn state(&mut self, readings: &[Reading]) -> u32 {
        let flat: Vec<u32> =
            readings.iter().flat_map(|one| [one.lexeme, one.stacks, one.forbidden]).collect();
        self.states.intern(&flat)
    }

    /// The readings of a state.
    pub(crate) fn readings(&self, state: u32) -> Vec<Reading> {
        let list = self.states.get(state).chunks_exact(3);
        list.map(|one| Reading { lexeme: one[0], stacks: one[1], forbidden: one[2] }).collect()
    }

    /// Keeps what a search found out.
    pub(crate) fn learn(&mut self, reading: Reading, viable: bool) {
        self.viable.insert(reading, viable);
        if let Some((_, learnt)) = &mut self.mark {
            learnt.push(reading);
        }
    }

    /// Begins to note what is made, so that [`Core::forget`] can drop it: looking ahead meets
    /// many states that no text will ever be in.
    pub(crate) fn remember(&mut self) {
        self.mark = Some((self.states.len(), Vec::new()));
        self.stacks.remember();
    }

    /// Drops the states and stacks made since [`Core::remember`]; the lexer's stay.
    pub(crate) fn forget(&mut self) {
        let Some((states, learnt)) = self.mark.take() else { return };
        self.states.truncate(states);
        for reading in learnt {
            self.viable.remove(&reading);
        }
        self.stacks.forget();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.stacks.memory_bytes()
            + self.lexer.memory_bytes()
            + self.states.memory_bytes()
            + self.contexts.len() * 12
            + self.viable.len() * 20
            + self.certificate.memory_bytes()
    }
}

/// The machines of the terminals, `None` for those without a text, and which match nothing.
#[expect(clippy::type_complexity, reason = "two lists that belong together")]
fn terminals(grammar: &Grammar) -> Result<(Vec<Option<Arc<Automaton>>>, Vec<bool>), Error> {
    let mut automata = Vec::with_capacity(grammar.terminals.len());
    let mut nullable = Vec::with_capacity(grammar.terminals.len());
    for one in &grammar.terminals {
        let automaton = match Automaton::new(&one.language, TerminalLimits::default()) {
            Ok(automaton) => Some(Arc::new(automaton)),
            Err(Error::Language { .. }) => None,
            Err(limit) => return Err(limit),
        };
        let empty = automaton.as_ref().is_some_and(|one| one.is_accepting(one.start()));
        if empty && grammar.lexing == Lexing::Longest {
            return Err(Error::Language {
                message: format!("the terminal {} matches the empty text", one.name),
                span: one.span,
                hint: Some("make its use optional instead: (A)? in a rule".to_owned()),
            });
        }
        nullable.push(empty);
        automata.push(automaton);
    }
    Ok((automata, nullable))
}

/// Terminals that some production has.
fn used(prepared: &Prepared) -> Vec<bool> {
    let mut used = vec![false; prepared.terminals as usize];
    for &symbol in prepared.productions.iter().flat_map(|one| &one.right) {
        if let Some(used) = used.get_mut(symbol as usize) {
            *used = true;
        }
    }
    used
}

fn ignored(grammar: &Grammar) -> Vec<u32> {
    let mut ignored: Vec<u32> = grammar.ignored.iter().map(|&at| at as u32).collect();
    ignored.sort_unstable();
    ignored.dedup();
    ignored
}

/// Bytes of a shortest text of each symbol that is not empty.
fn shortest(lexer: &mut Lexer, prepared: &Prepared) -> Result<Vec<u32>, Error> {
    const NEVER: u32 = u32::MAX;
    let mut shortest = vec![NEVER; prepared.symbols as usize];
    for terminal in 0..prepared.terminals {
        let start = lexer.start(std::iter::once(terminal));
        for (terminal, bytes) in lexer.distances(start)? {
            shortest[terminal as usize] = bytes;
        }
    }
    let mut uses: Vec<Vec<u32>> = vec![Vec::new(); prepared.symbols as usize];
    for (at, one) in prepared.productions.iter().enumerate() {
        one.right.iter().for_each(|&symbol| uses[symbol as usize].push(at as u32));
    }
    // Improves until nothing does: a symbol is improved at most as often as its uses are.
    let mut queue: VecDeque<u32> = (0..prepared.productions.len() as u32).collect();
    while let Some(at) = queue.pop_front() {
        let one = &prepared.productions[at as usize];
        let bytes = least_bytes(&one.right, &shortest, &prepared.nullable);
        if bytes < shortest[one.left as usize] {
            shortest[one.left as usize] = bytes;
            queue.extend(&uses[one.left as usize]);
        }
    }
    Ok(shortest)
}

/// Bytes of a shortest text, not empty, of symbols in a row.
fn least_bytes(right: &[u32], shortest: &[u32], nullable: &[bool]) -> u32 {
    let mut all = 0u32;
    let mut least_extra = u32::MAX;
    for &symbol in right {
        let bytes = shortest[symbol as usize];
        if nullable[symbol as usize] {
            least_extra = least_extra.min(bytes);
        } else {
            all = all.saturating_add(bytes);
        }
    }
    // Something must be there: if all may be empty, the shortest that is not.
    if right.iter().all(|&symbol| nullable[symbol as usize]) { least_extra } else { all }
}
