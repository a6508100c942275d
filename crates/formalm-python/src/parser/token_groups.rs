//! Token groups: sets of tokens that a parser allows or forbids without reading them.

use std::sync::{Arc, MutexGuard};

use formalm_core::{Error, ForkSafeMutex};
use formalm_vocabulary::Vocabulary;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict};
use rustc_hash::FxHashMap;

use super::python_calls::{NextInput, call_error, contract_error, limit};

/// Maximum number of groups of one constraint, and of groups cached for all constraints of a
/// vocabulary.
const MAX_GROUPS: usize = 256;
/// Maximum number of cached combinations of groups. Chosen, not measured.
const MAX_GROUP_MASKS: usize = 64;

type MaskWords = Arc<[u32]>;

/// The combined effect of groups on all tokens.
#[derive(Debug)]
pub(super) struct GroupMask {
    /// Tokens of an allowed group and of no forbidden one.
    pub(super) allowed: MaskWords,
    /// Tokens of no group.
    rest: MaskWords,
    /// Per position in the trie's order, the number of tokens of no group before it.
    before: Vec<u32>,
}

impl GroupMask {
    fn new(
        allowed: &[MaskWords],
        forbidden: &[MaskWords],
        tokens: &MaskWords,
        vocabulary: &Vocabulary,
    ) -> GroupMask {
        let mut within = vec![0; tokens.len()];
        let mut rest = tokens.to_vec();
        for group in allowed {
            for (at, word) in group.iter().enumerate() {
                within[at] |= word & tokens[at];
                rest[at] &= !word;
            }
        }
        for group in forbidden {
            for (at, word) in group.iter().enumerate() {
                within[at] &= !word;
                rest[at] &= !word;
            }
        }
        let order = vocabulary.trie().order();
        let mut before = Vec::with_capacity(order.len() + 1);
        let mut count = 0;
        for &id in order {
            before.push(count);
            count += u32::from(contains(&rest, id));
        }
        before.push(count);
        GroupMask { allowed: within.into(), rest: rest.into(), before }
    }

    /// Returns `true` if a token must be read.
    pub(super) fn must_read(&self, token_id: u32) -> bool {
        contains(&self.rest, token_id)
    }

    pub(super) fn is_allowed(&self, token_id: u32) -> bool {
        contains(&self.allowed, token_id)
    }

    /// Returns `true` if some token between two positions of the trie's order must be read.
    pub(super) fn must_read_between(&self, from: u32, to: u32) -> bool {
        self.before[to as usize] > self.before[from as usize]
    }

    fn memory_bytes(&self) -> usize {
        4 * (self.allowed.len() + self.rest.len() + self.before.len())
    }
}

fn contains(words: &[u32], token_id: u32) -> bool {
    words.get(token_id as usize >> 5).is_some_and(|word| word >> (token_id & 31) & 1 != 0)
}

/// The groups of one constraint.
#[derive(Debug)]
pub(super) struct TokenGroups {
    /// Number of each group.
    numbers: Py<PyDict>,
    /// Bitmask of each group, as bytes; shared by all constraints of a vocabulary.
    shared: Py<PyDict>,
    found: ForkSafeMutex<GroupTables>,
}

#[derive(Debug, Default)]
struct GroupTables {
    sets: Vec<MaskWords>,
    masks: FxHashMap<(Vec<u32>, Vec<u32>), Arc<GroupMask>>,
}

impl TokenGroups {
    pub(super) fn new(py: Python<'_>, shared: Py<PyDict>) -> TokenGroups {
        TokenGroups {
            numbers: PyDict::new(py).unbind(),
            shared,
            found: ForkSafeMutex::new(GroupTables::default()),
        }
    }

    /// See [`formalm_machines::ClassRenewal::is_abandoned`].
    pub(super) fn is_abandoned(&self) -> bool {
        self.found.is_abandoned()
    }

