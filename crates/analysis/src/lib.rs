//! The road from a command to findings.
//!
//! [`record`] runs a command in the guest, models its references as they come and keeps a run. [`Traced`] is a run on
//! a machine: the model's record, names, and evidence, from the recording itself or from the kept trace. [`Replays`]
//! are further models of the same run, under other policies, on other pages or machines. [`detect`] collects the
//! suspicions of the remedies, and [`judge`] rehearses them and ranks the findings.
//!
//! A [`Remedy`] is a definition that this crate only calls: it looks at a [`Case`], a traced run, an observed one or
//! both, and returns [`Suspicion`]s; each rehearses itself by replays, and becomes a finding or a table. Applying
//! takes a described command and returns the command under the remedy together with an [`Engagement`], which afterwards
//! reports whether the remedy was in place and what it did.

mod baselines;
mod case;
mod compared;
mod contract;
mod cost;
mod counted_pages;
mod engagement;
mod evidence;
mod findings;
mod kernel_structures;
mod modelling;
mod names;
mod page_faults;
mod parts;
mod pass;
mod placements;
mod recording;
pub mod replay;
mod replays;
mod traced;
mod translation;
mod unrehearsed;
mod wrap;

pub use case::{Case, Needs};
pub use compared::Compared;
pub use contract::{
    Ability, Applied, AppliedRecord, Attach, Help, Inability, Parameter, RehearsalRequest, Remedy, Suspicion,
    Suspicions, Value,
};
pub use cost::Cost;
pub use counted_pages::{CountedPages, pages_by_part};
pub use engagement::{Acts, CannotEngage, Engaged, Engagement, NotEngaged};
pub use evidence::Evidence;
pub use findings::{Detected, Moment, Options, detect, judge, over_moments};
pub use kernel_structures::kernel_structures;
pub use modelling::model_again;
pub use nearmiss_machine::model::ModelTotals;
pub use nearmiss_symbols::{Member, Structure, has_symbol_table, structures};
pub use page_faults::PageFaults;
pub use parts::{PartSaving, of_whole_run};
pub use placements::{AGREED_BY_THREE, AGREED_BY_TWO, PLACEMENTS, placed, seeds};
pub use recording::{Counted, RecordError, Recording, Stage, TraceOptions, count, count_misses, ends, record};
pub use replay::CaseError;
pub use replays::{Replays, side_by_side, spread, waits, workers};
pub use traced::{Recorded, TracePart, Traced, dearest_wait};
pub use translation::translation_misses;
pub use unrehearsed::Unrehearsed;
pub use wrap::{Wrapped, wrap};
