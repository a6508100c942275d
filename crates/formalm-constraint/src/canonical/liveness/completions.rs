//! Known completions of a product state, for tokenizers with open pieces.
//!
//! ```text
//!  text so far … t h e │ " , …        rest of the pre-token along a completion of the language
//!                    e    "           no token contains `e"`: whatever ends with `e` is settled
//! ```
//!
//! The segmentation through the end of a text stays the best if no piece that is open there is
//! completed by what follows. Nearly always one of a few completions shows it, for all tokens with
//! one last byte at once. Completions are kept, because the same states recur in every mask.

use formalm_core::{ByteSet, Error, LazyDfa, deadline::check_deadline};
use formalm_machines::{MaskClasses, SPECIAL_BYTE};
use formalm_vocabulary::bpe::{Boundary, BpeEncoder};
use formalm_vocabulary::unigram::{BoundaryLeads, OpenPieces};

use super::super::ProductContext;
use super::super::product::{Product, ProductState};
use super::super::subsets::SubsetElement;

/// Number of first bytes with which completions are tried for one element. Chosen, not measured.
const FIRST_BYTES_TRIED: usize = 12;

/// Number of completions kept per product state that searches have found. Chosen, not measured.
const MAX_LEARNED: usize = 8;

/// Number of completions kept per product state. Chosen, not measured.
const MAX_KEPT: usize = 40;

/// Number of completions that are read for a single token. Chosen, not measured.
const MAX_READ: usize = 4;

/// Maximum number of beginnings that are compared to show that no completion fits. Chosen, not
/// measured.
const MAX_BEGINNINGS: usize = 3;

/// Maximum length of such a beginning in bytes, that of most pieces. Chosen, not measured.
const MAX_BEGINNING_BYTES: usize = 32;

/// A lead above which no completion with a greater one is looked for: the probability of a token that
/// is e times as likely. Chosen, not measured.
const CLEAR_LEAD: f64 = 0.1;

/// Maximum length in bytes of the completion of a text that is tokenized as evidence. Chosen, not
/// measured.
const MAX_COMPLETION_BYTES: usize = 4096;

/// The completions of a product state that begin with one byte each.
#[derive(Debug, Default)]
pub(super) struct Completions {
    /// The completions that were tried; the first is the shortest one.
    tried: Vec<Tried>,
    /// Last bytes of tokens that are settled, and all that were asked for.
    settled: ByteSet,
    asked: ByteSet,
    /// First bytes of completions with canonical tokens if no piece is open before them.
    safe: ByteSet,
}

/// An attempt to complete the language.
#[derive(Debug)]
struct Tried {
    /// The first byte of the completion; `None` for the shortest one.
    first: Option<u8>,
    /// A search has found it.
    is_learned: bool,
    /// The rest of the pre-token. What follows it has canonical tokens. `None` if none was found.
    rest: Option<Box<[u8]>>,
    /// The rest has canonical tokens if no piece is open before it.
    is_safe: bool,
    /// The rest has canonical tokens whatever its segmentation.
    encodes_however_split: bool,
}

impl Completions {
    /// Finds the shortest completion.
    pub(super) fn new<K: MaskClasses>(
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
    ) -> Result<Completions, Error> {
        let mut completions = Completions::default();
        completions.try_first(context, product, product_state, None)?;
        Ok(completions)
    }

