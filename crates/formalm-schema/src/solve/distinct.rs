//! Whether items can be distinct: a matching of items with values.

use formalm_automata::Error;
use rustc_hash::FxHashMap;

use super::Solving;
use crate::core::Core;
use crate::formula::{Atom, F, FALSE, TRUE};
use crate::node::Type;
use crate::solve::texts::Lists;
use crate::solve::{Interval, Listed, PLENTY};
use crate::value::{Value, ValueId};

/// Values listed of one item; items with more count as having enough.
pub(crate) const MAX_LISTED: usize = 256;

/// Fewer values than these are tried one by one where an item must be distinct from later ones.
pub(crate) const FEW_VALUES: usize = 64;

impl Core {
    /// Whether values of their own can be found for all items, none of them taken. `current` is what
    /// the item being read satisfies.
    pub(super) fn can_be_distinct(
        &mut self,
        items: &[(F, u64)],
        current: Option<F>,
        taken: &[ValueId],
    ) -> Result<bool, Error> {
        let mut scarce: Vec<Vec<ValueId>> = Vec::new();
        let all = items.iter().fold(0, |all: u64, kind| all.saturating_add(kind.1));
        let all = all.saturating_add(u64::from(current.is_some()));
        let enough = usize::try_from(all).map_or(MAX_LISTED, |all| all.min(MAX_LISTED));
        let mut known: FxHashMap<F, Listed> = FxHashMap::default();
        let current = current.map(|current| (current, 1));
        for (at, &(item, count)) in items.iter().chain(&current).enumerate() {
            // Whichever value the current one has, plenty are left for the others.
            if at == items.len() && scarce.is_empty() {
                break;
            }
            let listed = match known.get(&item) {
                Some(listed) => listed.clone(),
                None => self.list_values(item, enough, taken)?,
            };
            known.insert(item, listed.clone());
            let Listed::All(values) = listed else { continue };
            if (values.len() as u64) < count {
                return Ok(false);
            }
            scarce.extend((0..count).map(|_| values.clone()));
        }
        // An item with as many values as there are items always finds one that is left.
        let mut owner: Vec<(ValueId, usize)> = Vec::new();
        for item in 0..scarce.len() {
            if !find_value(item, &scarce, &mut owner, &mut Vec::new()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// All values of an item that are not taken, unless they are `enough` or more.
    pub(crate) fn list_values(
        &mut self,
        item: F,
        enough: usize,
        taken: &[ValueId],
    ) -> Result<Listed, Error> {
        let _solving = Solving::begin();
        self.list_depth(item, enough, taken, 0)
    }

    /// The same within so many containers.
    pub(super) fn list_depth(
        &mut self,
        item: F,
        enough: usize,
        taken: &[ValueId],
        depth: usize,
    ) -> Result<Listed, Error> {
        let (mut values, mut is_sure) = (Vec::new(), true);
        for of in Type::ALL {
            let formula = self.of_type(item, of)?;
            if formula == FALSE {
                continue;
            }
            let more = match of {
                Type::Null => Some(vec![self.schema.values.intern(Value::Null)]),
                Type::Bool => Some(self.list_bools(formula)),
                Type::Number => self.list_numbers(formula, enough, taken)?,
                Type::String => self.list_texts(formula, enough, taken)?,
                Type::Array | Type::Object if !self.some_of_type(formula, of)? => continue,
                Type::Array | Type::Object => {
                    match self.list_containers(formula, of, enough + taken.len(), depth)? {
                        Listed::All(values) => Some(values),
                        Listed::Plenty => None,
                        Listed::Unknown => {
                            is_sure = false;
                            continue;
                        }
                    }
                }
            };
            let Some(more) = more else { return Ok(Listed::Plenty) };
            values.extend(more.into_iter().filter(|value| !taken.contains(value)));
            if values.len() >= enough {
                return Ok(Listed::Plenty);
            }
        }
        Ok(if is_sure { Listed::All(values) } else { Listed::Unknown })
    }

    fn list_bools(&mut self, formula: F) -> Vec<ValueId> {
        let truths = [false, true].into_iter();
        let truths = truths.filter(|&truth| self.holds_for_bool(formula, truth));
        let truths: Vec<bool> = truths.collect();
        truths.into_iter().map(|truth| self.schema.values.intern(Value::Bool(truth))).collect()
    }

    fn list_numbers(
        &mut self,
        formula: F,
        enough: usize,
        taken: &[ValueId],
    ) -> Result<Option<Vec<ValueId>>, Error> {
        if formula == TRUE || self.is_endless_number(formula)? {
            return Ok(None);
        }
        let mut rest = formula;
        for &value in taken {
            if let Value::Number(number) = self.schema.values.get(value).clone() {
                rest = self.other_than(rest, number);
            }
        }
        let mut values = Vec::new();
        while values.len() < enough {
            self.step()?;
            let Some(number) = self.number_within(rest, &Interval::default())? else {
                return Ok(Some(values));
            };
            rest = self.other_than(rest, number.clone());
            values.push(self.schema.values.intern(Value::Number(number)));
        }
        Ok(None)
    }

    fn other_than(&mut self, formula: F, number: crate::decimal::Decimal) -> F {
        let equal = self.formulas.atom(Atom::Equal(number));
        let other = self.formulas.not(equal);
        self.formulas.both(formula, other)
    }

    fn list_texts(
        &mut self,
        formula: F,
        enough: usize,
        taken: &[ValueId],
    ) -> Result<Option<Vec<ValueId>>, Error> {
        if let Some(lists) = self.lists(formula) {
            return self.list_listed(formula, &lists, enough, taken);
        }
        let Some(language) = self.language(formula)? else { return Ok(Some(Vec::new())) };
        let all = (enough + taken.len()) as u64;
        if formula == TRUE || all <= PLENTY && self.has_plenty_texts(language)? {
            return Ok(None);
        }
        let mut excluded: Vec<String> = Vec::new();
        for &value in taken {
            if let Value::String(text) = self.schema.values.get(value) {
                excluded.push(text.clone());
            }
        }
        let mut values = Vec::new();
        while values.len() < enough {
            self.step()?;
            let texts: Vec<&str> = excluded.iter().map(String::as_str).collect();
            let Some(text) = self.fresh_text(language, &texts)? else { return Ok(Some(values)) };
            excluded.push(text.clone());
            values.push(self.schema.values.intern(Value::String(text)));
        }
        Ok(None)
    }

    /// The same where all texts are in some lists.
    fn list_listed(
        &mut self,
        formula: F,
        lists: &Lists,
        enough: usize,
        taken: &[ValueId],
    ) -> Result<Option<Vec<ValueId>>, Error> {
        self.make_machines_of(formula)?;
        let mut values = Vec::new();
        for text in lists.iter().flat_map(|texts| texts.iter()) {
            if !self.is_text_of(formula, text)? {
                continue;
            }
            let value = self.schema.values.intern(Value::String(text.clone()));
            if !taken.contains(&value) && !values.contains(&value) {
                values.push(value);
            }
            if values.len() >= enough {
                return Ok(None);
            }
        }
        Ok(Some(values))
    }
}

/// Gives an item a value, moving the owners of others where that helps.
fn find_value(
    item: usize,
    values: &[Vec<ValueId>],
    owner: &mut Vec<(ValueId, usize)>,
    tried: &mut Vec<ValueId>,
) -> bool {
    for &value in &values[item] {
        if tried.contains(&value) {
            continue;
        }
        tried.push(value);
        let before = owner.iter().position(|&(one, _)| one == value);
        match before {
            None => {
                owner.push((value, item));
                return true;
            }
            Some(at) => {
                let other = owner[at].1;
                if find_value(other, values, owner, tried) {
                    if let Some(entry) = owner.iter_mut().find(|entry| entry.0 == value) {
                        entry.1 = item;
                    }
                    return true;
                }
            }
        }
    }
    false
}
