//! Memory: each call begins with a fresh one and is short, so nothing is ever given back.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicUsize, Ordering};

const PAGE: usize = 65_536;

/// Hands out memory behind the program's own, in order.
struct Heap {
    next: AtomicUsize,
    end: AtomicUsize,
}

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static HEAP: Heap = Heap { next: AtomicUsize::new(0), end: AtomicUsize::new(0) };

#[cfg(target_arch = "wasm32")]
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (mut next, mut end) =
            (self.next.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        if end == 0 {
            end = core::arch::wasm32::memory_size(0) * PAGE;
            next = end;
        }
        let Some(start) = next.checked_next_multiple_of(layout.align()) else {
            return core::ptr::null_mut();
        };
        let Some(stop) = start.checked_add(layout.size()) else { return core::ptr::null_mut() };
        if stop > end {
            let pages = (stop - end).div_ceil(PAGE);
            if core::arch::wasm32::memory_grow(0, pages) == usize::MAX {
                return core::ptr::null_mut();
            }
            end += pages * PAGE;
        }
        self.next.store(stop, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        start as *mut u8
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
