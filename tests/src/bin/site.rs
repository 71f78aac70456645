//! The site as a process of its own: prints where it listens and ids of what is there as one line, and ends when its input does.

use kortyx_tests::site::{Site, seeds};
use serde_json::json;

#[tokio::main]
async fn main() {
    let site = Site::running().await;
    println!("{}", json!({"address": site.address, "known": seeds(&site).await}));
    // Nobody writes to it: it ends when whoever started it has gone.
    let _ = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await;
    site.end().await;
}
