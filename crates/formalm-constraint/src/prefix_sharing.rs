//! Tokens read in the order of their bytes: what one has in common with the one before is not read
//! again.

use formalm_automata::deadline::check_deadline;
use formalm_automata::spelling::Escapes;
use formalm_automata::{Error, SetOnce};
use formalm_vocabulary::Vocabulary;

/// Tokens of no more characters are not listed: they are most of them.
pub(crate) const SHORT: u32 = 11;

/// Reads tokens from a state and hands each out with whether it can be read; they come in the order
/// of their bytes.
pub(crate) fn read_in_order<S: Copy>(
    vocabulary: &Vocabulary,
    tokens: impl IntoIterator<Item = u32>,
    start: S,
    step: &impl Fn(S, u8) -> Result<Option<S>, Error>,
    emit: &mut impl FnMut(u32, bool),
) -> Result<(), Error> {
    // The state behind each byte that a token has in common with the one before.
    let (mut before, mut states): (&[u8], Vec<S>) = (&[], vec![start]);
    for token in tokens {
        check_deadline()?;
        let bytes = vocabulary.token_bytes(token).unwrap_or_default();
        let common = before.iter().zip(bytes).take_while(|(one, other)| one == other).count();
        states.truncate(common + 1);
        before = bytes;
        // Fewer states than bytes in common: the token before ended there.
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

/// Tokens with their numbers of characters, which come first.
type Counted = Box<[(u32, u32)]>;

/// The tokens with which strings of JSON go on that are not short, in the order of their bytes, for
/// each way of spelling strings.
#[derive(Debug, Default)]
pub(crate) struct Long([SetOnce<Counted>; 3]);

impl Long {
    /// `(characters, token)` of all of them.
    pub(crate) fn of(&self, vocabulary: &Vocabulary, escapes: Escapes) -> &[(u32, u32)] {
        self.0[escapes as usize].get_or_init(|| {
            let mut characters = vec![0; vocabulary.len()];
            for &(count, token) in vocabulary.json_string_tokens(escapes).continuing_longer(SHORT) {
                characters[token as usize] = count;
            }
            let order = vocabulary.trie().order().iter();
            let counted = order.map(|&token| (characters[token as usize], token));
            counted.filter(|&(count, _)| count > SHORT).collect()
        })
    }

    /// Memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.iter().filter_map(SetOnce::get).map(|list| size_of_val(&**list)).sum()
    }
}
