//! What is measured: a test, how packets travel, and the sizes.

use std::fmt;

/// A question of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Test {
    /// Much data one way: CPU per byte
    Bulk,
    /// Messages of 100 bytes: messages per CPU second
    Small,
    /// Request and answer of 100 bytes: CPU per round
    Pingpong,
    /// Handshakes, and what an idle association holds
    Setup,
    /// A bottleneck of 100 Mbit/s in virtual time: how full it gets
    Path,
}

/// How packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// Both ends in one thread, packets handed over in memory
    Mem,
    /// UDP on loopback
    Udp,
    /// A link in virtual time
    Vnet,
}

/// One measurement of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub test: Test,
    pub transport: Transport,
    /// Bytes of a message.
    pub message: usize,
    /// Receive and send buffer, bytes.
    pub window: usize,
}

/// Usual window, bytes.
const WINDOW: usize = 1 << 20;
/// Windows of the test that looks for costs that grow with what is in flight.
const WINDOWS: [usize; 4] = [64 << 10, 256 << 10, 4 << 20, 16 << 20];

impl Cell {
    /// All cells, in the order of the tests.
    pub fn all() -> Vec<Cell> {
        use Test as T;
        use Transport as V;
        let cell = |test, transport, message| Cell { test, transport, message, window: WINDOW };
        let mut all = Vec::new();
        for transport in [V::Mem, V::Udp] {
            all.extend([1_024, 16_384, 65_536].map(|n| cell(T::Bulk, transport, n)));
        }
        all.extend(WINDOWS.map(|window| Cell { window, ..cell(T::Bulk, V::Mem, 1_024) }));
        for test in [T::Small, T::Pingpong] {
            all.extend([V::Mem, V::Udp].map(|transport| cell(test, transport, 100)));
        }
        all.push(cell(T::Setup, V::Mem, 0));
        all.extend([1_024, 16_384, 65_536].map(|n| cell(T::Path, V::Vnet, n)));
        all
    }

    /// The words by which a program is asked for it: TEST TRANSPORT SIZE COUNT. Peers know some by other names.
    pub fn words(&self, peer: bool, bytes: usize) -> [String; 4] {
        let trips = (bytes / 5_000).clamp(1_000, 1_000_000);
        let (test, transport, count) = match self.test {
            Test::Bulk => ("bulk", self.transport.name(), bytes),
            Test::Small => ("small", self.transport.name(), bytes / 10),
            Test::Pingpong => ("pingpong", self.transport.name(), trips),
            Test::Setup if peer => ("assoc", "mem", bytes / 10_000),
            Test::Setup => ("setup", "mem", bytes / 10_000),
            Test::Path if peer => ("vnet", "vmem", bytes * 6 / 10),
            // Seconds of virtual time.
            Test::Path => ("path", "vnet", 20),
        };
        [test.to_owned(), transport.to_owned(), self.message.to_string(), count.to_string()]
    }

    /// The metric that summarises the cell.
    pub fn headline(&self) -> &'static str {
        match self.test {
            Test::Bulk => "cpu_s_per_GB",
            Test::Small => "msgs_per_cpu_s",
            Test::Pingpong => "cpu_us_per_round",
            Test::Setup => "setups_per_cpu_s",
            Test::Path => "goodput_bytes_s",
        }
    }
}

impl Test {
    pub fn name(self) -> &'static str {
        match self {
            Test::Bulk => "bulk",
            Test::Small => "small",
            Test::Pingpong => "pingpong",
            Test::Setup => "setup",
            Test::Path => "path",
        }
    }
}

impl Transport {
    pub fn name(self) -> &'static str {
        match self {
            Transport::Mem => "mem",
            Transport::Udp => "udp",
            Transport::Vnet => "vnet",
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.test.name(), self.transport.name())?;
        if self.message > 0 {
            write!(f, ", {} bytes", self.message)?;
        }
        if self.window != WINDOW {
            write!(f, ", window {} KiB", self.window >> 10)?;
        }
        Ok(())
    }
}
