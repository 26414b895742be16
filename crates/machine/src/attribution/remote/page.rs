//! Uses of a page by task and node, and the home that follows from them.

use super::super::objects::ObjectId;
use super::Cause;

/// Least share of a page's reads from one node for the page to belong on that node.
const OF_ONE_NODE: f64 = 0.9;
/// A page with a store for each so many reads, once a second task is there, is written while it is shared.
const READS_A_STORE: u64 = 16;
/// Users that are kept apart; later ones count as the last.
const MOST_USERS: usize = 256;

/// A task's use of a page from one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub tid: u32,
    pub node: u8,
    /// Reads on the bus, without those of the first task while it was alone.
    pub reads: u64,
    /// Stores, likewise.
    pub stores: u64,
}

/// A page of user memory.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub vaddr: u64,
    pub pid: u32,
    pub home: u8,
    /// Task and node of the first touch.
    pub first: (u32, u8),
    /// A second task has come.
    shared: bool,
    /// Users after the first task's time alone; and in that time.
    users: Vec<User>,
    alone: Vec<User>,
    /// Set at the first remote read.
    pub object: Option<ObjectId>,
    pub remote: u64,
    /// Cycles that the remote reads waited.
    pub waits: u64,
}

/// Judgement of a page's remote reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageJudgement {
    pub cause: Cause,
    /// The node that reads the page most.
    pub best: u8,
    /// A node other than `best` stores to the page.
    pub stored_elsewhere: bool,
}

impl Page {
    pub fn new(vaddr: u64, pid: u32, by: (u32, u8)) -> Self {
        Page {
            vaddr,
            pid,
            home: by.1,
            first: by,
            shared: false,
            users: Vec::new(),
            alone: Vec::new(),
            object: None,
            remote: 0,
            waits: 0,
        }
    }

    /// A reference of this task from this node: it reads on the bus, or not; it stores, or not.
    pub fn used(&mut self, by: (u32, u8), reads: bool, stores: bool) {
        self.shared |= by.0 != self.first.0;
        let users = if self.shared { &mut self.users } else { &mut self.alone };
        let at = users.iter().position(|user| (user.tid, user.node) == by).unwrap_or_else(|| {
            if users.len() < MOST_USERS {
                users.push(User { tid: by.0, node: by.1, reads: 0, stores: 0 });
            }
            users.len() - 1
        });
        users[at].reads += u64::from(reads);
        users[at].stores += u64::from(stores);
    }

    /// All bus reads, the first task's while it was alone included.
    pub fn reads(&self) -> u64 {
        self.users.iter().chain(&self.alone).map(|user| user.reads).sum()
    }

    /// Whether any task of user mode stored to the page. A file's page then has no private copies.
    pub fn is_stored_to(&self) -> bool {
        self.users.iter().chain(&self.alone).any(|user| user.stores > 0)
    }

    /// Returns the users that count: those of the time with several tasks, if there was one.
    pub fn users(&self) -> &[User] {
        if self.shared { &self.users } else { &self.alone }
    }

