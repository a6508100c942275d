//! Best-first search over strings, each with the sum of all its tokenizations.
//!
//! A *reading* of a string is a token sequence that spells it, a node of the tree. The queue holds
//! byte strings. The entry of a string `u` keeps all readings of prefixes of `u`, each with its exact
//! probability:
//!
//! - *evaluated* readings as a range: the tokens that continue the reading in agreement with `u` and
//!   extend beyond it;
//! - *pending* readings, not yet evaluated, as they are.
//!
//! Bound. A reading of a member `s` that extends `u` either uses a token of some range at `u`, or
//! begins with a pending reading. Readings in different ranges, different tokens of one range, and
//! different pending readings are mutually exclusive prefixes of a token sequence. The probabilities
//! of the readings of `s` therefore add up to at most the sum over the ranges' tokens and the pending
//! readings. That sum is the entry's bound. It holds for the total of all members that extend `u`,
//! hence for each. A member extends `u` by one byte, so the tokens of that byte suffice: once the
//! sums by next byte are known, the largest of them and the pending readings are the bound.
//!
//! Lazy children. An entry queues the string of its best next byte only; the entry itself stays with
//! the others. So a string costs what is taken from it, not what it could be extended by.
//!
//! A candidate `u`, itself a member, has a probability of at least the sum of its readings found so
//! far, and at most that sum plus the pending readings that end before `u`. It is yielded when it is
//! first in the queue and the pending part is at most `tolerance` of it; no other string can then
//! exceed it by more than that. Pending readings are evaluated largest first, and only where they
//! matter. A string of n bytes has up to 2ⁿ readings, but a trained model gives all but a few a
//! negligible probability.

use std::sync::Arc;

use formalm_logits::{ClassScanner, RowSum};
use rustc_hash::FxHashMap;

use crate::log_sum::{log_add, log_sum, log_sum_of_sorted};
use crate::prefix_strings::PrefixStrings;
use crate::row_cache::{RowCache, StoredRow};
use crate::sequence_tree::{SequenceTree, TreeQuery};
use crate::shared_row::SharedRow;
use crate::sorted_tokens::SortedTokens;
use crate::string_entries::{EntryQueue, NextBytes, StringEntry, TokenRange};
use crate::token_rows::{Continuations, TokenScan};
use crate::{LengthLimits, TokenLanguage};

/// A pending reading with at least this share of the bound is evaluated before its string expands.
const WORTH_EVALUATING: f64 = 0.01;
/// Next bytes of an entry that are listed at a time: 128 bytes of memory. More are computed again
/// from the rows.
const LISTED_BYTES: usize = 8;

/// The options of a search over strings.
#[derive(Clone, Debug)]
pub struct StringOptions {
    /// Where sequences end.
    pub lengths: LengthLimits,
    /// The share of a member's probability that may be missing from its sum.
    pub tolerance: f64,
    /// Maximum memory of cached rows, in bytes.
    pub cache_bytes: usize,
}

/// A member that was found.
#[derive(Clone, Debug)]
pub struct StringHit {
    /// Its bytes.
    pub data: Vec<u8>,
    /// The most probable tokens that spell it.
    pub token_ids: Vec<u32>,
    /// The log-probability of each, and of the end if it counts.
    pub steps: Vec<f64>,
    /// The log-probability of all readings.
    pub logprob: f64,
    /// Number of readings.
    pub tokenizations: usize,
    /// The index of the context.
    pub context: u32,
}

/// The outcome of a step.
#[derive(Clone, Debug)]
pub enum StringStep {
    /// The next member.
    Hit(StringHit),
    /// Readings to evaluate before the next step, at most a batch; there may be none.
    Evaluate(Vec<u32>),
    /// Evaluated readings whose answers are needed again.
    Recall(Vec<u32>),
}

/// Nodes whose rows are not cached.
struct MissingRows(Vec<u32>);

