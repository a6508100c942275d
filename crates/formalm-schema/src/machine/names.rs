//! Names of members, character by character.

use formalm_automata::{Error, Machine};

use super::Grown;
use super::escapes::{self, Read};
use super::frame::{Escape, Frame, FrameId, Mode};
use crate::formula::{Atom, F};
use crate::names::NameId;
use crate::node::Type;
use crate::options::Order;
use crate::solve::{Rest, fresh_member};

impl Grown {
    /// The frame after the quote that opens a name.
    pub(super) fn open_name(&mut self, object: FrameId) -> Result<Option<FrameId>, Error> {
        if !self.name_viable(object, b"")? {
            return Ok(None);
        }
        Ok(Some(self.frame(Frame::Name { object, text: [].into(), escape: Escape::None })))
    }

    /// The frame after a byte of a name.
    pub(super) fn read_name(&mut self, frame: FrameId, byte: u8) -> Result<Option<FrameId>, Error> {
        let Frame::Name { object, text, escape } = self.frames.get(frame.0).clone() else {
            return Ok(None);
        };
        if byte == b'"' && escape == Escape::None {
            let Ok(name) = std::str::from_utf8(&text) else { return Ok(None) };
            let name = self.core.schema.names.intern(name);
            return self.close_name(object, name);
        }
        let policy = self.core.options.escapes;
        let mut buffer = [0; 4];
        let read: &[u8] = match escapes::read(escape, byte, policy) {
            Read::Wrong => return Ok(None),
            Read::Byte(byte) => {
                buffer[0] = byte;
                &buffer[..1]
            }
            Read::Character(character) => character.encode_utf8(&mut buffer).as_bytes(),
            Read::Inside(escape) => {
                let viable = self.escape_viable(object, &text, escape)?;
                return Ok(viable.then(|| self.frame(Frame::Name { object, text, escape })));
            }
        };
        let text: Box<[u8]> = [&text[..], read].concat().into();
        if !self.name_viable(object, &text)? {
            return Ok(None);
        }
        Ok(Some(self.frame(Frame::Name { object, text, escape: Escape::None })))
    }

    /// The object after a name, before the colon.
    fn close_name(&mut self, object: FrameId, name: NameId) -> Result<Option<FrameId>, Error> {
        let Frame::Object { owes, gone, order, below, .. } = self.frames.get(object.0).clone()
        else {
            return Ok(None);
        };
        if gone.binary_search(&name).is_ok() || !self.member_viable(object, name)? {
            return Ok(None);
        }
        let owes = self.core.after_name(&owes, name)?;
        let gone = self.gone_after(&gone, order, name);
        let blanks = self.core.options.blanks;
        Ok(Some(self.frame(Frame::Object { owes, gone, order, mode: Mode::Colon, blanks, below })))
    }

    /// Names that cannot come any more once this one has come.
    fn gone_after(&self, gone: &[NameId], order: u32, name: NameId) -> Box<[NameId]> {
        let mut gone = gone.to_vec();
        gone.push(name);
        if self.core.options.order == Order::Schema {
            let declared = self.orders.get(order);
            // A name that is not declared comes after all that are.
            let passed = declared.iter().position(|&one| one == name).unwrap_or(declared.len());
            gone.extend(&declared[..passed]);
        }
        gone.sort_unstable();
        gone.dedup();
        gone.into()
    }

    /// Whether a member of this name may come next.
    fn member_viable(&mut self, object: FrameId, name: NameId) -> Result<bool, Error> {
        if let Some(&known) = self.named.get(&(object, name)) {
            return Ok(known);
        }
        let Frame::Object { owes, gone, order, .. } = self.frames.get(object.0).clone() else {
            return Ok(false);
        };
        let gone = self.gone_after(&gone, order, name);
        let owes = self.core.after_name(&owes, name)?;
        let rest = Rest { of: Type::Object, gone: &gone };
        let viable = self.core.can_begin(owes, rest)?;
        self.named.insert((object, name), viable);
        Ok(viable)
    }

