//! The position of one sequence in a constraint.

use std::sync::Arc;

use formalm_automata::explicit::Poll;
use formalm_automata::{ByteSet, Error, Keys, Machine, Viability, outside_special};

use crate::constraint::{Constraint, Position, Unfollowed};
use crate::form::Form;
use crate::mask::{Words, patch};

/// Why a token or text was not read; the matcher is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The id is not one of the vocabulary.
    OutOfRange,
    /// A special token: an id without bytes.
    NoBytes,
    /// An end token where the text is not a member.
    NotAccepting,
    /// The sequence has ended already.
    Ended,
    /// After `good` bytes the next byte leads to no member.
    NotViable {
        /// Bytes of the token or text that are viable.
        good: usize,
    },
    /// Members go on with the token's bytes, but none whose canonical tokens go on so.
    NotCanonical,
    /// Bytes without tokens, where tokens must be canonical.
    NoTokens,
    /// The machine outgrew its limits.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Failed(error)
    }
}

/// Steps of work that finding the bytes after a state counts for, where it is new.
const STEPS_OF_A_STATE: usize = 1 << 10;
/// Steps of work that a new mask counts for.
const STEPS_OF_A_MASK: usize = 1 << 14;

/// One thing read.
#[derive(Clone, Copy, Debug)]
struct Step {
    position: Position,
    token: Option<u32>,
    bytes: usize,
}

/// A cursor: a stack of states, one for each thing read.
#[derive(Debug)]
pub struct Matcher<K = Viability> {
    constraint: Arc<Constraint<K>>,
    start: Position,
    steps: Vec<Step>,
    text: Vec<u8>,
    ended: bool,
}

impl<K> Clone for Matcher<K> {
    fn clone(&self) -> Matcher<K> {
        Matcher {
            constraint: Arc::clone(&self.constraint),
            start: self.start,
            steps: self.steps.clone(),
            text: self.text.clone(),
            ended: self.ended,
        }
    }
}

impl<K: Keys> Matcher<K> {
    /// A cursor before anything was read.
    pub fn new(constraint: Arc<Constraint<K>>) -> Matcher<K> {
        let start = constraint.start();
        Matcher::at(constraint, start)
    }

    /// A cursor before anything was read, after tokens that the text goes on from.
    ///
    /// # Errors
    ///
    /// [`Unfollowed`].
    pub fn after(constraint: Arc<Constraint<K>>, tokens: &[u32]) -> Result<Self, Unfollowed> {
        let start = constraint.start_after(tokens)?;
        Ok(Matcher::at(constraint, start))
    }

    fn at(constraint: Arc<Constraint<K>>, start: Position) -> Matcher<K> {
        Matcher { constraint, start, steps: Vec::new(), text: Vec::new(), ended: false }
    }

    /// The constraint.
    pub fn constraint(&self) -> &Arc<Constraint<K>> {
        &self.constraint
    }

    /// The position in the constraint.
    pub fn position(&self) -> Position {
        match self.steps.last() {
            Some(step) => step.position,
            None => self.start,
        }
    }

    /// Bytes read so far.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Tokens read so far; bytes read without a token are not among them.
    pub fn token_ids(&self) -> Vec<u32> {
        self.steps.iter().filter_map(|step| step.token).collect()
    }

