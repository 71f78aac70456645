//! What reaches the receiver, and what never does.

use std::time::{Duration, Instant};

use kortyx_orchestrator::ExecuteOptions;
use kortyx_telemetry::StudioReporter;
use tokio::net::TcpListener;

use crate::{
    receiver::{Behave, Receiver},
    world::{LONG, agent, config, reported, run_through, workflow},
};

#[tokio::test]
async fn a_run_is_reported_from_its_start_to_its_end() {
    let receiver = Receiver::start([]).await;
    let (reporter, _) = reported(&receiver, &config(&receiver.url).workflow(&workflow())).await;

    let seen = receiver.seen();
    let told: Vec<String> = seen
        .events
        .iter()
        .map(|event| {
            let word = |at: &str| event.pointer(at).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
            let words = [word("/type"), word("/payload/kind"), word("/payload/outcome"), word("/correlation/nodeId")];
            words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));

    let revision = &seen.revisions[0]["workflow"];
    assert_eq!((&revision["id"], &revision["declaredVersion"]), (&"review".into(), &"3".into()));
    let traces: Vec<_> = seen.events.iter().map(|event| &event["correlation"]["traceId"]).collect();
    assert!(traces.windows(2).all(|pair| pair[0] == pair[1]), "one run is one trace");
    for event in &seen.events {
        let about = &event["correlation"];
        if event["type"] != "interrupt.resolved" {
            assert_eq!(about["topologyHash"], revision["topologyHash"], "{event}");
            assert_eq!(about["workflowRevisionId"], "revision-1", "{event}");
        }
    }
    let counts = reporter.counts();
    assert_eq!((counts.sent, counts.dropped, counts.unbuildable), (u64::try_from(seen.events.len()).unwrap(), 0, 0));
}

#[tokio::test]
async fn nothing_that_was_said_leaves_the_process_unless_it_is_switched_on() {
    let receiver = Receiver::start([]).await;
    let (_, tokens) = reported(&receiver, &config(&receiver.url).workflow(&workflow())).await;

    let bytes = &receiver.seen().bytes;
    assert!(!bytes.contains("planted"), "{bytes}");
    assert!(tokens.iter().all(|token| !bytes.contains(token)));
}

#[tokio::test]
async fn credentials_tokens_and_option_values_never_leave_the_process() {
    let receiver = Receiver::start([]).await;
    let config = config(&receiver.url).workflow(&workflow()).capture_input(true).capture_output(true);
    let (_, tokens) = reported(&receiver, &config).await;

    let bytes = &receiver.seen().bytes;
    for said in ["input", "step", "question", "option", "label", "answer"] {
        assert!(bytes.contains(&format!("planted-{said}")), "{said}");
    }
    for hidden in ["planted-secret", "planted-value"] {
        assert!(!bytes.contains(hidden), "{hidden}");
    }
    assert!(tokens.iter().all(|token| !bytes.contains(token)));
}

#[tokio::test]
async fn one_switch_does_not_switch_the_other() {
    let receiver = Receiver::start([]).await;
    reported(&receiver, &config(&receiver.url).capture_input(true)).await;
    {
        let bytes = &receiver.seen().bytes;
        assert!(bytes.contains("planted-answer") && bytes.contains("planted-input"));
        assert!(!bytes.contains("planted-question") && !bytes.contains("planted-step"), "{bytes}");
    }
    let receiver = Receiver::start([]).await;
    reported(&receiver, &config(&receiver.url).capture_output(true)).await;
    let bytes = &receiver.seen().bytes;
    assert!(bytes.contains("planted-question") && bytes.contains("planted-step"));
    assert!(!bytes.contains("planted-answer") && !bytes.contains("planted-input"), "{bytes}");
}

#[tokio::test]
async fn a_receiver_that_misbehaves_still_gets_every_event_once_and_in_order() {
    let calm = Receiver::start([]).await;
    reported(&calm, &config(&calm.url)).await;
    let script = [Behave::Status(500), Behave::Busy(3600), Behave::Hang, Behave::Reset];
    let receiver = Receiver::start(script).await;
    let (reporter, _) = reported(&receiver, &config(&receiver.url)).await;

    let seen = receiver.seen();
    assert!(seen.batches > script.len());
    assert_eq!(seen.types(), calm.seen().types());
    assert_eq!((reporter.counts().refused, reporter.counts().abandoned), (0, 0));
}

#[tokio::test]
async fn what_a_receiver_did_not_take_of_a_batch_is_sent_again() {
    let receiver = Receiver::start([Behave::Part]).await;
    let (reporter, _) = reported(&receiver, &config(&receiver.url)).await;

    let seen = receiver.seen();
    assert_eq!(reporter.counts().sent, u64::try_from(seen.events.len()).unwrap());
    assert_eq!(seen.types().iter().filter(|name| **name == "interrupt.created").count(), 2);
    assert!(seen.events.iter().any(|event| event["payload"]["name"] == "review" && event["type"] == "span.started"));
}

#[tokio::test]
async fn a_key_that_is_refused_costs_events_and_no_run() {
    let receiver = Receiver::start([]).await;
    let wrong = kortyx_telemetry::StudioConfig::new(&receiver.url, "wrong", "test", "desk").unwrap();
    let reporter = StudioReporter::start(&wrong.batch(1000, Duration::from_millis(20))).unwrap();
    run_through(&agent(reporter.clone()).await).await;
    assert!(reporter.flush(LONG).await);

    assert!(reporter.counts().refused > 10);
    assert_eq!((reporter.counts().sent, receiver.seen().events.len()), (0, 0));
}

#[tokio::test]
async fn no_run_waits_for_a_receiver_that_never_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let slow = config(&url).timeout(Duration::from_mins(1)).waiting(50, 1_000_000).batch(10, Duration::ZERO);
    let reporter = StudioReporter::start(&slow).unwrap();
    let agent = agent(reporter.clone()).await;
    let begun = Instant::now();
    for _ in 0..20 {
        run_through(&agent).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "a request takes a minute");
    assert!(reporter.counts().dropped > 100);
    assert!(!reporter.flush(Duration::from_millis(10)).await);
}

#[tokio::test]
async fn what_waits_is_tried_when_the_last_reporter_is_dropped() {
    let receiver = Receiver::start([]).await;
    let lazy = config(&receiver.url).batch(1000, Duration::from_hours(1));
    let agent = agent(StudioReporter::start(&lazy).unwrap()).await;
    drop(agent.execute(&workflow(), serde_json::json!({}), ExecuteOptions::new()).await.unwrap());
    agent.shutdown(LONG).await;
    drop(agent);
    while receiver.seen().events.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(receiver.seen().types().contains(&"interrupt.created"));
}
