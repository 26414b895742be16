//! The page of text, whole.

#![allow(clippy::unwrap_used)]

mod support;

use nearmiss_report::text::{Options, render};
use unicode_width::UnicodeWidthStr;

fn plain(builder: support::Builder, options: Options) -> String {
    anstream::adapter::strip_str(&render(&builder.report(), options)).to_string()
}

#[test]
fn the_run_queue_on_one_page() {
    let text = plain(support::run_queue(), Options::default());
    assert!(text.lines().count() <= 48, "{} lines", text.lines().count());
    assert!(text.lines().all(|l| l.width() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_healthy_program() {
    insta::assert_snapshot!(plain(support::healthy(), Options::default()));
}
