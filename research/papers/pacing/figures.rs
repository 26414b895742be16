//! Figures of the paper's own text and pictures.

/// Highest rate without errors, keep-alive on, 7,000 sockets: interval 0 and 10 ms.
pub const HIGHEST_KEEPING: [f64; 2] = [1600.0, 2000.0];
/// Keep-alive off: interval 0 stays below this rate, 10 ms and 20 ms reach it.
pub const HIGHEST_CLOSING: f64 = 2000.0;
