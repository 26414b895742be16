//! Figures that `verify` reads of a load's output.

use super::share::parse_share;
use crate::load::LoadArgs;
use nearmiss_verify::{Better, Offered, Printed, Reading, UnderLoad};

/// Options of a load, and of what it prints.
#[derive(clap::Args)]
pub struct UnderLoadArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// The number of requests in the load's output, by which the CPU time is divided
    #[arg(long, value_name = "REGEX", requires = "load", help_heading = "Servers")]
    work: Option<String>,
    /// The rate that the load tries to reach: in its output, or as a number
    #[arg(long, value_name = "REGEX|RATE", requires = "load", help_heading = "Servers")]
    offered: Option<String>,
    /// The rate that the load reached, in its output
    #[arg(long, value_name = "REGEX", requires = "load", help_heading = "Servers")]
    achieved: Option<String>,
    /// A run misses its rate, or its requests, by more than this; the verdict is void where such runs are more than
    /// one in ten
    #[arg(long, value_name = "SHARE", requires = "load", default_value = "1%", value_parser = parse_share, help_heading = "Servers")]
    pub rate_within: f64,
}

impl UnderLoadArgs {
    /// Whether there is a load.
    pub fn is_given(&self) -> bool {
        self.load.is_given()
    }

    /// The load with what is read of its output. Errors: its program is not there, or an expression is none.
    pub fn under_load(&self, figures: Vec<Printed>) -> anyhow::Result<Option<UnderLoad>> {
        let Some(load) = self.load.load()? else { return Ok(None) };
        let printed = |option, expression: &Option<String>| {
            expression.as_deref().map(|expression| Printed::new(option, expression, Better::Higher)).transpose()
        };
        let offered = match self.offered.as_deref().map(str::parse) {
            Some(Ok(rate)) => Some(Offered::Given(rate)),
            _ => printed("--offered", &self.offered)?.map(Offered::Printed),
        };
        let reading = Reading {
            work: printed("--work", &self.work)?,
            offered,
            achieved: printed("--achieved", &self.achieved)?,
            figures,
            ..Reading::default()
        };
        Ok(Some(UnderLoad { load, reading }))
    }
}
