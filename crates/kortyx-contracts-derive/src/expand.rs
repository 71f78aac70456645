//! From the enum to the implementation.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Data, DataEnum, DeriveInput, Error, LitStr, Path, Result};

use crate::option::{VariantOption, refuse_unknown_key};

/// Expands the derive, or renders what is wrong as compile errors.
pub(crate) fn derive(input: TokenStream, contracts: &str) -> TokenStream {
    syn::parse(input)
        .and_then(|input| implementation(&input, contracts))
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

fn implementation(input: &DeriveInput, contracts: &str) -> Result<Tokens> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "`ChoiceOptions` can only be derived for an enum"));
    };
    let contracts = contracts_path(input, contracts)?;
    let options = options(input, data)?;

    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let variants: Vec<_> = options.iter().map(|option| &option.variant).collect();
    let ids: Vec<_> = options.iter().map(|option| &option.id).collect();
    let labels = options.iter().map(|option| &option.label);
    let descriptions = options.iter().map(|option| optional(option.description.as_ref()));

    Ok(quote! {
        #[automatically_derived]
        impl #generics #contracts::ChoiceOptions for #name #arguments #bounds {
            const OPTIONS: &'static [#contracts::StaticOption] = &[
                #(#contracts::StaticOption { id: #ids, label: #labels, description: #descriptions }),*
            ];

            fn option_id(&self) -> &'static str {
                match self {
                    #(Self::#variants => #ids,)*
                }
            }

            fn from_option_id(id: &str) -> ::core::option::Option<Self> {
                match id {
                    #(#ids => ::core::option::Option::Some(Self::#variants),)*
                    _ => ::core::option::Option::None,
                }
            }
        }
    })
}

fn optional(text: Option<&LitStr>) -> Tokens {
    text.map_or_else(|| quote!(::core::option::Option::None), |text| quote!(::core::option::Option::Some(#text)))
}

/// Where the generated code finds the trait: the enum's `#[choice(crate = "…")]`, else what the entry point says.
fn contracts_path(input: &DeriveInput, default: &str) -> Result<Path> {
    let mut path = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("choice")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(refuse_unknown_key(&meta, "`crate`"));
            }
            path = Some(meta.value()?.parse::<LitStr>()?.parse()?);
            Ok(())
        })?;
    }
    path.map_or_else(|| syn::parse_str(default), Ok)
}

/// The options in order; every mistake of every variant is reported at once.
fn options(input: &DeriveInput, data: &DataEnum) -> Result<Vec<VariantOption>> {
    if data.variants.is_empty() {
        return Err(Error::new_spanned(
            &input.ident,
            "a choice needs at least one option, and this enum has no variant",
        ));
    }
    let mut options: Vec<VariantOption> = Vec::with_capacity(data.variants.len());
    let mut mistakes: Option<Error> = None;
    for variant in &data.variants {
        match VariantOption::of(variant).and_then(|option| distinct(option, &options)) {
            Ok(option) => options.push(option),
            Err(mistake) => match &mut mistakes {
                Some(all) => all.combine(mistake),
                None => mistakes = Some(mistake),
            },
        }
    }
    mistakes.map_or(Ok(options), Err)
}

fn distinct(option: VariantOption, earlier: &[VariantOption]) -> Result<VariantOption> {
    let id = option.id.value();
    match earlier.iter().find(|other| other.id.value() == id) {
        Some(other) => {
            Err(Error::new(option.id.span(), format!("option id `{id}` is already taken by `{}`", other.variant)))
        }
        None => Ok(option),
    }
}
