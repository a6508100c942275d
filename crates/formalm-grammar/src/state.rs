//! What a machine knows and builds: terminals, tables, stacks, lexer states.

use std::collections::VecDeque;

use formalm_automata::{Error, Look};
use rustc_hash::FxHashMap;

use crate::completion::Completions;
use crate::completion::min_bytes::{Known, ending_lines};
use crate::completion::stack_shortest_path::NEVER;
use crate::dead_end_proof::spellable_terminals::Certificate;
use crate::grammar::{Grammar, Lexing, Replaced};
use crate::gss::Stacks;
use crate::indentation::parser_state::{Layout, columns};
use crate::interner::{Lists, NOTHING};
use crate::lexer::Lexer;
use crate::lexer::lexer_state::Scans;
use crate::lexer::terminal_automata::{Readers, barren, terminals};
use crate::limits::{Limits, Meter};
use crate::lr0::Tables;
use crate::normal_form::Prepared;
use crate::normal_form::lowering::Lowering;
use crate::sublanguages::{Embedded, shortest_bytes};

/// One reading of the text so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Reading {
    /// Threads of the lexeme under way; [`NOTHING`] between lexemes.
    pub(crate) lexeme: u32,
    /// The place before that lexeme: stacks, and levels where indentation matters.
    pub(crate) place: u32,
    /// Threads that must not match: a lexeme ended although they could have gone on.
    pub(crate) forbidden: u32,
}

impl Reading {
    /// A place between lexemes.
    pub(crate) fn between(place: u32, forbidden: u32) -> Reading {
        Reading { lexeme: NOTHING, place, forbidden }
    }

    pub(crate) fn is_between(self) -> bool {
        self.lexeme == NOTHING
    }
}

/// Numbers of a reading in the list of a state.
const NUMBERS: usize = 3;

/// Rules that are of no use, and why.
pub(crate) type UselessRules = Vec<(usize, Useless)>;

/// Why a rule is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Useless {
    /// It derives no text.
    Unproductive,
    /// No rule that is of use refers to it.
    Unreachable,
}

/// A core, which is large, with rules that are of no use.
pub(crate) type Made = (Box<Core>, UselessRules);

/// Everything that grows while texts are read.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) stacks: Stacks,
    pub(crate) lexer: Lexer,
    pub(crate) scans: Scans,
    pub(crate) embedded: Embedded,
    pub(crate) lexing: Lexing,
    /// What the stacks allow may have no text: lexemes are ordered, or some look beyond themselves.
    pub(crate) checked: bool,
    /// What is known of lines, where indentation matters.
    pub(crate) layout: Option<Layout>,
    pub(crate) limits: Limits,
    /// Bytes that complete what is left on stacks, where there are levels.
    pub(crate) rests: Known,
    /// What can be seen of places from their tops.
    pub(crate) outlines: Lists,
    /// States of the machine: lists of readings, [`NUMBERS`] each.
    pub(crate) states: Lists,
    /// Terminals that may stand anywhere, ascending.
    pub(crate) ignored: Vec<u32>,
    /// Terminals that no lexeme ends within, ascending; they come last.
    pub(crate) whole: Vec<u32>,
    /// Lexemes that become others; sorted.
    pub(crate) replaced: Vec<Replaced>,
    /// Number of terminals; beyond it are lexemes that became a terminal.
    pub(crate) terminals: u32,
    /// Lexer state in front of a lexeme, per set of allowed terminals and whether lines matter.
    pub(crate) contexts: FxHashMap<(u32, bool), u32>,
    pub(crate) certificate: Certificate,
    /// Whether a member continues a reading, where a search found out.
    pub(crate) viable: FxHashMap<Reading, bool>,
    /// Whether the certificate settles what follows on some stacks, where it was asked.
    pub(crate) settled: FxHashMap<u32, bool>,
    /// What completes readings, where no certificate says so; made when it is first asked; by each [`Look`].
    pub(crate) alone: [Option<Box<Completions>>; 3],
    /// How closely it is looked at what completes readings; not at all where a certificate settles most.
    pub(crate) look: Option<Look>,
    mark: Option<Mark>,
    /// Memory that steps use.
    pub(crate) spare: Vec<Reading>,
    pub(crate) spare_too: Vec<Reading>,
    flat: Vec<u32>,
    /// Memory of stacks that were met ahead of texts only.
    seen_bytes: usize,
}

/// What stacks that were met ahead of texts only may take.
const SEEN_BYTES: usize = 1 << 20;

