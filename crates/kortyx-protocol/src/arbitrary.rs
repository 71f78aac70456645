//! Arbitrary JSON for property tests.

use proptest::prelude::*;
use serde_json::Value;

/// Any value, a few levels deep, with keys and texts that are likely to meet ours.
pub(crate) fn json_value() -> impl Strategy<Value = Value> {
    let text =
        prop_oneof![prop::sample::select(vec!["", "a", "id", "items", "0", "choice"]).prop_map(str::to_owned), ".*"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..4).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}
