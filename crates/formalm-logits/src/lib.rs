#![doc = include_str!("../README.md")]

mod best_tokens;
mod class_sums;
mod draw;
mod exponential;
mod masked_copy;
mod mass_ranks;
mod row;
mod row_scan;
#[cfg(test)]
mod tests;
mod vectorized;

pub use class_sums::{class_sums, log_sum_of};
pub use draw::{DrawRules, DrawTable, draw};
pub use masked_copy::{exponential_sum, exponential_sums};
pub use row::{Allowed, ElementType, Row};
pub use row_scan::{LOG_SUM_ERROR, RowScan, RowSums, Soundness, log_sum_error};
