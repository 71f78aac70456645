//! The page as a person sees and uses it.

use std::time::{Duration, Instant};

use fantoccini::{Locator, elements::Element, key::Key};
use serde_json::{Value, json};

use crate::world::World;

/// Longer than anything takes, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

impl World {
    /// Opens a page of the demo.
    pub(crate) async fn open(&self, path: &str) {
        let url = self.demo.lock().await.url(path);
        self.client.goto(&url).await.unwrap();
    }

    /// Begins a turn.
    pub(crate) async fn say(&self, workflow: &str, text: &str) {
        self.element(&format!("input[name=workflow][value={workflow}]")).await.click().await.unwrap();
        let input = self.element("#text").await;
        input.send_keys(text).await.unwrap();
        self.element("#composer button").await.click().await.unwrap();
    }

    /// The open question that asks this.
    pub(crate) async fn question(&self, asks: &str) -> Element {
        self.xpath(&format!("//article[{}][not({})][.//*[contains(., '{asks}')]]", class("question"), class("closed")))
            .await
    }

    /// The closed question that asked this.
    pub(crate) async fn closed(&self, asks: &str) -> Element {
        self.xpath(&format!("//article[{}][{}][.//*[contains(., '{asks}')]]", class("question"), class("closed"))).await
    }

    /// Selects options and answers.
    pub(crate) async fn select(&self, asks: &str, ids: &[&str]) {
        let card = self.question(asks).await;
        for id in ids {
            self.in_card(asks, &format!("input[value={id}]")).await.click().await.unwrap();
        }
        press(&card).await;
    }

    /// Types a text and answers.
    pub(crate) async fn write(&self, asks: &str, text: &str) {
        let card = self.question(asks).await;
        let input = card.find(Locator::Css("input, textarea")).await.unwrap();
        input.clear().await.unwrap();
        input.send_keys(text).await.unwrap();
        press(&card).await;
    }

    /// Waits for something in the card of an open question.
    pub(crate) async fn in_card(&self, asks: &str, css: &str) -> Element {
        let card = self.question(asks).await;
        wait(css, async || card.find(Locator::Css(css)).await.ok()).await
    }

    /// Waits until the conversation holds this text.
    pub(crate) async fn hears(&self, text: &str) {
        self.shows("#log", text).await;
    }

    /// Waits until what this selects holds this text.
    pub(crate) async fn shows(&self, css: &str, text: &str) {
        wait(&format!("`{text}` in `{css}`"), async || self.text(css).await.contains(text).then_some(())).await;
    }

    /// Waits until no question is open.
    pub(crate) async fn is_quiet(&self) {
        let open = "return document.querySelectorAll('.question:not(.closed)').length";
        wait("no open question", async || (self.run(open).await == json!(0)).then_some(())).await;
    }

    /// The text of everything that this selects.
    pub(crate) async fn text(&self, css: &str) -> String {
        let script = "return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText).join('\\n')";
        let text = self.client.execute(script, vec![json!(css)]).await.unwrap();
        text.as_str().unwrap().to_owned()
    }

    /// Runs a script in the page.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    pub(crate) async fn element(&self, css: &str) -> Element {
        wait(css, async || self.client.find(Locator::Css(css)).await.ok()).await
    }

    async fn xpath(&self, path: &str) -> Element {
        wait(path, async || self.client.find(Locator::XPath(path)).await.ok()).await
    }

    /// Presses keys where the focus is.
    pub(crate) async fn keys(&self, keys: &str) {
        self.client.active_element().await.unwrap().send_keys(keys).await.unwrap();
    }

    /// Tabs, backwards if wanted, until the focus is on something that this selects.
    pub(crate) async fn tab_to(&self, css: &str, backwards: bool) {
        let keys = if backwards {
            format!("{}{}", char::from(Key::Shift), char::from(Key::Tab))
        } else {
            String::from(char::from(Key::Tab))
        };
        for _ in 0..20 {
            if self.has_focus(css).await {
                return;
            }
            self.keys(&keys).await;
        }
        panic!("no tab leads to `{css}`");
    }

    pub(crate) async fn has_focus(&self, css: &str) -> bool {
        let script = "return document.activeElement.matches(arguments[0])";
        self.client.execute(script, vec![json!(css)]).await.unwrap() == json!(true)
    }

    /// A second tab on the same conversation, which is then the current one; the handles of both.
    pub(crate) async fn second_tab(&self, path: &str) -> [fantoccini::wd::WindowHandle; 2] {
        let session = self.run("return location.search").await;
        let first = self.client.window().await.unwrap();
        let second = self.client.new_window(true).await.unwrap().handle;
        self.client.switch_to_window(second.clone()).await.unwrap();
        self.open(&format!("{path}{}", session.as_str().unwrap())).await;
        [first, second]
    }
}

/// The button that answers.
async fn press(card: &Element) {
    card.find(Locator::Css("button[type=submit]")).await.unwrap().click().await.unwrap();
}

/// Waits for something to be there.
pub(crate) async fn wait<T>(what: &str, mut find: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(found) = find().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it did not come: {what}");
}

fn class(name: &str) -> String {
    format!("contains(concat(' ', @class, ' '), ' {name} ')")
}
