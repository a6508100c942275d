//! Alternatives that longest-match lexing makes unusable.
//!
//! With [`Lexing::Longest`], a lexeme is the longest match of the terminals allowed at its
//! position. A terminal is therefore never followed by another one if each string of the second
//! starts with an extension of the first: `/[^<]+/` before `"\n</p>"`. The usable productions are a
//! least fixed point, like productivity, over the terminals that each symbol can start and end
//! with.
//!
//! The report is sound: whether two terminals can be adjacent is decided for these two and for the
//! terminals that certainly compete with the first, and every other restriction is ignored. It is
//! incomplete: an alternative may be unusable for other reasons.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use formalm_core::{Error, Interner, LazyDfa, StateId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::grammar::{Grammar, GrammarNote, Lexing, RuleBody};
use crate::lexer::terminal_automata::{
    TerminalAutomaton, build_terminal_automata, unproductive_terminals,
};
use crate::limits::GrammarLimits;
use crate::normal_form::lowering::{LoweredRules, Production};
use crate::normal_form::productive;

/// Maximum steps of automata and of the fixed point together, a few tenths of a second. Larger
/// grammars are not analyzed. Chosen, not measured.
const MAX_STEPS: usize = 2_000_000;
/// Maximum scan states per pair of terminals. Beyond it they are assumed to be adjacent. Chosen,
/// not measured.
const MAX_CONFIGURATIONS: usize = 3_000;
/// Maximum competitors considered per terminal. Chosen, not measured.
const MAX_COMPETITORS: usize = 32;
/// Maximum characters of an alternative quoted in a note.
const MAX_SHOWN_CHARS: usize = 60;

/// Returns notes on alternatives that can never be used because the longest lexeme wins.
///
/// # Errors
///
/// As [`crate::GrammarAutomaton::new`], for terminals that cannot be compiled.
pub fn unusable_alternatives(
    grammar: &Grammar,
    limits: GrammarLimits,
) -> Result<Vec<GrammarNote>, Error> {
    if grammar.lexing != Lexing::Longest {
        return Ok(Vec::new());
    }
    grammar.check()?;
    let (readers, nullable) = build_terminal_automata(grammar)?;
    let unproductive = unproductive_terminals(grammar, &readers)?;
    let lowering = LoweredRules::new(grammar, &nullable, limits.productions)?;
    let productive = productive(&lowering.productions, lowering.symbols, &unproductive);
    let is_kept = |one: &Production| one.right.iter().all(|&one| productive[one as usize]);
    let kept: Vec<usize> =
        (0..lowering.productions.len()).filter(|&at| is_kept(&lowering.productions[at])).collect();
    let mut analysis = UnusableAnalysis {
        grammar,
        readers: &readers,
        productions: kept.iter().map(|&at| &lowering.productions[at]).collect(),
        nullable: Vec::new(),
        competitors: Vec::new(),
        symbols: lowering.symbols as usize,
        elements: Interner::default(),
        pairs: FxHashMap::default(),
        steps: 0,
    };
    let Some(causes) = analysis.find_causes()? else { return Ok(Vec::new()) };
    let first = grammar.terminals.len() as u32;
    let mut notes: Vec<GrammarNote> = Vec::new();
    for (at, cause) in causes {
        let (left, at) = (analysis.productions[at].left, kept[at]);
        let owner = lowering.owners[(left - first) as usize] as usize;
        let rule = &grammar.rules[owner];
        let whole = left == first + owner as u32;
        let message = match (&rule.body, whole) {
            (RuleBody::Choice(list), true)
                if list.len() > 1 && !matches!(cause, UnusableCause::NeverAdjacent(_, _, true)) =>
            {
                let one = list.get(lowering.alternatives[at] as usize);
                let written = one.map_or_else(String::new, |one| shortened(one, grammar));
                format!("the alternative {written} of {} can never be used", rule.name)
            }
            _ if matches!(cause, UnusableCause::NeverAdjacent(_, _, true)) => {
                format!("an optional part of the rule {} can never be used", rule.name)
            }
            (_, true) => format!("the rule {} can never be used", rule.name),
            _ => format!("a part of the rule {} can never be used", rule.name),
        };
        let message = format!("{message}: {}", analysis.reason(&cause)?);
        if notes.iter().all(|note| note.message != message) {
            notes.push(GrammarNote { message, span: rule.span });
        }
    }
    Ok(notes)
}

