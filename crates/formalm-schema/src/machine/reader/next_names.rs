//! Which names may come next in an object: those that its formulas speak of or that came already,
//! one by one, and all others by classes that the formulas do not tell apart.

use formalm_automata::{Error, Machine};

use crate::core::TextId;
use crate::formula::{Atom, F, Form, TRUE};
use crate::machine::Grown;
use crate::machine::frame::{AskedId, Frame, GoneId, NamingId, OrderId, OwesId, Reach};
use crate::machine::reader::cache::{Asked, NOT_ASKED};
use crate::names::{NameId, PLACEHOLDER};
use crate::options::Order;
use crate::solve::{PLENTY, fresh_beginning};

/// Whether a name may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum May {
    Unknown,
    Yes,
    No,
}

/// The names that may come next in an object.
#[derive(Debug)]
pub(crate) struct Naming {
    pub(crate) owes: OwesId,
    pub(crate) gone: GoneId,
    pub(crate) order: OrderId,
    /// Names that matter by themselves, sorted by their bytes.
    pub(crate) known: Box<[NameId]>,
    may: Box<[May]>,
    /// Classes of other names that may come, and a name of each.
    classes: Box<[(TextId, NameId)]>,
    /// Where there are too many classes to list: what tells names apart. See
    /// [`Grown::tell_by_tests`].
    pub(crate) tests: Box<[F]>,
    /// Before the first character of a name.
    pub(crate) start: Reach,
    /// Whether the object owes nothing but members and names, or that one does not come, or no more
    /// than some, so that names do not depend on each other.
    pub(crate) plain: bool,
    /// Whether every other name is of a class that may come.
    pub(crate) takes_all: bool,
    /// Whether a class of other names does not run out, for each.
    pub(crate) plenty: Box<[bool]>,
}

impl Grown {
    /// What is known of the names of an object; `object` is its frame.
    pub(crate) fn naming(
        &mut self,
        owes: OwesId,
        gone: GoneId,
        order: OrderId,
    ) -> Result<NamingId, Error> {
        if let Some(&known) = self.known.namings.get(&(owes, gone, order)) {
            return Ok(known);
        }
        let (mut names, tests) = self.mentioned(owes);
        names.extend(self.parts.gone.get(gone.0));
        self.core.schema.names.sort(&mut names);
        let plain = self.is_plain(owes);
        let may = vec![May::Unknown; names.len()].into();
        let start = Reach { from: 0, to: names.len() as u32, classes: NOT_ASKED };
        let classes = [].into();
        let known = names.into();
        let id = NamingId(self.namings.len() as u32);
        self.namings.push(Naming {
            owes,
            gone,
            order,
            known,
            may,
            classes,
            tests: [].into(),
            start,
            plain,
            takes_all: false,
            plenty: [].into(),
        });
        self.find_classes(id, &tests)?;
        self.known.namings.insert((owes, gone, order), id);
        Ok(id)
    }

    pub(crate) fn names_of(&self, id: NamingId) -> &Naming {
        &self.namings[id.0 as usize]
    }

    pub(crate) fn is_plain(&self, owes: OwesId) -> bool {
        let owed = self.parts.owes.get(owes.0);
        let formulas = &self.core.formulas;
        let plain = |&id: &F| match formulas.get(id) {
            Form::Atom(Atom::Members(_) | Atom::Owed(_)) => true,
            _ => formulas.excluded_name(id).is_some() || formulas.most_members(id).is_some(),
        };
        owed.formulas.len() == 1
            && owed.goal == TRUE
            && formulas.conjuncts(owed.formulas[0]).iter().all(plain)
    }