    fn found(&self) -> MutexGuard<'_, GroupTables> {
        self.found.lock()
    }

    /// Returns the combined effect of the groups that a parser lists.
    pub(super) fn group_mask(
        &self,
        py: Python<'_>,
        plan: &NextInput,
        vocabulary: &Vocabulary,
        reads_bytes: bool,
    ) -> Result<Arc<GroupMask>, Error> {
        let numbers = |groups: &[Py<PyAny>]| -> Result<Vec<u32>, Error> {
            let number = |group: &Py<PyAny>| self.number(group.bind(py), vocabulary);
            groups.iter().map(number).collect()
        };
        let key = (numbers(&plan.allowed)?, numbers(&plan.forbidden)?);
        if let Some(group_mask) = self.found().masks.get(&key) {
            return Ok(Arc::clone(group_mask));
        }
        let set = |numbers: &[u32]| -> Vec<MaskWords> {
            let found = self.found();
            numbers.iter().map(|&number| Arc::clone(&found.sets[number as usize])).collect()
        };
        let tokens = set_of(vocabulary, |bytes| {
            Ok::<_, Error>(reads_bytes || std::str::from_utf8(bytes).is_ok())
        })?;
        let group_mask = Arc::new(GroupMask::new(&set(&key.0), &set(&key.1), &tokens, vocabulary));
        let mut found = self.found();
        if found.masks.len() >= MAX_GROUP_MASKS {
            found.masks.clear();
        }
        found.masks.insert(key, Arc::clone(&group_mask));
        Ok(group_mask)
    }

    /// Returns the number of a group; computes its tokens on first use.
    fn number(&self, group: &Bound<'_, PyAny>, vocabulary: &Vocabulary) -> Result<u32, Error> {
        let py = group.py();
        let failed = |error| call_error(py, error, "a token group");
        let numbers = self.numbers.bind(py);
        if let Some(number) = numbers.get_item(group).map_err(failed)? {
            return number.extract().map_err(failed);
        }
        let count = self.found().sets.len();
        if count >= MAX_GROUPS {
            let hint =
                "create groups once rather than in each call, so that their tokens are cached";
            return Err(limit(py, "token groups", count as u64 + 1, MAX_GROUPS as u64, hint));
        }
        let shared = self.shared.bind(py);
        let known = shared.get_item(group).map_err(failed)?;
        let set = match known.as_ref().and_then(|known| known.cast::<PyBytes>().ok()) {
            Some(words) => from_bytes(words.as_bytes()),
            None => {
                let set = tokens_of(group, vocabulary)?;
                if shared.len() >= MAX_GROUPS {
                    shared.clear();
                }
                let data: Vec<u8> = set.iter().flat_map(|word| word.to_le_bytes()).collect();
                shared.set_item(group, PyBytes::new(py, &data)).map_err(failed)?;
                set
            }
        };
        let number = {
            let mut found = self.found();
            found.sets.push(set);
            found.sets.len() as u32 - 1
        };
        numbers.set_item(group, number).map_err(failed)?;
        Ok(number)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let found = self.found();
        let sets: usize = found.sets.iter().map(|set| 4 * set.len()).sum();
        sets + found.masks.values().map(|group_mask| group_mask.memory_bytes()).sum::<usize>()
    }
}

fn from_bytes(data: &[u8]) -> MaskWords {
    let (words, _) = data.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// Returns the bitmask of the tokens with a property.
fn set_of<E>(
    vocabulary: &Vocabulary,
    mut holds: impl FnMut(&[u8]) -> Result<bool, E>,
) -> Result<MaskWords, E> {
    let mut words = vec![0u32; vocabulary.len().div_ceil(32)];
    for id in 0..vocabulary.len() as u32 {
        if let Some(bytes) = vocabulary.token_bytes(id)
            && holds(bytes)?
        {
            words[id as usize >> 5] |= 1 << (id & 31);
        }
    }
    Ok(words.into())
}

/// Returns the tokens of a group: a language, or a function of the token's text.
fn tokens_of(group: &Bound<'_, PyAny>, vocabulary: &Vocabulary) -> Result<MaskWords, Error> {
    let py = group.py();
    let failed = |error| call_error(py, error, "a token group");
    let class = py.import("formalm.languages").and_then(|room| room.getattr("Language"));
    let class = class.map_err(failed)?;
    if group.is_instance(&class).map_err(failed)? {
        let matches = group.getattr("matches").map_err(failed)?;
        return set_of(vocabulary, |bytes| {
            let answer = matches.call1((PyBytes::new(py, bytes),)).map_err(failed)?;
            answer.extract().map_err(|error: PyErr| failed(error))
        });
    }
    if !group.is_callable() {
        let message = "a token group must be a language or a function of a token's string";
        return Err(contract_error(py, message, Some("for example str.isalpha")));
    }
    set_of(vocabulary, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return Ok(false) };
        let answer = group.call1((text,)).map_err(failed)?;
        match answer.cast::<PyBool>() {
            Ok(answer) => Ok(answer.is_true()),
            Err(_) => {
                let message = format!(
                    "a token group must return True or False, but returned another value for \
                     {text:?}"
                );
                Err(contract_error(py, &message, None))
            }
        }
    })
}
