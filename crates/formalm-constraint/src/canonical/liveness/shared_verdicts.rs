//! Verdicts on tokens that all elements of a product state share, whatever pieces are open.
//!
//! ```text
//!  settled   a piece after which the text can be completed across a boundary that always stays
//!  led       a piece that beats what crosses its end, or is beaten, by a known lead: open pieces that
//!            reach into it are compared with the lead
//!  single    all others: read in each element
//! ```
//!
//! A text has few product states and many open pieces, most of which are not met again. So what
//! does not depend on these is computed once per product state.

use std::sync::Arc;

use formalm_core::{ByteSet, Error};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::{Boundary, PretokenState, TokenSet};
use formalm_vocabulary::unigram::BoundaryLeads;

use super::super::ProductContext;
use super::super::joint_targets::TokenChoice;
use super::super::product::{Product, ProductState};
use super::super::subsets::SubsetElement;
use super::best_path::{CrossedTokens, TokenStart};
use super::completions::{Beginning, Completions, beginnings};
use super::{ElementGroups, Liveness};
use crate::mask::{MaskWords, has, patch};

/// The tokens that continue a pre-token from a product state, by what decides them.
#[derive(Debug)]
pub(super) struct SharedVerdicts {
    groups: Arc<ElementGroups>,
    settled: Vec<u32>,
    led: Vec<LedToken>,
    single: Vec<(u32, ProductState)>,
}

/// A piece with a lead over what crosses its end, negative if it is beaten.
#[derive(Clone, Copy, Debug)]
struct LedToken {
    token: u32,
    next: ProductState,
    lead: f64,
}

impl SharedVerdicts {
    pub(super) fn memory_bytes(&self) -> usize {
        let groups = self.groups.iter().map(|(_, tokens)| 24 + tokens.memory_bytes());
        groups.sum::<usize>()
            + 4 * self.settled.len()
            + size_of::<LedToken>() * self.led.capacity()
            + 8 * self.single.capacity()
    }
}

impl SharedVerdicts {
    /// Adds the tokens of a target after which the pre-token may end.
    fn settle_all<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        (next, tokens): (ProductState, &TokenSet),
    ) {
        let ends = context.encoder.piece_ends(context.vocabulary);
        tokens.for_each_word(|at, word| {
            self.settled[at] |= word & ends.pieces(at);
            for_each_token(at, word & !ends.pieces(at), |token| self.single.push((token, next)));
        });
    }

    /// Adds the tokens of a target after which the pre-token goes on.
    fn share<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        leads: BoundaryLeads<'_>,
        completions: &mut Completions,
        (next, tokens): (ProductState, &TokenSet),
    ) -> Result<(), Error> {
        let ends = context.encoder.piece_ends(context.vocabulary);
        let (mut apart, mut asked) = (ByteSet::default(), ByteSet::default());
        let (mut pending, mut failed) = (Vec::new(), None);
        tokens.for_each_word(|at, word| {
            for_each_token(at, word & !ends.pieces(at), |token| self.single.push((token, next)));
            for_each_token(at, word & ends.pieces(at), |token| {
                let last = ends.last_byte(token);
                if !asked.contains(last) && failed.is_none() {
                    asked.insert(last);
                    match completions.are_apart_from(context, product, next, last) {
                        Ok(true) => apart.insert(last),
                        Ok(false) => {}
                        Err(error) => failed = Some(error),
                    }
                }
                match apart.contains(last) {
                    true => self.settled[at] |= 1 << (token & 31),
                    false => pending.push(token),
                }
            });
        });
        if let Some(error) = failed {
            return Err(error);
        }
        if pending.is_empty() {
            return Ok(());
        }
        let beginnings = beginnings(context, product, next)?;
        for token in pending {
            let mut lead = completions.lead(context, product, leads, (next, token))?;
            if lead.is_none() {
                // Beaten along every completion.
                let least = |(bytes, is_open): &Beginning| leads.lead(token, bytes, *is_open);
                let all: Option<Vec<f64>> = beginnings.iter().map(least).collect();
                lead =
                    all.and_then(|all| all.into_iter().reduce(f64::max)).filter(|&most| most < 0.0);
            }
            match lead {
                Some(lead) => self.led.push(LedToken { token, next, lead }),
                None => self.single.push((token, next)),
            }
        }
        Ok(())
    }
}

/// Passes the tokens of a word of a bitmask.
fn for_each_token(at: usize, mut word: u32, mut each: impl FnMut(u32)) {
    while word != 0 {
        each(32 * at as u32 + word.trailing_zeros());
        word &= word - 1;
    }
}

