//! Warm-up: masks of typical texts, computed before a request needs them.
//!
//! ```text
//!  typical input    {"name": "█"}       of the machine, with blanks
//!  filled           {"name": "word"}    with the first filler that the machine reads there
//!  tokens           {" name ": " word "}    each position's mask is computed and cached
//! ```
//!
//! Machines without typical inputs get their shortest member and members at random.
//!
//! A warm-up must not be felt. It takes no lock of its own. It computes each mask under a deadline
//! that passes as soon as another thread reads or asks for a mask ([`WarmUpSignal`]), so it holds a
//! machine's lock no longer than work between two checks of a deadline takes, about 0.1 ms. What a
//! deadline cut short is not cached.

mod typical_tokens;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use formalm_core::{
    CompletionHints, Error, InterruptCheck, LazyDfa, Machine, NUMBER_BLANK, ReadingHints,
    STRING_BLANK, StateId, deadline::Deadline, random_member,
};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::BpeEncoder;

use crate::constraint::Constraint;
use crate::epoch::{ConstraintState, StateEpoch};
use crate::warm_up::typical_tokens::typical_tokens;

/// Number of texts in a row without a new mask after which nothing new is expected. From a study of
/// 391 schemas.
const MAX_STALE_TEXTS: usize = 15;

/// Part of the memory limit, as a divisor, at which the warm-up stops: more would evict masks.
const MEMORY_DIVISOR: usize = 2;

/// Tokens read between two measurements of memory, which take microseconds each. Canonical masks
/// take more memory, and are measured one by one. Chosen, not measured.
const TOKENS_PER_MEASUREMENT: usize = 64;

/// Number of random members read from a machine without typical inputs. Chosen, not measured.
const RANDOM_MEMBERS: usize = 64;

/// Maximum bytes of a random member. Chosen, not measured.
const RANDOM_MEMBER_BYTES: usize = 64;

/// Contents of strings, the first of which that is allowed is read: words, and one value of each
/// common format.
const STRING_FILLERS: [&str; 24] = [
    "The first name",
    "example",
    "A",
    "john.doe@example.com",
    "https://www.example.com/path/to?x=1",
    "2024-05-17T10:30:00Z",
    "2024-05-17",
    "10:30:00Z",
    "10:30:00",
    "123e4567-e89b-12d3-a456-426614174000",
    "192.168.0.1",
    "2001:db8::1",
    "www.example.com",
    "P1DT2H",
    "/path/to",
    "abc_def",
    "abc-def",
    "1.0.0",
    "12345",
    "+1 555 123 4567",
    "#ff8800",
    "ABC-1234",
    "a1b2c3d4",
    "en-US",
];

/// Numbers, the first of which that is allowed is read.
const NUMBER_FILLERS: [&str; 8] = ["12", "3.75", "0.5", "1", "0", "100", "-1", "2024"];

/// The presence of a warm-up, and the wish of another thread that it end.
#[derive(Debug, Default)]
pub(crate) struct WarmUpSignal {
    running: AtomicUsize,
    is_unwanted: AtomicBool,
}

impl WarmUpSignal {
    /// Ends warm-ups in progress. It costs a load where there are none.
    #[inline]
    pub(crate) fn stop(&self) {
        if self.running.load(Ordering::Relaxed) > 0 {
            self.is_unwanted.store(true, Ordering::Relaxed);
        }
    }

    fn begin(&self) -> RunningWarmUp<'_> {
        if self.running.fetch_add(1, Ordering::Relaxed) == 0 {
            self.is_unwanted.store(false, Ordering::Relaxed);
        }
        RunningWarmUp(self)
    }
}

/// A warm-up in progress, until it is dropped.
struct RunningWarmUp<'a>(&'a WarmUpSignal);

impl Drop for RunningWarmUp<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<K: MaskClasses> Constraint<K> {
    /// Computes masks of typical texts for at most `budget`, and returns how many it cached.
    ///
    /// It ends earlier if a matcher of the constraint reads or asks for a mask that is not cached,
    /// at half of the memory limit, and when texts lead to no new masks. Canonical tokens need
    /// `encoder`; other constraints read tokens that most tokenizers would make.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`]. A limit ends the text that reached it.
    pub fn warm_up(
        &self,
        encoder: Option<&BpeEncoder>,
        budget: Duration,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<usize, Error> {
        let running = self.warm_up_signal().begin();
        let epoch = self.current();
        let mut warm_up = WarmUp {
            epoch: &epoch,
            encoder,
            deadline: Deadline::starting_now("warm up", budget),
            is_unwanted: &running.0.is_unwanted,
            words: vec![0; self.words()],
            max_bytes: self.stats().limit / MEMORY_DIVISOR,
        };
        let before = epoch.mask_count();
        // Texts of a user's parser would be made by the parser.
        if !epoch.machine().is_exact() {
            return Ok(0);
        }
        let (mut stale, mut made) = (0, before);
        for number in 0.. {
            poll.ask()?;
            if warm_up.is_over() || stale >= MAX_STALE_TEXTS || epoch.is_retired() {
                break;
            }
            if !warm_up.read_text(number) {
                break;
            }
            let cached = epoch.mask_count();
            stale = if cached > made { 0 } else { stale + 1 };
            if cached > made && warm_up.is_full() {
                break;
            }
            made = cached;
        }
        Ok(epoch.mask_count().saturating_sub(before))
    }
}

/// The state of a warm-up.
struct WarmUp<'a, K: MaskClasses> {
    epoch: &'a StateEpoch<K>,
    encoder: Option<&'a BpeEncoder>,
    deadline: Deadline,
    is_unwanted: &'a AtomicBool,
    /// The bitmask of the current position; of no further use.
    words: Vec<u32>,
    /// Memory at which the warm-up stops, in bytes.
    max_bytes: usize,
}

