//! Machines that read lexemes: a lexer, which is finite and reads bytes by itself, below stacks
//! that only see which terminals came.
//!
//! What a token does within the lexer is the same on every stack, so it is worth remembering; a
//! mask then asks the stacks about terminals and not about bytes.

use std::sync::Arc;

use crate::automaton::KeyId;
use crate::error::{Error, Resource};

/// Identifies where the lexer is, obligations included; kept for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scan(pub u32);

/// Identifies stacks between lexemes; good for as long as what it is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub u32);

/// The lexer in front of a lexeme of the terminals that may stand at a place; kept for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Context(pub u32);

/// What there is of a place from its top down to some depth; kept for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Outline(pub u32);

/// More of a place would have to be known than its outline shows.
pub const BEYOND: Error =
    Error::Limit { resource: Resource::Nesting, needed: u64::MAX, allowed: 0 };

/// The end of a lexeme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ending {
    /// Which terminal it is.
    pub terminal: u32,
    /// What must not happen from here on; zero if nothing.
    pub left: u32,
}

/// What a byte does to a lexeme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Where the lexer is if the lexeme goes on.
    pub on: Option<Scan>,
    /// How the lexeme may end here: a number for [`Lexemes::endings`]; zero if it may not.
    pub endings: u32,
    /// It is not known of every way on that a member continues so: ask byte by byte.
    pub doubtful: bool,
}

/// A machine of lexemes, for one mask.
///
/// Unless something is doubtful, everything alive can be continued to a member.
pub trait Lexemes {
    /// A key as lexemes under way and the places before them; `None` if bytes have to be read.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn readings(&self, key: KeyId) -> Result<Option<Vec<(Scan, Place)>>, Error>;

    /// What may follow at a place.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn context(&self, place: Place) -> Result<Context, Error>;

    /// The lexer in front of a lexeme, after what the last one left; `None` if nothing may follow.
    fn scan(&self, context: Context, left: u32) -> Option<Scan>;

    /// Whether what a lexeme left is no hindrance in front of a context, wherever it is certain.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn fits(&self, context: Context, left: u32) -> Result<bool, Error>;

    /// Reads a byte.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn read(&self, scan: Scan, byte: u8) -> Result<Progress, Error>;

    /// The endings of a number.
    fn endings(&self, endings: u32) -> Arc<[Ending]>;

    /// What is left after one more byte; `None` if what must not happen has happened.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn pending(&self, left: u32, byte: u8) -> Result<Option<u32>, Error>;

    /// The place after a terminal; `None` if it cannot stand there.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn after(&self, place: Place, terminal: u32) -> Result<Option<Place>, Error>;

    /// Whether all that is not doubtful can be completed at a place.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn is_certain(&self, place: Place) -> Result<bool, Error>;

    /// What there is of a place down to a depth; `None` if that is too much.
    fn outline(&self, place: Place, depth: u32) -> Option<Outline>;

    /// A place that stands for all of an outline: what it answers they answer too. What depends on
    /// more of them is the error [`BEYOND`].
    fn drawn(&self, outline: Outline) -> Place;
}

/// Of machines that have no lexemes: there is none of it.
#[derive(Clone, Copy, Debug)]
pub enum NoLexemes {}

impl Lexemes for NoLexemes {
    fn readings(&self, _: KeyId) -> Result<Option<Vec<(Scan, Place)>>, Error> {
        match *self {}
    }

    fn context(&self, _: Place) -> Result<Context, Error> {
        match *self {}
    }

    fn scan(&self, _: Context, _: u32) -> Option<Scan> {
        match *self {}
    }

    fn fits(&self, _: Context, _: u32) -> Result<bool, Error> {
        match *self {}
    }

    fn read(&self, _: Scan, _: u8) -> Result<Progress, Error> {
        match *self {}
    }

    fn endings(&self, _: u32) -> Arc<[Ending]> {
        match *self {}
    }

    fn pending(&self, _: u32, _: u8) -> Result<Option<u32>, Error> {
        match *self {}
    }

    fn after(&self, _: Place, _: u32) -> Result<Option<Place>, Error> {
        match *self {}
    }

    fn is_certain(&self, _: Place) -> Result<bool, Error> {
        match *self {}
    }

    fn outline(&self, _: Place, _: u32) -> Option<Outline> {
        match *self {}
    }

    fn drawn(&self, _: Outline) -> Place {
        match *self {}
    }
}