    /// Names that the formulas of an object speak of, and what tells apart the others.
    pub(crate) fn mentioned(&mut self, owes: OwesId) -> (Vec<NameId>, Vec<F>) {
        let (mut names, mut tests) = (Vec::new(), Vec::new());
        let owed = self.parts.owes.get(owes.0);
        let atoms: Vec<Atom> = owed.formulas.iter().flat_map(|&id| self.core.atoms(id)).collect();
        for atom in atoms {
            match atom {
                Atom::Members(rules) => {
                    for (which, _) in rules.iter() {
                        names.extend(which.names.iter().flatten());
                        names.extend(&which.others);
                        for &regex in which.found.iter().chain(&which.missing) {
                            tests.push(self.core.formulas.atom(Atom::In(regex)));
                        }
                    }
                }
                Atom::Owed(list) => names.extend(list.iter()),
                Atom::NamesIn(language) => tests.push(language),
                _ => {}
            }
        }
        tests.sort_unstable();
        tests.dedup();
        (names, tests)
    }

    /// Finds the classes of other names that may come.
    fn find_classes(&mut self, id: NamingId, tests: &[F]) -> Result<(), Error> {
        let all = match self.core.few_classes(tests)? {
            Some(all) => all,
            None => match self.fresh_names_of(id)? {
                Some(viable) => return self.tell_by_tests(id, tests, viable),
                None => self.core.classes(tests)?,
            },
        };
        let mut classes = Vec::with_capacity(all.len());
        for &class in &all {
            let name = if tests.is_empty() {
                // A name that is like no other.
                PLACEHOLDER
            } else {
                let known = &self.names_of(id).known;
                let taken: Vec<&str> =
                    known.iter().map(|&name| self.core.schema.names.get(name)).collect();
                let Some(text) = self.core.fresh_text(class, &taken)? else { continue };
                self.core.schema.names.intern(&text)
            };
            if self.member_viable(id, name)? {
                classes.push((class, name));
            }
        }
        let start = classes.iter().map(|&(class, _)| Some((class, self.core.text(class).start())));
        let start: Box<[_]> = start.collect();
        self.namings[id.0 as usize].start.classes = self.parts.machines(start);
        self.namings[id.0 as usize].takes_all = classes.len() == all.len();
        let few = self.names_needed(id) <= PLENTY / 2;
        let mut plenty = Vec::with_capacity(classes.len());
        for &(class, _) in &classes {
            plenty.push(few && self.core.has_plenty_texts(class)?);
        }
        self.namings[id.0 as usize].plenty = plenty.into();
        self.namings[id.0 as usize].classes = classes.into();
        Ok(())
    }

    /// Tells names apart by the tests themselves, where these make many classes.
    ///
    /// One machine reads the names that may come, and one each test. The set of tests that a name
    /// satisfies is known when it ends, so classes that no name of the text has cost nothing.
    fn tell_by_tests(&mut self, id: NamingId, tests: &[F], viable: F) -> Result<(), Error> {
        let Some(language) = self.core.language(viable)? else { return Ok(()) };
        let mut machines = Vec::with_capacity(tests.len() + 1);
        machines.push(Some((language, self.core.text(language).start())));
        for &test in tests {
            let test = self.core.language(test)?;
            machines.push(test.map(|test| (test, self.core.text(test).start())));
        }
        let plenty = self.names_needed(id) <= PLENTY / 2 && self.core.has_plenty_texts(language)?;
        let classes = self.parts.guarded(machines.into());
        let naming = &mut self.namings[id.0 as usize];
        naming.start.classes = classes;
        naming.takes_all = viable == TRUE;
        naming.plenty = [plenty].into();
        naming.tests = tests.into();
        Ok(())
    }

    /// At least how many names make all that an object owes and a token reads differ.
    pub(crate) fn names_needed(&self, id: NamingId) -> u64 {
        let &Naming { owes, gone, .. } = self.names_of(id);
        let owed = self.parts.owes.get(owes.0);
        let atoms = owed.formulas.iter().flat_map(|&id| self.core.atoms(id));
        let more = atoms.map(|atom| if let Atom::MoreMembers(count) = atom { count } else { 0 });
        let read = self.parts.gone.get(gone.0).len() + self.horizon;
        more.fold(read as u64, u64::saturating_add)
    }

