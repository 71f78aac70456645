//! Tests of the engine against a storage that can be crashed.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a world that cannot be built fails the test"
)]

mod answers;
mod cancel;
mod child_bounds;
mod children;
mod code;
mod compose;
mod emission;
mod failures;
mod features;
mod handoff;
mod inspected;
mod limits;
mod model_crashes;
mod model_drive;
mod model_graph;
mod model_graph_reference;
mod model_graphs;
mod model_language;
mod model_limits;
mod model_node;
mod model_probe;
mod model_programs;
mod model_reference;
mod model_replay;
mod observed;
mod parallel;
mod races;
mod replay;
mod responses;
mod retries;
mod sample;
mod shared_limits;
mod snapshots;
mod spans;
mod spawned;
mod state;
mod step_streams;
mod support;
mod suspension;
mod swallow;
mod tracked;
