//! Names of an object whose patterns make many classes of names, see
//! [`crate::solve`]: a name is told by the patterns that it satisfies when it ends.

use formalm_automata::Error;

use crate::formula::F;
use crate::machine::Grown;
use crate::machine::frame::NamingId;
use crate::machine::reader::next_names::Naming;
use crate::names::PLACEHOLDER;
use crate::solve::PLENTY;

/// Ways through the formulas of an object that are looked at.
const MAX_WAYS: usize = 64;

impl Grown {
    /// Returns the names that no formula mentions and that may come next, as a formula over tests
    /// of names; `None` where names depend on each other.
    pub(crate) fn fresh_names_of(&mut self, id: NamingId) -> Result<Option<F>, Error> {
        let &Naming { owes, gone, order, plain, .. } = self.names_of(id);
        let owed = self.parts.owes.get(owes.0).clone();
        let gone = self.gone_after(gone, order, PLACEHOLDER);
        let gone = self.parts.gone.get(gone.0).clone();
        let must = self.core.total(&owed);
        let (mut ways, mut are_free) = (Vec::new(), true);
        self.core.implicants(must, &mut |_, _| Ok(true), &mut |core, literals| {
            are_free &= ways.len() < MAX_WAYS;
            if !are_free {
                return Ok(true);
            }
            match core.names_of_way(literals, &gone)? {
                Some(names) => ways.push(names),
                None => are_free = false,
            }
            Ok(!are_free)
        })?;
        if !are_free {
            return Ok(None);
        }
        let names = self.core.formulas.or(ways);
        if plain {
            return Ok(Some(names));
        }
        // Names that run out depend on those that came.
        let Some(language) = self.core.language(names)? else { return Ok(Some(names)) };
        let are_many =
            self.names_needed(id) <= PLENTY / 2 && self.core.has_plenty_texts(language)?;
        Ok(are_many.then_some(names))
    }
}
