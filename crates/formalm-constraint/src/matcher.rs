//! The position of one sequence in a constraint.
//!
//! A matcher is a stack of positions in one epoch of its constraint. It moves to another one by reading
//! its own tokens and bytes again, so that each of its steps has a position there and can be taken
//! back as before. It moves
//!
//! - when its epoch was replaced and has grown to twice its budget: to the current one;
//! - when a limit is reached: to an epoch of its own, and asks once more. What it is told there
//!   depends on its own tokens alone, not on what others have read before.

use std::sync::Arc;

use formalm_automata::explicit::Poll;
use formalm_automata::{ByteSet, Error, Keys, Machine, Viability, outside_special};

use crate::constraint::Constraint;
use crate::epoch::{Position, StateEpoch, Unfollowed};
use crate::mask::{MaskWords, patch};
use crate::mask_identity::Form;

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

/// What was read in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// A token.
    Token(u32),
    /// An end token, after which the position is that before it.
    End(u32),
    /// Bytes without a token.
    Bytes,
    /// Bytes that may end inside a character.
    Inside,
}

/// One thing read.
#[derive(Clone, Copy, Debug)]
struct Step {
    position: Position,
    read: Read,
    bytes: usize,
}

impl Step {
    fn token(self) -> Option<u32> {
        match self.read {
            Read::Token(token) | Read::End(token) => Some(token),
            Read::Bytes | Read::Inside => None,
        }
    }
}

/// Steps between two looks at how far the epoch has grown. Chosen, not measured: a look costs a load.
const STEPS_BETWEEN_LOOKS: u32 = 64;

/// Bytes that count for a token where growth is measured, as most tokenizers have it.
const BYTES_PER_TOKEN: usize = 4;

/// A cursor: a stack of states, one for each thing read.
#[derive(Debug)]
pub struct Matcher<K: Keys = Viability> {
    constraint: Arc<Constraint<K>>,
    epoch: Arc<StateEpoch<K>>,
    start: Position,
    /// The tokens that the text goes on from.
    after: Arc<[u32]>,
    steps: Vec<Step>,
    text: Vec<u8>,
    ended: bool,
    /// Whether it stays in its epoch however far that grows, so that states keep their numbers.
    pinned: bool,
    /// Steps until the next look at how far the epoch has grown.
    until_look: u32,
}

impl<K: Keys> Clone for Matcher<K> {
    fn clone(&self) -> Matcher<K> {
        Matcher {
            constraint: Arc::clone(&self.constraint),
            epoch: Arc::clone(&self.epoch),
            start: self.start,
            after: Arc::clone(&self.after),
            steps: self.steps.clone(),
            text: self.text.clone(),
            ended: self.ended,
            pinned: self.pinned,
            until_look: self.until_look,
        }
    }
}

impl<K: Keys> Matcher<K> {
    /// A cursor before anything was read.
    pub fn new(constraint: Arc<Constraint<K>>) -> Matcher<K> {
        let epoch = constraint.current();
        let start = epoch.start();
        let until_look = steps_between_looks(&constraint);
        Matcher {
            constraint,
            epoch,
            start,
            after: Arc::default(),
            steps: Vec::new(),
            text: Vec::new(),
            ended: false,
            pinned: false,
            until_look,
        }
    }

    /// A cursor before anything was read, after tokens that the text goes on from.
    ///
    /// # Errors
    ///
    /// [`Unfollowed`].
    pub fn after(constraint: Arc<Constraint<K>>, tokens: &[u32]) -> Result<Self, Unfollowed> {
        let mut matcher = Matcher::new(constraint);
        matcher.after = tokens.into();
        match matcher.epoch.start_after(tokens) {
            Ok(start) => matcher.start = start,
            Err(Unfollowed::Failed(error)) if error.is_limit() => {
                matcher = matcher.alone(error)?;
            }
            Err(other) => return Err(other),
        }
        Ok(matcher)
    }

    /// Keeps the matcher, and those forked from it, in its epoch: equal states then have equal numbers
    /// for as long as it takes. It moves only where a limit is reached.
    pub fn pin(&mut self) {
        self.pinned = true;
    }

