//! A library in the data of a saved encoder.
//!
//! ```text
//!  sets: kind u8, numbers …      groups: begins, states, set …      lists: sets, groups …
//!  bytes that are read on …      positions: name, state, list …
//! ```

use std::sync::Arc;

use formalm_core::ByteSet;
use rustc_hash::FxHashMap;

use super::{
    GROUP_BYTES, PartLibrary, PartPositionKey, PartTables, PartTokens, UnsettledTokens, list_bytes,
    set_bytes,
};
use crate::bpe::pretokenizer::pretoken_splitter::{Splitter, SplitterState};
use crate::bpe::token_set::TokenSet;
use crate::bpe::whole_tokens::PretokenState;
use crate::saved_vocabulary::{ByteReader, write_length, write_numbers};
use crate::{Error, Vocabulary};

/// Numbers of a position: its name, a state, and a list.
const POSITION: usize = 6;

/// Numbers of the bytes that positions read on, with a flag.
const FIRST_BYTES: usize = 9;

/// Numbers of a group.
const GROUP: usize = 5;

impl PartLibrary {
    /// Appends the library. Equal libraries are written alike.
    pub(in crate::bpe) fn write(&self, out: &mut Vec<u8>) {
        let tables = self.tables.lock();
        let mut positions: Vec<(&PartPositionKey, &Arc<PartTokens>)> =
            tables.positions.iter().collect();
        positions.sort_unstable_by_key(|(key, _)| (key.name, key.boundaries));
        let mut sets = Numbered::default();
        let mut groups = Numbered::default();
        let mut lists = Numbered::default();
        let mut rows = Vec::with_capacity(POSITION * positions.len());
        for (key, tokens) in positions {
            rows.extend((0..4).map(|at| (key.name >> (32 * at)) as u32));
            rows.extend([key.boundaries, lists.number(tokens)]);
        }
        let mut list_rows: Vec<Vec<u32>> = Vec::with_capacity(lists.list.len());
        for &tokens in &lists.list {
            let settled = tokens.settled.iter().map(|set| sets.number(set));
            let groups = tokens.unsettled.iter().map(|group| groups.number(group));
            list_rows.push(settled.chain(groups).collect());
        }
        let mut group_rows = Vec::with_capacity(GROUP * groups.list.len());
        for group in groups.list {
            let UnsettledTokens { begins, splitter_state, pretoken, tokens } = &**group;
            let SplitterState { boundaries, filter } = *splitter_state;
            let (set, begins) = (sets.number(tokens), u32::from(*begins));
            group_rows.extend([begins, boundaries, filter.number(), pretoken.number(), set]);
        }
        write_length(out, sets.list.len());
        for set in sets.list {
            let (is_mask, words) = match &**set {
                TokenSet::List(list) => (0, list),
                TokenSet::Mask(words) => (1, words),
            };
            out.push(is_mask);
            write_numbers(out, words);
        }
        write_numbers(out, &group_rows);
        let mut first_bytes: Vec<Vec<u32>> = tables.first_bytes.iter().map(to_row).collect();
        first_bytes.sort_unstable();
        write_numbers(out, &first_bytes.concat());
        write_length(out, list_rows.len());
        list_rows.iter().for_each(|row| write_numbers(out, row));
        write_numbers(out, &rows);
    }

    /// Reads what [`PartLibrary::write`] appended.
    ///
    /// # Errors
    ///
    /// A token or a state does not exist, or the data is truncated.
    pub(in crate::bpe) fn read(
        reader: &mut ByteReader<'_>,
        splitter: &Splitter,
        vocabulary: &Vocabulary,
        wrong: impl Fn() -> Error,
    ) -> Result<PartLibrary, Error> {
        let library = PartLibrary::default();
        library.tables.lock().read(reader, splitter, vocabulary, wrong)?;
        Ok(library)
    }
}

impl PartTables {
    fn read(
        &mut self,
        reader: &mut ByteReader<'_>,
        splitter: &Splitter,
        vocabulary: &Vocabulary,
        wrong: impl Fn() -> Error,
    ) -> Result<(), Error> {
        let mut sets = Vec::new();
        for _ in 0..reader.length()? {
            let kind = reader.take(1)?[0];
            let numbers = reader.numbers()?;
            sets.push(Arc::new(read_set(kind, numbers, vocabulary).ok_or_else(&wrong)?));
        }
        let rows = reader.numbers()?;
        let groups = rows.chunks(GROUP).map(|row| read_group(row, &sets, splitter));
        let groups = groups.collect::<Option<Vec<_>>>().ok_or_else(&wrong)?;
        let rows = reader.numbers()?;
        for row in rows.chunks(FIRST_BYTES) {
            self.note(from_row(row).ok_or_else(&wrong)?);
        }
        let mut lists = Vec::new();
        for _ in 0..reader.length()? {
            let row = reader.numbers()?;
            lists.push(read_list(&row, (&sets, &groups)).ok_or_else(&wrong)?);
        }
        sets.iter().for_each(|set| self.bytes += set_bytes(set));
        self.bytes += groups.len() * GROUP_BYTES;
        lists.iter().for_each(|list| self.bytes += list_bytes(list));
        let rows = reader.numbers()?;
        self.positions.reserve(rows.len() / POSITION);
        for row in rows.chunks(POSITION) {
            let (key, tokens) = read_position(row, &lists, splitter).ok_or_else(&wrong)?;
            self.insert(key, tokens);
        }
        Ok(())
    }
}

