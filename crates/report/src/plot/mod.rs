//! The pictures of pages and of papers.
//!
//! A chart lies in a page and stretches with it; a figure stands alone in a file. Both are readable on light and on
//! dark pages, and both give every mark's value.

mod axis;
pub(crate) mod chart;
pub mod figure;
pub(crate) mod flame;
