//! Special tokens between texts.

use formalm_automata::{Error, Keys, Machine};

use super::Context;
use super::product::{Pair, Pairs};

impl Pairs {
    /// Special tokens that may stand here, at the end of a text, with the pairs behind them: those at
    /// the beginning of a text with which some member goes on.
    pub(crate) fn behind_special<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pair: Pair,
    ) -> Result<Vec<(u32, Pair)>, Error> {
        let list = self.all_behind_special(context, pair)?;
        let mut productive = Vec::with_capacity(list.len());
        for one in list {
            if self.is_productive(context, one.1)? {
                productive.push(one);
            }
        }
        Ok(productive)
    }

    pub(super) fn all_behind_special<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        pair: Pair,
    ) -> Result<Vec<(u32, Pair)>, Error> {
        let (state, place) = self.parts(pair);
        let splitter = context.encoder.splitter();
        let mut list = Vec::new();
        if context.special.is_empty() || !splitter.may_end(place) {
            return Ok(list);
        }
        for (token, bytes) in context.special {
            if let Ok(next) = context.machine.walk(state, bytes)? {
                list.push((*token, self.intern(next, splitter.start())?));
            }
        }
        Ok(list)
    }
}
