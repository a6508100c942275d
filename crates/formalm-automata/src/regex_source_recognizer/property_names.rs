//! Names of character properties, and their prefixes.

use formalm_regex::unicode::{
    properties::{self, ecma_property},
    script_and_compatibility_tables::scripts,
};

/// Returns `true` if `\p{name}` is a property.
pub(super) fn is_name(name: &str) -> bool {
    begins(name, |one| one == name) && ecma_property(name).is_some()
}

/// Returns `true` if the name of a property begins with `text`.
pub(super) fn begins_name(text: &str) -> bool {
    begins(text, |one| one.starts_with(text))
}

/// Returns `true` if a property name satisfies a condition that depends on its prefix only.
fn begins(text: &str, fits: impl Fn(&str) -> bool) -> bool {
    let prefixes = ["", "General_Category=", "gc="];
    let kinds = ["Script=", "sc=", "Script_Extensions=", "scx="];
    let any = |prefix: &str, mut names: Box<dyn Iterator<Item = &str> + '_>| {
        let related = prefix.starts_with(text) || text.starts_with(prefix);
        related && names.any(|name| fits(&format!("{prefix}{name}")))
    };
    prefixes.iter().any(|prefix| any(prefix, Box::new(properties::categories())))
        || any("", Box::new(properties::binary()))
        || kinds.iter().any(|prefix| any(prefix, Box::new(scripts())))
}
