//! What answers the requests to each address.

pub(crate) mod chat;
pub(crate) mod execute;
pub(crate) mod health;
pub(crate) mod interrupts;
pub(crate) mod resume;
