//! What may surround the JSON.

use serde_json::Value;

/// How many references and alternatives of a schema are followed.
const MAX_STEPS: u32 = 32;

/// What may surround the JSON in a text.
///
/// White space is tolerated everywhere, and a byte order mark at the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrapping {
    /// Nothing: the text is one value of any kind, as the arguments of a call are.
    Bare,
    /// A Markdown code fence, or nothing: for values of any kind in a model's text.
    Fenced,
    /// Prose and code fences around one object.
    ///
    /// The object begins at the first `{` of the text, or after prose at the first one that a `"` or `}` follows, so `{name}` in
    /// a sentence is none. What follows the object is not read, but for another one: that is refused, since models that
    /// change their mind write a second version behind the first.
    AroundObject,
    /// Prose and code fences around one array, which begins where a value or `]` follows the `[`; else as for an object.
    AroundArray,
}

impl Wrapping {
    /// What to tolerate around values of a JSON Schema in a model's text: prose where all of them are objects, or all
    /// arrays, and a code fence otherwise.
    ///
    /// ```
    /// use kortyx_reason::partial::Wrapping;
    /// use serde_json::json;
    ///
    /// assert_eq!(Wrapping::for_schema(&json!({"type": "object"})), Wrapping::AroundObject);
    /// assert_eq!(Wrapping::for_schema(&json!({"type": ["object", "null"]})), Wrapping::Fenced);
    /// ```
    pub fn for_schema(schema: &Value) -> Self {
        match root_type(schema, schema, &mut MAX_STEPS.clone()) {
            Some("object") => Self::AroundObject,
            Some("array") => Self::AroundArray,
            _ => Self::Fenced,
        }
    }

    /// The byte that begins a document in prose.
    pub(super) fn opening(self) -> Option<char> {
        match self {
            Self::Bare | Self::Fenced => None,
            Self::AroundObject => Some('{'),
            Self::AroundArray => Some('['),
        }
    }
}

/// The one type that all values of a schema have.
fn root_type<'a>(schema: &'a Value, root: &'a Value, steps: &mut u32) -> Option<&'a str> {
    *steps = steps.checked_sub(1)?;
    if let Some(name) = schema.get("type") {
        return name.as_str();
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return root_type(root.pointer(reference.strip_prefix('#')?)?, root, steps);
    }
    let alternatives = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let mut types = alternatives.iter().map(|one| root_type(one, root, steps));
    let first = types.next()??;
    types.all(|one| one == Some(first)).then_some(first)
}

/// Finds where a document begins in prose.
#[derive(Debug)]
pub(super) struct Search {
    opening: char,
    /// The last opening byte, when only white space followed it.
    candidate: Option<usize>,
}

impl Search {
    pub(super) fn new(opening: char) -> Self {
        Self { opening, candidate: None }
    }

    /// Takes the character at an offset. Tells where a document begins, when that is certain with it.
    pub(super) fn take(&mut self, character: char, at: usize) -> Option<usize> {
        if let Some(candidate) = self.candidate
            && self.is_plausible(character)
        {
            return Some(candidate);
        }
        if character == self.opening {
            self.candidate = Some(at);
        } else if !is_space(character) {
            self.candidate = None;
        }
        None
    }

    /// Whether a document may have begun with the last character.
    pub(super) fn has_candidate(&self) -> bool {
        self.candidate.is_some()
    }

    /// Whether this may follow the opening byte.
    fn is_plausible(&self, character: char) -> bool {
        match self.opening {
            '{' => matches!(character, '"' | '}'),
            _ => matches!(character, '{' | '[' | '"' | ']' | '-' | 't' | 'f' | 'n') || character.is_ascii_digit(),
        }
    }
}

/// White space in JSON.
pub(super) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_schema_tells_what_surrounds_its_values() {
        let object = json!({"type": "object"});
        for (schema, wrapping) in [
            (object.clone(), Wrapping::AroundObject),
            (json!({"type": "array"}), Wrapping::AroundArray),
            (json!({"type": "string"}), Wrapping::Fenced),
            (json!({"oneOf": [object, {"type": "object"}]}), Wrapping::AroundObject),
            (json!({"anyOf": [object, {"type": "null"}]}), Wrapping::Fenced),
            (json!({"anyOf": []}), Wrapping::Fenced),
            (json!({"$ref": "#/$defs/Card", "$defs": {"Card": object}}), Wrapping::AroundObject),
            (json!({"$ref": "#"}), Wrapping::Fenced),
            (json!({"$ref": "elsewhere"}), Wrapping::Fenced),
            (json!({"oneOf": vec![json!({"oneOf": vec![object.clone(); 40]}); 40]}), Wrapping::Fenced),
            (json!(true), Wrapping::Fenced),
        ] {
            assert_eq!(Wrapping::for_schema(&schema), wrapping, "{schema}");
        }
    }
}