impl Liveness {
    /// Sets the tokens that continue a pre-token from an element and can be completed, for a model
    /// with leads.
    pub(super) fn add_live_inside<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        leads: BoundaryLeads<'_>,
        element: SubsetElement,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let verdicts = self.shared_verdicts(context, product, leads, element)?;
        let (encoder, open_pieces) = (context.encoder, context.open_pieces);
        let CrossedTokens { forbidden, near, near_list } =
            CrossedTokens::after(context, (element.pretoken, false), words.len());
        for (at, (word, settled)) in words.iter_mut().zip(&verdicts.settled).enumerate() {
            *word |= settled & !forbidden[at] & !near[at];
        }
        let open = encoder.open_pieces_at(open_pieces, element.pretoken);
        let is_open = |token: u32| !has(&forbidden, token) && !has(&near, token);
        let mut single = Vec::new();
        for &LedToken { token, next, lead } in verdicts.led.iter().filter(|led| is_open(led.token))
        {
            match leads.decides(&open, token, lead) {
                true if lead > 0.0 => patch(words, &[token], &[]),
                true => {}
                false => single.push((token, next)),
            }
        }
        single.extend(verdicts.single.iter().filter(|one| is_open(one.0)));
        let mut add_near = |token: u32, next: ProductState| {
            if has(&forbidden, token) {
                return;
            }
            // A settled token can be completed if it may stand there.
            if !has(&verdicts.settled, token) {
                single.push((token, next));
            } else if let Some(Some(_)) =
                encoder.open_pieces_after(open_pieces, element.pretoken, token, false)
            {
                patch(words, &[token], &[]);
            }
        };
        for (next, tokens) in &*verdicts.groups {
            let next = next.product_state;
            match &**tokens {
                TokenSet::List(list) => {
                    let list = list.iter().filter(|&&token| has(&near, token));
                    list.for_each(|&token| add_near(token, next));
                }
                TokenSet::Mask(mask) => {
                    let list = near_list.iter().filter(|&&token| has(mask, token));
                    list.for_each(|&token| add_near(token, next));
                }
            }
        }
        let start = TokenStart { pretoken: element.pretoken, boundary: Boundary::Inside };
        for (token, next) in single {
            let is_clean = self.is_settled(context, product, next)?;
            if self.is_token_live(context, product, start, next, (token, is_clean))? {
                patch(words, &[token], &[]);
            }
        }
        Ok(())
    }

    /// Returns the verdicts that do not depend on the open pieces of an element.
    fn shared_verdicts<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        leads: BoundaryLeads<'_>,
        element: SubsetElement,
    ) -> Result<Arc<SharedVerdicts>, Error> {
        if let Some(known) = self.shared_verdicts.get(&element.product_state) {
            return Ok(known);
        }
        let from = (element, Boundary::Inside);
        let groups = self.kept_groups(context, product, from, TokenChoice::All)?;
        let mut found = SharedVerdicts {
            groups: Arc::clone(&groups),
            settled: vec![0; context.vocabulary.len().div_ceil(32)],
            led: Vec::new(),
            single: Vec::new(),
        };
        for (next, tokens) in &*groups {
            let next = next.product_state;
            let is_clean = self.is_settled(context, product, next)?;
            let mut completions = self.take_completions(context, product, next)?;
            let is_settled = is_clean || completions.may_end_at_once();
            let added = if is_settled {
                found.settle_all(context, (next, tokens));
                Ok(())
            } else {
                found.share(context, product, leads, &mut completions, (next, tokens))
            };
            self.completions.insert(next, completions);
            added?;
        }
        let found = Arc::new(found);
        let bytes = 64 + found.memory_bytes();
        self.shared_verdicts.insert(element.product_state, Arc::clone(&found), bytes);
        Ok(found)
    }

    /// Returns the tokens that begin a pre-token after a product state and can be completed. They do
    /// not depend on what is open before it.
    pub(super) fn kept_beginnings<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        (product_state, boundary): (ProductState, Boundary),
        groups: &ElementGroups,
    ) -> Result<Arc<TokenSet>, Error> {
        let key = (product_state, boundary);
        if let Some(known) = self.kept_beginnings.get(&key) {
            return Ok(known);
        }
        let mut words = vec![0; context.vocabulary.len().div_ceil(32)];
        self.add_live_of_groups(
            context,
            product,
            TokenStart { pretoken: PretokenState::PLAIN, boundary },
            groups,
            &mut words,
        )?;
        let tokens = Arc::new(TokenSet::from_words(words));
        self.kept_beginnings.insert(key, Arc::clone(&tokens), 64 + tokens.memory_bytes());
        Ok(tokens)
    }
}
