//! Variant names as words.

/// `InReview` → `in_review`, `HTTPError` → `http_error`, `V2Beta` → `v2_beta`.
pub(crate) fn snake_case(name: &str) -> String {
    words(name).join("_")
}

/// `InReview` → `In review`.
pub(crate) fn sentence(name: &str) -> String {
    let text = words(name).join(" ");
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The name's words in lower case. A word starts at an upper-case letter that follows a lower-case one or a digit, at the
/// last upper-case letter of a run that a lower-case one follows, and after an underscore.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for (index, &letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| letters.get(index));
        let after = letters.get(index + 1);
        let starts = letter.is_uppercase()
            && before.is_some_and(|before| !before.is_uppercase() || after.is_some_and(|after| after.is_lowercase()));
        if (starts || letter == '_') && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter != '_' {
            word.extend(letter.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{sentence, snake_case};

    #[test]
    fn names_become_snake_case_at_word_borders() {
        for (name, id) in [
            ("Approve", "approve"),
            ("InReview", "in_review"),
            ("HTTPError", "http_error"),
            ("V2Beta", "v2_beta"),
            ("Already_Snake", "already_snake"),
            ("A", "a"),
            ("AB", "ab"),
            ("Über", "über"),
        ] {
            assert_eq!(snake_case(name), id);
        }
    }

    #[test]
    fn names_become_sentences_with_one_capital() {
        assert_eq!(sentence("AskLegalTeam"), "Ask legal team");
        assert_eq!(sentence("No"), "No");
    }
}
