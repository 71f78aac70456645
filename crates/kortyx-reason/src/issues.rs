//! What is wrong with a value, in words for a model.

use kortyx_protocol::Issue;

/// One line for each.
pub(crate) fn listed(issues: &[Issue]) -> String {
    let lines = issues.iter().map(|issue| match issue.path.as_str() {
        "" => issue.message.clone(),
        path => format!("{path}: {}", issue.message),
    });
    lines.collect::<Vec<_>>().join("\n")
}
