//! Contracts: named, versioned schemas of what is asked and answered.

mod interrupt;
mod output;
mod parts;

pub use interrupt::InterruptContract;
pub use output::OutputContract;
pub use parts::ContractInfo;
use parts::named_contract;
