//! HTTP/1.1 as a client reads it: the head, the framing of the body, and the cache status.

pub mod chunked;
pub mod head;
pub mod reply;

#[cfg(test)]
mod noise;
