//! The rules for names of workflows, nodes, versions and conditions, and the search for the name that was meant.

/// The longest name that is accepted, in characters.
pub(super) const MAX_NAME_CHARS: usize = 128;

/// Says which rule a workflow id or node name breaks.
///
/// `$` and `__` are kept for names that the library itself gives, such as [`END`](super::END).
pub(super) fn check_name(name: &str) -> Result<(), &'static str> {
    check_label(name)?;
    if name.starts_with('$') || name.starts_with("__") {
        return Err("it starts with `$` or `__`, which are reserved: choose another first character");
    }
    Ok(())
}

/// Says which rule a version or a condition breaks.
pub(super) fn check_label(label: &str) -> Result<(), &'static str> {
    if label.trim().is_empty() {
        return Err("it is blank: give it at least one visible character");
    }
    if label.chars().nth(MAX_NAME_CHARS).is_some() {
        return Err("it is longer than 128 characters: shorten it");
    }
    if label.chars().any(char::is_control) {
        return Err("it contains a control character, such as a line break: remove it");
    }
    Ok(())
}

/// The known name closest to `wanted`, if one is close enough to be a slip of the hand.
pub(super) fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = wanted.chars().count().div_ceil(3);
    known
        .into_iter()
        .map(|name| (distance(&wanted.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(edits, _)| *edits <= limit)
        .min()
        .map(|(_, name)| name)
}

/// The Levenshtein distance: insertions, deletions and substitutions that turn one text into the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (deleted, have) in from.chars().enumerate() {
        let mut left = deleted + 1;
        let mut next = vec![left];
        for (pair, want) in row.windows(2).zip(&to) {
            let &[diagonal, above] = pair else { continue };
            left = (diagonal + usize::from(have != *want)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// A name as it appears in messages: quoted, escaped, and cut when it is very long.
pub(super) fn shown(name: &str) -> String {
    let mut text: String = name.chars().take(64).flat_map(char::escape_debug).collect();
    if name.chars().nth(64).is_some() {
        text.push('…');
    }
    format!("`{text}`")
}

/// Names as they appear in messages: the first few, and how many more there are.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let mut text = names.iter().take(10).map(|name| shown(name)).collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(10).filter(|more| *more > 0) {
        text = format!("{text} and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_to_128_characters_are_accepted() {
        assert_eq!(check_name("a"), Ok(()));
        assert_eq!(check_name(&"ä".repeat(128)), Ok(()));
        assert!(check_name(&"ä".repeat(129)).is_err());
    }

    #[test]
    fn blank_reserved_and_control_names_are_refused() {
        for name in ["", "  ", "$input", "__end__", "a\nb", "a\0"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert_eq!(check_label("$5 or less"), Ok(()));
    }

    #[test]
    fn the_nearest_name_is_the_one_with_the_fewest_edits() {
        assert_eq!(nearest("reveiw", ["draft", "review", "publish"]), Some("review"));
        assert_eq!(nearest("Draft", ["draft", "raft"]), Some("draft"));
        assert_eq!(nearest("zzz", ["draft", "review"]), None);
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn long_lists_and_names_are_cut_in_messages() {
        let names: Vec<String> = (0..12).map(|n| format!("n{n}")).collect();
        assert!(listed(names.iter().map(String::as_str)).ends_with("`n9` and 2 more"));
        assert_eq!(shown("a\nb"), "`a\\nb`");
        assert_eq!(shown(&"x".repeat(100)).chars().count(), 67);
    }
}
