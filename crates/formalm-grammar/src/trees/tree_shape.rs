//! Tree shapes: which parts of a derivation parse trees show, and under which names.

use crate::grammar::{Grammar, Node, Rule};

/// The kind of a rule in trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A rule of the grammar text.
    Rule,
    /// A lexeme of one terminal that trees omit.
    Hidden,
    /// A placeholder for a number of absent children.
    Absent(u32),
}

/// The way in which trees show a rule.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The kind of the rule.
    pub kind: Kind,
    /// Names of the alternatives in trees, where they differ from the rule's name.
    pub aliases: Vec<Option<String>>,
    /// `true` if a node with one child is replaced by it.
    pub unwraps: bool,
    /// `true` if string literals are shown too.
    pub keeps_all: bool,
    /// `true` if its children belong to its parent.
    pub inlined: bool,
}

impl Shown {
    /// Shows everything.
    pub const ALL: Shown = Shown {
        kind: Kind::Rule,
        aliases: Vec::new(),
        unwraps: false,
        keeps_all: true,
        inlined: false,
    };
    /// Shows everything except string literals.
    pub(crate) const SOME: Shown = Shown {
        kind: Kind::Rule,
        aliases: Vec::new(),
        unwraps: false,
        keeps_all: false,
        inlined: false,
    };
}

/// A grammar with the tree shapes of its rules.
#[derive(Clone, Debug)]
pub struct Shaped {
    /// The grammar. Lexemes that trees omit are rules of their own.
    pub grammar: Grammar,
    /// The tree shape of each rule.
    pub shown: Vec<Shown>,
}

impl Shaped {
    /// Returns the grammar without the rules that were added for tree shapes.
    pub fn plain(&self) -> Grammar {
        let rules = self.grammar.rules.iter().zip(&self.shown);
        let rules = rules.map(|(rule, shown)| match shown.kind {
            Kind::Rule => Rule { body: self.plain_node(&rule.body), ..rule.clone() },
            _ => Rule { body: Node::Empty, ..rule.clone() },
        });
        Grammar { rules: rules.collect(), ..self.grammar.clone() }
    }

    fn plain_node(&self, node: &Node) -> Node {
        let all = |list: &[Node]| list.iter().map(|one| self.plain_node(one)).collect();
        match node {
            Node::Rule(at) => match self.shown[*at].kind {
                Kind::Rule => node.clone(),
                Kind::Hidden => self.grammar.rules[*at].body.clone(),
                Kind::Absent(_) => Node::Empty,
            },
            Node::Sequence(list) => Node::Sequence(all(list)),
            Node::Choice(list) => Node::Choice(all(list)),
            Node::Repeat(one, min, max) => Node::Repeat(Box::new(self.plain_node(one)), *min, *max),
            Node::Empty | Node::Terminal(_) => node.clone(),
        }
    }
}