/// The reason why a production is unusable by itself.
enum UnusableCause {
    /// A terminal all of whose strings belong to terminals of higher priority.
    NeverMatched(u32),
    /// Two adjacent symbols that cannot be adjacent: the first terminal, with its competitors,
    /// extends over the second. The flag tells whether the second symbol is nullable.
    NeverAdjacent(u32, u32, bool),
}

/// Receives a lexeme that is not read, the input after it, and the terminal that reads both.
type LongerLexemeVisitor<'a> = dyn FnMut(&[u8], &[u8], u32) + 'a;

/// A bit set of terminals.
type TerminalSet = Vec<u64>;

fn has(set: &TerminalSet, at: u32) -> bool {
    set[at as usize / 64] >> (at % 64) & 1 == 1
}

fn merge_stacks(set: &mut TerminalSet, other: &TerminalSet) -> bool {
    let mut changed = false;
    for (one, other) in set.iter_mut().zip(other) {
        changed |= *one | other != *one;
        *one |= other;
    }
    changed
}

fn elements(set: &TerminalSet) -> impl Iterator<Item = u32> + '_ {
    (0..set.len() as u32 * 64).filter(|&at| has(set, at))
}

struct UnusableAnalysis<'a> {
    grammar: &'a Grammar,
    readers: &'a [Option<Arc<TerminalAutomaton>>],
    productions: Vec<&'a Production>,
    nullable: Vec<bool>,
    /// Per symbol: terminals that are allowed wherever it begins.
    competitors: Vec<TerminalSet>,
    symbols: usize,
    /// Terminals with their competitors.
    elements: Interner<(u32, Vec<u32>)>,
    /// The answers to "can this element be followed by this terminal?".
    pairs: FxHashMap<(u32, u32), bool>,
    steps: usize,
}

/// The terminals that a symbol can start and end with, as far as known.
#[derive(Clone, Default)]
struct EndTerminals {
    firsts: BTreeSet<u32>,
    lasts: BTreeSet<u32>,
}

