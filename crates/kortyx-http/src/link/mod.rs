//! Answer links: signed addresses for e-mail and chat tools that answer one question.

mod form;
mod page;
mod sign;

use std::fmt;

use kortyx_protocol::{RequestId, Timestamp};

pub use self::sign::{LinkKey, LinkKeyError};
pub(crate) use self::{form::response, page::Page, sign::Claim};

/// Makes and checks answer links.
///
/// A link is the right to answer: whoever has it may, until it expires or the question is closed, and nobody asks the authoriser. It is
/// bound to the question and, when it names one, to the choice, and signed with HMAC-SHA-256. Opening it shows a page and never
/// answers; the page's button does. One use follows from the question: once it is answered, no other answer is taken.
///
/// ```
/// use kortyx_http::{AnswerLink, AnswerLinks, LinkKey};
/// use kortyx_protocol::{RequestId, Timestamp};
///
/// let links = AnswerLinks::new("https://app.example/answers", LinkKey::new("2026-11", [7; 32])?);
/// let link = AnswerLink::new(RequestId::new("human-1")?, Timestamp::from_millis(1_796_000_000_000)).choice("approve");
/// assert!(links.answer_link(&link).starts_with("https://app.example/answers/human-1?"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AnswerLinks {
    base: String,
    key: LinkKey,
    /// Keys that still count and no longer sign.
    older: Vec<LinkKey>,
}

/// What a link is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerLink {
    /// The question.
    pub request_id: RequestId,
    /// The option that it answers with; without one, the page asks.
    pub choice: Option<String>,
    /// Until when it can be used, by the store's clock. The question's own deadline counts as well.
    pub expires: Timestamp,
    /// Whom it is sent to, kept with the answer.
    pub actor: Option<String>,
}

impl AnswerLink {
    /// A link whose page asks for the answer.
    pub fn new(request_id: RequestId, expires: Timestamp) -> Self {
        Self { request_id, choice: None, expires, actor: None }
    }

    /// Answers with this option.
    #[must_use]
    pub fn choice(mut self, id: impl Into<String>) -> Self {
        self.choice = Some(id.into());
        self
    }

    /// Names whom it is sent to.
    #[must_use]
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = Some(actor.into());
        self
    }
}

impl AnswerLinks {
    /// Links below this address, which leads to [`Http::answer_page`](crate::Http::answer_page), signed with this key.
    pub fn new(base: impl Into<String>, key: LinkKey) -> Self {
        let base: String = base.into();
        Self { base: base.trim_end_matches('/').to_owned(), key, older: Vec::new() }
    }

    /// Takes links that this key signed, too: for as long as they live after another took its place.
    #[must_use]
    pub fn accepting(mut self, older: LinkKey) -> Self {
        self.older.push(older);
        self
    }

    /// The address to send.
    pub fn answer_link(&self, link: &AnswerLink) -> String {
        let id: String = form_urlencoded::byte_serialize(link.request_id.as_str().as_bytes()).collect();
        format!("{}/{}?{}", self.base, id.replace('+', "%20"), self.key.sign(link))
    }

    /// What an address is for, if we signed it.
    pub(crate) fn read(&self, request_id: RequestId, query: &str) -> Option<AnswerLink> {
        let claim = Claim::read(request_id, query)?;
        let key = std::iter::once(&self.key).chain(&self.older).find(|key| key.id() == claim.key)?;
        key.verify(claim)
    }
}

impl fmt::Debug for AnswerLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerLinks").field("base", &self.base).field("key", &self.key).finish_non_exhaustive()
    }
}
