//! The compiled map of a SentencePiece normalizer: strings and what replaces them.
//!
//! ```text
//!  size of the trie u32   double-array trie (u32 units)   replacements, each ended by a zero byte
//! ```
//!
//! The value of a key in the trie is the offset of its replacement.

/// A string that is replaced, and its replacement.
pub(crate) type Replacement = (String, String);

/// Maximum number of keys that are read; `nmt_nfkc_cf` has some 240,000. Bounds memory.
const MAX_KEYS: usize = 1 << 20;

/// Reads the map. Returns `None` if the data is not one.
pub(crate) fn read(data: &[u8]) -> Option<Vec<Replacement>> {
    let (size, rest) = data.split_first_chunk::<4>()?;
    let size = u32::from_le_bytes(*size) as usize;
    let (trie, replacements) = rest.split_at_checked(size)?;
    let units: Vec<u32> = trie
        .chunks_exact(4)
        .map(|unit| u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]]))
        .collect();
    let replacement = |offset: usize| {
        let rest = replacements.get(offset..)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    };
    let mut list = Vec::new();
    // Nodes, each with the number of bytes of its key.
    let mut pending = vec![(offset(*units.first()?), 0usize, 0u8)];
    let mut key: Vec<u8> = Vec::new();
    while let Some((node, depth, byte)) = pending.pop() {
        key.truncate(depth.saturating_sub(1));
        if depth > 0 {
            key.push(byte);
        }
        for byte in 1..=255u8 {
            let at = node ^ usize::from(byte);
            let Some(&unit) = units.get(at) else { continue };
            if unit & (1 << 31 | 0xFF) != u32::from(byte) {
                continue;
            }
            let child = at ^ offset(unit);
            if unit >> 8 & 1 != 0 {
                let value = units.get(child)? & 0x7FFF_FFFF;
                let text = [&key[..], &[byte]].concat();
                list.push((String::from_utf8(text).ok()?, replacement(value as usize)?.to_owned()));
            }
            if depth >= 255 || list.len() > MAX_KEYS {
                return None;
            }
            pending.push((child, depth + 1, byte));
        }
    }
    Some(list)
}

/// Returns the offset of the children of a unit of the trie.
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 1 << 9) >> 6)) as usize
}
