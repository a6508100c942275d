//! Significant indentation: the terminals of lines and levels, and the counting of columns.
//!
//! The lexeme of the newline terminal extends over blank lines to the first character of the next
//! line. Its meaning therefore depends on its own text only: on the column where it ends.
//!
//! ```text
//!  "if a:\n    b\n\n  c"      newline lexeme "\n    "  → column 4: NEWLINE INDENT
//!        └──┬──┘└──┬──┘       newline lexeme "\n\n  " → column 2: NEWLINE DEDENT, if 2 is an open level
//! ```

pub(crate) mod balance_proof;
pub(crate) mod line_terminals;
pub(crate) mod min_bytes;
pub(crate) mod parser_state;

/// The rules for counting columns and for the first and last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnRules {
    /// As in Python: a tab advances to the next multiple of its width, and a form feed resets the
    /// column. The first line has an indentation too, and the last line may end with the input.
    /// Levels must compare equally for every tab width.
    Python,
    /// As in Lark's `Indenter`: a tab counts as a fixed number of spaces, the first line has no
    /// indentation, and the end of the input closes blocks but not the line.
    Lark,
}

/// The terminals of lines and indentation levels, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indentation {
    /// Ends a line; its lexeme contains the indentation of the next line.
    pub newline: usize,
    /// Follows the newline where a level starts; without text.
    pub indent: usize,
    /// Follows the newline for each level that ends; without text.
    pub dedent: usize,
    /// Opening brackets. Between these and [`Indentation::closing`], lines do not matter.
    pub opening: Vec<usize>,
    /// Closing brackets, see [`Indentation::opening`].
    pub closing: Vec<usize>,
    /// The rules for counting columns.
    pub rules: ColumnRules,
    /// The width of a tab, in columns.
    pub tab: u32,
    /// The widest indentation, in columns.
    pub widest: u32,
    /// Maximum number of levels, including the outermost.
    pub levels: u32,
}

/// The widest indentation that can be configured, in columns.
pub(crate) const MAX_COLUMN: u32 = 0xfff;

/// The column of threads that do not count columns.
pub(crate) const NO_COLUMN: u32 = u32::MAX;
/// Before the first line break of the newline lexeme.
pub(crate) const BEFORE_LINE_BREAK: u32 = u32::MAX - 1;
/// After something other than whitespace.
pub(crate) const NOT_WHITESPACE: u32 = u32::MAX - 2;
/// At the start of a line.
pub(crate) const FIRST_COLUMN: u32 = 0;

/// In place of a width: more than [`MAX_COLUMN`], and the largest that fits below a [`LineJoin`].
const TOO_WIDE: u32 = 0x1fff;
/// The bits of a column that hold its two widths. The bits above hold a [`LineJoin`].
const WIDTH_BITS: u32 = (1 << JOIN_SHIFT) - 1;
const JOIN_SHIFT: u32 = 29;

/// A backslash in the indentation of a line, as Python reads it: the next line is joined to this
/// one, and the column of the first backslash after whitespace is that of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum LineJoin {
    /// No backslash, or only backslashes without whitespace before them.
    None = 0,
    /// A backslash was read; a line break must follow.
    Backslash = 1,
    /// A carriage return followed; a line feed belongs to the same line break.
    CarriageReturn = 2,
    /// The line break was read. The input cannot end here.
    Joined = 3,
    /// Whitespace followed, which does not count.
    ColumnFixed = 4,
}

/// Counts columns. A column is a pair: the width as counted, and the width with one-column tabs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnCounter {
    pub(crate) rules: ColumnRules,
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

/// Returns `true` if a value is a column and not one of the markers.
pub(crate) fn is_column(column: u32) -> bool {
    is_counted(column) && join(column) != LineJoin::Backslash && widths(column).0 != TOO_WIDE
}

/// Returns the width as counted, and the width with one-column tabs.
pub(crate) fn widths(column: u32) -> (u32, u32) {
    ((column & WIDTH_BITS) >> 16, column & 0xffff)
}

/// Returns the line column reached with the fewest further bytes, if one was counted.
pub(crate) fn nearest_column(column: u32) -> Option<u32> {
    let nearest = is_counted(column).then_some(column & WIDTH_BITS);
    nearest.filter(|&column| is_column(column))
}

/// Returns `true` if whitespace still changes a column, i.e. no backslash has fixed it.
pub(crate) fn is_extendable(column: u32) -> bool {
    join(column) == LineJoin::None
        || column & WIDTH_BITS == FIRST_COLUMN && join(column) == LineJoin::Joined
}

/// Returns `true` if a line break at a column only joins the line with the next one.
pub(crate) fn joins_next(column: u32) -> bool {
    is_counted(column) && matches!(join(column), LineJoin::Backslash | LineJoin::CarriageReturn)
}

/// Returns `true` if the input may end at a column, i.e. not directly after a joined line.
pub(crate) fn may_end_at(column: u32) -> bool {
    !is_counted(column) || matches!(join(column), LineJoin::None | LineJoin::ColumnFixed)
}

impl ColumnCounter {
    /// Bytes that change columns; all others act alike.
    pub(crate) const COLUMN_BYTES: [u8; 6] = *b" \t\n\x0c\r\\";

    /// Returns the column after a byte.
    pub(crate) fn step(&self, column: u32, byte: u8) -> u32 {
        if self.rules == ColumnRules::Python && is_counted(column) {
            match (byte, join(column)) {
                (b'\\', LineJoin::Backslash) => return NOT_WHITESPACE,
                (b'\\', _) => return with_join(column, LineJoin::Backslash),
                (b'\r', LineJoin::Backslash) => return with_join(column, LineJoin::CarriageReturn),
                (b'\n', LineJoin::Backslash) => return with_join(column, LineJoin::Joined),
                // CPython appends a line break to an input that ends with a backslash and a
                // carriage return.
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
            (b'\n', _) | (b'\r' | 0xc, ColumnRules::Python) => return self.reset(column, byte),
            (b' ', _) => (1, 1),
            (b'\t', ColumnRules::Lark) => (self.tab, self.tab),
            (b'\t', ColumnRules::Python) => (self.tab - widths(column).0 % self.tab, 1),
            (_, ColumnRules::Lark) => return column,
            (_, ColumnRules::Python) if column == BEFORE_LINE_BREAK => return BEFORE_LINE_BREAK,
            (_, ColumnRules::Python) => return NOT_WHITESPACE,
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
