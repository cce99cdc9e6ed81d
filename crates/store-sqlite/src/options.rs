//! How a file is opened: durability, memory, and what is decided once.

/// How a file is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// When a commit is durable.
    pub synchronous: Synchronous,
    /// How many shards schedules are spread over. It is decided when the file is made; later it is what the file says.
    pub shards: u32,
    /// Bytes of pages that the writer keeps in memory; default 24 MiB, since hot states are written again and again.
    pub writer_cache_bytes: usize,
    /// Bytes of pages that each reader keeps in memory; default 4 MiB, since the system keeps the file in memory too.
    pub reader_cache_bytes: usize,
    /// Threads that answer questions; default 2, at least 1.
    pub readers: usize,
}

/// When a commit is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// When it is answered: nothing that was answered is lost, whatever happens to the machine.
    #[default]
    Full,
    /// When it is answered, if only the process dies. If the machine loses power, the last moments may be lost; what is
    /// left is consistent.
    Normal,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            synchronous: Synchronous::Full,
            shards: 1,
            writer_cache_bytes: 24 << 20,
            reader_cache_bytes: 4 << 20,
            readers: 2,
        }
    }
}
