//! A demo and a browser, from a test's begin to its end, however it ends.

use std::{fs, panic::AssertUnwindSafe, path::PathBuf};

use fantoccini::Client;
use futures_util::FutureExt as _;
use tokio::sync::Mutex;

use crate::{browser::Browser, demo::Demo};

/// How a test wants it.
pub(crate) struct Plan {
    /// What its screenshots are called.
    pub(crate) name: &'static str,
    /// How long questions are open.
    pub(crate) expires_in: &'static str,
    /// Further arguments of the browser.
    pub(crate) browser: &'static [&'static str],
    /// On a phone, 360 pixels wide.
    pub(crate) is_phone: bool,
}

/// A demo and a browser.
pub(crate) struct World {
    name: &'static str,
    pub(crate) demo: Mutex<Demo>,
    pub(crate) client: Client,
}

impl Plan {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, expires_in: "15m", browser: &["--window-size=1000,900"], is_phone: false }
    }

    /// Runs a test. A failed one leaves a screenshot; the browser ends in any case.
    pub(crate) async fn run(self, test: impl AsyncFnOnce(&World)) {
        let (demo, browser) = (Demo::start(self.expires_in).await, Browser::start(self.browser, self.is_phone).await);
        let world = World { name: self.name, demo: Mutex::new(demo), client: browser.client.clone() };
        let ended = AssertUnwindSafe(test(&world)).catch_unwind().await;
        if ended.is_err() {
            world.tell().await;
        }
        drop(world);
        browser.stop().await;
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    }
}

impl World {
    /// Keeps what is on the screen, the whole page.
    pub(crate) async fn shot(&self, of: &str) {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("browser");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{}-{of}.png", self.name)), self.client.screenshot().await.unwrap()).unwrap();
    }

    /// What a person would want to know of a test that failed.
    async fn tell(&self) {
        drop(AssertUnwindSafe(self.shot("failed")).catch_unwind().await);
        let text = self.client.execute("return location.href + '\\n' + document.body.innerText", Vec::new()).await;
        eprintln!(
            "the page of `{}`:\n{}",
            self.name,
            text.ok().as_ref().and_then(|text| text.as_str()).unwrap_or("gone")
        );
    }
}
