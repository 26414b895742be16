//! An open-loop load for servers, and an origin to stand behind them: the clients and the origin of WebAxe-4, and plain
//! requests at a fixed rate over HTTP, RESP and memcached's text protocol.

mod arrivals;
mod cli;
mod clock;
mod content;
mod engine;
mod files;
mod http;
mod laws;
mod load;
mod measure;
mod object;
mod origin;
mod outcome;
mod part;
mod popularity;
mod ports;
mod rate;
mod report;
mod socket;
mod web;

pub use cli::run;
