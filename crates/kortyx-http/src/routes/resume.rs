//! Answers with a handle: of one question, or of several of its run.

use std::sync::Arc;

use axum::{extract::Request, http::Method, response::Response};
use kortyx_orchestrator::Answer;
use kortyx_protocol::{ResumeAnswers, ResumeRequest};

use crate::{
    Http,
    endpoint::{Admitted, Methods},
    problem::Problem,
    reply,
};

pub(crate) const METHODS: Methods = &[(Method::POST, |http, request| Box::pin(post(http, request)))];

async fn post(http: Arc<Http>, request: Request) -> Result<Response, Problem> {
    let Admitted { grant, body } = http.admit_with_body(request).await?;
    let ResumeRequest { resume, answers, .. } = ResumeRequest::from_slice(&body, &http.limits.request)?;
    grant.session_of(Some(resume.session_id.clone()))?;
    let answers = match answers {
        ResumeAnswers::One(response) => vec![Answer::with_handle(&resume, response)],
        ResumeAnswers::Batch(batch) => {
            batch.into_iter().map(|answer| Answer::of_run(&resume, answer.request_id, answer.response)).collect()
        }
    };
    let by_caller = |answer: Answer| {
        let answer = answer.within(grant.scope.clone());
        match &grant.actor {
            Some(actor) => answer.by(actor.clone()),
            None => answer,
        }
    };
    let result = http.agent.respond(answers.into_iter().map(by_caller).collect()).await?;
    Ok(reply::ok(&result))
}
