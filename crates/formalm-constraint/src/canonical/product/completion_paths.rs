//! Completions of the language, traced through the splitter.

use std::sync::Arc;

use formalm_core::{
    CompletionClasses, CompletionHints, Error, LazyDfa, ReadingHints, StateId,
    deadline::check_deadline,
};
use formalm_machines::{MaskClasses, SPECIAL_BYTE};
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary};
use rustc_hash::FxHashSet;

use super::super::ProductContext;
use super::{Product, ProductState, Verdict};

/// Number of states, and of bytes each, that are read before a machine with a stack is asked for a
/// completion. Chosen, not measured.
const MAX_NEARBY_STATES: usize = 2;
const MAX_NEARBY_BYTES: usize = 16;

/// States, each with the byte that leads on from it and the state after that.
type HopPath = Vec<(StateId, (u8, StateId))>;

/// The boundaries that a completion admits.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdmittedBoundaries {
    /// `true` if the completion admits some boundaries.
    pub(super) any: bool,
    /// `true` if it admits some with a pre-token that begins at its first byte.
    pub(super) after_pretoken: bool,
}

/// A partial path along a completion, up to one of its bytes.
struct PathStep {
    product_state: ProductState,
    /// The index of the predecessor in the previous layer.
    from: usize,
    step: (u8, Boundary),
    /// `true` if a pre-token has ended on the path.
    crosses_pretoken: bool,
}