impl UnusableAnalysis<'_> {
    fn terminals(&self) -> u32 {
        self.grammar.terminals.len() as u32
    }

    fn exceeds_budget(&mut self, steps: usize) -> bool {
        self.steps += steps;
        self.steps > MAX_STEPS
    }

    /// Returns the productions that are unusable by themselves; `None` if that exceeds the step
    /// limit.
    fn find_causes(&mut self) -> Result<Option<Vec<(usize, UnusableCause)>>, Error> {
        if !self.find_nullable() || !self.find_competitors() {
            return Ok(None);
        }
        let mut ends = vec![EndTerminals::default(); self.symbols];
        let mut changed = true;
        while changed {
            changed = false;
            for at in 0..self.productions.len() {
                let Ok(found) = self.first_and_last(at, &ends, &mut Vec::new())? else { continue };
                let left = self.productions[at].left as usize;
                let size = (ends[left].firsts.len(), ends[left].lasts.len());
                if self.exceeds_budget(1 + found.firsts.len() + found.lasts.len()) {
                    return Ok(None);
                }
                ends[left].firsts.extend(found.firsts);
                ends[left].lasts.extend(found.lasts);
                changed |= size != (ends[left].firsts.len(), ends[left].lasts.len());
            }
        }
        let reachable = self.reachable();
        let mut causes = Vec::new();
        for at in 0..self.productions.len() {
            if reachable[self.productions[at].left as usize] {
                let mut lost_optional = Vec::new();
                match self.first_and_last(at, &ends, &mut lost_optional)? {
                    Err(cause) => causes.extend(cause.map(|cause| (at, cause))),
                    Ok(_) => causes.extend(lost_optional.into_iter().map(|cause| (at, cause))),
                }
            }
        }
        Ok((!self.exceeds_budget(0)).then_some(causes))
    }

    fn reachable(&self) -> Vec<bool> {
        let mut of: Vec<Vec<usize>> = vec![Vec::new(); self.symbols];
        for (at, one) in self.productions.iter().enumerate() {
            of[one.left as usize].push(at);
        }
        let mut reachable = vec![false; self.symbols];
        let mut open = vec![self.terminals() + self.grammar.start as u32];
        while let Some(symbol) = open.pop() {
            if !std::mem::replace(&mut reachable[symbol as usize], true) {
                let right = of[symbol as usize].iter().flat_map(|&at| &self.productions[at].right);
                open.extend(right);
            }
        }
        reachable
    }

    fn find_nullable(&mut self) -> bool {
        self.nullable = vec![false; self.symbols];
        let mut changed = true;
        while changed {
            changed = false;
            for one in &self.productions {
                if !self.nullable[one.left as usize]
                    && one.right.iter().all(|&one| self.nullable[one as usize])
                {
                    self.nullable[one.left as usize] = true;
                    changed = true;
                }
            }
            self.steps += self.productions.len();
            if self.steps > MAX_STEPS {
                return false;
            }
        }
        true
    }

    /// Computes the terminals that certainly compete where a symbol begins: those it starts with,
    /// and those of every symbol that starts with it wherever it occurs.
    fn find_competitors(&mut self) -> bool {
        let (count, words) = (self.terminals(), self.grammar.terminals.len() / 64 + 1);
        let mut first: Vec<TerminalSet> = vec![vec![0; words]; self.symbols];
        for at in 0..count {
            first[at as usize][at as usize / 64] |= 1 << (at % 64);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for one in &self.productions {
                for &symbol in &one.right {
                    let other = first[symbol as usize].clone();
                    changed |= merge_stacks(&mut first[one.left as usize], &other);
                    if !self.nullable[symbol as usize] {
                        break;
                    }
                }
            }
            self.steps += self.productions.len() * words;
            if self.steps > MAX_STEPS {
                return false;
            }
        }
        let start = count + self.grammar.start as u32;
        let all: TerminalSet = vec![u64::MAX; words];
        let mut found: Vec<TerminalSet> = vec![all.clone(); self.symbols];
        let mut changed = true;
        while changed {
            let mut common: Vec<TerminalSet> = vec![all.clone(); self.symbols];
            common[start as usize] = vec![0; words];
            for one in &self.productions {
                for (at, &symbol) in one.right.iter().enumerate() {
                    let around = (at == 0).then(|| &found[one.left as usize]);
                    for (word, set) in common[symbol as usize].iter_mut().enumerate() {
                        *set &= around.map_or(0, |around| around[word]);
                    }
                }
            }
            for (common, first) in common.iter_mut().zip(&first) {
                merge_stacks(common, first);
            }
            changed = common != found;
            found = common;
            self.steps += self.productions.len() * words;
            if self.steps > MAX_STEPS {
                return false;
            }
        }
        self.competitors = found;
        true
    }

    /// Returns the terminals that a production starts and ends with. Otherwise returns the reason
    /// why it is unusable, unless the reason lies in one of its symbols. Appends to `lost_optional`
    /// the reasons why nullable symbols must be empty.
    fn first_and_last(
        &mut self,
        at: usize,
        ends: &[EndTerminals],
        lost_optional: &mut Vec<UnusableCause>,
    ) -> Result<Result<EndTerminals, Option<UnusableCause>>, Error> {
        let production = self.productions[at];
        let mut so_far = EndTerminals::default();
        let mut is_empty = true;
        for (place, &symbol) in production.right.iter().enumerate() {
            let own = if symbol < self.terminals() {
                let compete = (place == 0).then_some(production.left);
                let element = self.element(symbol, compete);
                if !self.can_be_matched(element)? {
                    return Ok(Err(Some(UnusableCause::NeverMatched(element))));
                }
                EndTerminals {
                    firsts: [symbol].into_iter().collect(),
                    lasts: [element].into_iter().collect(),
                }
            } else {
                ends[symbol as usize].clone()
            };
            let nullable = self.nullable[symbol as usize];
            if own.firsts.is_empty() {
                if !nullable {
                    return Ok(Err(None));
                }
                continue;
            }
            let follows = self.follows(&so_far.lasts, &own.firsts)?;
            if !is_empty && !follows {
                let (last, first) = (so_far.lasts.iter().min(), own.firsts.iter().min());
                let pair = last.zip(first);
                let cause =
                    pair.map(|(&last, &first)| UnusableCause::NeverAdjacent(last, first, nullable));
                if !nullable {
                    return Ok(Err(cause));
                }
                lost_optional.extend(cause);
            }
            if is_empty {
                so_far.firsts.extend(&own.firsts);
            }
            if !nullable {
                so_far.lasts.clear();
            }
            if is_empty || follows {
                so_far.lasts.extend(own.lasts);
            }
            is_empty &= nullable;
        }
        Ok(Ok(so_far))
    }

    /// Returns the id of a terminal with its competitors at the start of a symbol.
    fn element(&mut self, terminal: u32, begins: Option<u32>) -> u32 {
        let mut compete = vec![terminal];
        if let Some(symbol) = begins {
            compete.extend(elements(&self.competitors[symbol as usize]));
        }
        if self.grammar.indentation.is_none() {
            compete.extend(self.grammar.ignored.iter().map(|&at| at as u32));
        }
        compete.retain(|&one| one < self.terminals() && self.is_plain(one));
        compete.sort_unstable();
        compete.dedup();
        if compete.len() > MAX_COMPETITORS {
            compete = vec![terminal];
        }
        self.elements.intern((terminal, compete))
    }

    /// Returns `true` if a terminal is fully described by its strings.
    fn is_plain(&self, terminal: u32) -> bool {
        let one = &self.grammar.terminals[terminal as usize];
        let indentation = self.grammar.indentation.as_ref();
        let is_indentation_terminal = |at: usize| {
            indentation.is_some_and(|indentation| {
                [indentation.newline, indentation.indent, indentation.dedent].contains(&at)
            })
        };
        !one.language.is_lexeme()
            && one.sublanguage.is_none()
            && self.readers[terminal as usize].is_some()
            && !is_indentation_terminal(terminal as usize)
    }

    fn can_be_matched(&mut self, element: u32) -> Result<bool, Error> {
        if !self.is_plain(self.elements[element].0) {
            return Ok(true);
        }
        self.can_follow(element, None)
    }

    /// Returns `true` if one of `firsts` can follow one of `lasts`, directly or after ignored
    /// input.
    fn follows(&mut self, lasts: &BTreeSet<u32>, firsts: &BTreeSet<u32>) -> Result<bool, Error> {
        let mut open: Vec<u32> = lasts.iter().copied().collect();
        let mut seen = lasts.clone();
        let mut ignored: Vec<u32> = self.grammar.ignored.iter().map(|&at| at as u32).collect();
        // Inside brackets, line breaks are skipped.
        ignored.extend(self.grammar.indentation.as_ref().map(|one| one.newline as u32));
        while let Some(last) = open.pop() {
            for &first in firsts {
                if self.can_follow(last, Some(first))? {
                    return Ok(true);
                }
            }
            for &one in &ignored {
                if self.can_follow(last, Some(one))? {
                    let element = self.element(one, None);
                    if seen.insert(element) {
                        open.push(element);
                    }
                }
            }
        }
        Ok(false)
    }

    fn can_follow(&mut self, element: u32, next: Option<u32>) -> Result<bool, Error> {
        let terminal = self.elements[element].0;
        if !self.is_plain(terminal) || next.is_some_and(|next| !self.is_plain(next)) {
            return Ok(true);
        }
        let key = (element, next.unwrap_or(u32::MAX));
        if let Some(&known) = self.pairs.get(&key) {
            return Ok(known);
        }
        let can = self.search(element, next, &mut |_, _, _| ())?;
        self.pairs.insert(key, can);
        Ok(can)
    }

    /// Searches for a lexeme that is read among its competitors and, if `next` is given, before a
    /// string of that terminal. `longer` receives each lexeme that is not read because a longer one
    /// wins.
    fn search(
        &mut self,
        element: u32,
        next: Option<u32>,
        longer: &mut LongerLexemeVisitor<'_>,
    ) -> Result<bool, Error> {
        let (terminal, compete) = self.elements[element].clone();
        let readers: Vec<&TerminalAutomaton> =
            compete.iter().filter_map(|&one| self.readers[one as usize].as_deref()).collect();
        let next = next.and_then(|next| self.readers[next as usize].as_deref());
        let own = compete.iter().position(|&one| one == terminal).unwrap_or(0);
        let starts = readers.iter().copied().chain(next).flat_map(TerminalAutomaton::class_starts);
        let mut bytes: Vec<u8> = starts.copied().collect();
        bytes.sort_unstable();
        bytes.dedup();
        /// States of the competitors, and the state of the next terminal once it has begun.
        type ScanState = (Vec<Option<StateId>>, Option<StateId>);
        let start: ScanState = (readers.iter().map(|one| Some(one.start())).collect(), None);
        let mut seen: FxHashSet<ScanState> = FxHashSet::from_iter([start.clone()]);
        let mut open = VecDeque::from([(start, Vec::new(), 0)]);
        while let Some(((states, following), text, ended)) = open.pop_front() {
            for &byte in &bytes {
                if self.exceeds_budget(1 + readers.len()) || seen.len() > MAX_CONFIGURATIONS {
                    return Ok(true);
                }
                let following = match (following, next) {
                    (Some(state), Some(next)) => match next.step(state, byte)? {
                        None => continue,
                        state => state,
                    },
                    _ => None,
                };
                let mut after = Vec::with_capacity(readers.len());
                for (reader, state) in readers.iter().zip(&states) {
                    after.push(match state {
                        Some(state) => reader.step(*state, byte)?,
                        None => None,
                    });
                }
                let matches = |at: usize| {
                    after[at]
                        .is_some_and(|state| TerminalAutomaton::is_accepting(readers[at], state))
                };
                let text = [&text[..], &[byte]].concat();
                let mut found: Vec<(ScanState, usize)> = Vec::new();
                if let (Some(state), Some(next)) = (following, next) {
                    if let Some(at) = (0..readers.len()).find(|&at| matches(at)) {
                        longer(&text[..ended], &text[ended..], compete[at]);
                        continue;
                    }
                    if next.is_accepting(state) || after.iter().all(Option::is_none) {
                        return Ok(true);
                    }
                    found.push(((after, following), ended));
                } else if after[own].is_some() {
                    if matches(own) && !(0..own).any(matches) {
                        let Some(next) = next else { return Ok(true) };
                        found.push(((after.clone(), Some(next.start())), text.len()));
                    }
                    found.push(((after, None), 0));
                }
                for (one, ended) in found {
                    if seen.insert(one.clone()) {
                        open.push_back((one, text.clone(), ended));
                    }
                }
            }
        }
        Ok(false)
    }

    fn reason(&mut self, cause: &UnusableCause) -> Result<String, Error> {
        let grammar = self.grammar;
        let name = |at: u32| &grammar.terminals[at as usize].name;
        match cause {
            UnusableCause::NeverMatched(element) => {
                let (terminal, compete) = &self.elements[*element];
                let before = compete.iter().filter(|&one| one < terminal);
                let before: Vec<&str> = before.map(|&one| name(one).as_str()).collect();
                let (name, before) = (name(*terminal), before.join(", "));
                Ok(format!(
                    "every string of {name} also matches {before}, which takes precedence: give \
                     {name} a higher priority, or use lexing=\"any\""
                ))
            }
            UnusableCause::NeverAdjacent(element, next, _) => {
                let terminal = self.elements[*element].0;
                let mut found: Option<(Vec<u8>, Vec<u8>, u32)> = None;
                self.search(*element, Some(*next), &mut |text, more, longer| {
                    if found.is_none() {
                        found = Some((text.to_vec(), more.to_vec(), longer));
                    }
                })?;
                let (first, second) = (name(terminal), name(*next));
                let why = match found {
                    Some((_, more, longer)) if longer == terminal => {
                        let more = quoted(&more);
                        format!("{first} also matches {more}: exclude it from {first}, or use")
                    }
                    Some((text, more, longer)) => {
                        let whole = quoted(&[text, more].concat());
                        format!("{whole} is a single lexeme of {}: use", name(longer))
                    }
                    None => "a longer lexeme is read: use".to_owned(),
                };
                Ok(format!(
                    "{second} cannot follow {first}, because the longest lexeme is read and {why} \
                     lexing=\"any\""
                ))
            }
        }
    }
}

