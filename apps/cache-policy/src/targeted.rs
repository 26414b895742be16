//! Targeted Cache-Control fields (RFC 9213), which are structured dictionaries (RFC 9651).

use crate::Options;
use crate::control::Control;
use crate::directives::{Argument, Directive};
use crate::names::padded;
use http::{HeaderMap, HeaderName};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// Returns the directives for this cache: of the first valid targeted field, else of Cache-Control (RFC 9213 s2.2).
pub(crate) fn control(options: &Options, headers: &HeaderMap) -> Control {
    let of_a_field = options.targeted.iter().find_map(|field| targeted(headers, field));
    of_a_field.unwrap_or_else(|| Control::of_cache_control(headers))
}

/// Returns the directives of a targeted field; `None` where the field is absent, empty or not a dictionary (RFC 9213
/// s2.1).
fn targeted(headers: &HeaderMap, field: &HeaderName) -> Option<Control> {
    let lines: Vec<&[u8]> = headers.get_all(field).iter().map(|line| line.as_bytes()).collect();
    if lines.is_empty() {
        return None;
    }
    let members: Dictionary = Parser::new(&lines.join(&b", "[..])).parse().ok()?;
    let mut control = Control { targeted: true, ..Control::default() };
    for (name, value) in &members {
        if let Some(argument) = argument(name.as_str(), value) {
            control.take(&Directive { name: padded(name.as_str().as_bytes()), argument });
        }
    }
    (!members.is_empty()).then_some(control)
}

/// The member's value as a directive's argument; `None` where the type is not the directive's.
fn argument<'a>(name: &str, value: &'a ListEntry) -> Option<Argument<'a>> {
    let ListEntry::Item(item) = value else { return None };
    let counts = matches!(name, "max-age" | "s-maxage" | "stale-while-revalidate" | "stale-if-error");
    match &item.bare_item {
        BareItem::Integer(number) if counts => {
            let digits = u64::try_from(i64::from(*number)).ok()?.to_string();
            Some(Argument::Text(digits.into_bytes().into()))
        }
        BareItem::Boolean(true) if !counts => Some(Argument::None),
        BareItem::String(text) if !counts => Some(Argument::Text(text.as_str().as_bytes().into())),
        BareItem::Token(text) if !counts => Some(Argument::Text(text.as_str().as_bytes().into())),
        _ => None,
    }
}