    /// Returns `true` if some completion begins with a byte that follows `last` in no token, and has
    /// canonical tokens.
    #[inline]
    pub(super) fn are_apart_from<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
        last: u8,
    ) -> Result<bool, Error> {
        if !self.asked.contains(last) {
            self.asked.insert(last);
            if self.find_apart_from(context, product, product_state, last)? {
                self.settled.insert(last);
            }
        }
        Ok(self.settled.contains(last))
    }

    fn find_apart_from<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
        last: u8,
    ) -> Result<bool, Error> {
        let is_apart = |next: u8| !context.encoder.may_adjoin(last, next);
        if self.safe.iter().any(is_apart) {
            return Ok(true);
        }
        let (state, splitter_state) = product.parts(product_state);
        if !context.encoder.splitter().is_between_characters(splitter_state) {
            return Ok(false);
        }
        let live = context.machine.live_bytes(state)?;
        for next in live.iter().filter(|&next| is_apart(next)) {
            if context.encoder.encodes_all() {
                // Whatever completes the language after a boundary has canonical tokens.
                let step = (next, Boundary::Inside);
                if let Some(after) = product.step(context, product_state, step)?
                    && product.is_productive(context, after)?
                {
                    self.safe.insert(next);
                    return Ok(true);
                }
                continue;
            }
            if self.tried.len() >= MAX_KEPT {
                break;
            }
            check_deadline()?;
            self.try_first(context, product, product_state, Some(next))?;
            if self.safe.contains(next) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Finds the completion with a first byte, unless that was tried.
    fn try_first<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
        first: Option<u8>,
    ) -> Result<&Tried, Error> {
        let known = self.tried.iter().position(|one| !one.is_learned && one.first == first);
        let at = known.unwrap_or(self.tried.len());
        if known.is_none() {
            let rest = completion(context, product, product_state, first)?;
            let mut tried = Tried::new(context, first, rest);
            let splitter_state = product.parts(product_state).1;
            let next = tried.rest.as_deref().and_then(<[u8]>::first).copied();
            if let Some(next) = next
                && context.encoder.splitter().is_between_characters(splitter_state)
            {
                let pretoken = context.encoder.fresh_state(context.open_pieces);
                tried.is_safe = tried.fits(context, SubsetElement { product_state, pretoken });
                if tried.is_safe {
                    self.safe.insert(next);
                }
            }
            self.tried.push(tried);
        }
        Ok(&self.tried[at])
    }

    /// Returns `true` if the pre-token may end at once.
    pub(super) fn may_end_at_once(&self) -> bool {
        self.tried.iter().any(|one| one.rest.as_deref().is_some_and(<[u8]>::is_empty))
    }

    /// Returns by how much the best segmentation through the end of a token leads those that cross it,
    /// along a completion with canonical tokens.
    pub(super) fn lead<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        leads: BoundaryLeads<'_>,
        (product_state, token): (ProductState, u32),
    ) -> Result<Option<f64>, Error> {
        let mut most = None;
        let live = context.machine.live_bytes(product.parts(product_state).0)?;
        let few = live.iter().take(FIRST_BYTES_TRIED).map(Some);
        for first in [None].into_iter().chain(few) {
            check_deadline()?;
            let tried = self.try_first(context, product, product_state, first)?;
            let Some(rest) = tried.rest.as_deref().filter(|_| tried.encodes_however_split) else {
                continue;
            };
            let lead = leads.lead(token, rest, false);
            if let Some(lead) = lead.filter(|&lead| lead > most.unwrap_or(0.0)) {
                most = Some(lead);
                if lead > CLEAR_LEAD {
                    break;
                }
            }
        }
        Ok(most)
    }

    /// Returns `true` if a known completion has canonical tokens after open pieces. `false` proves
    /// nothing.
    pub(super) fn one_is_known_after(&self, encoder: &BpeEncoder, open: &OpenPieces) -> bool {
        let safe = self.tried.iter().filter(|one| one.is_safe).take(MAX_READ);
        safe.filter_map(Tried::spelled).any(|rest| encoder.keeps_boundary(open, rest) == Some(true))
    }

    /// Returns `true` if a completion has canonical tokens after an element. `false` proves nothing.
    pub(super) fn one_fits<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
    ) -> Result<bool, Error> {
        if self.tried.iter().any(|one| one.is_learned && one.fits(context, element)) {
            return Ok(true);
        }
        let live = context.machine.live_bytes(product.parts(element.product_state).0)?;
        let few = live.iter().take(FIRST_BYTES_TRIED).map(Some);
        for first in [None].into_iter().chain(few) {
            check_deadline()?;
            let tried = self.try_first(context, product, element.product_state, first)?;
            if tried.fits(context, element) {
                self.keep_near_front(first);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the completions that are read for single tokens.
    pub(super) fn few_safe(&self) -> Vec<Box<[u8]>> {
        let safe = self.tried.iter().filter(|one| one.is_safe).take(MAX_READ);
        safe.filter_map(|one| one.rest.clone()).collect()
    }

    /// Keeps a completion that a search has found for an element, if it has canonical tokens there.
    pub(super) fn learn<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        element: SubsetElement,
        rest: Box<[u8]>,
    ) -> bool {
        let mut tried = Tried { is_learned: true, ..Tried::new(context, None, Some(rest)) };
        let pretoken = context.encoder.fresh_state(context.open_pieces);
        tried.is_safe = tried.fits(context, SubsetElement { pretoken, ..element });
        if !tried.is_safe || !tried.fits(context, element) {
            return false;
        }
        let learned = self.tried.iter().filter(|one| one.is_learned).count();
        if learned == MAX_LEARNED
            && let Some(oldest) = self.tried.iter().rposition(|one| one.is_learned)
        {
            self.tried.remove(oldest);
        }
        self.tried.insert(self.tried.len().min(1), tried);
        true
    }

    /// Moves a completion to those that are read for single tokens. The first one stays.
    fn keep_near_front(&mut self, first: Option<u8>) {
        let is_it = |one: &Tried| !one.is_learned && one.first == first;
        let at = self.tried.iter().position(is_it).unwrap_or(0);
        if at >= MAX_READ {
            self.tried[1..=at].rotate_right(1);
        }
    }

    /// Returns the approximate memory in use outside the value itself, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let rests = self.tried.iter().filter_map(|one| one.rest.as_deref());
        size_of::<Tried>() * self.tried.capacity() + rests.map(<[u8]>::len).sum::<usize>()
    }
}

