//! Process ids as people write them.

/// A number from 1 on. Errors: what the text is instead, and where ids are listed.
pub fn pid(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{text} is no process id; `pgrep -a NAME` lists the ids of programs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_answered_with_how_to_find_its_id() {
        assert_eq!(pid("4711"), Ok(4711));
        for text in ["redis-server", "0", "-1", "99999999999", ""] {
            assert!(pid(text).is_err_and(|error| error.contains("pgrep -a")), "{text}");
        }
    }
}
