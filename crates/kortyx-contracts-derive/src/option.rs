//! One variant as one option: its attributes, its doc comment, its defaults.

use syn::{
    Attribute, Error, Expr, ExprLit, Fields, Ident, Lit, LitStr, Meta, Result, Variant, ext::IdentExt,
    meta::ParseNestedMeta,
};

use crate::words;

/// What an option says, with the spans of what said it.
pub(crate) struct VariantOption {
    pub(crate) variant: Ident,
    pub(crate) id: LitStr,
    pub(crate) label: LitStr,
    pub(crate) description: Option<LitStr>,
}

impl VariantOption {
    /// Reads a variant; refuses one with fields and attributes that say nothing we know.
    pub(crate) fn of(variant: &Variant) -> Result<Self> {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(variant, "an option carries no data: remove the fields of this variant"));
        }
        let given = Given::of(&variant.attrs)?;
        let name = variant.ident.unraw().to_string();
        let text = |text: String| LitStr::new(&text, variant.ident.span());
        Ok(Self {
            id: given.id.unwrap_or_else(|| text(words::snake_case(&name))),
            label: given
                .label
                .unwrap_or_else(|| text(doc_line(&variant.attrs).unwrap_or_else(|| words::sentence(&name)))),
            description: given.description,
            variant: variant.ident.clone(),
        })
    }
}

/// The error for a key that no `#[choice(…)]` knows at this place.
pub(crate) fn refuse_unknown_key(meta: &ParseNestedMeta<'_>, known: &str) -> Error {
    meta.error(format!("unknown key: `choice` takes {known} here"))
}

#[derive(Default)]
struct Given {
    id: Option<LitStr>,
    label: Option<LitStr>,
    description: Option<LitStr>,
}

impl Given {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut given = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("choice")) {
            attribute.parse_nested_meta(|meta| given.read(&meta))?;
        }
        Ok(given)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let (key, slot) = if meta.path.is_ident("id") {
            ("id", &mut self.id)
        } else if meta.path.is_ident("label") {
            ("label", &mut self.label)
        } else if meta.path.is_ident("description") {
            ("description", &mut self.description)
        } else {
            return Err(refuse_unknown_key(meta, "`id`, `label` and `description`"));
        };
        if slot.is_some() {
            return Err(meta.error(format!("`{key}` is given twice")));
        }
        let text: LitStr = meta.value()?.parse()?;
        if text.value().trim().is_empty() {
            return Err(Error::new(text.span(), format!("`{key}` must not be empty")));
        }
        *slot = Some(text);
        Ok(())
    }
}

/// The first line of the doc comment, without its final full stop.
fn doc_line(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().filter_map(doc_text).find_map(|text| {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        let line = if line.ends_with("..") { line } else { line.strip_suffix('.').unwrap_or(line) };
        Some(line.to_owned()).filter(|line| !line.is_empty())
    })
}

fn doc_text(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if pair.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}
