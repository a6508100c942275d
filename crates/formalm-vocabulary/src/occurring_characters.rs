//! The characters that occur in a token, as 64 character-class bits plus an exact ASCII set.
//!
//! ```text
//!  token ──► atoms: u64    bit a = some character of atom a occurs   (42 ASCII atoms, 4 wide parts)
//!       └──► ascii: u128   bit b = ASCII byte b occurs
//! ```
//!
//! An *atom* is a block of a fixed partition of Unicode. Common character classes are unions of
//! atoms, so one 64-bit test decides whether all tokens with the same atoms lie within a class. The
//! exact ASCII set decides most of the rest. Beyond ASCII there are only the four parts of
//! [`formalm_core::wide_parts`], so a class that splits one of them leaves tokens undecided;
//! the caller checks these character by character.

use formalm_core::{ClassCover, SetOnce, WIDE_PARTS, wide_parts};

/// Index of the first atom beyond ASCII. The wide atoms follow in the order of `wide_parts`.
const FIRST_WIDE_ATOM: usize = 60;

/// The atom of each ASCII byte.
const ASCII_ATOMS: [u8; 128] = ascii_atoms();

/// The ASCII bytes of each atom.
const ATOM_BYTES: [u128; FIRST_WIDE_ATOM] = members();

const fn ascii_atoms() -> [u8; 128] {
    let mut atoms = [0; 128];
    let mut next = 6;
    let mut byte = 0;
    while byte < 128 {
        atoms[byte] = match byte as u8 {
            b'a'..=b'f' => 0,
            b'g'..=b'z' => 1,
            b'A'..=b'F' => 2,
            b'G'..=b'Z' => 3,
            b'0'..=b'9' => 4,
            b'\n' | b'\r' | b'\t' | b' '..=b'~' => {
                next += 1;
                next - 1
            }
            _ => 5,
        };
        byte += 1;
    }
    atoms
}

const fn members() -> [u128; FIRST_WIDE_ATOM] {
    let mut members = [0; FIRST_WIDE_ATOM];
    let mut byte = 0;
    while byte < 128 {
        members[ASCII_ATOMS[byte] as usize] |= 1 << byte;
        byte += 1;
    }
    members
}

/// Returns the atom of every character of the Basic Multilingual Plane, indexed by code point.
/// Characters of higher planes are searched in `wide_parts`.
fn basic_plane_atoms() -> &'static [u8] {
    static BASIC_PLANE_ATOMS: SetOnce<Box<[u8]>> = SetOnce::new();
    BASIC_PLANE_ATOMS.get_or_init(|| {
        let mut basic_plane_atoms =
            vec![(FIRST_WIDE_ATOM + WIDE_PARTS - 1) as u8; 0x1_0000].into_boxed_slice();
        for (part, set) in wide_parts().iter().enumerate() {
            for &(low, high) in set.ranges() {
                let (low, high) = (low as usize, (high as usize).min(0xFFFF));
                if let Some(range) = basic_plane_atoms.get_mut(low..=high) {
                    range.fill((FIRST_WIDE_ATOM + part) as u8);
                }
            }
        }
        basic_plane_atoms
    })
}

/// Returns the index of the part that a character beyond ASCII is in.
pub(crate) fn wide_part(character: char) -> usize {
    usize::from(atom_beyond_ascii(character)) - FIRST_WIDE_ATOM
}

fn atom_beyond_ascii(character: char) -> u8 {
    match basic_plane_atoms().get(character as usize) {
        Some(&atom) => atom,
        None => {
            let part = wide_parts().iter().position(|part| part.contains(character));
            (FIRST_WIDE_ATOM + part.unwrap_or(WIDE_PARTS - 1)) as u8
        }
    }
}

/// How the bytes of a token align with UTF-8 character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Utf8Shape {
    /// Whole characters only.
    Clean,
    /// Whole characters, then the first one to three bytes of another one.
    PartialEnd,
    /// One to three continuation bytes of a character, then bytes of shape `Clean` or `PartialEnd`.
    PartialStart,
    /// Bytes that occur in no valid UTF-8 string.
    Broken,
}

/// The characters that occur in a token or in its whole-character prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CharProfile {
    /// Atoms that occur, one bit each.
    pub atoms: u64,
    /// ASCII characters that occur; bit `b` stands for byte `b`.
    pub ascii: u128,
    /// Number of characters.
    pub characters: u32,
}

impl CharProfile {
    /// Returns the profile of `text`.
    pub fn of(text: &str) -> CharProfile {
        let mut profile = CharProfile::default();
        for character in text.chars() {
            profile.add(character);
        }
        profile
    }

    #[inline]
    pub(crate) fn add(&mut self, character: char) {
        self.characters += 1;
        let atom = if character.is_ascii() {
            self.ascii |= 1 << character as u32;
            ASCII_ATOMS[character as usize]
        } else {
            atom_beyond_ascii(character)
        };
        self.atoms |= 1 << atom;
    }
}

