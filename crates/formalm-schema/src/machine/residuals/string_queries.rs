//! The automata that read a string: one for each query, and logarithmically many for enumerations.
//!
//! With n enumerated strings, `⌈log₂(n + 1)⌉` automata read the binary digits of the string's
//! index, as in a bit-sliced index. The verdicts of all queries follow from the index by table
//! look-up. One automaton a query would cost as many steps a byte as there are queries.

use std::ops::Deref;

use formalm_core::{Error, Interner, LazyDfa, StateId};

use crate::formula::{FormulaAtom, FormulaId, TRUE};
use crate::machine::frame::QueriesId;
use crate::solver::context::{LanguageId, SolverContext};

/// Number of enumeration queries from which on the index is used. Chosen, not measured.
const MIN_ENUM_QUERIES: usize = 16;

/// The automaton of a string query and its state, `None` once it has rejected.
pub(crate) type QueryState = Option<(LanguageId, StateId)>;

/// The automata that read a string, and how the verdicts follow from their acceptance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct QueriedStrings {
    /// An [`EnumIndex`]; without one each automaton is a verdict.
    pub(crate) enum_index: Option<u32>,
    /// Set if the first automaton alone decides whether the string can continue. The others only
    /// classify names, and stop with it.
    pub(crate) has_guard: bool,
    pub(crate) machines: Box<[QueryState]>,
}

impl QueriedStrings {
    /// Returns the automata of which one has to stay alive.
    pub(crate) fn required_machines(&self) -> &[QueryState] {
        if self.has_guard { &self.machines[..1] } else { &self.machines }
    }
}

impl Deref for QueriedStrings {
    type Target = [QueryState];

    fn deref(&self) -> &[QueryState] {
        &self.machines
    }
}

/// The index of enumerated strings, counted from 1. The first automata accept the strings whose
/// index has the respective binary digit; each other automaton is a verdict.
#[derive(Debug)]
pub(crate) struct EnumIndex {
    digits: usize,
    verdicts: Box<[VerdictSource]>,
}

/// The source of a verdict.
#[derive(Debug)]
pub(crate) enum VerdictSource {
    Machine(usize),
    /// A table by the index of the string; index 0 is a string outside the enumeration.
    Number(Box<[bool]>),
}

impl EnumIndex {
    pub(crate) fn verdicts(&self) -> &[VerdictSource] {
        &self.verdicts
    }

    /// Returns the verdicts, given which automata accept.
    pub(crate) fn verdicts_for(&self, accepted: &[bool]) -> Vec<bool> {
        let digits = accepted[..self.digits].iter().enumerate();
        let number = digits.fold(0, |number, (at, &digit)| number | usize::from(digit) << at);
        let verdict_of = |source: &VerdictSource| match source {
            VerdictSource::Machine(at) => accepted[*at],
            VerdictSource::Number(verdicts) => verdicts.get(number).is_some_and(|&verdict| verdict),
        };
        self.verdicts.iter().map(verdict_of).collect()
    }
}

/// The interned automata that read strings and names.
#[derive(Debug)]
pub(crate) struct StringQueries {
    queries: Interner<QueriedStrings>,
    enum_indexes: Vec<EnumIndex>,
}

/// No queries about a string.
pub(crate) const NO_QUERIES: QueriesId = QueriesId(0);

impl Default for StringQueries {
    fn default() -> StringQueries {
        let mut queries = Interner::default();
        queries.intern(QueriedStrings::default());
        StringQueries { queries, enum_indexes: Vec::new() }
    }
}

impl StringQueries {
    #[inline]
    pub(crate) fn get(&self, id: QueriesId) -> &QueriedStrings {
        self.queries.get(id.0)
    }

    pub(crate) fn intern(&mut self, queries: QueriedStrings) -> QueriesId {
        QueriesId(self.queries.intern(queries))
    }

    /// Interns string automata, each of which answers one query.
    pub(crate) fn machines(&mut self, machines: Box<[QueryState]>) -> QueriesId {
        self.intern(QueriedStrings { machines, ..QueriedStrings::default() })
    }

    /// Interns string automata of which the first guards the others.
    pub(crate) fn guarded_machines(&mut self, machines: Box<[QueryState]>) -> QueriesId {
        self.intern(QueriedStrings { machines, has_guard: true, ..QueriedStrings::default() })
    }

    pub(crate) fn len(&self) -> usize {
        self.queries.len()
    }

