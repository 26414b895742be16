//! Orders of a model, as options.

use nearmiss_record::policy::Order;

/// Order in which the records of several CPUs enter the model.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OrderArg {
    /// As they were executed: causal; what it shows of sharing is a lower bound
    Recorded,
    /// The slices of a round taken as simultaneous, merged by modelled cycles
    Modelled,
}

impl From<OrderArg> for Order {
    fn from(order: OrderArg) -> Self {
        match order {
            OrderArg::Recorded => Order::Recorded,
            OrderArg::Modelled => Order::Modelled,
        }
    }
}
