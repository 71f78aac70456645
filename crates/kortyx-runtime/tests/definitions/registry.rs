//! Versions side by side.

use kortyx_runtime::{Registry, Workflow, workflow::END};

use crate::{idle, workflow};

fn version(version: &str) -> Workflow {
    workflow(&["a"]).version(version).build().unwrap()
}

#[test]
fn the_latest_version_is_the_highest_in_natural_order() {
    let mut registry = Registry::new();
    for name in ["1.2.0", "1.10.0-rc1", "1.9"] {
        registry.register(&version(name)).unwrap();
    }
    assert_eq!(&**registry.latest("w").unwrap().version(), "1.10.0-rc1");
    registry.register(&version("1.10.0")).unwrap();
    assert_eq!(&**registry.latest("w").unwrap().version(), "1.10.0");
    assert_eq!(&**registry.get("w", "1.9").unwrap().version(), "1.9");
    assert!(registry.get("w", "1.90").is_none());
    assert!(registry.latest("other").is_none() && registry.get("other", "1").is_none());
}

#[test]
fn the_same_definition_again_replaces_the_former() {
    let mut registry = Registry::new();
    let (first, second) = (version("1"), version("1"));
    registry.register(&first).unwrap();
    registry.register(&second).unwrap();
    let known = registry.get("w", "1").unwrap();
    assert!(std::sync::Arc::ptr_eq(known, second.definition()));
    assert_eq!(registry.pins().len(), 1);
}

#[test]
fn another_definition_of_the_same_version_is_refused_and_changes_nothing() {
    let mut registry = Registry::new();
    registry.register(&version("1")).unwrap();
    let changed = workflow(&["a"]).edge_if("a", END, "x").build().unwrap();
    let error = registry.register(&changed).unwrap_err();
    assert_eq!(error.code(), "VERSION_CONFLICT");
    assert!(error.to_string().ends_with("give the changed one a new version"), "{error}");
    assert_eq!(registry.latest("w").unwrap().fingerprint(), version("1").definition().fingerprint());
}

#[test]
fn pins_list_everything_in_order() {
    let mut registry = Registry::new();
    registry.register(&Workflow::builder("b").node("a", idle).build().unwrap()).unwrap();
    for name in ["10", "9"] {
        registry.register(&version(name)).unwrap();
    }
    let pins = registry.pins();
    let names: Vec<(&str, &str)> = pins.iter().map(|pin| (&*pin.id, &*pin.version)).collect();
    assert_eq!(names, [("b", "1"), ("w", "9"), ("w", "10")]);
    assert_eq!(&*pins[1].fingerprint, version("9").definition().fingerprint());
    assert_eq!(registry.ids().iter().map(|id| &**id).collect::<Vec<_>>(), ["b", "w"]);
}
