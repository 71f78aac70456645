//! From what the validator finds to issues that a person can act on.

use jsonschema::{ErrorIterator, ValidationError, error::ValidationErrorKind};
use kortyx_protocol::Issue;

use crate::{
    excerpt::{MAX_REASON_CHARS, cut},
    limits::MAX_ISSUES,
};

/// Most characters of a path; the rest of a longer one is cut.
const MAX_PATH_CHARS: usize = 512;

/// The first issues, up to the limit.
pub(crate) fn all(errors: ErrorIterator<'_>) -> Vec<Issue> {
    let mut issues = Vec::new();
    for error in errors {
        collect(&error, &mut issues);
        if issues.len() >= MAX_ISSUES {
            break;
        }
    }
    issues
}

/// Adds what one error says. Of a union it says what is wrong with the variant that was meant, when that is plain.
fn collect(error: &ValidationError<'_>, issues: &mut Vec<Issue>) {
    if issues.len() >= MAX_ISSUES {
        return;
    }
    match meant_variant(error) {
        Some(errors) => errors.iter().for_each(|error| collect(error, issues)),
        None => issues.push(issue(error)),
    }
}

fn issue(error: &ValidationError<'_>) -> Issue {
    let mut path = error.instance_path().to_string();
    if let ValidationErrorKind::Required { property } = error.kind() {
        path.push('/');
        path.push_str(&property.as_str().unwrap_or_default().replace('~', "~0").replace('/', "~1"));
    }
    let message = error.masked_with("the value").to_string();
    Issue::new(cut(&path, MAX_PATH_CHARS), error.kind().keyword(), cut(&message, MAX_REASON_CHARS))
}

/// The errors of the variant that is clearly nearer to the value than every other.
fn meant_variant<'a>(error: &'a ValidationError<'_>) -> Option<&'a [ValidationError<'static>]> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) = error.kind() else {
        return None;
    };
    let root = error.instance_path().as_str().len();
    let mut ranked: Vec<_> = context.iter().map(|errors| (distance(errors, root), errors.as_slice())).collect();
    ranked.sort_by_key(|&(distance, _)| distance);
    match ranked.as_slice() {
        [(Distance { another: 0, .. }, errors)] => Some(errors),
        [(nearest @ Distance { another: 0, .. }, errors), (second, _), ..] if nearest < second => Some(errors),
        _ => None,
    }
}

/// How far a value is from a variant: errors that say it is another variant, then missing or unknown fields, then the rest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Distance {
    another: usize,
    fields: usize,
    rest: usize,
}

fn distance(errors: &[ValidationError<'static>], root: usize) -> Distance {
    let mut distance = Distance { another: 0, fields: 0, rest: 0 };
    for error in errors {
        let at_root = error.instance_path().as_str().len() == root;
        match error.kind() {
            ValidationErrorKind::Constant { .. } | ValidationErrorKind::FalseSchema => distance.another += 1,
            ValidationErrorKind::Type { .. } | ValidationErrorKind::Enum { .. } if at_root => distance.another += 1,
            ValidationErrorKind::Required { .. } | ValidationErrorKind::AdditionalProperties { .. } if at_root => {
                distance.fields += 1;
            }
            _ => distance.rest += 1,
        }
    }
    distance
}
