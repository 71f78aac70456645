//! What a page's form sends.

use kortyx_protocol::{InterruptInput, InterruptKind, ResumeResponse};

/// The answer of a form.
pub(crate) fn response(input: &InterruptInput, body: &[u8]) -> ResumeResponse {
    let mut fields = form_urlencoded::parse(body);
    if input.kind == InterruptKind::Text {
        let text = fields.find(|(name, _)| name == "text").map(|(_, value)| value.into_owned());
        return ResumeResponse::text(text.unwrap_or_default());
    }
    ResumeResponse::select(fields.filter(|(name, _)| name == "choice").map(|(_, value)| value.into_owned()))
}