impl Tried {
    fn new<K: MaskClasses>(
        context: ProductContext<'_, K>,
        first: Option<u8>,
        rest: Option<Box<[u8]>>,
    ) -> Tried {
        let leads = context.encoder.boundary_leads().zip(rest.as_deref());
        let encodes_however_split =
            leads.is_some_and(|(leads, rest)| leads.encodes_however_split(rest));
        Tried { first, is_learned: false, rest, is_safe: false, encodes_however_split }
    }

    /// Returns the rest, and whether it has canonical tokens whatever its segmentation.
    fn spelled(&self) -> Option<(&[u8], bool)> {
        self.rest.as_deref().map(|rest| (rest, self.encodes_however_split))
    }

    /// Returns `true` if the completion has canonical tokens after an element.
    fn fits<K: MaskClasses>(&self, context: ProductContext<'_, K>, element: SubsetElement) -> bool {
        let Some((rest, however_split)) = self.spelled() else { return false };
        let (encoder, open_pieces) = (context.encoder, context.open_pieces);
        if rest.is_empty() {
            return encoder.pretoken_may_end(element.pretoken)
                && !encoder.is_inside_character(open_pieces, element.pretoken);
        }
        let open = encoder.open_pieces_at(open_pieces, element.pretoken);
        let known = match self.is_safe {
            true => encoder.keeps_boundary(&open, (rest, however_split)),
            false => None,
        };
        known.unwrap_or_else(|| {
            encoder.encode_rest(open_pieces, element.pretoken, rest, &mut Vec::new())
        })
    }
}

/// The bytes with which completions go on inside the pre-token, and whether more may follow.
pub(super) type Beginning = (Vec<u8>, bool);

/// Returns beginnings such that each completion has one of them.
pub(super) fn beginnings<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    product_state: ProductState,
) -> Result<Vec<Beginning>, Error> {
    let mut found = Vec::new();
    let mut pending = vec![(product_state, Vec::new())];
    while let Some((here, mut bytes)) = pending.pop() {
        check_deadline()?;
        let (next, ends) = next_inside(context, product, here)?;
        let branches = found.len() + pending.len() + next.len();
        if next.is_empty() {
            found.push((bytes, false));
        } else if ends || bytes.len() == MAX_BEGINNING_BYTES || branches > MAX_BEGINNINGS {
            found.push((bytes, true));
        } else if let [(byte, after)] = next[..] {
            bytes.push(byte);
            pending.push((after, bytes));
        } else {
            let longer = |&(byte, after)| (after, [&bytes[..], &[byte]].concat());
            pending.extend(next.iter().map(longer));
        }
    }
    Ok(found)
}

/// Returns the states after one more byte inside the pre-token, and whether the pre-token may also end.
/// Of many states, some are left out.
fn next_inside<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    product_state: ProductState,
) -> Result<(Vec<(u8, ProductState)>, bool), Error> {
    let splitter = context.encoder.splitter();
    let (state, splitter_state) = product.parts(product_state);
    let mut ends = product.is_end(context, product_state)?
        || !product.after_special(context, product_state)?.is_empty();
    let mut next = Vec::new();
    for byte in context.machine.live_bytes(state)?.iter() {
        let admits = |boundary| splitter.step(splitter_state, byte, boundary).is_some();
        ends = ends || admits(Boundary::Pretoken) || admits(Boundary::Added);
        if next.len() <= MAX_BEGINNINGS && admits(Boundary::Inside) {
            let inside = product.step(context, product_state, (byte, Boundary::Inside))?;
            next.extend(inside.map(|inside| (byte, inside)));
        }
    }
    Ok((next, ends))
}

/// Returns the rest of the pre-token along a completion of the language, which begins with a given
/// byte, if what follows the rest has canonical tokens.
fn completion<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    product_state: ProductState,
    first: Option<u8>,
) -> Result<Option<Box<[u8]>>, Error> {
    let Some(rest) = product.rest_of_pretoken(context, product_state, first)? else {
        return Ok(None);
    };
    // The end of the rest is a boundary, from which the language can be completed.
    if !context.encoder.encodes_all() {
        let Some(text) = completion_text(context, product, product_state, first)? else {
            return Ok(None);
        };
        let is_encoded = |text: &[u8]| {
            std::str::from_utf8(text).is_ok_and(|text| context.encoder.encode(text).is_some())
        };
        if !text.starts_with(&rest) || !is_encoded(&text[rest.len()..]) {
            return Ok(None);
        }
    }
    Ok(Some(rest.into()))
}

/// Returns a completion of the language, which begins with a given byte, if short.
fn completion_text<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    product_state: ProductState,
    first: Option<u8>,
) -> Result<Option<Vec<u8>>, Error> {
    let mut state = product.parts(product_state).0;
    let mut text = Vec::new();
    if let Some(first) = first {
        let Some(next) = context.machine.step(state, first)? else { return Ok(None) };
        text.push(first);
        state = next;
    }
    while let Some((byte, next)) = product.completion_hop(context, state)? {
        if byte == SPECIAL_BYTE || text.len() == MAX_COMPLETION_BYTES {
            return Ok(None);
        }
        text.push(byte);
        state = next;
    }
    Ok(Some(text))
}
