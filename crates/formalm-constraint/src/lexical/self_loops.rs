//! Bytes over which the lexer loops, as inside a string or a name.

use formalm_core::{Error, WideParts, reads_all_non_ascii};
use formalm_machines::{LexerStateId, LexicalMachine};
use formalm_vocabulary::TokenTrie;
use rustc_hash::FxHashMap;

/// Subtrees of at most this many nodes are read rather than tested. Chosen, not measured.
const MAX_READ_NODES: u32 = 64;

/// The characters of which every sequence leaves the lexer state unchanged. No lexeme that ends
/// inside such a sequence matters, because its leftover state forbids the next byte.
#[derive(Clone, Copy, Debug, Default)]
struct LexerSelfLoops {
    ascii: u128,
    wide: bool,
}

/// The self-loops of lexer states, as far as they were asked for.
#[derive(Debug, Default)]
pub(super) struct SelfLoops {
    by_state: FxHashMap<u32, LexerSelfLoops>,
}

impl SelfLoops {
    /// Returns the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        64 * self.by_state.len()
    }

    /// Returns `true` if nothing below a node moves the lexer. `false` may also mean that testing
    /// this would take longer than reading the subtree.
    pub(super) fn is_within_loop(
        &mut self,
        lexemes: &impl LexicalMachine,
        trie: &TokenTrie,
        node: u32,
        lexer_state: LexerStateId,
    ) -> Result<bool, Error> {
        let (signature, nodes) = (trie.signature(node), trie.nodes());
        if signature.unclean() {
            return Ok(false);
        }
        if !self.by_state.contains_key(&lexer_state.0) {
            let here = nodes[node as usize];
            if here.end() - node <= MAX_READ_NODES {
                return Ok(false);
            }
            // The first byte nearly always decides.
            let first = lexemes.read_byte(lexer_state, nodes[node as usize + 1].byte())?;
            let first_character = nodes[node as usize + 1].byte() < 0x80;
            if first_character && (first.next != Some(lexer_state) || first.context_dependent) {
                return Ok(false);
            }
        }
        let loops = self.loops(lexemes, lexer_state)?;
        let wide = if loops.wide { WideParts::ALL } else { WideParts::default() };
        Ok(signature.is_within(loops.ascii, wide))
    }

    fn loops(
        &mut self,
        lexemes: &impl LexicalMachine,
        lexer_state: LexerStateId,
    ) -> Result<LexerSelfLoops, Error> {
        if let Some(&loops) = self.by_state.get(&lexer_state.0) {
            return Ok(loops);
        }
        let loops = loops(lexemes, lexer_state)?;
        self.by_state.insert(lexer_state.0, loops);
        Ok(loops)
    }
}

fn loops(
    lexemes: &impl LexicalMachine,
    lexer_state: LexerStateId,
) -> Result<LexerSelfLoops, Error> {
    let (mut plain, mut ending) = (0u128, 0u128);
    let mut endings: Vec<u32> = Vec::new();
    for byte in 0..128u8 {
        let progress = lexemes.read_byte(lexer_state, byte)?;
        if progress.next != Some(lexer_state) || progress.context_dependent {
            continue;
        }
        if progress.ends == 0 {
            plain |= 1 << byte;
        } else {
            ending |= 1 << byte;
            endings.push(progress.ends);
        }
    }
    let mut wide = false;
    if plain | ending != 0 {
        wide = reads_all_non_ascii(lexer_state, lexer_state, |lexer_state, byte| {
            let progress = lexemes.read_byte(lexer_state, byte)?;
            if progress.ends != 0 {
                endings.push(progress.ends);
            }
            Ok(progress.next.filter(|_| !progress.context_dependent))
        })?;
    }
    endings.sort_unstable();
    endings.dedup();
    let ascii = plain | ending;
    for ending in endings {
        for one in &*lexemes.lexeme_ends(ending) {
            if !forbids(lexemes, one.negative_threads, ascii, wide)? {
                // Only characters that end no lexeme at all.
                return Ok(LexerSelfLoops { ascii: plain, wide: false });
            }
        }
    }
    Ok(LexerSelfLoops { ascii, wide })
}

/// Returns `true` if the leftover state of a lexeme forbids each of the given characters.
fn forbids(
    lexemes: &impl LexicalMachine,
    leftover: u32,
    ascii: u128,
    wide: bool,
) -> Result<bool, Error> {
    const FORBIDDEN: u32 = u32::MAX;
    if leftover == 0 {
        return Ok(false);
    }
    for byte in (0..128u8).filter(|byte| ascii >> byte & 1 != 0) {
        if lexemes.step_threads(leftover, byte)?.is_some() {
            return Ok(false);
        }
    }
    if !wide {
        return Ok(true);
    }
    reads_all_non_ascii(leftover, FORBIDDEN, |leftover, byte| {
        Ok(match lexemes.step_threads(leftover, byte)? {
            None => Some(FORBIDDEN),
            Some(0) => None,
            leftover => leftover,
        })
    })
}
