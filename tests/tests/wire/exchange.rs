//! Playing a case and writing down what crosses the wire.

use std::{fmt::Write as _, time::Duration};

use crate::{
    cases::{Request, Step},
    client::{self, Response},
    names::Names,
    site::Site,
};

/// The headers that the protocol speaks of.
const HEADERS: [&str; 8] = [
    "content-type",
    "cache-control",
    "connection",
    "x-accel-buffering",
    "allow",
    "www-authenticate",
    "retry-after",
    "accept-encoding",
];

/// Everything that is sent and received.
pub(crate) async fn play(steps: Vec<Step>) -> String {
    let (site, mut names, mut script) = (Site::start().await, Names::default(), String::new());
    for step in steps {
        match step {
            Step::Minutes(minutes) => {
                site.advance(Duration::from_mins(minutes));
                let _ = write!(script, "# {minutes} minutes later\n\n");
            }
            Step::Send(request) => {
                let path = names.reveal(&request.path);
                let body = match std::str::from_utf8(&request.body) {
                    Ok(text) => names.reveal(text).into_bytes(),
                    Err(_) => request.body.clone(),
                };
                let response = client::send(site.address, &request, &path, body).await;
                write_request(&mut script, &request);
                write_response(&mut script, &response, &mut names);
            }
        }
    }
    site.end().await;
    script
}

fn write_request(script: &mut String, request: &Request) {
    let _ = writeln!(script, "> {} {}", request.method, request.path);
    if let Some((name, value)) = request.header {
        let _ = writeln!(script, "> {name}: {value}");
    }
    if !request.body.is_empty() {
        let text = request.body.escape_ascii().to_string();
        let shown = std::str::from_utf8(&request.body).map_or(text.as_str(), |text| text);
        let _ = writeln!(script, "> {}", if shown.len() > 2_000 { "(a body that is too large)" } else { shown });
    }
    script.push('\n');
}

fn write_response(script: &mut String, response: &Response, names: &mut Names) {
    let _ = writeln!(script, "{}", response.status);
    for name in HEADERS {
        for value in response.headers.get_all(name) {
            let _ = writeln!(script, "{name}: {}", value.to_str().unwrap());
        }
    }
    match response.frames() {
        Some(frames) => {
            for frame in frames {
                let _ = writeln!(script, "data: {}", names.hide(frame));
            }
        }
        None if response.body.is_empty() => {}
        None => {
            let _ = writeln!(script, "{}", names.hide(&response.body));
        }
    }
    script.push('\n');
}
