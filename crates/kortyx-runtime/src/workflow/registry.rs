//! The workflows that a process knows, by id and version.

use std::{collections::BTreeMap, sync::Arc};

use super::{Definition, DefinitionError, Workflow, version};

/// Registered definitions. Several versions of a workflow stand side by side: new runs take the latest, paused ones
/// their own.
///
/// ```
/// use kortyx_runtime::{NodeOutput, Registry, Workflow};
///
/// let mut registry = Registry::new();
/// for version in ["9", "10"] {
///     let node = |_| async { Ok(NodeOutput::new()) };
///     registry.register(&Workflow::builder("greet").version(version).node("hello", node).build()?)?;
/// }
/// assert_eq!(registry.latest("greet").map(|found| &**found.version()), Some("10"));
/// assert!(registry.get("greet", "9").is_some());
/// # Ok::<(), kortyx_runtime::workflow::DefinitionError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// The versions of each workflow, in natural order.
    versions: BTreeMap<Arc<str>, Vec<Arc<Definition>>>,
}

/// What a run keeps of its definition, to go on with exactly that one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionPin {
    /// The workflow's id.
    pub id: Arc<str>,
    /// Its version.
    pub version: Arc<str>,
    /// Its fingerprint.
    pub fingerprint: Arc<str>,
}

impl Registry {
    /// A registry without workflows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a workflow. One with the same id, version and fingerprint replaces the former, with its functions.
    ///
    /// The same id and version with another fingerprint is an error ([`DefinitionError::VersionConflict`]): paused runs
    /// of the former could not go on.
    pub fn register<I, O>(&mut self, workflow: &Workflow<I, O>) -> Result<(), DefinitionError> {
        let definition = workflow.definition();
        let versions = self.versions.entry(Arc::clone(definition.id())).or_default();
        match versions.binary_search_by(|known| version::compare(known.version(), definition.version())) {
            Err(place) => versions.insert(place, Arc::clone(definition)),
            Ok(place) => {
                let Some(known) = versions.get_mut(place) else { return Ok(()) };
                if known.fingerprint() != definition.fingerprint() {
                    return Err(conflict(known, definition));
                }
                *known = Arc::clone(definition);
            }
        }
        Ok(())
    }

    /// The highest version of a workflow, in natural order: `10` after `9`, `1.2.0` after `1.2.0-rc1`.
    pub fn latest(&self, id: &str) -> Option<&Arc<Definition>> {
        self.versions.get(id)?.last()
    }

    /// Exactly this version of a workflow.
    pub fn get(&self, id: &str, version: &str) -> Option<&Arc<Definition>> {
        self.versions.get(id)?.iter().rev().find(|known| **known.version() == *version)
    }

    /// The ids, sorted.
    pub fn ids(&self) -> Vec<Arc<str>> {
        self.versions.keys().cloned().collect()
    }

    /// Everything registered, sorted by id and then by natural order of versions.
    pub fn pins(&self) -> Vec<DefinitionPin> {
        self.versions.values().flatten().map(|definition| DefinitionPin::of(definition)).collect()
    }
}

impl DefinitionPin {
    /// The pin of a definition.
    pub fn of(definition: &Definition) -> Self {
        Self {
            id: Arc::clone(&definition.id),
            version: Arc::clone(&definition.version),
            fingerprint: Arc::clone(&definition.fingerprint),
        }
    }
}

fn conflict(known: &Definition, refused: &Definition) -> DefinitionError {
    DefinitionError::VersionConflict {
        workflow: Arc::clone(&known.id),
        version: Arc::clone(&known.version),
        registered: Arc::clone(&known.fingerprint),
        fingerprint: Arc::clone(&refused.fingerprint),
    }
}
