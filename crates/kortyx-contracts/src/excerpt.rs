//! Texts from outside, cut to what a message may repeat.

/// Most characters of a foreign text that a message repeats.
const MAX_CHARS: usize = 80;

/// Most characters of what a library says about a foreign value.
pub(crate) const MAX_REASON_CHARS: usize = 300;

/// The text, or its beginning when it is long.
pub(crate) fn excerpt(text: &str) -> String {
    cut(text, MAX_CHARS)
}

/// The text, or its first `limit` characters and an ellipsis.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + "…",
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("😀😀😀", 2), "😀😀…");
        assert_eq!(cut("😀😀", 2), "😀😀");
        assert_eq!(cut("", 0), "");
    }
}
