//! The bytes that may come next, those together that go on alike: what random walks choose from.

use std::sync::Arc;

use formalm_automata::{ByteSet, Error, alike};

use crate::machine::Grown;

impl Grown {
    /// Bytes that go on alike. What is read ahead is not kept, and places whose keys are one share
    /// their ways; a name or an item that came already is told apart by reading it only.
    pub(crate) fn ways(&mut self, state: u32) -> Result<Arc<[ByteSet]>, Error> {
        // Which names tokens can tell apart does not matter here.
        let tells_names = std::mem::replace(&mut self.tells_names, false);
        let ways = self.ways_by_texts(state);
        self.tells_names = tells_names;
        ways
    }

    fn ways_by_texts(&mut self, state: u32) -> Result<Arc<[ByteSet]>, Error> {
        let place = *self.states.get(state);
        let key = self.normal(place)?;
        if let Some(known) = self.known.ways.get(&key) {
            return Ok(Arc::clone(known));
        }
        let records = self.records.len();
        let ways = alike(|byte| match self.read_fresh(key, byte)? {
            Some(next) => self.normal(next).map(Some),
            None => Ok(None),
        });
        // Texts recorded ahead belong to places that nobody knows any more.
        self.records.truncate(records);
        let ways: Arc<[ByteSet]> = ways?.into();
        self.known.ways.insert(key, Arc::clone(&ways));
        Ok(ways)
    }
}