impl Product {
    /// Returns the bytes of a completion that belong to the current pre-token. The completion is
    /// found in the language alone and then checked against the splitter. `first` fixes its first
    /// byte. A result of `None` proves nothing. If all texts have canonical tokens, the bytes may end
    /// where no token spans two characters.
    pub(crate) fn rest_of_pretoken<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
        first: Option<u8>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(layers) = self.completion(context, product_state, first, true)? else {
            return Ok(None);
        };
        let mut steps = Vec::new();
        let mut at = 0;
        for layer in layers.iter().skip(1).rev() {
            steps.push(layer[at].step);
            at = layer[at].from;
        }
        let inside = steps.iter().rev().take_while(|(_, boundary)| *boundary == Boundary::Inside);
        Ok(Some(inside.map(|(byte, _)| *byte).collect()))
    }

    /// Returns `true` if a completion of the language admits the boundaries. `false` proves
    /// nothing.
    pub(super) fn is_completed<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
    ) -> Result<bool, Error> {
        Ok(self.completion(context, product_state, None, false)?.is_some())
    }

    /// Returns the paths along a completion to a state known to be productive; the first entry of
    /// the last layer reaches it. With `crosses_pretoken`, the path must end in a later pre-token
    /// or at the end of the text.
    fn completion<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
        mut first: Option<u8>,
        crosses_pretoken: bool,
    ) -> Result<Option<Vec<Vec<PathStep>>>, Error> {
        let mut state = self.parts(product_state).0;
        let mut layers = vec![vec![PathStep {
            product_state,
            from: 0,
            step: (0, Boundary::Inside),
            crosses_pretoken: false,
        }]];
        let splits = |before: u8, byte: u8| {
            crosses_pretoken
                && byte & 0xc0 != 0x80
                && byte != SPECIAL_BYTE
                && context.encoder.encodes_all()
                && !context.encoder.may_adjoin(before, byte)
        };
        let mut before: Option<u8> = None;
        loop {
            check_deadline()?;
            let last = layers.len() - 1;
            if first.is_none()
                && let Some(at) = self.target(context, &layers[last], crosses_pretoken)?
            {
                layers[last].swap(0, at);
                self.learn(&layers);
                return Ok(Some(layers));
            }
            let (byte, mut next) = match first.take() {
                // This is not the rest of a pre-token.
                Some(SPECIAL_BYTE) => return Ok(None),
                Some(byte) => match context.machine.step(state, byte)? {
                    Some(next) => (byte, next),
                    None => return Ok(None),
                },
                None => match self.completion_hop(context, state)? {
                    Some(hop) => hop,
                    None => return Ok(None),
                },
            };
            if before.replace(byte).is_some_and(|before| splits(before, byte)) {
                for at in 0..layers[last].len() {
                    if self.is_productive(context, layers[last][at].product_state)? {
                        layers[last].swap(0, at);
                        self.learn(&layers);
                        return Ok(Some(layers));
                    }
                }
            }
            let layer = if byte == SPECIAL_BYTE {
                let Some(after) = self.after_special_token(context, next)? else { return Ok(None) };
                next = after;
                self.layer_after_special(context, &layers[last], next)?
            } else {
                self.layer(context, &layers[last], (byte, next))?
            };
            if layer.is_empty() {
                return Ok(None);
            }
            layers.push(layer);
            state = next;
        }
    }

    /// Extends the paths by a byte, which leads to the language state `state`.
    fn layer<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        before: &[PathStep],
        (byte, state): (u8, StateId),
    ) -> Result<Vec<PathStep>, Error> {
        let mut layer: Vec<PathStep> = Vec::new();
        for (from, path_step) in before.iter().enumerate() {
            for boundary in BOUNDARIES {
                let splitter_state = self.parts(path_step.product_state).1;
                let Some(splitter_state) =
                    context.encoder.splitter().step(splitter_state, byte, boundary)
                else {
                    continue;
                };
                let product_state = self.intern(context, state, splitter_state)?;
                if self.productive[product_state as usize] != Verdict::No
                    && !layer.iter().any(|known| known.product_state == product_state)
                {
                    let crosses_pretoken =
                        path_step.crosses_pretoken || boundary != Boundary::Inside;
                    layer.push(PathStep {
                        product_state,
                        from,
                        step: (byte, boundary),
                        crosses_pretoken,
                    });
                }
            }
        }
        Ok(layer)
    }

    /// Returns the language state after the special token inside which `state` is, along a
    /// completion.
    fn after_special_token<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        mut state: StateId,
    ) -> Result<Option<StateId>, Error> {
        while let Some((byte, next)) = self.completion_hop(context, state)? {
            if byte == SPECIAL_BYTE {
                return Ok(Some(next));
            }
            state = next;
        }
        Ok(None)
    }

    /// Extends a path over a special token, after which a text begins.
    fn layer_after_special<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        before: &[PathStep],
        state: StateId,
    ) -> Result<Vec<PathStep>, Error> {
        let splitter = context.encoder.splitter();
        let ends = |path_step: &PathStep| splitter.may_end(self.parts(path_step.product_state).1);
        let Some(from) = before.iter().position(ends) else { return Ok(Vec::new()) };
        let product_state = self.intern(context, state, splitter.start())?;
        if self.productive[product_state as usize] == Verdict::No {
            return Ok(Vec::new());
        }
        Ok(vec![PathStep {
            product_state,
            from,
            step: (SPECIAL_BYTE, Boundary::Pretoken),
            crosses_pretoken: true,
        }])
    }

    /// Returns the first path that reaches a state known to be productive, or an accepting one.
    fn target<K: MaskClasses>(
        &self,
        context: ProductContext<'_, K>,
        paths: &[PathStep],
        crosses_pretoken: bool,
    ) -> Result<Option<usize>, Error> {
        for (at, path_step) in paths.iter().enumerate() {
            let known = self.productive[path_step.product_state as usize] == Verdict::Yes
                && (path_step.crosses_pretoken || !crosses_pretoken);
            if known || self.is_end(context, path_step.product_state)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Marks every state on the path to the first entry of the last layer as productive.
    fn learn(&mut self, layers: &[Vec<PathStep>]) {
        let mut at = 0;
        for layer in layers.iter().rev() {
            self.productive[layer[at].product_state as usize] = Verdict::Yes;
            at = layer[at].from;
        }
    }

    /// Returns a byte toward acceptance; following these bytes reaches an accepting state. Returns
    /// `None` if the state accepts and nothing need follow.
    pub(in crate::canonical) fn completion_hop<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        state: StateId,
    ) -> Result<Option<(u8, StateId)>, Error> {
        if let Some(&hop) = self.ahead.get(&state.number()) {
            return Ok(hop);
        }
        if !context.machine.is_finite() {
            return self.hop_of_stack_machine(context, state);
        }
        let mut visited: Vec<(StateId, usize, u8)> = vec![(state, 0, 0)];
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([state.number()]);
        let mut at = 0;
        while at < visited.len() {
            check_deadline()?;
            let here = visited[at].0;
            let known = self.ahead.contains_key(&here.number());
            if known || context.machine.is_accepting(here)? {
                if !known {
                    self.ahead.insert(here.number(), None);
                }
                let mut after = at;
                while after != 0 {
                    let (next, before, byte) = visited[after];
                    self.ahead.insert(visited[before].0.number(), Some((byte, next)));
                    after = before;
                }
                break;
            }
            for byte in context.machine.live_bytes(here)?.iter() {
                if let Some(next) = context.machine.step(here, byte)?
                    && seen.insert(next.number())
                {
                    visited.push((next, at, byte));
                }
            }
            at += 1;
        }
        Ok(self.ahead.get(&state.number()).copied().flatten())
    }

    /// Returns a byte toward acceptance if a search could visit infinitely many states.
    fn hop_of_stack_machine<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        state: StateId,
    ) -> Result<Option<(u8, StateId)>, Error> {
        let (path_step, here) = match self.abstract_completion_path(context, state)? {
            Some(found) => found,
            None if self.find_path_nearby(context, state)? => {
                return Ok(self.ahead.get(&state.number()).copied().flatten());
            }
            None => {
                let text = context.machine.any_completion(state)?;
                self.path_along(context, state, &text)?
            }
        };
        if context.machine.is_accepting(here)? {
            self.ahead.entry(here.number()).or_insert(None);
        }
        // A state visited twice continues as it did the last time, so that no path is a cycle.
        for (here, hop) in path_step.into_iter().rev() {
            self.ahead.entry(here.number()).or_insert(Some(hop));
        }
        Ok(self.ahead.get(&state.number()).copied().flatten())
    }

    /// Looks for a state near by from which a path to acceptance is known, and notes the path there.
    /// Most states of a value lead in few bytes to the state after it, through which other
    /// completions have gone.
    fn find_path_nearby<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        state: StateId,
    ) -> Result<bool, Error> {
        if self.ahead.is_empty() {
            return Ok(false);
        }
        let mut visited: Vec<(StateId, usize, u8)> = vec![(state, 0, 0)];
        let mut at = 0;
        while at < visited.len().min(MAX_NEARBY_STATES) {
            check_deadline()?;
            let here = visited[at].0;
            for byte in context.machine.live_bytes(here)?.iter().take(MAX_NEARBY_BYTES) {
                let Some(next) = context.machine.step(here, byte)? else { continue };
                if self.ahead.contains_key(&next.number()) {
                    self.ahead.insert(here.number(), Some((byte, next)));
                    while at != 0 {
                        let (next, before, byte) = visited[at];
                        self.ahead.insert(visited[before].0.number(), Some((byte, next)));
                        at = before;
                    }
                    return Ok(true);
                }
                if !visited.iter().any(|one| one.0 == next) {
                    visited.push((next, at, byte));
                }
            }
            at += 1;
        }
        Ok(false)
    }

    /// Returns the path along a completion of the abstract state, if that also completes the state
    /// itself. States that differ in what was read share an abstract state and so one search for a
    /// completion, as those after each number that may be an item of an array with unique items.
    fn abstract_completion_path<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        state: StateId,
    ) -> Result<Option<(HopPath, StateId)>, Error> {
        let machine = context.machine;
        let abstract_state = machine.abstract_state(state)?;
        if abstract_state == state {
            return Ok(None);
        }
        let text = self.abstract_completion(context, abstract_state)?;
        let (path, end) = self.path_along(context, state, &text)?;
        let is_complete = path.len() == text.len() && machine.is_accepting(end)?;
        Ok((is_complete || self.ahead.contains_key(&end.number())).then_some((path, end)))
    }

    fn abstract_completion<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        abstract_state: StateId,
    ) -> Result<Arc<[u8]>, Error> {
        if let Some(known) = self.abstract_completions.get(&abstract_state.number()) {
            return Ok(Arc::clone(known));
        }
        let text: Arc<[u8]> = context.machine.any_completion(abstract_state)?.into();
        self.abstract_completion_bytes += text.len();
        self.abstract_completions.insert(abstract_state.number(), Arc::clone(&text));
        Ok(text)
    }

    /// Decides without reading on: returns the boundaries that the completion of the abstract state
    /// admits, if it is known to complete the state itself. `None` and `false` prove nothing.
    pub(super) fn kept_completion<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
    ) -> Result<Option<AdmittedBoundaries>, Error> {
        // Elsewhere states that differ in what was read are rarely many.
        if context.machine.is_finite() || !context.keys.drops_seen_items() {
            return Ok(None);
        }
        let (state, splitter_state) = self.parts(product_state);
        let abstract_state = context.machine.abstract_state(state)?;
        if abstract_state == state {
            return Ok(None);
        }
        let text = self.abstract_completion(context, abstract_state)?;
        if !context.machine.keeps_completion(state, &text)? {
            return Ok(None);
        }
        let key = (abstract_state.number(), splitter_state);
        if let Some(&known) = self.admitted.get(&key) {
            return Ok(Some(known));
        }
        let splitter = context.encoder.splitter();
        let admits = |firsts: &[Boundary]| {
            let mut states = vec![splitter_state];
            for (at, &byte) in text.iter().enumerate() {
                let boundaries = if at == 0 { firsts } else { &BOUNDARIES };
                let mut next = Vec::new();
                for &state in &states {
                    for &boundary in boundaries {
                        // Special tokens are followed along paths.
                        let after = splitter.step(state, byte, boundary);
                        next.extend(after.filter(|_| byte != SPECIAL_BYTE));
                    }
                }
                next.sort_unstable();
                next.dedup();
                states = next;
            }
            states.into_iter().any(|state| splitter.may_end(state))
        };
        let admitted = AdmittedBoundaries {
            any: admits(&BOUNDARIES),
            after_pretoken: admits(&[Boundary::Pretoken, Boundary::Added]),
        };
        self.admitted.insert(key, admitted);
        Ok(Some(admitted))
    }

    /// Returns the path from a state along a text, up to its end or to a state from which a path to
    /// acceptance is known, and the state there.
    fn path_along<K: MaskClasses>(
        &self,
        context: ProductContext<'_, K>,
        state: StateId,
        text: &[u8],
    ) -> Result<(HopPath, StateId), Error> {
        let (mut here, mut path) = (state, HopPath::new());
        for &byte in text {
            if self.ahead.contains_key(&here.number()) {
                break;
            }
            let Some(next) = context.machine.step(here, byte)? else { break };
            path.push((here, (byte, next)));
            here = next;
        }
        Ok((path, here))
    }
}
