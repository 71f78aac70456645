//! Short ways to a run.
