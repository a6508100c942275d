#![doc = include_str!("../README.md")]

mod combined;
mod mask_classes;
mod special_tokens;

pub use combined::{
    CompletionLength, IdentityClasses, Intersection, IntersectionBounds, OpaqueCache, Position,
    PositionAutomaton, Precision, Prefix, PrefixedMachine, PrefixedMaskClasses, ProductCache,
    RepresentativeClasses, SCRATCH_BYTES, ScratchCache, ScratchMachine, ScratchMaskAutomaton,
    StatesAsClasses,
};
pub use mask_classes::{
    AcceptingMaskAutomaton, AcceptingVisitor, AlternativeStrings, ApproximateClasses,
    CharRepetition, ClassAutomaton, ClassRenewal, ClassTable, ClassVisitor, HostConfiguration,
    LexemeEnd, LexemeStep, LexerContextId, LexerStateId, LexerTables, LexicalConfiguration,
    LexicalMachine, LiteralList, MaskAutomaton, MaskClasses, MaskShortcuts, MemberEnds,
    NEEDS_DEEPER_STACK, NoLexicalMachine, ParserStateId, ParserTables, PartPosition,
    RegularMaskClasses, StackPrefixId, StateClasses, StringClasses, SublanguageHost,
    SublanguagePosition, SublanguageTables, ValueClasses, ValueEnd, self_loop_repetition,
};
pub use special_tokens::{SPECIAL_BYTE, len_outside_special, special_token_bytes};
