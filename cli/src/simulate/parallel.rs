//! Runs simulations on several threads, and consumes their results in order.

use anyhow::{Error, anyhow};
use std::num::NonZero;
use std::thread;

/// Runs all tasks, as many at once as there are cores, and consumes the results in the order of the tasks.
///
/// Only the results of tasks that run at the same time are kept.
pub(crate) fn run_in_order<T: Sync, R: Send>(
    tasks: &[T],
    run: impl Fn(&T) -> Result<R, Error> + Sync,
    mut consume: impl FnMut(R) -> Result<(), Error>,
) -> Result<(), Error> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    for batch in tasks.chunks(threads) {
        if let [task] = batch {
            consume(run(task)?)?;
            continue;
        }
        let results = thread::scope(|scope| {
            let running = batch.iter().map(|task| scope.spawn(|| run(task)));
            // All begin before the first is awaited.
            let running: Vec<_> = running.collect();
            let results = running.into_iter().map(|it| {
                it.join().unwrap_or_else(|_| {
                    Err(anyhow!("a simulation has failed; report this as a bug"))
                })
            });
            results.collect::<Vec<_>>()
        });
        for result in results {
            consume(result?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::run_in_order;
    use anyhow::anyhow;

    #[test]
    fn results_are_in_the_order_of_tasks_until_the_first_error() {
        let tasks: Vec<u32> = (0..20).collect();
        let mut seen = Vec::new();
        run_in_order(
            &tasks,
            |task| Ok(task * 2),
            |it| {
                seen.push(it);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(seen, (0..20).map(|it| it * 2).collect::<Vec<u32>>());
        let mut seen = Vec::new();
        let run = |task: &u32| {
            if *task == 7 {
                return Err(anyhow!("seven"));
            }
            Ok(*task)
        };
        let error = run_in_order(&tasks, run, |it| {
            seen.push(it);
            Ok(())
        });
        assert_eq!(error.unwrap_err().to_string(), "seven");
        assert_eq!(seen, (0..7).collect::<Vec<u32>>());
    }
}
