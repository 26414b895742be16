//! Times as people write them.

use std::time::Duration;

/// `500ms`, `2s`, `1m`. Errors: what is wrong, and how a time is written.
pub fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write a time such as 500ms, 2s or 1m"))
}

/// A time in which something can happen. Errors: as [`time`], or that it is none.
pub fn some_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("no time at all; write it as in 500ms, 2s or 1m".to_owned()),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_time_is_answered_with_how_to_write_one() {
        assert_eq!(time("1500us"), Ok(Duration::from_micros(1500)));
        let error = time("banana").err();
        assert_eq!(error.as_deref(), Some("expected number at 0; write a time such as 500ms, 2s or 1m"));
        assert!(some_time("0s").is_err() && some_time("1ns").is_ok());
    }
}
