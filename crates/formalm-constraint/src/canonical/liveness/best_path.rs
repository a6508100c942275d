//! Liveness for Unigram tokenizers, where the state of a pre-token holds open pieces.
//!
//! What is canonical so far stays so, whatever follows. An element is therefore live iff the
//! language can be completed by text for which the segmentation through its end stays the best. A
//! known completion of the language shows it nearly always: the text between the end and the next
//! boundary is segmented once ([`BpeEncoder::encode_rest`]). Where no token contains the last
//! character so far and the first one of a completion, all tokens with that last character are
//! settled at once ([`Completions`]). A search over tokens decides the rest.
//!
//! [`BpeEncoder::encode_rest`]: formalm_vocabulary::bpe::BpeEncoder::encode_rest

use formalm_core::{Error, LazyDfa, ReadingHints, Resource, deadline::check_deadline};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary, PretokenState, TokenOrigin, TokenSet};
use rustc_hash::FxHashSet;

use super::super::joint_targets::TokenChoice;
use super::super::product::{Product, ProductState};
use super::super::subsets::SubsetElement;
use super::super::{MAX_STEPS, NONE, ProductContext};
use super::completions::Completions;
use super::{ElementGroups, Liveness, MAX_POSITIONS};
use crate::mask::{MaskWords, patch};

/// Number of tokens up to which each is read, rather than all that open pieces forbid are found.
/// Chosen, not measured.
const MAX_SINGLE_TOKENS: usize = 64;

/// Number of states inside a character that are visited to find one that occurs in no piece. Chosen,
/// not measured.
const MAX_CHARACTER_STATES: usize = 256;

/// The state of the pre-token before a token, and the boundary before the token.
#[derive(Clone, Copy)]
pub(super) struct TokenStart {
    pub(super) pretoken: PretokenState,
    pub(super) boundary: Boundary,
}

/// What is known after a token.
enum AfterToken {
    /// The token is not canonical there.
    Refused,
    /// The text can be completed.
    Live,
    /// The text can be completed if it can after this element.
    Open(SubsetElement),
}

/// Bitmasks of the tokens that open pieces forbid: all at once, and those that have to be asked one
/// by one.
pub(super) struct CrossedTokens {
    pub(super) forbidden: Vec<u32>,
    pub(super) near: Vec<u32>,
    pub(super) near_list: Vec<u32>,
}

impl CrossedTokens {
    pub(super) fn after<K: MaskClasses>(
        context: ProductContext<'_, K>,
        pretoken: (PretokenState, bool),
        words: usize,
    ) -> CrossedTokens {
        let (mut forbidden, mut near) = (vec![0; words], vec![0; words]);
        let near_list =
            context.encoder.forbid_crossed(context.open_pieces, pretoken, &mut forbidden);
        patch(&mut near, &near_list, &[]);
        CrossedTokens { forbidden, near, near_list }
    }
}

