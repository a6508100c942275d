//! Where a text has to end within a budget.

use formalm_automata::{Error, Keys, StateId, exact_only};

use super::{Position, StateEpoch};
use crate::mask::Words;

impl<K: Keys> StateEpoch<K> {
    /// Number of states that tokens were left out for leading to where a text has to end within a
    /// budget, since no text that completes them was found in time.
    pub fn given_up_count(&self) -> usize {
        self.completions.given_up_count()
    }

    /// A shortest token sequence, end token aside, that makes the text a member; `None` if it
    /// takes more than `limit` tokens or if no token sequence does. Where a search for it takes
    /// long, the shortest text counts, in the fewest tokens that spell it.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::fill`]; where tokens must be canonical the search is not there yet.
    pub fn shortest_tokens(
        &self,
        position: Position,
        limit: u32,
    ) -> Result<Option<Vec<u32>>, Error> {
        let state = self.any_tokens(position)?;
        self.completions.shortest(&**self.machine(), &self.vocabulary, state, limit)
    }

    /// Whether [`StateEpoch::shortest_tokens`] finds any.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn completes_within(&self, position: Position, limit: u32) -> Result<bool, Error> {
        let state = self.any_tokens(position)?;
        self.completions.fits(&**self.machine(), &self.vocabulary, state, limit)
    }

    /// Writes the mask of a position over `out`, less the tokens after which no member can be
    /// completed within `budget` tokens, that token among them and end tokens aside.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::shortest_tokens`].
    pub fn fill_within(
        &self,
        position: Position,
        budget: u32,
        out: &mut Words,
    ) -> Result<(), Error> {
        let state = self.any_tokens(position)?;
        self.fill(position, out)?;
        self.completions.restrict(&**self.machine(), &self.vocabulary, state, budget, out)
    }

    /// The state of a position where any tokens will do.
    fn any_tokens(&self, position: Position) -> Result<StateId, Error> {
        let hint = "give more tokens, and look whether the text is a member";
        exact_only(&**self.machine(), "the fewest tokens to a member", hint)?;
        match self.canonical {
            None => Ok(position.state),
            Some(_) => Err(Error::Language {
                message: "the fewest tokens to a member are not known for canonical tokens"
                    .to_owned(),
                span: None,
                hint: Some("use tokenization=\"all\", or give more tokens".to_owned()),
            }),
        }
    }
}