fn quoted(text: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(text))
}

/// Renders a right-hand side in source notation, truncated if long.
fn shortened(node: &RuleBody, grammar: &Grammar) -> String {
    let mut text = written(node, grammar);
    if text.chars().count() > MAX_SHOWN_CHARS {
        text = text.chars().take(MAX_SHOWN_CHARS - 1).chain(['…']).collect();
    }
    text
}

fn written(node: &RuleBody, grammar: &Grammar) -> String {
    let list = |list: &[RuleBody], between: &str| {
        let all: Vec<String> = list.iter().map(|one| written(one, grammar)).collect();
        all.join(between)
    };
    match node {
        RuleBody::Empty => "\"\"".to_owned(),
        RuleBody::Terminal(at) => grammar.terminals[*at].name.clone(),
        RuleBody::Rule(at) => grammar.rules[*at].name.clone(),
        RuleBody::Sequence(all) => list(all, " "),
        RuleBody::Choice(all) => format!("({})", list(all, " | ")),
        RuleBody::Repeat(one, min, max) => {
            let sign = match (min, max) {
                (0, None) => "*".to_owned(),
                (1, None) => "+".to_owned(),
                (0, Some(1)) => "?".to_owned(),
                (min, None) => format!("{{{min},}}"),
                (min, Some(max)) => format!("{{{min},{max}}}"),
            };
            match &**one {
                RuleBody::Sequence(all) if all.len() > 1 => format!("({}){sign}", list(all, " ")),
                one => written(one, grammar) + &sign,
            }
        }
    }
}
