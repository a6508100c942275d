//! A matcher: the position of one token sequence in a constraint.
//!
//! A matcher is a stack of states in one epoch of its constraint. It moves to another epoch by
//! reading its own tokens and bytes again, so that each of its steps has a state there and can be
//! rolled back as before. It moves
//!
//! - to the current epoch, when its own was replaced and has grown to twice its budget;
//! - to an epoch of its own, when it reaches a limit, and repeats the query there. The result then
//!   depends on its own tokens alone, not on what others have read.

pub(crate) mod draft;
mod forced_continuations;

use std::sync::Arc;

use formalm_core::{ByteSet, Error, InterruptCheck, LazyDfa, ReadingHints};
use formalm_machines::{MaskClasses, RegularMaskClasses};

use crate::constraint::Constraint;
use crate::epoch::{AdvanceError, ConstraintState, NoContinuation, StateEpoch};
use crate::mask::{MaskWords, patch};
use crate::mask_identity::MaskIdentity;

/// Interrupt-check steps that computing the bytes after a new state counts as. Chosen, not
/// measured.
const STEPS_OF_A_STATE: usize = 1 << 10;

/// The input of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepInput {
    /// A token.
    Token(u32),
    /// An end token; the state stays the same.
    End(u32),
    /// Bytes without a token.
    Bytes,
    /// Bytes that may end inside a character.
    Inside,
}

/// One step of a matcher.
#[derive(Clone, Copy, Debug)]
struct MatcherStep {
    position: ConstraintState,
    read: StepInput,
    bytes: usize,
}

impl MatcherStep {
    fn token(self) -> Option<u32> {
        match self.read {
            StepInput::Token(token) | StepInput::End(token) => Some(token),
            StepInput::Bytes | StepInput::Inside => None,
        }
    }
}

/// Steps between two checks of the epoch's growth. Chosen, not measured: a check costs a load.
const STEPS_BETWEEN_LOOKS: u32 = 64;

/// Bytes that count as a token when growth is measured, about the average of most tokenizers.
const BYTES_PER_TOKEN: usize = 4;

/// A cursor: a stack of states, one per step.
#[derive(Debug)]
pub struct Matcher<K: MaskClasses = RegularMaskClasses> {
    constraint: Arc<Constraint<K>>,
    epoch: Arc<StateEpoch<K>>,
    start: ConstraintState,
    /// The tokens that the text continues.
    after: Arc<[u32]>,
    steps: Vec<MatcherStep>,
    text: Vec<u8>,
    ended: bool,
    /// End tokens of this matcher, ascending; `None` means those of the vocabulary.
    ends: Option<Arc<[u32]>>,
    /// `true` if the matcher stays in its epoch however far it grows, so that states keep their
    /// numbers.
    pinned: bool,
    /// Steps until the next check of the epoch's growth.
    until_look: u32,
}

impl<K: MaskClasses> Clone for Matcher<K> {
    fn clone(&self) -> Matcher<K> {
        Matcher {
            constraint: Arc::clone(&self.constraint),
            epoch: Arc::clone(&self.epoch),
            start: self.start,
            after: Arc::clone(&self.after),
            steps: self.steps.clone(),
            text: self.text.clone(),
            ended: self.ended,
            ends: self.ends.clone(),
            pinned: self.pinned,
            until_look: self.until_look,
        }
    }
}

