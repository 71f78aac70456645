//! A headless Chromium and the driver that it obeys, both gone with the test.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use fantoccini::{Client, ClientBuilder};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::demo::line_with;

/// Browsers at once: each keeps a core busy.
static PLACES: Semaphore = Semaphore::const_new(2);

/// What a browser of a test needs to be fast, alone and quiet, as any user of the machine.
const ARGUMENTS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
];

/// A browser with a profile of its own.
pub(crate) struct Browser {
    pub(crate) client: Client,
    driver: Child,
    _profile: TempDir,
    _place: SemaphorePermit<'static>,
}

impl Browser {
    /// Starts one, with further arguments.
    pub(crate) async fn start(arguments: &[&str], is_phone: bool) -> Self {
        let place = PLACES.acquire().await.unwrap();
        let profile = tempfile::tempdir().unwrap();
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--log-level=WARNING"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is not installed: `apt-get install chromium chromium-driver`");
        let said = line_with(driver.stdout.take().unwrap(), "started successfully on port ").await;
        let port = said.rsplit(' ').next().unwrap().trim_end_matches('.').to_owned();
        let folder = format!("--user-data-dir={}", profile.path().display());
        let arguments: Vec<_> = ARGUMENTS.iter().chain(arguments).copied().chain([&*folder]).collect();
        let mut options = json!({"args": arguments});
        if is_phone {
            options["mobileEmulation"] = json!({"deviceMetrics": {"width": 360, "height": 740, "pixelRatio": 2}});
        }
        let capabilities: Map<String, Value> = [("goog:chromeOptions".to_owned(), options)].into_iter().collect();
        let mut builder = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new());
        let url = format!("http://127.0.0.1:{port}");
        let client = builder.capabilities(capabilities).connect(&url);
        let client = tokio::time::timeout(Duration::from_mins(1), client).await.unwrap().unwrap();
        Self { client, driver, _profile: profile, _place: place }
    }

    /// Ends the browser, then its driver.
    pub(crate) async fn stop(mut self) {
        drop(tokio::time::timeout(Duration::from_secs(10), self.client.clone().close()).await);
        // Told to end, it ends a browser that is left.
        drop(self.driver.kill());
        drop(self.driver.wait());
    }
}