impl<K: MaskClasses> WarmUp<'_, K> {
    fn is_over(&self) -> bool {
        self.is_unwanted.load(Ordering::Relaxed)
            || self.deadline.begun.elapsed() >= self.deadline.allowed
    }

    fn is_full(&self) -> bool {
        self.epoch.sizes().total() > self.max_bytes
    }

    /// Runs work that ends with the budget, or when the warm-up is unwanted.
    fn within_budget<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Option<T> {
        self.deadline.run_unless(self.is_unwanted, work).ok()
    }

    /// Reads text number `number`. Returns `false` if there is none.
    fn read_text(&mut self, number: usize) -> bool {
        let machine = &**self.epoch.machine();
        let text = match machine.typical_input(number) {
            Some(typical) => {
                let is_full = || self.is_full();
                self.within_budget(|| Ok(filled(machine, &typical, number, &is_full)))
            }
            // A machine with typical inputs has no others.
            None if number > 0 && machine.typical_input(0).is_some() => return false,
            None if number > RANDOM_MEMBERS => return false,
            None if number == 0 => {
                self.within_budget(|| machine.quick_shortest_completion(machine.start()))
            }
            None => self.within_budget(|| random_text(machine, number)),
        };
        if let Some(text) = text {
            self.read_tokens(&self.tokens(&text));
        }
        true
    }

    /// Returns the tokens of a text: canonical ones, or those that most tokenizers would make.
    fn tokens(&self, text: &[u8]) -> Vec<u32> {
        match (self.encoder, std::str::from_utf8(text)) {
            (Some(encoder), Ok(text)) => encoder.encode(text).unwrap_or_default(),
            _ => typical_tokens(self.epoch.vocabulary(), text),
        }
    }

    /// Computes the masks along tokens, as far as they are allowed.
    fn read_tokens(&mut self, tokens: &[u32]) {
        let mut position = self.epoch.start();
        self.visit(position);
        let tokens_between = if self.epoch.is_canonical() { 1 } else { TOKENS_PER_MEASUREMENT };
        for (at, &token) in tokens.iter().enumerate() {
            if self.is_over() || at % tokens_between == 0 && self.is_full() {
                return;
            }
            let read = self.within_budget(|| Ok(self.epoch.read(position, token)));
            let Some(Ok(next)) = read else { return };
            position = next;
            self.visit(position);
        }
    }

    /// Computes the mask of a position unless it is cached.
    fn visit(&mut self, position: ConstraintState) {
        let mut words = std::mem::take(&mut self.words);
        self.within_budget(|| match self.epoch.fill_ready(position, &mut words)? {
            true => Ok(()),
            false => self.epoch.fill(position, &mut words),
        });
        self.words = words;
    }
}

/// Returns a typical input with its blanks filled, up to the place at which it is refused, the work
/// on it ends, or the memory is full.
fn filled(
    machine: &impl LazyDfa,
    typical: &[u8],
    number: usize,
    is_full: &dyn Fn() -> bool,
) -> Vec<u8> {
    let mut text = Vec::with_capacity(2 * typical.len());
    let mut state = machine.start();
    let (mut rest, mut turn) = (typical, number);
    while !rest.is_empty() {
        let is_blank = |byte: &u8| matches!(*byte, STRING_BLANK | NUMBER_BLANK);
        let blank = rest.iter().position(is_blank).unwrap_or(rest.len());
        let (literal, after) = rest.split_at(blank);
        text.extend(literal);
        let Ok(Ok(next)) = machine.walk(state, literal) else { break };
        let Some((&blank, after)) = after.split_first() else { break };
        if is_full() {
            break;
        }
        let Ok(Some((filler, next))) = choose_filler(machine, next, (blank, after), turn) else {
            break;
        };
        text.extend(filler);
        (state, rest, turn) = (next, after, turn + 1);
    }
    text
}

/// Returns the first filler from number `turn` on that the machine reads in a blank before `after`,
/// and the state after it. Where none fits, the shortest completion begins with one.
fn choose_filler(
    machine: &impl LazyDfa,
    state: StateId,
    (blank, after): (u8, &[u8]),
    turn: usize,
) -> Result<Option<(Vec<u8>, StateId)>, Error> {
    let fillers = if blank == STRING_BLANK { &STRING_FILLERS[..] } else { &NUMBER_FILLERS[..] };
    let end = &after[..after.len().min(1)];
    let fits = |filler: &[u8]| -> Result<Option<StateId>, Error> {
        let Ok(next) = machine.walk(state, filler)? else { return Ok(None) };
        let ends = match end {
            [] => machine.is_accepting(next)?,
            end => machine.walk(next, end)?.is_ok(),
        };
        Ok(ends.then_some(next))
    };
    for at in 0..fillers.len() {
        let filler = fillers[(at + turn) % fillers.len()].as_bytes();
        if let Some(next) = fits(filler)? {
            return Ok(Some((filler.to_vec(), next)));
        }
    }
    let shortest = machine.shortest_completion(state)?;
    let ends =
        |byte: &u8| if blank == STRING_BLANK { *byte == b'"' } else { b",]} \n".contains(byte) };
    let filler = &shortest[..shortest.iter().position(ends).unwrap_or(shortest.len())];
    Ok(fits(filler)?.map(|next| (filler.to_vec(), next)))
}

/// Returns a random member; the same number gives the same one.
fn random_text(machine: &impl Machine, number: usize) -> Result<Vec<u8>, Error> {
    random_member(
        machine,
        number as u64,
        RANDOM_MEMBER_BYTES,
        &mut InterruptCheck::new(&mut || true),
    )
}
