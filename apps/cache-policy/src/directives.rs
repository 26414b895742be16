//! One directive of Cache-Control (RFC 9111 s5.2), tolerant of what arrives.

use crate::list::{is_blank, members, trimmed, unquoted};
use crate::names::{Name, padded};
use http::{HeaderMap, HeaderName};
use std::borrow::Cow;

/// Text after a directive's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Argument<'a> {
    /// Nothing.
    None,
    /// A token, or the content of a quoted string.
    Text(Cow<'a, [u8]>),
    /// Something that is neither.
    Bad,
}

/// One directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directive<'a> {
    pub name: Name,
    /// The argument.
    pub argument: Argument<'a>,
}

/// The largest number of seconds distinguished: greater ones count as this one (RFC 9111 s1.2.2).
pub(crate) const MOST_SECONDS: u32 = 1 << 31;

/// Seconds in decimal digits; `None` for anything else.
pub(crate) fn delta_seconds(text: &[u8]) -> Option<u32> {
    let digit = |so_far: u32, &byte: &u8| {
        let value = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        Some(so_far.saturating_mul(10).saturating_add(value).min(MOST_SECONDS))
    };
    if text.is_empty() { None } else { text.iter().try_fold(0, digit) }
}

impl<'a> Directive<'a> {
    fn of(member: &'a [u8]) -> Self {
        let Some(equals) = member.iter().position(|&byte| byte == b'=') else {
            return Self { name: padded(member), argument: Argument::None };
        };
        let (name, text) = (&member[..equals], &member[equals + 1..]);
        let spaced = name.last().is_some_and(|&b| is_blank(b)) || text.first().is_some_and(|&b| is_blank(b));
        let argument = match text {
            _ if spaced => Argument::Bad,
            [b'"', ..] => unquoted(text).map_or(Argument::Bad, |content| Argument::Text(content.into())),
            _ if text.is_empty() || text.contains(&b'"') => Argument::Bad,
            _ => Argument::Text(text.into()),
        };
        Self { name: padded(trimmed(name)), argument }
    }

    /// The argument as seconds.
    pub fn seconds(&self) -> Option<u32> {
        match &self.argument {
            Argument::Text(text) => delta_seconds(text),
            _ => None,
        }
    }
}

/// The directives of all lines of a field, in order.
pub(crate) fn directives<'a>(headers: &'a HeaderMap, field: &HeaderName) -> impl Iterator<Item = Directive<'a>> {
    headers.get_all(field).into_iter().flat_map(|line| members(line.as_bytes())).map(Directive::of)
}
