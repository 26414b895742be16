//! Interleaved comparison of a command with and without a remedy, and its verdict.