    /// Moves the matcher to the epoch of another one of its constraint, where both stay: equal states
    /// then have equal numbers. If its tokens cannot be read there, it stays where it is.
    pub fn pin_to(&mut self, other: &Matcher<K>) {
        if !Arc::ptr_eq(&self.epoch, &other.epoch)
            && let Ok(moved) = self.moved(Arc::clone(&other.epoch))
        {
            *self = moved;
        }
        self.pin();
    }

    /// The constraint.
    pub fn constraint(&self) -> &Arc<Constraint<K>> {
        &self.constraint
    }

    /// The epoch that positions belong to.
    pub fn epoch(&self) -> &Arc<StateEpoch<K>> {
        &self.epoch
    }

    /// The matcher in an epoch of its own, after `error`, a limit, was met in this one, which is
    /// retired: what it has taken to find out does not help the next to ask.
    #[cold]
    fn alone(&self, error: Error) -> Result<Matcher<K>, Error> {
        self.epoch.retire();
        match self.constraint.alone(&self.epoch)? {
            Some(epoch) => self.moved(epoch),
            None => Err(error),
        }
    }

    /// The matcher in another epoch.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if reading its tokens there reaches a limit.
    fn moved(&self, epoch: Arc<StateEpoch<K>>) -> Result<Matcher<K>, Error> {
        let start = match epoch.start_after(&self.after) {
            Ok(start) => start,
            Err(Unfollowed::Failed(error)) => return Err(error),
            Err(Unfollowed::Prompt { .. } | Unfollowed::Language) => return Err(lost()),
        };
        let (mut position, mut at) = (start, 0);
        let mut steps = Vec::with_capacity(self.steps.len());
        let mut go_on = || true;
        let poll = &mut Poll::new(&mut go_on);
        for &step in &self.steps {
            let bytes = &self.text[at..at + step.bytes];
            at += step.bytes;
            let read = match step.read {
                Read::Token(token) => epoch.read(position, token),
                Read::End(_) => Ok(position),
                Read::Bytes => epoch.read_bytes(position, bytes, poll),
                Read::Inside => epoch.read_inside(position, bytes, poll),
            };
            position = match read {
                Ok(position) => position,
                Err(Refusal::Failed(error)) => return Err(error),
                Err(_) => return Err(lost()),
            };
            steps.push(Step { position, ..step });
        }
        Ok(Matcher {
            constraint: Arc::clone(&self.constraint),
            epoch,
            start,
            after: Arc::clone(&self.after),
            steps,
            text: self.text.clone(),
            ended: self.ended,
            pinned: self.pinned,
            until_look: self.until_look,
        })
    }

    /// Moves on in a child of a fork that cannot have the epoch, as a thread was at work on it that
    /// does not exist here. Nothing else may be asked before, unless the process is known to be the
    /// one in which the matcher was used last.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if reading its tokens in another epoch reaches a limit.
    #[inline]
    pub fn settle(&mut self) -> Result<(), Error> {
        if self.epoch.is_abandoned() { self.move_away() } else { Ok(()) }
    }

    #[cold]
    fn move_away(&mut self) -> Result<(), Error> {
        *self = self.moved(self.constraint.current())?;
        Ok(())
    }

    /// Moves on if the epoch has grown too far and another one has taken its place. If the tokens
    /// cannot be read there the matcher stays where it is.
    #[cold]
    fn look_around(&mut self) {
        self.until_look = steps_between_looks(&self.constraint);
        let next = if self.constraint.replace_every() > 0 {
            self.constraint.replace_now()
        } else {
            self.epoch.note(STEPS_BETWEEN_LOOKS);
            if !(self.epoch.is_retired() && self.epoch.is_crowded()) {
                return;
            }
            self.constraint.current()
        };
        if !self.pinned
            && !Arc::ptr_eq(&next, &self.epoch)
            && let Ok(moved) = self.moved(next)
        {
            // What the matcher itself takes there is no reason to move again.
            moved.epoch.grow_with();
            *self = moved;
        }
    }

    #[inline]
    fn look_now_and_then(&mut self) {
        self.until_look -= 1;
        if self.until_look == 0 {
            self.look_around();
        }
    }

