//! Whether what a store holds keeps its promises.

mod checkpoints;
mod run;

use std::{collections::BTreeSet, fmt::Write as _};

use kortyx_protocol::SessionId;
use kortyx_store::{RunQuery, SessionQuery};
use serde::Serialize;

use super::runs::PAGE;
use crate::{
    arguments::CheckArguments,
    error::{CliError, Exit},
    open::Inspected,
    report::{Report, Show},
    show::paint::{bad, bold, clean, good, open},
};

/// How many findings are told.
const MOST: usize = 1_000;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Severity {
    /// A promise does not hold.
    Broken,
    /// Somebody should look at it.
    Notice,
}

/// Something that was found.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Finding {
    severity: Severity,
    /// The run, question, session or checkpoint.
    subject: String,
    /// A stable name of what was looked for.
    rule: &'static str,
    detail: String,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn broken(&mut self, subject: &impl ToString, rule: &'static str, detail: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Broken, subject: subject.to_string(), rule, detail: detail.into() });
    }

    pub(super) fn notice(&mut self, subject: &impl ToString, rule: &'static str, detail: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Notice, subject: subject.to_string(), rule, detail: detail.into() });
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckView {
    runs: u64,
    interrupts: u64,
    sessions: u64,
    checkpoints: u64,
    broken: usize,
    notices: usize,
    findings: Vec<Finding>,
    /// There are more findings than are told, or more runs than were looked at.
    is_cut: bool,
}

impl Show for CheckView {
    fn show(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let severity = match finding.severity {
                Severity::Broken => bad("broken"),
                Severity::Notice => open("notice"),
            };
            let (subject, detail) = (clean(&finding.subject), clean(&finding.detail));
            let _ = writeln!(text, "{severity} {} {}: {detail}", bold(subject), finding.rule);
        }
        let Self { runs, interrupts, sessions, checkpoints, broken, notices, .. } = self;
        let verdict = if *broken == 0 { good("sound") } else { bad("broken") };
        let _ = writeln!(
            text,
            "{verdict}: {runs} runs, {interrupts} questions, {sessions} sessions, {checkpoints} checkpoints; {broken} broken, \
             {notices} to look at"
        );
        if self.is_cut {
            text.push_str("there is more than is told\n");
        }
        text
    }
}

/// Looks at every run with its questions, and at the sessions that they belong to.
pub(super) async fn check(arguments: &CheckArguments, store: &Inspected) -> Result<Report, CliError> {
    let mut query = RunQuery { session_id: arguments.session.clone(), limit: PAGE, ..RunQuery::default() };
    let mut sessions: BTreeSet<SessionId> = arguments.session.iter().cloned().collect();
    let (mut findings, mut runs, mut interrupts, mut is_cut) = (Findings::default(), 0_u64, 0_u64, false);
    while !is_cut {
        let page = store.store().list_runs(query.clone()).await?;
        for run in page.runs {
            if runs >= arguments.limit {
                is_cut = true;
                break;
            }
            // It may have been pruned meanwhile.
            let Some(history) = store.store().history(&run.run_id).await? else { continue };
            runs += 1;
            interrupts += u64::try_from(history.questions.len()).unwrap_or(u64::MAX);
            run::check(&history, store.now().await?, arguments.opaque, &mut findings);
            sessions.insert(run.session_id);
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    if arguments.session.is_none() {
        sessions.extend(all_sessions(store).await?);
    }
    let mut checkpoints = 0_u64;
    for session in &sessions {
        checkpoints += checkpoints::check(session, store, arguments.opaque, &mut findings).await?;
    }
    let count = |severity| findings.0.iter().filter(|finding| finding.severity == severity).count();
    let (broken, notices) = (count(Severity::Broken), count(Severity::Notice));
    let mut findings = findings.0;
    is_cut |= findings.len() > MOST;
    findings.sort_by_key(|finding| finding.severity == Severity::Notice);
    findings.truncate(MOST);
    let sessions = u64::try_from(sessions.len()).unwrap_or(u64::MAX);
    let view = CheckView { runs, interrupts, sessions, checkpoints, broken, notices, findings, is_cut };
    Ok(Report::new("check", &view)?.ending(if broken == 0 { Exit::Done } else { Exit::Broken }))
}

/// Sessions are kept longer than their runs.
async fn all_sessions(store: &Inspected) -> Result<BTreeSet<SessionId>, CliError> {
    let (mut query, mut sessions) = (SessionQuery { limit: PAGE, cursor: None }, BTreeSet::new());
    loop {
        let page = store.store().list_sessions(query.clone()).await?;
        sessions.extend(page.sessions.into_iter().map(|session| session.session_id));
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(sessions);
        }
    }
}
