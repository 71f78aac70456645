//! What the pickers of the workflows choose from. A client finds the options by the schema id that the question names.

use crate::assets::{Asset, JSON};

/// Who may own something.
pub(crate) const PEOPLE: &str = "demo.people";

/// The options of each picker.
pub(crate) const OPTIONS: &[Asset] =
    &[Asset { path: "/demo/options/demo.people", kind: JSON, text: include_str!("people.json") }];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_where_the_page_looks_for_them() {
        assert_eq!(OPTIONS.iter().map(|asset| asset.path).collect::<Vec<_>>(), [format!("/demo/options/{PEOPLE}")]);
    }
}
