//! What is taken out of captured content before it leaves the process.

use std::{fmt, sync::Arc};

use kortyx_protocol::RawJson;
use serde_json::{Map, Value};

/// What stands where content was taken out.
const REDACTED: &str = "[redacted]";

/// How often JSON is looked for within strings within JSON.
const MAX_NESTED: u8 = 4;

/// A key that holds one of these, without its separators and in lower case, holds a credential.
const CREDENTIALS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "authorization",
    "authentication",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "credential",
    "cookie",
    "bearer",
    "sessionid",
    "connectionstring",
];

/// Keys that are too short to be looked for within others.
const CREDENTIALS_ALONE: &[&str] = &["auth", "pwd", "pin", "otp", "jwt", "cvc", "cvv", "dsn"];

type Decides = dyn Fn(&str, Option<&str>) -> bool + Send + Sync;

/// What of captured content does not leave the process.
///
/// Fields whose keys look like credentials (`password`, `api_key`, `Set-Cookie`, `accessToken`, …) are always dropped with their keys, in
/// JSON within strings too, and so is the `value` beside such a `name` or `key`. More is taken out by key, by place or by a function, and
/// `"[redacted]"` stands in its place.
///
/// A place is a JSON pointer into one piece of content (an input, an output, an answer, the request of a question), where a `*` stands for
/// any one step.
///
/// ```
/// use kortyx_protocol::RawJson;
/// use kortyx_telemetry::Redaction;
///
/// let redaction = Redaction::new().key("iban").pointer("/people/*/name");
/// let content = RawJson::parse(r#"{"people":[{"name":"Ada","city":"London"}],"IBAN":"DE02","apiKey":"k"}"#)?;
/// let shown = redaction.apply(&content).expect("it is readable");
/// assert_eq!(shown, serde_json::json!({"people": [{"name": "[redacted]", "city": "London"}], "IBAN": "[redacted]"}));
/// # Ok::<(), kortyx_protocol::JsonError>(())
/// ```
#[derive(Clone, Default)]
pub struct Redaction {
    keys: Vec<String>,
    pointers: Vec<String>,
    functions: Vec<Arc<Decides>>,
}

impl Redaction {
    /// Credentials only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes out the fields of this name, whatever their case and separators.
    #[must_use]
    pub fn key(mut self, name: &str) -> Self {
        self.keys.push(plain(name));
        self
    }

    /// Takes out what is at this JSON pointer. `""` is the whole.
    #[must_use]
    pub fn pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointers.push(pointer.into());
        self
    }

    /// Takes out what this function says: it is given the JSON pointer of each value, and its key where it is a field. One that panics has
    /// its content left out.
    #[must_use]
    pub fn when(mut self, decides: impl Fn(&str, Option<&str>) -> bool + Send + Sync + 'static) -> Self {
        self.functions.push(Arc::new(decides));
        self
    }

    /// What is left of a piece of content; `None` when it cannot be read exactly.
    pub fn apply(&self, content: &RawJson) -> Option<Value> {
        let mut value = content.to_value().ok()?;
        self.visit(&mut value, &mut String::new(), None, 0);
        Some(value)
    }

    fn visit(&self, value: &mut Value, at: &mut String, key: Option<&str>, nested: u8) {
        if self.takes_out(at, key) {
            *value = Value::from(REDACTED);
            return;
        }
        match value {
            Value::Object(fields) => self.visit_fields(fields, at, nested),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    below(at, &index.to_string(), |at| self.visit(item, at, None, nested));
                }
            }
            Value::String(text) => self.visit_text(text, at, nested),
            _ => {}
        }
    }

    fn visit_fields(&self, fields: &mut Map<String, Value>, at: &mut String, nested: u8) {
        let names_credential = ["name", "key"].iter().any(|label| {
            let name =
                fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(label)).and_then(|(_, name)| name.as_str());
            name.is_some_and(is_credential)
        });
        let goes = |key: &str| is_credential(key) || (names_credential && key.eq_ignore_ascii_case("value"));
        fields.retain(|key, _| !goes(key));
        for (key, field) in fields.iter_mut() {
            below(at, key, |at| self.visit(field, at, Some(key), nested));
        }
    }

    /// A string may hold JSON: arguments of tools often do.
    fn visit_text(&self, text: &mut String, at: &mut String, nested: u8) {
        if !text.trim_start().starts_with(['{', '[', '"']) {
            return;
        }
        let Ok(mut inner) = serde_json::from_str::<Value>(text) else { return };
        if nested >= MAX_NESTED {
            REDACTED.clone_into(text);
            return;
        }
        let before = inner.clone();
        self.visit(&mut inner, at, None, nested.saturating_add(1));
        if inner != before {
            *text = inner.to_string();
        }
    }

    fn takes_out(&self, at: &str, key: Option<&str>) -> bool {
        let by_key = key.is_some_and(|key| self.keys.contains(&plain(key)));
        by_key
            || self.pointers.iter().any(|pointer| fits(pointer, at))
            || self.functions.iter().any(|decides| decides(at, key))
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Redaction");
        shown.field("keys", &self.keys).field("pointers", &self.pointers).field("functions", &self.functions.len());
        shown.finish()
    }
}

