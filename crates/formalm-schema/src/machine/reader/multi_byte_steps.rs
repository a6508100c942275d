//! Texts and names read by several bytes at once.
//!
//! States in the midst of a name or a text are seldom asked for: tokens have several of its bytes.
//! So only the state behind those is kept, and found again by them.

use formalm_automata::Error;

use crate::machine::frame::Frame;
use crate::machine::{DEAD, Grown};

/// Bytes that are read at once.
const MOST: usize = 7;

impl Grown {
    /// The state after a text, or how much of the text is viable.
    pub(crate) fn walk(&mut self, state: u32, text: &[u8]) -> Result<Result<u32, usize>, Error> {
        let (mut state, mut at) = (state, 0);
        while let Some(&byte) = text.get(at) {
            let known = self.next.get(&(state, byte)).copied();
            let run = if known.is_none() { self.run(state, &text[at..]) } else { &[] };
            if run.len() < 2 {
                match known.map_or_else(|| self.successor(state, byte), Ok)? {
                    DEAD => return Ok(Err(at)),
                    next => (state, at) = (next, at + 1),
                }
                continue;
            }
            let packed = run.iter().fold(1, |packed, &byte| packed << 8 | u64::from(byte));
            if let Some(&next) = self.leaps.get(&(state, packed)) {
                (state, at) = (next, at + run.len());
                continue;
            }
            match self.leap(state, run)? {
                Err(good) => return Ok(Err(at + good)),
                Ok((next, count)) => {
                    if count == run.len() {
                        self.leaps.insert((state, packed), next);
                    }
                    (state, at) = (next, at + count);
                }
            }
        }
        Ok(Ok(state))
    }

    /// The bytes of a text that are read at once: those within a name or text.
    fn run<'a>(&self, state: u32, text: &'a [u8]) -> &'a [u8] {
        if !matches!(self.states.get(state).frame, Frame::Name { .. } | Frame::Text { .. }) {
            return &[];
        }
        let run = &text[..text.len().min(MOST)];
        &run[..run.iter().position(|byte| b"\"\\".contains(byte)).unwrap_or(run.len())]
    }

    /// The state after bytes within a name or text, and how many were read; a byte after which
    /// nothing has changed is read alone. If they lead nowhere, how many of them are viable.
    fn leap(&mut self, state: u32, run: &[u8]) -> Result<Result<(u32, usize), usize>, Error> {
        self.check_limits()?;
        let first = *self.states.get(state);
        let mut place = first;
        for (at, &byte) in run.iter().enumerate() {
            let Some(next) = self.read_fresh(place, byte)? else { return Ok(Err(at)) };
            if at == 0 && next == first {
                self.next.insert((state, byte), state);
                return Ok(Ok((state, 1)));
            }
            place = next;
        }
        Ok(Ok((self.states.intern(place), run.len())))
    }
}
