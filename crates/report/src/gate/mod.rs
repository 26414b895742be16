//! The verdict of `nearmiss gate`: for a terminal, for a pull request, and for what CI systems read. Every figure is
//! *modelled*.

mod junit;
mod markdown;
mod sarif;
mod text;
mod words;

pub use junit::junit;
pub use markdown::markdown;
pub use sarif::sarif;
pub use text::text;
