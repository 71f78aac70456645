//! The Kortyx engine: workflow graph, node context, journal, replay, scheduler.
