//! One of the two commands that are compared.

use nearmiss_analysis::Engagement;
use nearmiss_workload::Workload;

/// Command of one side, and the check that its remedy was in place.
pub struct SideCommand {
    /// Name of this side in the verdict.
    pub name: String,
    /// The command.
    pub workload: Workload,
    /// The remedy around it; `None` on the side without.
    pub engagement: Option<Box<dyn Engagement>>,
}