/// Returns the longest prefix of `bytes` that consists of whole characters, and the shape of the
/// token.
pub(crate) fn whole_char_prefix(bytes: &[u8]) -> (&str, Utf8Shape) {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return (text, Utf8Shape::Clean),
        Err(error) => error,
    };
    let good = &bytes[..error.valid_up_to()];
    let Ok(text) = std::str::from_utf8(good) else { return ("", Utf8Shape::Broken) };
    if error.error_len().is_none() {
        return (text, Utf8Shape::PartialEnd);
    }
    let start = bytes.iter().take_while(|&&byte| (0x80..0xC0).contains(&byte)).count();
    let shape = match start {
        1..=3 if !matches!(whole_char_prefix(&bytes[start..]).1, Utf8Shape::Broken) => {
            Utf8Shape::PartialStart
        }
        _ => Utf8Shape::Broken,
    };
    (text, shape)
}

/// A character class prepared for testing profiles.
///
/// The test is exact on ASCII and three-valued beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileFilter {
    ascii: u128,
    full: u64,
    touched: u64,
}

impl ProfileFilter {
    /// Prepares the class with the ASCII characters `ascii` and the cover `wide` of each part
    /// beyond ASCII ([`formalm_core::wide_parts`]).
    pub fn new(ascii: u128, wide: [ClassCover; WIDE_PARTS]) -> ProfileFilter {
        let (mut full, mut touched) = (0, 0);
        let ascii_covers = ATOM_BYTES.iter().map(|&members| match ascii & members {
            0 => ClassCover::None,
            common if common == members => ClassCover::Full,
            _ => ClassCover::Partial,
        });
        for (atom, cover) in ascii_covers.chain(wide).enumerate() {
            full |= u64::from(cover == ClassCover::Full) << atom;
            touched |= u64::from(cover != ClassCover::None) << atom;
        }
        ProfileFilter { ascii, full, touched }
    }

    /// Decides whether the characters of a profile all lie in the class. `Full`: all do. `None`: at
    /// least one does not. `Partial`: all ASCII characters do, and a character beyond ASCII may
    /// not.
    #[inline]
    pub fn cover(&self, atoms: u64, ascii: u128) -> ClassCover {
        match self.cover_by_atoms(atoms) {
            ClassCover::Partial if ascii & !self.ascii != 0 => ClassCover::None,
            ClassCover::Partial if atoms & self.partial_wide_atoms() == 0 => ClassCover::Full,
            cover => cover,
        }
    }

    /// Decides by atoms alone. `Partial` means that the ASCII set or the characters have to be
    /// checked.
    #[inline]
    pub(crate) fn cover_by_atoms(&self, atoms: u64) -> ClassCover {
        if atoms & !self.touched != 0 {
            ClassCover::None
        } else if atoms & !self.full == 0 {
            ClassCover::Full
        } else {
            ClassCover::Partial
        }
    }

    /// Returns the atoms beyond ASCII that the class covers only in part.
    #[inline]
    fn partial_wide_atoms(&self) -> u64 {
        (self.touched & !self.full) >> FIRST_WIDE_ATOM << FIRST_WIDE_ATOM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoms_partition_ascii() {
        assert_eq!(ATOM_BYTES.iter().fold(0, |all, members| all | members), u128::MAX);
        assert_eq!(ATOM_BYTES.iter().map(|members| members.count_ones()).sum::<u32>(), 128);
        assert_eq!(ATOM_BYTES.iter().filter(|&&members| members != 0).count(), 42);
    }

    #[test]
    fn tokens_are_classified_by_utf8_shape() {
        let shape = |bytes: &[u8]| whole_char_prefix(bytes).1;
        assert_eq!(shape("añ😀".as_bytes()), Utf8Shape::Clean);
        assert_eq!(whole_char_prefix(b"a\xF0\x9F\x98"), ("a", Utf8Shape::PartialEnd));
        assert_eq!(shape(b"\x98\x80abc\xC3"), Utf8Shape::PartialStart);
        assert_eq!(shape(b"\x98\x80\x80\x80"), Utf8Shape::Broken);
        assert_eq!(shape(b"a\xFF"), Utf8Shape::Broken);
        assert_eq!(shape(b"\xE0\x80"), Utf8Shape::Broken);
        assert_eq!(shape(b"\x80"), Utf8Shape::PartialStart);
    }

    #[test]
    fn covers_agree_with_the_characters() {
        let inside = ProfileFilter::new(
            (1 << b'a') | (1 << b'b') | (1 << b' '),
            [ClassCover::Partial, ClassCover::None, ClassCover::Full, ClassCover::None],
        );
        let judge = |text| {
            let profile = CharProfile::of(text);
            inside.cover(profile.atoms, profile.ascii)
        };
        assert_eq!(judge("ab \u{2003}"), ClassCover::Full);
        assert_eq!(judge("abc"), ClassCover::None);
        assert_eq!(judge("aé"), ClassCover::Partial);
        assert_eq!(judge("cé"), ClassCover::None);
        assert_eq!(judge("a😀"), ClassCover::None);
        assert_eq!(judge("\u{10400}"), ClassCover::Partial);
    }
}
