//! The fewest canonical tokens to a member, for masks with `finish=True`.
//!
//! ```text
//!  fewest tokens of any kind  ≤  fewest canonical tokens  ≤  tokens of a known completion
//! ```
//!
//! The two bounds nearly always agree with the budget, so a search is needed only where the budget
//! lies between them. It goes by budgets: the last tokens that some completion of `k` tokens may
//! follow are all of them, none, or those that may precede one of the *first tokens* of such
//! completions. First tokens within `k` follow from the sets within `k - 1`.
//!
//! The result is exact for machines with finitely many states, and wherever finitely many are
//! reached ([`super::token_distances`]). A stack without a bound can make the search endless; it gives
//! up after a few steps, and tokens whose completions it did not find are left out and counted.

use std::sync::Arc;

use formalm_core::{
    Error, LazyDfa, ReadingHints, StateId, deadline::check_deadline, map_slot_bytes, set_slot_bytes,
};
use formalm_machines::{MaskClasses, SPECIAL_BYTE};
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary, PretokenState, SplitterState, TokenSet};
use rustc_hash::{FxHashMap, FxHashSet};

use super::fewest_with_open_pieces::TokenBounds;
use super::joint_targets::TokenChoice;
use super::liveness::Liveness;
use super::product::{Product, ProductState};
use super::subsets::SubsetElement;
use super::token_distances::TokenDistances;
use super::{NONE, ProductContext};
use crate::finish::FinishSearch;
use crate::mask::{MaskWords, patch};

/// Maximum number of cached sets; beyond it all are dropped. Chosen, not measured.
const MAX_SETS: usize = 100_000;

/// Maximum number of elements whose tokens one query groups. Chosen, not measured.
const MAX_EXPANSIONS: usize = 20_000;

/// The same where a search need not terminate. Chosen, not measured.
const MAX_STACK_EXPANSIONS: usize = 64;

/// Maximum number of tokens that a search reads ahead; bounds its recursion. Chosen, not measured.
const MAX_DEPTH: usize = 400;

/// Maximum number of product states visited in search of a completion that the normalizer leaves
/// unchanged. Chosen, not measured.
const MAX_COMPLETION_STATES: usize = 20_000;

/// A known completion, in canonical tokens.
#[derive(Debug)]
pub(super) struct Completion {
    /// The number of tokens.
    pub(super) count: u32,
    /// The first token, and whether it continues the pre-token.
    first: Option<(u32, bool)>,
}

impl Completion {
    /// Returns `true` if a pre-token begins with the first token.
    pub(super) fn begins_pretoken(&self) -> bool {
        self.first.is_some_and(|(_, continues)| !continues)
    }
}

/// The last tokens that some completion within a budget may follow.
#[derive(Clone, Debug)]
enum LastTokens {
    All,
    None,
    /// Those that may precede one of these.
    Before(Arc<TokenSet>),
}

/// The results so far.
#[derive(Debug, Default)]
pub(crate) struct FewestTokens {
    /// Known completions; by product state alone, unless pieces are open.
    completions: FxHashMap<SubsetElement, Option<Arc<Completion>>>,
    known: FxHashMap<(SubsetElement, u32), LastTokens>,
    pub(super) given_up: FxHashSet<(SubsetElement, u32)>,
    /// The fewest tokens of any kind.
    any_tokens: FinishSearch,
    /// Short strings from a product state.
    strings: FxHashMap<ProductState, Option<Arc<[u8]>>>,
    /// Bounds where pieces are open.
    pub(super) bounds: FxHashMap<SubsetElement, TokenBounds>,
    /// Lower bounds for machines with a stack.
    pub(super) distances: TokenDistances,
}

/// A query: the tables that it reads and fills.
pub(crate) struct FewestQuery<'a, K: MaskClasses> {
    pub(crate) context: ProductContext<'a, K>,
    pub(crate) product: &'a mut Product,
    pub(crate) live: &'a mut Liveness,
    pub(crate) fewest: &'a mut FewestTokens,
    expansions: usize,
    pub(super) depth: usize,
}

