//! Values without what nobody but the tool should see.

use serde_json::Value;

/// What stands in place of what is hidden.
const HIDDEN: &str = "[redacted]";

/// The value without what is at these JSON pointers.
pub(crate) fn redacted(value: &Value, pointers: &[String]) -> Value {
    let mut value = value.clone();
    for pointer in pointers {
        if let Some(place) = value.pointer_mut(pointer) {
            *place = Value::from(HIDDEN);
        }
    }
    value
}

/// Puts back what was hidden from the person who edited the value.
pub(super) fn restored(edited: &Value, original: &Value, pointers: &[String]) -> Value {
    let mut edited = edited.clone();
    for pointer in pointers {
        let hidden = original.pointer(pointer);
        if let (Some(place), Some(hidden)) = (edited.pointer_mut(pointer), hidden)
            && place.as_str() == Some(HIDDEN)
        {
            place.clone_from(hidden);
        }
    }
    edited
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_hidden_from_an_editor_comes_back_unless_it_was_changed() {
        let (original, hidden) =
            (json!({"card": {"pin": 12}, "to": "Ann"}), ["/card/pin".to_owned(), "/none".to_owned()]);
        let shown = redacted(&original, &hidden);
        assert_eq!(shown, json!({"card": {"pin": "[redacted]"}, "to": "Ann"}));
        let edited = json!({"card": {"pin": "[redacted]"}, "to": "Bob"});
        assert_eq!(restored(&edited, &original, &hidden), json!({"card": {"pin": 12}, "to": "Bob"}));
        let changed = json!({"card": {"pin": 34}, "to": "Bob"});
        assert_eq!(restored(&changed, &original, &hidden), changed);
    }
}
