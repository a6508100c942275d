//! Reading tokens in byte order, so that common prefixes are read once.

use formalm_core::{Error, SetOnce, deadline::check_deadline};
use formalm_json::escapes::EscapePolicy;
use formalm_vocabulary::Vocabulary;

/// Tokens of at most this many characters, which are the most, are not listed. Chosen, not
/// measured.
pub(crate) const MAX_SHORT_LENGTH: u32 = 11;

/// Reads tokens, given in byte order, from a state. Passes each to `emit` with `true` if it can be
/// read.
pub(crate) fn read_in_order<S: Copy>(
    vocabulary: &Vocabulary,
    tokens: impl IntoIterator<Item = u32>,
    start: S,
    step: &impl Fn(S, u8) -> Result<Option<S>, Error>,
    emit: &mut impl FnMut(u32, bool),
) -> Result<(), Error> {
    // The state after each byte that a token has in common with the previous one.
    let (mut before, mut states): (&[u8], Vec<S>) = (&[], vec![start]);
    for token in tokens {
        check_deadline()?;
        let bytes = vocabulary.token_bytes(token).unwrap_or_default();
        let common = before.iter().zip(bytes).take_while(|(one, other)| one == other).count();
        states.truncate(common + 1);
        before = bytes;
        // Fewer states than common bytes: the previous token was rejected there.
        let mut refused = states.len() <= common;
        while let Some(&byte) = bytes.get(states.len() - 1).filter(|_| !refused) {
            match step(states[states.len() - 1], byte)? {
                Some(next) => states.push(next),
                None => refused = true,
            }
        }
        emit(token, !refused);
    }
    Ok(())
}

/// Number of characters and id of tokens.
type TokensWithLength = Box<[(u32, u32)]>;

/// The tokens longer than [`MAX_SHORT_LENGTH`] that continue a JSON string, in byte order, per set
/// of allowed escapes.
#[derive(Debug, Default)]
pub(crate) struct LongStringTokens([SetOnce<TokensWithLength>; 3]);

impl LongStringTokens {
    /// Returns `(characters, token)` of all of them.
    pub(crate) fn of(&self, vocabulary: &Vocabulary, escapes: EscapePolicy) -> &[(u32, u32)] {
        self.0[escapes as usize].get_or_init(|| {
            let mut characters = vec![0; vocabulary.len()];
            for &(count, token) in
                vocabulary.json_string_tokens(escapes).continuing_longer(MAX_SHORT_LENGTH)
            {
                characters[token as usize] = count;
            }
            let order = vocabulary.trie().order().iter();
            let counted = order.map(|&token| (characters[token as usize], token));
            counted.filter(|&(count, _)| count > MAX_SHORT_LENGTH).collect()
        })
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.iter().filter_map(SetOnce::get).map(|list| size_of_val(&**list)).sum()
    }
}
