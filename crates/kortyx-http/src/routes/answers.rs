//! The pages of answer links. The link's signature is the right to answer.

use std::sync::Arc;

use axum::{
    extract::Request,
    http::{Method, StatusCode},
    response::Response,
};
use kortyx_orchestrator::{Answer, Interrupt};
use kortyx_protocol::{Failure, FailureCode, RequestId, ResumeResponse};
use kortyx_store::{InterruptStatus, Scope};
use serde_json::json;

use super::interrupts::named;
use crate::{
    AnswerLink, Http, body,
    endpoint::{Endpoint, Methods},
    link::{Page, response},
    openapi::{Operation, Types},
    problem::Problem,
};

pub(crate) const METHODS: Methods = &[
    Endpoint::get(|http, request| Box::pin(async move { Ok(shown(get(http, request).await)) }), describe_page),
    Endpoint::post(|http, request| Box::pin(async move { Ok(shown(post(http, request).await)) }), describe_button),
];

/// What becomes of a link that is not as it should be.
const PAGES: [(u16, &str); 4] = [
    (404, "The link does not work"),
    (409, "The question was answered already"),
    (410, "The link or the question's time is past, or the question was withdrawn"),
    (503, "It does not work right now"),
];

fn describe_page(_: &mut Types) -> Operation {
    linked(Operation::new("showAnswerPage", "The page of an answer link, which answers nothing"))
        .showing("The question, and a form", &PAGES)
}

fn describe_button(_: &mut Types) -> Operation {
    let text = json!({"type": "string"});
    let fields = json!({
        "type": "object",
        "description": "What the page's form sends; nothing where the link names the choice.",
        "properties": {"choice": {"type": "array", "items": text}, "text": text},
    });
    let others = [
        (400, "The form did not arrive"),
        (422, "The answer does not fit: the page once more, with what is wrong"),
        (500, "The answer was not taken"),
    ];
    linked(Operation::new("answerByLink", "The button of that page"))
        .taking_form(&fields)
        .showing("The answer was taken", &others)
        .showing("The answer was taken", &PAGES)
}

/// With what a link's address says.
fn linked(operation: Operation) -> Operation {
    let text = || json!({"type": "string"});
    let parameters = [
        ("choice", "The option that the link answers with.", text()),
        ("actor", "Whom the link was sent to.", text()),
        ("expires", "Until when it can be used, in milliseconds since 1970.", json!({"type": "integer"})),
        ("key", "The id of the key that signed it.", text()),
        ("signature", "HMAC-SHA-256 of all of it, in hexadecimal.", text()),
    ];
    operation.named("The id of a question.").with("query", parameters)
}

/// Shows the question. Changes nothing: mail tools open links before people do.
async fn get(http: Arc<Http>, mut request: Request) -> Result<Page, Page> {
    let (link, question, _) = find(&http, &mut request).await?;
    Ok(ask(&question, &link, &[]))
}

/// Answers it.
async fn post(http: Arc<Http>, mut request: Request) -> Result<Page, Page> {
    let (link, question, scope) = find(&http, &mut request).await?;
    let (parts, form) = request.into_parts();
    let form = body::read(&parts.headers, form, &http.limits).await;
    let form = form.map_err(|_: Problem| Page::saying(StatusCode::BAD_REQUEST, "That did not arrive", "Try again."))?;
    let response = match &link.choice {
        Some(choice) => ResumeResponse::select([choice.clone()]),
        None => response(&question.input, &form),
    };
    let mut answer = Answer::in_scope(link.request_id.clone(), scope, response);
    if let Some(actor) = &link.actor {
        answer = answer.by(actor.clone());
    }
    match http.agent.submit(vec![answer]).await {
        Ok(_) => Ok(Page::saying(StatusCode::OK, "Thank you", "Your answer was taken.")),
        Err(error) => Err(refused(error.into(), &question, &link)),
    }
}

/// What a signed link is about: the link, the open question, and the scope to answer it in.
async fn find(http: &Http, request: &mut Request) -> Result<(AnswerLink, Interrupt, Scope), Page> {
    let unknown =
        || Page::saying(StatusCode::NOT_FOUND, "This link does not work", "It is incomplete, or was not made here.");
    let id = named(request).await;
    let id = id.and_then(|id| RequestId::new(id).ok()).ok_or_else(unknown)?;
    let query = request.uri().query().unwrap_or_default();
    let link = http.links.as_ref().and_then(|links| links.read(id, query)).ok_or_else(unknown)?;
    let store = http.agent.store();
    let now = store.now().await.map_err(|_| unavailable())?;
    if link.expires <= now {
        return Err(Page::saying(StatusCode::GONE, "This link has expired", "Ask for another one."));
    }
    let record = store.interrupt(&link.request_id).await.map_err(|_| unavailable())?.ok_or_else(unknown)?;
    let scope = Scope::session(record.session_id);
    let found = http.agent.get_interrupt(&link.request_id, &scope).await.map_err(|_| unavailable())?;
    let question = found.ok_or_else(unknown)?;
    match question.status {
        // The same answer again is taken again, and another one is told so.
        InterruptStatus::Pending => {}
        InterruptStatus::Answered if request.method() == Method::POST => {}
        status => return Err(closed(status)),
    }
    Ok((link, question, scope))
}

fn ask(question: &Interrupt, link: &AnswerLink, notes: &[String]) -> Page {
    Page::asking(&question.input, link.choice.as_deref(), notes).unwrap_or_else(|| {
        Page::saying(StatusCode::OK, "A question for you", "It cannot be answered on this page: open the application.")
    })
}

fn refused(failure: Failure, question: &Interrupt, link: &AnswerLink) -> Page {
    if failure.code == FailureCode::InvalidResponse {
        let issues = failure.issues.unwrap_or_default();
        let notes: Vec<String> = issues.into_iter().map(|issue| issue.message).collect();
        return ask(question, link, &notes).with_status(StatusCode::UNPROCESSABLE_ENTITY);
    }
    let status = failure.status.and_then(|status| StatusCode::from_u16(status).ok());
    Page::saying(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), "Your answer was not taken", &failure.message)
}

fn closed(status: InterruptStatus) -> Page {
    let (code, text) = match status {
        InterruptStatus::Answered => (StatusCode::CONFLICT, "The question was answered already."),
        InterruptStatus::Expired => (StatusCode::GONE, "The question's time is past."),
        _ => (StatusCode::GONE, "The question was withdrawn."),
    };
    Page::saying(code, "There is nothing to answer any more", text)
}

fn unavailable() -> Page {
    Page::saying(StatusCode::SERVICE_UNAVAILABLE, "This does not work right now", "Try again in a moment.")
}

fn shown(page: Result<Page, Page>) -> Response {
    page.unwrap_or_else(|page| page).into_response()
}
