//! Numbers of call sites: caches keep one with each line, to blame for it.

use nearmiss_record::policy::CallSite;
use rustc_hash::FxHashMap;

/// Call sites by number, from 0 on in the order of their first use.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    numbers: FxHashMap<CallSite, u32>,
    sites: Vec<CallSite>,
}

impl Sites {
    /// The number of a call site.
    #[inline]
    pub(in crate::model) fn number(&mut self, site: CallSite) -> u32 {
        let sites = &mut self.sites;
        *self.numbers.entry(site).or_insert_with(|| {
            sites.push(site);
            sites.len() as u32 - 1
        })
    }

    /// The call site of a number.
    pub(crate) fn site(&self, number: u32) -> CallSite {
        self.sites.get(number as usize).copied().unwrap_or(CallSite { context: 0, insn: 0 })
    }
}