    /// Reads something; where a limit is reached, once more in an epoch of its own.
    #[inline]
    fn read(
        &mut self,
        mut read: impl FnMut(&StateEpoch<K>, Position) -> Result<Position, Refusal>,
    ) -> Result<Position, Refusal> {
        match read(&self.epoch, self.position()) {
            Err(Refusal::Failed(error)) if error.is_limit() => {
                let moved = self.alone(error)?;
                let position = read(&moved.epoch, moved.position())?;
                *self = moved;
                Ok(position)
            }
            other => other,
        }
    }

    /// Answers a question; where a limit is reached, once more in an epoch of its own.
    #[inline]
    pub(crate) fn answer<R>(
        &self,
        mut ask: impl FnMut(&Self) -> Result<R, Error>,
    ) -> Result<R, Error> {
        match ask(self) {
            Err(error) if error.is_limit() => ask(&self.alone(error)?),
            other => other,
        }
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
        self.steps.iter().filter_map(|step| step.token()).collect()
    }

    /// The tokens that the text goes on from.
    pub fn after_tokens(&self) -> &[u32] {
        &self.after
    }

    /// What was read, step by step, with its bytes.
    pub fn history(&self) -> impl Iterator<Item = (Read, &[u8])> {
        let mut at = 0;
        self.steps.iter().map(move |step| {
            let start = at;
            at += step.bytes;
            (step.read, &self.text[start..at])
        })
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
        self.answer(|one| one.epoch.is_accepting(one.position()))
    }

    /// Whether no text may follow.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the machine would outgrow its limits.
    pub fn is_finished(&self) -> Result<bool, Error> {
        self.answer(Matcher::is_finished_here)
    }

    fn is_finished_here(&self) -> Result<bool, Error> {
        if self.ended || self.knows_bytes() {
            return Ok(self.ended || self.live_bytes()?.is_empty());
        }
        let mut words = vec![0; self.epoch.words()];
        self.fill(&mut words)?;
        patch(&mut words, &[], self.epoch.vocabulary().end_token_ids());
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
        self.answer(|one| one.epoch.machine().live_bytes(one.epoch.state(one.position())))
    }

    /// Whether the bytes that may follow are known without the tokens.
    fn knows_bytes(&self) -> bool {
        !self.epoch.is_canonical() && self.epoch.machine().is_exact()
    }

    /// The bytes that allowed tokens begin with.
    fn first_bytes(&self) -> Result<ByteSet, Error> {
        let mut words = vec![0; self.epoch.words()];
        self.fill(&mut words)?;
        let vocabulary = self.epoch.vocabulary();
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
    pub fn fill(&self, out: &mut MaskWords) -> Result<(), Error> {
        if self.ended {
            out.fill(0);
            return Ok(());
        }
        self.answer(|one| one.epoch.fill(one.position(), out))
    }

    /// The same if the mask is stored, so that it takes less than a microsecond; `false`, and
    /// nothing is written, if it is not.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    #[inline]
    pub fn fill_ready(&self, out: &mut MaskWords) -> Result<bool, Error> {
        if self.ended {
            out.fill(0);
            return Ok(true);
        }
        match self.epoch.fill_ready(self.position(), out) {
            // The same limit is met when it is computed.
            Err(error) if error.is_limit() => Ok(false),
            other => other,
        }
    }

    /// The form of the mask, if it is stored as it is.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn form(&self) -> Result<Option<Form>, Error> {
        if self.ended {
            return Ok(None);
        }
        match self.epoch.form(self.position()) {
            Err(error) if error.is_limit() => Ok(None),
            other => other,
        }
    }

