//! Keywords whose values are numbers, texts and lists.

use formalm_automata::Error;
use num_traits::ToPrimitive;
use serde_json::Value as Json;

use super::{Fields, Place, Reader, refuse};
use crate::decimal::{Decimal, MAX_DIGITS};
use crate::names::NameId;

/// The value of a keyword as an exact number.
pub(super) fn number(
    map: &Fields,
    keyword: &str,
    at: &Place<'_>,
) -> Result<Option<Decimal>, Error> {
    match map.get(keyword) {
        None => Ok(None),
        Some(Json::Number(number)) => match Decimal::parse(number.as_str()) {
            Some(decimal) => Ok(Some(decimal)),
            None => {
                let message = format!("a number has more than {MAX_DIGITS} digits");
                Err(refuse(&at.below(&[keyword]).pointer, message, None))
            }
        },
        Some(_) => {
            Err(refuse(&at.below(&[keyword]).pointer, format!("{keyword} is a number"), None))
        }
    }
}

/// The value of a keyword as a count; larger ones than any text can reach are cut.
pub(super) fn count(map: &Fields, keyword: &str, at: &Place<'_>) -> Result<Option<u64>, Error> {
    let Some(number) = number(map, keyword, at)? else { return Ok(None) };
    if !number.is_integer() || number.is_negative() {
        let message = format!("{keyword} is a whole number and not negative");
        return Err(refuse(&at.below(&[keyword]).pointer, message, None));
    }
    Ok(Some(number.scaled(0).to_u64().unwrap_or(u64::MAX).min(u64::MAX / 4)))
}

pub(super) fn list<'r>(
    map: &'r Fields,
    keyword: &str,
    at: &Place<'_>,
) -> Result<Option<&'r [Json]>, Error> {
    match map.get(keyword) {
        None => Ok(None),
        Some(Json::Array(list)) => Ok(Some(list)),
        Some(_) => Err(refuse(&at.below(&[keyword]).pointer, format!("{keyword} is a list"), None)),
    }
}

pub(super) fn object<'r>(
    map: &'r Fields,
    keyword: &str,
    at: &Place<'_>,
) -> Result<Option<&'r Fields>, Error> {
    match map.get(keyword) {
        None => Ok(None),
        Some(Json::Object(object)) => Ok(Some(object)),
        Some(_) => {
            Err(refuse(&at.below(&[keyword]).pointer, format!("{keyword} is an object"), None))
        }
    }
}

pub(super) fn text<'r>(
    map: &'r Fields,
    keyword: &str,
    at: &Place<'_>,
) -> Result<Option<&'r str>, Error> {
    match map.get(keyword) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(refuse(&at.below(&[keyword]).pointer, format!("{keyword} is a text"), None)),
    }
}

pub(super) fn truth(map: &Fields, keyword: &str, at: &Place<'_>) -> Result<bool, Error> {
    match map.get(keyword) {
        None => Ok(false),
        Some(Json::Bool(truth)) => Ok(*truth),
        Some(_) => {
            let message = format!("{keyword} is true or false");
            Err(refuse(&at.below(&[keyword]).pointer, message, None))
        }
    }
}

impl Reader<'_> {
    /// A list of names, sorted and without repetitions.
    pub(super) fn names(&mut self, list: &[Json], place: &str) -> Result<Vec<NameId>, Error> {
        let mut names = Vec::with_capacity(list.len());
        for one in list {
            let Json::String(name) = one else {
                return Err(refuse(place, "names of members are texts", None));
            };
            names.push(self.schema.names.intern(name));
        }
        Ok(names)
    }
}