/// One step further in a JSON pointer, and back.
fn below(at: &mut String, step: &str, visit: impl FnOnce(&mut String)) {
    let length = at.len();
    at.push('/');
    at.push_str(&step.replace('~', "~0").replace('/', "~1"));
    visit(at);
    at.truncate(length);
}

fn fits(pointer: &str, at: &str) -> bool {
    let (mut wanted, mut steps) = (pointer.split('/'), at.split('/'));
    loop {
        match (wanted.next(), steps.next()) {
            (None, None) => return true,
            (Some(wanted), Some(step)) if wanted == "*" || wanted == step => {}
            _ => return false,
        }
    }
}

/// A key without separators, in lower case.
fn plain(key: &str) -> String {
    key.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn is_credential(key: &str) -> bool {
    let key = plain(key);
    CREDENTIALS_ALONE.contains(&key.as_str()) || CREDENTIALS.iter().any(|word| key.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(redaction: &Redaction, content: &Value) -> Value {
        redaction.apply(&RawJson::of(content).unwrap()).unwrap()
    }

    #[test]
    fn credentials_are_dropped_whatever_the_case_and_the_separators() {
        for key in [
            "password",
            "PASSWORD",
            "user_password",
            "client-secret",
            "clientSecret",
            "access_token",
            "resumeToken",
            "Authorization",
            "Proxy-Authorization",
            "api_key",
            "API-Key",
            "X-Api-Key",
            "apikey",
            "Set-Cookie",
            "cookies",
            "private key",
            "Auth",
            "p.i.n",
        ] {
            let content = json!({"deep": [{key: {"any": "planted"}, "kept": 1}]});
            assert_eq!(shown(&Redaction::new(), &content), json!({"deep": [{"kept": 1}]}), "{key}");
        }
    }

    #[test]
    fn what_only_resembles_a_credential_is_kept() {
        let content = json!({"author": "Ada", "pinned": true, "spin": 1, "key": "a", "value": "b", "name": "c"});
        assert_eq!(shown(&Redaction::new(), &content), content);
    }

    #[test]
    fn json_within_strings_is_searched_too() {
        let inner = json!({"api_key": "planted", "city": "Oslo"}).to_string();
        let content = json!({"arguments": json!({"call": inner}).to_string()});
        let text = shown(&Redaction::new(), &content).to_string();
        assert!(!text.contains("planted") && text.contains("Oslo"), "{text}");
        let twice = json!(json!(json!({"api_key": "planted"}).to_string()).to_string());
        assert!(!shown(&Redaction::new(), &twice).to_string().contains("planted"));
    }

    #[test]
    fn json_too_deep_within_strings_is_taken_out() {
        let mut text = json!({"password": "planted"}).to_string();
        for _ in 0..6 {
            text = json!([text]).to_string();
        }
        assert!(!shown(&Redaction::new(), &json!(text)).to_string().contains("planted"));
    }

    #[test]
    fn the_value_beside_the_name_of_a_credential_is_dropped() {
        let content = json!([{"name": "Authorization", "value": "planted"}, {"key": "city", "value": "Oslo"}]);
        let left = json!([{"name": "Authorization"}, {"key": "city", "value": "Oslo"}]);
        assert_eq!(shown(&Redaction::new(), &content), left);
    }

    #[test]
    fn a_key_a_place_and_a_function_each_take_out() {
        let redaction = Redaction::new()
            .key("card_number")
            .pointer("/people/*/name")
            .pointer("/a~1b")
            .when(|pointer, key| key == Some("note") && pointer.starts_with("/people"));
        let content = json!({"cardNumber": 1, "people": [{"name": "Ada", "note": {}}], "note": 2, "a/b": 3, "a": 4});
        let left = json!({
            "cardNumber": "[redacted]",
            "people": [{"name": "[redacted]", "note": "[redacted]"}],
            "note": 2,
            "a/b": "[redacted]",
            "a": 4,
        });
        assert_eq!(shown(&redaction, &content), left);
        assert_eq!(shown(&Redaction::new().pointer(""), &content), json!("[redacted]"));
    }

    #[test]
    fn the_deepest_content_fits_on_a_small_stack() {
        let mut text = "{}".to_owned();
        for _ in 0..5 {
            text = format!("{}{}{}", "[".repeat(120), json!(text), "]".repeat(120));
        }
        let look = || Redaction::new().apply(&RawJson::parse(&text).unwrap());
        std::thread::scope(|scope| {
            let small = std::thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, look);
            assert!(small.unwrap().join().unwrap().is_some());
        });
    }
}
