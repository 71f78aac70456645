//! Names of tools that fit the rules for ours.

use kortyx_protocol::json;

use super::digest::digest;

/// Longest name of a tool.
const MAX_NAME: usize = 64;

/// How many digits of a digest keep two long names apart that begin alike.
const DIGITS: usize = 8;

/// The name in letters, digits, `_` and `-`, no longer than a tool's may be, and none that is reserved.
///
/// A server may name its tools `files/read` or `files.read`; models may not.
pub(super) fn fitting(name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let mut fitting: String = name.chars().map(|letter| if fits(letter) { letter } else { '_' }).collect();
    if fitting.is_empty() || fitting.starts_with("kortyx_") {
        fitting.insert_str(0, "mcp_");
    }
    if fitting.len() > MAX_NAME {
        let digest = digest(&json::canonical(name).unwrap_or_default());
        fitting.truncate(MAX_NAME - DIGITS - 1);
        fitting.push('_');
        fitting.extend(digest.chars().take(DIGITS));
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn a_name_fits_and_stays_what_it_is_where_it_can() {
        assert_eq!(fitting("read_file-2"), "read_file-2");
        assert_eq!(fitting("files/read.größe"), "files_read_gr__e");
        assert_eq!(fitting("kortyx_request_input__x"), "mcp_kortyx_request_input__x");
        assert_eq!(fitting(""), "mcp_");
        let (one, other) = (fitting(&format!("{}1", "x".repeat(80))), fitting(&format!("{}2", "x".repeat(80))));
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
    }
}