    /// Whether a token is allowed.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn allows(&self, token_id: u32) -> Result<bool, Error> {
        Ok(!self.ended && self.answer(|one| one.epoch.allows(one.position(), token_id))?)
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
        let vocabulary = self.epoch.vocabulary();
        if vocabulary.is_end_token(token_id) {
            if !self.is_accepting()? {
                return Err(Refusal::NotAccepting);
            }
            let (position, read) = (self.position(), Read::End(token_id));
            self.steps.push(Step { position, read, bytes: 0 });
            self.ended = true;
            return Ok(());
        }
        let position = self.read(|epoch, position| epoch.read(position, token_id))?;
        let bytes = self.epoch.vocabulary().token_bytes(token_id).unwrap_or_default();
        self.steps.push(Step { position, read: Read::Token(token_id), bytes: bytes.len() });
        self.text.extend_from_slice(bytes);
        self.look_now_and_then();
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
        let position = self.read(|epoch, position| epoch.read_bytes(position, bytes, poll))?;
        self.push(position, Read::Bytes, bytes);
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
        let position = self.read(|epoch, position| epoch.read_inside(position, bytes, poll))?;
        self.push(position, Read::Inside, bytes);
        Ok(())
    }

    fn push(&mut self, position: Position, read: Read, bytes: &[u8]) {
        self.steps.push(Step { position, read, bytes: bytes.len() });
        self.text.extend_from_slice(bytes);
        let tokens = bytes.len() / BYTES_PER_TOKEN;
        if tokens >= STEPS_BETWEEN_LOOKS as usize {
            self.epoch.note(u32::try_from(tokens).unwrap_or(u32::MAX));
        }
        self.look_now_and_then();
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

    /// Takes back everything. The text then begins in the current epoch.
    pub fn reset(&mut self) {
        if !self.pinned
            && let Ok(fresh) = Matcher::after(Arc::clone(&self.constraint), &self.after)
        {
            (self.epoch, self.start) = (fresh.epoch, fresh.start);
        }
        self.steps.clear();
        self.text.clear();
        self.ended = false;
    }

    /// A shortest token sequence, end token aside, that makes the text a member, see
    /// [`StateEpoch::shortest_tokens`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn shortest_tokens(&self, limit: u32) -> Result<Option<Vec<u32>>, Error> {
        if self.ended {
            return Ok(Some(Vec::new()));
        }
        self.answer(|one| one.epoch.shortest_tokens(one.position(), limit))
    }

    /// Whether [`Matcher::shortest_tokens`] finds any.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn completes_within(&self, limit: u32) -> Result<bool, Error> {
        Ok(self.ended || self.answer(|one| one.epoch.completes_within(one.position(), limit))?)
    }

    /// Writes the mask over `out`, less the tokens after which no member can be completed within
    /// `budget` tokens, see [`StateEpoch::fill_within`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn fill_within(&self, budget: u32, out: &mut MaskWords) -> Result<(), Error> {
        if self.ended {
            out.fill(0);
            return Ok(());
        }
        self.answer(|one| one.epoch.fill_within(one.position(), budget, out))
    }

    /// The bytes that every member continues with here.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn forced_bytes(&self, poll: &mut Poll<'_>) -> Result<Vec<u8>, Error> {
        self.answer(|one| one.forced_bytes_here(poll))
    }

    fn forced_bytes_here(&self, poll: &mut Poll<'_>) -> Result<Vec<u8>, Error> {
        let mut forced = Vec::new();
        if self.ended {
            return Ok(forced);
        }
        let state = self.epoch.state(self.position());
        let ahead = self.epoch.ahead();
        let (machine, mut state) = match &ahead {
            Some(ahead) => (&ahead.machine, ahead.enter(state)?),
            None => (self.epoch.machine(), state),
        };
        // Every state is live, so a run of single choices ends at a member.
        while !machine.is_accepting(state)? {
            let live = machine.live_bytes(state)?;
            let (Some(byte), 1) = (live.iter().next(), live.len()) else { break };
            let Some(next) = machine.step(state, byte)? else { break };
            forced.push(byte);
            state = next;
            poll.tick(STEPS_OF_A_STATE)?;
        }
        if self.epoch.vocabulary().has_special_bytes() {
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
        let mut words = vec![0; self.epoch.words()];
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

fn steps_between_looks<K: Keys>(constraint: &Constraint<K>) -> u32 {
    match constraint.replace_every() {
        0 => STEPS_BETWEEN_LOOKS,
        steps => steps,
    }
}

/// What was read before is refused in another epoch: a search for members, which is bounded, ended
/// otherwise there.
fn lost() -> Error {
    Error::Language {
        message: "what the matcher has read is not known to lead to a member any more".to_owned(),
        span: None,
        hint: Some("take the last tokens back, or make a matcher anew".to_owned()),
    }
}

/// The index of the only bit that is set.
fn only_bit(words: &MaskWords) -> Option<u32> {
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