impl FewestTokens {
    /// Returns the number of searches that gave up.
    pub(crate) fn given_up_count(&self) -> usize {
        self.given_up.len()
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        map_slot_bytes(&self.completions)
            + 40 * self.completions.len()
            + map_slot_bytes(&self.known)
            + set_slot_bytes(&self.given_up)
            + map_slot_bytes(&self.strings)
            + map_slot_bytes(&self.bounds)
            + self.any_tokens.memory_bytes()
            + self.distances.memory_bytes()
    }
}

impl<'a, K: MaskClasses> FewestQuery<'a, K> {
    pub(crate) fn new(
        context: ProductContext<'a, K>,
        product: &'a mut Product,
        live: &'a mut Liveness,
        fewest: &'a mut FewestTokens,
    ) -> FewestQuery<'a, K> {
        if fewest.known.len() > MAX_SETS {
            fewest.known.clear();
        }
        if fewest.bounds.len() > MAX_SETS {
            fewest.bounds.clear();
            fewest.completions.clear();
        }
        FewestQuery { context, product, live, fewest, expansions: 0, depth: 0 }
    }

    /// Returns `true` if a completion of at most `budget` tokens may follow the token `last`.
    pub(crate) fn fits(
        &mut self,
        element: SubsetElement,
        last: u32,
        budget: u32,
    ) -> Result<bool, Error> {
        let element = self.common(element)?;
        if self.context.encoder.has_open_pieces() {
            return self.fits_with_pieces(element, budget);
        }
        if self.all_fit(element, budget)? || self.follows_known(element, last, budget)? {
            return Ok(true);
        }
        let tokens = self.within(element, budget)?;
        Ok(self.is_among(&tokens, last))
    }

    /// Returns the number of tokens of a known completion after the token `last`.
    pub(crate) fn known_count(
        &mut self,
        element: SubsetElement,
        last: u32,
    ) -> Result<Option<u32>, Error> {
        let Some(completion) = self.completion(element)? else { return Ok(None) };
        let count = completion.count;
        if self.context.encoder.has_open_pieces() {
            return Ok(Some(count));
        }
        let fits = self.all_fit(element, count)? || self.follows_known(element, last, count)?;
        Ok(fits.then_some(count))
    }

    /// Sets the tokens after which a completion of at most `left` tokens is found, given the last
    /// token.
    pub(crate) fn keep(
        &mut self,
        element: SubsetElement,
        last: u32,
        left: u32,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let encoder = self.context.encoder;
        let common = self.common(element)?;
        for boundary in BOUNDARIES {
            let begins = boundary != Boundary::Inside;
            let may_stand = match begins {
                true => encoder.pretoken_may_end(common.pretoken),
                false => !encoder.pretoken_must_end(common.pretoken),
            };
            if !may_stand {
                continue;
            }
            for (next, tokens) in self.groups(common, boundary)? {
                let all = self.all_fit(next, left)?;
                if all && begins {
                    tokens.add_to(words);
                    continue;
                }
                for token in token_list(&tokens) {
                    if (begins || last == NONE || encoder.may_follow(last, token))
                        && (all || self.fits(next, token, left)?)
                    {
                        patch(words, &[token], &[]);
                    }
                }
            }
        }
        if encoder.pretoken_may_end(common.pretoken) {
            for (token, next) in self.product.after_special(self.context, common.product_state)? {
                if self.fits(SubsetElement::new(next), NONE, left)? {
                    patch(words, &[token], &[]);
                }
            }
        }
        Ok(())
    }

    /// Returns the first token of a known completion of at most `budget` tokens.
    pub(crate) fn first_of_known(
        &mut self,
        element: SubsetElement,
        last: u32,
        budget: u32,
    ) -> Result<Option<u32>, Error> {
        let Some(count) = self.known_count(element, last)? else { return Ok(None) };
        let completion = self.completion(element)?;
        Ok(completion.filter(|_| count <= budget).and_then(|one| one.first).map(|first| first.0))
    }

    /// Returns the element with the representative of its product state.
    pub(super) fn common(&mut self, element: SubsetElement) -> Result<SubsetElement, Error> {
        let product_state = self.product.common(self.context, element.product_state)?;
        Ok(SubsetElement { product_state, ..element })
    }

    pub(super) fn groups(
        &mut self,
        element: SubsetElement,
        boundary: Boundary,
    ) -> Result<Vec<(SubsetElement, TokenSet)>, Error> {
        self.expansions += 1;
        let choice = TokenChoice::AllSplit;
        let groups = self.live.groups(self.context, self.product, (element, boundary), choice)?;
        Ok(groups.into_iter().map(|(next, tokens)| (next, tokens.into_set())).collect())
    }

    /// Returns `true` if the text may end here.
    pub(super) fn may_end(&self, element: SubsetElement) -> Result<bool, Error> {
        let (state, splitter_state) = self.product.parts(element.product_state);
        Ok(self.context.encoder.pretoken_may_end(element.pretoken)
            && self.context.encoder.splitter().may_end(splitter_state)
            && self.context.machine.is_accepting(state)?)
    }

    /// Returns `true` if a known completion of at most `budget` tokens may follow any last token.
    fn all_fit(&mut self, element: SubsetElement, budget: u32) -> Result<bool, Error> {
        if !self.context.encoder.pretoken_may_end(element.pretoken) {
            return Ok(false);
        }
        if self.may_end(element)? {
            return Ok(true);
        }
        let completion = self.completion(element)?;
        Ok(completion.is_some_and(|one| one.count <= budget && one.begins_pretoken()))
    }

    /// Returns `true` if a known completion of at most `budget` tokens continues the pre-token
    /// after the token `last`.
    fn follows_known(
        &mut self,
        element: SubsetElement,
        last: u32,
        budget: u32,
    ) -> Result<bool, Error> {
        if element.pretoken != PretokenState::PLAIN {
            return Ok(false);
        }
        let completion = self.completion(element)?;
        let Some(completion) = completion.filter(|one| one.count <= budget) else {
            return Ok(false);
        };
        let fits = |first| last == NONE || self.context.encoder.may_follow(last, first);
        Ok(completion.first.is_some_and(|(first, continues)| continues && fits(first)))
    }

    fn is_among(&self, tokens: &LastTokens, last: u32) -> bool {
        match tokens {
            LastTokens::All => true,
            LastTokens::None => false,
            LastTokens::Before(firsts) => {
                let fits = |first| {
                    (last == NONE || self.context.encoder.may_follow(last, first)).then_some(())
                };
                firsts.find(fits).is_some()
            }
        }
    }

    /// Returns the last tokens that some completion of at most `budget` tokens may follow.
    fn within(&mut self, element: SubsetElement, budget: u32) -> Result<LastTokens, Error> {
        check_deadline()?;
        if self.all_fit(element, budget)? {
            return Ok(LastTokens::All);
        }
        if budget == 0 {
            return Ok(LastTokens::None);
        }
        if let Some(known) = self.fewest.known.get(&(element, budget)) {
            return Ok(known.clone());
        }
        if !self.is_searched(element, budget)? {
            return Ok(LastTokens::None);
        }
        let given_up = self.fewest.given_up.len();
        self.depth += 1;
        let found = self.expand(element, budget - 1);
        self.depth -= 1;
        let found = found?;
        // What a search gave up may be found by another one.
        if given_up == self.fewest.given_up.len() || matches!(found, LastTokens::All) {
            self.fewest.known.insert((element, budget), found.clone());
        }
        Ok(found)
    }

    /// Returns `false` if so few tokens of any kind do not lead to a member, or if the search gives
    /// up.
    pub(super) fn is_searched(
        &mut self,
        element: SubsetElement,
        budget: u32,
    ) -> Result<bool, Error> {
        let (most, within_reach) = self.within_reach(element, budget)?;
        if within_reach && (self.expansions > most || self.depth > MAX_DEPTH) {
            self.fewest.given_up.insert((element, budget));
            return Ok(false);
        }
        Ok(within_reach)
    }

    /// Returns `false` if so few tokens of any kind do not lead to a member, and the number of
    /// elements that a search may expand.
    pub(super) fn within_reach(
        &mut self,
        element: SubsetElement,
        budget: u32,
    ) -> Result<(usize, bool), Error> {
        let machine = self.context.machine;
        if machine.is_finite() {
            let state = self.product.parts(element.product_state).0;
            // Special tokens have no bytes in this vocabulary.
            let fits = !self.context.special.is_empty()
                || self.fewest.any_tokens.fits(machine, self.context.vocabulary, state, budget)?;
            return Ok((MAX_EXPANSIONS, fits));
        }
        Ok(match self.distance(element)? {
            Some(distance) => (MAX_EXPANSIONS, distance <= budget),
            None => (MAX_STACK_EXPANSIONS, true),
        })
    }

    /// Computes [`FewestQuery::within`] from what is within `left` tokens after each next token.
    fn expand(&mut self, element: SubsetElement, left: u32) -> Result<LastTokens, Error> {
        let encoder = self.context.encoder;
        if encoder.pretoken_may_end(element.pretoken) {
            for (_, next) in self.product.after_special(self.context, element.product_state)? {
                if self.fits(SubsetElement::new(next), NONE, left)? {
                    return Ok(LastTokens::All);
                }
            }
            for boundary in [Boundary::Pretoken, Boundary::Added] {
                for (next, tokens) in self.groups(element, boundary)? {
                    if self.all_fit(next, left)? {
                        return Ok(LastTokens::All);
                    }
                    for token in token_list(&tokens) {
                        if self.fits(next, token, left)? {
                            return Ok(LastTokens::All);
                        }
                    }
                }
            }
        }
        let mut firsts = Vec::new();
        if !encoder.pretoken_must_end(element.pretoken) {
            for (next, tokens) in self.groups(element, Boundary::Inside)? {
                let all = self.all_fit(next, left)?;
                for token in token_list(&tokens) {
                    if all || self.fits(next, token, left)? {
                        firsts.push(token);
                    }
                }
            }
        }
        Ok(match firsts.is_empty() {
            true => LastTokens::None,
            false => LastTokens::Before(Arc::new(TokenSet::List(firsts))),
        })
    }

    /// Returns a completion, if one is found quickly.
    pub(super) fn completion(
        &mut self,
        element: SubsetElement,
    ) -> Result<Option<Arc<Completion>>, Error> {
        let at = element.product_state;
        let key = match self.context.encoder.has_open_pieces() {
            true => element,
            false => SubsetElement::new(at),
        };
        if let Some(known) = self.fewest.completions.get(&key) {
            return Ok(known.clone());
        }
        let start = (self.product.parts(at).1, key.pretoken);
        let string = self.string(at)?;
        let found = string.and_then(|text| tokens_along(self.context, start, &text));
        let found = found.map(Arc::new);
        self.fewest.completions.insert(key, found.clone());
        Ok(found)
    }

    /// Returns a short string of the language that has canonical tokens after a boundary, if one is
    /// found quickly.
    pub(super) fn string(&mut self, at: ProductState) -> Result<Option<Arc<[u8]>>, Error> {
        if let Some(known) = self.fewest.strings.get(&at) {
            return Ok(known.clone());
        }
        let (state, splitter_state) = self.product.parts(at);
        let start = (splitter_state, PretokenState::PLAIN);
        let context = self.context;
        let is_encoded = |text: &Vec<u8>| match context.encoder.has_open_pieces() {
            true => context.encoder.splitter().pretokens_after(splitter_state, text).is_some(),
            false => tokens_along(context, start, text).is_some(),
        };
        let mut found = self.shortest_string(state)?.filter(is_encoded);
        if found.is_none() && self.context.machine.is_finite() {
            found = self.search_string(at)?;
        }
        let found: Option<Arc<[u8]>> = found.map(Into::into);
        self.fewest.strings.insert(at, found.clone());
        Ok(found)
    }

    /// Returns the shortest string of the language from a state.
    fn shortest_string(&mut self, mut state: StateId) -> Result<Option<Vec<u8>>, Error> {
        if !self.context.machine.is_finite() {
            return match self.context.machine.shortest_completion(state) {
                Ok(text) => Ok(Some(text)),
                Err(Error::Limit { .. }) => Ok(None),
                Err(error) => Err(error),
            };
        }
        let mut text = Vec::new();
        while let Some((byte, next)) = self.product.completion_hop(self.context, state)? {
            text.push(byte);
            state = next;
        }
        Ok(Some(text))
    }

    /// Searches the shortest string that the splitter admits, without special tokens.
    fn search_string(&mut self, from: ProductState) -> Result<Option<Vec<u8>>, Error> {
        let mut visited = vec![(from, 0, 0u8)];
        let mut seen: FxHashSet<ProductState> = FxHashSet::from_iter([from]);
        let mut at = 0;
        while at < visited.len() && visited.len() < MAX_COMPLETION_STATES {
            check_deadline()?;
            let here = visited[at].0;
            let (state, splitter_state) = self.product.parts(here);
            if self.context.encoder.splitter().may_end(splitter_state)
                && self.context.machine.is_accepting(state)?
            {
                let mut text = Vec::new();
                while at != 0 {
                    text.push(visited[at].2);
                    at = visited[at].1;
                }
                text.reverse();
                return Ok(Some(text));
            }
            for byte in self.context.machine.live_bytes(state)?.iter() {
                for boundary in BOUNDARIES {
                    let next = self.product.step(self.context, here, (byte, boundary))?;
                    if let Some(next) = next.filter(|&next| seen.insert(next)) {
                        visited.push((next, at, byte));
                    }
                }
            }
            at += 1;
        }
        Ok(None)
    }
}

