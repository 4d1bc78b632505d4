//! Parallel work whose results are received in the order of the work.

use std::{sync::mpsc, thread};

/// The number of results of one thread that may wait.
const WAITING: usize = 2;

/// Computes `work(state, n)` for every `n` below `count`. Passes the results to `receive` in the
/// order of `n`, in the calling thread, until the first error.
///
/// Each thread has a state of its own. Thread t of T computes t, t + T, t + 2T, and so on. So at
/// most 3 results per thread wait at any time, and the first error is the same with any number of
/// threads. Errors: those of `work` and of `receive`.
pub(super) fn run_ordered<S, T: Send, E: Send>(
    threads: usize,
    count: usize,
    new_state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<T, E> + Sync,
    mut receive: impl FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.clamp(1, count.max(1));
    if threads == 1 {
        let mut state = new_state();
        return (0..count).try_for_each(|n| receive(n, work(&mut state, n)?));
    }
    thread::scope(|scope| {
        let (work, new_state) = (&work, &new_state);
        let (mut receivers, mut handles) = (Vec::new(), Vec::new());
        for thread in 0..threads {
            let (sender, receiver) = mpsc::sync_channel(WAITING);
            receivers.push(receiver);
            handles.push(scope.spawn(move || {
                let mut state = new_state();
                for n in (thread..count).step_by(threads) {
                    let result = work(&mut state, n);
                    let failed = result.is_err();
                    // After the failure of an earlier item, the receiver is gone.
                    if sender.send(result).is_err() || failed {
                        return;
                    }
                }
            }));
        }
        for n in 0..count {
            match receivers[n % threads].recv() {
                Ok(result) => receive(n, result?)?,
                // A thread that ended without a result panicked; its panic is resumed below.
                Err(mpsc::RecvError) => break,
            }
        }
        drop(receivers);
        for handle in handles {
            if let Err(panic) = handle.join() {
                std::panic::resume_unwind(panic);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_order_with_any_thread_count() {
        for threads in [1, 2, 3, 8] {
            let mut got = Vec::new();
            let result: Result<(), ()> = run_ordered(
                threads,
                1000,
                || 0,
                |_, n| Ok(n * 2),
                |n, twice| {
                    got.push((n, twice));
                    Ok(())
                },
            );
            result.unwrap();
            assert_eq!(got, (0..1000).map(|n| (n, n * 2)).collect::<Vec<_>>(), "{threads} threads");
        }
    }

    #[test]
    fn first_error_in_order_ends_the_work() {
        for threads in [1, 2, 3, 8] {
            let mut got = 0;
            let work = |_: &mut (), n| if n % 100 == 99 { Err(n) } else { Ok(()) };
            let result = run_ordered(
                threads,
                1000,
                || (),
                work,
                |_, ()| {
                    got += 1;
                    Ok(())
                },
            );
            assert_eq!((result, got), (Err(99), 99), "{threads} threads");
        }
    }

    #[test]
    fn failing_receiver_ends_the_work() {
        let result = run_ordered(3, 1_000_000, || (), |_, n| Ok(n), |n, _| if n == 5 { Err("enough") } else { Ok(()) });
        assert_eq!(result, Err("enough"));
    }

    #[test]
    #[should_panic(expected = "work 7")]
    fn panic_of_a_thread_is_resumed() {
        let work = |_: &mut (), n| if n == 7 { panic!("work {n}") } else { Ok::<_, ()>(n) };
        let _ = run_ordered(3, 1000, || (), work, |_, _| Ok(()));
    }
}
