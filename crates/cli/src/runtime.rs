//! On which threads commands run.
//!
//! What carries a stream runs on one thread: input, session and output hand over to each other without waking another
//! thread for each packet, which costs more than the packet. What may block, such as a row of statistics for a pipe that
//! is not read, runs aside.

use std::future::Future;
use std::io;
use std::sync::OnceLock;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

static ASIDE: OnceLock<Handle> = OnceLock::new();

/// The threads of a program.
pub struct Threads {
    main: Runtime,
    aside: Option<Runtime>,
}

impl Threads {
    /// For a command that carries a stream.
    pub fn of_a_stream() -> io::Result<Self> {
        let main = Builder::new_current_thread().enable_all().build()?;
        let aside = Builder::new_multi_thread().worker_threads(1).thread_name("aside").enable_all().build()?;
        let _ = ASIDE.set(aside.handle().clone());
        Ok(Threads { main, aside: Some(aside) })
    }

    /// For all others: as many as there are processors.
    pub fn of_a_tool() -> io::Result<Self> {
        Ok(Threads { main: Builder::new_multi_thread().enable_all().build()?, aside: None })
    }

    /// Runs a command to its end as a task: unlike what `run` waits for, tasks of one thread wake each other without a
    /// system call.
    pub fn run_task<T: Send + 'static>(self, command: impl Future<Output = T> + Send + 'static) -> T {
        let task = self.main.spawn(command);
        self.run(async {
            match task.await {
                Ok(result) => result,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // It is never aborted, and the runtime lives as long as it.
                    Err(error) => unreachable!("{error}"),
                },
            }
        })
    }

    /// Runs a command to its end. Threads that wait for input do not hold the program.
    pub fn run<T>(self, command: impl Future<Output = T>) -> T {
        let result = self.main.block_on(command);
        self.main.shutdown_background();
        if let Some(aside) = self.aside {
            aside.shutdown_background();
        }
        result
    }
}

/// Runs `work` where it may block without holding up a stream.
pub fn aside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    match ASIDE.get() {
        Some(handle) => handle.spawn(work),
        None => tokio::spawn(work),
    }
}
