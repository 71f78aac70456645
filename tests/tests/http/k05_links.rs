//! K5: a link that was sent answers wherever its server stands.

use kortyx::http::{AnswerLink, AnswerLinks, Http, LinkKey, Paths};
use kortyx_tests::{Counter, World};
use serde_json::{Value, json};

use crate::{
    page::{Page, message, questions},
    shapes::acting,
};

fn key(id: &str, secret: u8) -> LinkKey {
    LinkKey::new(id, [secret; 32]).unwrap()
}

/// Routes below an address, and links to them.
fn below(base: &'static str, links: AnswerLinks) -> impl FnOnce(Http) -> Http {
    move |http| http.paths(Paths::under(base)).links(links)
}

#[tokio::test]
async fn b090_a_link_answers_at_every_address_after_a_restart_and_after_its_key_was_replaced() {
    for base in ["", "/api", "/deep/er"] {
        let (world, acts) = (World::new(), Counter::new());
        let links = AnswerLinks::new(format!("{base}/answers"), key("old", 1));
        let link = {
            let page = Page::below(&world, &[acting(&acts)], below(base, links.clone())).await;
            let (status, turn) = page.post(&format!("{base}/chat"), &buffered()).await;
            assert_eq!(status, 200, "{turn}");
            let asked = questions(turn["chunks"].as_array().unwrap()).remove(0);
            let id = asked["requestId"].as_str().unwrap().parse().unwrap();
            let expires = asked["expiresAt"].as_str().unwrap().parse().unwrap();
            links.answer_link(&AnswerLink::new(id, expires).choice("approve"))
        };

        let moved = Page::below(&world, &[acting(&acts)], below("/moved", links)).await;
        let (status, said) = moved.get(&link).await;
        assert_eq!((status, said["failure"]["message"].as_str()), (404, Some("there is nothing at this address")));
        let forged = AnswerLinks::new(format!("{base}/answers"), key("old", 9));
        let other = Page::below(&world, &[acting(&acts)], below(base, forged)).await;
        assert_eq!(other.get(&link).await.0, 404, "not signed by a key of this server");

        let renewed = AnswerLinks::new(format!("{base}/answers"), key("new", 2)).accepting(key("old", 1));
        let page = Page::below(&world, &[acting(&acts)], below(base, renewed)).await;
        assert_eq!((page.get(&link).await.0, acts.count()), (200, 0), "opening answers nothing");
        assert_eq!(page.post(&link, &Value::Null).await.0, 200);
        kortyx_tests::eventually("it has acted", || async { acts.count() == 1 }).await;
        assert_eq!(page.post(&link, &Value::Null).await.0, 200, "the same again");
        assert_eq!(acts.count(), 1);
    }
}

fn buffered() -> Value {
    let mut body = message("s", "go");
    body["stream"] = json!(false);
    body
}
