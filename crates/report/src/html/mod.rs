//! One HTML file that needs nothing else: no network, no fonts, no libraries.
//!
//! Every name comes from the traced program and is hostile until escaped: markup is made by `maud`, which escapes all
//! text and attributes; nothing else writes markup, and the script reads names only as text.

mod bus;
mod calls;
mod code;
mod curve;
pub(crate) mod findings;
mod head;
mod heat;
mod offsets;
mod rows;
mod shared;

pub use code::FUNCTIONS as FUNCTIONS_WITH_CODE;

use crate::load::Report;
use crate::name::{fitted, plain};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page.css");
pub(crate) const SCRIPT: &str = include_str!("page.js");
/// Content policy of the page: it loads nothing but itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// How many rows a table shows before the rest becomes one row.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Rows of each table.
    pub top: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { top: 40 }
    }
}

/// The head of every page: what a browser may load, which is nothing, and the style, with what one page adds to both.
pub(crate) fn page_head(title: &str, meta: &Markup, more_style: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta http-equiv="Content-Security-Policy" content=(POLICY);
            meta name="color-scheme" content="light dark";
            (meta)
            link rel="icon" href="data:,";
            title { "nearmiss: " (title) }
            style { (PreEscaped(STYLE)) (PreEscaped(more_style)) }
        }
    }
}

/// The page.
pub fn render(report: &Report, options: Options) -> String {
    let command = fitted(&report.manifest.command.join(" "), 120);
    let sections: Vec<Section> = [
        findings::section(report.findings.as_ref()),
        rows::functions(report, options.top),
        rows::objects(report, options.top),
        rows::lines(report, options.top),
        code::section(report),
        shared::lines(report, options.top),
        calls::section(report),
        heat::section(report),
        offsets::section(report),
        bus::section(report),
        curve::section(report),
        shared::blame(report, options.top),
        rows::tasks(report, options.top),
        rows::processors(report),
    ]
    .into_iter()
    .flatten()
    .collect();
    let generator = html! { meta name="generator" content={ "nearmiss " (plain(&report.manifest.nearmiss)) }; };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (page_head(&command, &generator, ""))
            body {
                a.skip href="#main" { "Skip to the figures" }
                (head::header(report, &command))
                nav aria-label="Sections" {
                    ul { @for s in &sections { li { a href={ "#" (s.id) } { (s.title) } } } li { a href="#notes" { "Notes" } } }
                }
                main #main tabindex="-1" {
                    @for s in &sections {
                        section #(s.id) aria-labelledby={ (s.id) "-title" } {
                            h2 #{ (s.id) "-title" } { (s.title) }
                            (s.body)
                        }
                    }
                    (head::notes(report))
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// A part of the page.
struct Section {
    id: &'static str,
    title: &'static str,
    body: Markup,
}

impl Section {
    fn new(id: &'static str, title: &'static str, body: Markup) -> Option<Self> {
        Some(Section { id, title, body })
    }
}
