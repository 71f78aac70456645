//! What answers the requests to each address.

pub(crate) mod answers;
pub(crate) mod chat;
pub(crate) mod checkpoints;
pub(crate) mod execute;
pub(crate) mod health;
pub(crate) mod interrupts;
pub(crate) mod openapi;
pub(crate) mod resume;
pub(crate) mod runs;
