//! What an observed run shows. Every figure here was *measured*.

mod hot;
mod text;
mod words;

pub use hot::{CallSite, Hot, Ratio, call_sites, event_of, hottest, instructions, lines, ratios};
pub use text::text;
