//! Steps of a process in each benchmark, request by request.

use super::pools::{Class, Object};

/// The kernel lock; the pools' locks come behind it.
pub const KERNEL_LOCK: usize = 0;

/// Functions that take time: those that the paper names, and the rest in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The process itself.
    User,
    /// Copies between files' pages and packets.
    CsumCopy,
    /// Waits for spin locks.
    LockWait,
    /// Copies out of the file cache to the process.
    FileRead,
    /// Gives memory out.
    Kmalloc,
    /// Takes memory back.
    Kfree,
    /// Packets, in and out, beside their copies.
    Network,
    /// Connections that come and go.
    Socket,
    /// All the rest of the kernel.
    Rest,
}

impl Function {
    /// All, in the order of their numbers.
    pub const ALL: [Function; 9] = [
        Function::User,
        Function::CsumCopy,
        Function::LockWait,
        Function::FileRead,
        Function::Kmalloc,
        Function::Kfree,
        Function::Network,
        Function::Socket,
        Function::Rest,
    ];

    /// As the paper names it, where it does.
    pub fn name(self) -> &'static str {
        match self {
            Function::User => "user",
            Function::CsumCopy => "csum_partial_copy_generic",
            Function::LockWait => "stext_lock",
            Function::FileRead => "file_read_actor",
            Function::Kmalloc => "kmalloc",
            Function::Kfree => "kfree",
            Function::Network => "packets",
            Function::Socket => "sockets",
            Function::Rest => "other kernel",
        }
    }
}

/// A piece of work; lines are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Function that the time counts for.
    pub function: Function,
    /// Instructions.
    pub instructions: u64,
    /// Lines of the process.
    pub private: u64,
    /// Lines that all CPUs write.
    pub shared: u64,
    /// Lines of memory that lasts, that of files included.
    pub lasting: u64,
    /// Lines of a page that the node's CPUs had lately.
    pub lately: u64,
    /// An object that is written.
    pub fills: Option<Class>,
    /// Lines of the object that come from a file.
    pub copied: u64,
    /// Lines that come from a file to the process.
    pub reads: u64,
}

impl Work {
    fn new(function: Function, instructions: u64) -> Self {
        let (private, shared, lasting, lately, copied, reads) = (0, 0, 0, 0, 0, 0);
        Work { function, instructions, private, shared, lasting, lately, fills: None, copied, reads }
    }
}

/// One thing that a CPU does.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Takes a lock, at once or after a wait.
    Take(usize),
    /// Releases a lock.
    Release(usize),
    /// Requests an object.
    Request(Class),
    /// Gets an object, under the lock if it needs one.
    Obtain(Class),
    /// Has no more need of its latest object of a kind.
    Give(Class),
    /// Gives an object back, under the lock if it needs one.
    Return(Object),
    /// Handles so many packets that came over the network.
    Interrupt(u64),
    /// The latest packet is for a process of some CPU.
    Deliver,
    /// Takes what came for its processes.
    Receive,
    /// The latest packet goes.
    Sent(Class),
    /// Works.
    Work(Work),
    /// A request is done.
    Done,
}

/// A benchmark; [`super::parameters`] states how each figure was set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Server processes.
    pub processes: usize,
    /// Pages of a process.
    pub private_pages: usize,
    /// The process touches its pages first; else its parent did.
    pub touches_first: bool,
    /// Pages of memory that lasts: file cache, caches of directories and inodes.
    pub lasting_pages: usize,
    /// Share of memory that goes with a packet and is given back on the CPU that allocated it, in percent.
    pub same_cpu_percent: u64,
    /// Instructions of a packet, in or out, beside copy and allocator.
    pub packet_instructions: u64,
    /// Instructions of the allocator under a pool's lock.
    pub pool_instructions: u64,
    /// Packets that come, a request.
    pub received: u64,
    /// Packets with data that go.
    pub sent: u64,
    /// Packets without data that go.
    pub acknowledged: u64,
    /// Lines of a packet's data.
    pub packet_lines: u64,
    /// Lines copied from files to the process.
    pub file_lines: u64,
    /// Connections that come and go.
    pub connections: u64,
    /// Instructions under the kernel lock.
    pub locked_instructions: u64,
    /// Times that the lock is taken, beside those of connections.
    pub locked_calls: u64,
    /// Instructions of the process.
    pub user_instructions: u64,
    /// Lines of its own that the process uses.
    pub user_lines: u64,
    /// All other instructions of the kernel.
    pub kernel_instructions: u64,
    /// Lines that all CPUs write.
    pub shared_lines: u64,
    /// Lines of memory that lasts.
    pub lasting_lines: u64,
    /// Lines of pages that go round on the node.
    pub lately_lines: u64,
}