/// Returns the canonical tokens of a string after a splitter state and the state of a pre-token,
/// counted. Returns `None` if no canonical text goes on so, or if the tokens depend on the last one in
/// more than adjacency.
fn tokens_along<K: MaskClasses>(
    context: ProductContext<'_, K>,
    (mut state, pretoken): (SplitterState, PretokenState),
    text: &[u8],
) -> Option<Completion> {
    let (encoder, splitter) = (context.encoder, context.encoder.splitter());
    let mut completion = Completion { count: 0, first: None };
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let end = text[at..].iter().position(|&byte| byte == SPECIAL_BYTE);
        let section = &text[at..end.map_or(text.len(), |end| at + end)];
        let pretokens = splitter.pretokens_after(state, section)?;
        let first = pretokens.first().map_or(section.len(), |one| one.0);
        tokens.clear();
        let has_open_pieces = encoder.has_open_pieces();
        if at == 0 && first == 0 && encoder.is_inside_character(context.open_pieces, pretoken) {
            return None;
        }
        if first > 0 && has_open_pieces {
            let rest = &section[..first];
            if splitter.is_in_added_token(state)
                || !encoder.encode_rest(context.open_pieces, pretoken, rest, &mut tokens)
            {
                return None;
            }
        } else if first > 0 {
            // By characters, merging needs whole ones.
            let is_whole = encoder.symbol(0).is_some() || splitter.is_between_characters(state);
            if !is_whole || splitter.is_in_added_token(state) {
                return None;
            }
            encoder.merge(&section[..first], &mut tokens);
        }
        for (number, &(start, boundary)) in pretokens.iter().enumerate() {
            let end = pretokens.get(number + 1).map_or(section.len(), |next| next.0);
            if !encoder.encode_pretoken(&section[start..end], boundary, &mut tokens) {
                return None;
            }
        }
        let continues = first > 0 && at == 0;
        completion.count += tokens.len() as u32;
        completion.first = completion.first.or(tokens.first().map(|&token| (token, continues)));
        let Some(end) = end else { return Some(completion) };
        at += end;
        let (token, bytes) = context.special.iter().find(|one| text[at..].starts_with(&one.1))?;
        completion.count += 1;
        completion.first = completion.first.or(Some((*token, false)));
        at += bytes.len();
        state = splitter.start();
    }
}

pub(super) fn token_list(tokens: &TokenSet) -> Vec<u32> {
    tokens.clone().into_list()
}
