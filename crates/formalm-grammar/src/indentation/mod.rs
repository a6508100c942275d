//! Blocks that are told by indentation: which terminals stand for lines and levels, and how
//! columns are counted.
//!
//! The lexeme of the newline terminal reaches over blank lines to the first character of the next
//! line, so what it means depends on its text alone: on the column it ends at.

pub(crate) mod balance_proof;
pub(crate) mod parser_state;
pub(crate) mod parser_state_interner;

/// How columns are counted, and how a text begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rules {
    /// As Python does: a tab leads to the next multiple, a form feed back to the first column; the
    /// first line has an indentation too, and the last one may end with the text. Levels must not
    /// depend on the width of a tab.
    Python,
    /// As Lark's `Indenter` does: a tab counts for so many blanks, the first line has no
    /// indentation, and the end of the text closes blocks but no line.
    Lark,
}

/// Which terminals tell lines and levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indentation {
    /// Ends a line, and holds the indentation of the next one.
    pub newline: usize,
    /// Comes behind it where a level begins; without a text.
    pub indent: usize,
    /// Comes behind it for each level that ends; without a text.
    pub dedent: usize,
    /// Between these and [`Indentation::closing`] ones, lines do not matter.
    pub opening: Vec<usize>,
    /// See [`Indentation::opening`].
    pub closing: Vec<usize>,
    /// How columns are counted.
    pub rules: Rules,
    /// The width of a tab.
    pub tab: u32,
    /// The widest indentation.
    pub widest: u32,
    /// Most levels, the outermost one among them.
    pub levels: u32,
}

/// The widest indentation that can be asked for.
pub(crate) const MAX_COLUMN: u32 = 0xfff;

/// Of threads whose column does not matter.
pub(crate) const NO_COLUMN: u32 = u32::MAX;
/// Before the first line break.
pub(crate) const BEFORE_LINE_BREAK: u32 = u32::MAX - 1;
/// Behind something that is no blank.
pub(crate) const NOT_WHITESPACE: u32 = u32::MAX - 2;
/// Where lines begin.
pub(crate) const FIRST_COLUMN: u32 = 0;

/// In place of a width: more than [`WIDEST`], and as much as fits below a [`Join`].
const TOO_WIDE: u32 = 0x1fff;
/// The bits of a column that hold its widths. Those above hold a [`Join`].
const WIDTH_BITS: u32 = (1 << JOIN_SHIFT) - 1;
const JOIN_SHIFT: u32 = 29;

/// A backslash in the indentation of a line, as Python reads it: the next line goes on with this
/// one, and the column of the first backslash that has blanks before it is that of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum LineJoin {
    /// There is none, or only such without blanks before them.
    None = 0,
    /// The backslash was read, and a line break has to follow.
    Backslash = 1,
    /// A carriage return followed it. A line feed belongs to the same line break.
    CarriageReturn = 2,
    /// The line break was read. The text cannot end here.
    Joined = 3,
    /// Blanks were read behind it, and do not count.
    ColumnFixed = 4,
}

/// Counts columns. A column is a pair: as counted, and with tabs of one blank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnCounter {
    pub(crate) rules: Rules,
    pub(crate) tab: u32,
    pub(crate) widest: u32,
}

fn is_counted(column: u32) -> bool {
    column >> JOIN_SHIFT <= LineJoin::ColumnFixed as u32
}

fn join(column: u32) -> LineJoin {
    match column >> JOIN_SHIFT {
        1 => LineJoin::Backslash,
        2 => LineJoin::CarriageReturn,
        3 => LineJoin::Joined,
        4 => LineJoin::ColumnFixed,
        _ => LineJoin::None,
    }
}

fn with_join(column: u32, join: LineJoin) -> u32 {
    column & WIDTH_BITS | (join as u32) << JOIN_SHIFT
}

/// Returns `true` if a column is one, and not something else that is known instead.
pub(crate) fn is_column(column: u32) -> bool {
    is_counted(column) && join(column) != LineJoin::Backslash && widths(column).0 != TOO_WIDE
}