impl Liveness {
    /// Sets the tokens that may follow an element and can be completed; see [`Liveness::allowed`].
    pub(super) fn allowed_on_best_path<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
        choice: TokenChoice,
        (inside, begins): (&mut MaskWords, &mut MaskWords),
    ) -> Result<(), Error> {
        for (token, _) in product.after_special(context, element.product_state)? {
            patch(begins, &[token], &[]);
        }
        let (encoder, is_shared) = (context.encoder, choice == TokenChoice::All);
        let leads = encoder.boundary_leads();
        for boundary in BOUNDARIES {
            let is_inside = boundary == Boundary::Inside;
            let groups = self.kept_groups(context, product, (element, boundary), choice)?;
            if groups.is_empty() {
                continue;
            }
            if let Some(leads) = leads
                && is_shared
                && is_inside
                && !has_few_tokens(&groups)
                && !encoder.is_inside_character(context.open_pieces, element.pretoken)
            {
                self.add_live_inside(context, product, leads, element, inside)?;
            } else if is_shared && !is_inside {
                let at = (element.product_state, boundary);
                self.kept_beginnings(context, product, at, &groups)?.add_to(begins);
            } else {
                let start = TokenStart { pretoken: element.pretoken, boundary };
                let words = if is_inside { &mut *inside } else { &mut *begins };
                self.add_live_of_groups(context, product, start, &groups, words)?;
            }
        }
        Ok(())
    }

    /// Sets the live tokens of groups, by what open pieces forbid.
    pub(super) fn add_live_of_groups<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        start: TokenStart,
        groups: &ElementGroups,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let from = match start.boundary {
            Boundary::Inside => (start.pretoken, false),
            Boundary::Pretoken | Boundary::Added => (PretokenState::PLAIN, true),
        };
        let crossed =
            (!has_few_tokens(groups)).then(|| CrossedTokens::after(context, from, words.len()));
        for (next, tokens) in groups {
            let next = next.product_state;
            let crossed = crossed.as_ref();
            self.add_live_on_best_path(context, product, start, next, crossed, tokens, words)?;
        }
        Ok(())
    }

    /// Sets the live tokens of a group with one target. Without `crossed`, each token is read.
    #[expect(clippy::too_many_arguments, reason = "a step of the function above")]
    fn add_live_on_best_path<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        start: TokenStart,
        next: ProductState,
        crossed: Option<&CrossedTokens>,
        tokens: &TokenSet,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let encoder = context.encoder;
        let ends = encoder.piece_ends(context.vocabulary);
        let is_clean = self.is_settled(context, product, next)?;
        let mut completions = match is_clean {
            true => Completions::default(),
            false => self.take_completions(context, product, next)?,
        };
        // Tokens that are settled with others like them, and those that are not.
        let mut single = Vec::new();
        let mut failed = None;
        tokens.for_each_word(|at, word| {
            let (forbidden, near) =
                crossed.map_or((0, !0), |crossed| (crossed.forbidden[at], crossed.near[at]));
            let candidates = word & !forbidden;
            let pieces = candidates & ends.pieces(at) & !near;
            let mut settled = if is_clean { pieces } else { 0 };
            let mut open = pieces & !settled;
            while open != 0 && failed.is_none() {
                let bit = open & open.wrapping_neg();
                let last = ends.last_byte(32 * at as u32 + bit.trailing_zeros());
                match completions.are_apart_from(context, product, next, last) {
                    Ok(true) => settled |= bit,
                    Ok(false) => {}
                    Err(error) => failed = Some(error),
                }
                open &= open - 1;
            }
            words[at] |= settled;
            let mut open = candidates & !settled;
            while open != 0 {
                single.push(32 * at as u32 + open.trailing_zeros());
                open &= open - 1;
            }
        });
        if !is_clean {
            self.completions.insert(next, completions);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        for token in single {
            if self.is_token_live(context, product, start, next, (token, is_clean))? {
                patch(words, &[token], &[]);
            }
        }
        Ok(())
    }

    /// Returns `true` if a token may stand there and can be completed.
    pub(super) fn is_token_live<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        start: TokenStart,
        next: ProductState,
        (token, is_clean): (u32, bool),
    ) -> Result<bool, Error> {
        check_deadline()?;
        if self.begins_apart(context, product, start, next, token)? {
            return Ok(true);
        }
        match self.after_token(context, start, next, (token, is_clean)) {
            AfterToken::Refused => Ok(false),
            AfterToken::Live => Ok(true),
            AfterToken::Open(element) => self.is_live_on_best_path(context, product, element),
        }
    }

    /// Returns `true` if a token is the first byte of a character that occurs in no piece, and the text
    /// can be completed after that. What is open before it does not matter.
    fn begins_apart<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        start: TokenStart,
        next: ProductState,
        token: u32,
    ) -> Result<bool, Error> {
        let (encoder, open_pieces) = (context.encoder, context.open_pieces);
        let TokenOrigin::Byte(first) = encoder.origin(token) else { return Ok(false) };
        let is_between = start.boundary != Boundary::Inside
            || !encoder.is_inside_character(open_pieces, start.pretoken);
        if !is_between || first < 0xc0 || !encoder.encodes_all() {
            return Ok(false);
        }
        if let Some(&known) = self.apart.get(&next) {
            return Ok(known);
        }
        let found = character_apart(context, product, next, first)?;
        self.apart.insert(next, found);
        Ok(found)
    }

    /// Reads a token that leads to a product state. Most states with open pieces are not met again,
    /// so they are numbered only if a search may visit them.
    fn after_token<K: MaskClasses>(
        &self,
        context: ProductContext<'_, K>,
        start: TokenStart,
        next: ProductState,
        (token, is_clean): (u32, bool),
    ) -> AfterToken {
        let (encoder, open_pieces) = (context.encoder, context.open_pieces);
        let begins = start.boundary != Boundary::Inside;
        let pretoken = match encoder.open_pieces_after(open_pieces, start.pretoken, token, begins) {
            Some(None) => return AfterToken::Refused,
            Some(Some(open)) => {
                let is_settled = is_clean
                    || self
                        .completions
                        .get(&next)
                        .is_some_and(|known| known.one_is_known_after(encoder, &open));
                if open.is_between_characters() && is_settled {
                    return AfterToken::Live;
                }
                encoder.numbered(open_pieces, open)
            }
            None => match context.pretoken_step(start.pretoken, token, begins) {
                Some(pretoken) => pretoken,
                None => return AfterToken::Refused,
            },
        };
        AfterToken::Open(SubsetElement { product_state: next, pretoken })
    }

    /// Returns `true` if the text can be completed after a boundary at a product state. `false`
    /// proves nothing.
    pub(super) fn is_settled<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
    ) -> Result<bool, Error> {
        // What follows the boundary has tokens only if all characters have.
        Ok(product.is_end(context, product_state)?
            || context.encoder.encodes_all() && product.is_clean(context, product_state)?)
    }

    /// Returns the known completions of a product state, to be put back.
    pub(super) fn take_completions<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
    ) -> Result<Completions, Error> {
        match self.completions.remove(&product_state) {
            Some(known) => Ok(known),
            None => Completions::new(context, product, product_state),
        }
    }

    /// Returns `true` if the text can be completed after an element.
    pub(super) fn is_live_on_best_path<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
    ) -> Result<bool, Error> {
        if let Some(&known) = self.best_path_verdicts.get(&element) {
            return Ok(known);
        }
        let live = match self.without_token_search(context, product, element)? {
            Some(live) => live,
            None => return self.search_tokens(context, product, element),
        };
        self.best_path_verdicts.insert(element, live);
        Ok(live)
    }

    fn without_token_search<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
    ) -> Result<Option<bool>, Error> {
        let SubsetElement { product_state, pretoken } = element;
        let (encoder, open_pieces) = (context.encoder, context.open_pieces);
        if !encoder.is_inside_character(open_pieces, pretoken)
            && self.is_settled(context, product, product_state)?
        {
            return Ok(Some(true));
        }
        if !product.is_productive(context, product_state)? {
            return Ok(Some(false));
        }
        if encoder.splitter().is_in_added_token(product.parts(product_state).1) {
            return Ok(None);
        }
        let mut completions = self.take_completions(context, product, product_state)?;
        let live = completions.one_fits(context, product, element);
        self.completions.insert(product_state, completions);
        Ok(live?.then_some(true))
    }

    /// Searches for a completion token by token.
    fn search_tokens<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
    ) -> Result<bool, Error> {
        let mut visited =
            vec![Visited { element, from: 0, token: NONE, boundary: Boundary::Inside }];
        let mut seen = FxHashSet::from_iter([element]);
        let mut pending = vec![0];
        while let Some(at) = pending.pop() {
            check_deadline()?;
            let here = visited[at].element;
            for boundary in BOUNDARIES {
                let inside_character =
                    context.encoder.is_inside_character(context.open_pieces, here.pretoken);
                if inside_character && boundary != Boundary::Inside {
                    continue;
                }
                let groups =
                    self.kept_groups(context, product, (here, boundary), TokenChoice::All)?;
                let start = TokenStart { pretoken: here.pretoken, boundary };
                for (next, tokens) in &*groups {
                    let next = next.product_state;
                    let is_clean = self.is_settled(context, product, next)?;
                    if !is_clean {
                        let completions = self.take_completions(context, product, next)?;
                        self.completions.insert(next, completions);
                    }
                    let mut found = Vec::new();
                    let is_live = tokens.find(|token| {
                        match self.after_token(context, start, next, (token, is_clean)) {
                            AfterToken::Refused => {}
                            AfterToken::Live => return Some(token),
                            AfterToken::Open(next) => found.push((next, token)),
                        }
                        None
                    });
                    let mut live = is_live;
                    for (element, token) in found {
                        if live.is_some() {
                            break;
                        }
                        if !seen.insert(element) {
                            continue;
                        }
                        visited.push(Visited { element, from: at, token, boundary });
                        let known = match self.best_path_verdicts.get(&element) {
                            Some(&known) => Some(known),
                            None => self.without_token_search(context, product, element)?,
                        };
                        match known {
                            Some(true) => {
                                self.best_path_verdicts.insert(element, true);
                                live = Some(token);
                            }
                            Some(false) => {}
                            None => pending.push(visited.len() - 1),
                        }
                    }
                    if let Some(token) = live {
                        let mut before = at;
                        while before != 0 {
                            self.best_path_verdicts.insert(visited[before].element, true);
                            before = visited[before].from;
                        }
                        self.best_path_verdicts.insert(element, true);
                        if boundary == Boundary::Inside
                            && let Some(mut read) = bytes_inside(context, &visited, at)
                        {
                            read.extend(context.vocabulary.token_bytes(token).unwrap_or_default());
                            self.learn_completion(context, element, &read, (next, is_clean));
                        }
                        return Ok(true);
                    }
                }
            }
            if !context.machine.is_finite() && visited.len() > MAX_STEPS {
                self.undecided.insert((element, 0));
                self.best_path_verdicts.insert(element, true);
                return Ok(true);
            }
            if visited.len() > MAX_POSITIONS {
                return Err(Error::Limit {
                    resource: Resource::States,
                    needed: visited.len() as u64,
                    allowed: MAX_POSITIONS as u64,
                });
            }
        }
        self.best_path_verdicts.extend(visited.into_iter().map(|one| (one.element, false)));
        Ok(false)
    }

    /// Keeps a completion of an element that a search has found: what it read, and a completion of
    /// the product state there.
    fn learn_completion<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        element: SubsetElement,
        read: &[u8],
        (next, is_clean): (ProductState, bool),
    ) {
        let ends = match self.completions.get(&next) {
            _ if is_clean => vec![Box::default()],
            Some(completions) => completions.few_safe(),
            None => Vec::new(),
        };
        if let Some(completions) = self.completions.get_mut(&element.product_state) {
            let rests = ends.iter().map(|end| [read, end].concat());
            rests.into_iter().any(|rest| completions.learn(context, element, rest.into()));
        }
    }
}

