//! Tasks beside each other under the scheduler of `apply pair`, as the scheduler reports them.
#![allow(clippy::unwrap_used)]

use serde_json::Value;

/// Returns the share of the time of pairs that two of one group had, for two groups with alternating tasks.
pub fn same_group(record: &Value) -> f64 {
    let (mut same, mut all) = (0.0, 0.0);
    for together in record["scheduler"]["together"].as_array().unwrap() {
        let [a, b] = [0, 1].map(|at| together["tasks"][at].as_u64().unwrap());
        let ns = together["ns"].as_f64().unwrap();
        all += ns;
        same += if a % 2 == b % 2 { ns } else { 0.0 };
    }
    same / all
}
