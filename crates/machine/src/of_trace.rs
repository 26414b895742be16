//! Options of the model and the attribution, by the head of their trace.

use crate::attribution::Options;
use crate::model::ModelOptions;
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::Order;
use nearmiss_record::trace::TraceHeader;

impl ModelOptions {
    /// For all that the trace has, private caches being coherent.
    pub fn of(trace: &TraceHeader, order: Order) -> Self {
        ModelOptions {
            order,
            only_user: trace.only_user,
            coherence: true,
            filter: trace.filter,
            node_bytes: trace.node_bytes.clone(),
            cpus: trace.cpus,
            starts_late: trace.starts_late,
            reasons: true,
            code: None,
            even_slices: false,
        }
    }
}

impl Options {
    /// For the tables of a record, on a machine that is cut down to the trace's CPUs.
    pub fn of(machine: &Machine, trace: &TraceHeader) -> Self {
        Options {
            cpus: trace.cpus,
            levels: machine.levels(),
            line_bytes: machine.data_cache(1).map_or(64, |c| c.line.0 as u32),
            crowds: None,
            aliasing: None,
        }
    }

    /// Includes the tables for remedies: objects that crowd on few sets, and loads that wait for stores to the same
    /// offset of another page.
    pub fn and_evidence(self, machine: &Machine) -> Self {
        Options { crowds: Some(machine.clone()), aliasing: machine.store_aliasing, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::{filter_for, preset};

    #[test]
    fn options_are_the_machines_and_the_traces() {
        let machine = preset("zen4-genoa").unwrap().machine().unwrap();
        let filter = filter_for(&machine);
        let trace =
            TraceHeader { cpus: 2, node_bytes: vec![1 << 30, 2 << 30], only_user: true, filter, ..Default::default() };
        let model = ModelOptions::of(&trace, Order::Modelled);
        assert_eq!((model.order, model.only_user, model.coherence, model.cpus), (Order::Modelled, true, true, 2));
        assert_eq!((model.filter, model.node_bytes), (filter, vec![1 << 30, 2 << 30]));
        let tables = Options::of(&machine, &trace);
        assert_eq!((tables.cpus, tables.levels, tables.line_bytes), (2, 3, 64));
        assert!(tables.crowds.is_none() && tables.aliasing.is_none());
        let all = tables.and_evidence(&machine);
        assert_eq!((all.crowds.as_ref(), all.aliasing), (Some(&machine), machine.store_aliasing));
    }
}