/// A search over strings: its readings, its queue, and the steps on them.
#[derive(Debug)]
pub struct StringSearch {
    pub(crate) tree: SequenceTree,
    /// Number of bytes that each node spells.
    pub(crate) lengths: Vec<u32>,
    /// The log-probability of ending at each node; NaN if it was not evaluated.
    pub(crate) ends: Vec<f64>,
    /// From a node and a token to the child.
    pub(crate) children: FxHashMap<(u32, u32), u32>,
    pub(crate) strings: PrefixStrings,
    pub(crate) queue: EntryQueue,
    /// Entries that wait for the evaluation of `requests`.
    #[expect(clippy::vec_box, reason = "entries move between here and the queue as they are")]
    aside: Vec<Box<StringEntry>>,
    requests: Vec<u32>,
    looked_at: usize,
    /// Number of times that evaluations were recorded.
    evaluations: u32,
    rows: RowCache,
    pub(crate) tokens: Arc<SortedTokens>,
    scan: TokenScan,
    classes: ClassScanner,
    text: Vec<u8>,
    options: StringOptions,
    pub(crate) cut_by_context: bool,
}

impl StringSearch {
    /// Creates a search from the log-probability and the state of each context.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::is_finished`].
    pub fn new<L: TokenLanguage>(
        roots: &[(f64, u32)],
        tokens: Arc<SortedTokens>,
        scan: TokenScan,
        options: StringOptions,
        language: &mut L,
    ) -> Result<StringSearch, L::Error> {
        let mut search = StringSearch {
            tree: SequenceTree::default(),
            lengths: Vec::new(),
            ends: Vec::new(),
            children: FxHashMap::default(),
            strings: PrefixStrings::default(),
            queue: EntryQueue::default(),
            aside: Vec::new(),
            requests: Vec::new(),
            looked_at: 0,
            evaluations: 1,
            rows: RowCache::new(options.cache_bytes),
            classes: ClassScanner::new(tokens.first_bytes().clone()),
            tokens,
            scan,
            text: Vec::new(),
            options,
            cut_by_context: false,
        };
        for &(logprob, state) in roots {
            search.queue_root(logprob, state, language)?;
        }
        Ok(search)
    }

    /// Adds a context that was found while the search runs, and returns its root. `room` is the number
    /// of tokens that the model can read after it. The order of hits is that of a search that had all
    /// contexts from the start, if the context's log-probability is at most the `floor` of all steps
    /// before.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::is_finished`]. The search must not be used then.
    pub fn add_context<L: TokenLanguage>(
        &mut self,
        logprob: f64,
        state: u32,
        room: Option<u32>,
        language: &mut L,
    ) -> Result<u32, L::Error> {
        self.options.lengths.context_rooms.push(room);
        self.queue_root(logprob, state, language)
    }

    /// Queues the empty string after a new root.
    fn queue_root<L: TokenLanguage>(
        &mut self,
        logprob: f64,
        state: u32,
        language: &mut L,
    ) -> Result<u32, L::Error> {
        let root = self.tree.add_root(logprob, state);
        self.lengths.push(0);
        self.ends.push(f64::NAN);
        let (string, context) = (self.strings.add_root(state), self.tree.root(root));
        let mut entry = StringEntry::new(string, context, false);
        if self.may_extend(root, context) {
            entry.pending.push(root);
            self.sum_pending(&mut entry);
        }
        self.add(entry, vec![root], language)?;
        Ok(root)
    }

    /// Returns the number of queued entries.
    pub fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// Returns an upper bound on what is still to come.
    pub fn best_bound(&self) -> Option<f64> {
        self.queue.top()
    }

    /// Returns `true` if there is nothing left to do.
    pub fn is_exhausted(&self) -> bool {
        self.queue.len() == 0 && self.aside.is_empty()
    }

    /// Begins a batch: at most a few times its size of entries are looked at.
    pub fn begin_batch(&mut self) {
        self.looked_at = 0;
    }

