//! The functions on a record's way, and the callers of its copy.

/// The functions that the model distinguishes, as Linux 2.6 names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Function {
    /// `__copy_from_user_ll`: user buffer to page cache or pipe.
    Copy,
    /// `__copy_to_user_ll`: a reader's copy out of a pipe.
    CopyOut,
    /// The page allocator.
    Allocate,
    /// The page cache's tree.
    Tree,
    /// The journal's own structure of a block.
    JournalHead,
    /// Buffer heads made and marked dirty.
    BufferHead,
    /// A dirty page on its way to the device.
    Submit,
    /// `blk_rq_map_sg`: pieces of a request for the device.
    MapPieces,
    /// The end of a request's transfer.
    EndRequest,
    /// The end of a page's.
    EndPage,
    /// A transaction commits.
    Commit,
    /// Pages go back to the allocator.
    Reclaim,
    /// Locks and what they guard, which all CPUs write.
    Lock,
    /// Locks and what they guard, with interrupts off.
    LockIrq,
    /// Memory that is used with each record and stays near.
    Usual,
    /// All other memory of kernel and program.
    Other,
}

impl Function {
    /// All.
    pub const ALL: [Function; 16] = [
        Function::Copy,
        Function::CopyOut,
        Function::Allocate,
        Function::Tree,
        Function::JournalHead,
        Function::BufferHead,
        Function::Submit,
        Function::MapPieces,
        Function::EndRequest,
        Function::EndPage,
        Function::Commit,
        Function::Reclaim,
        Function::Lock,
        Function::LockIrq,
        Function::Usual,
        Function::Other,
    ];

    /// For a table.
    pub fn name(self) -> &'static str {
        match self {
            Function::Copy => "__copy_from_user_ll",
            Function::CopyOut => "__copy_to_user_ll",
            Function::Allocate => "buffered_rmqueue",
            Function::Tree => "radix_tree_insert",
            Function::JournalHead => "journal_add_journal_head",
            Function::BufferHead => "alloc_buffer_head",
            Function::Submit => "submit_bh",
            Function::MapPieces => "blk_rq_map_sg",
            Function::EndRequest => "__end_that_request_first",
            Function::EndPage => "end_buffer_async_write",
            Function::Commit => "journal_commit_transaction",
            Function::Reclaim => "shrink_list",
            Function::Lock => "_spin_lock",
            Function::LockIrq => "_spin_lock_irqsave",
            Function::Usual => "what is used with each record",
            Function::Other => "all other memory",
        }
    }
}

/// Callers of the copy: the model's calling contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Caller {
    /// `generic_file_buffered_write`: the copy is not read soon.
    FileWrite = 1,
    /// `pipe_writev`: the reader waits for the copy.
    PipeWrite = 2,
}
