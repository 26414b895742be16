//! The tests of texts, pages and exports. Those of pages visit them in a browser, where there is one.

mod code;
mod compare;
mod exports;
mod findings;
mod fixtures;
mod gate;
mod html;
mod observe_html;
mod observe_text;
mod sentence;
mod support;
mod text;
mod verdict;
mod waits;
