//! The first witnesses of a product state: tokens found from completions of the language.

use formalm_core::{Error, LazyDfa};
use formalm_machines::MaskClasses;

use super::super::ProductContext;
use super::super::product::{Product, ProductState};
use super::super::subsets::SubsetElement;
use super::ElementGroups;
use super::completion_tokens::CompletionTokens;

/// Number of first bytes with which completions are tried. Chosen, not measured.
const FIRST_BYTES_TRIED: usize = 4;

/// Returns a token that may follow `last` and leads to a clean state.
pub(super) fn first_clean<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    groups: &ElementGroups,
    last: u32,
) -> Result<Option<(SubsetElement, u32)>, Error> {
    for (next, tokens) in groups {
        if context.encoder.pretoken_may_end(next.pretoken)
            && product.is_clean(context, next.product_state)?
        {
            let fits = |token| context.encoder.may_follow(last, token).then_some(token);
            if let Some(token) = tokens.find(fits) {
                return Ok(Some((*next, token)));
            }
        }
    }
    Ok(None)
}

/// Returns tokens with which completions of the language begin.
pub(super) fn first_witnesses<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    tokens: &mut CompletionTokens,
    product_state: ProductState,
) -> Result<Vec<u32>, Error> {
    let live = context.machine.live_bytes(product.parts(product_state).0)?;
    let firsts = live.iter().map(Some).take(FIRST_BYTES_TRIED);
    let mut list = Vec::new();
    for first in [None].into_iter().chain(firsts) {
        let found = match tokens.first(context, product, product_state, first)? {
            Some(found) => Some(found),
            None => {
                let rest = product.rest_of_pretoken(context, product_state, first)?;
                rest.and_then(|rest| first_token(context, &rest))
            }
        };
        list.extend(found);
    }
    list.dedup();
    Ok(list)
}

/// Returns the first token of the rest of a pre-token.
fn first_token<K: MaskClasses>(context: ProductContext<'_, K>, rest: &[u8]) -> Option<u32> {
    let mut tokens = Vec::new();
    context.encoder.merge(rest, &mut tokens);
    tokens.first().copied()
}