/// Returns the bits of a set of bytes, and a flag.
fn to_row(&(bytes, may_end): &(ByteSet, bool)) -> Vec<u32> {
    let mut row = vec![0; FIRST_BYTES];
    bytes.iter().for_each(|byte| row[usize::from(byte) / 32] |= 1 << (byte % 32));
    row[FIRST_BYTES - 1] = u32::from(may_end);
    row
}

fn from_row(row: &[u32]) -> Option<(ByteSet, bool)> {
    let (&may_end, words) = row.split_last().filter(|_| row.len() == FIRST_BYTES)?;
    let mut bytes = ByteSet::default();
    let has = |byte: &u8| words[usize::from(*byte) / 32] >> (byte % 32) & 1 != 0;
    (0..=255).filter(has).for_each(|byte| bytes.insert(byte));
    (may_end <= 1).then_some((bytes, may_end == 1))
}

fn read_set(kind: u8, numbers: Vec<u32>, vocabulary: &Vocabulary) -> Option<TokenSet> {
    let count = vocabulary.len();
    let has_bytes = |&token: &u32| vocabulary.token_bytes(token).is_some();
    match kind {
        0 => numbers.iter().all(has_bytes).then_some(TokenSet::List(numbers)),
        1 => {
            let unused = (count as u32).wrapping_neg() % 32;
            let fits = numbers.len() == count.div_ceil(32)
                && numbers.last().is_none_or(|last| unused == 0 || last >> (32 - unused) == 0);
            fits.then_some(TokenSet::Mask(numbers))
        }
        _ => None,
    }
}

fn read_group(
    row: &[u32],
    sets: &[Arc<TokenSet>],
    splitter: &Splitter,
) -> Option<Arc<UnsettledTokens>> {
    let &[begins, boundaries, filter, pretoken, set] = row else { return None };
    let tokens = sets.get(set as usize).filter(|tokens| !tokens.is_empty()).map(Arc::clone)?;
    let splitter_state = splitter.state_of_numbers([boundaries, filter])?;
    let pretoken = PretokenState::of_number(pretoken);
    (begins <= 1).then(|| {
        let begins = begins == 1;
        Arc::new(UnsettledTokens { begins, splitter_state, pretoken, tokens })
    })
}

fn read_list(
    row: &[u32],
    (sets, groups): (&[Arc<TokenSet>], &[Arc<UnsettledTokens>]),
) -> Option<Arc<PartTokens>> {
    let (settled, unsettled) = row.split_first_chunk::<2>()?;
    let set = |number: u32| sets.get(number as usize).map(Arc::clone);
    let unsettled = unsettled.iter().map(|&number| groups.get(number as usize).map(Arc::clone));
    let unsettled = unsettled.collect::<Option<_>>()?;
    Some(Arc::new(PartTokens { settled: [set(settled[0])?, set(settled[1])?], unsettled }))
}

fn read_position<'a>(
    row: &[u32],
    lists: &'a [Arc<PartTokens>],
    splitter: &Splitter,
) -> Option<(PartPositionKey, &'a Arc<PartTokens>)> {
    let &[.., state, list] = row else { return None };
    let boundaries = splitter.boundaries();
    if row.len() != POSITION
        || !boundaries.is_state(state)
        || !boundaries.is_between_characters(state)
    {
        return None;
    }
    let name = row[..4].iter().rev().fold(0, |sum, &part| sum << 32 | u128::from(part));
    Some((PartPositionKey { name, boundaries: state }, lists.get(list as usize)?))
}

/// Shared values in the order in which they are first met.
struct Numbered<'a, T> {
    list: Vec<&'a Arc<T>>,
    numbers: FxHashMap<*const T, u32>,
}

impl<T> Default for Numbered<'_, T> {
    fn default() -> Self {
        Numbered { list: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<'a, T> Numbered<'a, T> {
    fn number(&mut self, value: &'a Arc<T>) -> u32 {
        let Numbered { list, numbers } = self;
        *numbers.entry(Arc::as_ptr(value)).or_insert_with(|| {
            list.push(value);
            list.len() as u32 - 1
        })
    }
}