/// What there was at [`Core::remember`], and what was learnt since.
#[derive(Debug, Default)]
struct Mark {
    states: usize,
    places: usize,
    bytes: usize,
    /// Whether embedded languages are looked ahead of.
    looks: bool,
    learnt: Vec<Reading>,
    settled: Vec<u32>,
}

impl Core {
    /// The core of a grammar, and its rules that are of no use; `None` if its rules derive no text.
    pub(crate) fn new(grammar: &Grammar, limits: Limits) -> Result<Option<Made>, Error> {
        grammar.check()?;
        let mut meter = Meter::new(limits.steps.max(4 * limits.productions));
        let (automata, nullable) = terminals(grammar)?;
        let ignored = ignored(grammar);
        let mut whole: Vec<u32> = grammar.whole.iter().map(|&at| at as u32).collect();
        whole.sort_unstable();
        let mut replaced = grammar.replaced.clone();
        replaced.sort_unstable();
        let layout = Layout::new(grammar);
        let embedded = Embedded::new(grammar);
        let barren = barren(grammar, &automata)?;
        let lowering = Lowering::new(grammar, &nullable, limits.productions)?;
        let start = grammar.terminals.len() + grammar.start;
        let Some(prepared) = Prepared::new(lowering, &barren, start as u32) else {
            return Ok(None);
        };
        let used = used(&prepared);
        let automata: Readers = (0..)
            .zip(automata)
            .map(|(at, one)| {
                one.filter(|_| used[at as usize] || ignored.contains(&at) || whole.contains(&at))
            })
            .collect();
        // What became a terminal is watched by a thread of its own.
        let twice = if grammar.lexing == Lexing::First { automata.clone() } else { Vec::new() };
        let mut ahead: Vec<bool> =
            grammar.terminals.iter().map(|one| one.language.is_lexeme()).collect();
        let looks = (0..).zip(&automata).any(|(at, one): (usize, _)| one.is_some() && ahead[at]);
        ahead.resize(automata.len() + twice.len(), false);
        let mut lexer = Lexer::new([automata, twice].concat(), ahead, columns(grammar));
        if !embedded.is_empty() {
            // Their machines may tell any two bytes apart.
            lexer.tell_all_bytes_apart();
        }
        let shortest = shortest((&mut lexer, &embedded), &prepared, layout.as_ref())?;
        let tables = Tables::new(&prepared, &shortest, &mut meter)?;
        let mut core = Box::new(Core {
            stacks: Stacks::new(tables, Meter::new(limits.steps), limits.bytes),
            lexer,
            scans: Scans::default(),
            embedded,
            lexing: grammar.lexing,
            checked: grammar.lexing != Lexing::Any || looks,
            layout,
            limits,
            rests: Known::default(),
            outlines: Lists::default(),
            states: Lists::default(),
            ignored,
            whole,
            replaced,
            terminals: grammar.terminals.len() as u32,
            contexts: FxHashMap::default(),
            certificate: Certificate::default(),
            viable: FxHashMap::default(),
            settled: FxHashMap::default(),
            alone: [None, None, None],
            look: None,
            mark: None,
            spare: Vec::new(),
            spare_too: Vec::new(),
            flat: Vec::new(),
            seen_bytes: 0,
        });
        let all: Vec<u32> = (0..prepared.terminals).filter(|&at| used[at as usize]).collect();
        if core.checked && !looks && core.layout.is_none() && core.is_free_of_choice(&all)? {
            core.checked = false;
        }
        if core.checked {
            core.look_at_lines(&prepared)?;
            if let Some(layout) = &mut core.layout {
                layout.ends_lines = ending_lines(&core.stacks.tables, layout);
            }
            core.certify(&all)?;
            core.look = Some(Look::Close).filter(|_| !core.certificate.is_there());
        }
        let useless = (0..grammar.rules.len()).filter_map(|rule| {
            let symbol = grammar.terminals.len() + rule;
            match (prepared.unproductive[symbol], prepared.unreachable[symbol]) {
                (true, _) => Some((rule, Useless::Unproductive)),
                (_, true) => Some((rule, Useless::Unreachable)),
                _ => None,
            }
        });
        Ok(Some((core, useless.collect())))
    }

    /// The number of a list of readings.
    pub(crate) fn state(&mut self, readings: &[Reading]) -> u32 {
        self.flat.clear();
        self.flat.extend(readings.iter().flat_map(|one| [one.lexeme, one.place, one.forbidden]));
        self.states.intern(&self.flat)
    }

