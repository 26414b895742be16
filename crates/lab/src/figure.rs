//! Figures in what a cell wrote.

use crate::spec::{Figure, Take};
use nearmiss_verify::{Better, Printed};
use serde_json::Value;

/// Value of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    Number(f64),
    Words(String),
}

/// The keys that hold expressions, as messages name them.
pub(crate) const REGEX: &str = "regex =";
pub(crate) const WORDS: &str = "words =";

/// Reads an expression.
pub(crate) fn expression(key: &'static str, text: &str, better: Better) -> Result<Printed, String> {
    Printed::new(key, text, better).map_err(|error| error.to_string())
}

/// The figure in a text. Errors: why there is none.
pub(crate) fn find(figure: &Figure, text: &str) -> Result<Found, String> {
    if let Some(pointer) = &figure.json {
        return taken(pointer, &values(pointer, text)?, figure.take);
    }
    if let Some(regex) = &figure.regex {
        return expression(REGEX, regex, figure.better)?.find(text).map(Found::Number);
    }
    let words = figure.words.as_deref().unwrap_or_default();
    expression(WORDS, words, figure.better)?.words(text).map(Found::Words)
}

/// Returns the values that the pointer finds in each document of the text.
fn values(pointer: &str, text: &str) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let document = document.map_err(|error| format!("no JSON: {error}"))?;
        let mut at = vec![&document];
        for step in pointer.split('/').skip(1) {
            at = at.into_iter().flat_map(|value| step_into(value, step)).collect();
        }
        found.extend(at.into_iter().cloned());
    }
    Ok(found)
}

fn step_into<'a>(value: &'a Value, step: &str) -> Vec<&'a Value> {
    match (value, step) {
        (Value::Array(elements), "*") => elements.iter().collect(),
        (Value::Object(members), "*") => members.values().collect(),
        // One step of a pointer, as RFC 6901 writes it.
        _ => value.pointer(&format!("/{step}")).into_iter().collect(),
    }
}

fn taken(pointer: &str, values: &[Value], take: Option<Take>) -> Result<Found, String> {
    let number = |value: &Value| value.as_f64().filter(|number| number.is_finite());
    let all = || -> Result<Vec<f64>, String> {
        let as_number = |value| number(value).ok_or_else(|| format!("{pointer}: {value} is not a number"));
        values.iter().map(as_number).collect()
    };
    match (values, take) {
        ([], _) => Err(format!("{pointer}: nothing is there")),
        ([one], _) | ([one, ..], Some(Take::First)) => match one {
            Value::String(text) => Ok(Found::Words(text.clone())),
            _ => number(one).map(Found::Number).ok_or_else(|| format!("{pointer}: neither a number nor words")),
        },
        (_, Some(Take::Sum)) => Ok(Found::Number(all()?.iter().sum())),
        (_, Some(Take::Mean)) => Ok(Found::Number(all()?.iter().sum::<f64>() / values.len() as f64)),
        (_, Some(Take::Largest)) => Ok(Found::Number(all()?.into_iter().fold(f64::NEG_INFINITY, f64::max))),
        (_, None) => Err(format!("{pointer}: {} values; set `take`: sum, mean, largest or first", values.len())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn figure(json: &str, take: Option<Take>) -> Figure {
        toml::from_str::<Figure>(&format!("json = {json:?}")).map(|figure| Figure { take, ..figure }).unwrap()
    }

    #[test]
    fn a_pointer_finds_numbers_and_words_in_every_document() {
        let text = r#"{"jobs":[{"bw":3,"name":"a"},{"bw":4,"name":"b"}]} {"jobs":[{"bw":5}]}"#;
        let find = |pointer, take| super::find(&figure(pointer, take), text);
        assert_eq!(find("/jobs/*/bw", Some(Take::Sum)), Ok(Found::Number(12.0)));
        assert_eq!(find("/jobs/*/bw", Some(Take::Mean)), Ok(Found::Number(4.0)));
        assert_eq!(find("/jobs/*/bw", Some(Take::Largest)), Ok(Found::Number(5.0)));
        assert_eq!(find("/jobs/1/bw", None), Ok(Found::Number(4.0)));
        assert_eq!(find("/jobs/*/name", Some(Take::First)), Ok(Found::Words("a".to_owned())));
        assert!(find("/jobs/*/bw", None).unwrap_err().contains("3 values; set `take`"));
        assert_eq!(find("/no", None), Err("/no: nothing is there".to_owned()));
        assert!(find("/jobs/*/name", Some(Take::Sum)).unwrap_err().contains("not a number"));
    }

    #[test]
    fn text_that_is_no_json_is_an_error() {
        assert!(super::find(&figure("/a", None), "{\"a\": 1} fio: note").unwrap_err().starts_with("no JSON"));
    }
}
