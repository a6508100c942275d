//! Which characters a token has: exactly for ASCII, in a few parts beyond.
//!
//! Characters are divided into atoms. Common character classes are unions of atoms, so one test on
//! 64 bits decides for all tokens with the same atoms; the exact ASCII set decides the rest.

use formalm_automata::{Cover, SetOnce, WIDE_PARTS, wide_parts};

/// The first atom of characters beyond ASCII; they are in the order of `wide_parts`.
const WIDE: usize = 60;

/// The atom of each ASCII byte.
const ATOM: [u8; 128] = atoms_of_ascii();

/// The ASCII bytes of each atom.
const MEMBERS: [u128; WIDE] = members();

const fn atoms_of_ascii() -> [u8; 128] {
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

const fn members() -> [u128; WIDE] {
    let mut members = [0; WIDE];
    let mut byte = 0;
    while byte < 128 {
        members[ATOM[byte] as usize] |= 1 << byte;
        byte += 1;
    }
    members
}

/// The atom of each character of the basic plane, as its number; those beyond are looked up.
fn plane() -> &'static [u8] {
    static PLANE: SetOnce<Box<[u8]>> = SetOnce::new();
    PLANE.get_or_init(|| {
        let mut plane = vec![(WIDE + WIDE_PARTS - 1) as u8; 0x1_0000].into_boxed_slice();
        for (part, set) in wide_parts().iter().enumerate() {
            for &(low, high) in set.ranges() {
                let (low, high) = (low as usize, (high as usize).min(0xFFFF));
                if let Some(range) = plane.get_mut(low..=high) {
                    range.fill((WIDE + part) as u8);
                }
            }
        }
        plane
    })
}

fn atom_beyond_ascii(character: char) -> u8 {
    match plane().get(character as usize) {
        Some(&atom) => atom,
        None => {
            let part = wide_parts().iter().position(|part| part.contains(character));
            (WIDE + part.unwrap_or(WIDE_PARTS - 1)) as u8
        }
    }
}

/// How the bytes of a token relate to whole characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Whole characters.
    Clean,
    /// Whole characters, then one to three bytes that begin one more.
    RaggedEnd,
    /// It begins with one to three bytes that go on with a character; from there clean or ragged.
    RaggedStart,
    /// Bytes that occur in no UTF-8 text.
    Broken,
}

/// The characters of a text: a token, or the clean part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Atoms that occur.
    pub atoms: u64,
    /// ASCII characters that occur, bit `b` for byte `b`.
    pub ascii: u128,
    /// Number of characters.
    pub characters: u32,
}

impl Profile {
    /// The profile of a text.
    pub fn of(text: &str) -> Profile {
        let mut profile = Profile::default();
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
            ATOM[character as usize]
        } else {
            atom_beyond_ascii(character)
        };
        self.atoms |= 1 << atom;
    }
}

/// The whole characters at the beginning of a token, and the shape of the token.
pub(crate) fn clean_part(bytes: &[u8]) -> (&str, Shape) {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return (text, Shape::Clean),
        Err(error) => error,
    };
    let good = &bytes[..error.valid_up_to()];
    let Ok(text) = std::str::from_utf8(good) else { return ("", Shape::Broken) };
    if error.error_len().is_none() {
        return (text, Shape::RaggedEnd);
    }
    let start = bytes.iter().take_while(|&&byte| (0x80..0xC0).contains(&byte)).count();
    let shape = match start {
        1..=3 if !matches!(clean_part(&bytes[start..]).1, Shape::Broken) => Shape::RaggedStart,
        _ => Shape::Broken,
    };
    (text, shape)
}

/// A set of characters, as far as profiles can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    ascii: u128,
    full: u64,
    touched: u64,
}

impl Inside {
    /// The set with these ASCII characters and this much of each part beyond ASCII
    /// ([`formalm_automata::wide_parts`]).
    pub fn new(ascii: u128, wide: [Cover; WIDE_PARTS]) -> Inside {
        let (mut full, mut touched) = (0, 0);
        let ascii_covers = MEMBERS.iter().map(|&members| match ascii & members {
            0 => Cover::None,
            common if common == members => Cover::Full,
            _ => Cover::Partial,
        });
        for (atom, cover) in ascii_covers.chain(wide).enumerate() {
            full |= u64::from(cover == Cover::Full) << atom;
            touched |= u64::from(cover != Cover::None) << atom;
        }
        Inside { ascii, full, touched }
    }

    /// Whether the characters of a profile lie in the set: all surely (`Full`), surely not all
    /// (`None`), or all unless one beyond ASCII is missing (`Partial`).
    #[inline]
    pub fn judge(&self, atoms: u64, ascii: u128) -> Cover {
        match self.judge_atoms(atoms) {
            Cover::Partial if ascii & !self.ascii != 0 => Cover::None,
            Cover::Partial if atoms & self.unsure() == 0 => Cover::Full,
            cover => cover,
        }
    }

    /// The same by atoms alone: `Partial` where the ASCII set or the characters must be looked at.
    #[inline]
    pub(crate) fn judge_atoms(&self, atoms: u64) -> Cover {
        if atoms & !self.touched != 0 {
            Cover::None
        } else if atoms & !self.full == 0 {
            Cover::Full
        } else {
            Cover::Partial
        }
    }

    /// Atoms beyond ASCII of which the set has only a part.
    #[inline]
    fn unsure(&self) -> u64 {
        (self.touched & !self.full) >> WIDE << WIDE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoms_partition_ascii() {
        assert_eq!(MEMBERS.iter().fold(0, |all, members| all | members), u128::MAX);
        assert_eq!(MEMBERS.iter().map(|members| members.count_ones()).sum::<u32>(), 128);
        assert_eq!(MEMBERS.iter().filter(|&&members| members != 0).count(), 42);
    }

    #[test]
    fn shapes() {
        let shape = |bytes: &[u8]| clean_part(bytes).1;
        assert_eq!(shape("añ😀".as_bytes()), Shape::Clean);
        assert_eq!(clean_part(b"a\xF0\x9F\x98"), ("a", Shape::RaggedEnd));
        assert_eq!(shape(b"\x98\x80abc\xC3"), Shape::RaggedStart);
        assert_eq!(shape(b"\x98\x80\x80\x80"), Shape::Broken);
        assert_eq!(shape(b"a\xFF"), Shape::Broken);
        assert_eq!(shape(b"\xE0\x80"), Shape::Broken);
        assert_eq!(shape(b"\x80"), Shape::RaggedStart);
    }

    #[test]
    fn judgement_agrees_with_the_characters() {
        let inside = Inside::new(
            (1 << b'a') | (1 << b'b') | (1 << b' '),
            [Cover::Partial, Cover::None, Cover::Full, Cover::None],
        );
        let judge = |text| {
            let profile = Profile::of(text);
            inside.judge(profile.atoms, profile.ascii)
        };
        assert_eq!(judge("ab \u{2003}"), Cover::Full);
        assert_eq!(judge("abc"), Cover::None);
        assert_eq!(judge("aé"), Cover::Partial);
        assert_eq!(judge("cé"), Cover::None);
        assert_eq!(judge("a😀"), Cover::None);
        assert_eq!(judge("\u{10400}"), Cover::Partial);
    }
}
