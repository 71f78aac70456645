//! Workspace-level tests of Kortyx: acceptance cases, wire compatibility, faults.
