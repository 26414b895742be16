//! The tests of guests and of what the plugin sends, two at a time. `walls` is another program.

mod command;
mod decoder;
mod engines;
mod hostile;
mod machine;
mod parts;
mod plugin;
mod saved;
mod sent_code;
mod sites;
mod support;
mod warm;
mod window;
