//! Process-level support: forks, locks, lock-free tables, deadlines, interrupts and threads.
//!
//! ```text
//!  may end work      deadline (time), interrupt (the owner says so), step_budget and
//!                    step_meter (steps)
//!  survives a fork   fork_safe_mutex, set_once, pool
//!  keeps values      append_vec (lock-free), lru_cache
//!  tells them apart  keyed_hash (in this process), digest (in all)
//! ```

mod append_vec;
pub mod deadline;
mod digest;
mod fork_safe_mutex;
pub mod interrupt;
mod interrupt_check;
mod keyed_hash;
mod lru_cache;
pub mod pool;
pub mod process_fork;
mod set_once;
mod step_budget;
mod step_meter;

pub use append_vec::AppendVec;
pub use digest::digest;
pub use fork_safe_mutex::{ForkCheck, ForkSafeMutex};
pub use interrupt_check::InterruptCheck;
pub use keyed_hash::keyed_hash;
pub use lru_cache::LruCache;
pub use set_once::{OnceSlice, SetOnce};
pub use step_budget::{StepBudget, record_steps, steps_taken};
pub use step_meter::{BudgetExhausted, StepMeter};