    /// Returns the reason why the page's home is another node than that of its readers.
    pub fn judge(&self) -> PageJudgement {
        let users = self.users();
        let reads_from = |node: u8| users.iter().filter(|user| user.node == node).map(|user| user.reads).sum::<u64>();
        let reads: u64 = users.iter().map(|user| user.reads).sum();
        let best = users.iter().map(|user| user.node).max_by_key(|node| (reads_from(*node), u8::MAX - *node));
        let best = best.unwrap_or(self.home);
        let mut readers: Vec<u32> = users.iter().filter(|user| user.reads > 0).map(|user| user.tid).collect();
        readers.sort_unstable();
        readers.dedup();
        let of_one_node = reads_from(best) as f64 >= OF_ONE_NODE * reads as f64;
        let stores =
            |of: &dyn Fn(&User) -> bool| users.iter().filter(|user| of(user)).map(|user| user.stores).sum::<u64>();
        let only = match readers.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        let others_write = stores(&|user| user.node != best && only != Some(user.tid)) * READS_A_STORE >= reads.max(1);
        let cause = match only {
            Some(_) if !of_one_node => Cause::Moved,
            _ if of_one_node && best != self.home && others_write => Cause::Written,
            Some(only) if only == self.first.0 && (best != self.first.1 || best == self.home) => Cause::Moved,
            _ if of_one_node && best != self.home && self.first.1 != self.home => Cause::Elsewhere,
            _ if of_one_node && best != self.home => Cause::FirstTouch,
            _ if stores(&|_| true) * READS_A_STORE >= reads => Cause::Written,
            _ => Cause::Read,
        };
        let stored_elsewhere = stores(&|user| user.node != best) > 0;
        PageJudgement { cause, best, stored_elsewhere }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cause and the best node of a page that task 1 wrote on node 0, after these uses: task, node, reads, stores.
    fn judged(uses: &[(u32, u8, u32, u32)]) -> (Cause, u8) {
        let mut page = Page::new(0x1000, 1, (1, 0));
        (0..64).for_each(|_| page.used((1, 0), true, true));
        for &(tid, node, reads, stores) in uses {
            (0..reads).for_each(|_| page.used((tid, node), true, false));
            (0..stores).for_each(|_| page.used((tid, node), false, true));
        }
        let PageJudgement { cause, best, .. } = page.judge();
        (cause, best)
    }

    #[test]
    fn each_cause_is_separated_from_the_others() {
        assert_eq!(judged(&[(2, 1, 100, 0)]), (Cause::FirstTouch, 1));
        // The reader may write bytes that it alone uses.
        assert_eq!(judged(&[(2, 1, 100, 90)]), (Cause::FirstTouch, 1));
        // Several readers of one node are no reason to call the page shared.
        assert_eq!(judged(&[(2, 1, 50, 0), (3, 1, 50, 0)]), (Cause::FirstTouch, 1));
        assert_eq!(judged(&[(1, 1, 100, 0)]), (Cause::Moved, 1));
        assert_eq!(judged(&[(2, 1, 100, 0), (2, 0, 80, 0)]), (Cause::Moved, 1));
        assert_eq!(judged(&[(2, 1, 50, 0), (3, 0, 50, 0)]), (Cause::Read, 0));
        assert_eq!(judged(&[(2, 1, 50, 3), (3, 0, 50, 3)]), (Cause::Read, 0));
        assert_eq!(judged(&[(2, 1, 50, 4), (3, 0, 50, 4)]), (Cause::Written, 0));
    }

    #[test]
    fn a_page_that_another_node_keeps_writing_is_written_though_its_stores_read_nothing() {
        assert_eq!(judged(&[(2, 1, 100, 0), (1, 0, 0, 7)]), (Cause::Written, 1));
        assert_eq!(judged(&[(2, 1, 100, 0), (1, 0, 0, 6)]), (Cause::FirstTouch, 1));
        // The same task from another node is no other writer.
        assert_eq!(judged(&[(2, 1, 100, 0), (2, 0, 0, 50)]), (Cause::FirstTouch, 1));
    }

    #[test]
    fn a_page_that_lies_on_another_node_than_its_first_touch_has_a_cause_of_its_own() {
        let elsewhere = |uses: &[(u32, u8)]| {
            let mut page = Page::new(0x1000, 1, (1, 0));
            page.home = 1;
            page.used((1, 0), false, true);
            uses.iter().for_each(|by| (0..20).for_each(|_| page.used(*by, true, false)));
            page.judge().cause
        };
        assert_eq!(elsewhere(&[(1, 0)]), Cause::Elsewhere);
        assert_eq!(elsewhere(&[(2, 0)]), Cause::Elsewhere);
        assert_eq!(elsewhere(&[(1, 0), (1, 1)]), Cause::Moved);
        assert_eq!(elsewhere(&[(2, 0), (3, 1)]), Cause::Read);
    }

    #[test]
    fn the_first_task_s_time_alone_counts_where_nobody_else_came() {
        assert_eq!(judged(&[]), (Cause::Moved, 0));
        let mut page = Page::new(0x1000, 1, (1, 0));
        page.used((1, 0), true, true);
        page.used((2, 1), true, false);
        assert_eq!((page.reads(), page.users().len()), (2, 1));
    }
}
