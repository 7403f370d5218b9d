//! peers TEST STACK TRANSPORT MSG_SIZE COUNT [SEED]; prints CSV rows
//! test,stack,transport,msg_size,metric,value. CPU is user+sys of the whole process (both endpoints).
mod asy;
mod drive;
mod kern;
mod peers;
mod util;

fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let g = |i: usize| a.get(i).map(|s| s.as_str()).unwrap_or("");
    let num = |i: usize| g(i).parse::<usize>().unwrap_or(0);
    let (test, tr, size, count) = (g(0), g(2), num(3), num(4));
    let stack: &'static str = Box::leak(g(1).to_string().into_boxed_str());
    match (test, stack, tr) {
        ("bulk" | "small", "tcp" | "mptcp", _) => kern::stream_bulk(test, stack, size, count),
        ("bulk", "limit", "udp") => kern::udp_raw("gso", 1200, count),
        ("pingpong", "limit", "udp") => kern::stream_ping("udp-raw", size, count),
        ("bulk" | "small", "quinn", "udp") => asy::quic_bulk(test, size, count),
        ("bulk" | "small", _, "mem") => drive::mem_bulk(test, stack, size, count),
        ("bulk" | "small", _, "udp") => drive::udp_bulk(test, stack, size, count),
        ("pingpong", "tcp" | "mptcp" | "udp-raw", _) => kern::stream_ping(stack, size, count),
        ("pingpong", "quinn", "udp") => asy::quic_ping(size, count),
        ("pingpong", _, "mem") => drive::mem_ping(stack, size, count),
        ("pingpong", _, "udp") => drive::udp_ping(stack, size, count),
        ("assoc", _, _) => drive::mem_assoc(stack, count),
        ("vnet", _, _) => drive::vnet_bulk(stack, size, count, num(5) as u64 + 1),
        _ => {
            eprintln!("usage: peers bulk|small|pingpong|assoc|vnet STACK TRANSPORT MSG_SIZE COUNT [SEED]");
            std::process::exit(2);
        }
    }
}
