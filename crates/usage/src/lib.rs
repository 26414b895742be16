//! Command-line texts of a program: one line for wrong use, man pages and shell completions, made of the definitions
//! that the parser reads; and how the program prints them.

mod generate;
mod pid;
mod progress;
mod stream;
mod time;
mod wrong_use;

pub use generate::{GeneratedText, NotGenerated, generate};
pub use pid::pid;
pub use progress::{A_WHILE, Progress};
pub use stream::{print, report};
pub use time::{some_time, time};
pub use wrong_use::{in_one_line, read};
