//! The sections of a text, and at which edges encoding loses a part of them.
//!
//! ```text
//!  text       a b   <tool>   c d          added tokens separate sections
//!  sections  [a b]          [c d]         each normalized, and perhaps preceded by a space, alone
//! ```
//!
//! A normalizer may strip a section, collapse its spaces, or replace strings in it. A space may be
//! inserted before a section, which decoding keeps inside a text. An added token may absorb the white
//! space after it. A text is given back iff none of this happens, or the inserted space makes up for
//! the one that was lost.
//!
//! The rules are an automaton over characters whose states are computed, not stored. It becomes a
//! part of the boundary automaton.

use formalm_core::CharSet;

use super::cluster_map::{ClusterRules, ClusterState};

/// Returns the characters of white space.
pub(crate) fn white_space() -> CharSet {
    let white = ('\0'..='\u{3000}').filter(|c| c.is_whitespace());
    CharSet::from_ranges(white.map(|c| (c, c)))
}

/// The rules of a tokenizer. By default no text breaks them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SectionRules {
    /// Sections are stripped of white space at the start.
    pub(crate) strips_start: bool,
    /// Sections are stripped of white space at the end.
    pub(crate) strips_end: bool,
    /// Sections are stripped of spaces at the start, and not of other white space.
    pub(crate) strips_first_spaces: bool,
    /// Sections are stripped of spaces at the end, and not of other white space.
    pub(crate) strips_last_spaces: bool,
    /// Adjacent spaces become one.
    pub(crate) collapses_spaces: bool,
    /// Strings that are replaced by other ones.
    pub(crate) replaced: Vec<Vec<char>>,
    /// Strings that are never a part of a replaced one, although one may begin with their last
    /// character. None of them overlaps another one.
    pub(crate) protected: Vec<Vec<char>>,
    /// `true` if added tokens separate sections, `false` if they are a part of one.
    pub(crate) added_separates: bool,
    /// The space that is inserted after an added token.
    pub(crate) inserted: InsertedSpace,
    /// A space is inserted at the start of a text, unless the text begins with an added token.
    pub(crate) begins_with_space: bool,
    /// The strings of added tokens, and whether each absorbs the white space after it. Empty if
    /// none does.
    pub(crate) added: Vec<(Vec<char>, bool)>,
    /// The grapheme clusters that a map of characters changes.
    pub(crate) clusters: Option<Box<ClusterRules>>,
}

/// The space that encoding inserts after an added token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InsertedSpace {
    /// None.
    #[default]
    Never,
    /// A space, unless the text goes on with one.
    UnlessThere,
    /// A space, if any text follows.
    Always,
}

/// The characters that may begin the rest of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RestStart {
    Any,
    NoWhiteSpace,
    NoSpace,
    Space,
    /// One space, and then something other than white space.
    OneSpace,
    /// Something other than white space, and not the end.
    Required,
    /// A space that is inserted.
    Inserted,
    /// Anything but an added token; no white space if that is stripped.
    NoAdded,
    Nothing,
}

/// The last character of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LastCharacter {
    Other,
    Space,
    WhiteSpace,
}

/// The part of an added token that has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AddedPart {
    /// None: the last character belongs to a section.
    None,
    /// Some, and it does not matter which.
    Some,
    /// The first characters of this one of the added tokens.
    Of(u16, u16),
}

/// A state of [`SectionRules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SectionState {
    start: RestStart,
    last: LastCharacter,
    /// The longest end of the section that begins a replaced string: the string and the length.
    replaced: (u16, u16),
    added: AddedPart,
    cluster: ClusterState,
}

/// The place of a character in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionPlace {
    /// In a section.
    Section,
    /// The first character of an added token.
    AddedStart,
    /// A further one.
    Added,
}

impl SectionRules {
    /// Returns `true` if no text breaks the rules.
    pub(crate) fn is_empty(&self) -> bool {
        let inserts = self.inserted != InsertedSpace::Never || self.begins_with_space;
        !self.changes_sections() && !inserts && self.added.is_empty()
    }

