//! Knowledge of tasks that a plan of their places rests on.

use nearmiss_pairing::Costs;

/// Basis of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanBasis {
    /// Costs of tasks of the table together.
    Costs(Costs),
    /// Too little yet: tasks take other neighbours, at this turn.
    Mix(u64),
}
