//! The demo in a real browser: every workflow, tabs, crashes, deadlines, and what it looks like.
//!
//! Needs `chromium` and `chromedriver`. Screenshots are kept in `target/tmp/browser`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a world that cannot be built fails the test"
)]

mod browser;
mod cases;
mod demo;
mod page;
mod world;