    /// Returns `true` if the normalizer changes some section.
    pub(crate) fn changes_sections(&self) -> bool {
        let strips_spaces = self.strips_first_spaces || self.strips_last_spaces;
        let strips = self.strips_start || self.strips_end || strips_spaces;
        let replaces = !self.replaced.is_empty() || self.clusters.is_some();
        strips || self.collapses_spaces || replaces
    }

    /// Returns the sets of characters that the rules distinguish.
    pub(crate) fn sets(&self) -> Vec<CharSet> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut sets = vec![white_space(), CharSet::single(' ')];
        let added = self.added.iter().flat_map(|(text, _)| text);
        let strings = self.replaced.iter().chain(&self.protected).flatten();
        sets.extend(strings.chain(added).map(|&c| CharSet::single(c)));
        sets.extend(self.clusters.iter().flat_map(|clusters| clusters.sets()));
        sets
    }

    /// Returns the state before any text.
    pub(crate) fn start(&self) -> SectionState {
        SectionState {
            start: match (self.strips_start, self.strips_first_spaces) {
                (true, _) if self.begins_with_space => RestStart::Any,
                (true, _) => RestStart::NoWhiteSpace,
                (false, true) => RestStart::NoSpace,
                (false, false) => RestStart::Any,
            },
            last: LastCharacter::Other,
            replaced: (0, 0),
            added: AddedPart::None,
            cluster: ClusterState::default(),
        }
    }

    /// Returns the state before any text, if an inserted space begins it.
    pub(crate) fn text_start(&self) -> SectionState {
        match self.begins_with_space {
            true => SectionState { start: RestStart::Inserted, ..self.start() },
            false => self.start(),
        }
    }

    /// Reads a character. Returns `None` if encoding does not keep the text.
    pub(crate) fn step(
        &self,
        state: SectionState,
        c: char,
        place: SectionPlace,
    ) -> Option<SectionState> {
        let ends_added = place != SectionPlace::Added && state.added != AddedPart::None;
        let before = if ends_added { self.after_added(state) } else { state };
        if place == SectionPlace::Section {
            return self.read(before, c);
        }
        let begins = place == SectionPlace::AddedStart;
        if begins && matches!(before.start, RestStart::Required | RestStart::NoAdded) {
            return None;
        }
        let mut next = before;
        if !self.added_separates {
            // Another added token may follow at once.
            let start = if ends_added { RestStart::Any } else { before.start };
            next = self.read(SectionState { start, ..before }, c)?;
        } else if begins && !self.section_may_end(before) {
            return None;
        }
        next.added = self.extend_added(if begins { AddedPart::None } else { state.added }, c);
        Some(next)
    }

    /// Returns `true` if the text may end.
    pub(crate) fn may_end(&self, state: SectionState) -> bool {
        match state.added {
            AddedPart::None => self.section_may_end(state),
            _ => self.section_may_end(self.after_added(state)),
        }
    }

    /// Returns the number of bytes of a text without added tokens up to the first character that
    /// breaks the rules. Returns `None` if there is none.
    pub(crate) fn first_change(&self, text: &str) -> Option<usize> {
        let mut state = self.start();
        // The character that completes a pair, if only that of a longer cluster is kept.
        let mut pair = None;
        for (at, c) in text.char_indices() {
            match self.step(state, c, SectionPlace::Section) {
                Some(next) => {
                    pair = next.cluster.is_short().then(|| pair.unwrap_or(at));
                    state = next;
                }
                None => return pair.or(Some(at)),
            }
        }
        let (last, _) = text.char_indices().next_back()?;
        (!self.may_end(state)).then(|| pair.unwrap_or(last))
    }

    fn section_may_end(&self, state: SectionState) -> bool {
        state.start != RestStart::Required
            && !state.cluster.is_short()
            && match state.last {
                LastCharacter::Other => true,
                LastCharacter::Space => !self.strips_end && !self.strips_last_spaces,
                LastCharacter::WhiteSpace => !self.strips_end,
            }
    }

    /// Returns the state after the added token that was read last.
    fn after_added(&self, state: SectionState) -> SectionState {
        let absorbs = match state.added {
            AddedPart::None | AddedPart::Some => false,
            AddedPart::Of(token, length) => {
                let text = &self.added[usize::from(token)].0[..usize::from(length)];
                self.added.iter().any(|(one, absorbs)| *absorbs && one == text)
            }
        };
        let strips = absorbs || self.added_separates && self.strips_start;
        let start = match (self.inserted, strips) {
            (InsertedSpace::Never, false) => RestStart::Any,
            (InsertedSpace::Never, true) => RestStart::NoWhiteSpace,
            (InsertedSpace::UnlessThere, false) => RestStart::Space,
            (InsertedSpace::Always, false) => RestStart::Nothing,
            (_, true) => RestStart::OneSpace,
        };
        match self.added_separates {
            true => SectionState { start, ..self.start() },
            false => SectionState { start, added: AddedPart::None, ..state },
        }
    }

    fn extend_added(&self, part: AddedPart, c: char) -> AddedPart {
        let (token, length) = match part {
            _ if self.added.is_empty() => return AddedPart::Some,
            AddedPart::Of(token, length) => (usize::from(token), usize::from(length)),
            AddedPart::None | AddedPart::Some => (0, 0),
        };
        let read = &self.added[token].0[..length];
        let is_longer = |text: &[char]| text.starts_with(read) && text.get(length) == Some(&c);
        let next = self.added.iter().position(|(text, _)| is_longer(text));
        next.map_or(AddedPart::Some, |token| AddedPart::Of(token as u16, length as u16 + 1))
    }

    /// Reads a character of a section.
    fn read(&self, state: SectionState, c: char) -> Option<SectionState> {
        let is_white = c.is_whitespace();
        let start = match state.start {
            RestStart::Any => RestStart::Any,
            RestStart::NoWhiteSpace | RestStart::Required if !is_white => RestStart::Any,
            RestStart::NoSpace if c != ' ' => RestStart::Any,
            RestStart::Space if c == ' ' => RestStart::Any,
            RestStart::OneSpace if c == ' ' => RestStart::Required,
            RestStart::Inserted if c == ' ' => RestStart::NoAdded,
            RestStart::NoAdded if !(self.strips_start && is_white) => RestStart::Any,
            _ => return None,
        };
        let last = match (c, is_white) {
            (' ', _) => LastCharacter::Space,
            (_, true) => LastCharacter::WhiteSpace,
            (_, false) => LastCharacter::Other,
        };
        let is_repeated = last == LastCharacter::Space && state.last == LastCharacter::Space;
        if self.collapses_spaces && is_repeated {
            return None;
        }
        let replaced = self.extend_replaced(state.replaced, c)?;
        let cluster = match &self.clusters {
            Some(clusters) => clusters.step(state.cluster, c)?,
            None => ClusterState::default(),
        };
        Some(SectionState { start, last, replaced, added: AddedPart::None, cluster })
    }

    /// Returns the longest end of the section that begins a replaced or a protected string. Returns
    /// `None` if a replaced one ends here.
    fn extend_replaced(&self, (string, length): (u16, u16), c: char) -> Option<(u16, u16)> {
        let strings = || self.replaced.iter().chain(&self.protected);
        let Some(text) = strings().nth(usize::from(string)) else { return Some((0, 0)) };
        let before = &text[..usize::from(length)];
        let text = [before, &[c]].concat();
        let is_protected = || self.protected.iter().any(|one| before.ends_with(one));
        if self.replaced.iter().any(|one| text.ends_with(one)) && !is_protected() {
            return None;
        }
        let longest = (0..text.len()).find_map(|start| {
            let end = &text[start..];
            let string = strings().position(|one| one.starts_with(end))?;
            Some((string as u16, end.len() as u16))
        });
        Some(longest.unwrap_or_default())
    }

    /// Serializes the rules as flags and strings.
    pub(crate) fn parts(&self) -> (Vec<bool>, Vec<String>) {
        let flags = vec![
            self.strips_start,
            self.strips_end,
            self.strips_first_spaces,
            self.strips_last_spaces,
            self.collapses_spaces,
            self.added_separates,
            self.inserted == InsertedSpace::UnlessThere,
            self.inserted == InsertedSpace::Always,
            self.begins_with_space,
        ];
        (flags, self.replaced.iter().map(|text| text.iter().collect()).collect())
    }

    /// Rebuilds the rules from [`SectionRules::parts`], without protected strings and those of added
    /// tokens, which only the boundary automaton needs. Returns
    /// `None` if they contradict each other.
    pub(crate) fn from_parts(flags: &[bool], replaced: &[String]) -> Option<SectionRules> {
        let &[
            strips_start,
            strips_end,
            strips_first_spaces,
            strips_last_spaces,
            collapses_spaces,
            added_separates,
            unless_there,
            always,
            begins_with_space,
        ] = flags
        else {
            return None;
        };
        let inserted = match (unless_there, always) {
            (false, false) => InsertedSpace::Never,
            (true, false) => InsertedSpace::UnlessThere,
            (false, true) => InsertedSpace::Always,
            (true, true) => return None,
        };
        let replaced = replaced.iter().map(|text| text.chars().collect()).collect();
        Some(SectionRules {
            strips_start,
            strips_end,
            strips_first_spaces,
            strips_last_spaces,
            collapses_spaces,
            replaced,
            protected: Vec::new(),
            added_separates,
            inserted,
            begins_with_space,
            added: Vec::new(),
            clusters: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text in which `<` begins an added token that ends with `>`.
    fn keeps(rules: &SectionRules, text: &str) -> bool {
        let mut state = rules.start();
        let mut is_added = false;
        for c in text.chars() {
            let place = match (is_added, c) {
                (false, '<') => SectionPlace::AddedStart,
                (false, _) => SectionPlace::Section,
                (true, _) => SectionPlace::Added,
            };
            is_added = (is_added || c == '<') && c != '>';
            match rules.step(state, c, place) {
                Some(next) => state = next,
                None => return false,
            }
        }
        rules.may_end(state)
    }

    #[test]
    fn stripped_sections_have_no_white_space_at_their_ends() {
        let rules = SectionRules {
            strips_start: true,
            strips_end: true,
            added_separates: true,
            ..SectionRules::default()
        };
        for text in ["", "a", "a b", "a<x>b", "<x><x>", "<x>"] {
            assert!(keeps(&rules, text), "{text:?}");
        }
        for text in [" ", " a", "a\n", "a <x>", "<x> b", "<x> <x>"] {
            assert!(!keeps(&rules, text), "{text:?}");
        }
    }

    #[test]
    fn an_inserted_space_makes_up_for_one_that_was_absorbed() {
        let absorbing = |absorbs| vec![("<x>".chars().collect(), absorbs)];
        let rules = |inserted, added| SectionRules {
            added_separates: true,
            inserted,
            added,
            ..SectionRules::default()
        };
        let prepends = rules(InsertedSpace::Always, absorbing(false));
        assert!(keeps(&prepends, "a<x><x>") && !keeps(&prepends, "<x>b"));
        assert!(!keeps(&prepends, "<x> b"));
        let absorbs = rules(InsertedSpace::Always, absorbing(true));
        assert!(keeps(&absorbs, "<x> b") && !keeps(&absorbs, "<x>b"));
        assert!(!keeps(&absorbs, "<x>  b") && !keeps(&absorbs, "<x> <x>"));
        let marks = rules(InsertedSpace::UnlessThere, Vec::new());
        assert!(keeps(&marks, "<x> b") && keeps(&marks, "<x>  b") && !keeps(&marks, "<x>b"));
    }

    #[test]
    fn a_replaced_string_occurs_nowhere_except_after_protected_ones() {
        let rules = SectionRules {
            replaced: vec!["aba".chars().collect(), ">/".chars().collect()],
            protected: vec!["<>".chars().collect()],
            ..SectionRules::default()
        };
        let accepts = |text: &str| rules.first_change(text).is_none();
        assert!(accepts("abba") && accepts("aab") && accepts("<>/"));
        assert_eq!(rules.first_change("ababa"), Some(2));
        assert_eq!(rules.first_change("x>/"), Some(2));
    }
}
