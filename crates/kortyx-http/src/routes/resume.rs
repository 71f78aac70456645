//! Answers with a handle: of one question, or of several of its run.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use kortyx_orchestrator::{Answer, OrchestratorError};
use kortyx_protocol::{ExecutionResult, Failure, FailureCode, ResumeAnswers, ResumeHandle, ResumeRequest};
use kortyx_store::InterruptRecord;

use crate::{
    Grant, Http,
    endpoint::{Admitted, Endpoint, Methods},
    openapi::{Operation, Types},
    problem::Problem,
    reply,
};

pub(crate) const METHODS: Methods = &[Endpoint::post(|http, request| Box::pin(post(http, request)), describe)];

fn describe(types: &mut Types) -> Operation {
    Operation::new("resume", "Answers with a question's handle")
        .taking(&types.of::<ResumeRequest>())
        .answering("How the run stands", &types.of::<ExecutionResult>())
        .failing(&[404, 409, 410, 422])
}

async fn post(http: Arc<Http>, request: Request) -> Result<Response, Problem> {
    let Admitted { grant, body } = http.admit_with_body(request).await?;
    let ResumeRequest { workflow, resume, answers } = ResumeRequest::from_slice(&body, &http.limits.request)?;
    grant.session_of(Some(resume.session_id.clone()))?;
    if let Some(workflow) = workflow {
        check_workflow(&http, &workflow, &resume, &grant).await?;
    }
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

/// A workflow that the client names must be the question's: where it was asked, or that of its run, after a handoff the target.
async fn check_workflow(http: &Http, workflow: &str, resume: &ResumeHandle, grant: &Grant) -> Result<(), Problem> {
    let store = http.agent.store();
    let question = store.interrupt(&resume.request_id).await.map_err(OrchestratorError::from)?;
    // Who may not answer it is told what becomes of the answer, and not where it belongs.
    let is_theirs = |question: &InterruptRecord| {
        question.token.matches(&resume.token) && grant.scope.contains(&question.session_id, &question.context)
    };
    let Some(question) = question.filter(is_theirs).filter(|question| question.workflow != workflow) else {
        return Ok(());
    };
    let run = store.run(&question.run_id).await.map_err(OrchestratorError::from)?;
    if run.is_none_or(|run| *run.workflow.id == *workflow) {
        return Ok(());
    }
    let message = "the question belongs to another workflow than the request names: nothing was answered";
    Err(Failure::new(FailureCode::InterruptMismatch, message).into())
}
