//! The allocator of the product, counting where a benchmark wants to know how often it is asked and how much is held.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use mimalloc::MiMalloc;

struct Counting;

/// Counting is off unless it is wanted: threads that count into one place slow each other down.
static COUNTS: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicI64 = AtomicI64::new(0);

fn count(allocations: u64, bytes: i64) {
    if COUNTS.load(Relaxed) {
        ALLOCATIONS.fetch_add(allocations, Relaxed);
        BYTES.fetch_add(bytes, Relaxed);
    }
}

// SAFETY: everything is handed on to the allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts from here on.
pub fn start_counting() {
    COUNTS.store(true, Relaxed);
}

/// How often memory was asked for.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Relaxed)
}

/// How many bytes are held.
pub fn allocated_bytes() -> i64 {
    BYTES.load(Relaxed)
}
