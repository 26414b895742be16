//! A call that was understood: the verb to run, and how its record is answered.

use super::size::{SIZES, Size, cut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;

/// Bytes of the object, and of the text beside it: under 4 KB with the protocol's own members.
const MOST_OF_OBJECT: usize = 2900;
const MOST_OF_TEXT: usize = 800;

/// Makes an answer of a size from what the verb printed: a text, and an object.
type Answering = Box<dyn Fn(&str, Size) -> Result<(String, Value), String> + Send + Sync>;

/// A call of a tool.
pub struct Request {
    /// The verb and its arguments.
    pub words: Vec<String>,
    /// Directory that the verb runs in.
    pub place: PathBuf,
    /// Whether the whole record is requested.
    pub is_full: bool,
    /// Makes the answer.
    pub answering: Answering,
}

impl Request {
    /// A call of a verb that prints a record.
    pub fn of_record<R, A>(
        words: Vec<String>,
        place: PathBuf,
        is_full: bool,
        answer: impl Fn(&R, Size) -> (String, A) + Send + Sync + 'static,
    ) -> Self
    where
        R: DeserializeOwned,
        A: Serialize,
    {
        let answering = move |printed: &str, size: Size| {
            let record =
                serde_json::from_str(printed).map_err(|error| format!("the verb printed no record: {error}"))?;
            let (text, answer) = answer(&record, size);
            Ok((text, serde_json::to_value(answer).map_err(|error| error.to_string())?))
        };
        Request { words, place, is_full, answering: Box::new(answering) }
    }

    /// The largest answer that is small enough, as text and as an object. Errors: the verb printed no record.
    pub fn answer(&self, printed: &str) -> Result<(String, Value), String> {
        let mut answer = (String::new(), Value::Null);
        for size in SIZES {
            answer = (self.answering)(printed, size)?;
            if answer.1.to_string().len() <= MOST_OF_OBJECT {
                break;
            }
        }
        let (text, mut object) = answer;
        if let (true, Value::Object(members)) = (self.is_full, &mut object)
            && let Ok(record) = serde_json::from_str(printed)
        {
            members.insert("record".to_owned(), record);
        }
        Ok((cut(text.trim_end(), MOST_OF_TEXT), object))
    }
}