/// An element that a search has visited.
struct Visited {
    element: SubsetElement,
    /// The index of its predecessor.
    from: usize,
    /// The token between the two, and the boundary before it.
    token: u32,
    boundary: Boundary,
}

/// Returns the bytes from the first element of a search to another one, if the pre-token goes on.
fn bytes_inside<K: MaskClasses>(
    context: ProductContext<'_, K>,
    visited: &[Visited],
    mut at: usize,
) -> Option<Vec<u8>> {
    let mut tokens = Vec::new();
    while at != 0 {
        let Visited { from, token, boundary, .. } = visited[at];
        if boundary != Boundary::Inside {
            return None;
        }
        tokens.push(context.vocabulary.token_bytes(token)?);
        at = from;
    }
    tokens.reverse();
    Some(tokens.concat())
}

/// Returns `true` if groups have few tokens together.
fn has_few_tokens(groups: &ElementGroups) -> bool {
    let mut count = 0;
    groups.iter().all(|(_, tokens)| match &**tokens {
        TokenSet::List(list) => {
            count += list.len();
            count <= MAX_SINGLE_TOKENS
        }
        TokenSet::Mask(_) => false,
    })
}

/// Returns `true` if some character that occurs in no piece can be read from inside it, after its
/// first byte, and the text can be completed after it.
fn character_apart<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    product_state: ProductState,
    first: u8,
) -> Result<bool, Error> {
    let splitter = context.encoder.splitter();
    let mut pending = vec![(product_state, vec![first])];
    let mut visited = 0;
    while let Some((here, read)) = pending.pop() {
        check_deadline()?;
        let (state, splitter_state) = product.parts(here);
        if splitter.is_between_characters(splitter_state) {
            let character = std::str::from_utf8(&read).ok().and_then(|text| text.chars().next());
            if character.is_some_and(|character| context.encoder.is_always_apart(character))
                && product.is_productive(context, here)?
            {
                return Ok(true);
            }
            continue;
        }
        visited += 1;
        if visited > MAX_CHARACTER_STATES || read.len() == 4 {
            continue;
        }
        for byte in context.machine.live_bytes(state)?.iter() {
            if let Some(next) = product.step(context, here, (byte, Boundary::Inside))? {
                pending.push((next, [&read[..], &[byte]].concat()));
            }
        }
    }
    Ok(false)
}
