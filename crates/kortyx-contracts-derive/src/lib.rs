//! `#[derive(ChoiceOptions)]`: a fieldless enum becomes the options of a choice.
//!
//! Use it through `kortyx-contracts` (or the facade `kortyx`), which holds the trait it implements and the documentation
//! with examples.

mod expand;
mod option;
mod words;

use proc_macro::TokenStream;

/// Implements `kortyx_contracts::ChoiceOptions` for a fieldless enum.
///
/// Each variant is one option, in the order of the source:
///
/// | part | by default | override |
/// | --- | --- | --- |
/// | id | the variant's name in `snake_case` | `#[choice(id = "…")]` |
/// | label | first line of its doc comment, without the final full stop, else its name in words | `#[choice(label = "…")]` |
/// | description | none | `#[choice(description = "…")]` |
///
/// The generated code names `::kortyx_contracts`; `#[choice(crate = "path::to::contracts")]` on the enum names another
/// path.
///
/// Refused at compile time, where the mistake stands: anything but an enum, an enum without variants, a variant with
/// fields, two variants with one id, an empty id or label, an unknown key.
#[proc_macro_derive(ChoiceOptions, attributes(choice))]
pub fn derive_choice_options(input: TokenStream) -> TokenStream {
    expand::derive(input, "::kortyx_contracts")
}

/// The same derive for users of the facade: the generated code names `::kortyx::contracts`.
///
/// The facade re-exports it under the name `ChoiceOptions`.
#[proc_macro_derive(FacadeChoiceOptions, attributes(choice))]
pub fn derive_facade_choice_options(input: TokenStream) -> TokenStream {
    expand::derive(input, "::kortyx::contracts")
}