    /// How many names of an order cannot come any more once a name has come.
    pub(crate) fn passed(&self, order: OrderId, name: NameId) -> usize {
        if self.core.options.order == Order::Any {
            return 0;
        }
        let declared = self.parts.orders.get(order.0);
        // A name that is not declared comes after all that are.
        declared.iter().position(|&one| one == name).unwrap_or(declared.len())
    }

    /// Names that cannot come any more once this one has come.
    pub(crate) fn gone_after(&mut self, gone: GoneId, order: OrderId, name: NameId) -> GoneId {
        if let Some(&known) = self.known.gone_after.get(&(gone, order, name)) {
            return known;
        }
        let passed = self.passed(order, name);
        let mut after = self.parts.gone.get(gone.0).to_vec();
        after.extend((!name.has_no_text()).then_some(name));
        after.extend(&self.parts.orders.get(order.0)[..passed]);
        after.sort_unstable();
        after.dedup();
        let after = GoneId(self.parts.gone.intern(after.into()));
        self.known.gone_after.insert((gone, order, name), after);
        after
    }

    pub(crate) fn after_name(&mut self, owes: OwesId, name: NameId) -> Result<OwesId, Error> {
        if let Some(&known) = self.known.after_name.get(&(owes, name)) {
            return Ok(known);
        }
        let owed = self.parts.owes.get(owes.0).clone();
        let after = self.core.after_name(&owed, name)?;
        let after = self.parts.owes(after);
        self.known.after_name.insert((owes, name), after);
        Ok(after)
    }

