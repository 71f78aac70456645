//! Automation of this workspace.

fn main() {}