/// A column as counted, and with tabs of one blank.
pub(crate) fn widths(column: u32) -> (u32, u32) {
    ((column & WIDTH_BITS) >> 16, column & 0xffff)
}

/// The column of a line that is fewest bytes away, if one was counted.
pub(crate) fn nearest_column(column: u32) -> Option<u32> {
    let nearest = is_counted(column).then_some(column & WIDTH_BITS);
    nearest.filter(|&column| is_column(column))
}

/// Returns `true` if blanks lead on from a column, which a backslash did not fix.
pub(crate) fn is_extendable(column: u32) -> bool {
    join(column) == LineJoin::None
        || column & WIDTH_BITS == FIRST_COLUMN && join(column) == LineJoin::Joined
}

/// Returns `true` if a line break at a column only joins the line with the next one.
pub(crate) fn joins_next(column: u32) -> bool {
    is_counted(column) && matches!(join(column), LineJoin::Backslash | LineJoin::CarriageReturn)
}

/// Returns `true` if the text may end at a column: not directly behind a line that is joined.
pub(crate) fn may_end_at(column: u32) -> bool {
    !is_counted(column) || matches!(join(column), LineJoin::None | LineJoin::ColumnFixed)
}

impl ColumnCounter {
    /// Bytes that change columns; others do so alike.
    pub(crate) const COLUMN_BYTES: [u8; 6] = *b" \t\n\x0c\r\\";

    /// The column after a byte.
    pub(crate) fn step(&self, column: u32, byte: u8) -> u32 {
        if self.rules == Rules::Python && is_counted(column) {
            match (byte, join(column)) {
                (b'\\', LineJoin::Backslash) => return NOT_WHITESPACE,
                (b'\\', _) => return with_join(column, LineJoin::Backslash),
                (b'\r', LineJoin::Backslash) => return with_join(column, LineJoin::CarriageReturn),
                (b'\n', LineJoin::Backslash) => return with_join(column, LineJoin::Joined),
                // CPython appends a line break to a text that ends with these two.
                (b'\n', LineJoin::CarriageReturn) if column & WIDTH_BITS == FIRST_COLUMN => {
                    return FIRST_COLUMN;
                }
                (b'\n', LineJoin::CarriageReturn) => {
                    return with_join(column, LineJoin::ColumnFixed);
                }
                (
                    b' ' | b'\t' | 0xc,
                    LineJoin::CarriageReturn | LineJoin::Joined | LineJoin::ColumnFixed,
                ) if column & WIDTH_BITS != FIRST_COLUMN => {
                    return with_join(column, LineJoin::ColumnFixed);
                }
                (_, LineJoin::Backslash) => return NOT_WHITESPACE,
                _ => {}
            }
        }
        let blanks = match (byte, self.rules) {
            (b'\n', _) | (b'\r' | 0xc, Rules::Python) => return self.reset(column, byte),
            (b' ', _) => (1, 1),
            (b'\t', Rules::Lark) => (self.tab, self.tab),
            (b'\t', Rules::Python) => (self.tab - widths(column).0 % self.tab, 1),
            (_, Rules::Lark) => return column,
            (_, Rules::Python) if column == BEFORE_LINE_BREAK => return BEFORE_LINE_BREAK,
            (_, Rules::Python) => return NOT_WHITESPACE,
        };
        if !is_counted(column) || widths(column).0 == TOO_WIDE {
            return column;
        }
        let (wide, narrow) = widths(column);
        match wide + blanks.0 {
            wide if wide > self.widest => TOO_WIDE << 16,
            wide => wide << 16 | (narrow + blanks.1),
        }
    }

    fn reset(&self, column: u32, byte: u8) -> u32 {
        let in_line = column == BEFORE_LINE_BREAK || column == NOT_WHITESPACE;
        if byte == 0xc && in_line { column } else { FIRST_COLUMN }
    }
}
