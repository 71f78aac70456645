//! Who asks what: half of the questions in one busy session, the others in quiet ones of a page each.

use std::collections::BTreeMap;

use kortyx_protocol::SessionId;
use kortyx_store::{InterruptQuery, Scalar, Scope};

use crate::error::Error;

/// Questions of a page, and of a quiet session.
pub(super) const PAGE: u32 = 50;

/// A question as an application's front page stores it.
pub(super) const QUESTION: &str = concat!(
    r#"{"v":1,"kind":"choice","question":"Approve this draft?","id":"approval","options":["#,
    r#"{"id":"approve","label":"Approve"},{"id":"revise","label":"Revise"}]}"#
);

/// The context key of the tenant, and that of the user.
pub(super) const TENANT: &str = "tenant";
pub(super) const USER: &str = "user";

/// The tenant and the session that have half of all questions.
pub(super) const ACME: &str = "acme";
pub(super) const BUSY: &str = "session-busy";

/// Every other question is in the busy session; the rest fill quiet sessions one after another.
pub(super) fn is_busy(number: u64) -> bool {
    number.is_multiple_of(2)
}

/// How many questions the busy session has.
pub(super) fn busy(count: u64) -> u64 {
    count.div_ceil(2)
}

/// Which quiet session a question is in.
pub(super) fn quiet(number: u64) -> u64 {
    number / 2 / u64::from(PAGE)
}

/// The session of a question.
pub(super) fn session(number: u64) -> String {
    if is_busy(number) { BUSY.to_owned() } else { format!("session-quiet-{}", quiet(number)) }
}

/// The context of a question's run. Each quiet session has a user of its own.
pub(super) fn context(number: u64) -> BTreeMap<String, Scalar> {
    let text = |text: String| Scalar::Text(text.into());
    let (tenant, user) = if is_busy(number) {
        (ACME.to_owned(), "user-busy".to_owned())
    } else {
        ("other".to_owned(), format!("user-{}", quiet(number)))
    };
    BTreeMap::from([(TENANT.to_owned(), text(tenant)), (USER.to_owned(), text(user))])
}

/// A kind of listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    /// The first page of the session with half of all questions.
    BusySession,
    /// A page in the middle of it.
    Middle,
    /// All of a session with a page of questions.
    QuietSession,
    /// The first page by a context value that half of all questions have.
    CommonContext,
    /// All with a context value that a page of questions has.
    RareContext,
    /// Both: a quiet session by a context value that half of the questions have.
    Both,
}

impl Listing {
    pub(super) const ALL: [Self; 6] =
        [Self::BusySession, Self::Middle, Self::QuietSession, Self::CommonContext, Self::RareContext, Self::Both];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::BusySession => "of a busy session",
            Self::Middle => "from the middle of it",
            Self::QuietSession => "of a quiet session",
            Self::CommonContext => "by a common context value",
            Self::RareContext => "by a rare context value",
            Self::Both => "by a quiet session and a common value",
        }
    }

    /// Whether it starts from a cursor.
    pub(super) fn is_deep(self) -> bool {
        self == Self::Middle
    }

    /// The query, among so many questions.
    pub(super) fn query(self, count: u64) -> Result<InterruptQuery, Error> {
        let quiet = quiet(count / 2);
        let text = |text: &str| Scalar::Text(text.into());
        let quiet_session = || SessionId::new(format!("session-quiet-{quiet}")).map(Scope::session);
        let scope = match self {
            Self::BusySession | Self::Middle => Scope::session(SessionId::new(BUSY)?),
            Self::QuietSession => quiet_session()?,
            Self::CommonContext => Scope::default().with(TENANT, text(ACME)),
            Self::RareContext => Scope::default().with(USER, text(&format!("user-{quiet}"))),
            Self::Both => quiet_session()?.with(TENANT, text("other")),
        };
        Ok(InterruptQuery { scope, limit: PAGE, ..InterruptQuery::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_questions_are_in_the_busy_session_and_a_page_in_each_quiet_one() {
        let mut sessions: BTreeMap<String, u64> = BTreeMap::new();
        for number in 0..1_000 {
            *sessions.entry(session(number)).or_default() += 1;
        }

        assert_eq!(sessions.remove(BUSY), Some(busy(1_000)));
        assert_eq!(sessions.len(), 10);
        assert!(sessions.values().all(|questions| *questions == u64::from(PAGE)));
    }
}
