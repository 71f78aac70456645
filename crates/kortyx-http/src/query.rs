//! Reading what a listing asks for.

use kortyx_protocol::{Failure, FailureCode, InvalidId, Issue, RunId, SessionId};
use kortyx_store::{InterruptQuery, Scalar};

/// Questions of a page when nobody says, and at most.
const PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 200;

/// The longest name or value.
const LONGEST: usize = 4096;

/// Reads `sessionId`, `runId`, `context.<key>`, `afterResponseCompleted`, `limit` and `cursor`; others are ignored.
pub(crate) fn interrupts(query: &str) -> Result<InterruptQuery, Failure> {
    let mut asked = InterruptQuery { limit: PAGE, ..InterruptQuery::default() };
    let mut seen = std::collections::BTreeSet::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let fault = |why: &str| invalid(&name, why);
        if name.len().max(value.len()) > LONGEST {
            return Err(invalid("", "a name and a value have at most 4096 bytes"));
        }
        let of_id = |error: InvalidId| fault(&error.to_string());
        match name.as_ref() {
            "sessionId" => asked.scope.session_id = Some(SessionId::new(value.as_ref()).map_err(of_id)?),
            "runId" => asked.run_id = Some(RunId::new(value.as_ref()).map_err(of_id)?),
            "afterResponseCompleted" => {
                let flag = value.parse().map_err(|_| fault("it is true or false"))?;
                asked.after_response_completed = Some(flag);
            }
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=LARGEST_PAGE).contains(limit));
                asked.limit = limit.ok_or_else(|| fault("it is a number from 1 to 200"))?;
            }
            "cursor" => asked.cursor = Some(value.clone().into_owned()),
            other => match other.strip_prefix("context.") {
                Some(key) if !key.is_empty() => {
                    asked.scope.context.insert(key.to_owned(), scalar(&value));
                }
                _ => continue,
            },
        }
        if !seen.insert(name.clone()) {
            return Err(fault("it is there twice"));
        }
    }
    Ok(asked)
}

/// `true` and `false`, an integer, a text in double quotes, or else the text as it is.
fn scalar(text: &str) -> Scalar {
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    if let Some(text) = quoted {
        return Scalar::Text(text.into());
    }
    if let Ok(flag) = text.parse() {
        return Scalar::Bool(flag);
    }
    match text.parse::<i64>() {
        // `007` and `+7` are texts.
        Ok(number) if number.to_string() == text => Scalar::Int(number),
        _ => Scalar::Text(text.into()),
    }
}

fn invalid(name: &str, why: &str) -> Failure {
    let message = format!("the query is malformed at {name}: {why}");
    Failure::new(FailureCode::InvalidRequest, message).with_issues([Issue::new(format!("/{name}"), "invalid", why)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read() {
        let asked = interrupts(
            "sessionId=s%201&runId=run-1&context.tenant=acme&context.n=7&context.yes=true&context.t=%227%22&context.z=007\
             &afterResponseCompleted=false&limit=3&cursor=c%2B&other=1&context.=x",
        )
        .unwrap();
        assert_eq!(asked.scope.session_id.unwrap().as_str(), "s 1");
        assert_eq!(asked.run_id.unwrap().as_str(), "run-1");
        let text = |text: &str| Scalar::Text(text.into());
        let context = [
            ("n", Scalar::Int(7)),
            ("t", text("7")),
            ("tenant", text("acme")),
            ("yes", Scalar::Bool(true)),
            ("z", text("007")),
        ];
        assert!(asked.scope.context.into_iter().eq(context.map(|(key, value)| (key.to_owned(), value))));
        assert_eq!(
            (asked.after_response_completed, asked.limit, asked.cursor.as_deref()),
            (Some(false), 3, Some("c+"))
        );
        assert_eq!(interrupts("").unwrap().limit, 50);
    }

    #[test]
    fn a_malformed_filter_is_refused_by_name() {
        for (query, path) in [
            ("limit=0", "/limit"),
            ("limit=201", "/limit"),
            ("limit=x", "/limit"),
            ("limit=1&limit=2", "/limit"),
            ("sessionId=", "/sessionId"),
            ("runId=%00", "/runId"),
            ("afterResponseCompleted=1", "/afterResponseCompleted"),
            ("context.a=1&context.a=2", "/context.a"),
        ] {
            let failure = interrupts(query).unwrap_err();
            assert_eq!((failure.code, failure.issues.unwrap()[0].path.as_str()), (FailureCode::InvalidRequest, path));
        }
    }
}
