//! Byte strings that share their beginnings, with their states.

/// Strings as a tree of bytes: 13 bytes each, whatever their length.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrefixStrings {
    parent: Vec<u32>,
    byte: Vec<u8>,
    length: Vec<u32>,
    state: Vec<u32>,
}

impl PrefixStrings {
    pub(crate) fn len(&self) -> usize {
        self.parent.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        13 * self.len()
    }

    /// Adds an empty string, the root of others.
    pub(crate) fn add_root(&mut self, state: u32) -> u32 {
        self.parent.push(u32::MAX);
        self.byte.push(0);
        self.length.push(0);
        self.state.push(state);
        self.len() as u32 - 1
    }

    /// Adds a string that is one byte longer.
    pub(crate) fn add(&mut self, parent: u32, byte: u8, state: u32) -> u32 {
        self.parent.push(parent);
        self.byte.push(byte);
        self.length.push(self.length(parent) + 1);
        self.state.push(state);
        self.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn length(&self, string: u32) -> u32 {
        self.length[string as usize]
    }

    #[inline]
    pub(crate) fn state(&self, string: u32) -> u32 {
        self.state[string as usize]
    }

    /// Returns the parent and the last byte of a string; for a root, `u32::MAX` and 0.
    pub(crate) fn last(&self, string: u32) -> (u32, u8) {
        (self.parent[string as usize], self.byte[string as usize])
    }

    /// Writes the bytes of a string from `start` on.
    pub(crate) fn write(&self, string: u32, start: u32, into: &mut Vec<u8>) {
        into.clear();
        let mut at = string;
        for _ in start..self.length(string) {
            into.push(self.byte[at as usize]);
            at = self.parent[at as usize];
        }
        into.reverse();
    }

    /// Orders strings of equal length by bytes. It walks to their common beginning.
    pub(crate) fn cmp(&self, one: u32, other: u32) -> std::cmp::Ordering {
        let (mut a, mut b) = (one, other);
        let mut order = std::cmp::Ordering::Equal;
        while a != b && self.length(a) > 0 && self.length(b) > 0 {
            let (x, y) = (self.last(a), self.last(b));
            order = x.1.cmp(&y.1).then(order);
            (a, b) = (x.0, y.0);
        }
        order
    }
}