    /// Names that the formulas of an object speak of, and what tells apart the others.
    fn mentioned(&mut self, object: FrameId) -> (Vec<NameId>, Vec<F>) {
        let (mut names, mut tests) = (Vec::new(), Vec::new());
        let Frame::Object { owes, .. } = self.frames.get(object.0).clone() else {
            return (names, tests);
        };
        for &id in &owes.formulas {
            for atom in self.core.atoms(id) {
                match atom {
                    Atom::Members(rules) => {
                        for (which, _) in &rules {
                            names.extend(which.names.iter().flatten());
                            names.extend(&which.others);
                            for &regex in which.found.iter().chain(&which.missing) {
                                tests.push(self.core.formulas.atom(Atom::In(regex)));
                            }
                        }
                    }
                    Atom::Owed(list) => names.extend(&list),
                    Atom::NamesIn(language) => tests.push(language),
                    _ => {}
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        tests.sort_unstable();
        tests.dedup();
        (names, tests)
    }

    /// Whether some name that begins so may come next.
    pub(super) fn name_viable(&mut self, object: FrameId, prefix: &[u8]) -> Result<bool, Error> {
        let Frame::Object { gone, .. } = self.frames.get(object.0).clone() else {
            return Ok(false);
        };
        if self.strays(object, &gone, prefix) {
            return Ok(true);
        }
        let (names, tests) = self.mentioned(object);
        for &name in &names {
            if self.core.schema.names.get(name).as_bytes().starts_with(prefix)
                && gone.binary_search(&name).is_err()
                && self.member_viable(object, name)?
            {
                return Ok(true);
            }
        }
        for class in self.core.classes(&tests)? {
            if self.classes.get(&(object, class)) == Some(&false) {
                continue;
            }
            let machine = std::sync::Arc::clone(self.core.text(class));
            let Ok(state) = machine.walk(machine.start(), prefix)? else { continue };
            let taken = names.iter().chain(gone.iter());
            let taken: Vec<&[u8]> = taken
                .filter_map(|&name| {
                    self.core.schema.names.get(name).as_bytes().strip_prefix(prefix)
                })
                .collect();
            let Some(rest) = fresh_member(&*machine, state, &taken)? else { continue };
            if self.class_viable(object, class, &[prefix, &rest].concat())? {
                if tests.is_empty() {
                    self.open.insert(object, names);
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a text begins no name that matters, in an object that takes any other name.
    fn strays(&self, object: FrameId, gone: &[NameId], text: &[u8]) -> bool {
        // A character may be unfinished, but not broken.
        let is_text =
            std::str::from_utf8(text).map_or_else(|error| error.error_len().is_none(), |_| true);
        let open = self.open.get(&object).filter(|_| is_text);
        open.is_some_and(|names| {
            let begins =
                |name: &NameId| self.core.schema.names.get(*name).as_bytes().starts_with(text);
            !names.iter().any(begins) && !gone.iter().any(begins)
        })
    }

    /// Whether a name of a class may come next: all that are not mentioned are alike.
    fn class_viable(
        &mut self,
        object: FrameId,
        class: crate::core::TextId,
        name: &[u8],
    ) -> Result<bool, Error> {
        if let Some(&known) = self.classes.get(&(object, class)) {
            return Ok(known);
        }
        let Ok(name) = std::str::from_utf8(name) else { return Ok(false) };
        let name = self.core.schema.names.intern(name);
        let viable = self.member_viable(object, name)?;
        self.classes.insert((object, class), viable);
        Ok(viable)
    }

    /// Whether some character that the escape may become leads to a name.
    fn escape_viable(
        &mut self,
        object: FrameId,
        text: &[u8],
        escape: Escape,
    ) -> Result<bool, Error> {
        let policy = self.core.options.escapes;
        let Frame::Object { gone, .. } = self.frames.get(object.0).clone() else {
            return Ok(false);
        };
        let (names, tests) = self.mentioned(object);
        for &name in &names {
            let whole = self.core.schema.names.get(name).to_owned();
            let Some(rest) = whole.as_bytes().strip_prefix(text) else { continue };
            if gone.binary_search(&name).is_ok() || rest.is_empty() {
                continue;
            }
            let only = self.core.schema.texts(vec![whole]);
            let only = self.core.formulas.atom(Atom::In(only));
            let Some(only) = self.core.language(only)? else { continue };
            let machine = std::sync::Arc::clone(self.core.text(only));
            let Ok(state) = machine.walk(machine.start(), text)? else { continue };
            if escapes::some_completion(escape, policy, &machine, state)?
                && self.member_viable(object, name)?
            {
                return Ok(true);
            }
        }
        for class in self.core.classes(&tests)? {
            // Names that are mentioned belong to no class.
            let mut others = vec![];
            for name in names.iter().chain(gone.iter()) {
                others.push(self.core.schema.names.get(*name).to_owned());
            }
            let mut parts = vec![self.core.class_formula(class)];
            if !others.is_empty() {
                let listed = self.core.schema.texts(others);
                let listed = self.core.formulas.atom(Atom::In(listed));
                parts.push(self.core.formulas.not(listed));
            }
            let rest = self.core.formulas.and(parts);
            let Some(language) = self.core.language(rest)? else { continue };
            let machine = std::sync::Arc::clone(self.core.text(language));
            let Ok(state) = machine.walk(machine.start(), text)? else { continue };
            if !escapes::some_completion(escape, policy, &machine, state)? {
                continue;
            }
            let Some(name) = fresh_member(&*machine, machine.start(), &[])? else { continue };
            if self.class_viable(object, class, &name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
