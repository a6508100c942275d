//! Keywords of one schema with their values: numbers, texts and lists.

use formalm_automata::Error;
use num_traits::ToPrimitive;
use serde_json::{Map, Value as Json};

use super::Reader;
use super::words::Keyword;
use crate::decimal::{Decimal, MAX_DIGITS};
use crate::names::NameId;

/// What is wrong with a schema: at which part of it, or something larger.
pub(super) enum Fault {
    Part { parts: Vec<String>, message: String, hint: Option<String> },
    Other(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Other(error)
    }
}

/// A refusal of a part of the schema at hand.
pub(super) fn wrong(parts: &[&str], message: impl std::fmt::Display) -> Fault {
    let parts = parts.iter().map(|&part| part.to_owned()).collect();
    Fault::Part { parts, message: message.to_string(), hint: None }
}

/// The members of a schema by keyword.
pub(super) struct Fields<'r> {
    pub(super) map: &'r Map<String, Json>,
    values: [Option<&'r Json>; Keyword::ALL.len()],
}

impl<'r> Fields<'r> {
    pub(super) fn of(map: &'r Map<String, Json>) -> Fields<'r> {
        let mut values = [None; Keyword::ALL.len()];
        for (name, json) in map {
            if let Some(keyword) = Keyword::of(name) {
                values[keyword as usize] = Some(json);
            }
        }
        Fields { map, values }
    }

    pub(super) fn get(&self, keyword: Keyword) -> Option<&'r Json> {
        self.values[keyword as usize]
    }

    pub(super) fn has(&self, keyword: Keyword) -> bool {
        self.get(keyword).is_some()
    }

    /// The value of a keyword as an exact number.
    pub(super) fn number(&self, keyword: Keyword) -> Result<Option<Decimal>, Fault> {
        let name = keyword.name();
        match self.get(keyword) {
            None => Ok(None),
            Some(Json::Number(number)) => match Decimal::parse(number.as_str()) {
                Some(decimal) => Ok(Some(decimal)),
                None => {
                    let message = format!("a number has more than {MAX_DIGITS} digits");
                    Err(wrong(&[name], message))
                }
            },
            Some(_) => Err(wrong(&[name], format!("{name} is a number"))),
        }
    }

    /// The value of a keyword as a count; larger ones than any text can reach are cut.
    pub(super) fn count(&self, keyword: Keyword) -> Result<Option<u64>, Fault> {
        let Some(number) = self.number(keyword)? else { return Ok(None) };
        if !number.is_integer() || number.is_negative() {
            let name = keyword.name();
            return Err(wrong(&[name], format!("{name} is a whole number and not negative")));
        }
        Ok(Some(number.scaled(0).to_u64().unwrap_or(u64::MAX).min(u64::MAX / 4)))
    }

    pub(super) fn list(&self, keyword: Keyword) -> Result<Option<&'r [Json]>, Fault> {
        match self.get(keyword) {
            None => Ok(None),
            Some(Json::Array(list)) => Ok(Some(list)),
            Some(_) => Err(wrong(&[keyword.name()], format!("{} is a list", keyword.name()))),
        }
    }

    pub(super) fn object(&self, keyword: Keyword) -> Result<Option<&'r Map<String, Json>>, Fault> {
        match self.get(keyword) {
            None => Ok(None),
            Some(Json::Object(object)) => Ok(Some(object)),
            Some(_) => Err(wrong(&[keyword.name()], format!("{} is an object", keyword.name()))),
        }
    }

    pub(super) fn text(&self, keyword: Keyword) -> Result<Option<&'r str>, Fault> {
        match self.get(keyword) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(&[keyword.name()], format!("{} is a text", keyword.name()))),
        }
    }

    pub(super) fn truth(&self, keyword: Keyword) -> Result<bool, Fault> {
        match self.get(keyword) {
            None => Ok(false),
            Some(Json::Bool(truth)) => Ok(*truth),
            Some(_) => {
                Err(wrong(&[keyword.name()], format!("{} is true or false", keyword.name())))
            }
        }
    }
}

impl Reader<'_> {
    /// A list of names.
    pub(super) fn names(&mut self, list: &[Json], parts: &[&str]) -> Result<Vec<NameId>, Fault> {
        let mut names = Vec::with_capacity(list.len());
        for one in list {
            let Json::String(name) = one else {
                return Err(wrong(parts, "names of members are texts"));
            };
            names.push(self.schema.names.intern(name));
        }
        Ok(names)
    }
}
