//! Tree shapes: which parts of a derivation parse trees show, and under which names.

use crate::grammar::{Grammar, Rule, RuleBody};

/// The kind of a rule in trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// A rule of the grammar text.
    Rule,
    /// A lexeme of one terminal that trees omit.
    OmittedLexeme,
    /// A placeholder for a number of absent children.
    Placeholder(u32),
}

/// The way in which trees show a rule.
#[derive(Clone, Debug)]
pub struct RuleTreeShape {
    /// The kind of the rule.
    pub kind: RuleKind,
    /// Names of the alternatives in trees, where they differ from the rule's name.
    pub aliases: Vec<Option<String>>,
    /// `true` if a node with one child is replaced by it.
    pub inlines_single_child: bool,
    /// `true` if string literals are shown too.
    pub keeps_all_lexemes: bool,
    /// `true` if its children belong to its parent.
    pub inlines_children: bool,
}

impl RuleTreeShape {
    /// Shows everything.
    pub const ALL: RuleTreeShape = RuleTreeShape {
        kind: RuleKind::Rule,
        aliases: Vec::new(),
        inlines_single_child: false,
        keeps_all_lexemes: true,
        inlines_children: false,
    };
    /// Shows everything except string literals.
    pub(crate) const SOME: RuleTreeShape = RuleTreeShape {
        kind: RuleKind::Rule,
        aliases: Vec::new(),
        inlines_single_child: false,
        keeps_all_lexemes: false,
        inlines_children: false,
    };
}

/// A grammar with the tree shapes of its rules.
#[derive(Clone, Debug)]
pub struct ShapedGrammar {
    /// The grammar. Lexemes that trees omit are rules of their own.
    pub grammar: Grammar,
    /// The tree shape of each rule.
    pub tree_shapes: Vec<RuleTreeShape>,
}

impl ShapedGrammar {
    /// Returns the grammar without the rules that were added for tree shapes.
    pub fn plain(&self) -> Grammar {
        let rules = self.grammar.rules.iter().zip(&self.tree_shapes);
        let rules = rules.map(|(rule, shown)| match shown.kind {
            RuleKind::Rule => Rule { body: self.plain_node(&rule.body), ..rule.clone() },
            _ => Rule { body: RuleBody::Empty, ..rule.clone() },
        });
        Grammar { rules: rules.collect(), ..self.grammar.clone() }
    }

    fn plain_node(&self, node: &RuleBody) -> RuleBody {
        let all = |list: &[RuleBody]| list.iter().map(|one| self.plain_node(one)).collect();
        match node {
            RuleBody::Rule(at) => match self.tree_shapes[*at].kind {
                RuleKind::Rule => node.clone(),
                RuleKind::OmittedLexeme => self.grammar.rules[*at].body.clone(),
                RuleKind::Placeholder(_) => RuleBody::Empty,
            },
            RuleBody::Sequence(list) => RuleBody::Sequence(all(list)),
            RuleBody::Choice(list) => RuleBody::Choice(all(list)),
            RuleBody::Repeat(one, min, max) => {
                RuleBody::Repeat(Box::new(self.plain_node(one)), *min, *max)
            }
            RuleBody::Empty | RuleBody::Terminal(_) => node.clone(),
        }
    }
}
