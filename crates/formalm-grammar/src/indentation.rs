//! Blocks that are told by indentation: which terminals stand for lines and levels, and how
//! columns are counted.
//!
//! The lexeme of the newline terminal reaches over blank lines to the first character of the next
//! line, so what it means depends on its text alone: on the column it ends at.

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
pub(crate) const WIDEST: u32 = 0xfff;

/// Of threads whose column does not matter.
pub(crate) const PLAIN: u32 = u32::MAX;
/// Before the first line break.
pub(crate) const NONE: u32 = u32::MAX - 1;
/// Behind something that is no blank.
pub(crate) const OFF: u32 = u32::MAX - 2;
/// Too wide.
const WIDE: u32 = u32::MAX - 3;
/// Where lines begin.
pub(crate) const FIRST: u32 = 0;

/// Counts columns. A column is a pair: as counted, and with tabs of one blank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    pub(crate) rules: Rules,
    pub(crate) tab: u32,
    pub(crate) widest: u32,
}

/// Whether a column is one, and not something else that is known instead.
pub(crate) fn is_column(column: u32) -> bool {
    column < WIDE
}

/// A column as counted, and with tabs of one blank.
pub(crate) fn widths(column: u32) -> (u32, u32) {
    (column >> 16, column & 0xffff)
}

impl Columns {
    /// Bytes that change columns; others do so alike.
    pub(crate) const BYTES: [u8; 5] = *b" \t\n\x0c\r";

    /// The column after a byte.
    pub(crate) fn step(&self, column: u32, byte: u8) -> u32 {
        let blanks = match (byte, self.rules) {
            (b'\n', _) | (b'\r' | 0xc, Rules::Python) => return self.reset(column, byte),
            (b' ', _) => (1, 1),
            (b'\t', Rules::Lark) => (self.tab, self.tab),
            (b'\t', Rules::Python) => (self.tab - widths(column).0 % self.tab, 1),
            (_, Rules::Lark) => return column,
            (_, Rules::Python) if column == NONE => return NONE,
            (_, Rules::Python) => return OFF,
        };
        if !is_column(column) {
            return column;
        }
        let (wide, narrow) = widths(column);
        match wide + blanks.0 {
            wide if wide > self.widest => WIDE,
            wide => wide << 16 | (narrow + blanks.1),
        }
    }

    fn reset(&self, column: u32, byte: u8) -> u32 {
        let in_line = column == NONE || column == OFF;
        if byte == 0xc && in_line { column } else { FIRST }
    }
}
