//! The canonical tokens of completions, computed from their ends.
//!
//! ```text
//!  state   p0 ─{─ p1 ─"─ p2 ─a─ p3 ─"─ p4 …       one completion, which all its states share
//!  token   {"     "a     a      "                 the first token of the rest from each state
//! ```
//!
//! The rest of a canonical sequence is canonical. So the first token of a completion is the one that
//! may stand before the first token of what follows it. This is known where completions are read
//! from their ends: each state is computed once, however long its completion is.

use formalm_core::{Error, LazyDfa, deadline::check_deadline, memory_bytes};
use formalm_machines::{MaskClasses, SPECIAL_BYTE};
use formalm_vocabulary::bpe::TokenOrigin;
use rustc_hash::FxHashMap;

use super::super::ProductContext;
use super::super::product::{Product, ProductState};

/// A byte, and the product state that it leads to inside the pre-token.
type Hop = (u8, ProductState);

/// The way on from a product state.
#[derive(Clone, Copy, Debug)]
enum CompletionLink {
    /// The pre-token may end.
    End,
    /// The pre-token goes on with a byte. The token is the first one of the rest, if known.
    Inside(Hop, Option<u32>),
    /// Nothing is known.
    Unknown,
}

memory_bytes!(none: CompletionLink);

impl CompletionLink {
    /// Returns `true` if the pre-token may end or goes on with a token that passes the test.
    fn fits(self, test: impl FnOnce(u32) -> bool) -> bool {
        match self {
            CompletionLink::End => true,
            CompletionLink::Inside(_, after) => after.is_some_and(test),
            CompletionLink::Unknown => false,
        }
    }
}

/// The completions so far, of machines whose tokens are made by merging.
#[derive(Debug, Default)]
pub(super) struct CompletionTokens {
    links: FxHashMap<ProductState, CompletionLink>,
}

memory_bytes!(CompletionTokens { links });

impl CompletionTokens {
    /// Returns the first token of a completion from a product state, up to the end of the pre-token.
    /// `first` fixes its first byte. A result of `None` proves nothing.
    pub(super) fn first<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
        first: Option<u8>,
    ) -> Result<Option<u32>, Error> {
        let Some(first) = first else {
            return Ok(match self.link(context, product, product_state)? {
                CompletionLink::Inside(_, token) => token,
                CompletionLink::End | CompletionLink::Unknown => None,
            });
        };
        let state = product.parts(product_state).0;
        let Some(next) = context.machine.step(state, first)? else { return Ok(None) };
        let hop = (first, next);
        let Some(next) = product.step_inside(context, product_state, hop)? else { return Ok(None) };
        self.link(context, product, next)?;
        Ok(self.first_token(context, (first, next)))
    }

    /// Returns the way on from a product state.
    fn link<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
    ) -> Result<CompletionLink, Error> {
        let mut path: Vec<(ProductState, Hop)> = Vec::new();
        let mut here = product_state;
        let mut last = loop {
            check_deadline()?;
            if let Some(&known) = self.links.get(&here) {
                break known;
            }
            if product.is_clean(context, here)? {
                break CompletionLink::End;
            }
            let Some(hop) = product.completion_hop(context, product.parts(here).0)? else {
                break CompletionLink::Unknown;
            };
            let next = match hop.0 {
                SPECIAL_BYTE => None,
                _ => product.step_inside(context, here, hop)?,
            };
            let Some(next) = next else { break CompletionLink::Unknown };
            path.push((here, (hop.0, next)));
            here = next;
        };
        self.links.insert(here, last);
        for (here, hop) in path.into_iter().rev() {
            last = CompletionLink::Inside(hop, self.first_token(context, hop));
            self.links.insert(here, last);
        }
        Ok(last)
    }

    /// Returns the first token along a hop, and on along known links.
    fn first_token<K: MaskClasses>(
        &self,
        context: ProductContext<'_, K>,
        (first, after_first): Hop,
    ) -> Option<u32> {
        let (encoder, trie) = (context.encoder, context.vocabulary.trie());
        let mut node = trie.root_child(first);
        let mut next = after_first;
        let mut is_symbol = false;
        while let Some(at) = node {
            let link = *self.links.get(&next)?;
            for &token in trie.tokens_at(at) {
                if encoder.origin(token) != TokenOrigin::Merged {
                    continue;
                }
                is_symbol = true;
                if link.fits(|after| encoder.may_follow(token, after)) {
                    return Some(token);
                }
            }
            let CompletionLink::Inside((byte, further), _) = link else { break };
            next = further;
            node = trie.child(at, byte);
        }
        // A character that is no symbol is spelled in bytes, which anything may follow.
        let is_byte = !is_symbol && self.links.get(&after_first)?.fits(|_| true);
        encoder.byte_token(first).filter(|_| is_byte)
    }
}
