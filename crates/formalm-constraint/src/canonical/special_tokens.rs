//! Special tokens between canonical texts: the transitions of the product over a special token.

use formalm_core::{Error, LazyDfa};
use formalm_machines::MaskClasses;

use super::ProductContext;
use super::product::{Product, ProductState};

impl Product {
    /// Returns the special tokens that may stand here, at the end of a text, each with the product
    /// state after it. That state is at the beginning of a text and can be completed.
    pub(crate) fn after_special<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
    ) -> Result<Vec<(u32, ProductState)>, Error> {
        let list = self.all_after_special(context, product_state)?;
        let mut productive = Vec::with_capacity(list.len());
        for one in list {
            if self.is_productive(context, one.1)? {
                productive.push(one);
            }
        }
        Ok(productive)
    }

    pub(super) fn all_after_special<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product_state: ProductState,
    ) -> Result<Vec<(u32, ProductState)>, Error> {
        let (state, splitter_state) = self.parts(product_state);
        let splitter = context.encoder.splitter();
        let mut list = Vec::new();
        if context.special.is_empty() || !splitter.may_end(splitter_state) {
            return Ok(list);
        }
        for (token, bytes) in context.special {
            if let Ok(next) = context.machine.walk(state, bytes)? {
                list.push((*token, self.intern(context, next, splitter.start())?));
            }
        }
        Ok(list)
    }
}