    /// Drops the queries from number `length` on; nothing may refer to them.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.queries.truncate(length);
    }

    pub(crate) fn enum_index(&self, at: u32) -> &EnumIndex {
        &self.enum_indexes[at as usize]
    }

    /// Returns the automata that answer queries about a string.
    pub(crate) fn start(
        &mut self,
        core: &mut SolverContext,
        formulas: &[FormulaId],
    ) -> Result<QueriedStrings, Error> {
        let listed: Vec<bool> = formulas.iter().map(|&id| is_listed(core, id)).collect();
        if listed.iter().filter(|&&listed| listed).count() < MIN_ENUM_QUERIES {
            let machines: Result<Box<[QueryState]>, Error> =
                formulas.iter().map(|&id| string_query(core, id)).collect();
            return Ok(QueriedStrings { machines: machines?, ..QueriedStrings::default() });
        }
        let mut texts: Vec<String> = Vec::new();
        for (&id, _) in formulas.iter().zip(&listed).filter(|(_, listed)| **listed) {
            for atom in core.base.formulas.atoms(id) {
                let FormulaAtom::InLanguage(regex) = atom else { continue };
                texts.extend(
                    core.base
                        .schema
                        .enum_strings
                        .get(&regex)
                        .into_iter()
                        .flat_map(|all| all.iter().cloned()),
                );
            }
        }
        texts.sort_unstable();
        texts.dedup();
        let digits = (usize::BITS - texts.len().leading_zeros()) as usize;
        let mut machines = Vec::with_capacity(digits);
        for digit in 0..digits {
            let with = texts.iter().enumerate().filter(|(at, _)| (at + 1) >> digit & 1 == 1);
            let with = with.map(|(_, text)| text.clone()).collect();
            let regex = core.base.schema.enum_regex(with);
            let formula = core.base.formulas.atom(FormulaAtom::InLanguage(regex));
            machines.push(string_query(core, formula)?);
        }
        let mut verdicts = Vec::with_capacity(formulas.len());
        for (&id, &listed) in formulas.iter().zip(&listed) {
            verdicts.push(if listed {
                VerdictSource::Number(core.base.enum_verdicts(id, &texts))
            } else {
                machines.push(string_query(core, id)?);
                VerdictSource::Machine(machines.len() - 1)
            });
        }
        let enum_index = self.enum_indexes.len() as u32;
        self.enum_indexes.push(EnumIndex { digits, verdicts: verdicts.into() });
        Ok(QueriedStrings {
            enum_index: Some(enum_index),
            has_guard: false,
            machines: machines.into(),
        })
    }

    /// Advances the automata of queries over more of the string.
    pub(crate) fn advance(
        &mut self,
        core: &SolverContext,
        queries: QueriesId,
        read: &[u8],
    ) -> Result<QueriesId, Error> {
        if queries == NO_QUERIES {
            return Ok(queries);
        }
        let before = self.get(queries);
        if let [Some((text, state))] = *before.machines
            && core.languages.automaton(text).walk(state, read)? == Ok(state)
        {
            return Ok(queries);
        }
        let mut after = before.clone();
        for one in &mut after.machines {
            if let Some((text, state)) = *one {
                *one = core
                    .languages
                    .automaton(text)
                    .walk(state, read)?
                    .ok()
                    .map(|state| (text, state));
            }
        }
        if after.has_guard && after.machines[0].is_none() {
            after.machines.fill(None);
        }
        Ok(self.intern(after))
    }

    /// Returns the verdicts on a string that ends here.
    pub(crate) fn verdicts(&self, core: &SolverContext, queries: QueriesId) -> Vec<bool> {
        let accepts = |&(text, state)| core.languages.automaton(text).is_accepting(state);
        let queries = self.get(queries);
        let accepted: Vec<bool> =
            queries.iter().map(|one| one.as_ref().is_some_and(accepts)).collect();
        match queries.enum_index {
            None => accepted,
            Some(enum_index) => self.enum_index(enum_index).verdicts_for(&accepted),
        }
    }

    /// Returns `true` if the verdicts on a string no longer depend on its rest.
    pub(crate) fn has_constant_verdicts(&self, core: &SolverContext, queries: QueriesId) -> bool {
        queries == NO_QUERIES
            || self.get(queries).iter().flatten().all(|&(text, state)| {
                core.languages.language_formula(text) == TRUE
                    && state == core.languages.automaton(text).start()
            })
    }

    /// Returns the only class that a name may belong to: its index, automaton and state.
    pub(crate) fn single_class(
        &self,
        classes: QueriesId,
    ) -> Option<(usize, (LanguageId, StateId))> {
        let mut alive = self.get(classes).iter().enumerate();
        let found = alive.find_map(|(at, one)| Some((at, (*one)?)))?;
        alive.all(|(_, one)| one.is_none()).then_some(found)
    }

    /// Returns `true` if all unknown names form one class, which is allowed.
    pub(crate) fn allows_any_name(&self, core: &SolverContext, classes: QueriesId) -> bool {
        let [Some((class, _))] = *self.get(classes).machines else { return false };
        core.languages.language_formula(class) == TRUE
    }

    /// Returns `true` if only known names may still come.
    pub(crate) fn allows_only_known_names(&self, classes: QueriesId) -> bool {
        self.get(classes).required_machines().iter().all(Option::is_none)
    }

    /// Returns `true` if any name is allowed and one may end here.
    pub(crate) fn any_name_may_end(&self, core: &SolverContext, classes: QueriesId) -> bool {
        let [Some((class, state))] = *self.get(classes).machines else {
            return false;
        };
        self.allows_any_name(core, classes) && core.languages.automaton(class).is_accepting(state)
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let sources = self.enum_indexes.iter().flat_map(|one| one.verdicts());
        let tables = sources.map(|verdict| match verdict {
            VerdictSource::Machine(_) => 16,
            VerdictSource::Number(verdicts) => verdicts.len(),
        });
        let queries = self.queries.iter().map(|one| 12 * one.machines.len() + 16);
        tables.chain(queries).sum::<usize>() + self.queries.table_bytes()
    }
}

/// Returns the automaton of one query in its start state.
fn string_query(core: &mut SolverContext, id: FormulaId) -> Result<QueryState, Error> {
    let language = core.languages.language(&core.base, id)?;
    Ok(language.map(|one| (one, core.languages.automaton(one).start())))
}

/// Returns `true` if enumerated strings alone decide a formula.
fn is_listed(core: &SolverContext, id: FormulaId) -> bool {
    core.base.formulas.atoms(id).iter().all(|atom| {
        matches!(atom, FormulaAtom::InLanguage(regex) if core.base.schema.enum_strings.contains_key(regex))
    })
}
