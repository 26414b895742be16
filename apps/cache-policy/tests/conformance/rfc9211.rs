//! RFC 9211: Cache-Status. The twin is a parser of structured fields.

use nearmiss_cache_policy::{Forward, Handled, cache_status};
use sfv::{BareItem, List, ListEntry, Parser};

fn written(name: &str, handled: &Handled<'_>) -> String {
    cache_status(name, handled).to_str().unwrap().to_owned()
}

/// The one member of the field and its parameters, as a reader of structured fields sees them.
fn read(text: &str) -> (BareItem, Vec<(String, BareItem)>) {
    let list: List = Parser::new(text).parse().unwrap();
    let [ListEntry::Item(item)] = list.as_slice() else { panic!("one item: {text}") };
    let parameters = item.params.iter().map(|(key, value)| (key.as_str().to_owned(), value.clone()));
    (item.bare_item.clone(), parameters.collect())
}

/// s2: "Each List member identifies the cache that inserted it, and this identifier MUST be a String or Token."
#[test]
fn rfc9211_s2_identifier() {
    for (name, text) in [
        ("nearmiss", "nearmiss; hit"),
        ("Example CDN", "\"Example CDN\"; hit"),
        ("a\"b\\c", "\"a\\\"b\\\\c\"; hit"),
        ("1x", "\"1x\"; hit"),
        ("", "\"\"; hit"),
        ("ü\n", "\"\"; hit"),
    ] {
        assert_eq!(written(name, &Handled::default()), text);
        assert!(matches!(read(text).0, BareItem::Token(_) | BareItem::String(_)));
    }
}

/// s2.1: "The value of "hit" is a Boolean that, when true, indicates that the request was satisfied by the cache"
/// ""hit" and "fwd" are exclusive; only one of them should appear on each list member." s2.2: "its value is a Token
/// that indicates why."
#[test]
fn rfc9211_s2_1_hit_or_forward() {
    let all = [
        Forward::Bypass,
        Forward::Method,
        Forward::UriMiss,
        Forward::VaryMiss,
        Forward::Miss,
        Forward::Request,
        Forward::Stale,
        Forward::Partial,
    ];
    let names = ["bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial"];
    for (forward, name) in all.into_iter().zip(names) {
        assert_eq!(written("c", &Handled { forward: Some(forward), ..Handled::default() }), format!("c; fwd={name}"));
    }
    assert_eq!(read(&written("c", &Handled::default())).1, [("hit".to_owned(), BareItem::Boolean(true))]);
}

/// s2.3 to s2.8: fwd-status and ttl are Integers, stored and collapsed Booleans, key and detail Strings.
#[test]
fn rfc9211_s2_3_parameters() {
    let handled = Handled {
        forward: Some(Forward::Stale),
        forward_status: Some(http::StatusCode::NOT_MODIFIED),
        time_to_live: Some(-5),
        stored: true,
        collapsed: true,
        key: Some("/x?y"),
        detail: Some("a b"),
    };
    let text = written("c", &handled);
    assert_eq!(text, "c; fwd=stale; fwd-status=304; stored; collapsed; ttl=-5; key=\"/x?y\"; detail=\"a b\"");
    assert_eq!(read(&text).1.len(), 7);
}

/// s2.4: "It may be negative, to indicate staleness."
#[test]
fn rfc9211_s2_4_extreme_ttl() {
    for ttl in [i64::MIN, -1, 0, i64::MAX] {
        read(&written("c", &Handled { time_to_live: Some(ttl), ..Handled::default() }));
    }
}
