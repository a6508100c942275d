#![doc = include_str!("../README.md")]

mod best_tokens;
mod class_scan;
mod draw;
mod exponential;
mod filter;
mod mass_ranks;
mod part_sums;
mod row;
mod row_scan;
#[cfg(test)]
mod tests;
mod vectorized;

pub use class_scan::{ClassScan, ClassScanner, TokenClasses, class_sum_error};
pub use draw::{DrawRules, DrawTable, draw};
pub use part_sums::{exponential_sum, log_sum_of, wide_exponential_sum};
pub use row::{Allowed, ElementType, Row};
pub use row_scan::{LOG_SUM_ERROR, RowScan, RowSum, RowSums, Soundness, log_sum_error, row_error};
