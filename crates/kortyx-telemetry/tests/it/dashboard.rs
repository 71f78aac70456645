//! The dashboard and the alerts name what is measured, and nothing else.

use std::collections::BTreeSet;

use kortyx_telemetry::metrics::names::{self, Kind, Metric};
use serde_json::Value;

const DASHBOARD: &str = include_str!("../../../../docs/telemetry/grafana-dashboard.json");
const ALERTS: &str = include_str!("../../../../docs/telemetry/alerts.yaml");

/// Labels that Prometheus adds itself.
const OF_PROMETHEUS: &[&str] = &["le", "instance", "job"];

/// The words of an expression, each with the character after it.
fn words(text: &str) -> Vec<(&str, Option<char>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_word(c)).filter(|word| !word.is_empty());
    words
        .map(|word| (word, text[word.as_ptr() as usize - text.as_ptr() as usize + word.len()..].chars().next()))
        .collect()
}

/// The metric that a word of an expression is a series of.
fn metric(word: &str) -> Option<&'static Metric> {
    names::ALL.iter().find(|metric| match metric.kind {
        Kind::Histogram => ["_bucket", "_sum", "_count"].iter().any(|end| word.strip_suffix(end) == Some(metric.name)),
        _ => word == metric.name,
    })
}

/// The metrics that an expression names. Fails on others, and on labels that none of them has.
fn check(expression: &str) -> Vec<&'static Metric> {
    let named: Vec<_> = words(expression).into_iter().filter(|(word, _)| word.starts_with("kortyx_")).collect();
    let metrics: Vec<_> =
        named.iter().map(|(word, _)| metric(word).unwrap_or_else(|| panic!("{word} in {expression}"))).collect();
    assert!(!metrics.is_empty(), "{expression} names no metric");
    for label in labels(expression) {
        let is_known = metrics.iter().any(|metric| metric.labels.contains(&label));
        assert!(is_known || OF_PROMETHEUS.contains(&label), "the label {label} in {expression}");
    }
    metrics
}

/// What is selected or grouped by.
fn labels(expression: &str) -> Vec<&str> {
    let inside = |open: &str, close: char| -> Vec<&str> {
        expression.split(open).skip(1).filter_map(|rest| rest.split(close).next()).collect()
    };
    let selected = inside("{", '}').into_iter().flat_map(words).filter(|(_, after)| matches!(after, Some('=' | '!')));
    let grouped = inside("by (", ')').into_iter().flat_map(words);
    selected.chain(grouped).map(|(word, _)| word).collect()
}

/// The texts of all members with this name, wherever they are.
fn members<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| members(item, name, found)),
        Value::Object(object) => {
            for (key, member) in object {
                match member {
                    Value::String(text) if key == name => found.push(text),
                    member => members(member, name, found),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn the_dashboard_shows_every_metric_and_no_other() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut expressions = Vec::new();
    members(&dashboard, "expr", &mut expressions);
    let shown: BTreeSet<_> = expressions.into_iter().flat_map(check).map(|metric| metric.name).collect();
    let all: BTreeSet<_> = names::ALL.iter().map(|metric| metric.name).collect();
    assert_eq!(shown, all);
    let mut legends = Vec::new();
    members(&dashboard, "legendFormat", &mut legends);
    for label in legends.into_iter().flat_map(labels_shown) {
        assert!(is_label(label), "the label {label}");
    }
}

#[test]
fn the_alerts_watch_what_is_measured() {
    let expressions: Vec<_> = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert_eq!(expressions.len(), ALERTS.matches("- alert: ").count());
    for expression in expressions {
        check(expression);
    }
    for label in ALERTS.split("$labels.").skip(1).filter_map(|rest| words(rest).first().map(|(word, _)| *word)) {
        assert!(is_label(label), "the label {label}");
    }
}

#[test]
fn a_name_or_a_label_that_is_not_measured_is_noticed() {
    for wrong in ["kortyx_runs_x", "kortyx_drive_seconds", "kortyx_runs{stat=\"x\"}", "sum by (node) (kortyx_runs)"] {
        assert!(std::panic::catch_unwind(|| check(wrong)).is_err(), "{wrong}");
    }
    let right = "sum by (le, end) (rate(kortyx_drive_seconds_bucket{workflow=~\"a.*\"}[5m]))";
    assert_eq!(check(right), [&names::DRIVE]);
}

fn labels_shown(legend: &str) -> impl Iterator<Item = &str> {
    legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next())
}

fn is_label(label: &str) -> bool {
    OF_PROMETHEUS.contains(&label) || names::ALL.iter().any(|metric| metric.labels.contains(&label))
}
