//! Texts from outside, made short enough for messages.

/// At most this many characters of a foreign text appear in a message.
const SHOWN: usize = 80;

/// The text, or its beginning and an ellipsis.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shorten("path"), "path");
        assert_eq!(shorten(&"é".repeat(81)), format!("{}…", "é".repeat(80)));
        assert_eq!(shorten(&"é".repeat(80)), "é".repeat(80));
    }
}
