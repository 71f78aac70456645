//! The pages of answer links: plain HTML, without script and without anything from elsewhere.

use std::fmt::Write as _;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use kortyx_protocol::{InterruptInput, InterruptKind};

/// What keeps a page from being framed, kept, followed or made to load anything.
const HEADERS: [(HeaderName, &str); 8] = [
    (header::CONTENT_TYPE, "text/html; charset=utf-8"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// A page: a title, and below it what is already HTML.
pub(crate) struct Page {
    status: StatusCode,
    title: String,
    body: String,
}

impl Page {
    /// Says something.
    pub(crate) fn saying(status: StatusCode, title: &str, text: &str) -> Self {
        Self { status, title: title.to_owned(), body: format!("<p>{}</p>", escape(text)) }
    }

    /// Asks whether to answer with this option, or, without one, for the answer. `None`: it cannot be asked on a page.
    pub(crate) fn asking(input: &InterruptInput, choice: Option<&str>, notes: &[String]) -> Option<Self> {
        let mut body = String::new();
        for note in notes {
            let _ = write!(body, "<p role=\"alert\">{}</p>", escape(note));
        }
        body.push_str("<form method=\"post\">");
        match choice {
            Some(id) => {
                let option = input.options.iter().find(|option| option.id == id);
                let label = option.map_or(id, |option| option.label.as_str());
                let _ = write!(body, "<p>Your answer: <strong>{}</strong></p>", escape(label));
            }
            None => body.push_str(&fields(input)?),
        }
        body.push_str("<p><button type=\"submit\">Send this answer</button></p></form>");
        let title = input.question.as_deref().unwrap_or("A question for you").to_owned();
        Some(Self { status: StatusCode::OK, title, body })
    }

    #[must_use]
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn into_response(self) -> Response {
        let title = escape(&self.title);
        let html = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title}</title></head><body><main><h1>{title}</h1>{}</main></body></html>",
            self.body
        );
        let mut response = Response::new(Body::from(html));
        *response.status_mut() = self.status;
        for (name, value) in HEADERS {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

fn fields(input: &InterruptInput) -> Option<String> {
    let kind = match input.kind {
        InterruptKind::Text => {
            let field = "<p><label>Your answer<br><textarea name=\"text\" rows=\"5\" cols=\"40\" required></textarea></label></p>";
            return Some(field.to_owned());
        }
        InterruptKind::Choice => "radio",
        InterruptKind::MultiChoice => "checkbox",
        _ => return None,
    };
    if input.options.is_empty() {
        return None;
    }
    let mut fields = "<fieldset><legend>Your answer</legend>".to_owned();
    for option in &input.options {
        let (id, label) = (escape(&option.id), escape(&option.label));
        let _ = write!(fields, "<p><label><input type=\"{kind}\" name=\"choice\" value=\"{id}\"> {label}</label>");
        if let Some(description) = &option.description {
            let _ = write!(fields, "<br><small>{}</small>", escape(description));
        }
        fields.push_str("</p>");
    }
    fields.push_str("</fieldset>");
    Some(fields)
}

/// Text as it stands in HTML, also within a quoted attribute.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_text_or_an_attribute() {
        assert_eq!(escape(r#"<a href="x" b='y'>&"#), "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;");
    }
}