    /// Whether one of the known names between two numbers may come next.
    pub(crate) fn some_known(
        &mut self,
        id: NamingId,
        (from, to): (u32, u32),
    ) -> Result<bool, Error> {
        for at in from..to {
            if self.known_viable(id, at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a known name may come next.
    pub(crate) fn known_viable(&mut self, id: NamingId, at: u32) -> Result<bool, Error> {
        let Naming { known, may, gone, .. } = self.names_of(id);
        let name = known[at as usize];
        match may[at as usize] {
            May::Unknown => {}
            found => return Ok(found == May::Yes),
        }
        let is_gone = self.parts.gone.get(gone.0).binary_search(&name).is_ok();
        let viable = !is_gone && self.member_viable(id, name)?;
        self.namings[id.0 as usize].may[at as usize] = if viable { May::Yes } else { May::No };
        Ok(viable)
    }

    /// A known name.
    pub(crate) fn known_name(&self, id: NamingId, at: u32) -> &str {
        self.core.schema.names.get(self.names_of(id).known[at as usize])
    }

    /// What may still come after one more byte of a name; `None` if nothing may. `depth` bytes
    /// were read before it.
    pub(crate) fn narrowed(
        &mut self,
        id: NamingId,
        reach: Reach,
        depth: usize,
        byte: u8,
        text: impl Fn(&Grown) -> Vec<u8>,
    ) -> Result<Option<Reach>, Error> {
        let classes = self.asked_after(reach.classes, &[byte])?;
        let mut narrowed = Reach { classes, ..reach };
        if reach.from < reach.to {
            let names = &self.core.schema.names;
            let range = &self.names_of(id).known[reach.from as usize..reach.to as usize];
            let at = |name: &NameId| names.get(*name).as_bytes().get(depth).copied();
            let before = range.partition_point(|name| at(name) < Some(byte));
            let until = range.partition_point(|name| at(name) <= Some(byte));
            narrowed.to = reach.from + until as u32;
            narrowed.from = reach.from + before as u32;
            if before == until {
                (narrowed.from, narrowed.to) = (0, 0);
            }
        }
        let viable = self.some_class(id, narrowed, || [text(self), vec![byte]].concat())?
            || self.some_known(id, (narrowed.from, narrowed.to))?;
        Ok(viable.then_some(narrowed))
    }

    /// Whether a name that is not known may still come.
    pub(crate) fn some_class(
        &self,
        id: NamingId,
        reach: Reach,
        text: impl Fn() -> Vec<u8>,
    ) -> Result<bool, Error> {
        let Reach { from, to, classes } = reach;
        for &(class, state) in self.parts.asked.get(classes.0).going_on().iter().flatten() {
            // Names of all kinds do not run out.
            if from == to || self.core.class_formula(class) == TRUE {
                return Ok(true);
            }
            let read = text();
            let known = (from..to).map(|at| self.known_name(id, at).as_bytes());
            let taken: Vec<&[u8]> = known.filter_map(|name| name.strip_prefix(&read[..])).collect();
            if fresh_beginning(&**self.core.text(class), state, &taken)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a name that is not known can go on with anything, between two characters.
    pub(crate) fn is_open_name(&mut self, id: NamingId, classes: AskedId) -> Result<bool, Error> {
        let asked = self.parts.asked.get(classes.0);
        let alive: Vec<_> = asked.going_on().iter().flatten().copied().collect();
        let takes_all = self.names_of(id).takes_all;
        for (class, state) in alive {
            let is_open = match takes_all {
                true => self.core.text(class).step(state, b'a')?.is_some(),
                false => self.core.is_open(class, state)?,
            };
            if is_open {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The object after a name of which so many bytes were read, before the colon.
    pub(crate) fn close_name(&mut self, frame: Frame) -> Result<Option<Frame>, Error> {
        let Frame::Name { naming, text, reach, .. } = frame else { return Ok(None) };
        let length = self.records.get(text).2 as usize;
        let exact = reach.from < reach.to && self.known_name(naming, reach.from).len() == length;
        let (name, like) = if exact {
            if !self.known_viable(naming, reach.from)? {
                return Ok(None);
            }
            let name = self.names_of(naming).known[reach.from as usize];
            (name, name)
        } else {
            let Some(like) = self.class_of(naming, reach) else { return Ok(None) };
            (self.read_text_of_name(text), like)
        };
        self.behind_name(frame, (name, like))
    }

    /// The object behind a name, which is like another.
    pub(crate) fn behind_name(
        &mut self,
        frame: Frame,
        (name, like): (NameId, NameId),
    ) -> Result<Option<Frame>, Error> {
        let Frame::Name { object, naming, .. } = frame else { return Ok(None) };
        let &Naming { owes, gone, order, .. } = self.names_of(naming);
        let owes = self.after_name(owes, like)?;
        let gone = self.gone_after(gone, order, name);
        let Frame::Object { below, .. } = *self.frames.get(object.0) else { return Ok(None) };
        let (mode, blanks) = (crate::machine::frame::Mode::Colon, self.gap_start());
        Ok(Some(Frame::Object { owes, gone, order, mode, blanks, below }))
    }

    /// A name of the class that a text belongs to.
    pub(crate) fn class_of(&mut self, naming: NamingId, reach: Reach) -> Option<NameId> {
        let states = self.parts.asked.get(reach.classes.0);
        let is_end =
            |one: &Asked| one.is_some_and(|(text, state)| self.core.text(text).is_accepting(state));
        if states.is_guarded {
            let (guard, tests) = states.split_first()?;
            if !is_end(guard) {
                return None;
            }
            let tests = self.names_of(naming).tests.iter().zip(tests);
            let found = tests.filter(|(_, state)| is_end(state)).map(|(&test, _)| test);
            let found: Vec<F> = found.collect();
            return Some(self.core.schema.names.tested(&found));
        }
        let (class, _) = states
            .iter()
            .flatten()
            .find(|(class, state)| self.core.text(*class).is_accepting(*state))?;
        let found = self.names_of(naming).classes.iter().find(|(one, _)| one == class);
        found.map(|&(_, name)| name)
    }
}
