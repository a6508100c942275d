//! Equivalence of recognizer states: byte ranges, and representatives that read almost all strings
//! alike.

use super::{RegexSourceState, SourcePosition};

/// Characters with a meaning between items, also inside braces.
const SPECIAL: &[u8] = b"$()*+,?[\\]^{|}";

fn set(characters: impl IntoIterator<Item = u8>) -> u128 {
    characters.into_iter().fold(0, |set, one| set | 1 << one)
}

impl RegexSourceState {
    /// Returns the ASCII characters around `character` that lead to the same state.
    pub(super) fn ascii_span(&self, character: u8) -> (u8, u8) {
        let between = matches!(
            self.position,
            SourcePosition::Item(_) | SourcePosition::Repeated | SourcePosition::Open
        );
        if !between || SPECIAL.contains(&character) {
            return (character, character);
        }
        let below = SPECIAL.iter().rev().find(|&&one| one < character);
        let above = SPECIAL.iter().find(|&&one| one > character);
        (below.map_or(0, |one| one + 1), above.map_or(0x7F, |one| one - 1))
    }

    /// Returns a representative that continues like this state, with the characters that excluded
    /// strings may begin with, and contain anywhere. It remembers nothing of groups but that one
    /// may end.
    pub(super) fn representative(&self) -> (RegexSourceState, u128, u128) {
        let mut anywhere = if self.open.is_empty() { 0 } else { set(*b")") };
        if !self.names.is_empty() {
            anywhere |= set(*b">");
        }
        let name = || "a".to_owned();
        let (lexed, first) = match &self.position {
            SourcePosition::Repeated => (SourcePosition::Item(false), set(*b"?")),
            SourcePosition::Brace { .. } => {
                anywhere |= set(*b",}") | set(b'0'..=b'9');
                (SourcePosition::Item(true), 0)
            }
            SourcePosition::Reference(_) => (SourcePosition::Item(true), 0),
            SourcePosition::Name(_) => (SourcePosition::Name(name()), 0),
            SourcePosition::Named(Some(one)) if !one.is_empty() => {
                (SourcePosition::Named(Some(name())), 0)
            }
            SourcePosition::After(Some(_)) => (SourcePosition::Members, set(*b"-")),
            &SourcePosition::Hyphen(Some(low)) if low < 0x80 => {
                // A smaller code point than the first of the range cannot end it, escaped or not.
                (SourcePosition::Hyphen(None), set((0..low as u8).chain(*b"\\")))
            }
            lexed => (lexed.clone(), 0),
        };
        (RegexSourceState { position: lexed, ..RegexSourceState::new() }, first, anywhere)
    }

    /// Returns an estimate of the characters missing to a pattern.
    pub(super) fn estimated_missing_chars(&self) -> u32 {
        let lexed = match &self.position {
            SourcePosition::Item(_)
            | SourcePosition::Repeated
            | SourcePosition::Brace { .. }
            | SourcePosition::Reference(_) => 0,
            SourcePosition::Angle => 3,
            SourcePosition::Kind | SourcePosition::Named(_) => 2,
            _ => 1,
        };
        let groups = self.groups_needed.saturating_sub(self.groups).min(1_000) as u32;
        let names = self.undefined_names.len() as u32;
        lexed + self.open.len() as u32 + 2 * groups + 5 * names
    }
}
