//! A visit as it is told: its span, its beginning, and its end once.

use std::sync::Arc;

use kortyx_protocol::FailureCode;
use tracing::{Span, field, info_span};

use super::{Content, End, Moment, News, Visit, paused};
use crate::shared::Shared;

/// A pass over a node that somebody may want to hear of. Dropping it ends it as dropped.
pub(crate) struct NodeTold {
    shared: Arc<Shared>,
    span: Span,
    /// Only where somebody observes the run.
    visit: Option<Arc<Visit>>,
    is_open: bool,
}

/// What the span of a visit says.
pub(crate) struct VisitSpan<'a> {
    pub(crate) workflow: &'a str,
    pub(crate) node: &'a str,
    pub(crate) activation: u32,
    pub(crate) visit: u32,
    pub(crate) attempt: u32,
}

impl NodeTold {
    /// A node is entered.
    pub(crate) fn begin(shared: &Arc<Shared>, of: &VisitSpan<'_>, visit: Option<Arc<Visit>>) -> Self {
        let span = info_span!(
            "kortyx.node",
            otel.name = %format_args!("node {}", of.node),
            otel.status_code = field::Empty,
            session.id = shared.info.session_id.as_str(),
            kortyx.run.id = shared.info.run_id.as_str(),
            kortyx.workflow = of.workflow,
            kortyx.node = of.node,
            kortyx.activation = of.activation,
            kortyx.visit = of.visit,
            kortyx.attempt = of.attempt,
            kortyx.outcome = field::Empty,
            error.type = field::Empty,
        );
        let told = Self { shared: shared.clone(), span, visit, is_open: true };
        told.tell(|visit| Moment::NodeEntered { visit });
        told
    }

    /// What is no visit: the engine's own question, or the wait before another attempt.
    pub(crate) fn nothing(shared: &Arc<Shared>) -> Self {
        Self { shared: shared.clone(), span: Span::none(), visit: None, is_open: false }
    }

    /// The span to poll the node in.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Where the node has led.
    pub(crate) fn news(&self, news: &[News]) {
        for news in news {
            self.tell(|visit| news.at(visit));
        }
    }

    /// The node is left. Only the first end counts.
    pub(crate) fn end(&mut self, end: End, retries: bool, output: Option<&Content>) {
        if std::mem::replace(&mut self.is_open, false) {
            close(&self.span, end);
            self.tell(|visit| Moment::NodeLeft { visit, end, retries, output });
        }
    }

    fn tell<'a>(&'a self, moment: impl FnOnce(&'a Arc<Visit>) -> Moment<'a>) {
        if let Some(visit) = &self.visit {
            self.span.in_scope(|| self.shared.tell(&moment(visit)));
        }
    }
}

impl Drop for NodeTold {
    fn drop(&mut self) {
        self.end(End::Dropped, false, None);
    }
}

/// Notes on a span how what it stands for ended. A pause is no error.
pub(super) fn close(span: &Span, end: End) {
    if span.is_disabled() {
        return;
    }
    span.record("kortyx.outcome", end.as_str());
    match end {
        End::Failed(code) => fail(span, code),
        End::Paused => paused(span),
        End::Completed | End::Dropped => {}
    }
}

fn fail(span: &Span, code: FailureCode) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", code.as_str());
}
