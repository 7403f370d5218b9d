//! MPEG transport streams (ISO/IEC 13818-1): packets, tables and PES headers, read without ever
//! changing or losing a byte.

mod elementary;
mod packet;
mod pes;
pub(crate) mod psi;
mod splitter;
mod unnamed;

#[cfg(test)]
pub(crate) mod tests;

pub use elementary::{AccessUnit, Elementary};
pub use packet::{PACKET_LEN, PCR_CYCLE, Packet, SYNC_BYTE};
pub(crate) use packet::{read_pcr, write_pcr};
pub use pes::{PES_START_LEN, PTS_CYCLE, PesHeader, StampField, read_stamp, write_stamp};
pub use psi::{Program, StreamInfo, Tables, VideoCodec};
pub use splitter::{Piece, Splitter};

/// PID of null packets, which only fill up a constant-rate multiplex (ISO/IEC 13818-1 §2.4.3.3).
pub const NULL_PID: u16 = 0x1fff;

/// PID of the program association table.
pub const PAT_PID: u16 = 0;
