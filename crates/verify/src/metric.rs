use crate::Error;
use regex::Regex;

/// What the verdict is about.
#[derive(Clone, Debug)]
pub enum Metric {
    /// A figure that every run has: `wall_s`, `user_s`, `system_s`, `max_rss_bytes`, or one
    /// that a probe adds.
    Measured(String),
    /// A number that the program prints: the last match of the expression, its first group
    /// if it has one.
    Printed(Regex),
}

impl Default for Metric {
    fn default() -> Self {
        Metric::Measured("wall_s".to_owned())
    }
}

impl Metric {
    /// Reads the expression of a printed metric.
    pub fn printed(expression: &str) -> Result<Self, Error> {
        Regex::new(expression).map(Metric::Printed).map_err(|e| {
            let text = e.to_string();
            let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Error::Parameters(format!("--metric {expression:?} is not a regular expression: {why}"))
        })
    }

    /// The name by which samples carry it.
    pub fn name(&self) -> &str {
        match self {
            Metric::Measured(name) => name,
            Metric::Printed(expression) => expression.as_str(),
        }
    }

    /// Finds a printed metric in a run's output; nothing is to be found of a measured one.
    pub(crate) fn find(&self, output: &str, run: usize, side: &str) -> Result<Option<f64>, Error> {
        let Metric::Printed(expression) = self else { return Ok(None) };
        let missing = |why: String| Error::NoMetric { run, side: side.to_owned(), why };
        let found = expression
            .captures_iter(output)
            .last()
            .ok_or_else(|| missing(format!("nothing in the output matches --metric {:?}", expression.as_str())))?;
        let text = found.get(1).or_else(|| found.get(0)).map_or("", |m| m.as_str());
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(missing(format!(
                "--metric {:?} matched {text:?}, which is not a number; put a group around the number",
                expression.as_str()
            ))),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_last_match_counts_by_its_group() {
        let metric = Metric::printed(r"ns_per_visit ([0-9.]+)").unwrap();
        let output = "ns_per_visit 9.5\nns_per_visit 7.25\n";
        assert_eq!(metric.find(output, 1, "with").unwrap(), Some(7.25));
        let error = metric.find("nothing", 3, "with").unwrap_err().to_string();
        assert!(error.contains("run 3 (with)"), "{error}");
        let whole = Metric::printed("total.*").unwrap();
        assert!(whole.find("total 5", 1, "with").is_err());
        assert!(Metric::printed("(").is_err());
    }
}
