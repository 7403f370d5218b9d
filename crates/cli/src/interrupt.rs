//! Ctrl-C, the polite kill and a terminal that goes: the first asks for a clean end, which may take two seconds at most,
//! the second ends at once.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// After a signal `send`, `recv` and `tunnel` have so long for goodbyes; then connections are aborted.
const OVERDUE: Duration = Duration::from_millis(1_500);

/// And so long until the process ends, whatever it still waits for, such as an output that is not read.
const HARD: Duration = Duration::from_millis(350);

/// True once goodbyes take too long.
static LATE: LazyLock<watch::Sender<bool>> = LazyLock::new(|| watch::Sender::new(false));

/// Tells whether the user wants to end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Starts listening to SIGINT, SIGTERM and SIGHUP. What follows may take as long as it needs.
    pub fn install() -> Self {
        Self::listening(true, false)
    }

    /// Interrupts of a program that ends within two seconds, whatever its peers and its output do.
    pub fn prompt() -> Self {
        Self::listening(true, true)
    }

    /// [`prompt`](Self::prompt) without SIGHUP when that reads the file of `--config` anew.
    pub fn beside_reload(config: Option<&Path>) -> Self {
        Self::listening(config.is_none(), true)
    }

    fn listening(hangups: bool, prompt: bool) -> Self {
        let (tx, rx) = watch::channel(false);
        let (installed, ready) = std::sync::mpsc::channel();
        // A thread of its own: all others may be blocked by an output that is not read.
        let thread = std::thread::Builder::new().name("signals".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(listen(&tx, &installed, hangups, prompt)),
                Err(error) => tracing::warn!(%error, "signals cannot be caught; Ctrl-C ends at once"),
            }
            // The receivers wait for ever then.
            loop {
                std::thread::park();
            }
        });
        match thread {
            // An error says that nothing can be caught.
            Ok(_) => drop(ready.recv_timeout(Duration::from_secs(1))),
            Err(error) => tracing::warn!(%error, "signals cannot be caught; Ctrl-C ends at once"),
        }
        Interrupt(rx)
    }

    /// One that never comes.
    #[cfg(test)]
    pub fn never() -> Self {
        Interrupt(watch::channel(false).1)
    }

    /// Does the user want to end?
    pub fn has_come(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the user wants to end.
    pub async fn wait(&self) {
        let mut rx = self.0.clone();
        if rx.wait_for(|b| *b).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn listen(tx: &watch::Sender<bool>, installed: &std::sync::mpsc::Sender<()>, hangups: bool, prompt: bool) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut int), Ok(mut term), Ok(mut hangup)] = kinds.map(signal) else {
        return tracing::warn!("signals cannot be caught; Ctrl-C ends at once");
    };
    // Whoever installs this may have given up waiting.
    let _ = installed.send(());
    let mut ends: Option<tokio::time::Instant> = None;
    loop {
        let end = async {
            match ends {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            _ = hangup.recv(), if hangups => {}
            () = end => {
                if LATE.send_replace(true) {
                    exit();
                }
                ends = Some(tokio::time::Instant::now() + HARD);
                continue;
            }
        }
        if tx.send_replace(true) {
            exit();
        }
        if prompt {
            ends = Some(tokio::time::Instant::now() + OVERDUE);
        }
    }
}

fn exit() -> ! {
    std::process::exit(i32::from(crate::exit::Failure::Interrupted.code()))
}

/// Returns once the user has wanted an end for so long that nothing is waited for any more.
pub async fn overdue() {
    // The sender is never dropped.
    let _ = LATE.subscribe().wait_for(|late| *late).await;
}

/// Has that come?
pub fn is_overdue() -> bool {
    *LATE.borrow()
}
