//! Patterns that are read on alike.

use super::{Lexed, Source};

/// Characters that mean something between items, within braces too.
const SPECIAL: &[u8] = b"$()*+,?[\\]^{|}";

fn set(characters: impl IntoIterator<Item = u8>) -> u128 {
    characters.into_iter().fold(0, |set, one| set | 1 << one)
}

impl Source {
    /// ASCII characters around one that lead to the same pattern.
    pub(super) fn span(&self, character: u8) -> (u8, u8) {
        let between = matches!(self.lexed, Lexed::Item(_) | Lexed::Repeated | Lexed::Open);
        if !between || SPECIAL.contains(&character) {
            return (character, character);
        }
        let below = SPECIAL.iter().rev().find(|&&one| one < character);
        let above = SPECIAL.iter().find(|&&one| one > character);
        (below.map_or(0, |one| one + 1), above.map_or(0x7F, |one| one - 1))
    }

    /// A pattern of a few that most texts go on alike, and the characters that those may begin
    /// with, and have anywhere, which do not: nothing is kept of groups but the end of one.
    pub(super) fn like(&self) -> (Source, u128, u128) {
        let mut anywhere = if self.open.is_empty() { 0 } else { set(*b")") };
        if !self.names.is_empty() {
            anywhere |= set(*b">");
        }
        let name = || "a".to_owned();
        let (lexed, first) = match &self.lexed {
            Lexed::Repeated => (Lexed::Item(false), set(*b"?")),
            Lexed::Brace { .. } => {
                anywhere |= set(*b",}") | set(b'0'..=b'9');
                (Lexed::Item(true), 0)
            }
            Lexed::Reference(_) => (Lexed::Item(true), 0),
            Lexed::Name(_) => (Lexed::Name(name()), 0),
            Lexed::Named(Some(one)) if !one.is_empty() => (Lexed::Named(Some(name())), 0),
            Lexed::After(Some(_)) => (Lexed::Members, set(*b"-")),
            &Lexed::Hyphen(Some(low)) if low < 0x80 => {
                // Less than the first of the range is no last one, escaped or not.
                (Lexed::Hyphen(None), set((0..low as u8).chain(*b"\\")))
            }
            lexed => (lexed.clone(), 0),
        };
        (Source { lexed, ..Source::new() }, first, anywhere)
    }

    /// About how many characters are missing to a pattern.
    pub(super) fn missing(&self) -> u32 {
        let lexed = match &self.lexed {
            Lexed::Item(_) | Lexed::Repeated | Lexed::Brace { .. } | Lexed::Reference(_) => 0,
            Lexed::Angle => 3,
            Lexed::Kind | Lexed::Named(_) => 2,
            _ => 1,
        };
        let groups = self.needed.saturating_sub(self.groups).min(1_000) as u32;
        let names = self.missing.len() as u32;
        lexed + self.open.len() as u32 + 2 * groups + 5 * names
    }
}
