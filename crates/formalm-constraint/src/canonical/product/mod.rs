//! The product of language states and splitter states.
//!
//! A product state is *productive* if some string completes the input and admits the boundaries. It
//! is *clean* if a pre-token may end there and the rest can still be completed: then the tokens of
//! the pre-token do not matter, because those of the next one are chosen anew.

mod completion_paths;

use std::sync::Arc;

use formalm_core::{
    Error, Interner, LazyDfa, MemoryBytes, ReadingHints, Resource, StateId,
    deadline::check_deadline, map_slot_bytes,
};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary, SplitterState};
use rustc_hash::{FxHashMap, FxHashSet};

use self::completion_paths::AdmittedBoundaries;
use super::{DependentStates, MAX_STEPS, ProductContext};

/// Maximum number of product states. Bounds memory; chosen, not measured.
const MAX_PRODUCT_STATES: usize = 2_000_000;

/// The number of a product state.
pub(crate) type ProductState = u32;

/// A cached yes-or-no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Unknown,
    Yes,
    No,
}

/// The product states visited so far.
#[derive(Debug, Default)]
pub(crate) struct Product {
    /// For machines with a stack, the representative state of each mask class.
    common: FxHashMap<u32, StateId>,
    list: Interner<(StateId, SplitterState)>,
    productive: Vec<Verdict>,
    clean: Vec<Verdict>,
    /// Number of states that count as productive because a bounded search was inconclusive.
    undecided: usize,
    /// Per language state, a byte that leads toward acceptance; `None` if the state accepts.
    ahead: FxHashMap<u32, Option<(u8, StateId)>>,
    /// For machines with a stack, a completion of each abstract state.
    abstract_completions: FxHashMap<u32, Arc<[u8]>>,
    abstract_completion_bytes: usize,
    /// The boundaries that completions of abstract states admit.
    admitted: FxHashMap<(u32, SplitterState), AdmittedBoundaries>,
    dependent: DependentStates,
}

