//! Transitions over up to seven bytes of a string or name at once.
//!
//! Tokens have several bytes of a string, so states between them are rarely asked for. Only the
//! state after the run is kept, indexed by the packed bytes.

use formalm_core::Error;

use crate::machine::frame::Frame;
use crate::machine::{DEAD, LazyTables};

/// Maximum length of a run, in bytes: with a leading one bit it fits 64 bits.
const MAX_RUN_BYTES: usize = 7;

impl LazyTables {
    /// Returns the state after `text`, or the length of its longest viable prefix.
    pub(crate) fn walk(&mut self, state: u32, text: &[u8]) -> Result<Result<u32, usize>, Error> {
        let (mut state, mut at) = (state, 0);
        while let Some(&byte) = text.get(at) {
            let known = self.next.get(&(state, byte)).copied();
            let run = if known.is_none() { self.string_run(state, &text[at..]) } else { &[] };
            if run.len() < 2 {
                match known.map_or_else(|| self.successor(state, byte), Ok)? {
                    DEAD => return Ok(Err(at)),
                    next => (state, at) = (next, at + 1),
                }
                continue;
            }
            let packed_prefix =
                run.iter().fold(1, |packed_prefix, &byte| packed_prefix << 8 | u64::from(byte));
            if let Some(&next) = self.run_transitions.get(&(state, packed_prefix)) {
                (state, at) = (next, at + run.len());
                continue;
            }
            match self.read_run(state, run)? {
                Err(good) => return Ok(Err(at + good)),
                Ok((next, count)) => {
                    if count == run.len() {
                        self.run_transitions.insert((state, packed_prefix), next);
                    }
                    (state, at) = (next, at + count);
                }
            }
        }
        Ok(Ok(state))
    }

    /// Returns the leading bytes of `text` that are read at once, none outside of strings and
    /// names.
    fn string_run<'a>(&self, state: u32, text: &'a [u8]) -> &'a [u8] {
        if !matches!(self.states.get(state).frame, Frame::Name { .. } | Frame::String { .. }) {
            return &[];
        }
        let run = &text[..text.len().min(MAX_RUN_BYTES)];
        &run[..run.iter().position(|byte| b"\"\\".contains(byte)).unwrap_or(run.len())]
    }

    /// Returns the state after a run and the number of bytes read. A first byte that changes
    /// nothing is read alone. The inner error is the number of viable bytes.
    fn read_run(&mut self, state: u32, run: &[u8]) -> Result<Result<(u32, usize), usize>, Error> {
        self.check_limits()?;
        let first = *self.states.get(state);
        let mut position = first;
        for (at, &byte) in run.iter().enumerate() {
            let Some(next) = self.read_byte(position, byte)? else { return Ok(Err(at)) };
            if at == 0 && next == first {
                self.next.insert((state, byte), state);
                return Ok(Ok((state, 1)));
            }
            position = next;
        }
        Ok(Ok((self.states.intern(position), run.len())))
    }
}
