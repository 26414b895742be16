//! Rules for an HTTP cache that several clients share: what it may store and serve, and what it must request again.
//! From RFC 9111, the parts of RFC 9110 that concern caches, RFC 5861, RFC 9211 and RFC 9213.
//!
//! The crate does no I/O and reads no clock. [`store`] decides once, when a response arrives; its decisions are kept as
//! a few numbers ([`Terms`]), so that a look-up ([`RequestDirectives::of`] and [`Terms::answer`]) parses nothing but
//! the request's own directives. `docs/reference/caching.md` lists the RFCs' rules one by one.

#![forbid(unsafe_code)]

mod conditions;
mod control;
mod date;
mod directives;
mod fields;
mod freshness;
mod head;
mod invalidation;
mod list;
mod names;
mod options;
mod ranges;
mod request_directives;
mod seconds;
mod status;
mod storing;
mod targeted;
mod terms;
mod updating;
mod validators;
mod vary;

pub use conditions::{Condition, condition, not_modified_fields};
pub use fields::stored_fields;
pub use head::{RequestHead, ResponseHead};
pub use invalidation::invalidates;
pub use options::Options;
pub use ranges::{Ranges, ranges};
pub use request_directives::RequestDirectives;
pub use seconds::Seconds;
pub use status::{Forward, Handled, cache_status};
pub use storing::{WhyNot, store};
pub use terms::{Answer, Terms};
pub use updating::{HeadUpdate, head_update, merge_304, refreshed};
pub use validators::{conditional, selects};
pub use vary::{Selecting, VaryKey, vary_key};
