//! How deep JSON is nested, told without recursion into what is too deep.

use serde_json::Value;

/// Whether a value is nested at most `levels` deep; a scalar has no level.
pub(crate) fn value_fits(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| value_fits(item, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|field| value_fits(field, levels - 1)),
        _ => true,
    }
}

/// How many levels of arrays and objects a JSON text has.
pub(crate) fn text_depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{text_depth, value_fits};

    #[test]
    fn depth_counts_arrays_and_objects_and_not_what_strings_hold() {
        for (value, depth) in [
            (json!(null), 0),
            (json!("[[{\"\\"), 0),
            (json!([]), 1),
            (json!({"a": [1, {"[": "]\\\""}], "b": 2}), 3),
            (json!([[[]], []]), 3),
        ] {
            assert_eq!(text_depth(&value.to_string()), depth, "{value}");
            assert!(value_fits(&value, depth), "{value}");
            assert!(depth == 0 || !value_fits(&value, depth - 1), "{value}");
        }
    }

    #[test]
    fn a_value_of_any_depth_is_judged_without_overflowing_the_stack() {
        let mut deep = Value::Null;
        for _ in 0..200_000 {
            deep = Value::Array(vec![deep]);
        }
        assert!(!value_fits(&deep, 100));
        while let Value::Array(mut items) = deep {
            deep = items.pop().unwrap_or_default();
        }
    }
}
