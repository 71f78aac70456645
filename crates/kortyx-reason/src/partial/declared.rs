//! Whether the values of a schema can have a declared field.

use serde_json::Value;

use super::{Field, FieldError, field::Mode};

/// How many references and alternatives of a schema are followed for one path.
const MAX_STEPS: u32 = 1_000;

impl Field {
    /// Refuses a path that the values of a JSON Schema do not have, and a way to tell that they never allow.
    ///
    /// Keys count when the schema names them or says what others hold; where it says nothing about a place, anything may be there.
    pub fn check_in(&self, schema: &Value) -> Result<(), FieldError> {
        let mut steps = MAX_STEPS;
        let mut places = vec![schema];
        let mut walked = String::new();
        for segment in self.path().split('.') {
            let mut next = Vec::new();
            for place in places {
                below(place, segment, schema, &mut steps, &mut next);
            }
            if !walked.is_empty() {
                walked.push('.');
            }
            walked.push_str(segment);
            if next.is_empty() {
                return Err(FieldError::Unknown { path: self.path().to_owned(), at: walked });
            }
            places = next;
        }
        let (kind, expected) = match self.mode() {
            Mode::Set => return Ok(()),
            Mode::TextDelta => ("string", "a string"),
            Mode::Append => ("array", "an array"),
        };
        if places.iter().any(|place| allows(place, kind, schema, &mut steps)) {
            return Ok(());
        }
        Err(FieldError::Kind { path: self.path().to_owned(), expected })
    }
}

/// What a schema may consist of.
fn parts<'a>(schema: &'a Value, root: &'a Value) -> impl Iterator<Item = &'a Value> {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
    let referred = reference.and_then(|pointer| root.pointer(pointer));
    let lists = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
    referred.into_iter().chain(lists.flatten())
}

/// The schemas of what is at a segment.
fn below<'a>(schema: &'a Value, segment: &str, root: &'a Value, steps: &mut u32, found: &mut Vec<&'a Value>) {
    let Some(left) = steps.checked_sub(1) else { return };
    *steps = left;
    if is_open(schema) {
        found.push(schema);
        return;
    }
    if segment == "*" {
        found.extend(schema.get("items").filter(|items| items.as_bool() != Some(false)));
        found.extend(schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten());
    } else if let Some(property) = schema.get("properties").and_then(|properties| properties.get(segment)) {
        found.push(property);
    } else {
        found.extend(schema.get("additionalProperties").filter(|others| others.as_bool() != Some(false)));
        found.extend(
            schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(|some| some.values()),
        );
    }
    for part in parts(schema, root) {
        below(part, segment, root, steps, found);
    }
}

/// Whether it says nothing about what is there.
fn is_open(schema: &Value) -> bool {
    let says = [
        "type",
        "properties",
        "items",
        "prefixItems",
        "additionalProperties",
        "patternProperties",
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
        "enum",
        "const",
    ];
    match schema {
        Value::Bool(anything) => *anything,
        Value::Object(schema) => !says.iter().any(|key| schema.contains_key(*key)),
        _ => false,
    }
}

/// Whether values of this kind are among those of a schema.
fn allows(schema: &Value, kind: &str, root: &Value, steps: &mut u32) -> bool {
    let Some(left) = steps.checked_sub(1) else { return false };
    *steps = left;
    match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ if is_open(schema) => true,
        _ => {
            let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const"));
            let is_kind = |value: &Value| if kind == "string" { value.is_string() } else { value.is_array() };
            values.into_iter().any(is_kind) || parts(schema, root).any(|part| allows(part, kind, root, steps))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "title": {"type": ["string", "null"]},
                "kind": {"enum": ["a", "b"]},
                "stars": {"type": "integer"},
                "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
                "more": {"type": "object", "additionalProperties": {"type": "string"}},
                "any": true,
            },
            "$defs": {"Row": {"anyOf": [
                {"type": "object", "properties": {"text": {"type": "string"}}},
                {"type": "object", "properties": {"row": {"$ref": "#/$defs/Row"}}},
                {"type": "null"},
            ]}},
        })
    }

    #[test]
    fn a_path_that_values_may_have_is_accepted() {
        for field in [
            Field::set("stars"),
            Field::text_delta("title"),
            Field::text_delta("kind"),
            Field::append("rows"),
            Field::text_delta("rows.*.text"),
            Field::text_delta("rows.*.row.row.text"),
            Field::text_delta("more.whatever"),
            Field::append("any.thing.*.at"),
        ] {
            assert_eq!(field.check_in(&schema()), Ok(()), "{field:?}");
        }
    }

    #[test]
    fn a_path_that_no_value_has_is_named_with_where_it_leaves_the_schema() {
        for (path, at) in [
            ("titel", "titel"),
            ("rows.*.txt", "rows.*.txt"),
            ("rows.text", "rows.text"),
            ("stars.*", "stars.*"),
            ("rows.*.row.rwo.text", "rows.*.row.rwo"),
        ] {
            let error = FieldError::Unknown { path: path.into(), at: at.into() };
            assert_eq!(Field::set(path).check_in(&schema()), Err(error));
        }
    }

    #[test]
    fn a_way_to_tell_that_values_never_allow_is_refused() {
        let error = FieldError::Kind { path: "stars".into(), expected: "a string" };
        assert_eq!(Field::text_delta("stars").check_in(&schema()), Err(error));
        let error = FieldError::Kind { path: "title".into(), expected: "an array" };
        assert_eq!(Field::append("title").check_in(&schema()), Err(error));
    }

    #[test]
    fn a_schema_that_refers_to_itself_for_ever_is_left() {
        let schema =
            json!({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]}}});
        assert!(Field::set("a").check_in(&schema).is_err());
    }
}
