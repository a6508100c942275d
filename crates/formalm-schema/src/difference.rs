//! The instances of one schema that are none of another.

use formalm_automata::Error;

use crate::document::Document;
use crate::machine::SchemaAutomaton;
use crate::node::{Node, Note, Rule};
use crate::options::{Limits, Options};
use crate::read::{read, read_beside};

/// A schema with the schemas that it may refer to, by URI, and how it is read.
pub type Described<'a> = (&'a Document, &'a [(String, Document)], Options);

impl SchemaAutomaton {
    /// The machine of the instances of `left` that are none of `right`, written as `left` has it;
    /// `None` if there are none. Each is read by itself, so that equal identifiers mean what they
    /// mean in either. The notes tell where the answer is not exact.
    ///
    /// # Errors
    ///
    /// As [`SchemaAutomaton::new`].
    pub fn difference(
        left: Described<'_>,
        right: Described<'_>,
        limits: Limits,
    ) -> Result<(Option<SchemaAutomaton>, Vec<Note>), Error> {
        let mut schema = read(left.0, left.1, left.2)?;
        let wanted = schema.root;
        schema = read_beside(schema, right.0, right.1, right.2)?;
        let others = schema.root.map(Rule::Not).into_iter().collect();
        let not = schema.add(Node::made(others));
        let both = wanted.into_iter().chain([not]).collect();
        let root = schema.add(Node::made(vec![Rule::All(both)]));
        schema.root = Some(root);
        let options = Options { approximate: true, ..left.2 };
        let (made, notes) = SchemaAutomaton::of_read(schema, options, limits)?;
        Ok((made, notes.to_vec()))
    }
}
