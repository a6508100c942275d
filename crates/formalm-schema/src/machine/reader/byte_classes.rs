//! The live bytes of a state, and their partition into classes with equal residuals. Random walks
//! choose among the classes.

use std::sync::Arc;

use formalm_core::{ByteSet, Error, group_by_successor};

use crate::machine::{DEAD, LazyTables};

impl LazyTables {
    /// Returns the bytes with which some instance continues. The successor states are not kept.
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

    /// Returns the classes of live bytes with equal residuals.
    ///
    /// States reached on the way are not kept, and positions of one mask class share the result. A
    /// repeated name or item is noticed only when it is read, so it is not excluded here.
    pub(crate) fn byte_classes(&mut self, state: u32) -> Result<Arc<[ByteSet]>, Error> {
        // Here it does not matter if tokens distinguish names.
        let distinguishes_names = std::mem::replace(&mut self.distinguishes_names, false);
        let classes = self.compute_byte_classes(state);
        self.distinguishes_names = distinguishes_names;
        classes
    }

    fn compute_byte_classes(&mut self, state: u32) -> Result<Arc<[ByteSet]>, Error> {
        let position = *self.states.get(state);
        let position_class = self.mask_abstraction(position)?;
        if let Some(known) = self.cache.byte_classes.get(&position_class) {
            return Ok(Arc::clone(known));
        }
        let records = self.records.len();
        let classes = group_by_successor(|byte| match self.read_byte(position_class, byte)? {
            Some(next) => self.mask_abstraction(next).map(Some),
            None => Ok(None),
        });
        // Inputs recorded meanwhile belong to positions that nothing refers to.
        self.records.truncate(records);
        let classes: Arc<[ByteSet]> = classes?.into();
        self.cache.byte_classes.insert(position_class, Arc::clone(&classes));
        Ok(classes)
    }
}