    /// Runs until a member is found or the model is needed. After an error, and after
    /// [`StringSearch::requeue`], the search is as before.
    ///
    /// `floor` bounds the contexts that may be added later, if there are any: the batch ends before an
    /// entry whose bound does not exceed it.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::step`].
    pub fn step<L: TokenLanguage>(
        &mut self,
        batch: usize,
        floor: Option<f64>,
        language: &mut L,
    ) -> Result<StringStep, L::Error> {
        while self.requests.len() < batch && self.looked_at / 4 < batch {
            if floor.is_some_and(|floor| self.queue.top().is_none_or(|top| top <= floor)) {
                break;
            }
            let Some(mut entry) = self.queue.pop(&self.strings) else { break };
            if self.has_evaluated(&mut entry) {
                // Evaluated for other strings: its bound fell.
                let absorbed = self.absorb(&mut entry);
                self.queue.push(&self.strings, entry);
                match absorbed {
                    Ok(()) => self.rows.release(),
                    Err(MissingRows(nodes)) => return Ok(self.recall(nodes)),
                }
                continue;
            }
            let wanted = self.wanted(&entry);
            if !wanted.is_empty() || entry.member && !self.aside.is_empty() {
                self.looked_at += 1;
                // An entry may want thousands; those beyond the batch wait like the entry.
                for node in wanted {
                    if self.requests.len() == batch {
                        break;
                    }
                    if !self.requests.contains(&node) {
                        self.requests.push(node);
                    }
                }
                self.aside.push(entry);
            } else if entry.member {
                return Ok(StringStep::Hit(self.hit(&entry)));
            } else {
                self.looked_at += 1;
                match self.expand(entry, language)? {
                    Ok(()) => self.rows.release(),
                    Err(MissingRows(nodes)) => return Ok(self.recall(nodes)),
                }
            }
        }
        Ok(StringStep::Evaluate(std::mem::take(&mut self.requests)))
    }

    /// Returns `true` if a pending reading has been evaluated, for other strings.
    fn has_evaluated(&self, entry: &mut StringEntry) -> bool {
        if entry.looked_at == self.evaluations {
            return false;
        }
        let ends = &self.ends;
        for &node in &entry.pending {
            if !ends[node as usize].is_nan() {
                return true;
            }
        }
        entry.looked_at = self.evaluations;
        false
    }

    fn recall(&mut self, nodes: Vec<u32>) -> StringStep {
        self.rows.hold(&nodes);
        StringStep::Recall(nodes)
    }

    /// Queues again the entries that waited for an evaluation, which happened or failed.
    pub fn requeue(&mut self) {
        self.requests.clear();
        for entry in self.aside.drain(..) {
            self.queue.push(&self.strings, entry);
        }
    }

    /// Records the model's answer at a reading, evaluated for the first time or again.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`].
    pub fn record<L: TokenLanguage>(
        &mut self,
        node: u32,
        answer: Continuations<'_>,
        language: &mut L,
    ) -> Result<(), L::Error> {
        let state = self.tree.state(node, language)?;
        let accepting = self.scan.look(language, state)?;
        let kept = self.scan.kept(answer);
        let row = if self.options.lengths.may_grow(self.tree.depth(node)) {
            let (scan, classes) = (&mut self.scan, &mut self.classes);
            StoredRow::of(scan, classes, answer, kept.as_deref(), &self.tokens)
        } else {
            StoredRow::empty()
        };
        let end = if accepting {
            self.tree.logprob(node) + self.scan.end(answer, kept.as_deref())
        } else {
            f64::NEG_INFINITY
        };
        self.rows.keep(node, row);
        self.ends[node as usize] = end;
        self.evaluations += 1;
        Ok(())
    }

    /// Records rows of logits at nodes, or of log-probabilities, whose sums are not known: `true` with
    /// a row of log-probabilities. Returns the sums of each. If `is_sound` rejects them, nothing is
    /// recorded.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`]; nothing is recorded then.
    pub fn record_rows<L: TokenLanguage>(
        &mut self,
        answers: &[(u32, SharedRow, bool)],
        is_sound: impl Fn(&[RowSum]) -> bool,
        language: &mut L,
    ) -> Result<Vec<RowSum>, L::Error> {
        let mut found = Vec::with_capacity(answers.len());
        let mut recorded = Vec::with_capacity(answers.len());
        for (node, shared, is_normalized) in answers {
            let state = self.tree.state(*node, language)?;
            let accepting = self.scan.look(language, state)?;
            let given = is_normalized.then_some(0.0);
            let (row, sum) = if self.options.lengths.may_grow(self.tree.depth(*node)) {
                let (scan, classes) = (&mut self.scan, &mut self.classes);
                StoredRow::read(scan, classes, shared, given, &self.tokens)
            } else {
                (StoredRow::empty(), self.scan.sums(shared.row()).into())
            };
            let end = if accepting {
                let offset = given.unwrap_or(sum.log_sum_exp);
                let answer = Continuations::All(shared.row(), offset);
                self.tree.logprob(*node) + self.scan.end(answer, None)
            } else {
                f64::NEG_INFINITY
            };
            found.push(sum);
            recorded.push((*node, row, end));
        }
        if is_sound(&found) {
            for (node, row, end) in recorded {
                self.rows.keep(node, row);
                self.ends[node as usize] = end;
            }
            self.evaluations += 1;
        }
        Ok(found)
    }

