//! The keywords of one schema object, indexed, with typed access to their values.

use formalm_core::Error;
use num_traits::ToPrimitive;

use super::keyword_table::Keyword;
use crate::json::decimal::{Decimal, MAX_DIGITS};
use crate::json::json_view::{JsonShape, JsonView};
use crate::json::property_names::{NameId, PropertyNames};

/// The largest count; larger ones are cut to it, since no instance reaches it.
const MAX_COUNT: u64 = u64::MAX / 4;

/// An error at a part of the schema object being read, or any other error.
pub(super) enum SchemaFault {
    Part { parts: Vec<String>, message: String, hint: Option<String> },
    Other(Error),
}

impl From<Error> for SchemaFault {
    fn from(error: Error) -> SchemaFault {
        SchemaFault::Other(error)
    }
}

/// Returns a fault at a part of the schema object being read.
pub(super) fn fault_at(parts: &[&str], message: impl std::fmt::Display) -> SchemaFault {
    let parts = parts.iter().map(|&part| part.to_owned()).collect();
    SchemaFault::Part { parts, message: message.to_string(), hint: None }
}

/// The properties of a schema object, by keyword.
pub(super) struct KeywordValues<J> {
    pub(super) schema: J,
    values: [Option<J>; Keyword::ALL.len()],
    /// The keywords that are present, as a bit set.
    present: u64,
}

/// Returns a set of keywords as bits.
pub(super) const fn keyword_set(keywords: &[Keyword]) -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < keywords.len() {
        bits |= 1 << keywords[at] as u64;
        at += 1;
    }
    bits
}

impl<'r, J: JsonView<'r>> KeywordValues<J> {
    #[inline(always)] // It would be copied, all of a kilobyte.
    pub(super) fn of(schema: J) -> KeywordValues<J> {
        let (mut values, mut given) = ([None; Keyword::ALL.len()], 0);
        for (name, json) in schema.children() {
            if let Some(keyword) = Keyword::from_name(name) {
                values[keyword as usize] = Some(json);
                given |= keyword_set(&[keyword]);
            }
        }
        KeywordValues { schema, values, present: given }
    }

    pub(super) fn get(&self, keyword: Keyword) -> Option<J> {
        self.values[keyword as usize]
    }

    /// Returns `true` if one of these keywords is present.
    pub(super) fn has_any(&self, keywords: u64) -> bool {
        self.present & keywords != 0
    }

    /// Returns those of these keywords that are present, in the order of [`Keyword::ALL`].
    pub(super) fn present(&self, keywords: u64) -> impl Iterator<Item = (Keyword, J)> {
        let mut left = self.present & keywords;
        std::iter::from_fn(move || {
            let at = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            Some((*Keyword::ALL.get(at)?, self.values[at]?))
        })
    }

    pub(super) fn has(&self, keyword: Keyword) -> bool {
        self.get(keyword).is_some()
    }

    /// Returns the value of a keyword as an exact number. Fails if it is none or has too many
    /// digits.
    pub(super) fn number(&self, keyword: Keyword) -> Result<Option<Decimal>, SchemaFault> {
        let name = keyword.name();
        match self.get(keyword).map(J::shape) {
            None => Ok(None),
            Some(JsonShape::Number(number)) => match Decimal::parse(number) {
                Some(decimal) => Ok(Some(decimal)),
                None => {
                    let message = format!("a number has more than {MAX_DIGITS} digits");
                    Err(fault_at(&[name], message))
                }
            },
            Some(_) => Err(fault_at(&[name], format!("{name} must be a number"))),
        }
    }

    /// Returns the value of a keyword as a count, cut to [`MAX_COUNT`]. Fails if it is not a
    /// non-negative integer.
    pub(super) fn count(&self, keyword: Keyword) -> Result<Option<u64>, SchemaFault> {
        // Fast path: most counts have a few digits.
        if let Some(JsonShape::Number(digits)) = self.get(keyword).map(J::shape)
            && digits.len() < 19
            && let Ok(count) = digits.parse::<u64>()
        {
            return Ok(Some(count.min(MAX_COUNT)));
        }
        let Some(number) = self.number(keyword)? else { return Ok(None) };
        if !number.is_integer() || number.is_negative() {
            let name = keyword.name();
            return Err(fault_at(&[name], format!("{name} must be a non-negative integer")));
        }
        Ok(Some(number.scaled(0).to_u64().unwrap_or(u64::MAX).min(MAX_COUNT)))
    }

    pub(super) fn list(&self, keyword: Keyword) -> Result<Option<J>, SchemaFault> {
        match self.get(keyword) {
            Some(json) if !json.shape().is_array() => {
                Err(fault_at(&[keyword.name()], format!("{} must be a list", keyword.name())))
            }
            list => Ok(list),
        }
    }

    pub(super) fn object(&self, keyword: Keyword) -> Result<Option<J>, SchemaFault> {
        match self.get(keyword) {
            Some(json) if !json.shape().is_object() => {
                Err(fault_at(&[keyword.name()], format!("{} must be an object", keyword.name())))
            }
            object => Ok(object),
        }
    }

    pub(super) fn string(&self, keyword: Keyword) -> Result<Option<&'r str>, SchemaFault> {
        match self.get(keyword).map(J::as_str) {
            Some(None) => {
                Err(fault_at(&[keyword.name()], format!("{} must be a string", keyword.name())))
            }
            text => Ok(text.flatten()),
        }
    }

    pub(super) fn boolean(&self, keyword: Keyword) -> Result<bool, SchemaFault> {
        match self.get(keyword).map(J::as_bool) {
            Some(None) => Err(fault_at(
                &[keyword.name()],
                format!("{} must be true or false", keyword.name()),
            )),
            truth => Ok(truth.flatten() == Some(true)),
        }
    }
}

/// Interns a list of property names. Fails if one is not a string.
pub(super) fn property_names<'r, J: JsonView<'r>>(
    names: &mut PropertyNames,
    list: impl Iterator<Item = J>,
    parts: &[&str],
) -> Result<Vec<NameId>, SchemaFault> {
    let mut found = Vec::new();
    for one in list {
        let Some(name) = one.as_str() else {
            return Err(fault_at(parts, "property names must be strings"));
        };
        found.push(names.intern(name));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::document::Document;

    #[test]
    fn counts_are_integers_in_any_spelling() {
        let count = |number: &str| {
            let document = Document::read(&format!("{{\"minItems\": {number}}}")).unwrap();
            let root = document.tape.as_ref().unwrap().root();
            KeywordValues::of(root).count(Keyword::MinItems).ok().flatten()
        };
        let long = "123456789012345678901234567890";
        let (ten, most) = (Some(10), Some(MAX_COUNT));
        let spelled = ["10", "10.0", "1e1", "100E-1", long, "4611686018427387903"];
        assert_eq!(spelled.map(count), [ten, ten, ten, ten, most, most]);
        assert_eq!(["0", "-0"].map(count), [Some(0), Some(0)]);
        assert_eq!(["-1", "1.5", "1e-1"].map(count), [None; 3]);
    }
}
