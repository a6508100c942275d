//! What trees show of a grammar.

use crate::grammar::{Grammar, Node, Rule};

/// What a rule is to trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A rule that was written.
    Rule,
    /// One lexeme of a terminal, which trees leave out.
    Hidden,
    /// The empty text, for so many children that are not there.
    Absent(u32),
}

/// What trees show of a rule.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Whether it was written, or stands for something that trees leave out.
    pub kind: Kind,
    /// What trees call the alternatives, where they do not call them as the rule.
    pub aliases: Vec<Option<String>>,
    /// A node with one child is that child.
    pub unwraps: bool,
    /// Texts are shown too.
    pub keeps_all: bool,
    /// Its children are those of the node above.
    pub inlined: bool,
}

impl Shown {
    /// Everything is shown.
    pub const ALL: Shown = Shown {
        kind: Kind::Rule,
        aliases: Vec::new(),
        unwraps: false,
        keeps_all: true,
        inlined: false,
    };
    /// All but texts.
    pub(crate) const SOME: Shown = Shown {
        kind: Kind::Rule,
        aliases: Vec::new(),
        unwraps: false,
        keeps_all: false,
        inlined: false,
    };
}

/// A grammar with what trees show of each of its rules.
#[derive(Clone, Debug)]
pub struct Shaped {
    /// The grammar; lexemes that trees leave out are rules of their own.
    pub grammar: Grammar,
    /// For each rule what trees show of it.
    pub shown: Vec<Shown>,
}

impl Shaped {
    /// The grammar without the rules that are not written.
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
