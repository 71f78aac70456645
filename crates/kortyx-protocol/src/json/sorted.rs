//! The canonical writer.

use serde_json::Value;

/// The value's text with keys sorted by their bytes and without white space.
pub(super) fn write(value: &Value) -> String {
    let mut text = String::new();
    push(&mut text, value);
    text
}

fn push(text: &mut String, value: &Value) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(text, index);
                push(text, item);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (index, (key, field)) in fields.into_iter().enumerate() {
                separate(text, index);
                push_scalar(text, &Value::from(key.as_str()));
                text.push(':');
                push(text, field);
            }
            text.push('}');
        }
        scalar => push_scalar(text, scalar),
    }
}

fn separate(text: &mut String, index: usize) {
    if index > 0 {
        text.push(',');
    }
}

fn push_scalar(text: &mut String, scalar: &Value) {
    text.push_str(&scalar.to_string());
}
