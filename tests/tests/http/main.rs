//! The cases of faults, by number, as a browser meets them: over HTTP, on the store that `KORTYX_TEST_STORE` names.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what fails in a test panics")]

mod k02_routing;
mod k05_links;
mod k06_races;
mod k08_tenants;
mod k10_streams;
mod k12_rollback;
mod k14_cancelling;
mod k16_listing;
mod page;
mod shapes;