impl<K: MaskClasses> Matcher<K> {
    /// Creates a matcher before any input.
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
            ends: None,
            pinned: false,
            until_look,
        }
    }

    /// Creates a matcher before any input, for a text that continues `tokens`.
    ///
    /// # Errors
    ///
    /// [`NoContinuation`].
    pub fn after(constraint: Arc<Constraint<K>>, tokens: &[u32]) -> Result<Self, NoContinuation> {
        let mut matcher = Matcher::new(constraint);
        matcher.after = tokens.into();
        match matcher.epoch.start_after(tokens) {
            Ok(start) => matcher.start = start,
            Err(NoContinuation::Failed(error)) if error.is_limit() => {
                matcher = matcher.alone(error)?;
            }
            Err(other) => return Err(other),
        }
        Ok(matcher)
    }

    /// Replaces the end tokens of this matcher and of its clones. They end the sequence whatever
    /// their bytes. The vocabulary's own end tokens are not allowed unless they are among them.
    ///
    /// Masks are cached without these end tokens, so that matchers of one constraint share them.
    #[must_use]
    pub fn with_end_tokens(mut self, mut ends: Vec<u32>) -> Matcher<K> {
        ends.sort_unstable();
        ends.dedup();
        self.ends = Some(ends.into());
        self
    }

    /// Returns the end tokens of [`Matcher::with_end_tokens`].
    pub fn own_end_tokens(&self) -> Option<&[u32]> {
        self.ends.as_deref()
    }

    /// Returns `true` if a token ends the sequence.
    #[inline]
    pub fn is_end_token(&self, token_id: u32) -> bool {
        match &self.ends {
            Some(ends) => ends.binary_search(&token_id).is_ok(),
            None => self.epoch.vocabulary().is_end_token(token_id),
        }
    }

    /// Replaces the vocabulary's end tokens in a mask by those of this matcher.
    #[inline]
    fn replace_end_tokens(&self, out: &mut MaskWords) -> Result<(), Error> {
        let Some(ends) = &self.ends else { return Ok(()) };
        patch(out, &[], self.epoch.vocabulary().end_token_ids());
        if self.epoch.is_accepting(self.position())? {
            patch(out, ends, &[]);
        } else {
            patch(out, &[], ends);
        }
        Ok(())
    }

    /// Keeps the matcher, and its forks, in its epoch: equal states then keep equal numbers. It
    /// moves only when it reaches a limit.
    pub fn pin(&mut self) {
        self.pinned = true;
    }

    /// Moves the matcher to the epoch of another matcher of its constraint and pins both: equal
    /// states then have equal numbers. If its tokens cannot be read there, it stays where it is.
    pub fn pin_to(&mut self, other: &Matcher<K>) {
        if !Arc::ptr_eq(&self.epoch, &other.epoch)
            && let Ok(moved) = self.moved(Arc::clone(&other.epoch))
        {
            *self = moved;
        }
        self.pin();
    }

    /// Returns the constraint.
    pub fn constraint(&self) -> &Arc<Constraint<K>> {
        &self.constraint
    }

    /// Returns the epoch that the matcher's states belong to.
    pub fn epoch(&self) -> &Arc<StateEpoch<K>> {
        &self.epoch
    }

    /// Returns the matcher in an epoch of its own, after the limit `error` was reached. The old
    /// epoch is retired, because what the query interned there does not help later ones.
    #[cold]
    fn alone(&self, error: Error) -> Result<Matcher<K>, Error> {
        self.epoch.retire();
        match self.constraint.alone(&self.epoch)? {
            Some(epoch) => self.moved(epoch),
            None => Err(error),
        }
    }

    /// Returns the matcher in another epoch.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if reading its tokens there reaches a limit.
    fn moved(&self, epoch: Arc<StateEpoch<K>>) -> Result<Matcher<K>, Error> {
        let start = match epoch.start_after(&self.after) {
            Ok(start) => start,
            Err(NoContinuation::Failed(error)) => return Err(error),
            Err(NoContinuation::Prompt { .. } | NoContinuation::Language) => return Err(lost()),
        };
        let (mut position, mut at) = (start, 0);
        let mut steps = Vec::with_capacity(self.steps.len());
        let mut go_on = || true;
        let poll = &mut InterruptCheck::new(&mut go_on);
        for &step in &self.steps {
            let bytes = &self.text[at..at + step.bytes];
            at += step.bytes;
            let read = match step.read {
                StepInput::Token(token) => epoch.read(position, token),
                StepInput::End(_) => Ok(position),
                StepInput::Bytes => epoch.read_bytes(position, bytes, poll),
                StepInput::Inside => epoch.read_inside(position, bytes, poll),
            };
            position = match read {
                Ok(position) => position,
                Err(AdvanceError::Failed(error)) => return Err(error),
                Err(_) => return Err(lost()),
            };
            steps.push(MatcherStep { position, ..step });
        }
        Ok(Matcher {
            constraint: Arc::clone(&self.constraint),
            epoch,
            start,
            after: Arc::clone(&self.after),
            steps,
            text: self.text.clone(),
            ended: self.ended,
            ends: self.ends.clone(),
            pinned: self.pinned,
            until_look: self.until_look,
        })
    }

    /// Moves on in a forked child that cannot use the epoch, because a thread that does not exist
    /// here was modifying it. This must be the first call, unless the process is known to be the
    /// one that used the matcher last.
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

    /// Moves on if the epoch has grown too far and was replaced. If the tokens cannot be read in
    /// the new epoch, the matcher stays.
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
            // Its own tokens alone are no reason to move again.
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

    /// Reads input; on a limit, repeats in an epoch of its own.
    #[inline]
    fn read(
        &mut self,
        mut read: impl FnMut(&StateEpoch<K>, ConstraintState) -> Result<ConstraintState, AdvanceError>,
    ) -> Result<ConstraintState, AdvanceError> {
        self.constraint.warm_up_signal().stop();
        match read(&self.epoch, self.position()) {
            Err(AdvanceError::Failed(error)) if error.is_limit() => {
                let moved = self.alone(error)?;
                let position = read(&moved.epoch, moved.position())?;
                *self = moved;
                Ok(position)
            }
            other => other,
        }
    }

    /// Answers a query; on a limit, repeats in an epoch of its own.
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

    /// Returns the state in the constraint.
    pub fn position(&self) -> ConstraintState {
        match self.steps.last() {
            Some(step) => step.position,
            None => self.start,
        }
    }

    /// Returns the bytes read so far.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the tokens read so far, without bytes that were read without a token.
    pub fn token_ids(&self) -> Vec<u32> {
        self.steps.iter().filter_map(|step| step.token()).collect()
    }

    /// Returns the tokens that the text continues.
    pub fn after_tokens(&self) -> &[u32] {
        &self.after
    }

    /// Iterates over the steps with their bytes.
    pub fn history(&self) -> impl Iterator<Item = (StepInput, &[u8])> {
        let mut at = 0;
        self.steps.iter().map(move |step| {
            let start = at;
            at += step.bytes;
            (step.read, &self.text[start..at])
        })
    }

    /// Returns `true` if an end token was read.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns `true` if the input is in the language.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn is_accepting(&self) -> Result<bool, Error> {
        self.answer(|one| one.epoch.is_accepting(one.position()))
    }

    /// Returns `true` if no text may follow.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the machine exceeds a limit.
    pub fn is_finished(&self) -> Result<bool, Error> {
        self.answer(Matcher::is_finished_here)
    }

    fn is_finished_here(&self) -> Result<bool, Error> {
        if self.ended || self.knows_bytes() {
            return Ok(self.ended || self.live_bytes()?.is_empty());
        }
        let mut words = vec![0; self.epoch.words()];
        self.fill(&mut words)?;
        let ends = self.own_end_tokens();
        patch(&mut words, &[], ends.unwrap_or(self.epoch.vocabulary().end_token_ids()));
        Ok(words.iter().all(|&word| word == 0))
    }

    /// Returns the bytes that may follow.
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

    /// Returns `true` if the bytes that may follow are known without the tokens.
    fn knows_bytes(&self) -> bool {
        !self.epoch.is_canonical() && self.epoch.machine().is_exact()
    }

    /// Returns the first bytes of the allowed tokens.
    fn first_bytes(&self) -> Result<ByteSet, Error> {
        let mut words = vec![0; self.epoch.words()];
        self.fill(&mut words)?;
        let vocabulary = self.epoch.vocabulary();
        let allowed = |id: &u32| words[*id as usize >> 5] >> (id & 31) & 1 != 0;
        let mut bytes = ByteSet::default();
        for id in (0..vocabulary.len() as u32).filter(allowed) {
            if let Some(&first) = vocabulary.token_bytes(id).and_then(<[u8]>::first)
                && !self.is_end_token(id)
            {
                bytes.insert(first);
            }
        }
        Ok(bytes)
    }

    /// Overwrites `out` with the mask. After an end token nothing is allowed.
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
        self.constraint.warm_up_signal().stop();
        self.answer(|one| {
            one.epoch.fill(one.position(), out)?;
            one.replace_end_tokens(out)
        })
    }

    /// Writes the mask if it is cached, which takes less than a microsecond. Otherwise returns
    /// `false` and writes nothing.
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
        let filled = self.epoch.fill_ready(self.position(), out);
        if let Ok(true) = filled
            && let Err(error) = self.replace_end_tokens(out)
        {
            return if error.is_limit() { Ok(false) } else { Err(error) };
        }
        match filled {
            // Computing the mask reaches the same limit.
            Err(error) if error.is_limit() => Ok(false),
            other => other,
        }
    }

    /// Returns the identity of the mask, if the mask is cached as it is.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn form(&self) -> Result<Option<MaskIdentity>, Error> {
        if self.ended || self.ends.is_some() {
            return Ok(None);
        }
        match self.epoch.form(self.position()) {
            Err(error) if error.is_limit() => Ok(None),
            other => other,
        }
    }

    /// Returns `true` if a token is allowed.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn allows(&self, token_id: u32) -> Result<bool, Error> {
        if self.ended {
            return Ok(false);
        }
        if self.ends.is_some() {
            if self.is_end_token(token_id) {
                return self.is_accepting();
            }
            if self.epoch.vocabulary().is_end_token(token_id) {
                return Ok(false);
            }
        }
        self.answer(|one| one.epoch.allows(one.position(), token_id))
    }

    /// Reads a token.
    ///
    /// # Errors
    ///
    /// An [`AdvanceError`]; nothing was read then.
    #[inline]
    pub fn advance(&mut self, token_id: u32) -> Result<(), AdvanceError> {
        if self.ended {
            return Err(AdvanceError::Ended);
        }
        if self.is_end_token(token_id) {
            if !self.is_accepting()? {
                return Err(AdvanceError::NotAccepting);
            }
            let (position, read) = (self.position(), StepInput::End(token_id));
            self.steps.push(MatcherStep { position, read, bytes: 0 });
            self.ended = true;
            return Ok(());
        }
        if self.ends.is_some() && self.epoch.vocabulary().is_end_token(token_id) {
            return Err(AdvanceError::NoBytes);
        }
        let position = self.read(|epoch, position| epoch.read(position, token_id))?;
        let bytes = self.epoch.vocabulary().token_bytes(token_id).unwrap_or_default();
        self.steps.push(MatcherStep {
            position,
            read: StepInput::Token(token_id),
            bytes: bytes.len(),
        });
        self.text.extend_from_slice(bytes);
        self.look_now_and_then();
        Ok(())
    }

    /// Reads tokens until one is not allowed. Returns the number of tokens read and the reason why
    /// the next one was not.
    pub fn advance_many(
        &mut self,
        token_ids: &[u32],
        poll: &mut InterruptCheck<'_>,
    ) -> (usize, Option<AdvanceError>) {
        for (count, &token_id) in token_ids.iter().enumerate() {
            let polled = poll.tick(STEPS_OF_A_STATE).map_err(AdvanceError::Failed);
            if let Err(refusal) = polled.and_then(|()| self.advance(token_id)) {
                return (count, Some(refusal));
            }
        }
        (token_ids.len(), None)
    }

    /// Reads bytes without a token, as one step for [`Matcher::rollback`].
    ///
    /// # Errors
    ///
    /// An [`AdvanceError`]; nothing was read then.
    pub fn advance_bytes(
        &mut self,
        bytes: &[u8],
        poll: &mut InterruptCheck<'_>,
    ) -> Result<(), AdvanceError> {
        if self.ended {
            return Err(AdvanceError::Ended);
        }
        let position = self.read(|epoch, position| epoch.read_bytes(position, bytes, poll))?;
        self.push(position, StepInput::Bytes, bytes);
        Ok(())
    }

    /// Reads bytes that may end inside a character, see [`StateEpoch::read_inside`].
    ///
    /// # Errors
    ///
    /// An [`AdvanceError`]; nothing was read then.
    pub fn advance_inside(
        &mut self,
        bytes: &[u8],
        poll: &mut InterruptCheck<'_>,
    ) -> Result<(), AdvanceError> {
        if self.ended {
            return Err(AdvanceError::Ended);
        }
        let position = self.read(|epoch, position| epoch.read_inside(position, bytes, poll))?;
        self.push(position, StepInput::Inside, bytes);
        Ok(())
    }

    fn push(&mut self, position: ConstraintState, read: StepInput, bytes: &[u8]) {
        self.steps.push(MatcherStep { position, read, bytes: bytes.len() });
        self.text.extend_from_slice(bytes);
        let tokens = bytes.len() / BYTES_PER_TOKEN;
        if tokens >= STEPS_BETWEEN_LOOKS as usize {
            self.epoch.note(u32::try_from(tokens).unwrap_or(u32::MAX));
        }
        self.look_now_and_then();
    }

    /// Rolls back the last `count` steps. Returns `false` and does nothing if there are fewer.
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

    /// Returns the number of steps that can be rolled back.
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// Rolls back everything. The input then begins in the current epoch.
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

    /// Returns a shortest token sequence, without end token, that completes the input, see
    /// [`StateEpoch::shortest_tokens`].
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::shortest_tokens`].
    pub fn shortest_tokens(&self, limit: u32) -> Result<Option<Vec<u32>>, Error> {
        if self.ended {
            return Ok(Some(Vec::new()));
        }
        self.check_completions()?;
        self.answer(|one| one.epoch.shortest_tokens(one.position(), limit))
    }

    /// Returns `true` if [`Matcher::shortest_tokens`] finds a sequence.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::shortest_tokens`].
    pub fn completes_within(&self, limit: u32) -> Result<bool, Error> {
        self.check_completions()?;
        Ok(self.ended || self.answer(|one| one.epoch.completes_within(one.position(), limit))?)
    }

    /// Overwrites `out` with the mask, without the tokens after which no string can be completed
    /// within `budget` tokens, see [`StateEpoch::fill_within`].
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::fill_within`].
    pub fn fill_within(&self, budget: u32, out: &mut MaskWords) -> Result<(), Error> {
        if self.ended {
            out.fill(0);
            return Ok(());
        }
        self.check_completions()?;
        self.answer(|one| {
            one.epoch.fill_within(one.position(), budget, out)?;
            one.replace_end_tokens(out)
        })
    }

    /// Refuses completions if an end token of this matcher has bytes, because the search over the
    /// vocabulary would spell strings with it.
    fn check_completions(&self) -> Result<(), Error> {
        let vocabulary = self.epoch.vocabulary();
        let mut ends = self.own_end_tokens().unwrap_or_default().iter();
        match ends.find(|&&id| vocabulary.token_bytes(id).is_some()) {
            None => Ok(()),
            Some(id) => Err(Error::language(
                format!(
                    "the fewest tokens to a member are unknown, because the end token {id} of this \
                     matcher has bytes"
                ),
                Some("create the vocabulary with these end tokens"),
            )),
        }
    }
}

fn steps_between_looks<K: MaskClasses>(constraint: &Constraint<K>) -> u32 {
    match constraint.replace_every() {
        0 => STEPS_BETWEEN_LOOKS,
        steps => steps,
    }
}

/// Returns the error of tokens that another epoch rejects, because a bounded search ended
/// differently there.
fn lost() -> Error {
    Error::language(
        "the input read so far is no longer known to lead to a member",
        Some("roll back the last tokens, or create a new matcher"),
    )
}
