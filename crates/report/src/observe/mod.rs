//! Reports of an observed run. Every figure here was *measured*.

mod detail;
mod export;
mod hot;
mod live;
mod page;
mod text;
mod timeline;
mod words;

pub use detail::{function, log};
pub use export::{firefox, folded, perfetto, to_pprof};
pub use hot::{CallSite, Hot, Ratio, call_sites, event_of, hottest, instructions, lines, ratios};
pub use live::top_lines;
pub use page::html;
pub use text::text;
pub(crate) use words::time;
