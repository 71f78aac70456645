//! Which model the assistant works with.

use std::sync::Arc;

use kortyx_reason::Model;

use crate::workflows::scripted;

/// The model of this name, or the script that needs none.
pub(crate) fn model(name: Option<&str>) -> Result<Arc<dyn Model>, String> {
    name.map_or_else(|| Ok(Arc::new(scripted()) as Arc<dyn Model>), by_name)
}

/// A model by its name; its provider's key is in the environment. One that cannot work is found out before anybody asks it.
#[cfg(feature = "genai")]
fn by_name(name: &str) -> Result<Arc<dyn Model>, String> {
    let model = kortyx_reason::GenaiModel::new(name).and_then(|model| model.check().map(|()| model));
    model.map(|model| Arc::new(model) as Arc<dyn Model>).map_err(|error| error.to_string())
}

#[cfg(not(feature = "genai"))]
fn by_name(name: &str) -> Result<Arc<dyn Model>, String> {
    Err(format!("this program was compiled without models: build it with the feature `genai` to use `{name}`"))
}
