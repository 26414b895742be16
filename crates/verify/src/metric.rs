use crate::{Better, Error};
use regex::Regex;

/// Metric of the verdict.
#[derive(Clone, Debug)]
pub enum Metric {
    /// A figure that every run has: `wall_s`, `user_s`, `system_s`, `max_rss_bytes`, or one
    /// that a probe adds.
    Measured(String),
    /// A number that the program prints.
    Printed(Printed),
}

impl Default for Metric {
    fn default() -> Self {
        Metric::Measured("wall_s".to_owned())
    }
}

impl Metric {
    /// Reads the expression of a printed metric.
    pub fn printed(expression: &str) -> Result<Self, Error> {
        Printed::new("--metric", expression, Better::default()).map(Metric::Printed)
    }

    /// Returns the metric's name in samples.
    pub fn name(&self) -> &str {
        match self {
            Metric::Measured(name) => name,
            Metric::Printed(printed) => &printed.name,
        }
    }
}

/// Reduction of several matches in one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    Last,
    Sum,
    Mean,
}

/// A number that a program prints: the first group of an expression if it has one. A second group is the unit of a time
/// (`us`, `ms`, `s`), which is then given in milliseconds.
#[derive(Clone, Debug)]
pub struct Printed {
    /// The option that requests it, for messages.
    pub(crate) option: &'static str,
    /// Name of the number in samples.
    pub name: String,
    /// Direction that is better for the number.
    pub better: Better,
    pub(crate) expression: Regex,
    pub(crate) take: Take,
}

impl Printed {
    /// The last match of an expression that was given with an option, which is also its name. Errors: no expression.
    pub fn new(option: &'static str, expression: &str, better: Better) -> Result<Self, Error> {
        let compiled = Regex::new(expression).map_err(|e| {
            let text = e.to_string();
            let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Error::Parameters(format!("{option} {expression:?} is not a regular expression: {why}"))
        })?;
        Ok(Printed { option, name: expression.to_owned(), better, expression: compiled, take: Take::Last })
    }

    /// Returns the number under another name.
    pub(crate) fn named(self, name: &str) -> Self {
        Printed { name: name.to_owned(), ..self }
    }

    /// The number in an output. Errors: why there is none.
    pub fn find(&self, output: &str) -> Result<f64, String> {
        let matches: Vec<_> = self.expression.captures_iter(output).collect();
        let wanted = if self.take == Take::Last { matches.len().saturating_sub(1) } else { 0 };
        let numbers: Vec<f64> =
            matches.iter().skip(wanted).map(|found| self.number(found)).collect::<Result<_, _>>()?;
        match (self.take, numbers.len()) {
            (_, 0) => Err(format!("nothing in the output matches {} {:?}", self.option, self.expression.as_str())),
            (Take::Mean, count) => Ok(numbers.iter().sum::<f64>() / count as f64),
            (Take::Last | Take::Sum, _) => Ok(numbers.iter().sum()),
        }
    }

    /// The words in an output: the first match, or its first group. Errors: nothing matches.
    pub fn words(&self, output: &str) -> Result<String, String> {
        let found = self.expression.captures(output).and_then(|found| found.get(1).or_else(|| found.get(0)));
        let none = || format!("nothing in the output matches {} {:?}", self.option, self.expression.as_str());
        found.map(|words| words.as_str().trim().to_owned()).ok_or_else(none)
    }

    fn number(&self, found: &regex::Captures<'_>) -> Result<f64, String> {
        let text = found.get(1).or_else(|| found.get(0)).map_or("", |m| m.as_str());
        let scale = match found.get(2).map(|unit| unit.as_str()) {
            Some("us") => 1e-3,
            Some("s") => 1e3,
            _ => 1.0,
        };
        text.trim().parse().ok().filter(|number: &f64| number.is_finite()).map(|number| number * scale).ok_or_else(
            || {
                format!(
                    "{} {:?} matched {text:?}, which is not a number; put a group around the number",
                    self.option,
                    self.expression.as_str()
                )
            },
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn printed(expression: &str) -> Printed {
        Printed::new("--metric", expression, Better::Lower).unwrap()
    }

    #[test]
    fn the_last_match_counts_by_its_group() {
        let metric = printed(r"ns_per_visit ([0-9.]+)");
        assert_eq!(metric.find("ns_per_visit 9.5\nns_per_visit 7.25\n"), Ok(7.25));
        assert_eq!(printed("class +([^,]+)").words("a\nclass  idle, b\nclass busy"), Ok("idle".to_owned()));
        let error = metric.find("nothing").unwrap_err();
        assert_eq!(error, "nothing in the output matches --metric \"ns_per_visit ([0-9.]+)\"");
        assert!(printed("total.*").find("total 5").unwrap_err().contains("matched \"total 5\", which is not a number"));
        assert!(Printed::new("--work", "(", Better::Lower).unwrap_err().to_string().starts_with("--work \"(\" is not"));
    }

    #[test]
    fn times_are_read_in_milliseconds_and_matches_taken_together() {
        let time = printed(r"t ([0-9.]+)(us|ms|s)");
        assert_eq!(["t 1500us", "t 2.5ms", "t 0.25s"].map(|text| time.find(text).unwrap()), [1.5, 2.5, 250.0]);
        let of = |take| Printed { take, ..printed(r"n ([0-9]+)") }.find("n 10 n 20");
        assert_eq!([Take::Last, Take::Sum, Take::Mean].map(of), [Ok(20.0), Ok(30.0), Ok(15.0)]);
    }
}