    pub(crate) fn reading_count(&self, state: u32) -> usize {
        self.states.get(state).len() / NUMBERS
    }

    pub(crate) fn reading(&self, state: u32, at: usize) -> Reading {
        let one = &self.states.get(state)[at * NUMBERS..][..NUMBERS];
        Reading { lexeme: one[0], place: one[1], forbidden: one[2] }
    }

    /// The readings of a state.
    pub(crate) fn readings(&self, state: u32) -> Vec<Reading> {
        (0..self.reading_count(state)).map(|at| self.reading(state, at)).collect()
    }

    /// Keeps what a search found out.
    pub(crate) fn learn(&mut self, reading: Reading, viable: bool) {
        if self.mark.is_none() && self.embedded.is_ahead(reading) {
            return;
        }
        self.viable.insert(reading, viable);
        if let Some(mark) = &mut self.mark {
            mark.learnt.push(reading);
        }
    }

    /// Keeps whether stacks are settled.
    pub(crate) fn note_settled(&mut self, stacks: u32, settled: bool) {
        self.settled.insert(stacks, settled);
        if let Some(mark) = &mut self.mark {
            mark.settled.push(stacks);
        }
    }

    /// Begins to note what is made, so that [`Core::forget`] can drop it: looking ahead meets
    /// many states that no text will ever be in.
    pub(crate) fn remember(&mut self) {
        let (states, places) = (self.states.len(), self.place_count());
        let (bytes, looks) = (self.stacks.memory_bytes(), self.embedded.look_ahead());
        self.mark = Some(Mark { states, places, bytes, looks, ..Mark::default() });
        self.stacks.remember();
    }

    /// Drops the states and stacks made since [`Core::remember`]; the lexer's stay. Stacks stay
    /// too as long as there is room for them: what is seen ahead of a text is nearly always seen
    /// again from its next places.
    pub(crate) fn forget(&mut self) {
        let Some(mark) = self.mark.take() else { return };
        let seen = self.stacks.memory_bytes().saturating_sub(mark.bytes);
        if self.states.len() == mark.states && self.seen_bytes + seen <= SEEN_BYTES {
            self.seen_bytes += seen;
            for reading in mark.learnt {
                if self.embedded.is_ahead(reading) {
                    self.viable.remove(&reading);
                }
            }
            if mark.looks {
                self.embedded.look_back();
            }
            return self.stacks.keep();
        }
        self.states.truncate(mark.states);
        self.forget_places(mark.places);
        self.rests.clear();
        if mark.looks {
            self.embedded.look_back();
        }
        for reading in mark.learnt {
            self.viable.remove(&reading);
        }
        for stacks in mark.settled {
            self.settled.remove(&stacks);
        }
        self.stacks.forget();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.stacks.memory_bytes()
            + self.lexer.memory_bytes()
            + self.scans.memory_bytes()
            + self.embedded.memory_bytes()
            + self.states.memory_bytes()
            + self.outlines.memory_bytes()
            + self.rests.capacity() * 17
            + self.contexts.len() * 16
            + self.viable.len() * 20
            + self.settled.len() * 12
            + self.certificate.memory_bytes()
            + self.alone.iter().flatten().map(|alone| alone.memory_bytes()).sum::<usize>()
            + self.layout.as_ref().map_or(0, |layout| layout.places.memory_bytes())
    }
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

pub(crate) fn ignored(grammar: &Grammar) -> Vec<u32> {
    let mut ignored: Vec<u32> = grammar.ignored.iter().map(|&at| at as u32).collect();
    ignored.sort_unstable();
    ignored.dedup();
    ignored
}

/// Bytes of a shortest text of each symbol that is not empty.
fn shortest(
    (lexer, embedded): (&mut Lexer, &Embedded),
    prepared: &Prepared,
    layout: Option<&Layout>,
) -> Result<Vec<u32>, Error> {
    let mut shortest = vec![NEVER; prepared.symbols as usize];
    for terminal in 0..prepared.terminals {
        let start = lexer.start(std::iter::once(terminal));
        for (terminal, bytes) in lexer.distances(start)? {
            shortest[terminal as usize] = bytes;
        }
        if let Some(machine) = embedded.machine(terminal)
            && let Some(bytes) = shortest_bytes(&*machine)?
        {
            shortest[terminal as usize] = bytes;
        }
    }
    if let Some(layout) = layout {
        // Levels have no text, and the end of the text may end a line.
        for terminal in [layout.indent, layout.dedent, layout.newline] {
            shortest[terminal as usize] = 0;
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
