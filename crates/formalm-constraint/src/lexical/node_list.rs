//! A compressed list of trie nodes; the lexical tables consist mostly of these.

/// Trie nodes, ascending, each with the leftover state of the lexeme that ended there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeList(Box<[u8]>);

impl NodeList {
    /// Encodes a sorted list.
    pub(super) fn new(list: &[(u32, u32)]) -> NodeList {
        let mut bytes = Vec::with_capacity(2 * list.len());
        let mut before = (0, 0);
        for &(node, leftover) in list {
            // The distance from the previous node, and whether the leftover state is equal.
            write(&mut bytes, u64::from(node - before.0) << 1 | u64::from(leftover == before.1));
            if leftover != before.1 {
                write(&mut bytes, u64::from(leftover));
            }
            before = (node, leftover);
        }
        NodeList(bytes.into())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (mut rest, mut at) = (&*self.0, (0, 0));
        std::iter::from_fn(move || {
            let step = read(&mut rest)?;
            at.0 += (step >> 1) as u32;
            if step & 1 == 0 {
                at.1 = read(&mut rest)? as u32;
            }
            Some(at)
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.len()
    }
}

/// Writes a varint: seven bits per byte, the lowest first.
fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read(rest: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, more) = rest.split_first()?;
        *rest = more;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_list_reads_back_as_written() {
        let last = (u32::MAX - 1, u32::MAX);
        let list = [(0, 0), (0, 7), (1, 7), (130, 1 << 20), (70_000, 0), (70_001, 0), last];
        let nodes = NodeList::new(&list);
        assert_eq!(nodes.iter().collect::<Vec<_>>(), list);
        assert!(nodes.memory_bytes() < 8 * list.len());
        assert_eq!(NodeList::new(&[]).iter().next(), None);
    }
}
