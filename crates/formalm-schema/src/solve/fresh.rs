//! Texts of a language that are none of some others.

use formalm_automata::{Error, Machine, StateId};

use crate::core::{Core, TextId};
use crate::formula::{F, TRUE};

/// Classes of names that one formula may tell apart.
const MAX_CLASSES: usize = 4_096;

impl Core {
    /// A member of a language that is not excluded.
    pub(crate) fn fresh_text(
        &self,
        language: TextId,
        excluded: &[&str],
    ) -> Result<Option<String>, Error> {
        let machine = self.text(language);
        let excluded: Vec<&[u8]> = excluded.iter().map(|text| text.as_bytes()).collect();
        let found = fresh_member(&**machine, machine.start(), &excluded)?;
        // Languages of texts have members in UTF-8 only.
        Ok(found.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    /// The classes of names that formulas over names tell apart, those that have members.
    pub(crate) fn classes(&mut self, tests: &[F]) -> Result<Vec<TextId>, Error> {
        if let Some(known) = self.answers.classes.get(tests) {
            return Ok(known.clone());
        }
        let mut classes = vec![TRUE];
        for &test in tests {
            let outside = self.formulas.not(test);
            let mut finer = Vec::with_capacity(classes.len());
            for class in classes {
                for side in [test, outside] {
                    let part = self.formulas.both(class, side);
                    if self.language(part)?.is_some() {
                        finer.push(part);
                    }
                }
            }
            classes = finer;
            if classes.len() > MAX_CLASSES {
                let (needed, allowed) = (classes.len() as u64, MAX_CLASSES as u64);
                let resource = formalm_automata::Resource::Terms;
                return Err(Error::Limit { resource, needed, allowed });
            }
        }
        let mut list = Vec::with_capacity(classes.len());
        for class in classes {
            list.extend(self.language(class)?);
        }
        self.answers.classes.insert(tests.to_vec(), list.clone());
        Ok(list)
    }
}

/// A continuation from `state` that is none of the excluded ones.
///
/// All states shown are live, so the first byte that no excluded text has leads to one.
pub(crate) fn fresh_member<M: Machine>(
    machine: &M,
    state: StateId,
    excluded: &[&[u8]],
) -> Result<Option<Vec<u8>>, Error> {
    let mut open = vec![(state, Vec::new(), excluded.to_vec())];
    while let Some((state, read, excluded)) = open.pop() {
        if excluded.is_empty() {
            let rest = machine.shortest(state)?;
            return Ok(Some([read, rest].concat()));
        }
        if machine.is_accepting(state) && excluded.iter().all(|text| !text.is_empty()) {
            return Ok(Some(read));
        }
        let live = machine.live_bytes(state)?;
        let mut later = Vec::new();
        // Letters first: what is found stands for its class, and may be shown.
        let order = (b'a'..=b'z').chain(0..b'a').chain(b'z' + 1..=255);
        for byte in order.filter(|&byte| live.contains(byte)) {
            let starts = excluded.iter().filter(|text| text.first() == Some(&byte));
            let excluded: Vec<&[u8]> = starts.map(|text| &text[1..]).collect();
            let Some(next) = machine.step(state, byte)? else { continue };
            let text = [&read[..], &[byte]].concat();
            if excluded.is_empty() {
                let rest = machine.shortest(next)?;
                return Ok(Some([text, rest].concat()));
            }
            later.push((next, text, excluded));
        }
        open.extend(later.into_iter().rev());
    }
    Ok(None)
}