impl Product {
    /// Interns a product state. Fails if there are too many.
    pub(crate) fn intern<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        state: StateId,
        splitter_state: SplitterState,
    ) -> Result<ProductState, Error> {
        let splitter_state = self.dependent.settle(context, state, splitter_state)?;
        let next = self.list.len();
        if next >= MAX_PRODUCT_STATES {
            return Err(Error::Limit {
                resource: Resource::States,
                needed: next as u64 + 1,
                allowed: MAX_PRODUCT_STATES as u64,
            });
        }
        let product_state = self.list.intern((state, splitter_state));
        if product_state as usize == next {
            self.productive.push(Verdict::Unknown);
            self.clean.push(Verdict::Unknown);
        }
        Ok(product_state)
    }

    /// Returns the representative that answers all queries about what may follow. For a machine
    /// with a stack it has the first state of the same mask class: no token distinguishes the two,
    /// and otherwise every input could create new states.
    pub(crate) fn common<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
    ) -> Result<ProductState, Error> {
        if context.machine.is_finite() {
            return Ok(product_state);
        }
        let (state, splitter_state) = self.parts(product_state);
        let key = context.keys.completion_mask_class(state)?;
        let state = *self.common.entry(key.number()).or_insert(state);
        self.intern(context, state, splitter_state)
    }

    /// Returns `true` if what follows a language state may depend on what the normalizer's filter
    /// has read.
    pub(crate) fn depends_on_text<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        state: StateId,
    ) -> Result<bool, Error> {
        self.dependent.contains(context, state)
    }

    /// Returns the language state and the splitter state.
    #[inline]
    pub(crate) fn parts(&self, product_state: ProductState) -> (StateId, SplitterState) {
        self.list[product_state]
    }

    /// Returns the representative of the state after a byte.
    pub(crate) fn step<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
        (byte, boundary): (u8, Boundary),
    ) -> Result<Option<ProductState>, Error> {
        let (state, splitter_state) = self.parts(product_state);
        let Some(splitter_state) = context.encoder.splitter().step(splitter_state, byte, boundary)
        else {
            return Ok(None);
        };
        match context.machine.step(state, byte)? {
            Some(state) => {
                let product_state = self.intern(context, state, splitter_state)?;
                self.common(context, product_state).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Returns the state after a byte inside the pre-token, given the language state there.
    pub(crate) fn step_inside<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
        (byte, state): (u8, StateId),
    ) -> Result<Option<ProductState>, Error> {
        let (_, splitter_state) = self.parts(product_state);
        let next = context.encoder.splitter().step(splitter_state, byte, Boundary::Inside);
        next.map(|splitter_state| self.intern(context, state, splitter_state)).transpose()
    }

    pub(crate) fn is_end<K: MaskClasses>(
        &self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
    ) -> Result<bool, Error> {
        let (state, splitter_state) = self.parts(product_state);
        Ok(context.encoder.splitter().may_end(splitter_state)
            && context.machine.is_accepting(state)?)
    }

    /// Returns `true` if some string completes the input from here and admits the boundaries.
    pub(crate) fn is_productive<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
    ) -> Result<bool, Error> {
        match self.productive[product_state as usize] {
            Verdict::Yes => return Ok(true),
            Verdict::No => return Ok(false),
            Verdict::Unknown => {}
        }
        let (_, splitter_state) = self.parts(product_state);
        if context.goes_on_after(splitter_state)
            || self.kept_completion(context, product_state)?.is_some_and(|admitted| admitted.any)
        {
            self.productive[product_state as usize] = Verdict::Yes;
            return Ok(true);
        }
        if self.is_completed(context, product_state)? {
            return Ok(true);
        }
        // Depth-first search for any completion; most states visited are settled by a known one.
        let mut seen: FxHashSet<ProductState> = FxHashSet::from_iter([product_state]);
        let mut path: Vec<(ProductState, Vec<ProductState>)> =
            vec![(product_state, self.successors(context, product_state)?)];
        while let Some((_, pending)) = path.last_mut() {
            check_deadline()?;
            let Some(next) = pending.pop() else {
                path.pop();
                continue;
            };
            if self.productive[next as usize] == Verdict::No || !seen.insert(next) {
                continue;
            }
            if self.productive[next as usize] == Verdict::Yes || self.is_completed(context, next)? {
                for (product_state, _) in path {
                    self.productive[product_state as usize] = Verdict::Yes;
                }
                return Ok(true);
            }
            if !context.machine.is_finite() && seen.len() > MAX_STEPS {
                self.undecided += seen.len();
                let mut open: Vec<ProductState> = seen.into_iter().collect();
                open.sort_unstable();
                for product_state in open {
                    self.productive[product_state as usize] = Verdict::Yes;
                }
                return Ok(true);
            }
            path.push((next, self.successors(context, next)?));
        }
        let mut barren: Vec<ProductState> = seen.into_iter().collect();
        barren.sort_unstable();
        for product_state in barren {
            self.productive[product_state as usize] = Verdict::No;
        }
        Ok(false)
    }

    /// Returns the states after one byte.
    fn successors<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
    ) -> Result<Vec<ProductState>, Error> {
        let live = context.machine.live_bytes(self.parts(product_state).0)?;
        let mut list = Vec::new();
        for byte in live.iter() {
            for boundary in BOUNDARIES {
                if let Some(next) = self.step(context, product_state, (byte, boundary))?
                    && !list.contains(&next)
                {
                    list.push(next);
                }
            }
        }
        list.extend(self.all_after_special(context, product_state)?.into_iter().map(|one| one.1));
        Ok(list)
    }

    /// Returns the number of states that a bounded search left undecided.
    pub(crate) fn undecided_count(&self) -> usize {
        self.undecided
    }

    /// Returns `true` if the language is one of texts, and some text that the normalizer leaves
    /// unchanged follows a state, whatever came before. `false` proves nothing.
    pub(crate) fn reads_free_text<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        state: StateId,
    ) -> Result<bool, Error> {
        if !context.reads_exact_text() || context.encoder.splitter().text_filter().is_none() {
            return Ok(context.reads_exact_text());
        }
        let weakest = context.encoder.splitter().start().weakest();
        let product_state = self.intern(context, state, weakest)?;
        let product_state = self.common(context, product_state)?;
        Ok(self.is_productive(context, product_state)? && self.undecided == 0)
    }

    /// Returns `true` if a pre-token may end here and the input can still be completed.
    pub(crate) fn is_clean<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
    ) -> Result<bool, Error> {
        match self.clean[product_state as usize] {
            Verdict::Yes => return Ok(true),
            Verdict::No => return Ok(false),
            Verdict::Unknown => {}
        }
        let clean = self.compute_clean(context, product_state)?;
        self.clean[product_state as usize] = if clean { Verdict::Yes } else { Verdict::No };
        Ok(clean)
    }

    fn compute_clean<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
    ) -> Result<bool, Error> {
        if self.is_end(context, product_state)? {
            return Ok(true);
        }
        if !self.after_special(context, product_state)?.is_empty() {
            return Ok(true);
        }
        // First, because reading bytes would close a number and intern it as an item of its own.
        if self.kept_completion(context, product_state)?.is_some_and(|one| one.after_pretoken) {
            return Ok(true);
        }
        let (state, splitter_state) = self.parts(product_state);
        let splitter = context.encoder.splitter();
        let boundaries = [Boundary::Pretoken, Boundary::Added];
        if !boundaries.iter().any(|&boundary| splitter.admits(splitter_state, boundary)) {
            return Ok(false);
        }
        let live = context.machine.live_bytes(state)?;
        let mut begins_pretoken = false;
        for boundary in boundaries {
            let goes_on = |byte: u8| {
                let next = splitter.step(splitter_state, byte, boundary);
                begins_pretoken = begins_pretoken || next.is_some();
                next.is_some_and(|next| context.goes_on_after(next))
            };
            if live.iter().any(goes_on) {
                return Ok(true);
            }
        }
        // Most often inside a character.
        if !begins_pretoken {
            return Ok(false);
        }
        if !context.machine.is_finite()
            && let Some((byte, _)) = self.completion_hop(context, state)?
        {
            // Nearly always a known completion shows it.
            for boundary in boundaries {
                if let Some(next) = self.step(context, product_state, (byte, boundary))?
                    && self.is_productive(context, next)?
                {
                    return Ok(true);
                }
            }
        }
        for byte in live.iter() {
            for boundary in boundaries {
                if let Some(next) = self.step(context, product_state, (byte, boundary))?
                    && self.is_productive(context, next)?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.common.memory_bytes()
            + self.list.table_bytes()
            + self.productive.capacity()
            + self.clean.capacity()
            + map_slot_bytes(&self.ahead)
            + map_slot_bytes(&self.abstract_completions)
            + self.abstract_completion_bytes
            + map_slot_bytes(&self.admitted)
            + self.dependent.memory_bytes()
    }
}
