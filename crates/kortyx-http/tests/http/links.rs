//! Answer links: opening one never answers, its button does, once.

use std::time::Duration;

use kortyx_http::AnswerLink;
use kortyx_protocol::{RequestId, Timestamp};
use serde_json::Value;

use crate::{
    client::{Call, Reply},
    execute::execute,
    world::{Site, eventually, links},
};

/// A minute before the question's own deadline.
const EXPIRES: i64 = 1_767_225_600_000 + 14 * 60 * 1000;

fn link(asked: &Value, choice: Option<&str>) -> String {
    let id: RequestId = asked["resume"]["requestId"].as_str().unwrap().parse().unwrap();
    let mut link = AnswerLink::new(id, Timestamp::from_millis(EXPIRES)).actor("ann@example.com");
    link.choice = choice.map(str::to_owned);
    links().answer_link(&link)
}

/// As a browser does, which the authoriser does not know.
async fn call(site: &Site, method: &str, path: &str, form: &str) -> Reply {
    let call = Call::new(site.address, method, path).header("x-tenant", "").body(form);
    call.header("content-type", "application/x-www-form-urlencoded").send().await
}

fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body.to_vec()).unwrap()
}

async fn status(site: &Site, asked: &Value) -> String {
    let path = format!("/interrupts/{}", asked["resume"]["requestId"].as_str().unwrap());
    Call::get(site.address, &path).send().await.json()["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn opening_a_link_shows_a_page_and_answers_nothing() {
    let site = Site::start().await;
    let asked = execute(&site, "review").await;
    let path = link(&asked, Some("approve"));
    for method in ["GET", "HEAD", "GET"] {
        let page = call(&site, method, &path, "").await;
        assert_eq!(page.status, 200);
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(page.headers[name], value);
        }
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        let text = text(&page);
        assert!(method == "HEAD" || text.contains("Approve this draft?") && text.contains("<form method=\"post\">"));
        assert!(!text.contains("<script") && !text.contains(asked["resume"]["token"].as_str().unwrap()));
    }
    assert_eq!(status(&site, &asked).await, "pending");
}

#[tokio::test]
async fn posting_answers_once_with_the_links_choice_and_names_who() {
    let site = Site::start().await;
    let asked = execute(&site, "review").await;
    let (approve, revise) = (link(&asked, Some("approve")), link(&asked, Some("revise")));
    let taken = call(&site, "POST", &approve, "choice=revise").await;
    assert_eq!(taken.status, 200, "{}", text(&taken));
    assert_eq!(call(&site, "POST", &approve, "").await.status, 200, "the same again");
    assert_eq!(call(&site, "POST", &revise, "").await.status, 409);
    assert_eq!(call(&site, "GET", &approve, "").await.status, 409);
    eventually(|| site.agent().driven_runs() == 0).await;
    let id: RequestId = asked["resume"]["requestId"].as_str().unwrap().parse().unwrap();
    let record = kortyx_store::Store::interrupt(&*site.store, &id).await.unwrap().unwrap();
    let shown = format!("{record:?}");
    assert!(shown.contains("ann@example.com"), "{shown}");
}

#[tokio::test]
async fn a_link_without_a_choice_asks_and_its_answer_is_validated() {
    let site = Site::start().await;
    let asked = execute(&site, "review").await;
    let path = link(&asked, None);
    let page = text(&call(&site, "GET", &path, "").await);
    assert!(page.contains("value=\"approve\"") && page.contains("value=\"revise\""), "{page}");
    for form in ["", "choice=banana", "choice=%3Cscript%3E", "choice=approve&choice=revise"] {
        let refused = call(&site, "POST", &path, form).await;
        assert_eq!((refused.status, text(&refused).contains("<script")), (422, false), "{form}");
        assert!(text(&refused).contains("role=\"alert\""));
    }
    assert_eq!(call(&site, "POST", &path, "choice=approve").await.status, 200);
    let named = execute(&site, "pair").await;
    let path = link(&named, None);
    assert!(text(&call(&site, "GET", &path, "").await).contains("<textarea"));
    assert_eq!(call(&site, "POST", &path, "text=").await.status, 422);
    assert_eq!(call(&site, "POST", &path, "text=Ann+%26+Bob").await.status, 200);
}

#[tokio::test]
async fn a_link_that_is_forged_or_past_its_time_does_not_work() {
    let site = Site::start().await;
    let (asked, other) = (execute(&site, "review").await, execute(&site, "review").await);
    let path = link(&asked, Some("revise"));
    let id = |asked: &Value| asked["resume"]["requestId"].as_str().unwrap().to_owned();
    for forged in [
        path.replace("choice=revise", "choice=approve"),
        path.replace(&id(&asked), &id(&other)),
        path.split('?').next().unwrap().to_owned(),
        "/answers/human-1?signature=zz&key=k1&expires=1".to_owned(),
    ] {
        for method in ["GET", "POST"] {
            assert_eq!(call(&site, method, &forged, "").await.status, 404, "{forged}");
        }
    }
    site.clock.advance(Duration::from_mins(14));
    assert_eq!(call(&site, "POST", &path, "").await.status, 410);
    assert_eq!(status(&site, &asked).await, "pending");
}