    /// Queues a newly reached string: its extensions, and itself if it is a member.
    fn add<L: TokenLanguage>(
        &mut self,
        entry: StringEntry,
        exact: Vec<u32>,
        language: &mut L,
    ) -> Result<(), L::Error> {
        let state = self.strings.state(entry.string);
        let grows = !entry.ranges.is_empty() || !language.is_finished(state)?;
        if language.is_accepting(state) {
            let mut member = StringEntry::new(entry.string, entry.context, true);
            member.exact = exact;
            let size = self.strings.length(entry.string);
            let can_add = |node: &u32| self.can_add(*node, size);
            member.pending = entry.pending.iter().copied().filter(can_add).collect();
            if member.pending.len() == entry.pending.len() {
                (member.pending_sum, member.pending_top) = (entry.pending_sum, entry.pending_top);
            } else {
                self.sum_pending(&mut member);
            }
            member.looked_at = entry.looked_at;
            self.push(member);
        }
        if grows {
            self.push(entry);
        }
        Ok(())
    }

    fn push(&mut self, mut entry: StringEntry) {
        entry.bound = self.bound(&entry);
        self.queue.push(&self.strings, Box::new(entry));
    }

    /// Replaces pending readings that have been evaluated by their continuations. If rows are
    /// missing, the entry is unchanged.
    fn absorb(&mut self, entry: &mut StringEntry) -> Result<(), MissingRows> {
        let size = self.strings.length(entry.string);
        let (mut exact, mut pending, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
        let (mut missing, mut waiting) = (Vec::new(), entry.pending.clone());
        let mut text = std::mem::take(&mut self.text);
        while let Some(node) = waiting.pop() {
            if self.ends[node as usize].is_nan() {
                pending.push(node);
                continue;
            }
            if self.rows.get(node).is_none() {
                missing.push(node);
                continue;
            }
            self.strings.write(entry.string, self.lengths[node as usize], &mut text);
            let mut range = (0, self.tokens.len() as u32);
            for depth in 0..=text.len() {
                let end = self.tokens.end_of_exact(range, depth);
                for child in self.children_of(node, (range.0, end)) {
                    if self.lengths[child as usize] == size && entry.member {
                        exact.push(child);
                    }
                    let may_extend = self.may_extend(child, entry.context);
                    if may_extend && (!entry.member || self.can_add(child, size)) {
                        waiting.push(child);
                    }
                }
                range.0 = end;
                if depth < text.len() {
                    range = self.tokens.narrow(range, depth, text[depth]);
                }
                if range.0 == range.1 {
                    break;
                }
            }
            if !entry.member {
                self.add_range(&mut ranges, node, range);
            }
        }
        self.text = text;
        if !missing.is_empty() {
            return Err(MissingRows(missing));
        }
        self.set_pending(entry, pending);
        entry.looked_at = self.evaluations;
        entry.exact.append(&mut exact);
        if !ranges.is_empty() {
            entry.ranges.append(&mut ranges);
            entry.next = NextBytes::Unknown(f64::INFINITY);
        }
        entry.bound = entry.bound.min(self.bound(entry));
        Ok(())
    }

    /// Replaces the pending readings of an entry: by probability, ties by tokens.
    fn set_pending(&self, entry: &mut StringEntry, readings: Vec<u32>) {
        let tree = &self.tree;
        // Most are in ascending order already, of which a stable sort makes use.
        let mut sorted: Vec<(f64, u32)> =
            readings.iter().rev().map(|&node| (tree.logprob(node), node)).collect();
        sorted.sort_by(|one, other| {
            other.0.total_cmp(&one.0).then_with(|| tree.path(one.1).cmp(&tree.path(other.1)))
        });
        let values: Vec<f64> = sorted.iter().map(|one| one.0).collect();
        entry.pending_top = values.first().copied().unwrap_or(f64::NEG_INFINITY);
        entry.pending_sum = log_sum_of_sorted(&values);
        entry.pending = sorted.into_iter().map(|one| one.1).collect();
    }

    /// Adds the tokens of a range with which an evaluated reading continues, if there are any.
    fn add_range(&self, ranges: &mut Vec<TokenRange>, node: u32, (low, high): (u32, u32)) {
        let Some(row) = self.rows.get(node).filter(|_| low < high) else { return };
        let together = match row.total() {
            Some(total) if high - low == self.tokens.len() as u32 => total,
            _ => row.log_sum((low, high), &self.tokens),
        };
        if together > f64::NEG_INFINITY {
            let logprob = self.tree.logprob(node) + together;
            ranges.push(TokenRange { node, low, high, logprob });
        }
    }

    /// Returns the readings that continue an evaluated reading with the tokens of a range.
    fn children_of(&mut self, node: u32, (low, high): (u32, u32)) -> Vec<u32> {
        let mut found = Vec::new();
        for rank in low..high {
            let value =
                self.rows.get(node).map_or(f64::NEG_INFINITY, |row| row.get(rank, &self.tokens));
            if value == f64::NEG_INFINITY {
                continue;
            }
            let token = self.tokens.token_ids()[rank as usize];
            let child = match self.children.get(&(node, token)) {
                Some(&child) => child,
                None => {
                    let logprob = self.tree.logprob(node) + value;
                    let child = self.tree.add(node, token as i32, logprob);
                    self.lengths.push(self.lengths[node as usize] + self.tokens.length(rank));
                    self.ends.push(f64::NAN);
                    self.children.insert((node, token), child);
                    child
                }
            };
            found.push(child);
        }
        found
    }

    /// Queues the string of the best next byte, and the entry with the others. If rows are missing,
    /// the entry is queued as it was.
    fn expand<L: TokenLanguage>(
        &mut self,
        mut entry: Box<StringEntry>,
        language: &mut L,
    ) -> Result<Result<(), MissingRows>, L::Error> {
        let nodes = entry.ranges.iter().map(|range| range.node);
        let missing: Vec<u32> = nodes.filter(|&node| self.rows.get(node).is_none()).collect();
        if !missing.is_empty() {
            self.queue.push(&self.strings, entry);
            return Ok(Err(MissingRows(missing)));
        }
        if entry.pending_sum.is_nan() {
            self.sum_pending(&mut entry);
        }
        if let NextBytes::Unknown(_) = entry.next {
            entry.next = self.next_bytes(&entry);
            let bound = self.bound(&entry).min(entry.bound);
            if self.queue.top().is_some_and(|top| top > bound) {
                entry.bound = bound;
                self.queue.push(&self.strings, entry);
                return Ok(Ok(()));
            }
        }
        let best = match &mut entry.next {
            NextBytes::Unknown(_) => None,
            NextBytes::Best(next) | NextBytes::All(next) => next.pop(),
        };
        let Some((logprob, byte)) = best else {
            // Nothing follows but what pending readings spell.
            entry.ranges = Vec::new();
            entry.bound = self.bound(&entry).min(entry.bound);
            self.queue.push(&self.strings, entry);
            return Ok(Ok(()));
        };
        let state = match language.step_byte(self.strings.state(entry.string), byte) {
            Ok(state) => state,
            Err(error) => {
                if let NextBytes::Best(next) | NextBytes::All(next) = &mut entry.next {
                    next.push((logprob, byte));
                }
                self.queue.push(&self.strings, entry);
                return Err(error);
            }
        };
        let string = self.strings.add(entry.string, byte, state);
        let mut longer = StringEntry::new(string, entry.context, false);
        let mut exact = Vec::new();
        let size = self.strings.length(entry.string);
        for range in &entry.ranges {
            let depth = (size - self.lengths[range.node as usize]) as usize;
            let (low, high) = self.tokens.narrow((range.low, range.high), depth, byte);
            let middle = self.tokens.end_of_exact((low, high), depth + 1);
            for child in self.children_of(range.node, (low, middle)) {
                exact.push(child);
                if self.may_extend(child, entry.context) {
                    longer.pending.push(child);
                }
            }
            self.add_range(&mut longer.ranges, range.node, (middle, high));
        }
        let is_same = longer.pending.is_empty();
        longer.pending.extend_from_slice(&entry.pending);
        if is_same {
            (longer.pending_sum, longer.pending_top) = (entry.pending_sum, entry.pending_top);
            longer.looked_at = entry.looked_at;
        } else {
            self.sum_pending(&mut longer);
        }
        let added = self.add(longer, exact, language);
        entry.done.insert(byte);
        match &entry.next {
            NextBytes::Best(next) if next.is_empty() => entry.next = NextBytes::Unknown(logprob),
            NextBytes::All(next) if next.is_empty() => entry.ranges = Vec::new(),
            _ => {}
        }
        entry.bound = self.bound(&entry).min(entry.bound);
        self.queue.push(&self.strings, entry);
        added.map(Ok)
    }

    /// Returns the next bytes of the ranges of an entry, whose rows are cached.
    fn next_bytes(&self, entry: &StringEntry) -> NextBytes {
        let mut sums = [f64::NEG_INFINITY; 256];
        let size = self.strings.length(entry.string);
        for range in &entry.ranges {
            let Some(row) = self.rows.get(range.node) else { continue };
            let depth = (size - self.lengths[range.node as usize]) as usize;
            let logprob = self.tree.logprob(range.node);
            if let Some(by_byte) = row.by_byte()
                && range.high - range.low == self.tokens.len() as u32
            {
                for (byte, &sum) in by_byte.iter().enumerate() {
                    if !entry.done.has(byte as u8) {
                        sums[byte] = log_add(sums[byte], logprob + sum);
                    }
                }
                continue;
            }
            let mut at = row.next_rank(range.low, range.high);
            while at < range.high {
                let byte = self.tokens.byte_at(at, depth);
                let end = self.tokens.end_of_byte((at, range.high), depth);
                if !entry.done.has(byte) {
                    let sum = logprob + row.log_sum((at, end), &self.tokens);
                    sums[byte as usize] = log_add(sums[byte as usize], sum);
                }
                at = row.next_rank(end, range.high);
            }
        }
        let mut next: Vec<(f64, u8)> = (0..=255u8)
            .map(|byte| (sums[byte as usize], byte))
            .filter(|one| one.0 > f64::NEG_INFINITY)
            .collect();
        next.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
        if next.len() <= LISTED_BYTES {
            next.shrink_to_fit();
            return NextBytes::All(next);
        }
        NextBytes::Best(next.split_off(next.len() - LISTED_BYTES))
    }

    /// Returns the log of an upper bound on a member, or on each member that extends a string.
    fn bound(&self, entry: &StringEntry) -> f64 {
        if entry.member {
            return log_sum(&mut [self.pending_sum(entry), self.total(entry)]);
        }
        let mut values = vec![self.pending_sum(entry)];
        match &entry.next {
            NextBytes::Unknown(most) => {
                let mut ranges: Vec<f64> = entry.ranges.iter().map(|range| range.logprob).collect();
                values.push(log_sum(&mut ranges).min(*most));
            }
            NextBytes::Best(next) | NextBytes::All(next) => {
                values.extend(next.last().map(|best| best.0));
            }
        }
        log_sum(&mut values)
    }

    fn pending_sum(&self, entry: &StringEntry) -> f64 {
        if entry.pending_sum.is_nan() { self.sum_of(&entry.pending).0 } else { entry.pending_sum }
    }

    /// Computes what an entry keeps of the probabilities of its pending readings.
    fn sum_pending(&self, entry: &mut StringEntry) {
        (entry.pending_sum, entry.pending_top) = self.sum_of(&entry.pending);
    }

    /// Returns the log-probability of readings together, and of the largest of them.
    fn sum_of(&self, readings: &[u32]) -> (f64, f64) {
        let mut values: Vec<f64> = readings.iter().map(|&node| self.tree.logprob(node)).collect();
        // Most are sorted already, of which a stable sort makes use.
        values.sort_by(|one, other| other.total_cmp(one));
        (log_sum_of_sorted(&values), values.first().copied().unwrap_or(f64::NEG_INFINITY))
    }

    /// Returns the readings to evaluate before the search proceeds, largest first.
    fn wanted(&self, entry: &StringEntry) -> Vec<u32> {
        let logprob = |node: u32| self.tree.logprob(node);
        if !entry.member {
            if entry.pending.is_empty() {
                return Vec::new();
            }
            let least = entry.bound + WORTH_EVALUATING.ln();
            let worth = |&node: &u32| logprob(node) >= least;
            let worth: Vec<u32> = if entry.pending_top < least {
                Vec::new()
            } else {
                entry.pending.iter().copied().filter(worth).collect()
            };
            let has_next = match &entry.next {
                NextBytes::Unknown(_) => !entry.ranges.is_empty(),
                NextBytes::Best(_) => true,
                NextBytes::All(next) => !next.is_empty(),
            };
            let first = || entry.pending[..1].to_vec();
            return if worth.is_empty() && !has_next { first() } else { worth };
        }
        let waiting = &entry.pending;
        if waiting.is_empty() || self.options.tolerance == 0.0 {
            return waiting.clone();
        }
        let spare = self.total(entry) + self.options.tolerance.ln();
        if self.pending_sum(entry) <= spare {
            return Vec::new();
        }
        let least = spare - (waiting.len() as f64).ln();
        waiting.iter().copied().filter(|&node| logprob(node) > least).collect()
    }

    /// Returns the log of the sum over a member's readings found so far.
    fn total(&self, entry: &StringEntry) -> f64 {
        let mut values: Vec<f64> = entry.exact.iter().map(|&node| self.value(node)).collect();
        log_sum(&mut values)
    }

    /// Returns the log-probability of a reading of a member, minus infinity if it is unknown.
    fn value(&self, node: u32) -> f64 {
        if !self.options.lengths.complete {
            return self.tree.logprob(node);
        }
        let end = self.ends[node as usize];
        if end.is_nan() { f64::NEG_INFINITY } else { end }
    }

    /// Returns `true` if the evaluation of a reading can still add to a member of `size` bytes.
    fn can_add(&self, node: u32, size: u32) -> bool {
        self.options.lengths.complete || self.lengths[node as usize] < size
    }

    fn may_extend(&mut self, node: u32, context: u32) -> bool {
        let may = self.options.lengths.may_extend(self.tree.depth(node), context);
        self.cut_by_context |= may.is_none();
        may == Some(true)
    }

    /// Returns the result for a member.
    fn hit(&self, entry: &StringEntry) -> StringHit {
        let mut data = Vec::new();
        self.strings.write(entry.string, 0, &mut data);
        let ways: Vec<u32> = entry
            .exact
            .iter()
            .copied()
            .filter(|&node| self.value(node) > f64::NEG_INFINITY || !self.options.lengths.complete)
            .collect();
        let best = ways.iter().copied().min_by(|&one, &other| {
            self.value(other)
                .total_cmp(&self.value(one))
                .then_with(|| self.tree.path(one).cmp(&self.tree.path(other)))
        });
        let (mut token_ids, mut steps) = (Vec::new(), Vec::new());
        if let Some(best) = best {
            (token_ids, steps) = (self.tree.path(best), self.tree.steps(best));
            if self.options.lengths.complete {
                steps.push(self.ends[best as usize] - self.tree.logprob(best));
            }
        }
        let (logprob, tokenizations) = (self.total(entry), ways.len());
        StringHit { data, token_ids, steps, logprob, tokenizations, context: entry.context }
    }
}

impl TreeQuery for StringSearch {
    fn tree(&self) -> &SequenceTree {
        &self.tree
    }

    fn tree_and_scan(&mut self) -> (&mut SequenceTree, &mut TokenScan) {
        (&mut self.tree, &mut self.scan)
    }

    fn memory_bytes(&self) -> usize {
        let readings = (4 + 8) * self.lengths.len() + 20 * self.children.len();
        self.tree.memory_bytes()
            + readings
            + self.strings.memory_bytes()
            + self.queue.memory_bytes()
    }

    fn cut_by_context(&self) -> bool {
        self.cut_by_context
    }
}