    /// Whether an end token was read.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether the text is a member.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn is_accepting(&self) -> Result<bool, Error> {
        self.constraint.is_accepting(self.position())
    }

    /// Whether no text may follow.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the machine would outgrow its limits.
    pub fn is_finished(&self) -> Result<bool, Error> {
        if self.ended || self.knows_bytes() {
            return Ok(self.ended || self.live_bytes()?.is_empty());
        }
        let mut words = vec![0; self.constraint.words()];
        self.fill(&mut words)?;
        patch(&mut words, &[], self.constraint.vocabulary().end_token_ids());
        Ok(words.iter().all(|&word| word == 0))
    }

    /// Bytes that may follow.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn live_bytes(&self) -> Result<ByteSet, Error> {
        if self.ended {
            return Ok(ByteSet::default());
        }
        if !self.knows_bytes() {
            return self.first_bytes();
        }
        self.constraint.machine().live_bytes(self.constraint.state(self.position()))
    }

    /// Whether the bytes that may follow are known without the tokens.
    fn knows_bytes(&self) -> bool {
        !self.constraint.is_canonical() && self.constraint.machine().is_exact()
    }

    /// The bytes that allowed tokens begin with.
    fn first_bytes(&self) -> Result<ByteSet, Error> {
        let mut words = vec![0; self.constraint.words()];
        self.fill(&mut words)?;
        let vocabulary = self.constraint.vocabulary();
        let allowed = |id: &u32| words[*id as usize >> 5] >> (id & 31) & 1 != 0;
        let mut bytes = ByteSet::default();
        for id in (0..vocabulary.len() as u32).filter(allowed) {
            if let Some(&first) = vocabulary.token_bytes(id).and_then(<[u8]>::first) {
                bytes.insert(first);
            }
        }
        Ok(bytes)
    }

    /// Writes the mask over `out`; after an end token nothing is allowed.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    #[inline]
    pub fn fill(&self, out: &mut Words) -> Result<(), Error> {
        if self.ended {
            out.fill(0);
            return Ok(());
        }
        self.constraint.fill(self.position(), out)
    }

    /// The same if the mask is stored, so that it takes less than a microsecond; `false`, and
    /// nothing is written, if it is not.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    #[inline]
    pub fn fill_ready(&self, out: &mut Words) -> Result<bool, Error> {
        if self.ended {
            out.fill(0);
            return Ok(true);
        }
        self.constraint.fill_ready(self.position(), out)
    }

    /// The form of the mask, if it is stored as it is.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn form(&self) -> Result<Option<Form>, Error> {
        if self.ended { Ok(None) } else { self.constraint.form(self.position()) }
    }

    /// Whether a token is allowed.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn allows(&self, token_id: u32) -> Result<bool, Error> {
        Ok(!self.ended && self.constraint.allows(self.position(), token_id)?)
    }

    /// Reads a token.
    ///
    /// # Errors
    ///
    /// A [`Refusal`]; nothing was read then.
    #[inline]
    pub fn advance(&mut self, token_id: u32) -> Result<(), Refusal> {
        if self.ended {
            return Err(Refusal::Ended);
        }
        let vocabulary = self.constraint.vocabulary();
        if vocabulary.is_end(token_id) {
            if !self.is_accepting()? {
                return Err(Refusal::NotAccepting);
            }
            self.steps.push(Step { position: self.position(), token: Some(token_id), bytes: 0 });
            self.ended = true;
            return Ok(());
        }
        let position = self.constraint.read(self.position(), token_id)?;
        let bytes = vocabulary.token_bytes(token_id).unwrap_or_default();
        self.steps.push(Step { position, token: Some(token_id), bytes: bytes.len() });
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads tokens until one is refused; how many were read, and why the next was not.
    pub fn advance_many(
        &mut self,
        token_ids: &[u32],
        poll: &mut Poll<'_>,
    ) -> (usize, Option<Refusal>) {
        for (count, &token_id) in token_ids.iter().enumerate() {
            let polled = poll.tick(STEPS_OF_A_STATE).map_err(Refusal::Failed);
            if let Err(refusal) = polled.and_then(|()| self.advance(token_id)) {
                return (count, Some(refusal));
            }
        }
        (token_ids.len(), None)
    }

    /// Reads bytes without a token; one step for [`Matcher::rollback`].
    ///
    /// # Errors
    ///
    /// A [`Refusal`]; nothing was read then.
    pub fn advance_bytes(&mut self, bytes: &[u8], poll: &mut Poll<'_>) -> Result<(), Refusal> {
        if self.ended {
            return Err(Refusal::Ended);
        }
        let position = self.constraint.read_bytes(self.position(), bytes, poll)?;
        self.push(position, bytes);
        Ok(())
    }

    /// The same with bytes that may end inside a character: [`Constraint::read_inside`].
    ///
    /// # Errors
    ///
    /// A [`Refusal`]; nothing was read then.
    pub fn advance_inside(&mut self, bytes: &[u8], poll: &mut Poll<'_>) -> Result<(), Refusal> {
        if self.ended {
            return Err(Refusal::Ended);
        }
        let position = self.constraint.read_inside(self.position(), bytes, poll)?;
        self.push(position, bytes);
        Ok(())
    }

    fn push(&mut self, position: Position, bytes: &[u8]) {
        self.steps.push(Step { position, token: None, bytes: bytes.len() });
        self.text.extend_from_slice(bytes);
    }

    /// Takes back the last `count` steps; `false`, and nothing happens, if there are fewer.
    #[must_use]
    pub fn rollback(&mut self, count: usize) -> bool {
        let Some(kept) = self.steps.len().checked_sub(count) else { return false };
        let bytes: usize = self.steps[kept..].iter().map(|step| step.bytes).sum();
        self.text.truncate(self.text.len() - bytes);
        self.steps.truncate(kept);
        if count > 0 {
            self.ended = false;
        }
        true
    }

    /// Number of steps that can be taken back.
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// Takes back everything.
    pub fn reset(&mut self) {
        self.steps.clear();
        self.text.clear();
        self.ended = false;
    }

    /// The bytes that every member continues with here.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn forced_bytes(&self, poll: &mut Poll<'_>) -> Result<Vec<u8>, Error> {
        let machine = self.constraint.machine();
        let mut forced = Vec::new();
        if self.ended {
            return Ok(forced);
        }
        let mut state = self.constraint.state(self.position());
        // Every state is live, so a run of single choices ends at a member.
        while !machine.is_accepting(state)? {
            let live = machine.live_bytes(state)?;
            let (Some(byte), 1) = (live.iter().next(), live.len()) else { break };
            let Some(next) = machine.step(state, byte)? else { break };
            forced.push(byte);
            state = next;
            poll.tick(STEPS_OF_A_STATE)?;
        }
        if self.constraint.vocabulary().has_special() {
            forced.truncate(outside_special(&forced));
        }
        Ok(forced)
    }

    /// The tokens that must follow because each is the only one allowed.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn forced_tokens(&self, poll: &mut Poll<'_>) -> Result<Vec<u32>, Error> {
        let mut ahead = self.clone();
        let mut words = vec![0; self.constraint.words()];
        let mut forced = Vec::new();
        while !ahead.ended && !ahead.is_accepting()? {
            ahead.fill(&mut words)?;
            let Some(only) = only_bit(&words) else { break };
            if ahead.advance(only).is_err() {
                break;
            }
            forced.push(only);
            poll.tick(STEPS_OF_A_MASK)?;
        }
        Ok(forced)
    }
}

/// The index of the only bit that is set.
fn only_bit(words: &Words) -> Option<u32> {
    let mut only = None;
    for (at, &word) in words.iter().enumerate() {
        if word != 0 {
            if only.is_some() || !word.is_power_of_two() {
                return None;
            }
            only = Some(at as u32 * 32 + word.trailing_zeros());
        }
    }
    only
}
