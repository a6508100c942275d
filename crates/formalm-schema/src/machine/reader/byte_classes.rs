//! The bytes that may come next, those together that go on alike: what random walks choose from.

use std::sync::Arc;

use formalm_automata::{ByteSet, Error, alike};

use crate::machine::{DEAD, LazyTables};

impl LazyTables {
    /// Bytes that some instance continues a state with; the states behind them are not kept.
    pub(crate) fn live_bytes(&mut self, state: u32) -> Result<ByteSet, Error> {
        if let Some(&known) = self.live.get(&state) {
            return Ok(known);
        }
        let (position, records) = (*self.states.get(state), self.records.len());
        let mut live = ByteSet::default();
        for byte in 0..=255 {
            let leads = match self.next.get(&(state, byte)) {
                Some(&known) => known != DEAD,
                None => self.read_byte(position, byte)?.is_some(),
            };
            if leads {
                live.insert(byte);
            }
        }
        self.records.truncate(records);
        self.live.insert(state, live);
        Ok(live)
    }

    /// Bytes that go on alike. What is read ahead is not kept, and places whose keys are one share
    /// their ways; a name or an item that came already is told apart by reading it only.
    pub(crate) fn byte_classes(&mut self, state: u32) -> Result<Arc<[ByteSet]>, Error> {
        // Which names tokens can tell apart does not matter here.
        let distinguishes_names = std::mem::replace(&mut self.distinguishes_names, false);
        let classes = self.compute_byte_classes(state);
        self.distinguishes_names = distinguishes_names;
        classes
    }

    fn compute_byte_classes(&mut self, state: u32) -> Result<Arc<[ByteSet]>, Error> {
        let position = *self.states.get(state);
        let key = self.mask_abstraction(position)?;
        if let Some(known) = self.cache.byte_classes.get(&key) {
            return Ok(Arc::clone(known));
        }
        let records = self.records.len();
        let classes = alike(|byte| match self.read_byte(key, byte)? {
            Some(next) => self.mask_abstraction(next).map(Some),
            None => Ok(None),
        });
        // Texts recorded ahead belong to places that nobody knows any more.
        self.records.truncate(records);
        let classes: Arc<[ByteSet]> = classes?.into();
        self.cache.byte_classes.insert(key, Arc::clone(&classes));
        Ok(classes)
    }
}
