//! Answering needs no heap: an allocator that counts shows that `next` and its kin never ask for memory.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use punctual_spec::{Cron, Dialect, Environment, Gap, Interval, Spec};

/// The system's allocator, counting what the current thread asks for.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed on to the system's allocator unchanged; the counter is a plain thread-local cell.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn next_previous_matches_and_iterate_never_allocate() {
    let day = Cron::new(Dialect::Temporal, "* * 12 25 12 * *");
    let specs = [
        Spec::new().cron("* * * * *"),
        Spec::new().cron("0 9 * * MON-FRI").zone("Europe/Berlin").gap(Gap::After),
        Spec::new().cron_in(Dialect::Quartz, "0 0 9 ? * FRIL").jitter(SignedDuration::from_mins(5)),
        Spec::new().cron_in(Dialect::Quartz, "0 0 9 3B * ?").exclude_cron(day.clone()),
        Spec::new()
            .interval(Interval::every(SignedDuration::from_mins(7)))
            .exclude_cron(day)
            .zone("Asia/Gaza"),
        Spec::new().cron("0 0 29 2 *").at(Timestamp::from_second(1_800_000_000).unwrap()),
    ];
    for spec in specs {
        let compiled = spec.compile_in(&Environment::default().with_seed("namespace-schedule")).unwrap();
        let before = ASKED.get();
        let mut at = Timestamp::from_second(1_767_225_600).unwrap();
        for _ in 0..500 {
            let Some(next) = compiled.next(at) else { break };
            assert!(compiled.matches(next.nominal_time) && compiled.previous(at) != Some(next));
            at = next.nominal_time;
        }
        let through = at.checked_add(SignedDuration::from_hours(48)).unwrap();
        let _ = compiled.iterate(at, through).count();
        assert_eq!(ASKED.get() - before, 0, "{spec:?}");
    }
    // The counter counts.
    let before = ASKED.get();
    drop(std::hint::black_box(vec![1]));
    assert!(ASKED.get() > before);
}
