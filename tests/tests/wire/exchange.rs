//! Playing a case and writing down what crosses the wire.

use std::{fmt::Write as _, time::Duration};

use kortyx_tests::{
    eventually,
    site::{self, Request, Response, Site, send},
};

use crate::{cases::Step, document::Document, names::Names};

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

/// Everything that is sent and received; or what of it the document does not allow.
pub(crate) async fn play(steps: Vec<Step>) -> Result<String, String> {
    let (site, clock) = Site::standing().await;
    let document = Document::of(site.address).await;
    let (mut names, mut script, mut open, mut faults) = (Names::default(), String::new(), None, Vec::new());
    for step in steps {
        match step {
            Step::Minutes(minutes) => {
                clock.advance(Duration::from_mins(minutes));
                let _ = write!(script, "# {minutes} minutes later\n\n");
            }
            Step::Worker => {
                site.agent.worker().pass().await.unwrap();
                script.push_str("# a worker looks after what is due\n\n");
            }
            Step::Settled => {
                eventually("nobody drives", || async { site.agent.driven_runs() == 0 }).await;
                script.push_str("# its work goes on until it waits or ends\n\n");
            }
            Step::Send(request) => {
                let (path, body) = reveal(&request, &names);
                let response = send(site.address, &request, &path, body.clone()).await;
                faults.extend(document.faults(&request, &body, &response));
                write_request(&mut script, &request);
                write_response(&mut script, &response, &mut names);
            }
            Step::Open(request, frames) => {
                let (path, body) = reveal(&request, &names);
                let mut stream = site::open(site.address, &request, &path, body.clone()).await;
                let response = stream.frames(frames).await;
                faults.extend(document.faults(&request, &body, &response));
                write_request(&mut script, &request);
                write_response(&mut script, &response, &mut names);
                script.push_str("# it stays open\n\n");
                open = Some((request, stream));
            }
            Step::Rest => {
                let (request, stream) = open.take().unwrap();
                let response = stream.rest().await;
                faults.extend(document.faults(&request, &[], &response));
                script.push_str("# the stream goes on\n\n");
                write_frames(&mut script, &response, &mut names);
                script.push('\n');
            }
        }
    }
    drop(open);
    site.end().await;
    if faults.is_empty() { Ok(script) } else { Err(faults.join("\n")) }
}

/// Path and body with what was minted in place of names.
fn reveal(request: &Request, names: &Names) -> (String, Vec<u8>) {
    let body = match std::str::from_utf8(&request.body) {
        Ok(text) => names.reveal(text).into_bytes(),
        Err(_) => request.body.clone(),
    };
    (names.reveal(&request.path), body)
}

fn write_request(script: &mut String, request: &Request) {
    let _ = writeln!(script, "> {} {}", request.method, request.path);
    for (name, value) in &request.headers {
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
    write_frames(script, response, names);
    script.push('\n');
}

fn write_frames(script: &mut String, response: &Response, names: &mut Names) {
    match response.frames() {
        Some(frames) => {
            for frame in frames {
                let _ = writeln!(script, "{}data: {}", frame.before, names.hide(frame.data));
            }
        }
        None if response.body.is_empty() => {}
        None => {
            let _ = writeln!(script, "{}", names.hide(&response.body));
        }
    }
}