/// Cycles a word of a copy takes beside its misses: instructions a line.
const COPY_INSTRUCTIONS: u64 = 24;
/// Parts that the rest of the kernel's work is cut into, so that what others do comes in between.
const PARTS: u64 = 4;

impl Load {
    /// One request.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = vec![Step::Interrupt(self.received), Step::Receive];
        for _ in 0..self.connections {
            steps.extend(self.opens());
        }
        for _ in 0..self.acknowledged {
            steps.extend(self.sends(Class::Small, 0));
        }
        for part in 0..PARTS {
            steps.push(Step::Work(self.rest()));
            steps.push(Step::Work(self.user()));
            if self.file_lines > 0 {
                steps.push(Step::Work(self.reads_file()));
            }
            for _ in 0..(self.sent * (part + 1) / PARTS - self.sent * part / PARTS) {
                steps.extend(self.sends(Class::Packet, self.packet_lines));
            }
        }
        for _ in 0..self.locked_calls {
            steps.extend(self.under_the_lock());
        }
        for _ in 0..self.connections {
            steps.extend(self.closes());
        }
        steps.push(Step::Done);
        steps
    }

    fn under_the_lock(&self) -> [Step; 3] {
        let work = Work { shared: 4, ..Work::new(Function::Socket, self.locked_instructions) };
        [Step::Take(KERNEL_LOCK), Step::Work(work), Step::Release(KERNEL_LOCK)]
    }

    /// A connection's objects come under the kernel lock.
    fn opens(&self) -> Vec<Step> {
        let write = |class: Class| {
            let work = Work::new(Function::Socket, self.locked_instructions / 2);
            [Step::Request(class), Step::Work(Work { fills: Some(class), shared: 2, ..work })]
        };
        let mut steps = vec![Step::Take(KERNEL_LOCK)];
        steps.extend([write(Class::Socket), write(Class::File)].into_iter().flatten());
        steps.push(Step::Release(KERNEL_LOCK));
        steps
    }

    fn closes(&self) -> Vec<Step> {
        let mut steps = self.under_the_lock().to_vec();
        let last = steps.pop();
        steps.extend([Step::Give(Class::Socket), Step::Give(Class::File)]);
        steps.extend(last);
        steps
    }

    fn sends(&self, class: Class, copied: u64) -> Vec<Step> {
        let head = Work::new(Function::Network, self.packet_instructions);
        let copy = Work::new(Function::CsumCopy, copied * COPY_INSTRUCTIONS);
        let function = if copied > 0 { Function::CsumCopy } else { Function::Network };
        vec![
            Step::Request(Class::Head),
            Step::Work(Work { fills: Some(Class::Head), ..head }),
            Step::Request(class),
            Step::Work(Work { fills: Some(class), copied, function, ..copy }),
            Step::Sent(class),
        ]
    }

    fn reads_file(&self) -> Work {
        let reads = self.file_lines / PARTS;
        Work { reads, ..Work::new(Function::FileRead, reads * COPY_INSTRUCTIONS) }
    }

    fn user(&self) -> Work {
        let work = Work::new(Function::User, self.user_instructions / PARTS);
        Work { private: self.user_lines / PARTS, ..work }
    }

    fn rest(&self) -> Work {
        Work {
            shared: self.shared_lines / PARTS,
            lasting: self.lasting_lines / PARTS,
            lately: self.lately_lines / PARTS,
            ..Work::new(Function::Rest, self.kernel_instructions / PARTS)
        }
    }
}
