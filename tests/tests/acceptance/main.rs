//! The fault cases that people met elsewhere, proved absent here, on the store that `KORTYX_TEST_STORE` names.
//!
//! A test's name starts with its case's number. Cases of storage alone are in the conformance suite of `kortyx-store`, cases
//! of the engine alone in `kortyx-runtime`, cases that need real processes beside this program.

#[cfg(test)]
mod background;
#[cfg(test)]
mod k01_gate;
#[cfg(test)]
mod k01_verdicts;
#[cfg(test)]
mod k02_routing;
#[cfg(test)]
mod k02_wire;
#[cfg(test)]
mod k05_durable;
#[cfg(test)]
mod k05_elsewhere;
#[cfg(test)]
mod k06_races;
#[cfg(test)]
mod k07_deadlines;
#[cfg(test)]
mod k07_timing;
#[cfg(test)]
mod k08_background;
#[cfg(test)]
mod k08_tenants;
#[cfg(test)]
mod k09_answers;
#[cfg(test)]
mod k09_numbers;
#[cfg(test)]
mod k09_shapes;
#[cfg(test)]
mod k10_background;
#[cfg(test)]
mod k10_following;
#[cfg(test)]
mod k10_grammar;
#[cfg(test)]
mod k10_responses;
#[cfg(test)]
mod k10_streams;
#[cfg(test)]
mod k11_growth;
#[cfg(test)]
mod k12_rollback;
#[cfg(test)]
mod k12_taken_back;
#[cfg(test)]
mod k13_definitions;
#[cfg(test)]
mod k14_background;
#[cfg(test)]
mod k14_cancelling;
#[cfg(test)]
mod k15_pausing;
#[cfg(test)]
mod k16_background;
#[cfg(test)]
mod k16_listing;
#[cfg(test)]
mod shared_limits;
#[cfg(test)]
mod tool_calls;
