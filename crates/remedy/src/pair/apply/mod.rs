//! `nearmiss apply pair`: the command with its tasks beside those with which they share a cache well.

use crate::{Ability, Applied, CannotEngage};
use clap::ArgMatches;
use nearmiss_workload::Workload;

/// `nearmiss apply pair`'s arguments, shared with the other verbs that take the remedy.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {}

/// As the registry asks for it, with the options as they were given.
pub(super) fn engage(_: Workload, _: &ArgMatches) -> Result<Applied, CannotEngage> {
    Err(CannotEngage::Parameters(
        "pair is not applied yet: nearmiss rehearse pair names the tasks of each cache".to_owned(),
    ))
}

/// `pair`.
pub(super) fn title(_: &ArgMatches) -> String {
    super::NAME.to_owned()
}

/// Nothing of it is tried here yet.
pub(super) fn abilities() -> Vec<Ability> {
    Vec::new()
}
